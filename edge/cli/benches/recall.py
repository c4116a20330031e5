"""`edge bench recall`: what a recall costs beyond the model and the index themselves, idle and in a busy box."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hnswlib
import numpy as np
import uvloop

from edge.cli.benches import corpus, driving, machine
from edge.cli.benches.ceiling import RawModel
from edge.cli.benches.neighbour import busy_neighbour
from edge.cli.benches.result import Ratio, Result, median, percentile, quotient
from edge.cli.demo.box import running
from edge.cli.show import seconds
from edge.client import AsyncClient
from edge.client.certificate import digest_of
from edge.config import DEFAULT_MODEL
from edge.index.hnsw import EF, EF_CONSTRUCTION, M
from edge.ledger.database import Database
from edge.ledger.migrations import MIGRATIONS
from edge.ledger.queries import Queries
from edge.recall.recall import NEAREST
from edge.types import Lane

Say = Callable[[str], None]

_SEED = 20260702
_QUESTIONS = 400
# Both listeners: plain on the loopback, and TLS on all interfaces, so for some seconds the network can see this box.
_LAN = ("--lan", "--listen", "127.0.0.1:0", "--listen", "0.0.0.0:0")
# Asked and not counted: connections open, caches fill.
_FEW = 50
_BUSY_TURNS = 1000
# Half the cores, perhaps less: as long as the other.
_NEIGHBOUR_TURNS = 500
_LONGEST = 60
# Seconds that the index's worker may take to put away what came in.
_SETTLE = 120.0


def run(memories: int, say: Say) -> Result:
    """Some three minutes on two cores. Raises what the box and its client raise."""
    about = machine.describe()
    with tempfile.TemporaryDirectory(prefix="edge-bench-") as folder:
        data = Path(folder) / "data"
        with running(data) as box:
            ratios, figures = uvloop.run(_measure(box.address, data, memories, say))
        say("The same box with TLS and a token, and without TLS in turns …")
        with running(data, *_LAN) as box:
            plain, secure = uvloop.run(_tls(box.addresses, data))
    ratios.append(
        Ratio("tls_cost", quotient(median(secure), median(plain)), 1.1, False, "the same token without TLS, loopback")
    )
    figures["ms"] |= {"plain": _spread(plain), "tls": _spread(secure)}
    return Result("recall", ratios, figures, about)


class Direct:
    """Tokenise, embed, search: the same model, vectors and index parameters as the box's, called in this process."""

    def __init__(self, model: RawModel, data: Path) -> None:
        database = Database(data / "spaces" / "public" / "memory.sqlite", MIGRATIONS, read_only=True)
        queries = Queries(database)
        rowids, vectors = queries.vectors(DEFAULT_MODEL, queries.vector_rowids(DEFAULT_MODEL))
        database.close()
        self._model = model
        self._index: Any = hnswlib.Index("ip", model.dimension)
        self._index.init_index(len(rowids), M=M, ef_construction=EF_CONSTRUCTION, random_seed=1)
        self._index.add_items(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), rowids)
        self._index.set_ef(EF)

    def ask(self, question: str, cores: int, lane: Lane = Lane.INGEST) -> float:
        """Seconds for one question, embedded by a session of so many cores; in the recall lane with the instruction
        that the model was trained with, which the box leaves out."""
        started = time.perf_counter()
        vector = self._model.run(cores, self._model.tokens([question], lane))
        self._index.knn_query(vector, k=NEAREST, num_threads=1)
        return time.perf_counter() - started


async def _measure(address: str, data: Path, memories: int, say: Say) -> tuple[list[Ratio], dict[str, Any]]:
    model = RawModel()
    texts = corpus.turns(memories, _SEED, corpus.SHORTEST, _LONGEST)
    questions = corpus.questions(_QUESTIONS, _SEED)
    few = memories // 100
    async with AsyncClient.connect(address) as client:
        say(f"{few:,} memories …")
        await driving.ingest(client, texts[:few], "few")
        await driving.ask(client, questions[:_FEW])
        small = await driving.ask(client, questions)
        say(f"{memories:,} memories …")
        filling = await driving.ingest(client, texts[few:], "many")
        await _settled(client)
        say("Answers, by the box and directly in turns …")
        took = await _in_turns(client, Direct(model, data), questions)
        stages = await _stages(client, questions[:_FEW])
        say("Answers while an ingest keeps the box busy …")
        took["busy"] = await _busy(client, questions, _BUSY_TURNS, "busy")
        say("The same, while another program takes a core …")
        with busy_neighbour():
            took["neighbour"] = await _busy(client, questions, _NEIGHBOUR_TURNS, "neighbour")
    bare, idle = median(took["direct"]), took["stream"]
    against = f"{1000 * bare:.1f} ms: tokenise, embed, knn, called directly"
    ratios = [
        Ratio("recall_p50_vs_direct", quotient(median(idle), bare), 1.4, False, against),
        Ratio(
            "recall_p50_vs_direct_with_instruction",
            quotient(median(idle), median(took["direct, with instruction"])),
            against="the same with the instruction that the model was trained with, which the box leaves out",
        ),
        Ratio(
            "recall_p95_busy_vs_idle",
            quotient(percentile(took["busy"], 0.95), percentile(took["hot stream"], 0.95)),
            3,
            False,
            f"{1000 * percentile(took['hot stream'], 0.95):.1f} ms: p95 idle",
        ),
        Ratio(
            "recall_p95_neighbour_vs_idle",
            quotient(percentile(took["neighbour"], 0.95), percentile(took["hot stream"], 0.95)),
            2.5,
            False,
            "the same p95 idle; busy, and another process takes a core all the time",
        ),
        Ratio("deep_p50_vs_direct", quotient(median(took["deep"]), bare), 3, False, against),
        Ratio("deep_p99_ms", 1000 * percentile(took["deep"], 0.99), 120, False, "milliseconds"),
        Ratio(
            "growth_100x", quotient(median(took["hot stream"]), median(small)), against=f"the p50 at {few:,} memories"
        ),
    ]
    figures: dict[str, Any] = {
        "memories": memories,
        "fill_turns_per_second": (memories - few) / filling,
        "ms": {name: _spread(values) for name, values in {**took, "few": small}.items()},
        "stages_p50_ms": stages,
        "direct": f"each question once, alternating with the box; k {NEAREST}, ef {EF}",
    }
    return ratios, figures


