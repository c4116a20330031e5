"""Nothing of a space without the right is ever told: ten thousand random calls of random tokens on random spaces."""

from __future__ import annotations

import base64
import json
import random
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc_calls import SECONDS, turn
from lan_box import DELETE, READ, WRITE, LanBox, Talk, bearer, lan_box, memory_stub

from edge.types import Caller, Grant, Scope
from edge.v1 import appliance_pb2, memory_pb2, types_pb2

if TYPE_CHECKING:
    from conftest import BoxFactory

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
CALLS = 10_000
WORKERS = 4
SEED = 20261130
# No name is a part of another, of a text, or of a word that the box says.
SPACES = ("public", "work", *(f"private/zq{number}xk" for number in range(6)))
PATTERNS = ("*", "private/*", *SPACES)
# Which are found in any answer, since they are words of the box or of the wire too.
COMMON = ("public", "work")
TEXTS = 4


@dataclass(frozen=True)
class Told:
    """What must not leave a space: two words of its texts, its memories' ids, and its name. Calls ask for the marker,
    and never for the seal."""

    marker: str
    seal: str
    ids: Sequence[str]


@dataclass(frozen=True)
class Client:
    caller: Caller
    secret: str

    def spaces(self, scope: Scope) -> set[str]:
        return {space for space in SPACES if self.caller.may(scope, space)}


@dataclass(frozen=True)
class House:
    lan: LanBox
    spaces: dict[str, Told]
    clients: Sequence[Client]
    # A token that may all but administer, for a page token of somebody else's.
    page: str


@pytest.fixture(scope="module")
def house(start_lasting_box: BoxFactory) -> House:
    lan = lan_box(start_lasting_box, environment={"EDGE_LOG": "DEBUG"})
    dice = random.Random(SEED)
    spaces = {}
    for number, space in enumerate(SPACES):
        marker, seal = (f"{word}{number}q{uuid.uuid4().hex[:8]}" for word in ("jwv", "hbg"))
        texts = [f"{marker} 备用钥匙在第{place}个花盆下面 {seal}" for place in range(TEXTS)]
        ids = lan.owner.say(*texts, space=space, source=f"src-{marker}", tags=[f"tag-{marker}"])
        spaces[space] = Told(marker, seal, ids)
    clients = []
    for number in range(24):
        grants = tuple(
            Grant(dice.choice(PATTERNS[1:]), frozenset(dice.sample([READ, WRITE, DELETE], dice.randint(1, 3))))
            for _ in range(dice.randint(1, 3))
        )
        name = f"c{number}"
        secret = lan.token(name, [(grant.pattern, grant.scopes) for grant in grants])
        clients.append(Client(Caller(name, grants), secret))
    page = lan.owner.memory.ListMemories(memory_pb2.ListMemoriesRequest(page_size=5), timeout=SECONDS)
    return House(lan, spaces, clients, page.next_page_token)


