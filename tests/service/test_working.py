"""Task state and the last turns, over the wire."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import msgpack
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2
from grpc_calls import SECONDS, Wire, reason_of, refused, turn
from grpc_status import rpc_status
from lan_box import READ, WRITE, bearer, lan_box

from edge.client import AsyncClient, Client
from edge.errors import FailedPrecondition, InvalidArgument, NotFound
from edge.v1 import appliance_pb2, memory_pb2, types_pb2, working_pb2, working_pb2_grpc

if TYPE_CHECKING:
    from conftest import Box, BoxFactory

ROOT = Path(__file__).resolve().parents[2]
INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
ABORTED, DENIED = grpc.StatusCode.ABORTED, grpc.StatusCode.PERMISSION_DENIED
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


class Working:
    """The service alone, over a channel of one's own."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.working = working_pb2_grpc.WorkingServiceStub(channel)


def put(wire: Wire | Working, key: str, space: str = "", metadata: Any = (), **more: Any) -> working_pb2.State:
    if not {"text", "msgpack"} & more.keys():
        more["text"] = "v"
    request = working_pb2.PutStateRequest(key=key, space=space, **more)
    state: working_pb2.State = wire.working.PutState(request, timeout=SECONDS, metadata=metadata).state
    return state


def get(wire: Wire, key: str, space: str = "") -> working_pb2.State:
    request = working_pb2.GetStateRequest(key=key, space=space)
    state: working_pb2.State = wire.working.GetState(request, timeout=SECONDS).state
    return state


def recent(wire: Wire, session: str, space: str, **more: Any) -> working_pb2.RecentTurnsResponse:
    request = working_pb2.RecentTurnsRequest(session=session, space=space, **more)
    response: working_pb2.RecentTurnsResponse = wire.working.RecentTurns(request, timeout=SECONDS)
    return response


def conflict(call: grpc.RpcError) -> str:
    """The present revision that a call failed over."""
    assert call.code() is ABORTED
    status = rpc_status.from_call(call)
    assert status is not None
    assert reason_of(status) == "REVISION"
    info = error_details_pb2.ErrorInfo()
    assert any(detail.Unpack(info) for detail in status.details)
    return info.metadata["revision"]


# Task state.


def test_a_state_comes_back_as_it_was_put(wire: Wire, space: str) -> None:
    packed = msgpack.packb({"step": 3, "done": ["一", None, 1.5, b"\0"]})
    for more in ({"text": "第三步"}, {"msgpack": packed}, {"text": ""}, {"msgpack": b"\xc0"}):
        kept = put(wire, "k", space, **more)
        found = get(wire, "k", space)
        assert found == kept
        assert {field.name: value for field, value in found.ListFields() if field.name in more} or more == {"text": ""}
        assert found.WhichOneof("value") in more
    assert (found.space, found.key, found.revision) == (space, "k", 4)
    assert found.HasField("updated_at")
    assert not found.HasField("expires_at")


@pytest.mark.parametrize(
    ("field", "request_"),
    [
        ("key", working_pb2.PutStateRequest(text="v")),
        ("key", working_pb2.PutStateRequest(key="a\nb", text="v")),
        ("key", working_pb2.PutStateRequest(key="k" * 257, text="v")),
        ("value", working_pb2.PutStateRequest(key="k")),
        ("value", working_pb2.PutStateRequest(key="k", text="x" * 262_145)),
        ("msgpack", working_pb2.PutStateRequest(key="k", msgpack=b"\xc6" + b"\0" * 262_144)),
        ("msgpack", working_pb2.PutStateRequest(key="k", msgpack=b"")),
        ("msgpack", working_pb2.PutStateRequest(key="k", msgpack=b"\xdd\x7f\xff\xff\xff")),
        ("msgpack", working_pb2.PutStateRequest(key="k", msgpack=b"\x91" * 200_000)),
        ("msgpack", working_pb2.PutStateRequest(key="k", msgpack=b"\xd4\x05\x00")),
        ("msgpack", working_pb2.PutStateRequest(key="k", msgpack=b"\x82\xa1a\x01\xa1a\x02")),
        ("expected_revision", working_pb2.PutStateRequest(key="k", text="v", expected_revision=-1)),
        ("ttl", working_pb2.PutStateRequest(key="k", text="v", ttl=Duration())),
        ("ttl", working_pb2.PutStateRequest(key="k", text="v", ttl=Duration(seconds=-5))),
        ("ttl", working_pb2.PutStateRequest(key="k", text="v", ttl=Duration(nanos=-5))),
        ("ttl", working_pb2.PutStateRequest(key="k", text="v", ttl=Duration(nanos=2**31 - 1))),
        ("ttl", working_pb2.PutStateRequest(key="k", text="v", ttl=Duration(seconds=2**63 - 1))),
        ("ttl", working_pb2.PutStateRequest(key="k", text="v", ttl=Duration(seconds=11 * 365 * 86_400))),
        ("space", working_pb2.PutStateRequest(key="k", text="v", space="nowhere")),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value)[:40],
)
def test_a_bad_put_is_refused_by_name(wire: Wire, field: str, request_: working_pb2.PutStateRequest) -> None:
    with refused(INVALID, field):
        wire.working.PutState(request_, timeout=SECONDS)


