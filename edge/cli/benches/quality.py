"""`edge bench quality`: whether the right memories come back, on sets of questions whose answers people have marked.

Every question is asked of the box's own recall, over the parts of a box that hold its pool and nothing else: what the
question's scope names, and with noise another set's memories besides. The clock stands where the question is asked.

- bm25, vectors: one line of evidence alone. rrf: these two orders joined by reciprocal ranks, the usual simple fusion.
- each preset of weights, shallow.
- shallow, deep: the configuration that a box comes with, at either depth.

Whether nothing is said when nothing bears on it: questions of one set are asked of the others' pools, where nobody can
answer them, and the set's own where somebody can; either time only what bears on the question is wanted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edge.cli.benches import quality_sets
from edge.cli.benches.quality_marks import RRF_DEPTH, Marks, judge, p5_ceiling, reciprocal_ranks
from edge.cli.benches.quality_pool import KnownVectors, Pool, Route, Say, texts
from edge.cli.benches.quality_sets import Asked, EvalSet, Told, sample
from edge.config import Embedding, Recalling, models_directory
from edge.embedder.onnx import load
from edge.embedder.routing import route
from edge.errors import InvalidArgument
from edge.lexicon.words import WordLexicon
from edge.ports import Embedder, Lexicon
from edge.recall import fuse
from edge.recall.recall import NOTHING_RELEVANT, Recall
from edge.types import Answer, Depth, Lane, Micros, Question

SEED = 20260706
BM25, VECTORS, RRF, SHALLOW, DEEP = "bm25", "vectors", "rrf", "shallow", "deep"
METHODS = (BM25, VECTORS, RRF, *fuse.PRESETS, SHALLOW, DEEP)
WITHOUT = "without "

# Pieces that are asked for: enough for ten memories, should each of the first have come in two.
TOP_K = 20
# Of one set's questions, over another's pools.
UNRELATED = 100
_ROOM = "public"


@dataclass(eq=False)
class Measured:
    """Of one set's questions, in order: `marks` and `seconds` by method, and in `lost` whether nothing came back.

    `asked` of the set's `of` questions were asked. `rejected` says the same as `lost`, of questions of other sets, by
    their name.
    """

    name: str
    asked: int
    of: int
    pools: list[int] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    ceilings: list[float] = field(default_factory=list)
    marks: dict[str, list[Marks]] = field(default_factory=lambda: defaultdict(list))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    # Deep answers that say they are less than they might be: a stage was cut short.
    noted: int = 0
    lost: list[bool] = field(default_factory=list)
    rejected: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))


class AskedClock:
    """ports.Clock that stands at the moment of the question."""

    def __init__(self) -> None:
        self.at: Micros = 0

    def now(self) -> Micros:
        return self.at

    def monotonic(self) -> float:
        return time.monotonic()


class Asking:
    """The ways to ask, over one pool after another."""

    def __init__(self, vectors: Mapping[str, KnownVectors], routes: Route, lexicon: Lexicon, ablate: bool) -> None:
        self._vectors = vectors
        self._clock = AskedClock()
        config = Recalling()
        weights: dict[str, fuse.Weights | None] = {**fuse.ALONE, **fuse.PRESETS, SHALLOW: None, DEEP: None}
        if ablate:
            usual = fuse.PRESETS[config.preset]
            weights |= {f"{WITHOUT}{name}": without(usual, name) for name in signals_of(usual)}
        self._recalls = {
            name: Recall(vectors, routes, lexicon, self._clock, config, chosen) for name, chosen in weights.items()
        }

    @property
    def ablations(self) -> list[str]:
        return [name for name in self._recalls if name.startswith(WITHOUT)]

    def ask(
        self, method: str, pool: Pool, query: Asked, top_k: int = TOP_K, only_relevant: bool = False
    ) -> tuple[Answer, float]:
        """The answer, and the seconds it took beside the model, whose vector of the query is there beforehand."""
        self._clock.at = pool.asked_at(query.at)
        question = Question(
            query.text,
            (_ROOM,),
            depth=Depth.DEEP if method == DEEP else Depth.SHALLOW,
            top_k=top_k,
            asked_at=self._clock.at,
            zone="UTC",
            only_relevant=only_relevant,
        )
        in_models = sum(known.seconds for known in self._vectors.values())
        started = time.perf_counter()
        answer = self._recalls[method].recall(question, {_ROOM: pool})
        took = time.perf_counter() - started
        return answer, took - (sum(known.seconds for known in self._vectors.values()) - in_models)


def signals_of(weights: fuse.Weights) -> list[str]:
    """The names of the signals that count at all."""
    return [name for name in fuse.SIGNALS if getattr(weights, name) > 0]


def without(weights: fuse.Weights, signal: str) -> fuse.Weights:
    """The same, but for this signal, which counts nothing."""
    nothing: dict[str, Any] = {signal: 0.0}
    return dataclasses.replace(weights, **nothing)


def methods_of(names: str | None) -> tuple[str, ...]:
    """`bm25,deep`, in the order of METHODS; all for None. Raises InvalidArgument for a name that is none."""
    if names is None:
        return METHODS
    wanted = {name.strip() for name in names.split(",")} - {""}
    unknown = sorted(wanted - set(METHODS))
    if unknown or not wanted:
        said = f"{unknown[0]} is no method" if unknown else "names no method"
        raise InvalidArgument(f"methods: {said}; choose from {', '.join(METHODS)}", field="methods")
    return tuple(name for name in METHODS if name in wanted)


def load_sets(folders: Sequence[Path], noise: Path | None) -> tuple[list[EvalSet], EvalSet | None]:
    """Raises InvalidArgument or NotFound for a folder that holds no sound set, and for two of one name."""
    sets = [quality_sets.load(folder) for folder in folders]
    names = [one.name for one in sets]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidArgument(f"DIR: two sets are called {twice}; rename one of the folders", field="DIR")
    return sets, None if noise is None else quality_sets.load(noise)


@contextlib.contextmanager
def models(model: str | None, second: str | None) -> Iterator[list[Embedder]]:
    """As a box loads them. Raises ModelError when one is missing."""
    config = Embedding()
    wanted = dict.fromkeys((model or config.model, second or config.second))
    with contextlib.ExitStack() as stack:
        embedders: list[Embedder] = []
        for id_ in filter(None, wanted):
            embedders.append(load(id_, models_directory(), config))
            stack.callback(embedders[-1].close)
        yield embedders


def measure(
    sets: Sequence[EvalSet],
    noise: EvalSet | None,
    embedders: Sequence[Embedder],
    say: Say,
    *,
    methods: Sequence[str] = METHODS,
    ablate: bool = False,
    lexicon: Lexicon | None = None,
) -> list[Measured]:
    """Every set in turn. Raises what the recall raises."""
    lexicon = lexicon or WordLexicon()
    vectors = {embedder.info.id: KnownVectors(embedder) for embedder in embedders}
    infos = [embedder.info for embedder in embedders]

    def routes(text: str) -> tuple[str, ...]:
        return route(text, infos)

    heard = [*sets, *([noise] if noise is not None else [])]
    for model, known in vectors.items():
        pieces = [text for one in heard for text in texts(one.memories) if model in routes(text)]
        queries = [query.text for one in sets for query in one.queries if model in routes(query.text)]
        say(f"{len(set(pieces)):,} texts and {len(set(queries)):,} questions through {model} …")
        known.learn(pieces, Lane.INGEST, say)
        known.learn(queries, Lane.RECALL, say)
    asking = Asking(vectors, routes, lexicon, ablate)
    found = []
    for one in sets:
        extra = _noise_of(one, noise)
        measured = Measured(f"{one.name}+noise" if extra else one.name, len(one.queries), one.of)
        # A question of the set that the noise is of might well be answered by the noise.
        others = [
            other for other in sets if other is not one and (not extra or noise is None or not _same(other, noise))
        ]
        strangers = {
            other.name: sample(other.queries, UNRELATED, f"{SEED}/{other.name}/{one.name}") for other in others
        }
        scopes = one.scopes
        for place, scope in enumerate(scopes):
            told = [*one.within(scope), *extra]
            say(f"{measured.name}, {scope} ({place + 1} of {len(scopes)}): {len(told):,} memories …")
            with tempfile.TemporaryDirectory(prefix="edge-bench-") as folder:
                pool = Pool(Path(folder), told, vectors, routes, lexicon)
                with contextlib.closing(pool):
                    _ask_all(asking, pool, told, one.asked_of(scope), methods, measured)
                    for name, theirs in strangers.items():
                        # Each stranger asks one of the pools, all of them as many.
                        measured.rejected[name] += [
                            _nothing(asking, pool, asked) for asked in theirs[place :: len(scopes)]
                        ]
        found.append(measured)
    return found


def _ask_all(
    asking: Asking, pool: Pool, told: Sequence[Told], queries: Sequence[Asked], methods: Sequence[str], into: Measured
) -> None:
    # The noise comes behind the set's own memories, so an id that both have means the set's own.
    places = {one.id: place for place, one in reversed(list(enumerate(told)))}
    into.pools += [pool.size] * len(queries)
    for query in queries:
        groups = [frozenset(places[id_] for id_ in group) for group in query.groups]
        into.categories.append(query.category)
        into.ceilings.append(p5_ceiling(groups))
        alone: dict[str, tuple[list[int], float]] = {}
        for method in (*methods, *asking.ablations):
            if method in (BM25, VECTORS, RRF):
                order, seconds = _alone(asking, method, pool, query, alone)
            else:
                answer, seconds = asking.ask(method, pool, query)
                order = pool.order(answer)
                into.noted += method == DEEP and bool(set(answer.notes) - {NOTHING_RELEVANT})
            into.marks[method].append(judge(order, groups))
            into.seconds[method].append(seconds)
        into.lost.append(_nothing(asking, pool, query))


def _alone(
    asking: Asking, method: str, pool: Pool, query: Asked, known: dict[str, tuple[list[int], float]]
) -> tuple[list[int], float]:
    """The order by one line, or by both joined; the time of both then. Each line is asked once a question."""
    for line in (BM25, VECTORS) if method == RRF else (method,):
        if line not in known:
            answer, seconds = asking.ask(line, pool, query, RRF_DEPTH)
            known[line] = pool.order(answer, by_words=line == BM25), seconds
    if method != RRF:
        return known[method]
    (words, first), (near, second) = known[BM25], known[VECTORS]
    return reciprocal_ranks(words, near), first + second


def _nothing(asking: Asking, pool: Pool, query: Asked) -> bool:
    """Whether nothing of the pool is said to bear on the question."""
    return not asking.ask(SHALLOW, pool, query, Question(query.text, ()).top_k, only_relevant=True)[0].hits


def _same(one: EvalSet, other: EvalSet) -> bool:
    return one.folder == other.folder


def _noise_of(one: EvalSet, noise: EvalSet | None) -> tuple[Told, ...]:
    """What is added to the pools of a set: nothing to the set that the noise is of."""
    if noise is None or _same(one, noise):
        return ()
    if one.name != noise.name:
        return noise.memories
    # Another folder of the same name: its turns must not take the place of the set's own.
    return tuple(
        dataclasses.replace(told, turn=dataclasses.replace(told.turn, source=f"{noise.name} (noise)"))
        for told in noise.memories
    )