async def _in_turns(client: AsyncClient, direct: Direct, questions: Sequence[str]) -> dict[str, list[float]]:
    """Seconds for every way of asking.

    Question by question, so that both find the machine in the same state: a core that has idled for some milliseconds
    takes a quarter longer for the same work than one in a tight loop. One core for the direct way here: the threads of
    a session with more would spin on, and take a core from the box. What tight loops give comes last ("hot").
    """
    took: dict[str, list[float]] = defaultdict(list)
    for number, question in enumerate([*questions[:_FEW], *questions]):
        if number == _FEW:
            took.clear()
        took["direct"].append(direct.ask(question, 1))
        took["direct, with instruction"].append(direct.ask(question, 1, Lane.RECALL))
        took["stream"] += await driving.ask(client, [question])
        if number % 2:
            took["unary"] += await driving.ask(client, [question], timeout=30.0)
            took["deep"] += await driving.ask(client, [question], depth="deep")
    took["hot stream"] = await driving.ask(client, questions)
    for cores in sorted({1, machine.cores()}):
        took[f"hot direct, {cores} cores"] = [direct.ask(question, cores) for question in questions]
    return dict(took)


async def _tls(addresses: Sequence[str], data: Path) -> tuple[list[float], list[float]]:
    """Seconds for each question, without TLS and with it, question by question."""
    unix, plain, everywhere = addresses
    certificate = (data / "identity" / "certificate.pem").read_bytes()
    async with AsyncClient.connect(unix) as owner:
        token = (await owner.create_token("bench", {"public": ["read"]})).secret
    secure = f"127.0.0.1:{everywhere.rpartition(':')[2]}"
    questions = corpus.questions(_QUESTIONS, _SEED)
    took: list[list[float]] = [[], []]
    async with (
        AsyncClient.connect(plain, token) as bare,
        AsyncClient.connect(secure, token, tls_fingerprint=digest_of(certificate).hex()) as wrapped,
    ):
        for number, question in enumerate([*questions[:_FEW], *questions]):
            # Whoever asks second finds the question's words in the caches: each does so every other time.
            for which in (number % 2, 1 - number % 2):
                asked = await driving.ask((bare, wrapped)[which], [question])
                took[which] += asked if number >= _FEW else []
    return took[0], took[1]


async def _settled(client: AsyncClient) -> None:
    """Until two looks in a row find the index as it was."""
    end, before = time.monotonic() + _SETTLE, -1
    while time.monotonic() < end:
        spaces = (await client.status()).spaces
        overlay = sum(space.index_overlay for space in spaces)
        if overlay == before and not any(space.rebuilding for space in spaces):
            return
        before = overlay
        await asyncio.sleep(1.0)


async def _stages(client: AsyncClient, questions: Sequence[str]) -> dict[str, float]:
    """Where the box says the time goes, medians."""
    found: dict[str, list[float]] = defaultdict(list)
    for question in questions:
        timing = (await client.recall(question)).timing
        for stage in timing.stages:
            found[stage.stage].append(1000 * seconds(stage.took))
        found["total"].append(1000 * seconds(timing.total))
    return {stage: median(values) for stage, values in found.items()}


async def _busy(client: AsyncClient, questions: Sequence[str], turns: int, session: str) -> list[float]:
    """Seconds for questions asked one after another while a stream of mixed turns keeps the model busy."""
    ingesting = asyncio.create_task(driving.ingest(client, corpus.turns(turns, _SEED + 1), session))
    await asyncio.sleep(1.0)
    took: list[float] = []
    while not ingesting.done():
        # One at a time, so that none is counted that was asked after the last turn.
        asked = await driving.ask(client, [questions[len(took) % len(questions)]])
        if not ingesting.done():
            took += asked
    await ingesting
    return took


def _spread(values: Sequence[float]) -> dict[str, float]:
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return {"n": len(values), **{name: 1000 * percentile(values, share) for name, share in shares.items()}}