def test_a_bad_put_makes_no_space(wire: Wire, space: str) -> None:
    with refused(INVALID, "ttl"):
        put(wire, "k", space, ttl=Duration())
    listed = wire.appliance.ListSpaces(appliance_pb2.ListSpacesRequest(), timeout=SECONDS).spaces
    assert space not in {one.name for one in listed}


def test_what_is_not_there_is_not_found(wire: Wire, space: str) -> None:
    with refused(NOT_FOUND, "key"):
        get(wire, "k", space)
    with refused(NOT_FOUND, "key"):
        wire.working.DeleteState(working_pb2.DeleteStateRequest(key="k", space=space), timeout=SECONDS)
    assert not wire.working.ListStates(working_pb2.ListStatesRequest(space=space), timeout=SECONDS).states


async def test_of_fifty_puts_at_once_on_each_revision_exactly_one_wins(shared_box: Box, space: str) -> None:
    async with AsyncClient(shared_box.address) as client:

        async def race(n: int, revision: int) -> int:
            try:
                await client.put_state("k", n, space=space, expected_revision=revision)
            except FailedPrecondition as lost:
                assert lost.reason == "REVISION"
                return -1
            return n

        for revision in range(4):
            won = [n for n in await asyncio.gather(*(race(n, revision) for n in range(50))) if n >= 0]
            state = await client.get_state("k", space=space)
            assert [state.value] == won
            assert state.revision == revision + 1


def test_who_comes_too_late_is_told_the_present_revision(wire: Wire, space: str) -> None:
    put(wire, "k", space)
    put(wire, "k", space)
    with pytest.raises(grpc.RpcError) as caught:
        put(wire, "k", space, expected_revision=0)
    assert conflict(caught.value) == "2"
    with pytest.raises(grpc.RpcError) as caught:
        wire.working.DeleteState(
            working_pb2.DeleteStateRequest(key="k", space=space, expected_revision=1), timeout=SECONDS
        )
    assert conflict(caught.value) == "2"
    with pytest.raises(grpc.RpcError) as caught:
        put(wire, "none", space, expected_revision=7)
    assert conflict(caught.value) == "0"
    wire.working.DeleteState(working_pb2.DeleteStateRequest(key="k", space=space, expected_revision=2), timeout=SECONDS)
    with refused(NOT_FOUND, "key"):
        get(wire, "k", space)


def test_a_state_expires(wire: Wire, space: str) -> None:
    lasting = put(wire, "k", space, ttl=Duration(seconds=3600))
    assert lasting.expires_at.seconds - lasting.updated_at.seconds == 3600
    put(wire, "k", space, ttl=Duration(nanos=1))
    with refused(NOT_FOUND, "key"):
        get(wire, "k", space)


def test_pages_hold_each_key_once_in_order(wire: Wire, space: str) -> None:
    names = [f"task/{n:02}" for n in range(25)] + ["other", "task", "任务"]
    for name in reversed(names):
        put(wire, name, space)
    for prefix in ("", "task/", "任", "x"):
        found: list[str] = []
        token = ""
        while True:
            request = working_pb2.ListStatesRequest(space=space, prefix=prefix, page_size=4, page_token=token)
            page = wire.working.ListStates(request, timeout=SECONDS)
            assert len(page.states) <= 4
            found += [state.key for state in page.states]
            token = page.next_page_token
            if not token:
                break
        assert found == sorted((name for name in names if name.startswith(prefix)), key=str.encode)


