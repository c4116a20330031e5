"""What noise in a store costs the first five answers, and how much of that the gate gives back.

python benchmarks/noise.py SET [--sessions FOLDER] [--share .4] [--json]

SET is a folder in the format of `edge bench quality`. To each of its pools come events of other programs, until they
are `--share` of the store: what a naive collector sends beside what was said. A third each are pieces of a stream that
is still being said, what a tool gave back, and thoughts of a model, all of which quote the memories themselves: the
worst noise, as it has their words and their meaning. With --sessions, half are real events from the files there.

Three stores are asked every question, shallow and deep: without the noise, with all of it, and with what of it the gate
lets through. The gate sees the memories too, so what it takes for noise by mistake is missed in the third.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from statistics import mean

from edge.admission.noise import judge as noise_of
from edge.cli.benches import quality_sets
from edge.cli.benches.quality import DEEP, SHALLOW, Asking, models
from edge.cli.benches.quality_marks import judge
from edge.cli.benches.quality_pool import KnownVectors, Pool, texts
from edge.cli.benches.quality_sets import Told
from edge.embedder.routing import route
from edge.lexicon.words import WordLexicon
from edge.types import Lane, Turn

sys.path.append(str(Path(__file__).parents[1] / "tests" / "unit" / "admission"))
from session_files import RAW, read_events

SEED = 20261130
STORES = ("without noise", "with noise", "with the gate")


def quoting(told: Sequence[Told], chance: random.Random) -> Iterator[tuple[str, str]]:
    """(role, text) of events that quote what was said, for ever."""
    for kind in cycle(("stream", "tool", "thought")):
        said = chance.choice(told).turn.text
        if kind == "stream":
            delta = {"type": "text_delta", "text": said[: chance.randint(8, max(8, len(said)))]}
            event = {"type": "content_block_delta", "index": 0, "delta": delta}
        elif kind == "tool":
            result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": f"notes.md:12:{said}"}
            event = {"type": "user", "message": {"role": "user", "content": [result]}, "uuid": "u", "sessionId": "s"}
        else:
            thought = {"type": "thinking", "thinking": f"The user said: {said} Let me look further.", "signature": "E"}
            event = {"type": "assistant", "message": {"role": "assistant", "content": [thought]}, "uuid": "u"}
        yield "assistant" if kind != "tool" else "user", json.dumps(event, ensure_ascii=False)


def noisy(told: Sequence[Told], real: Sequence[tuple[str, str]], share: float, seed: str) -> list[Told]:
    chance = random.Random(seed)  # noqa: S311  # a seed, not a secret
    count = round(len(told) * share / (1 - share))
    events = chance.sample(real, min(len(real), count // 2))
    made = quoting(told, chance)
    events += [next(made) for _ in range(count - len(events))]
    return [
        Told(f"noise-{n}", "noise", Turn("events", "noise", n, role, chance.choice(told).turn.occurred_at, text))
        for n, (role, text) in enumerate(events)
    ]


def real_noise(folder: Path | None) -> list[tuple[str, str]]:
    """Events of these files that are no sentence of anybody, by their own format."""
    files = sorted(folder.rglob("*.jsonl")) if folder else []
    found = dict.fromkeys((e.role, e.text) for file in files for e in read_events(file, RAW))
    return [(role, text) for role, text in found if text.lstrip().startswith("{") and '"type": "text"' not in text[:20]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path)
    parser.add_argument("--sessions", type=Path)
    parser.add_argument("--share", type=float, default=0.4)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    asked = quality_sets.load(given.set)
    real = real_noise(given.sessions)
    points: dict[tuple[str, str], list[float]] = defaultdict(list)
    counts: Counter[str] = Counter()
    with models(None, None) as embedders:
        vectors = {one.info.id: KnownVectors(one) for one in embedders}
        infos = [one.info for one in embedders]
        asking = Asking(vectors, lambda text: route(text, infos), WordLexicon(), ablate=False)
        for scope in asked.scopes:
            told, queries = asked.within(scope), asked.asked_of(scope)
            extra = noisy(told, real, given.share, f"{SEED}/{scope}")
            kept = [one for one in (*told, *extra) if noise_of(one.turn) is None]
            counts["memories"] += len(told)
            counts["noise"] += len(extra)
            counts["noise left"] += sum(one.session == "noise" for one in kept)
            counts["memories lost"] += len(told) - sum(one.session != "noise" for one in kept)
            for known in vectors.values():
                known.learn(texts([*told, *extra]), Lane.INGEST, lambda _: None)
                known.learn([query.text for query in queries], Lane.RECALL, lambda _: None)
            for store, holds in zip(STORES, (told, [*told, *extra], kept), strict=True):
                with tempfile.TemporaryDirectory(prefix="edge-bench-") as folder:
                    pool = Pool(Path(folder), holds, vectors, lambda text: route(text, infos), WordLexicon())
                    with contextlib.closing(pool):
                        for query in queries:
                            for method in (SHALLOW, DEEP):
                                order = [holds[at].id for at in pool.order(asking.ask(method, pool, query)[0])]
                                points[store, method].append(judge(order, query.groups).p5)
    result = {f"{method}, {store}": round(mean(found), 4) for (store, method), found in points.items()}
    if given.json:
        print(json.dumps({"p5": result, "counts": counts}))
        return 0
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    for name, value in result.items():
        print(f"precision@5 {value:.3f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
