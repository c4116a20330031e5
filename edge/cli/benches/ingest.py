"""`edge bench ingest`: how much of the raw model's speed is left once the whole box is around it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import uvloop

from edge.admission.chunk import chunk
from edge.cli.benches import batcher, ceiling, corpus, driving, machine, rounds
from edge.cli.benches.ceiling import RawModel, Variant
from edge.cli.benches.result import Ratio, Result, median, percentile, quotient
from edge.cli.benches.rounds import Round
from edge.cli.demo.box import Box, running
from edge.client import AsyncClient
from edge.index.hnsw import M

Say = Callable[[str], None]

_SEED = 20260701
_ROUNDS = 3
# Pieces that each variant of the ceiling is tried on, and that the plain way is timed on.
_SAMPLE = 120
_PLAIN = 320
# Pieces for the batcher alone, turns that go in one by one, and turns that are waited for one by one.
_BATCHED = 500
_SINGLE = 150
_AWAITED = 80
_PROBED_TURNS = 1000
_PROBE_SECONDS = 0.05
_LONG_TURNS = 20_000
_LONG_CHARACTERS = 60
# Seconds that the last of the single turns may take to be found.
_PATIENCE = 600.0
_MB = 1e6


def run(turns: int, long: bool, say: Say) -> Result:
    """Some five minutes on two cores, three more when `long`. Raises what the box and its client raise."""
    about = machine.describe()
    pieces = pieces_of(corpus.turns(turns, _SEED))
    model = RawModel()
    say(f"Looking for the ceiling: {len(pieces):,} pieces of {turns:,} turns …")
    best, tried = ceiling.search(model, pieces, _SAMPLE)
    plain = pieces[:_PLAIN]
    plain_rate = len(plain) / ceiling.in_order(model, plain, 32)
    say("The batcher alone …")
    alone = uvloop.run(_alone(model, pieces[:_BATCHED], best, say))
    with running() as box:
        measured, more = uvloop.run(_measure(box, model, best, turns, long, say))
    figures: dict[str, Any] = {
        "turns": turns,
        "pieces": len(pieces),
        "characters_a_piece": sum(map(len, pieces)) / len(pieces),
        "box_pieces_per_second": len(pieces) / median([one.measured for one in measured.stream]),
        "rounds": rounds.figures(measured.stream),
        "batcher_pieces": len(pieces[:_BATCHED]),
        "batcher_rounds": rounds.figures(alone),
        "single_rounds": rounds.figures(measured.single),
        "ceiling_variant": str(best),
        "ceiling_pieces_per_second": len(pieces) / median([each for one in measured.stream for each in one.bare]),
        "ceiling_search_pieces_per_second": tried,
        "ceiling_includes": "tokenising; exactly the box's pieces, sorted by length",
        "fixed32_pieces_per_second": plain_rate,
        **more,
    }
    return Result("ingest", _ratios(measured, alone, figures, about), figures, about)


@dataclass(frozen=True, slots=True)
class _Measured:
    stream: Sequence[Round]
    single: Sequence[Round]
    # Seconds of the box and of the ceiling for turns that are waited for one by one.
    awaited: float
    awaited_bare: float
    acknowledged: Sequence[float]
    peak: int
    parts: int


async def _alone(model: RawModel, pieces: Sequence[str], best: Variant, say: Say) -> list[Round]:
    with batcher.working() as working:

        async def embed(_: int) -> float:
            return batcher.embed(working, pieces)

        return await rounds.alternate(lambda: ceiling.measure(model, pieces, best), embed, _ROUNDS, say)


async def _measure(
    box: Box, model: RawModel, best: Variant, turns: int, long: bool, say: Say
) -> tuple[_Measured, dict[str, Any]]:
    texts, singles = corpus.turns(turns, _SEED), corpus.turns(_SINGLE, _SEED + 1)
    pieces, single_pieces, awaited_pieces = pieces_of(texts), pieces_of(singles), pieces_of(singles[:_AWAITED])
    fresh = machine.resident(box.pid)
    async with AsyncClient.connect(box.address) as client:
        say(f"The ceiling and the box in turns: {best} …")
        with driving.Memory(box.pid) as memory:
            stream = await rounds.alternate(
                lambda: ceiling.measure(model, pieces, best),
                lambda number: driving.ingest(client, texts, f"round {number}"),
                _ROUNDS,
                say,
            )
        vectors = await _vectors(client)
        say("One turn at a time …")
        single = await rounds.alternate(
            lambda: ceiling.measure(model, single_pieces, best),
            lambda number: _one_by_one(client, singles, f"single {number}"),
            _ROUNDS,
            say,
        )
        awaited_bare = ceiling.measure(model, awaited_pieces, best)
        awaited = await _awaited(client, singles[:_AWAITED])
        say("Acknowledgements while the model is busy …")
        acknowledged = await _acknowledgements(box.address, client)
        index = index_bytes(vectors, model.dimension)
        figures: dict[str, Any] = {
            "ack_ms": {f"p{share}": 1000 * percentile(acknowledged, share / 100) for share in (50, 90, 99, 100)},
            "ack_samples": len(acknowledged),
            "single_ms": 1000 * median([one.measured for one in single]) / _SINGLE,
            "awaited_ms": 1000 * awaited / _AWAITED,
            "rss_mb": {"before": fresh / _MB, "peak": memory.peak / _MB},
            "parts_mb": {"model": model.bytes / _MB, "index": index / _MB},
        }
        if long:
            say(f"Memory over {_LONG_TURNS:,} short turns …")
            figures["long"] = await _long(client, box.pid, model.dimension)
    return _Measured(stream, single, awaited, awaited_bare, acknowledged, memory.peak, model.bytes + index), figures


def _ratios(measured: _Measured, alone: Sequence[Round], figures: dict[str, Any], about: dict[str, Any]) -> list[Ratio]:
    bare, plain = figures["ceiling_pieces_per_second"], figures["fixed32_pieces_per_second"]
    ratios = [
        Ratio(
            "ingest_vs_ceiling",
            rounds.ratio(measured.stream),
            0.85,
            True,
            f"{bare:.1f} pieces/s: {figures['ceiling_variant']}",
        ),
        Ratio(
            "batcher_vs_ceiling",
            rounds.ratio(alone),
            0.92,
            True,
            f"the ceiling on {figures['batcher_pieces']} of these; the batcher without a box, all handed in at once",
        ),
        Ratio(
            "ingest_vs_fixed32",
            quotient(figures["box_pieces_per_second"], plain),
            1.6,
            True,
            f"{plain:.1f} pieces/s: batches of 32 in order of arrival, all cores",
        ),
        Ratio(
            "ingest_single_vs_ceiling",
            rounds.ratio(measured.single),
            0.85,
            True,
            f"the ceiling on these {_SINGLE} turns; one turn a message on one stream, the next sent when the one "
            "before is acknowledged STORED, until the last is SEARCHABLE",
        ),
        Ratio(
            "ingest_awaited_vs_ceiling",
            quotient(measured.awaited_bare, measured.awaited),
            against=f"the ceiling on {_AWAITED} of these; the next sent when the one before is SEARCHABLE, which keeps "
            "one core busy",
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


async def _one_by_one(client: AsyncClient, texts: Sequence[str], session: str) -> float:
    """Seconds for turns over one stream, one a message, each sent when the one before is STORED, till all are found."""
    told = [driving.turn(text, session, seq) for seq, text in enumerate(texts)]
    ids: list[str] = []
    started = time.perf_counter()
    # A window of one message holds the next turn back until this one is acknowledged.
    async for result in client.ingest(told, wait="stored", batch=1, window=1):
        ids += result.memory_ids
    await client.recall(texts[-1], wait_for=ids, top_k=1, timeout=_PATIENCE)
    return time.perf_counter() - started


async def _awaited(client: AsyncClient, texts: Sequence[str]) -> float:
    """Seconds for turns over one stream, each sent when the one before can be found."""
    session = client.open_ingest(wait="searchable")
    started = time.perf_counter()
    for seq, text in enumerate(texts):
        session.offer(driving.turn(text, "awaited", seq))
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