@pytest.mark.parametrize("size", [-1, 1001])
def test_an_odd_page_size_is_refused(wire: Wire, size: int) -> None:
    with refused(INVALID, "page_size"):
        wire.working.ListStates(working_pb2.ListStatesRequest(page_size=size), timeout=SECONDS)


def test_a_page_token_of_another_list_is_refused(wire: Wire, space: str) -> None:
    for key in ("a1", "a2"):
        put(wire, key, space)
    first = working_pb2.ListStatesRequest(space=space, prefix="a", page_size=1)
    token = wire.working.ListStates(first, timeout=SECONDS).next_page_token
    assert token
    for other in (
        working_pb2.ListStatesRequest(space=space, page_token=token),
        working_pb2.ListStatesRequest(space="work", prefix="a", page_token=token),
        *(working_pb2.ListStatesRequest(space=space, prefix="a", page_token=odd) for odd in ("x", "bnVsbA==", "W10=")),
    ):
        with refused(INVALID, "page_token"):
            wire.working.ListStates(other, timeout=SECONDS)


def test_a_page_of_large_values_stays_below_what_a_client_takes(wire: Wire, space: str) -> None:
    for n in range(20):
        put(wire, f"{n:02}", space, text=chr(0x4E00 + n) * 87_000)
    page = wire.working.ListStates(working_pb2.ListStatesRequest(space=space, page_size=1000), timeout=SECONDS)
    assert 0 < len(page.states) < 20
    assert page.ByteSize() < 4 * 1024 * 1024
    assert page.next_page_token


