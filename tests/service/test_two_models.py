"""A box that hears two languages: each text to the model of its language, each model with its own vectors and index."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import BoxFactory

from edge import space as space_module
from edge.appliance import Core, core
from edge.client import Client
from edge.config import DEFAULT_MODEL, Config, Embedding
from edge.embedder.fake import HashEmbedder
from edge.errors import InvalidArgument
from edge.index.live import Tuning
from edge.space import Space
from edge.types import Depth, Question, RowIds, Turn, TurnState

ZH, EN = "hash-32", "hash-48"
SECOND = "bge-small-en-v1.5-q"
CHINESE = "我把备用钥匙放在阳台第三个花盆下面。"
ENGLISH = "The spare key lies under the third flower pot on the balcony."
BOTH = "周三的会改到下午了，大家都要来。Please bring the slides and the budget numbers with you."
NEITHER = "12345 67890"
TEXTS = (CHINESE, ENGLISH, BOTH, NEITHER)
SECONDS = 60.0


@contextlib.contextmanager
def running(data: Path, *, second: bool = True) -> Iterator[Core]:
    models = [HashEmbedder(32, language="zh"), HashEmbedder(48, language="en")]
    with core(data, Config(), *models[: 2 if second else 1]) as box:
        yield box


def say(space: Space, *texts: str, first: int = 0) -> dict[str, str]:
    """Memory ids by text, once all can be found by meaning."""
    turns = [Turn("test", "s", first + seq, "user", 1_000_000, text) for seq, text in enumerate(texts)]
    stored = space.ingest.store(turns).result(SECONDS)
    stored.searchable.result(SECONDS)
    assert all(result.state is TurnState.SEARCHABLE and result.error is None for result in stored.found())
    return {text: result.memory_ids[0] for text, result in zip(texts, stored.results, strict=True)}


def vectors(space: Space) -> dict[str, set[str]]:
    """The texts that each running model has a vector of, the same in the database and in the index."""
    found = {}
    for model in space.indexes:
        rowids = rowids_of(space, model)
        texts = {memory.text for memory in space.queries.fetch(rowids.tolist()).values()}
        assert len(rowids) == len(texts)
        found[model] = texts
    return found


def rowids_of(space: Space, model: str) -> RowIds:
    """What the database has vectors of, once the index has as many: what is being stored is in the index first."""
    end = time.monotonic() + SECONDS
    while True:
        rowids, indexed = space.queries.vector_rowids(model), len(space.indexes[model])
        if len(rowids) == indexed:
            return rowids
        assert time.monotonic() < end, f"{model}: {len(rowids)} vectors in the database, {indexed} in the index"
        time.sleep(0.01)


def recalled(box: Core, space: Space, query: str) -> list[tuple[str, float]]:
    answer = box.recall.recall(Question(query, (space.name,), Depth.SHALLOW), {space.name: space})
    return [(hit.memory.id, round(hit.score, 4)) for hit in answer.hits]


def pending(space: Space) -> dict[str, int]:
    return {model.id: model.pending for model in space.facts().models}


def test_each_text_gets_the_vectors_of_its_languages_and_none_else(tmp_path: Path) -> None:
    with running(tmp_path) as box:
        space = box.spaces.open("public")
        ids = say(space, *TEXTS)
        assert vectors(space) == {ZH: {CHINESE, BOTH, NEITHER}, EN: {ENGLISH, BOTH}}
        space.drained().result(SECONDS)
        assert pending(space) == {ZH: 0, EN: 0}
        facts = space.facts()
        assert (facts.memories, facts.vectors, facts.pending, facts.index_size) == (4, 5, 0, 5)
        assert recalled(box, space, "where is the spare key")[0][0] == ids[ENGLISH]


def test_a_second_model_that_is_turned_on_later_gets_its_vectors_while_recalls_go_on(tmp_path: Path) -> None:
    with running(tmp_path, second=False) as box:
        space = box.spaces.open("public")
        ids = say(space, *TEXTS)
        assert vectors(space) == {ZH: set(TEXTS)}
        assert space.queries.routing() == ""
    with running(tmp_path) as box:
        space = box.spaces.open("public")
        assert recalled(box, space, "备用钥匙在哪里")[0][0] == ids[CHINESE]
        space.drained().result(SECONDS)
        # What the first model had made of English before stays.
        assert vectors(space) == {ZH: set(TEXTS), EN: {ENGLISH, BOTH}}
        assert pending(space) == {ZH: 0, EN: 0}
        # And is not made for new texts.
        say(space, "The umbrella stands behind the door.", first=10)
        assert "The umbrella stands behind the door." not in vectors(space)[ZH]


def test_a_second_model_that_is_turned_off_leaves_nothing_unfound_and_its_vectors_come_back(tmp_path: Path) -> None:
    with running(tmp_path) as box:
        say(box.spaces.open("public"), *TEXTS)
    with running(tmp_path, second=False) as box:
        space = box.spaces.open("public")
        space.drained().result(SECONDS)
        assert vectors(space) == {ZH: set(TEXTS)}
        assert pending(space) == {ZH: 0}
        assert space.queries.counts().vectors[EN] == 2
        say(space, "The umbrella stands behind the door.", first=10)
    with running(tmp_path) as box:
        space = box.spaces.open("public")
        assert {ENGLISH, BOTH} <= vectors(space)[EN]
        space.drained().result(SECONDS)
        assert vectors(space)[EN] == {ENGLISH, BOTH, "The umbrella stands behind the door."}


def test_what_is_not_for_a_model_is_looked_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as box:
        space = box.spaces.open("public")
        say(space, *(f"第{n}个花盆下面有一把钥匙。" for n in range(300)))
        space.drained().result(SECONDS)
        assert space.queries.counts().refused == {EN: 300}
    with running(tmp_path) as box:
        space = box.spaces.open("public")
        assert space.queries.pending(EN, 0, 10) == space.queries.pending(ZH, 0, 10) == []


def test_forgetting_takes_a_memory_out_of_every_model_and_every_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space_module, "Tuning", functools.partial(Tuning, flat_rows=2, overlay_rows=2, threads=1))
    folder = tmp_path / "spaces/public/index"
    with running(tmp_path) as box:
        space = box.spaces.open("public")
        many = [f"第{n}件事情是这样的。 The thing with the number {n} is over there now." for n in range(20)]
        say(space, *many, first=100)
        ids = say(space, *TEXTS)
        assert space.indexes.rebuild() == 45
        assert all(index.save() for index in space.indexes.values())
        assert len(list(folder.glob("*.hnsw"))) == 2
        receipt = space.forget([ids[BOTH]], None, False)
        assert (receipt.memories, receipt.vectors, receipt.snapshots_dropped) == (1, 2, 2)
        assert list(folder.glob("*.hnsw")) == []
        assert BOTH not in set.union(*vectors(space).values())
        assert space.indexes.stats().snapshot_error == ""
        assert all(index.save() for index in space.indexes.values())
        assert len(list(folder.iterdir())) == 4
    # Turned off, its snapshot is nobody's: a forget takes it away as well.
    with running(tmp_path, second=False) as box:
        space = box.spaces.open("public")
        space.drained().result(SECONDS)
        assert len([path for path in folder.iterdir() if path.name.startswith(EN)]) == 2
        space.forget([ids[ENGLISH]], None, False)
        assert [path for path in folder.iterdir() if path.name.startswith(EN)] == []


def test_both_indexes_come_back_from_their_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_module, "Tuning", functools.partial(Tuning, flat_rows=2, overlay_rows=2, threads=1))
    with running(tmp_path) as box:
        space = box.spaces.open("public")
        say(space, *(f"第{n}件事。" for n in range(20)), *(f"this is thing number {n}" for n in range(20)))
        space.indexes.rebuild()
        before = [recalled(box, space, query) for query in ("第7件事", "thing number 7")]
    with running(tmp_path) as box:
        space = box.spaces.open("public")
        stats = {model: index.stats() for model, index in space.indexes.items()}
        assert {model: (one.size, one.overlay, one.discarded) for model, one in stats.items()} == {
            ZH: (20, 0, ""),
            EN: (20, 0, ""),
        }
        assert [recalled(box, space, query) for query in ("第7件事", "thing number 7")] == before


@pytest.mark.parametrize("from_log", [True, False])
def test_views_made_anew_are_the_same(tmp_path: Path, from_log: bool) -> None:
    with running(tmp_path) as box:
        space = box.spaces.open("public")
        say(space, *TEXTS)
        queries = ("钥匙在哪里", "where is the key", "会议 slides and numbers please")
        before, had = [recalled(box, space, query) for query in queries], vectors(space)
        rebuilt = box.spaces.rebuild("public", from_log)
        assert rebuilt.memories == 4
        assert from_log or rebuilt.vectors == 5
        space = box.spaces.open("public")
        space.drained().result(SECONDS)
        assert vectors(space) == had
        assert [recalled(box, space, query) for query in queries] == before


def test_an_older_version_of_a_turn_goes_out_of_both(tmp_path: Path) -> None:
    with running(tmp_path) as box:
        space = box.spaces.open("public")
        say(space, BOTH)
        say(space, ENGLISH)
        assert vectors(space) == {ZH: set(), EN: {ENGLISH}}


def test_the_indexes_rest_together(tmp_path: Path) -> None:
    with running(tmp_path) as box:
        indexes = box.spaces.open("public").indexes
        box.spaces.allow_background(False)
        assert [index._paused for index in indexes.values()] == [True, True]
        box.spaces.allow_background(True)
        assert [index._paused for index in indexes.values()] == [False, False]


def test_one_model_twice_is_refused(tmp_path: Path) -> None:
    config = Config(embedding=Embedding(second=Embedding().model))
    with pytest.raises(InvalidArgument, match="second"), core(tmp_path, config):
        pass


# The real models.


@pytest.fixture(scope="module")
def second(model_directory: Path) -> str:
    """The English model, which `make setup` does not fetch; .ci/run does, and runs these with it."""
    if not (model_directory / SECOND / "model.onnx").is_file():
        pytest.skip(f"{SECOND} is not here; get it with: edge model pull {SECOND}")
    return SECOND


def told(client: Client) -> dict[str, tuple[int, int]]:
    """(vectors, pending) by model, of the first space."""
    return {model.id: (model.vectors, model.pending) for model in client.status().spaces[0].models}


def settled(client: Client) -> dict[str, tuple[int, int]]:
    """The same once nothing is pending."""
    end = time.monotonic() + SECONDS
    while any(missing for _, missing in told(client).values()):
        assert time.monotonic() < end, "still pending"
        time.sleep(0.05)
    return told(client)


def ingested(client: Client, *texts: str, session: str = "s") -> dict[str, str]:
    turns = [{"source": "test", "session": session, "seq": seq, "text": text} for seq, text in enumerate(texts)]
    results = list(client.ingest(turns, wait="searchable"))
    assert [result.state.name for result in results] == ["SEARCHABLE"] * len(texts)
    return {text: result.memory_ids[0] for text, result in zip(texts, results, strict=True)}


def stored(data: Path) -> dict[str, set[str]]:
    """Texts by the model that has a vector of them, as the database of a stopped box has it."""
    found: dict[str, set[str]] = {}
    with contextlib.closing(sqlite3.connect(data / "spaces/public/memory.sqlite")) as connection:
        for model, text in connection.execute(
            "SELECT v.model, m.text FROM vectors v JOIN memories m ON m.rowid = v.memory"
        ):
            found.setdefault(model, set()).add(text)
    return found


def edge(*arguments: str, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "edge.cli", *arguments], capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


NO_AUTH = ("--no-auth", "--listen", "127.0.0.1:0")


def test_a_box_with_both_models_over_all_its_life(start_box: BoxFactory, second: str, tmp_path: Path) -> None:
    data = tmp_path / "d"
    both = (*NO_AUTH, "--second-model", second)
    box = start_box(*both, data=data)
    with Client(box.address) as client:
        ids = ingested(client, *TEXTS)
        assert settled(client) == {DEFAULT_MODEL: (3, 0), second: (2, 0)}
        status = client.status()
        assert [(model.id, model.language) for model in status.models] == [(DEFAULT_MODEL, "zh"), (second, "en")]
        assert status.model == status.models[0]
        assert client.recall("备用钥匙在哪里？").hits[0].memory.id == ids[CHINESE]
        assert client.recall("where did I put the spare key?").hits[0].memory.id == ids[ENGLISH]
        shown = edge("status", "--address", box.address)
        assert f"{second} (384 dimensions" in shown and "2 vectors, 0 pending" in shown
    assert box.stop() == 0
    assert stored(data) == {DEFAULT_MODEL: {CHINESE, BOTH, NEITHER}, second: {ENGLISH, BOTH}}

    box.start()
    with Client(box.address) as client:
        assert told(client) == {DEFAULT_MODEL: (3, 0), second: (2, 0)}
        client.forget([ids[BOTH]])
        assert told(client) == {DEFAULT_MODEL: (2, 0), second: (1, 0)}
        client.rebuild("log")
        assert settled(client) == {DEFAULT_MODEL: (2, 0), second: (1, 0)}
        client.rebuild("index")
        assert client.recall("where did I put the spare key?").hits[0].memory.id == ids[ENGLISH]
    assert box.stop() == 0
    assert stored(data) == {DEFAULT_MODEL: {CHINESE, NEITHER}, second: {ENGLISH}}
    assert "clean" in edge("verify", "--data", str(data))


def test_an_old_box_gets_the_second_model_by_its_config_and_its_views_are_made_anew_without_a_box(
    start_box: BoxFactory, second: str, tmp_path: Path
) -> None:
    data = tmp_path / "d"
    box = start_box(*NO_AUTH, data=data)
    with Client(box.address) as client:
        ids = ingested(client, *TEXTS)
        assert told(client) == {DEFAULT_MODEL: (4, 0)}
        assert len(client.status().models) == 1
    assert box.stop() == 0
    (data / "config.toml").write_text(f'[embedding]\nsecond = "{second}"\n')

    box.start()
    with Client(box.address) as client:
        assert client.recall("备用钥匙在哪里？").hits[0].memory.id == ids[CHINESE]
        assert settled(client) == {DEFAULT_MODEL: (4, 0), second: (2, 0)}
        assert client.recall("where did I put the spare key?").hits[0].memory.id == ids[ENGLISH]
    assert box.stop() == 0

    assert json.loads(edge("rebuild", "--from-log", "--json", "--data", str(data)))["vectors"] == 5
    assert stored(data) == {DEFAULT_MODEL: {CHINESE, BOTH, NEITHER}, second: {ENGLISH, BOTH}}


def test_a_second_model_that_is_not_here_is_told_with_the_way_to_get_it(
    model_directory: Path, second: str, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    (models / DEFAULT_MODEL).symlink_to(model_directory / DEFAULT_MODEL)
    environment = {**os.environ, "EDGE_MODELS": str(models)}
    for name, next_step in ((second, f"edge model pull {second}"), ("no-such-model", f"it lists {DEFAULT_MODEL}, ")):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "edge.cli",
                "serve",
                "--data",
                str(tmp_path / "d"),
                *NO_AUTH,
                "--second-model",
                name,
            ],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        assert name in done.stderr and next_step in done.stderr
    (tmp_path / "d").mkdir(exist_ok=True)
    (tmp_path / "d" / "config.toml").write_text(f'[embedding]\nsecond = "{second}"\n')
    told = subprocess.run(
        [sys.executable, "-m", "edge.cli", "doctor", "--data", str(tmp_path / "d")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert f"model {DEFAULT_MODEL} is in" in told.stdout
    assert f"model {second} is missing" in told.stdout
