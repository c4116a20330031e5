"""Candidates and undo over gRPC: who may decide, who comes second, and what comes back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Box, BoxFactory
from traces import found, word, written

from edge.appliance import core
from edge.client import Client
from edge.config import Config
from edge.embedder.fake import HashEmbedder
from edge.errors import FailedPrecondition, InvalidArgument, NotFound, PermissionDenied
from edge.types import MemoryState, Turn
from edge.v1 import types_pb2

SECRET = "我的保险柜密码写在qvxzubrimplok背面。"
CONFIRMED, REJECTED = types_pb2.MEMORY_STATE_CONFIRMED, types_pb2.MEMORY_STATE_REJECTED


def proposed(data: Path, *texts: str, space: str = "public") -> list[str]:
    """The ids of candidates that a stopped box is given, as a rule would propose them."""
    with core(data, Config(), HashEmbedder()) as box:
        turns = [
            Turn("rule", "s", at, "user", 1_767_225_600_000_000 + at, text, state=MemoryState.CANDIDATE, by="rule")
            for at, text in enumerate(texts)
        ]
        stored = box.spaces.open(space).ingest.store(turns).result()
        return [result.memory_ids[0] for result in stored.results]


@contextlib.contextmanager
def box_with(
    start_box: BoxFactory, data: Path, *texts: str, config: str = ""
) -> Iterator[tuple[Box, Client, Sequence[str]]]:
    data.mkdir(parents=True, exist_ok=True)
    (data / "config.toml").write_text(config)
    ids = proposed(data, *texts)
    box = start_box("--no-auth", "--listen", "127.0.0.1:0", "--config", str(data / "config.toml"), data=data)
    with Client(box.address) as client:
        yield box, client, ids


def texts(client: Client, **which: object) -> set[str]:
    return {memory.text for memory in client.list(**which)}


def test_candidates_are_listed_confirmed_and_rejected(start_box: BoxFactory, tmp_path: Path) -> None:
    with box_with(start_box, tmp_path / "d", "我家的猫叫豆包", "我喜欢茶", "我喜欢咖啡") as (
        _,
        client,
        (cat, tea, coffee),
    ):
        assert [memory.id for memory in client.candidates()] == [coffee, tea, cat]

        one = client.confirm(cat)
        (memory,) = one.memories
        assert memory.id == cat and memory.state == CONFIRMED and len(one.event_ids) == 1
        several = client.reject([tea, cat, "nobody"])
        assert [memory.id for memory in several.memories] == [tea]
        assert list(several.passed_over) == [cat, "nobody"]

        assert [memory.id for memory in client.candidates()] == [coffee]
        assert texts(client) == {"我家的猫叫豆包", "我喜欢咖啡"}
        assert "我喜欢茶" not in [hit.memory.text for hit in client.recall("喜欢茶").hits]
        assert "我喜欢茶" in [hit.memory.text for hit in client.recall("喜欢茶", include_archived=True).hits]
        assert client.get(tea).state == REJECTED
        assert texts(client, states=["rejected"]) == {"我喜欢茶"}

        client.undo(several.event_ids[0])
        assert {memory.id for memory in client.candidates()} == {coffee, tea}


def test_of_two_who_decide_on_one_candidate_the_second_is_told_its_state(start_box: BoxFactory, tmp_path: Path) -> None:
    with box_with(start_box, tmp_path / "d", *(f"第{n}件事" for n in range(6))) as (box, _, ids):

        def decide(verdict: str, id: str) -> str:
            with Client(box.address) as client:
                try:
                    getattr(client, verdict)(id)
                except FailedPrecondition as error:
                    assert error.reason == "NOT_A_CANDIDATE"
                    return error.message
                return verdict

        with ThreadPoolExecutor(4) as pool:
            for id in ids:
                said = list(pool.map(decide, ["confirm", "confirm", "reject", "reject"], [id] * 4))
                (won,) = set(said) & {"confirm", "reject"}
                assert sum(f"it is {won}ed" in answer for answer in said) == 3, said


def test_what_cannot_be_meant_is_refused(start_box: BoxFactory, tmp_path: Path) -> None:
    with box_with(start_box, tmp_path / "d", "一") as (_, client, (id,)):
        with pytest.raises(NotFound):
            client.confirm("0197c5f0-2b7a-7c3e-9d52-0c8d6f0a1b2c")
        with pytest.raises(NotFound):
            client.undo("0197c5f0-2b7a-7c3e-9d52-0c8d6f0a1b2c")
        with pytest.raises(InvalidArgument):
            client.confirm("")
        with pytest.raises(InvalidArgument) as nothing:
            client.deeds(limit=0)
        assert nothing.value.field == "limit"
        with pytest.raises(InvalidArgument) as state:
            list(client.list(states=["dreamt"]))
        assert state.value.field == "filter.states"
        with pytest.raises(FailedPrecondition):
            client.undo()
        assert client.confirm([]).memories == []
        assert [memory.id for memory in client.candidates()] == [id]


def test_an_undo_takes_back_the_last_deed_and_then_the_one_before(box: Box) -> None:
    with Client(box.address) as client:
        (first,) = client.remember(SECRET)
        (second,) = client.remember("我喜欢茶")
        deeds = client.deeds()
        assert [(deed.id, deed.why, deed.by) for deed in deeds] == [
            (second.id, "said", "owner"),
            (first.id, "said", "owner"),
        ]
        assert deeds[0].abstract.startswith("我喜欢茶") and not deeds[0].obstacle

        told = client.undo(dry_run=True)
        assert told.undone.id == second.id and not told.HasField("receipt")
        assert client.undo().receipt.turns == 1
        undone = client.undo()
        assert undone.undone.id == first.id and undone.receipt.memories == 1 and undone.event_id == ""
        assert texts(client) == set() and found(box.data, written(SECRET) | word("qvxzubrimplok")) == []
        with pytest.raises(FailedPrecondition, match="for good"):
            client.undo(undone.receipt.id)
        with pytest.raises(FailedPrecondition):
            client.undo()


def test_a_turn_that_took_an_older_one_s_place_is_not_undone_behind_the_owner_s_back(box: Box) -> None:
    with Client(box.address) as client:
        for text in ("住在上海", "住在杭州"):
            (result,) = client.ingest([{"source": "t", "session": "s", "seq": 1, "text": text}], wait="searchable")
        with pytest.raises(FailedPrecondition, match="earlier version"):
            client.undo(result.memory_ids[0])
        assert texts(client) == {"住在杭州"}


GRACE = "[forgetting]\ngrace_seconds = 3600\n"


def test_a_forget_with_grace_can_be_undone_until_it_is_erased(start_box: BoxFactory, tmp_path: Path) -> None:
    with box_with(start_box, tmp_path / "d", "一", config=GRACE) as (box, client, _):
        (secret,) = client.remember(SECRET)
        receipt = client.forget([secret.id])
        assert receipt.HasField("erased_at") and receipt.turns == 1 and len(receipt.marks) == 1
        assert texts(client) == {"一"}
        with pytest.raises(NotFound):
            client.get(secret.id)
        with pytest.raises(NotFound):
            client.forget([secret.id])
        assert SECRET not in [hit.memory.text for hit in client.recall(SECRET, include_archived=True).hits]
        assert not client.recent_turns(secret.session).turns
        (deed,) = client.deeds(limit=1)
        assert (deed.id, deed.why, deed.abstract) == (receipt.id, "forgotten", "")

        undone = client.undo()
        assert undone.undone.id == receipt.id
        assert client.recall(SECRET, wait_for=[secret.id]).hits[0].memory.id == secret.id
        # Undone once more, it is hidden again; and stays so over a restart.
        client.undo(undone.event_id)
        assert texts(client) == {"一"}
        box.stop()
    box.start()
    with Client(box.address) as client:
        assert texts(client) == {"一"}
        done = client.forget(now=True)
        assert (done.id, done.turns, done.HasField("erased_at")) == (receipt.id, 1, False)
        assert found(box.data, written(SECRET) | word("qvxzubrimplok")) == []
        with pytest.raises(FailedPrecondition, match="for good"):
            client.undo(receipt.id)
        assert client.forget(now=True).turns == 0


def test_a_memory_that_came_back_is_found_by_its_vector_too(start_box: BoxFactory, tmp_path: Path) -> None:
    with box_with(start_box, tmp_path / "d", "一", config=GRACE) as (_, client, _):
        (cat,) = client.remember("我家的猫叫豆包，是一只橘猫。")
        client.forget([cat.id])
        client.undo()
        hit = client.recall("宠物的名字是什么", wait_for=[cat.id], top_k=1).hits[0]
        assert hit.memory.id == cat.id and hit.signals.semantic > 0


def test_ten_thousand_candidates_are_decided_on_in_thousands(start_box: BoxFactory, tmp_path: Path) -> None:
    with core(tmp_path, Config(), HashEmbedder()) as box:
        space = box.spaces.open("public")
        turns = [
            Turn("rule", "s", n, "user", 1_767_225_600_000_000 + n, f"第{n}件事", state=MemoryState.CANDIDATE)
            for n in range(2500)
        ]
        ids = [result.memory_ids[0] for result in space.ingest.store(turns).result().results]
        done = [space.revisions.archive(ids[:1200], "rule"), space.revisions.restore(ids[:1200], "rule")]
        assert [[len(one.changes) for one in some] for some in done] == [[1000, 200]] * 2


# On the network.


def test_a_client_undoes_its_own_and_no_more_than_it_may(start_lasting_box: BoxFactory) -> None:
    from lan_box import READ, WRITE, bearer, lan_box

    from edge.v1 import memory_pb2, memory_pb2_grpc

    lan = lan_box(start_lasting_box)
    ours = lan.owner.say("主人的话", space="work")
    lan.owner.say("别人的话", space="private/theirs")
    (theirs,) = [memory.id for memory in lan.owner.listed("private/theirs")]
    writer = bearer(lan.token("writer", [("work", {READ, WRITE})]))
    blind = bearer(lan.token("blind", [("work", {WRITE})]))
    with lan.channel() as channel:
        memory = memory_pb2_grpc.MemoryServiceStub(channel)

        def code(metadata: object, id: str = "") -> str:
            import grpc

            try:
                memory.Undo(memory_pb2.UndoRequest(event_id=id), metadata=metadata, timeout=60)
            except grpc.RpcError as error:
                return str(error.code().name)
            return "OK"

        assert code(writer) == "FAILED_PRECONDITION"
        assert code(writer, ours[0]) == "PERMISSION_DENIED"
        assert code(writer, theirs) == "NOT_FOUND"
        said = memory.Remember(
            memory_pb2.RememberRequest(text="写的人的话", space="work"), metadata=writer, timeout=60
        ).memories[0]
        told = memory.Undo(memory_pb2.UndoRequest(event_id=said.id, dry_run=True), metadata=writer, timeout=60)
        assert told.undone.by == "writer" and told.undone.abstract
        with pytest.raises(Exception, match="delete scope"):
            memory.Undo(memory_pb2.UndoRequest(event_id=said.id, dry_run=True), metadata=blind, timeout=60)
        assert code(writer) == "OK"
        assert [one.text for one in lan.owner.listed("work")] == ["主人的话"]
        assert PermissionDenied  # the code of what is not one's own