def test_a_space_has_no_more_states_than_the_configuration_says(start_box: BoxFactory, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[limits]\nstates = 3\nstate_bytes = 10\n")
    box = start_box("--no-auth", "--listen", "127.0.0.1:0", "--config", str(config))
    with Wire(box.address) as wire:
        for n in range(3):
            put(wire, str(n))
        with refused(EXHAUSTED, "key"):
            put(wire, "3")
        put(wire, "2", text="0123456789")
        with refused(INVALID, "value"):
            put(wire, "2", text="0123456789a")


# Spaces and rights.


def test_every_caller_has_a_home_and_sees_no_other(start_box: BoxFactory) -> None:
    lan = lan_box(start_box)
    put(lan.owner, "k", text="the owner's")
    put(lan.owner, "k", "private/other", text="another's")
    secret = lan.token("desk", [("private/desk", [READ, WRITE])])
    reader, writer = (lan.token(name, [("private/desk", [scope])]) for name, scope in (("r", READ), ("w", WRITE)))
    with lan.channel() as channel:
        stub = Working(channel)
        mine = put(stub, "k", metadata=bearer(secret), text="mine")
        assert (mine.space, mine.revision) == ("private/desk", 1)
        told = set()
        for foreign in ("private/other", "private/nobody"):
            with pytest.raises(grpc.RpcError) as caught:
                request = working_pb2.GetStateRequest(key="k", space=foreign)
                stub.working.GetState(request, timeout=SECONDS, metadata=bearer(secret))
            assert caught.value.code() is DENIED
            told.add(str(caught.value.details()).replace(foreign, ""))
        assert len(told) == 1
        with refused(DENIED, "space"):
            put(stub, "k", "private/desk", metadata=bearer(lan.token("x", [("work", [READ, WRITE])])))
        with refused(DENIED):
            put(stub, "k", "private/desk", metadata=bearer(reader))
        with refused(DENIED):
            request = working_pb2.GetStateRequest(key="k", space="private/desk")
            stub.working.GetState(request, timeout=SECONDS, metadata=bearer(writer))
        # Whoever may write may delete.
        stub.working.DeleteState(
            working_pb2.DeleteStateRequest(key="k", space="private/desk"), timeout=SECONDS, metadata=bearer(writer)
        )
    assert get(lan.owner, "k").text == "the owner's"


def test_deleting_a_space_erases_its_states(start_box: BoxFactory) -> None:
    box = start_box()
    with Wire(box.address) as wire:
        for n in range(100):
            put(wire, f"{n}", "private/desk", text=f"绿色的台灯 {n}")
        put(wire, "k", text="stays")
        wire.appliance.DeleteSpace(appliance_pb2.DeleteSpaceRequest(name="private/desk"), timeout=SECONDS)
        assert "绿色的台灯".encode() not in everything(box)
        wire.appliance.CreateSpace(appliance_pb2.CreateSpaceRequest(name="private/desk"), timeout=SECONDS)
        with refused(NOT_FOUND, "key"):
            get(wire, "1", "private/desk")
        assert put(wire, "1", "private/desk", expected_revision=0).revision == 1
        assert get(wire, "k").text == "stays"


def everything(box: Box) -> bytes:
    return b"".join(path.read_bytes() for path in box.data.rglob("*") if path.is_file())


def test_what_was_deleted_is_on_no_file_when_it_is_answered(start_box: BoxFactory) -> None:
    box = start_box()
    with Client(box.address) as client:
        for n in range(60):
            client.put_state(f"k{n}", f"密语{n:03}号" + "长" * (n % 40))
        for n in range(0, 60, 2):
            client.delete_state(f"k{n}")
    box.kill()
    left = everything(box)
    assert not [n for n in range(0, 60, 2) if f"密语{n:03}号".encode() in left]


# Restarts.


def test_states_outlive_a_kill_and_a_restart(start_box: BoxFactory) -> None:
    box = start_box()
    with Wire(box.address) as wire:
        kept = [put(wire, "k", text=str(n)) for n in range(20)][-1]
        box.kill()
    box.start()
    with Wire(box.address) as wire:
        assert get(wire, "k") == kept
        assert put(wire, "k", expected_revision=kept.revision).revision == kept.revision + 1
        assert box.stop() == 0
    # All but box.sqlite, identity/ and log/ may be lost.
    for path in box.data.glob("spaces/*/*"):
        if path.is_file():
            path.unlink()
    box.start()
    with Wire(box.address) as wire:
        assert get(wire, "k").revision == kept.revision + 1


# What was just said.


@pytest.fixture
def said(wire: Wire, space: str) -> Iterator[tuple[Wire, str]]:
    turns = [turn(f"第{n}句话。\n\n" + "　" * n + "完。" * 120, seq=n, session="s", space=space) for n in range(6)]
    wire.ingest(*turns)
    yield wire, space


def test_the_last_turns_come_back_word_for_word(said: tuple[Wire, str]) -> None:
    wire, space = said
    own = {"tags": ["t"], "attributes": b"\x81\xa1a\x01", "role": "assistant"}
    last = turn("最后一句\t", seq=9, session="s", space=space, **own)
    first = next(iter(wire.memory.Ingest(iter([memory_pb2.IngestRequest(turns=[last])]), timeout=SECONDS)))
    assert first.results[0].state == memory_pb2.INGEST_STATE_STORED
    # As soon as it is stored.
    found = recent(wire, "s", space, token_budget=8192)
    assert [one.seq for one in found.turns] == [0, 1, 2, 3, 4, 5, 9]
    assert found.turns[3].text == "第3句话。\n\n　　　" + "完。" * 120
    last.occurred_at.CopyFrom(found.turns[-1].occurred_at)
    assert found.turns[-1] == last
    assert not found.truncated
    assert [one.seq for one in recent(wire, "s", space, max_turns=2).turns] == [5, 9]
    assert [one.seq for one in recent(wire, "s", space, token_budget=300).turns] == [5, 9]
    assert not recent(wire, "s", space, source="another").turns
    assert not recent(wire, "another", space).turns
    assert not recent(wire, "s", "private/nobody").turns


def test_of_a_turn_beyond_the_budget_the_end_is_given(said: tuple[Wire, str]) -> None:
    wire, space = said
    found = recent(wire, "s", space, token_budget=20)
    assert found.truncated
    (tail,) = found.turns
    assert (tail.seq, tail.text) == (5, "完。" * 9)


def test_what_was_superseded_or_forgotten_never_appears(said: tuple[Wire, str]) -> None:
    wire, space = said
    wire.ingest(turn("换了一句", seq=5, session="s", space=space))
    wire.ingest(turn("要忘掉的", seq=6, session="s", space=space, tags=["gone"]))
    wire.memory.Forget(
        memory_pb2.ForgetRequest(spaces=[space], filter=types_pb2.Filter(tags=["gone"])), timeout=SECONDS
    )
    found = recent(wire, "s", space, token_budget=8192)
    assert [one.seq for one in found.turns] == [0, 1, 2, 3, 4, 5]
    assert found.turns[-1].text == "换了一句"


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("session", {"session": ""}),
        ("token_budget", {"token_budget": 0}),
        ("token_budget", {"token_budget": 8193}),
        ("max_turns", {"max_turns": 0}),
        ("max_turns", {"max_turns": 1001}),
    ],
)
def test_odd_bounds_are_refused(wire: Wire, field: str, more: dict[str, Any]) -> None:
    with refused(INVALID, field):
        recent(wire, **{"session": "s", "space": "", **more})


