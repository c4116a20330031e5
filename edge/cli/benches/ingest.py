"""`edge bench ingest`: how much of the raw model's speed is left once the whole box is around it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import uvloop

from edge.admission.chunk import chunk
from edge.cli.benches import ceiling, corpus, driving, machine
from edge.cli.benches.ceiling import RawModel, Variant
from edge.cli.benches.result import Ratio, Result, median, percentile, quotient
from edge.cli.demo.box import Box, running
from edge.client import AsyncClient
from edge.index.hnsw import M

Say = Callable[[str], None]

_SEED = 20260701
_ROUNDS = 3
# Pieces that each variant of the ceiling is tried on, and that the plain way is timed on.
_SAMPLE = 120
_PLAIN = 320
_SINGLE = 150
_PROBED_TURNS = 1000
_PROBE_SECONDS = 0.05
_LONG_TURNS = 20_000
_LONG_CHARACTERS = 60
_MB = 1e6


@dataclass(frozen=True, slots=True)
class Round:
    """The same pieces through the bare model, the box, and the bare model again; seconds."""

    before: float
    box: float
    after: float

    @property
    def ratio(self) -> float:
        """What else the machine does meanwhile falls on both sides."""
        return quotient((self.before + self.after) / 2, self.box)


def run(turns: int, long: bool, say: Say) -> Result:
    """Some four minutes on two cores, three more when `long`. Raises what the box and its client raise."""
    about = machine.describe()
    pieces = pieces_of(corpus.turns(turns, _SEED))
    model = RawModel()
    say(f"Looking for the ceiling: {len(pieces):,} pieces of {turns:,} turns …")
    best, tried = ceiling.search(model, pieces, _SAMPLE)
    plain = pieces[:_PLAIN]
    plain_rate = len(plain) / ceiling.in_order(model, plain, 32)
    with running() as box:
        measured, figures = uvloop.run(_measure(box, model, best, turns, long, say))
    rate = measured.pieces_per_second(len(pieces))
    figures = {
        "turns": turns,
        "pieces": len(pieces),
        "characters_a_piece": sum(map(len, pieces)) / len(pieces),
        "box_pieces_per_second": rate,
        "rounds": [[one.before, one.box, one.after] for one in measured.rounds],
        "ceiling_variant": str(best),
        "ceiling_pieces_per_second": len(pieces) / measured.bare,
        "ceiling_search_pieces_per_second": tried,
        "ceiling_includes": "tokenising; exactly the box's pieces, sorted by length",
        "fixed32_pieces_per_second": plain_rate,
        **figures,
    }
    return Result("ingest", _ratios(measured, figures, about), figures, about)


@dataclass(frozen=True, slots=True)
class _Measured:
    rounds: Sequence[Round]
    single: float
    single_bare: float
    acknowledged: Sequence[float]
    peak: int
    parts: int

    @property
    def bare(self) -> float:
        return median([seconds for one in self.rounds for seconds in (one.before, one.after)])

    def pieces_per_second(self, pieces: int) -> float:
        return pieces / median([one.box for one in self.rounds])


async def _measure(
    box: Box, model: RawModel, best: Variant, turns: int, long: bool, say: Say
) -> tuple[_Measured, dict[str, Any]]:
    texts = corpus.turns(turns, _SEED)
    pieces = pieces_of(texts)
    fresh = machine.resident(box.pid)
    rounds: list[Round] = []
    async with AsyncClient.connect(box.address) as client:
        say(f"The ceiling and the box in turns: {best} …")
        with driving.Memory(box.pid) as memory:
            bare = ceiling.measure(model, pieces, best)
            for number in range(_ROUNDS):
                took = await driving.ingest(client, texts, f"round {number}")
                rounds.append(Round(bare, took, bare := ceiling.measure(model, pieces, best)))
                say(f"  {rounds[-1].ratio:.2f}: {rounds[-1].before:.1f} s, box {took:.1f} s, {bare:.1f} s")
        vectors = await _vectors(client)
        say("One turn at a time …")
        singles = corpus.turns(_SINGLE, _SEED + 1)
        single_bare = ceiling.measure(model, pieces_of(singles), best)
        single = await _one_by_one(client, singles)
        say("Acknowledgements while the model is busy …")
        acknowledged = await _acknowledgements(box.address, client)
        index = index_bytes(vectors, model.dimension)
        figures: dict[str, Any] = {
            "ack_ms": {f"p{share}": 1000 * percentile(acknowledged, share / 100) for share in (50, 90, 99, 100)},
            "ack_samples": len(acknowledged),
            "single_ms": 1000 * single / _SINGLE,
            "rss_mb": {"before": fresh / _MB, "peak": memory.peak / _MB},
            "parts_mb": {"model": model.bytes / _MB, "index": index / _MB},
        }
        if long:
            say(f"Memory over {_LONG_TURNS:,} short turns …")
            figures["long"] = await _long(client, box.pid, model.dimension)
    return _Measured(rounds, single, single_bare, acknowledged, memory.peak, model.bytes + index), figures


def _ratios(measured: _Measured, figures: dict[str, Any], about: dict[str, Any]) -> list[Ratio]:
    bare, plain = figures["ceiling_pieces_per_second"], figures["fixed32_pieces_per_second"]
    ratios = [
        Ratio(
            "ingest_vs_ceiling",
            median([one.ratio for one in measured.rounds]),
            0.85,
            True,
            f"{bare:.1f} pieces/s: {figures['ceiling_variant']}",
        ),
        Ratio(
            "ingest_vs_fixed32",
            quotient(figures["box_pieces_per_second"], plain),
            against=f"{plain:.1f} pieces/s: batches of 32 in order of arrival, all cores",
        ),
        Ratio(
            "ingest_single_vs_ceiling",
            quotient(measured.single_bare, measured.single),
            against=f"the ceiling on these {_SINGLE} turns; one at a time keeps one core busy",
        ),
        Ratio("ack_p99_ms", figures["ack_ms"]["p99"], 25, False, f"the disk alone: {about['sync_ms']:.2g} ms a sync"),
        Ratio("rss_over_parts_mb", (measured.peak - measured.parts) / _MB, 250, False, "model file + index"),
    ]
    if "long" in figures:
        growth = figures["long"]["grown_mb_over_index"]
        ratios.append(Ratio("rss_growth_mb", growth, 10, False, "second half of 20,000 turns, less the index's growth"))
    return ratios


def pieces_of(texts: Sequence[str]) -> list[str]:
    """What the box makes memories of."""
    return [text[start:end] for text in texts for start, end in chunk(text)]


def index_bytes(vectors: int, dimension: int) -> int:
    """What hnswlib 0.8.0 holds a row: float32 vector, links of level 0 with their count, label; and a pointer."""
    return vectors * (4 * dimension + 4 + 4 * 2 * M + 8 + 8)


async def _vectors(client: AsyncClient) -> int:
    return sum(space.vectors for space in (await client.status()).spaces)


async def _one_by_one(client: AsyncClient, texts: Sequence[str]) -> float:
    """Seconds for turns over one stream, each sent when the one before can be found."""
    session = client.open_ingest(wait="searchable")
    started = time.perf_counter()
    for seq, text in enumerate(texts):
        session.offer(driving.turn(text, "single", seq))
        session.wake()
        await session.next_results()
    took = time.perf_counter() - started
    await client.close_ingest(session)
    return took


async def _acknowledgements(address: str, client: AsyncClient) -> list[float]:
    """Seconds from sending a turn to STORED, one turn every 50 ms, while another stream keeps the model busy."""
    busy = asyncio.create_task(driving.ingest(client, corpus.turns(_PROBED_TURNS, _SEED + 2), "busy"))
    # By then the model has all the work it takes on.
    await asyncio.sleep(1.0)
    sent: list[float] = []

    async def steadily() -> AsyncIterator[dict[str, Any]]:
        for seq, text in enumerate(corpus.turns(20_000, _SEED + 3, 10, 30)):
            if busy.done():
                return
            sent.append(time.perf_counter())
            yield driving.turn(text, "probe", seq)
            await asyncio.sleep(_PROBE_SECONDS)

    async with AsyncClient.connect(address) as probe:
        results = probe.ingest(steadily(), wait="stored")
        waits = [time.perf_counter() - sent[result.position] async for result in results]
    await busy
    # The first opened the connection.
    return waits[1:]


async def _long(client: AsyncClient, pid: int, dimension: int) -> dict[str, Any]:
    """Resident memory along a long run, and how much of its growth the index does not explain."""
    texts = corpus.turns(_LONG_TURNS, _SEED + 4, corpus.SHORTEST, _LONG_CHARACTERS)
    marks: dict[int, float] = {}
    done = 0
    started = time.perf_counter()
    told = (driving.turn(text, "long", seq) for seq, text in enumerate(texts))
    async for _ in client.ingest(told, wait="searchable"):
        done += 1
        if done % (_LONG_TURNS // 20) == 0:
            marks[done] = machine.resident(pid) / _MB
    early, late = middle_and_end(marks, _LONG_TURNS)
    # The medians stand for the middles of the fifths they were taken from.
    rows = round(0.4 * _LONG_TURNS)
    return {
        "turns": _LONG_TURNS,
        "seconds": time.perf_counter() - started,
        "rss_mb": marks,
        "grown_mb": late - early,
        "grown_mb_over_index": late - early - index_bytes(rows, dimension) / _MB,
    }


def middle_and_end(marks: dict[int, float], total: int) -> tuple[float, float]:
    """Medians over the fifth around the middle and the last fifth, so that no single sample decides."""
    early = median([value for done, value in marks.items() if 0.4 * total <= done <= 0.6 * total])
    return early, median([value for done, value in marks.items() if done >= 0.8 * total])
