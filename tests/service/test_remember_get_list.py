"""Single memories: kept, shown, listed page by page."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import grpc
import pytest
from grpc_calls import SECONDS, Wire, at, refused, turn

from edge.v1 import memory_pb2, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND


def remember(wire: Wire, text: str, **more: Any) -> list[types_pb2.Memory]:
    return list(wire.memory.Remember(memory_pb2.RememberRequest(text=text, **more), timeout=SECONDS).memories)


def get(wire: Wire, id: str, **more: Any) -> types_pb2.Memory:
    memory: types_pb2.Memory = wire.memory.GetMemory(memory_pb2.GetMemoryRequest(id=id, **more), timeout=SECONDS).memory
    return memory


def test_what_is_remembered_is_confirmed_and_found_at_once(wire: Wire, space: str) -> None:
    (memory,) = remember(wire, "备用钥匙在花盆下面", space=space, tags=["home"], weight=2.5)
    assert (memory.state, memory.kind, memory.weight) == (types_pb2.MEMORY_STATE_CONFIRMED, "note", 2.5)
    assert (list(memory.tags), memory.space) == (["home"], space)
    assert memory.uri == f"edge://{space}/note/{memory.id}"
    (hit,) = wire.recall("钥匙", space).hits
    assert hit.memory.id == memory.id
    assert hit.signals.semantic > 0


def test_the_same_words_remembered_twice_are_two_memories(wire: Wire, space: str) -> None:
    first, second = remember(wire, "浇花", space=space), remember(wire, "浇花", space=space)
    assert first[0].id != second[0].id
    assert len(wire.listed(space)) == 2


def test_an_unset_weight_is_that_of_what_is_told_to_be_remembered_and_a_set_zero_is_zero(
    wire: Wire, space: str
) -> None:
    assert remember(wire, "甲", space=space)[0].weight == 5.0
    assert remember(wire, "乙", space=space, weight=0.0)[0].weight == 0.0


def test_a_kind_may_be_chosen(wire: Wire, space: str) -> None:
    (memory,) = remember(wire, "拿铁", space=space, kind="preference")
    assert memory.uri == f"edge://{space}/preference/{memory.id}"


def test_a_long_note_becomes_several_memories(wire: Wire, space: str) -> None:
    memories = remember(wire, "这是一个很长的便条，要分开来记。" * 60, space=space)
    assert [memory.piece for memory in memories] == list(range(len(memories)))
    assert {memory.pieces for memory in memories} == {len(memories)} != {1}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"text": ""}, "text"),
        ({"text": "\u3000"}, "text"),
        ({"text": "a\0"}, "text"),
        ({"text": "ok", "weight": math.nan}, "weight"),
        ({"text": "ok", "weight": math.inf}, "weight"),
        ({"text": "ok", "weight": -0.1}, "weight"),
        ({"text": "ok", "weight": 10.1}, "weight"),
        ({"text": "ok", "kind": "No/Kind"}, "kind"),
        ({"text": "ok", "space": "private/.."}, "space"),
        ({"text": "ok", "tags": ["t"] * 10_000}, "tags"),
    ],
)
def test_what_cannot_be_remembered_is_refused_by_name(wire: Wire, fields: dict[str, Any], named: str) -> None:
    with refused(INVALID, named):
        wire.memory.Remember(memory_pb2.RememberRequest(**fields), timeout=SECONDS)


def test_a_memory_is_got_by_id_and_by_uri(wire: Wire, space: str) -> None:
    (memory,) = remember(wire, "阳台的门要锁好", space=space)
    for address in (memory.id, memory.uri):
        got = get(wire, address)
        assert (got.id, got.text, got.space) == (memory.id, "阳台的门要锁好", space)


def test_a_uri_of_another_space_names_another_memory(wire: Wire, space: str) -> None:
    (memory,) = remember(wire, "别处没有", space=space)
    for other in ("public", space + "-b"):
        with refused(NOT_FOUND, "id"):
            get(wire, f"edge://{other}/note/{memory.id}")


@pytest.mark.parametrize("id", ["nothing", "0197c5f0-2b7a-7c3e-9d52-0c8d6f0a1b2c", "edge://public/turn/x", "\0", "%"])
def test_an_unknown_memory_is_not_found(wire: Wire, id: str) -> None:
    with refused(NOT_FOUND, "id"):
        get(wire, id)


@pytest.mark.parametrize(
    "id",
    [
        "",
        "x" * 65,
        "edge://",
        "edge://../x",
        "edge:///turn/x",
        "edge://public/turn/",
        "edge://private/../public/turn/x",
        "edge://private/a/b/turn/x",
        "edge://%70ublic/turn/x",
        "edge://public//x",
    ],
)
def test_what_is_no_id_is_refused(wire: Wire, id: str) -> None:
    with refused(INVALID, "id"):
        get(wire, id)


def test_an_unknown_level_is_refused(wire: Wire) -> None:
    with refused(INVALID, "level"):
        get(wire, "x", level=77)


def test_memories_are_listed_newest_first_page_by_page(wire: Wire, space: str) -> None:
    times = [5, 3, 9, 3, 7, 1, 3]
    wire.ingest(*(turn(f"事{n}", seq=n, session="s", space=space, occurred_at=at(1_700_000_000 + time))
                  for n, time in enumerate(times)))  # fmt: skip
    whole = [memory.text for memory in wire.listed(space)]
    assert whole == ["事2", "事4", "事0", "事6", "事3", "事1", "事5"]
    for size in (1, 2, 3, 7, 1000):
        assert [memory.text for memory in wire.listed(space, page_size=size)] == whole


def test_pages_over_several_spaces_show_each_memory_once(wire: Wire, space: str) -> None:
    spaces = [space, space + "-b"]
    for n in range(12):
        wire.say(f"事{n}", space=spaces[n % 2], occurred_at=at(1_700_000_000 + n // 3))
    texts: list[str] = []
    times: list[int] = []
    token = ""
    while True:
        page = wire.memory.ListMemories(
            memory_pb2.ListMemoriesRequest(spaces=spaces, page_size=5, page_token=token), timeout=SECONDS
        )
        texts += [memory.text for memory in page.memories]
        times += [memory.occurred_at.seconds for memory in page.memories]
        token = page.next_page_token
        if not token:
            break
    assert sorted(texts) == sorted(f"事{n}" for n in range(12))
    assert times == sorted(times, reverse=True)


def test_what_comes_between_two_pages_shifts_nothing(wire: Wire, space: str) -> None:
    wire.say("旧一", "旧二", "旧三", space=space, occurred_at=at(1_700_000_000))
    request = memory_pb2.ListMemoriesRequest(spaces=[space], page_size=2)
    page = wire.memory.ListMemories(request, timeout=SECONDS)
    wire.say("新的", space=space)
    request.page_token = page.next_page_token
    rest = wire.memory.ListMemories(request, timeout=SECONDS)
    assert [memory.text for memory in (*page.memories, *rest.memories)] == ["旧三", "旧二", "旧一"]


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "!!!!",
        "页",
        "A" * 100_000,
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        encoded([]),
        encoded(7),
        encoded({"public": 1}),
        encoded({"public": [1]}),
        encoded({"public": [1, 2, 3]}),
        encoded({"public": ["a", "b"]}),
        encoded({"public": [1e400, 1]}),
        encoded({"public": [math.nan, 1]}),
        encoded({"public": [2**63, 1]}),
        encoded({"public": [1, -(10**30)]}),
        base64.urlsafe_b64encode(b"[" * 50_000).decode(),
        base64.urlsafe_b64encode(b'{"public":[' + b"9" * 5000 + b",1]}").decode(),
    ],
)
def test_a_page_token_that_the_box_did_not_give_is_refused(wire: Wire, token: str) -> None:
    with refused(INVALID, "page_token"):
        wire.memory.ListMemories(memory_pb2.ListMemoriesRequest(page_token=token), timeout=SECONDS)


@pytest.mark.parametrize("size", [-1, 1001, -(2**31), 2**31 - 1])
def test_a_page_size_out_of_range_is_refused(wire: Wire, size: int) -> None:
    with refused(INVALID, "page_size"):
        wire.memory.ListMemories(memory_pb2.ListMemoriesRequest(page_size=size), timeout=SECONDS)


@pytest.mark.parametrize("fields", [{}, {"filter": {}}, {"filter": {"include_archived": True}}])
def test_a_forget_that_names_nothing_erases_nothing(wire: Wire, fields: dict[str, Any]) -> None:
    with refused(INVALID, "ids"):
        wire.memory.Forget(memory_pb2.ForgetRequest(**fields), timeout=SECONDS)


def test_a_forget_with_both_ids_and_a_filter_is_refused(wire: Wire, space: str) -> None:
    (memory_id,) = wire.say("还在", space=space)
    with refused(INVALID, "ids"):
        wire.memory.Forget(
            memory_pb2.ForgetRequest(ids=[memory_id], filter={"tags": ["x"]}, spaces=[space]), timeout=SECONDS
        )
    assert get(wire, memory_id).text == "还在"


@pytest.mark.parametrize("id", ["nothing", "edge://public/turn/x"])
def test_forgetting_what_is_not_there_is_not_found(wire: Wire, id: str) -> None:
    with refused(NOT_FOUND, "ids"):
        wire.memory.Forget(memory_pb2.ForgetRequest(ids=[id]), timeout=SECONDS)