class Asker:
    """One thread's random calls over its own connection."""

    def __init__(self, house: House, seed: int) -> None:
        self._house = house
        self.dice = random.Random(seed)
        self._channel = house.lan.channel()
        self._streams: dict[str, Talk] = {}
        self.refused = 0
        self.answered = 0

    def close(self) -> None:
        for stream in self._streams.values():
            stream.end()
            stream.call.cancel()
        self._channel.close()

    def go(self, calls: int) -> None:
        for _ in range(calls):
            client = self.dice.choice(self._house.clients)
            make = self.dice.choices(KINDS, WEIGHTS)[0]
            path, scope, request = make(self, client)
            self._check(client, scope, request, self._call(client, path, request))

    def some(self) -> list[str]:
        """Spaces to name: mostly one, some or none."""
        return self.dice.sample(SPACES, self.dice.choice((0, 0, 1, 1, 1, 2)))

    def space(self) -> str:
        return self.dice.choice(SPACES)

    def id(self) -> str:
        """Of a memory of any space: its id or URI, at times with the right id in the wrong space."""
        space = self.space()
        id_ = self.dice.choice(self._house.spaces[space].ids)
        return self.dice.choice((id_, f"edge://{space}/turn/{id_}", f"edge://{self.space()}/turn/{id_}"))

    def query(self) -> str:
        return self.dice.choice(("钥匙", "花盆", self._house.spaces[self.space()].marker))

    def filter(self) -> types_pb2.Filter:
        marker = self._house.spaces[self.space()].marker
        filters = (
            types_pb2.Filter(), types_pb2.Filter(tags=[f"tag-{marker}"]), types_pb2.Filter(sources=[f"src-{marker}"])
        )  # fmt: skip
        return self.dice.choice(filters)

    def page_token(self) -> str:
        return self.dice.choice(("", "", self._house.page))

    def _call(self, client: Client, path: str, request: Any) -> Iterable[bytes]:
        """All that came back: messages, words of an error, metadata."""
        method = f"/edge.v1.{path}"
        metadata = bearer(client.secret)
        raw = request.SerializeToString()
        try:
            if path == "MemoryService/RecallStream":
                yield self._stream(client).ask(raw)
            elif path == "MemoryService/Ingest":
                yield from self._channel.stream_stream(method)(iter([raw]), timeout=SECONDS, metadata=metadata)
            elif path == "ApplianceService/WatchStatus":
                watching = self._channel.unary_stream(method)(raw, timeout=SECONDS, metadata=metadata)
                yield next(watching)
                watching.cancel()
            else:
                answer, call = self._channel.unary_unary(method).with_call(raw, timeout=SECONDS, metadata=metadata)
                yield answer
                yield repr(call.trailing_metadata()).encode()
            self.answered += 1
        except grpc.RpcError as error:
            # Not a failure inside, not a crash: a refusal.
            assert error.code() in REFUSALS, (path, error)
            if path == "MemoryService/RecallStream":
                self._streams.pop(client.secret).end()
            self.refused += 1
            yield error.details().encode()
            for _, value in (*error.initial_metadata(), *error.trailing_metadata()):
                yield value if isinstance(value, bytes) else value.encode()

    def _stream(self, client: Client) -> Talk:
        if client.secret not in self._streams:
            method = self._channel.stream_stream("/edge.v1.MemoryService/RecallStream")
            self._streams[client.secret] = Talk(method, bearer(client.secret))
        return self._streams[client.secret]

    def _check(self, client: Client, scope: Scope, request: Any, answers: Iterable[bytes]) -> None:
        allowed = client.spaces(scope)
        # What the caller named itself tells it nothing when it comes back.
        said = request.SerializeToString()
        for answer in answers:
            for space, told in self._house.spaces.items():
                if space in allowed:
                    continue
                secrets = [
                    told.marker,
                    told.seal,
                    *told.ids,
                    *(() if space in COMMON else (space, space.replace("/", "%2F"))),
                ]
                for secret in secrets:
                    assert secret.encode() not in answer or secret.encode() in said, (client, space, request, answer)


Kind = Callable[[Asker, Client], tuple[str, Scope, Any]]
REFUSALS = {
    grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}  # fmt: skip


def recall_request(asker: Asker, _: Client) -> memory_pb2.RecallRequest:
    dice = asker.dice
    return memory_pb2.RecallRequest(
        query=asker.query(), spaces=asker.some(), top_k=dice.choice((1, 5, 50)), filter=asker.filter(),
        with_context=dice.random() < 0.3, wait_for=[asker.id()[-36:]] if dice.random() < 0.2 else (),
    )  # fmt: skip


KINDS: tuple[Kind, ...] = (
    lambda asker, client: ("MemoryService/Recall", READ, recall_request(asker, client)),
    lambda asker, client: ("MemoryService/RecallStream", READ, recall_request(asker, client)),
    lambda asker, _: (
        "MemoryService/ListMemories", READ,
        memory_pb2.ListMemoriesRequest(
            spaces=asker.some(), filter=asker.filter(), page_size=7, page_token=asker.page_token()
        ),
    ),
    lambda asker, _: ("MemoryService/GetMemory", READ, memory_pb2.GetMemoryRequest(id=asker.id())),
    lambda asker, _: (
        "MemoryService/Forget", DELETE, memory_pb2.ForgetRequest(ids=[asker.id(), asker.id()], dry_run=True)
    ),
    lambda asker, _: (
        "MemoryService/Forget", DELETE,
        memory_pb2.ForgetRequest(filter=asker.filter(), spaces=asker.some(), dry_run=True),
    ),
    lambda asker, _: (
        "MemoryService/Remember", WRITE, memory_pb2.RememberRequest(text="记", space=asker.space(), kind="scrap")
    ),
    lambda asker, _: (
        "MemoryService/Ingest", WRITE, memory_pb2.IngestRequest(turns=[turn("听", space=asker.space()), turn("说")])
    ),
    lambda asker, _: ("ApplianceService/ListSpaces", READ, appliance_pb2.ListSpacesRequest()),
    lambda asker, _: ("ApplianceService/GetStatus", READ, appliance_pb2.GetStatusRequest()),
    lambda asker, _: ("ApplianceService/WatchStatus", READ, appliance_pb2.WatchStatusRequest()),
    lambda asker, _: ("ApplianceService/ListTokens", READ, appliance_pb2.ListTokensRequest()),
    lambda asker, _: ("ApplianceService/DeleteSpace", DELETE, appliance_pb2.DeleteSpaceRequest(name="private/none")),
)  # fmt: skip
WEIGHTS = (12, 8, 16, 20, 12, 8, 1, 1, 4, 4, 2, 2, 2)


