"""Every method without a token, with one that is nobody's, and with one that is good for too little."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf import descriptor
from grpc_calls import SECONDS, reason_of, refused, rejected, turn
from grpc_status import rpc_status
from lan_box import ADMIN, DELETE, READ, WRITE, LanBox, Metadata, bearer, lan_box
from test_wire import METHODS

from edge.service.later import LATER
from edge.service.permissions import NEEDS
from edge.types import Scope
from edge.v1 import appliance_pb2, memory_pb2, types_pb2, working_pb2

if TYPE_CHECKING:
    from conftest import BoxFactory

UNAUTHENTICATED, DENIED = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED
ALL = frozenset(Scope)
OTHER = "private/theirs"
# What names a space, and names one that is not the token's.
NAMING = {
    "/edge.v1.MemoryService/Recall": memory_pb2.RecallRequest(query="q", spaces=[OTHER]),
    "/edge.v1.MemoryService/RecallStream": memory_pb2.RecallRequest(query="q", spaces=["private/mine", OTHER]),
    "/edge.v1.MemoryService/Remember": memory_pb2.RememberRequest(text="t", space=OTHER),
    "/edge.v1.MemoryService/GetMemory": memory_pb2.GetMemoryRequest(id=f"edge://{OTHER}/note/x"),
    "/edge.v1.MemoryService/ListMemories": memory_pb2.ListMemoriesRequest(spaces=[OTHER]),
    "/edge.v1.MemoryService/Forget": memory_pb2.ForgetRequest(
        spaces=[OTHER], filter=types_pb2.Filter(tags=["t"]), dry_run=True
    ),
    "/edge.v1.MemoryService/ReviewCandidate": memory_pb2.ReviewCandidateRequest(
        id=f"edge://{OTHER}/note/x", verdict=memory_pb2.VERDICT_CONFIRM
    ),
    "/edge.v1.MemoryService/Archive": memory_pb2.ArchiveRequest(ids=[f"edge://{OTHER}/note/x"]),
    "/edge.v1.MemoryService/Undo": memory_pb2.UndoRequest(event_id=f"edge://{OTHER}/note/x"),
    "/edge.v1.MemoryService/ListDeeds": memory_pb2.ListDeedsRequest(spaces=[OTHER]),
    "/edge.v1.WorkingService/PutState": working_pb2.PutStateRequest(key="k", text="t", space=OTHER),
    "/edge.v1.WorkingService/GetState": working_pb2.GetStateRequest(key="k", space=OTHER),
    "/edge.v1.WorkingService/ListStates": working_pb2.ListStatesRequest(space=OTHER),
    "/edge.v1.WorkingService/DeleteState": working_pb2.DeleteStateRequest(key="k", space=OTHER),
    "/edge.v1.WorkingService/RecentTurns": working_pb2.RecentTurnsRequest(session="s", space=OTHER),
    "/edge.v1.ApplianceService/CreateSpace": appliance_pb2.CreateSpaceRequest(name=OTHER),
    "/edge.v1.ApplianceService/DeleteSpace": appliance_pb2.DeleteSpaceRequest(name=OTHER),
}


@pytest.fixture(scope="module")
def lan(start_lasting_box: BoxFactory) -> LanBox:
    found = lan_box(start_lasting_box)
    found.owner.say("别人的话", space=OTHER)
    return found


@pytest.fixture(scope="module")
def channel(lan: LanBox) -> Iterator[grpc.Channel]:
    with lan.channel() as connected:
        yield connected


@pytest.fixture(scope="module")
def tokens(lan: LanBox) -> dict[str, str]:
    """Secrets by what they are good for."""
    made = {f"all but {scope.name}": lan.token(f"no-{scope.name.lower()}", [("*", ALL - {scope})]) for scope in Scope}
    made["everything"] = lan.token("everything", [("*", ALL)])
    made["mine"] = lan.token("mine", [("private/mine", ALL)])
    made["revoked"] = lan.token("revoked", [("*", ALL)])
    lan.revoke("revoked")
    return made


def ask(channel: grpc.Channel, path: str, metadata: Metadata, *messages: bytes) -> Any:
    """The first answer to these messages, as bytes."""
    method: descriptor.MethodDescriptor = METHODS[path]
    kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
    sent = iter(messages) if method.client_streaming else messages[0]
    answer = getattr(channel, kind)(path)(sent, timeout=SECONDS, metadata=metadata)
    return next(answer) if method.server_streaming else answer


def refusal(channel: grpc.Channel, path: str, metadata: Metadata, *messages: bytes) -> tuple[grpc.StatusCode, str]:
    """(code, reason) that the box turns this call away with."""
    with pytest.raises(grpc.RpcError) as caught:
        ask(channel, path, metadata, *messages)
    status = rpc_status.from_call(caught.value)
    assert status is not None, caught.value
    return caught.value.code(), reason_of(status)


@pytest.mark.parametrize("path", sorted(NEEDS))
def test_nobody_gets_in_without_a_token_that_is_good(
    lan: LanBox, channel: grpc.Channel, tokens: dict[str, str], path: str
) -> None:
    unknown = f"edge_{secrets.token_urlsafe(32)}"
    with grpc.insecure_channel(lan.plain) as plain:
        for connection in (channel, plain):
            assert refusal(connection, path, (), b"") == (UNAUTHENTICATED, "TOKEN_NEEDED")
            assert refusal(connection, path, bearer(unknown), b"") == (UNAUTHENTICATED, "TOKEN_UNKNOWN")
            assert refusal(connection, path, bearer(tokens["revoked"]), b"") == (UNAUTHENTICATED, "TOKEN_UNKNOWN")


@pytest.mark.parametrize("path", sorted(NEEDS))
def test_a_token_needs_the_scope_of_the_method(channel: grpc.Channel, tokens: dict[str, str], path: str) -> None:
    needed = NEEDS[path]
    for scope in Scope:
        metadata = bearer(tokens[f"all but {scope.name}"])
        if scope is needed:
            assert refusal(channel, path, metadata, b"") == (DENIED, "NOT_ALLOWED")


@pytest.mark.parametrize("path", sorted(NEEDS))
def test_a_good_token_is_let_in_on_both_listeners(
    lan: LanBox, channel: grpc.Channel, tokens: dict[str, str], path: str
) -> None:
    with grpc.insecure_channel(lan.plain) as plain:
        for connection in (channel, plain):
            code = code_of(connection, path, bearer(tokens["everything"]))
            if path in LATER:
                assert code is grpc.StatusCode.UNIMPLEMENTED
            elif path == "/edge.v1.MemoryService/Undo":
                # Of one who did nothing yet.
                assert code is grpc.StatusCode.FAILED_PRECONDITION
            else:
                assert code in (grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT)


@pytest.mark.parametrize("path", sorted(NAMING))
def test_all_rights_in_one_space_are_none_in_another(channel: grpc.Channel, tokens: dict[str, str], path: str) -> None:
    message = NAMING[path].SerializeToString()
    code, reason = refusal(channel, path, bearer(tokens["mine"]), message)
    assert (code, reason) == (DENIED, "NOT_ALLOWED")
    # The same words for a space that is not there: whether it is, this token is not to learn.
    absent = message.replace(b"theirs", b"nobody")
    assert told(channel, path, bearer(tokens["mine"]), absent) == told(
        channel, path, bearer(tokens["mine"]), message
    ).replace("theirs", "nobody")


def told(channel: grpc.Channel, path: str, metadata: Metadata, message: bytes) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        ask(channel, path, metadata, message)
    return str(caught.value.details())


def test_a_turn_for_another_s_space_is_rejected_and_its_neighbour_is_kept(
    lan: LanBox, channel: grpc.Channel, tokens: dict[str, str]
) -> None:
    request = memory_pb2.IngestRequest(turns=[turn("混进来的", space=OTHER), turn("自己的", space="private/mine")])
    raw = ask(channel, "/edge.v1.MemoryService/Ingest", bearer(tokens["mine"]), request.SerializeToString())
    first, second = memory_pb2.IngestResponse.FromString(raw).results
    assert rejected(first) == (DENIED.value[0], "space")
    assert second.state == memory_pb2.INGEST_STATE_STORED
    assert [memory.text for memory in lan.owner.listed(OTHER)] == ["别人的话"]


@pytest.mark.parametrize("path", sorted(path for path, scope in NEEDS.items() if scope is ADMIN))
def test_admin_in_one_space_is_no_admin_of_the_box(channel: grpc.Channel, tokens: dict[str, str], path: str) -> None:
    assert refusal(channel, path, bearer(tokens["mine"]), b"") == (DENIED, "NOT_ALLOWED")


def code_of(channel: grpc.Channel, path: str, metadata: Metadata) -> grpc.StatusCode:
    try:
        ask(channel, path, metadata, b"")
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code
    return grpc.StatusCode.OK


def status_with(channel: grpc.Channel, metadata: Sequence[tuple[str, str | bytes]]) -> grpc.StatusCode:
    return code_of(channel, "/edge.v1.ApplianceService/GetStatus", tuple(metadata))


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer   {}", "Bearer {}  "])
def test_the_scheme_s_case_and_spaces_around_a_token_do_not_matter(
    channel: grpc.Channel, tokens: dict[str, str], form: str
) -> None:
    # RFC 9110, section 11.1: the scheme is case-insensitive.
    assert status_with(channel, [("authorization", form.format(tokens["mine"]))]) is grpc.StatusCode.OK


@pytest.mark.parametrize(
    "form",
    ["", "Bearer", "Bearer ", "{}", "Basic {}", "Token {}", "Bearer Bearer {}", "Bearer {}x", "Bearer {} x",
     "Bearer {},{}", 'Bearer "{}"', "Bearer edge_", "Bearer {}" + "A" * 3000, "Bearer %s"],
)  # fmt: skip
def test_what_only_resembles_a_token_is_none(channel: grpc.Channel, tokens: dict[str, str], form: str) -> None:
    assert status_with(channel, [("authorization", form.replace("{}", tokens["mine"]))]) is UNAUTHENTICATED


def test_a_token_counts_in_its_own_header_alone(channel: grpc.Channel, tokens: dict[str, str]) -> None:
    value = f"Bearer {tokens['mine']}"
    for metadata in (
        [("authorization-bin", value.encode())], [("x-authorization", value)], [("token", tokens["mine"])],
        [("cookie", value)],
    ):  # fmt: skip
        assert status_with(channel, metadata) is UNAUTHENTICATED


def test_two_tokens_in_one_call_are_refused_since_it_is_open_whose_call_it_is(
    channel: grpc.Channel, tokens: dict[str, str]
) -> None:
    good, bad = f"Bearer {tokens['mine']}", f"Bearer edge_{'A' * 43}"
    for pair in ([good, bad], [bad, good], [good, good], ["Basic x", good]):
        assert status_with(channel, [("authorization", value) for value in pair]) is UNAUTHENTICATED


def test_a_header_of_five_megabytes_ends_its_call_alone(
    lan: LanBox, channel: grpc.Channel, tokens: dict[str, str]
) -> None:
    with lan.channel() as other, pytest.raises(grpc.RpcError):
        ask(other, "/edge.v1.ApplianceService/GetStatus", (("authorization", "Bearer " + "A" * 5_000_000),), b"")
    assert status_with(channel, bearer(tokens["mine"])) is grpc.StatusCode.OK


def test_a_browser_s_origin_gets_no_leave_to_read(channel: grpc.Channel, tokens: dict[str, str]) -> None:
    call = channel.unary_unary("/edge.v1.ApplianceService/GetStatus")
    metadata = (*bearer(tokens["mine"]), ("origin", "https://example.org"))
    _, done = call.with_call(b"", timeout=SECONDS, metadata=metadata)
    sent = [*done.initial_metadata(), *done.trailing_metadata()]
    assert not [key for key, _ in sent if key.startswith("access-control-")]


def test_the_status_is_cut_to_what_the_token_may_see(
    lan: LanBox, channel: grpc.Channel, tokens: dict[str, str]
) -> None:
    def status(name: str, path: str = "/edge.v1.ApplianceService/GetStatus") -> appliance_pb2.Status:
        raw = ask(channel, path, bearer(tokens[name]), b"")
        # GetStatusResponse and WatchStatusResponse are alike on the wire.
        return appliance_pb2.GetStatusResponse.FromString(raw).status

    everything = status("everything")
    assert everything.data_directory == str(lan.box.data)
    assert OTHER in {space.name for space in everything.spaces}
    for path in ("/edge.v1.ApplianceService/GetStatus", "/edge.v1.ApplianceService/WatchStatus"):
        mine = status("mine", path)
        assert {space.name for space in mine.spaces} <= {"private/mine"}
        assert mine.ready and mine.version and mine.model.id
        assert str(lan.box.data).encode() not in mine.SerializeToString()
        assert status("all but READ", path).spaces == everything.spaces
        assert not status("all but ADMIN", path).data_directory


def test_who_may_write_a_space_and_not_read_it_learns_nothing_of_it(lan: LanBox, channel: grpc.Channel) -> None:
    metadata = bearer(lan.token("postman", [(OTHER, {WRITE})]))
    raw = ask(channel, "/edge.v1.ApplianceService/CreateSpace", metadata,
              appliance_pb2.CreateSpaceRequest(name=OTHER).SerializeToString())  # fmt: skip
    assert appliance_pb2.CreateSpaceResponse.FromString(raw).space == appliance_pb2.Space(name=OTHER)
    for path in ("Recall", "GetMemory", "ListMemories"):
        method = f"/edge.v1.MemoryService/{path}"
        assert refusal(channel, method, metadata, NAMING[method].SerializeToString())[0] is DENIED


def test_a_name_that_is_no_space_s_is_refused_by_every_method_that_takes_one(
    channel: grpc.Channel, tokens: dict[str, str]
) -> None:
    odd = ["../x", "private/../x", "%2e%2e", "private/%2e%2e", "private/a\0b", "private/" + "a" * 300, "private/A", " "]
    for name in odd:
        requests = {
            "/edge.v1.MemoryService/Recall": memory_pb2.RecallRequest(query="q", spaces=[name]),
            "/edge.v1.MemoryService/RecallStream": memory_pb2.RecallRequest(query="q", spaces=["public", name]),
            "/edge.v1.MemoryService/Remember": memory_pb2.RememberRequest(text="t", space=name),
            "/edge.v1.MemoryService/GetMemory": memory_pb2.GetMemoryRequest(id=f"edge://{name}/note/x"),
            "/edge.v1.MemoryService/ListMemories": memory_pb2.ListMemoriesRequest(spaces=[name]),
            "/edge.v1.MemoryService/Forget": memory_pb2.ForgetRequest(ids=[f"edge://{name}/note/x"]),
            "/edge.v1.ApplianceService/Rebuild": appliance_pb2.RebuildRequest(spaces=[name]),
            "/edge.v1.ApplianceService/CreateSpace": appliance_pb2.CreateSpaceRequest(name=name),
            "/edge.v1.ApplianceService/DeleteSpace": appliance_pb2.DeleteSpaceRequest(name=name),
            "/edge.v1.ApplianceService/CreateToken": appliance_pb2.CreateTokenRequest(
                name="odd", grants=[appliance_pb2.Grant(space_pattern=name, scopes=[appliance_pb2.SCOPE_READ])]
            ),
        }
        for path, request in requests.items():
            code, _ = refusal(channel, path, bearer(tokens["everything"]), request.SerializeToString())
            assert code is grpc.StatusCode.INVALID_ARGUMENT, (path, name)
        request = memory_pb2.IngestRequest(turns=[turn("t", space=name)])
        path = "/edge.v1.MemoryService/Ingest"
        raw = ask(channel, path, bearer(tokens["everything"]), request.SerializeToString())
        (result,) = memory_pb2.IngestResponse.FromString(raw).results
        assert rejected(result) == (grpc.StatusCode.INVALID_ARGUMENT.value[0], "space")


def test_a_space_that_is_not_there_is_not_made_by_asking_for_its_views(lan: LanBox) -> None:
    with refused(grpc.StatusCode.NOT_FOUND, "spaces"):
        lan.owner.appliance.Rebuild(appliance_pb2.RebuildRequest(spaces=["private/absent"]), timeout=SECONDS)
    assert not (lan.box.data / "spaces/private/absent").exists()


def test_no_space_s_rights_come_from_grants_of_the_same_name_s_beginning(lan: LanBox, channel: grpc.Channel) -> None:
    metadata = bearer(lan.token("near", [("private/their", {READ, WRITE, DELETE})]))
    path = "/edge.v1.MemoryService/ListMemories"
    assert refusal(channel, path, metadata, NAMING[path].SerializeToString())[0] is DENIED
