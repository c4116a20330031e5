"""The fast way back: nearness and words at once, fused. Deep runs the same lines wider until the deep path is built."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from concurrent.futures import TimeoutError as FutureTimeout

import numpy as np

from edge.config import Recalling
from edge.errors import DeadlineExceeded, EdgeError, Unavailable, VectorRefused
from edge.ports import Clock, Lexicon, Vectorizer
from edge.recall import fuse
from edge.recall.context import context_block
from edge.recall.level import at_level
from edge.recall.near import cosines_of, matches, near, near_living
from edge.recall.triggers import find_trigger
from edge.recall.view import SpaceView
from edge.types import Answer, Depth, Filter, Hit, Lane, Level, Matrix, Memory, Micros, Question, RowIds, Vector

log = logging.getLogger(__name__)

# Candidates of each line (nearness, words) and space, at the least; twice the hits that are asked for, where that is
# more. 20, 32 and 50 give the same NDCG@10 on memorybank, madial and locomo, within .001.
CANDIDATES = 32
# Terms of a query that are looked for; the longest are kept, as length is the cheapest sign of rarity.
TERMS = 64
# A deep recall has this many times more of both.
DEEPER = 4
# What is kept of the time to the deadline for all that follows the vector: a fifth, 50 ms at most.
_RESERVE_SHARE = 0.2
_RESERVE = 0.05
# Seconds between looks at a model that a recall without a deadline waits for.
_LOOK = 2.0

DEEP_IS_WIDER = "deep looks further along the same lines in this version; time, relations and neighbours come later"
WORDS_ONLY = "This answer went by words only: {}."


class Stopwatch:
    """Stages of one recall, in order; seconds."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._stages: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """The time since the last lap was spent on this stage; laps of one stage add up."""
        now = time.perf_counter()
        self._stages[stage] = self._stages.get(stage, 0.0) + now - self._last
        self._last = now

    def timing(self) -> tuple[tuple[str, float], ...]:
        return (*self._stages.items(), ("total", time.perf_counter() - self._start))


class ShallowRecall:
    """Answers questions. Synchronous, and safe from any number of threads at once."""

    def __init__(self, vectorizer: Vectorizer, lexicon: Lexicon, clock: Clock, config: Recalling) -> None:
        self._vectorizer = vectorizer
        self._lexicon = lexicon
        self._clock = clock
        self._config = config

    def recall(self, question: Question, rooms: Mapping[str, SpaceView]) -> Answer:
        """The best `top_k` memories of the rooms (by space name) in one order, fewer where fewer match.

        The query is searched as it is when `depth` is SHALLOW. Else a trigger is cut out of it, and turns AUTO into
        DEEP. DEEP means wider lines, and is reported as DEEP. Should the model not give a vector in time, the answer
        goes by words and a note says so; with no words found either, its failure is raised: Exhausted, Unavailable,
        DeadlineExceeded, … Raises DeadlineExceeded once the question's deadline has passed.
        """
        watch = Stopwatch()
        query, trigger = question.query, ""
        if question.depth != Depth.SHALLOW:
            query, trigger = find_trigger(question.query, self._config.triggers)
        deep = question.depth == Depth.DEEP or bool(trigger)
        wanted = max(CANDIDATES, 2 * question.top_k) * (DEEPER if deep else 1)
        _in_time(question)

        pending = self._submit(query, question.deadline) if any(len(v.index) for v in rooms.values()) else None
        try:
            terms = self._terms(query, TERMS * (DEEPER if deep else 1))
            words = {space: _words(view, terms, wanted, question.filter) for space, view in rooms.items()}
            # Read while the model works: what only the words found needs its true cosine afterwards.
            rows = {space: self._stored(view, words[space]) for space, view in rooms.items() if pending is not None}
        except BaseException:
            if isinstance(pending, Future):
                pending.cancel()
            raise
        watch.lap("words")
        vector = self._wait(pending, question.deadline)
        watch.lap("embed")
        notes: tuple[str, ...] = ()
        if isinstance(vector, EdgeError):
            if not isinstance(vector, VectorRefused) and not any(words.values()):
                raise vector
            notes = (WORDS_ONLY.format(vector.message.rstrip(".。")),)
            vector = None
        _in_time(question)

        hits = self._fused(vector, words, rows, wanted, rooms, question, watch)
        behind = vector is not None and any(len(view.index) > wanted for view in rooms.values())
        if len(hits) < question.top_k and behind and not question.filter.selective:
            # The nearest rows turned out to be archived, superseded or just forgotten: look behind them.
            hits = self._fused(vector, words, rows, wanted, rooms, question, watch, living=True)
        _in_time(question)

        context = ""
        if question.with_context:
            context = context_block(
                hits,
                language=self._config.language,
                budget=question.context_tokens,
                tokens=self._vectorizer.tokens,
                terms=terms,
            )
            watch.lap("context")
        if question.level != Level.DETAIL:
            hits = [_shown(hit, question.level, terms) for hit in hits]
        depth = Depth.DEEP if deep else Depth.SHALLOW
        if deep:
            notes += (DEEP_IS_WIDER,)
        return Answer(tuple(hits), depth, trigger, context, watch.timing(), notes)

    def _submit(self, query: str, deadline: float | None) -> Future[Vector] | EdgeError:
        try:
            return self._vectorizer.submit([query], Lane.RECALL, deadline)[0]
        except EdgeError as error:
            return error
        except Exception as error:  # noqa: BLE001  # whatever stops the model, words can still answer
            return _failed(error)

    def _wait(self, pending: Future[Vector] | EdgeError | None, deadline: float | None) -> Vector | EdgeError | None:
        """The vector; an EdgeError in its stead; None when nobody asked for one."""
        if pending is None or isinstance(pending, EdgeError):
            return pending
        try:
            if deadline is None:
                return self._moving(pending)
            left = deadline - time.monotonic()
            return pending.result(max(0.0, left - min(_RESERVE, left * _RESERVE_SHARE)))
        except EdgeError as error:
            return error
        except FutureTimeout:
            pending.cancel()
            return DeadlineExceeded("the model gave no vector before the deadline; ask again with more time")
        except CancelledError:
            return Unavailable("the model is being stopped; ask again in a moment")
        except Exception as error:  # noqa: BLE001  # whatever a model's run fails with, words can still answer
            return _failed(error)

    def _moving(self, pending: Future[Vector]) -> Vector:
        """Waits for as long as the model moves: it lets those go that stand still, whenever it is asked how it does."""
        while not pending.done() and not wait([pending], _LOOK).done:
            self._vectorizer.status()
        return pending.result()

    def _terms(self, query: str, limit: int) -> list[str]:
        terms = self._lexicon.query_terms(query)
        return terms if len(terms) <= limit else sorted(terms, key=len, reverse=True)[:limit]

    def _fused(
        self,
        vector: Vector | None,
        words: Mapping[str, Mapping[int, float]],
        stored: Mapping[str, tuple[RowIds, Matrix]],
        wanted: int,
        rooms: Mapping[str, SpaceView],
        question: Question,
        watch: Stopwatch,
        living: bool = False,
    ) -> list[Hit]:
        candidates: list[fuse.Candidate] = []
        for space, view in rooms.items():
            cosines: dict[int, float] = {}
            if vector is not None:
                if living:
                    cosines = near_living(view, vector, wanted, question.filter)
                else:
                    cosines = near(view, self._vectorizer.info.id, vector, wanted, question.filter)
                _complete(cosines, *stored[space], vector)
            found = cosines.keys() | words[space].keys()
            candidates += [fuse.Candidate(space, row, cosines.get(row), words[space].get(row, 0.0)) for row in found]
        watch.lap("near")
        scored = fuse.score(candidates)
        watch.lap("fuse")
        hits = self._best(scored, rooms, question)
        watch.lap("fetch")
        return hits

    def _stored(self, view: SpaceView, words: Mapping[int, float]) -> tuple[RowIds, Matrix]:
        return view.reader.vectors(self._vectorizer.info.id, np.array(sorted(words), np.int64))

    def _best(self, scored: Sequence[fuse.Scored], rooms: Mapping[str, SpaceView], question: Question) -> list[Hit]:
        """The first `top_k`. Rows are read for those only whose weight could still bring them there, and a few more."""
        now = self._clock.now()
        best: list[tuple[tuple[float, int, str], fuse.Scored, Memory]] = []
        at, end = 0, 2 * question.top_k
        while at < len(scored) and at < end:
            for one, memory in _rows(scored[at:end], rooms):
                if matches(memory, question.filter):
                    key = fuse.order_key(fuse.weigh(one.score, memory.weight), memory, now)
                    best.append((key, one, memory))
            best.sort(key=lambda item: item[0])
            del best[question.top_k :]
            at = end
            if len(best) < question.top_k:
                end = 2 * at
            else:
                least = -best[-1][0][0]
                while end < len(scored) and scored[end].score * fuse.HIGHEST_FACTOR >= least:
                    end += 1
        return [_hit(one, memory, now) for _, one, memory in best]


def _words(view: SpaceView, terms: Sequence[str], wanted: int, filter: Filter) -> dict[int, float]:
    """Rowids with BM25; nothing for a query without terms, such as "*"."""
    return {hit.rowid: hit.score for hit in view.reader.search(terms, wanted, filter)} if terms else {}


def _complete(cosines: dict[int, float], rowids: RowIds, rows: Matrix, vector: Vector) -> None:
    """The true cosines of what only the words found."""
    if len(rowids):
        for rowid, cosine in zip(rowids.tolist(), cosines_of(rows, vector).tolist(), strict=True):
            cosines.setdefault(rowid, cosine)


def _rows(scored: Sequence[fuse.Scored], rooms: Mapping[str, SpaceView]) -> list[tuple[fuse.Scored, Memory]]:
    """Each with its memory, without those that are gone; one fetch a space."""
    wanted: dict[str, list[int]] = {}
    for one in scored:
        wanted.setdefault(one.candidate.space, []).append(one.candidate.rowid)
    found = {space: rooms[space].reader.fetch(rowids) for space, rowids in wanted.items()}
    rows = ((one, found[one.candidate.space].get(one.candidate.rowid)) for one in scored)
    return [(one, memory) for one, memory in rows if memory is not None]


def _hit(one: fuse.Scored, memory: Memory, now: Micros) -> Hit:
    if memory.space != one.candidate.space:
        memory = dataclasses.replace(memory, space=one.candidate.space)
    return Hit(memory, fuse.weigh(one.score, memory.weight), fuse.signals(one, memory, now))


def _failed(error: Exception) -> Unavailable:
    # The type alone: a runtime's message may quote its input.
    log.warning("the query's vector failed: %s", type(error).__name__)
    return Unavailable("the model failed on this query; look at the box's log, and ask again")


def _in_time(question: Question) -> None:
    if question.deadline is not None and time.monotonic() >= question.deadline:
        raise DeadlineExceeded("the recall's deadline passed before it had an answer; allow it more time")


def _shown(hit: Hit, level: Level, terms: Sequence[str]) -> Hit:
    memory = dataclasses.replace(hit.memory, text=at_level(hit.memory.text, level, terms))
    return Hit(memory, hit.score, hit.signals)