# The client and the command line.


def test_the_client_keeps_what_python_has(shared_box: Box, space: str) -> None:
    with Client(shared_box.address) as client:
        for value in ("text", {"a": [1, 2.5, None, True]}, ["x", b"\0"], 7, None, -1.5, False, b"raw"):
            kept = client.put_state("k", value, space=space)
            assert kept.value == value
            assert client.get_state("k", space=space) == kept
        assert client.put_state("t", (1, 2), space=space, ttl=3600).value == [1, 2]
        assert [state.key for state in client.list_states("", space=space, page_size=1)] == ["k", "t"]
        client.delete_state("k", space=space, expected_revision=kept.revision)
        with pytest.raises(NotFound):
            client.get_state("k", space=space)
        for odd in ({1: 2}, object(), {"a": {1, 2}}, 2**64):
            with pytest.raises(InvalidArgument):
                client.put_state("k", odd, space=space)
        with pytest.raises(InvalidArgument):
            client.put_state("k", "v", space=space, ttl=float("nan"))
        client.list(page_size=1)
        list(client.ingest([{"source": "a", "session": "s", "seq": 0, "text": "一句话", "space": space}]))
        assert [one.text for one in client.recent_turns("s", space=space).turns] == ["一句话"]


def edge(box: Box, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "edge.cli", "state", *arguments, "--address", box.address],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_the_command_puts_gets_lists_and_erases(shared_box: Box, space: str) -> None:
    where = ("--space", space)
    assert edge(shared_box, "put", "k", "-", *where, stdin="first\x1b[2J").returncode == 0
    assert edge(shared_box, "get", "k", *where).stdout == "first\\x1b[2J\n"
    kept = json.loads(edge(shared_box, "put", "k", '{"a": 1}', "--parse", "--ttl", "30m", "--json", *where).stdout)
    assert (kept["value"], kept["revision"]) == ({"a": 1}, 2)
    assert kept["expires_at"] > kept["updated_at"]
    assert edge(shared_box, "get", "k", *where).stdout == '{"a": 1}\n'
    late = edge(shared_box, "put", "k", "x", "--expect", "1", *where)
    assert (late.returncode, "revision 2" in late.stderr) == (1, True)
    assert re.match(r"k  2  .* until .*\{\"a\": 1\}", edge(shared_box, "ls", *where).stdout)
    told = edge(shared_box, "put", "k", "密码是 xK9#mQ2vL8p", *where).stdout
    assert "was hidden" in told
    assert "xK9" not in edge(shared_box, "get", "k", *where).stdout
    assert edge(shared_box, "rm", "k", *where).stdout == "erased k\n"
    assert edge(shared_box, "get", "k", *where).returncode == 5
    for odd in (("put", "k", "x", "--ttl", "soon"), ("put", "k", "{", "--parse")):
        assert edge(shared_box, *odd, *where).returncode == 2


def test_the_document_works_as_it_stands(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_ADDRESS", box.address)
    text = (ROOT / "docs" / "working.md").read_text("utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for language, body in blocks:
        lines = body.splitlines() if language == "sh" else [body]
        for line in lines:
            command = (
                ["sh", "-c", line.replace("edge ", f"{sys.executable} -m edge.cli ", 1)]
                if language == "sh"
                else [sys.executable, "-c", line]
            )
            done = subprocess.run(
                command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=False,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )  # fmt: skip
            assert done.returncode == 0, f"{line}: {done.stderr}"
    assert {language for language, _ in blocks} == {"sh", "python"}