def test_ten_thousand_random_calls_tell_nothing_of_a_space_without_the_right(house: House) -> None:
    askers = [Asker(house, SEED + number) for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as threads:
        for done in [threads.submit(asker.go, CALLS // WORKERS) for asker in askers]:
            done.result()
    for asker in askers:
        asker.close()
        # Both ways were gone often.
        assert asker.refused > 100 and asker.answered > 100
    log = house.lan.box.log
    for space, told in house.spaces.items():
        assert told.marker not in log and told.seal not in log
        assert space in COMMON or space not in log
        assert not any(id_ in log for id_ in told.ids)
    assert not any(client.secret in log for client in house.clients)


def reader(house: House, name: str, *spaces: str) -> Any:
    """Metadata of a token that may do all in these spaces."""
    return bearer(house.lan.token(name, [(space, {READ, WRITE, DELETE}) for space in spaces]))


@pytest.fixture(scope="module")
def channel(house: House) -> Iterator[grpc.Channel]:
    with house.lan.channel() as connected:
        yield connected


def failure(call: Callable[..., Any], request: Any, metadata: Any) -> tuple[Any, ...]:
    with pytest.raises(grpc.RpcError) as caught:
        call(request, metadata=metadata, timeout=SECONDS)
    return caught.value.code(), caught.value.details(), tuple(caught.value.trailing_metadata())


def test_the_id_of_a_foreign_memory_is_answered_as_one_that_was_never_given(
    house: House, channel: grpc.Channel
) -> None:
    metadata = reader(house, "ids", SPACES[2])
    foreign, unknown = house.spaces[SPACES[3]].ids[0], str(uuid.uuid4())
    get = memory_stub(channel).GetMemory
    forget = memory_stub(channel).Forget
    for call, make in (
        (get, lambda id_: memory_pb2.GetMemoryRequest(id=id_)),
        (get, lambda id_: memory_pb2.GetMemoryRequest(id=f"edge://{SPACES[2]}/turn/{id_}")),
        (get, lambda id_: memory_pb2.GetMemoryRequest(id=f"edge://{SPACES[3]}/turn/{id_}")),
        (forget, lambda id_: memory_pb2.ForgetRequest(ids=[id_])),
        (forget, lambda id_: memory_pb2.ForgetRequest(ids=[id_], dry_run=True)),
        (forget, lambda id_: memory_pb2.ForgetRequest(ids=[f"edge://{SPACES[2]}/turn/{id_}"])),
    ):
        assert failure(call, make(foreign), metadata) == failure(call, make(unknown), metadata)
    # And it is still there.
    assert foreign in {memory.id for memory in house.lan.owner.listed(SPACES[3])}


def test_waiting_for_a_foreign_memory_is_waiting_for_nothing(house: House, channel: grpc.Channel) -> None:
    metadata = reader(house, "waits", SPACES[2])
    recall = memory_stub(channel).Recall
    for id_ in (house.spaces[SPACES[3]].ids[0], str(uuid.uuid4())):
        answer = recall(memory_pb2.RecallRequest(query="钥匙", wait_for=[id_]), metadata=metadata, timeout=SECONDS)
        assert list(answer.spaces) == [SPACES[2]]
        assert answer.hits


def test_a_page_token_opens_no_space(house: House, channel: grpc.Channel) -> None:
    metadata = reader(house, "pages", SPACES[2])
    listing = memory_stub(channel).ListMemories
    made_up = base64.urlsafe_b64encode(json.dumps({space: [2**62, 2**62] for space in SPACES}).encode()).decode()
    for token in (house.page, made_up):
        request = memory_pb2.ListMemoriesRequest(page_token=token)
        answer = listing(request, metadata=metadata, timeout=SECONDS)
        assert {memory.space for memory in answer.memories} <= {SPACES[2]}


def test_a_recall_that_names_no_space_reads_what_the_token_may_read_and_says_which(
    house: House, channel: grpc.Channel
) -> None:
    secret = house.lan.token("reads", [("public", {READ}), (SPACES[4], {READ}), (SPACES[5], {WRITE})])
    recall = memory_stub(channel).Recall
    answer = recall(memory_pb2.RecallRequest(query="备用钥匙", top_k=200), metadata=bearer(secret), timeout=SECONDS)
    assert sorted(answer.spaces) == ["private/zq2xk", "public"]
    assert {hit.memory.space for hit in answer.hits} == {"private/zq2xk", "public"}


def test_a_write_that_names_no_space_lands_in_the_client_s_own(house: House, channel: grpc.Channel) -> None:
    metadata = bearer(house.lan.token("kitchen"))
    remember = memory_stub(channel).Remember
    ingest = memory_stub(channel).Ingest
    (memory,) = remember(memory_pb2.RememberRequest(text="盐快用完了"), metadata=metadata, timeout=SECONDS).memories
    assert memory.space == "private/kitchen"
    turns = memory_pb2.IngestRequest(turns=[turn("糖还有半包")])
    first, _ = ingest(iter([turns]), metadata=metadata, timeout=SECONDS)
    assert first.results[0].state == memory_pb2.INGEST_STATE_STORED
    owned = {one.text for one in house.lan.owner.listed("private/kitchen")}
    assert owned == {"盐快用完了", "糖还有半包"}
    assert not {"盐快用完了", "糖还有半包"} & {one.text for one in house.lan.owner.listed("public")}


def test_a_client_without_a_right_to_its_own_space_has_to_name_one(house: House, channel: grpc.Channel) -> None:
    metadata = bearer(house.lan.token("guest", [("public", {READ, WRITE})]))
    remember = memory_stub(channel).Remember
    code, words, _ = failure(remember, memory_pb2.RememberRequest(text="去哪里"), metadata)
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert words.startswith("space: ")
    assert not (house.lan.box.data / "spaces/private/guest").exists()


def test_a_space_that_is_deleted_while_it_is_written_and_read_goes_whole_and_the_box_goes_on(house: House) -> None:
    """Clear answers on every side, and no text of before it in the space that the stream makes anew."""
    owner, space = house.lan.owner, "private/moving"
    over = threading.Event()
    odd: list[object] = []

    def watched(work: Callable[[int], object]) -> None:
        number = 0
        while not over.is_set():
            number += 1
            try:
                work(number)
            except grpc.RpcError as error:
                if error.code() not in (UNAVAILABLE, grpc.StatusCode.NOT_FOUND):
                    odd.append((error.code(), error.details()))

    def write(number: int) -> None:
        request = memory_pb2.IngestRequest(turns=[turn(f"轮次{number}", space=space, seq=n) for n in range(4)])
        for answer in owner.memory.Ingest(iter([request] * 3), timeout=SECONDS):
            refused = [result.error for result in answer.results if result.state == memory_pb2.INGEST_STATE_REJECTED]
            odd.extend(error for error in refused if error.code != UNAVAILABLE.value[0])

    def read(number: int) -> None:
        owner.recall("轮次", *([space] if number % 2 else []), top_k=50)
        owner.listed(space)
        owner.status()
        owner.appliance.ListSpaces(appliance_pb2.ListSpacesRequest(), timeout=SECONDS)

    def delete(_: int) -> None:
        owner.appliance.DeleteSpace(appliance_pb2.DeleteSpaceRequest(name=space), timeout=SECONDS)

    with ThreadPoolExecutor(4) as threads:
        working = [threads.submit(watched, work) for work in (write, write, read)]
        for number in range(12):
            before = f"从前的话{number}"
            try:
                owner.say(before, space=space)
            except grpc.RpcError as error:
                assert error.code() is UNAVAILABLE
            delete(number)
            try:
                assert before not in {memory.text for memory in owner.listed(space)}
            except grpc.RpcError as error:
                assert error.code() is UNAVAILABLE
        over.set()
        for done in working:
            done.result()
    assert not odd
    assert house.lan.box.running
    assert not list((house.lan.box.data / "spaces/private").glob(".going-*"))
