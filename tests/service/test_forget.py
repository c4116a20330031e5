"""Forgetting over gRPC: what goes, what stays, and that nothing of it is left in any file."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Box, BoxFactory
from traces import found, stretches, terms, word, written

from edge import space as space_module
from edge.appliance import core
from edge.client import Client, Ingested, IngestState
from edge.config import DEFAULT_MODEL, Config, Embedding
from edge.embedder.fake import HashEmbedder
from edge.embedder.onnx import load
from edge.errors import FailedPrecondition, InvalidArgument, NotFound
from edge.index.live import Tuning
from edge.types import Lane, Turn, Vector

SECRET_WORD = "qvxzubrimplok"
SECRET = f"我把保险柜的密码写在了{SECRET_WORD}的背面，只有我自己知道。"
LONG = "\n\n".join(f"第{n}段：{SECRET_WORD}{n} " + f"这里说的是{n}号房间的布置和灯光。" * 12 for n in range(4))


@pytest.fixture
def client(box: Box) -> Iterator[Client]:
    with Client(box.address) as client:
        yield client


def turn(text: str, seq: int, session: str = "s", **more: object) -> dict[str, object]:
    return {"source": "test", "session": session, "seq": seq, "text": text, **more}


def said(client: Client, *turns: dict[str, object]) -> list[Ingested]:
    results = list(client.ingest(turns, wait="searchable"))
    assert all(result.state is IngestState.SEARCHABLE for result in results), results
    return results


def state(client: Client, one: dict[str, object]) -> IngestState:
    (result,) = client.ingest([one], wait="searchable")
    return result.state


def texts(client: Client, **which: object) -> set[str]:
    return {memory.text for memory in client.list(**which)}


def neighbours(count: int) -> list[dict[str, object]]:
    return [turn(f"第{n}天我们去了公园，{n}点钟回家吃饭，看了一本关于花园的书。", n, "others") for n in range(count)]


@pytest.fixture(scope="session")
def vector(model_directory: Path) -> Vector:
    embedder = load(DEFAULT_MODEL, model_directory, Embedding(workers=1))
    row: Vector = embedder.embed(embedder.encode([SECRET], Lane.INGEST))[0]
    embedder.close()
    return row


def test_no_byte_of_a_forgotten_sentence_its_words_or_its_vector_is_left_in_any_file(
    box: Box, client: Client, vector: Vector
) -> None:
    said(client, *neighbours(40))
    (secret,) = said(client, turn(SECRET, 1))
    assert client.recall(SECRET).hits[0].memory.id == secret.memory_ids[0]
    needles = written(SECRET) | word(SECRET_WORD) | stretches(vector)
    before = {line.rpartition(": ")[2] for line in found(box.data, needles)}
    assert before >= {"UTF-8", "term UTF-8", "float16 at 0"}, "the search would not find it if it were there"

    receipt = client.forget(secret.memory_ids)

    assert (receipt.turns, receipt.memories, receipt.vectors) == (1, 1, 1)
    assert list(receipt.memory_ids) == list(secret.memory_ids) and receipt.id
    assert found(box.data, needles) == []
    assert secret.memory_ids[0] not in [hit.memory.id for hit in client.recall(SECRET, top_k=50).hits]
    with pytest.raises(NotFound):
        client.get(secret.memory_ids[0])

    said(client, *(turn(f"后来又说了{n}句话。", n, "later") for n in range(20)))
    box.stop()
    assert found(box.data, needles) == []
    assert not [term for term in terms(box.data / "spaces/public/memory.sqlite") if SECRET_WORD in term]
    assert SECRET not in box.log and SECRET_WORD not in box.log

    box.start()
    with Client(box.address) as again:
        assert SECRET not in texts(again)
        assert state(again, turn(SECRET, 1)) is IngestState.FILTERED
    assert found(box.data, needles) == []


def test_a_snapshot_holds_no_vector_of_what_is_forgotten_neither_the_old_one_nor_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space_module, "Tuning", functools.partial(Tuning, flat_rows=8, overlay_rows=4, threads=1))
    embedder = HashEmbedder()
    secret = stretches(embedder.embed(embedder.encode([SECRET], Lane.INGEST))[0])

    with core(tmp_path, Config(), embedder) as box:
        space = box.spaces.open("public")
        turns = [Turn("test", "s", n, "user", 1, f"第{n}件事：{n * 7919} 号。") for n in range(100)]
        stored = space.ingest.store([*turns, Turn("test", "s", 100, "user", 1, SECRET)]).result()
        stored.searchable.result(60)
        index = space.indexes[embedder.info.id]
        assert index.settle(60) and index.rebuild().result(60) == 101
        assert index.save()
        assert any(".hnsw: float32" in line for line in found(tmp_path, secret))

        receipt = space.forget(stored.results[-1].memory_ids, None, False)

        assert receipt.snapshots_dropped == 1
        assert found(tmp_path, secret) == []
        assert index.save() and list((tmp_path / "spaces/public/index").glob("*.hnsw"))
        assert found(tmp_path, secret) == []
    assert found(tmp_path, secret) == []


def test_its_source_cannot_bring_a_forgotten_turn_back_but_the_same_words_may_be_said_anew(client: Client) -> None:
    (secret,) = said(client, turn(SECRET, 1))
    client.forget(secret.memory_ids)

    (again,) = client.ingest([turn(SECRET, 1)])
    assert again.state is IngestState.FILTERED
    assert isinstance(again.error, FailedPrecondition) and again.error.reason == "FORGOTTEN"
    assert SECRET not in again.error.message

    (anew,) = said(client, turn(SECRET, 1, "another day"))
    assert [memory.id for memory in client.list()] == list(anew.memory_ids)
    assert client.recall(SECRET).hits[0].memory.id == anew.memory_ids[0]


def test_forgetting_one_piece_of_a_long_turn_takes_the_whole_turn(box: Box, client: Client) -> None:
    (long,) = said(client, turn(LONG, 1))
    assert len(long.memory_ids) >= 4

    receipt = client.forget([long.memory_ids[2]])

    assert (receipt.turns, receipt.memories) == (1, len(long.memory_ids))
    assert set(receipt.memory_ids) == set(long.memory_ids)
    assert texts(client) == set()
    assert found(box.data, word(SECRET_WORD)) == []


@pytest.mark.parametrize("which", ["the newest", "the oldest"])
def test_forgetting_one_version_of_a_turn_takes_all_its_versions(box: Box, client: Client, which: str) -> None:
    versions = [f"{SECRET_WORD}住在{place}。" for place in ("上海", "北京", "广州")]
    ids = [said(client, turn(text, 1))[0].memory_ids[0] for text in versions]
    assert texts(client) == {versions[-1]}
    assert client.get(ids[0]).text == versions[0]

    receipt = client.forget([ids[-1] if which == "the newest" else ids[0]])

    assert receipt.turns == 3
    for id in ids:
        with pytest.raises(NotFound):
            client.get(id)
    assert found(box.data, word(SECRET_WORD)) == []
    assert [state(client, turn(text, 1)) for text in versions] == [IngestState.FILTERED] * 3


def test_forgetting_by_filter_takes_what_the_filter_names_and_nothing_else(client: Client) -> None:
    day = 86_400 * 1_000_000
    said(
        client,
        turn("标签一", 1, tags=["home", "keys"], occurred_at=10 * day),
        turn("标签二", 2, tags=["home"], occurred_at=11 * day),
        turn("另一段对话", 3, "other", occurred_at=12 * day),
        turn("很久以前", 4, occurred_at=2 * day),
        turn("后来", 5, occurred_at=20 * day),
    )

    assert client.forget(tags=["home", "keys"]).turns == 1
    assert texts(client) == {"标签二", "另一段对话", "很久以前", "后来"}
    assert client.forget(sessions=["other"]).turns == 1
    assert texts(client) == {"标签二", "很久以前", "后来"}
    assert client.forget(since=2 * day, until=11 * day).turns == 1
    assert texts(client) == {"标签二", "后来"}
    nothing = client.forget(tags=["nobody has this"])
    assert (nothing.turns, nothing.memories, list(nothing.memory_ids)) == (0, 0, [])
    assert texts(client) == {"标签二", "后来"}


def test_a_dry_run_says_what_would_go_and_changes_nothing(box: Box, client: Client) -> None:
    (secret,) = said(client, turn(SECRET, 1, tags=["x"]))
    said(client, turn("别的事", 2))
    log = (box.data / "spaces/public/log").glob("*.jsonl")
    before = [path.read_bytes() for path in log]

    for receipt in (client.forget(secret.memory_ids, dry_run=True), client.forget(tags=["x"], dry_run=True)):
        assert receipt.dry_run and receipt.id == ""
        assert (receipt.turns, receipt.memories, receipt.vectors) == (1, 1, 1)
        assert list(receipt.memory_ids) == list(secret.memory_ids)

    assert [path.read_bytes() for path in (box.data / "spaces/public/log").glob("*.jsonl")] == before
    assert client.get(secret.memory_ids[0]).text == SECRET
    assert state(client, turn(SECRET, 1)) is IngestState.DUPLICATE


def test_what_cannot_be_meant_is_refused_and_changes_nothing(client: Client) -> None:
    (secret,) = said(client, turn(SECRET, 1, tags=["x"]))

    with pytest.raises(InvalidArgument) as both:
        client.forget(secret.memory_ids, tags=["x"])
    with pytest.raises(InvalidArgument) as neither:
        client.forget()
    with pytest.raises(InvalidArgument):
        client.forget(include_archived=True)
    with pytest.raises(NotFound) as unknown:
        client.forget(["0197c5f0-2b7a-7c3e-9d52-0c8d6f0a1b2c"])
    with pytest.raises(NotFound):
        client.forget(["0197c5f0-2b7a-7c3e-9d52-0c8d6f0a1b2c"], dry_run=True)

    assert both.value.field == neither.value.field == "ids"
    assert unknown.value.field == "ids"
    assert texts(client) == {SECRET}


def test_a_uri_works_as_well_as_an_id_and_only_in_its_own_space(client: Client) -> None:
    (public,) = said(client, turn(SECRET, 1))
    (work,) = said(client, turn(SECRET, 1, space="work"))
    uri = client.get(work.memory_ids[0]).uri
    assert uri.startswith("edge://work/")

    with pytest.raises(NotFound):
        client.forget([uri.replace("edge://work/", "edge://public/")])
    assert client.forget([uri]).turns == 1

    assert [memory.id for memory in client.list()] == list(public.memory_ids)


def test_a_turn_may_be_forgotten_the_moment_it_is_acknowledged(client: Client) -> None:
    for round in range(10):
        turns = [turn(f"第{round}轮第{n}句：{SECRET_WORD}。" + "话" * 200, n, f"s{round}") for n in range(50)]
        results = list(client.ingest(turns, batch=50))
        assert client.get(results[-1].memory_ids[0]).seq == 49
        assert client.forget([results[-1].memory_ids[0]]).turns == 1
        assert client.forget(sessions=[f"s{round}"]).turns == 49
    assert texts(client) == set()


def test_forgetting_goes_on_while_others_store_and_recall_and_a_recall_of_it_never_fails(box: Box) -> None:
    with Client(box.address) as client, ThreadPoolExecutor(3) as others:
        victims = said(client, *(turn(f"{SECRET_WORD}第{n}次出现在花园里。", n, "victims") for n in range(30)))
        over = threading.Event()

        def store() -> list[Ingested]:
            with Client(box.address) as mine:
                endless = itertools.takewhile(lambda _: not over.is_set(), itertools.count())
                talk = (turn(f"第{n}句闲话，说的是天气和晚饭。", n, "talk") for n in endless)
                return list(mine.ingest(talk, wait="searchable"))

        def recall() -> int:
            count = 0
            with Client(box.address) as mine:
                while not over.is_set():
                    assert mine.recall(f"{SECRET_WORD}在花园", top_k=20, with_context=True).hits
                    count += 1
            return count

        talk, recalls = others.submit(store), [others.submit(recall) for _ in range(2)]
        try:
            for victim in victims:
                assert client.forget(victim.memory_ids).turns == 1
        finally:
            over.set()

        stored = talk.result(120)
        assert all(count.result(60) > 0 for count in recalls)
        assert stored and all(result.state is IngestState.SEARCHABLE for result in stored)
        assert not [hit for hit in client.recall(SECRET_WORD, top_k=50).hits if SECRET_WORD in hit.memory.text]
        assert len(texts(client)) == len(stored)
    assert found(box.data, word(SECRET_WORD)) == []


def test_two_forgets_of_the_same_at_once_both_end_well(client: Client) -> None:
    for round in range(5):
        (secret,) = said(client, turn(SECRET, round, f"s{round}"))

        def forget(ids: tuple[str, ...] = secret.memory_ids) -> int:
            try:
                return client.forget(ids).turns
            except NotFound:
                return 0

        with ThreadPoolExecutor(2) as pool:
            turns = [pool.submit(forget) for _ in range(2)]
            assert max(one.result(60) for one in turns) == 1
        assert texts(client) == set()


def test_what_is_forgotten_stays_gone_when_every_view_is_made_anew(start_box: BoxFactory, vector: Vector) -> None:
    box = start_box()
    with Client(box.address) as client:
        said(client, *neighbours(5))
        (secret,) = said(client, turn(SECRET, 1))
        client.forget(secret.memory_ids)
        client.rebuild("log")
        assert len(texts(client)) == 5
    box.stop()
    for view in (box.data / "spaces/public").glob("memory.sqlite*"):
        view.unlink()
    box.start()
    with Client(box.address) as client:
        assert len(texts(client)) == 5
        assert state(client, turn(SECRET, 1)) is IngestState.FILTERED
    assert found(box.data, written(SECRET) | word(SECRET_WORD) | stretches(vector)) == []
