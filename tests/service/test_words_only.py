"""What has no vector is found by its words, and everybody concerned is told."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from grpc_calls import IngestState, Wire, message, reason_of, turn

from edge.backlog import Backlog
from edge.clock import SystemClock
from edge.config import Config
from edge.embedder.batcher import Batcher
from edge.embedder.fake import HashEmbedder
from edge.ingest import TurnResult
from edge.lexicon.words import WordLexicon
from edge.ports import Budget, GovernorState
from edge.spaces import Spaces
from edge.types import Filter, Turn, TurnState

if TYPE_CHECKING:
    from conftest import BoxFactory

SEARCHABLE = IngestState.INGEST_STATE_SEARCHABLE
SECONDS = 30.0


def test_a_text_of_which_the_model_knows_nothing_is_searchable_and_says_that_it_goes_by_words(
    start_box: BoxFactory, tmp_path: Path
) -> None:
    # The model's normaliser removes U+FFFD, so that there is nothing left to make a vector of. It is noise, too.
    config = tmp_path / "config.toml"
    config.write_text("[admission]\nkeep = ['too_short']\n", "utf-8")
    box = start_box("--no-auth", "--listen", "127.0.0.1:0", "--config", str(config))
    lost = turn("\ufffd\ufffd\ufffd", space="work", session="s", seq=1)
    well = turn("伞在门后", space="work", session="s")
    with Wire(box.address) as wire:
        first, second = wire.answers(message(well, lost))
        assert not any(result.HasField("error") for result in first.results)
        assert [result.state for result in second.results] == [SEARCHABLE, SEARCHABLE]
        assert [result.HasField("error") for result in second.results] == [False, True]
        assert reason_of(second.results[1].error) == "WORDS_ONLY"
        assert "words" in second.results[1].error.message
        assert second.results[1].memory_ids
        assert [memory.text for memory in wire.listed("work")] == ["\ufffd\ufffd\ufffd", "伞在门后"]


class Narrow:
    """A governor whose memory has room for rows of `row_tokens`."""

    def __init__(self, row_tokens: int) -> None:
        self.row_tokens = row_tokens

    def budget(self) -> Budget:
        return Budget(512, 2, 1.0, True, "by the test", row_tokens=self.row_tokens)

    def observe(self, padded_tokens: int, seconds: float, cpu_seconds: float) -> None:
        pass

    def state(self) -> GovernorState:
        return GovernorState(self.budget(), since=0, changes=0)


@contextlib.contextmanager
def working(data: Path, governor: Narrow) -> Iterator[Spaces]:
    """The write path of a box, without its network and without a model; no text has any patience with memory."""
    config, clock = Config(), SystemClock()
    with Batcher(HashEmbedder(), governor, clock, config.embedding, patience=0.0) as batcher:
        backlog = Backlog(batcher.faces)
        spaces = Spaces(data, config, clock, WordLexicon(), backlog, [batcher.info])
        spaces.open_all()
        backlog.start()
        try:
            yield spaces
        finally:
            backlog.close()
            spaces.close()


def said(*texts: str) -> list[Turn]:
    return [Turn("test", "s", seq, "user", 1_000_000, text) for seq, text in enumerate(texts)]


def ingested(spaces: Spaces, *texts: str) -> tuple[TurnResult, ...]:
    stored = spaces.open("public").ingest.store(said(*texts)).result(SECONDS)
    stored.searchable.result(SECONDS)
    return stored.found()


def vectors(spaces: Spaces) -> tuple[int, int]:
    """(made, still to make)"""
    facts = spaces.open("public").facts()
    return facts.vectors, facts.pending


def test_a_text_for_which_memory_had_no_room_is_told_of_and_gets_its_vector_after_the_next_start(
    tmp_path: Path,
) -> None:
    long = "钥匙在阳台第三个花盆下面，" * 10
    with working(tmp_path, Narrow(60)) as spaces:
        short, by_words, mixed = ingested(spaces, "伞在门后", long, "\n\n".join(["短句一。", long * 2]))
        assert [result.state for result in (short, by_words, mixed)] == [TurnState.SEARCHABLE] * 3
        assert short.error is None
        assert by_words.error is not None
        assert by_words.error.reason == "WORDS_ONLY"
        assert "memory" in by_words.error.message
        assert mixed.error is not None
        assert vectors(spaces)[1] >= 2
        found = spaces.open("public").reader.search(WordLexicon().query_terms("花盆"), 10, Filter())
        assert found
    with working(tmp_path, Narrow(4096)) as spaces:
        assert spaces.open("public").drained().result(SECONDS) == {}
        assert vectors(spaces)[1] == 0
