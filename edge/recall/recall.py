"""Answers questions: lines of evidence side by side, one order, and for a deep recall what was said beside each."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence

from edge.config import Recalling
from edge.errors import DeadlineExceeded, VectorRefused
from edge.ports import Clock, Lexicon, Vectorizer
from edge.recall import fuse
from edge.recall.candidates import within
from edge.recall.context import context_block
from edge.recall.cues import cue
from edge.recall.deep import Deep
from edge.recall.evidence import HINT, Evidence, hints
from edge.recall.level import at_level
from edge.recall.relevance import relevance
from edge.recall.search import Ranked, Search
from edge.recall.stopwatch import Stopwatch
from edge.recall.temporal import Times, understand
from edge.recall.triggers import find_trigger
from edge.recall.vectors import QueryVectors, usable
from edge.recall.view import SpaceView
from edge.recall.zones import zone
from edge.types import Answer, Depth, Hit, Level, MemoryState, Question

# Candidates of each line, nearness and words, and space, at the least; twice the hits that are asked for, where that is
# more. What is said of who said it and when can lift a memory that is far down: NDCG@10 of madial with documents around
# it is .579 with 64 and 32, .591 with these, .587 with 200 and 128.
NEAREST = 100
WORDED = 48
# Of a deep recall, which reads the rows of all, and what stands beside the best. It finds no more by more (recall.md).
DEEP_NEAREST = 64
DEEP_WORDED = 32
# Terms of a query that are looked for; which of them are worth the reading, is the search's matter.
TERMS = 256

WORDS_ONLY = "This answer went by words only: {}."
ONE_MODEL_LESS = "One model has no part in this answer, and what only that one knows went by words: {}."
NOTHING_THEN = "Nothing is remembered of the time that the question names; these are of other times."
NOTHING_RELEVANT = "Nothing that is remembered bears on this question; what is nearest is far from it."


class Recall:
    """Answers questions. Synchronous, and safe from any number of threads at once."""

    def __init__(
        self,
        vectorizers: Mapping[str, Vectorizer],
        route: Callable[[str], tuple[str, ...]],
        lexicon: Lexicon,
        clock: Clock,
        config: Recalling,
        weights: fuse.Weights | None = None,
    ) -> None:
        """`vectorizers` by model id, the first one's tokenizer counts; `route` names the models that a query fits.

        `weights` in the place of those of the configured preset.
        """
        self._vectorizers = vectorizers
        self._route = route
        self._lexicon = lexicon
        self._clock = clock
        self._config = config
        self._weights = weights or fuse.PRESETS[config.preset]

    def recall(self, question: Question, rooms: Mapping[str, SpaceView]) -> Answer:
        """The best `top_k` memories of the rooms (by space name) in one order, fewer where fewer match.

        The query is searched as it is when `depth` is SHALLOW. Else a trigger is cut out of it, and turns AUTO into
        DEEP. Should a model give no vector in time, what it knows goes by words and a note says so; with no other model
        and no words found either, its failure is raised: Exhausted, Unavailable, DeadlineExceeded, … Raises
        DeadlineExceeded once the question's deadline has passed.
        """
        watch = Stopwatch()
        query, trigger = question.query, ""
        if question.depth != Depth.SHALLOW:
            query, trigger = find_trigger(question.query, self._config.triggers)
        deep = question.depth == Depth.DEEP or bool(trigger)
        _in_time(question)
        # What a window of time says need not be said by the words as well.
        times = self._times(question, query, deep) if deep else None
        searched = times.query if times else query
        filled = {model for view in rooms.values() for model, index in view.indexes.items() if len(index)}
        fitting = usable(self._vectorizers, [model for model in self._route(searched) if model in filled])
        # The model takes longest: all that can be done beside it comes after this.
        vectors = QueryVectors(fitting, searched, question.deadline)
        try:
            times = times or self._times(question, query, deep)
            question, notes = _of_that_time(question, times, rooms)
            evidence = Evidence(
                times=times,
                cue=cue(query),
                now=self._clock.now(),
                half_life=self._config.half_life,
                window=1.0 if deep or times.bare else HINT,
            )
            nearest, worded = (DEEP_NEAREST, DEEP_WORDED) if deep else (NEAREST, WORDED)
            search = Search(rooms, question.filter, self._weights, evidence, max(nearest, 2 * question.top_k))
            terms = self._lexicon.query_terms(searched)[:TERMS]
            search.by_words(terms, max(worded, 2 * question.top_k))
            # Read while the model works: what only the words found needs its true cosine afterwards. No rows, since the
            # model may take its time, and what is forgotten meanwhile must not come back in the answer.
            stored = {model: search.candidates.stored(model) for model in fitting}
        except BaseException:
            vectors.cancel()
            raise
        watch.lap("words")
        search.asked, failure = vectors.wait()
        watch.lap("embed")
        if failure is not None:
            if not search.asked and not isinstance(failure, VectorRefused) and not len(search.candidates):
                raise failure
            notes.append((ONE_MODEL_LESS if search.asked else WORDS_ONLY).format(failure.message.rstrip(".。")))
        _in_time(question)

        search.by_nearness(stored)
        watch.lap("near")
        # What stands beside a hit may lift any of them, so a deep recall looks at all.
        count = 0 if deep else question.top_k
        found = search.best(count)
        if len(found) < question.top_k and search.asked and not question.filter.selective and _more(search, fitting):
            # The nearest rows turned out to be archived, superseded or just forgotten: look behind them.
            search.by_nearness(stored, living=True)
            found = search.best(count)
        watch.lap("fuse")
        _in_time(question)
        if deep:
            stages = Deep(search, self._config.stage_seconds)
            found = stages.run(found, question.top_k, watch)
            notes += stages.notes
            _in_time(question)
        hits = [self._hit(one, search, terms) for one in found]
        if deep and not question.filter.include_archived:
            hits = self._with_archived(hits, search, terms, question)
            watch.lap("archive")
        return self._answer(question, hits, terms, Depth.DEEP if deep else Depth.SHALLOW, trigger, notes, watch)

    def _times(self, question: Question, query: str, deep: bool) -> Times:
        asked_at = self._clock.now() if question.asked_at is None else question.asked_at
        times = understand(query, asked_at, zone(question.zone))
        return times if deep or times.bare else hints(times, asked_at)

    def _answer(
        self,
        question: Question,
        hits: list[Hit],
        terms: Sequence[str],
        depth: Depth,
        trigger: str,
        notes: list[str],
        watch: Stopwatch,
    ) -> Answer:
        if hits and all(hit.relevance < self._config.floor for hit in hits):
            notes.append(NOTHING_RELEVANT)
            if question.only_relevant:
                hits = []
        watch.lap("relevance")
        context = ""
        if question.with_context:
            context = context_block(
                hits,
                language=self._config.language,
                budget=question.context_tokens,
                tokens=next(iter(self._vectorizers.values())).tokens,
                terms=terms,
                floor=self._config.floor,
                ids=question.context_ids,
            )
            watch.lap("context")
        if question.level != Level.DETAIL:
            hits = [_shown(hit, question.level, terms) for hit in hits]
        return Answer(tuple(hits), depth, trigger, context, watch.timing(), tuple(notes))

    def _with_archived(self, hits: list[Hit], search: Search, terms: Sequence[str], question: Question) -> list[Hit]:
        """With what bears on the question among the archived ones, where too few of the others do.

        Those that do all stay. An archived one stands behind its equals; its score is relative to the best of all that
        there is, so that it is no higher than it would be at hand.
        """
        floor = self._config.floor
        room = question.top_k - sum(hit.relevance >= floor for hit in hits)
        if room <= 0 or not any(view.reader.any_archived() for view in search.rooms.values()):
            return hits
        _in_time(question)
        search.filter = dataclasses.replace(search.filter, include_archived=True)
        search.by_words(terms, max(DEEP_WORDED, 2 * question.top_k))
        stored = {one.info.id: search.candidates.stored(one.info.id) for one in search.asked}
        if search.filter.selective or search.evidence.times.windows:
            search.by_nearness(stored)
        else:
            # The index has archived ones too: those that are near are candidates already.
            for one in search.asked:
                search.candidates.complete(one, stored[one.info.id])
            search.know()
        away = [one for one in search.best(0) if one.memory.archived and one.memory.state != MemoryState.REJECTED]
        brought = [hit for hit in (self._hit(one, search, terms) for one in away) if hit.relevance >= floor][:room]
        spare = room - len(brought)
        kept = []
        for hit in hits:
            if hit.relevance < floor:
                spare -= 1
            if hit.relevance >= floor or spare >= 0:
                kept.append(hit)
        return sorted((*kept, *brought), key=lambda hit: (-hit.score, hit.memory.archived))

    def _hit(self, one: Ranked, search: Search, terms: Sequence[str]) -> Hit:
        memory = dataclasses.replace(one.memory, space=one.candidate.space)
        common = self._lexicon.share(terms, memory.text)
        cosines = one.candidate.cosines
        scales = search.evidence.scales
        seen = [
            relevance(cosines[asked.info.id], asked.info.related, common, scales[asked.info.id].raised)
            for asked in search.asked
            if asked.info.id in cosines
        ]
        bearing = max(seen, default=relevance(None, 1.0, common))
        if search.evidence.answers(memory):
            bearing = max(bearing, 1.0)
        return Hit(memory, one.score, one.signals, bearing)


def _of_that_time(question: Question, times: Times, rooms: Mapping[str, SpaceView]) -> tuple[Question, list[str]]:
    """The question, of that time alone when it speaks of nothing else and anything was said then."""
    if not times.bare or len(times.windows) != 1:
        return question, []
    narrowed = within(question.filter, times.windows[0].since, times.windows[0].until)
    # None: more than one.
    if narrowed and any(
        found is None or len(found) for found in (v.reader.select(narrowed, 1) for v in rooms.values())
    ):
        return dataclasses.replace(question, filter=narrowed), []
    return question, [NOTHING_THEN]


def _more(search: Search, models: Mapping[str, object]) -> bool:
    """Whether an index may hold more than was looked at."""
    return any(
        len(index) > search.wanted
        for view in search.rooms.values()
        for model, index in view.indexes.items()
        if model in models
    )


def _in_time(question: Question) -> None:
    if question.deadline is not None and time.monotonic() >= question.deadline:
        raise DeadlineExceeded("the recall's deadline passed before it had an answer; allow it more time")


def _shown(hit: Hit, level: Level, terms: Sequence[str]) -> Hit:
    return dataclasses.replace(
        hit, memory=dataclasses.replace(hit.memory, text=at_level(hit.memory.text, level, terms))
    )
