"""`edge bench quality` asks the box's own recall, of the pools it says, and reports what it found."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import Edge
from eval_sets import QUESTIONS, rows, write

from edge.cli.benches import quality, quality_pool, quality_report
from edge.cli.benches.quality import METHODS, Asking, Measured, load_sets, measure, methods_of, without
from edge.cli.benches.quality_marks import Marks
from edge.cli.benches.quality_pool import KnownVectors, Pool
from edge.cli.benches.quality_sets import LONG_AGO, EvalSet, load
from edge.cli.show import as_json
from edge.embedder.fake import HashEmbedder
from edge.errors import InvalidArgument, VectorRefused
from edge.lexicon.words import CharacterLexicon
from edge.ports import Embedder
from edge.recall import fuse
from edge.types import DAY, Depth, Lane


@pytest.fixture
def pets(tmp_path: Path) -> EvalSet:
    return load(write(tmp_path / "pets", rows(), QUESTIONS))


@pytest.fixture
def tools(tmp_path: Path) -> EvalSet:
    memories = [
        {"id": "drill", "session": "w", "role": "document", "ts": None, "text": "电钻放在车库的架子上。"},
        # The same id as one of the pets.
        {"id": "cat", "session": "w", "role": "document", "ts": None, "text": "锤子和锯子挂在墙上。"},
    ]
    queries = [{"id": "t1", "scope": "all", "text": "电钻在车库吗", "relevant": ["drill"], "category": "fact"}]
    return load(write(tmp_path / "tools", memories, queries))


def measured(sets: Sequence[EvalSet], noise: EvalSet | None = None, **options: object) -> list[Measured]:
    return measure(sets, noise, [HashEmbedder(64)], lambda _: None, lexicon=CharacterLexicon(), **options)  # type: ignore[arg-type]  # the tests say what they change


@contextlib.contextmanager
def pool_of(one: EvalSet, folder: Path, known: KnownVectors | None = None) -> Iterator[Pool]:
    known = known or KnownVectors(HashEmbedder(64))
    pool = Pool(folder, one.memories, {known.info.id: known}, lambda _: (known.info.id,), CharacterLexicon())
    with contextlib.closing(pool):
        yield pool


def test_every_method_finds_what_shares_its_words(pets: EvalSet) -> None:
    (found,) = measured([pets])
    assert list(found.marks) == list(METHODS)
    assert all(one.r5 == 1.0 for marks in found.marks.values() for one in marks)
    assert found.categories == ["fact", "who", "fact"]
    assert found.lost == [False, False, False]


def test_a_question_sees_the_memories_of_its_scope_and_no_others(pets: EvalSet) -> None:
    (found,) = measured([pets], methods=("shallow",))
    assert found.pools == [3, 3, 4]


def test_noise_joins_every_pool_but_those_of_its_own_set(pets: EvalSet, tools: EvalSet) -> None:
    of_pets, of_tools = measured([pets, tools], tools, methods=("shallow",))
    assert (of_pets.name, of_pets.pools) == ("pets+noise", [5, 5, 6])
    assert (of_tools.name, of_tools.pools) == ("tools", [2])
    # An id that the noise has too still means the set's own.
    assert of_pets.marks["shallow"][0].mrr == 1.0


def test_noise_of_the_same_name_takes_no_memory_s_place(pets: EvalSet, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    twin = load(write(tmp_path / "other" / "pets", rows(), QUESTIONS))
    (found,) = measured([pets], twin, methods=("vectors",))
    assert found.pools == [7, 7, 8]
    assert found.marks["vectors"][0].r5 == 1.0


def test_strangers_questions_are_asked_of_every_other_set_but_not_where_noise_could_answer_them(
    pets: EvalSet, tools: EvalSet
) -> None:
    of_pets, of_tools = measured([pets, tools], methods=("bm25",))
    assert {name: len(empty) for name, empty in of_pets.rejected.items()} == {"tools": 1}
    assert {name: len(empty) for name, empty in of_tools.rejected.items()} == {"pets": 3}
    of_pets, _ = measured([pets, tools], tools, methods=("bm25",))
    assert not of_pets.rejected


def test_a_sample_is_the_same_every_time_and_keeps_the_order(pets: EvalSet) -> None:
    sampled = pets.limited(2, quality.SEED)
    assert sampled == pets.limited(2, quality.SEED)
    assert len(sampled.queries) == 2
    assert sampled.of == 3
    places = [pets.queries.index(query) for query in sampled.queries]
    assert places == sorted(places)
    assert pets.limited(None, 1) is pets.limited(3, 1) is pets


def test_a_question_is_asked_when_it_says_or_a_day_after_the_last_memory(pets: EvalSet, tmp_path: Path) -> None:
    with pool_of(pets, tmp_path) as pool:
        assert pool.last == pets.memories[3].turn.occurred_at
        assert pool.asked_at(None) == pool.last + DAY
        assert pool.asked_at(5) == 5


def test_what_has_no_time_was_long_ago(pets: EvalSet) -> None:
    assert pets.memories[2].turn.occurred_at == LONG_AGO


def test_the_ablation_takes_one_signal_away_and_leaves_the_others(pets: EvalSet) -> None:
    usual = fuse.PRESETS["tuned"]
    for name in quality.signals_of(usual):
        less = without(usual, name)
        assert getattr(less, name) == 0.0
        assert [n for n in fuse.SIGNALS if getattr(less, n) != getattr(usual, n)] == [name]
    (found,) = measured([pets], methods=("shallow",), ablate=True)
    assert set(found.marks) == {"shallow", *(f"without {name}" for name in quality.signals_of(usual))}


def test_methods_come_in_one_order_and_unknown_ones_are_named() -> None:
    assert methods_of(None) == METHODS
    assert methods_of("deep, bm25") == ("bm25", "deep")
    for wrong in ("bm52", "", "deep,nearly"):
        with pytest.raises(InvalidArgument, match="choose from bm25, vectors") as raised:
            methods_of(wrong)
        assert raised.value.field == "methods"


def test_words_alone_brings_only_what_has_one_of_the_words(pets: EvalSet, tmp_path: Path) -> None:
    known = KnownVectors(HashEmbedder(64))
    with pool_of(pets, tmp_path, known) as pool:
        asking = Asking({known.info.id: known}, lambda _: (known.info.id,), CharacterLexicon(), ablate=False)
        answer, _ = asking.ask("bm25", pool, pets.queries[0])
        assert answer.depth is Depth.SHALLOW
        assert pool.order(answer, by_words=True)[0] == 1
        assert all(
            "猫" in t or "叫" in t or "团" in t
            for t in (pets.memories[at].turn.text for at in pool.order(answer, True))
        )
        assert asking.ask("deep", pool, pets.queries[0])[0].depth is Depth.DEEP


def test_a_long_memory_comes_once_where_its_best_piece_is(tmp_path: Path) -> None:
    long = "今天说了很多关于花园的事情。" * 60 + "钥匙在花盆下面。"
    memories = [*rows(), {"id": "long", "session": "u1", "role": "user", "ts": "2026-03-04", "text": long}]
    query = {"id": "q", "scope": "all", "text": "花园的钥匙", "relevant": ["long"], "category": ""}
    one = load(write(tmp_path / "long", memories, [query]))
    assert len(quality_pool.texts(one.memories)) > len(one.memories)
    (found,) = measured([one], methods=("vectors", "shallow"))
    assert [marks[0].mrr for marks in found.marks.values()] == [1.0, 1.0]


# The vectors.


class Counting(HashEmbedder):
    def __init__(self) -> None:
        super().__init__(64)
        self.texts = 0

    def embed(self, batch: Sequence[object]) -> np.ndarray:  # type: ignore[type-arg,override]  # a test's own
        self.texts += len(batch)
        return super().embed(batch)  # type: ignore[arg-type]  # as above


def test_the_model_runs_once_a_text_however_often_it_is_asked_for() -> None:
    embedder = Counting()
    known = KnownVectors(embedder)
    known.learn(["a", "b", "a"], Lane.INGEST, lambda _: None)
    known.learn(["b", "c"], Lane.INGEST, lambda _: None)
    assert embedder.texts == 3
    (a, again) = known.submit(["a", "a"], Lane.INGEST)
    assert embedder.texts == 3
    assert np.array_equal(a.result(), again.result())
    # A query gets the model's instruction, so its vector is another.
    known.submit(["a"], Lane.RECALL)
    assert embedder.texts == 4


def test_a_text_without_a_vector_is_refused_and_found_by_its_words(tmp_path: Path) -> None:
    known = KnownVectors(HashEmbedder(64))
    (answer,) = known.submit([" "], Lane.INGEST)
    assert isinstance(answer.exception(), VectorRefused)
    assert known.tokens("ab") > 0


def test_many_texts_are_told_of_while_they_are_under_way() -> None:
    said: list[str] = []
    KnownVectors(HashEmbedder(64)).learn([f"text {number}" for number in range(1200)], Lane.INGEST, said.append)
    assert len(said) == 2


# The report.


def test_the_ratios_are_named_as_the_contract_has_them(pets: EvalSet, tools: EvalSet) -> None:
    found = measured([pets, tools], tools, methods=("bm25", "deep"), ablate=True)
    shown = json.loads(as_json(quality_report.result(found, {"cores": 2}).as_dict()))
    assert shown["bench"] == "quality"
    for mark in ("r5", "r10", "ndcg10", "mrr", "p5"):
        assert 0 <= shown["ratios"][f"pets+noise.deep.{mark}"] <= 1
        assert 0 <= shown["ratios"][f"tools.bm25.{mark}"] <= 1
    assert {"pets+noise.answerable_lost", "tools>pets.rejected", "answerable_lost", "unrelated_rejected"} <= shown[
        "ratios"
    ].keys()
    assert not [name for name in shown["ratios"] if "without" in name]
    assert shown["figures"]["sets"]["tools"]["questions"] == 1


def test_every_set_counts_alike_in_the_totals() -> None:
    def one(name: str, lost: list[bool], rejected: list[bool]) -> Measured:
        found = Measured(name, 1, 1, pools=[1], categories=["x"], ceilings=[1.0], lost=lost)
        found.marks["shallow"].append(Marks(1, 1, 1, 1, 1))
        found.seconds["shallow"].append(0.1)
        found.rejected["other"] += rejected
        return found

    both = [one("a", [True], [True, False]), one("b", [False] * 99, [True])]
    ratios = {ratio.name: ratio.value for ratio in quality_report.result(both, {}).ratios}
    assert ratios["answerable_lost"] == 0.5
    assert ratios["unrelated_rejected"] == 0.75


def test_the_tables_say_how_many_were_asked_and_show_each_category_when_asked(pets: EvalSet) -> None:
    found = measured([pets.limited(2, 1)], methods=("bm25", "shallow"), ablate=True)
    made = quality_report.result(found, {})
    brief, full = (quality_report.text(found, made, categories) for categories in (False, True))
    assert "pets: 2 questions (a sample of 3)" in brief
    assert "shallow without" in brief
    assert "\nfact (" not in brief
    assert "\nfact (" in full
    assert "NDCG@10" in full


# The command.


@pytest.fixture
def fake_models(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, str | None]]:
    asked: list[tuple[str | None, str | None]] = []

    @contextlib.contextmanager
    def models(model: str | None, second: str | None) -> Iterator[list[Embedder]]:
        asked.append((model, second))
        yield [HashEmbedder(64)]

    monkeypatch.setattr(quality, "models", models)
    return asked


def test_the_command_prints_one_object_and_its_progress_elsewhere(
    edge: Edge, pets: EvalSet, fake_models: list[tuple[str | None, str | None]]
) -> None:
    done = edge("bench", "quality", str(pets.folder), "--json", "--methods", "shallow", "--limit", "2", "--model", "m")
    assert done.status == 0
    assert json.loads(done.out)["ratios"]["pets.shallow.r5"] == 1.0
    assert "memories" in done.err
    assert fake_models == [("m", None)]


def test_the_command_prints_tables(edge: Edge, pets: EvalSet, fake_models: object) -> None:
    done = edge("bench", "quality", str(pets.folder), "--methods", "bm25,rrf", "--categories")
    assert done.status == 0
    assert "pets: 3 questions" in done.out
    assert "fact (2)" in done.out


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        ((), 2, "DIR"),
        (("{pets}", "--methods", "best"), 2, "best is no method"),
        (("{pets}", "--limit", "0"), 2, "limit"),
        (("{pets}", "{pets}"), 2, "two sets are called pets"),
        (("{pets}/nowhere",), 5, "memories.jsonl is missing"),
        (("{pets}", "--noise", "{pets}/nowhere"), 5, "memories.jsonl is missing"),
    ],
)
def test_wrong_usage_is_one_sentence(
    edge: Edge, pets: EvalSet, arguments: tuple[str, ...], status: int, says: str, fake_models: object
) -> None:
    done = edge("bench", "quality", *(argument.format(pets=pets.folder) for argument in arguments))
    assert done.status == status
    assert says in done.err
    assert len(done.err.splitlines()) == 1
    assert not done.out


def test_two_folders_of_one_name_cannot_be_told_apart(pets: EvalSet, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    twin = write(tmp_path / "other" / "pets", rows(), QUESTIONS)
    with pytest.raises(InvalidArgument, match="two sets are called pets"):
        load_sets([pets.folder, twin], None)


def test_how_many_get_nothing_is_told_of_whom_and_judged_only_beside_those_that_should(
    pets: EvalSet, tools: EvalSet
) -> None:
    both = measured([pets, tools], methods=("shallow",))
    told = quality_report.text(both, quality_report.result(both, {}), False)
    for words in ("pets: questions it answers", "pets: questions of tools, which it does not answer"):
        assert words in told
    assert "at most 0.02" in told and "at least 0.9" in told
    alone = measured([pets], methods=("shallow",))
    told = quality_report.text(alone, quality_report.result(alone, {}), False)
    assert "MISSED" not in told and "met" not in told.split()
    assert "of these questions, which the set answers, get nothing" in told
    assert "name a second set" in told
