"""How much of a generated corpus the redaction hides, what it hides wrongly, and how fast it reads.

python benchmarks/redaction.py [--seed N] [--positives N] [--negatives N] [--texts FILE …] [--show N]

Prints one JSON object. `--texts` also reads files of one's own, JSON lines with a `text` or plain, and reports what was
hidden in them and how fast. benchmarks/README.md says what the figures mean.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from secrets_corpus import Secret, innocents, positives
from secrets_corpus.everyday import EVERYDAY

from edge.admission.redact import Redactor  # the corpus is found by the line above

MB = 1e6


def left_over(case: Secret, text: str) -> bool:
    """Whether a run of the secret that is of use to anybody is still there: half of it, or a line of a key."""
    before, secret = case.text[: case.start], case.text[case.start : case.end]
    size = min(max(4, len(secret) // 2), 40)
    rest = text.removeprefix(before)
    return any(secret[at : at + size] in rest for at in range(len(secret) - size + 1))


def exact(case: Secret, text: str) -> bool:
    """Whether everything around the secret is as it was."""
    before, after = case.text[: case.start], case.text[case.end :]
    return text.startswith(before) and text.endswith(after) and len(text) > len(before) + len(after)


def measure_positives(redactor: Redactor, cases: Iterable[Secret], show: int) -> dict[str, Any]:
    seen: Counter[str] = Counter()
    faults: dict[str, Counter[str]] = defaultdict(Counter)
    for case in cases:
        result = redactor.redact(case.text)
        seen[case.kind] += 1
        fault = (
            "missed" if left_over(case, result.text)
            else "other class" if case.kind not in result.counts
            else "too much" if not exact(case, result.text)
            else ""
        )  # fmt: skip
        if fault:
            faults[case.kind][fault] += 1
            if show > 0:
                show -= 1
                print(
                    f"{fault}: {case.kind}, {case.form}: {case.text[:300]!r} -> {result.text[:300]!r}", file=sys.stderr
                )
    missed = sum(fault["missed"] for fault in faults.values())
    return {
        "cases": sum(seen.values()),
        "recall": round(1 - missed / max(1, sum(seen.values())), 5),
        "recall_by_class": {kind: round(1 - faults[kind]["missed"] / n, 5) for kind, n in sorted(seen.items())},
        "other_class": sum(fault["other class"] for fault in faults.values()),
        "too_much": sum(fault["too much"] for fault in faults.values()),
    }


def measure_negatives(redactor: Redactor, seed: int, count: int, show: int) -> dict[str, Any]:
    wrong: Counter[str] = Counter()
    for case in innocents(seed, count):
        result = redactor.redact(case.text)
        if result.counts:
            wrong[case.kind] += 1
            if show > 0:
                show -= 1
                print(f"wrong: {case.kind}: {case.text[:300]!r} -> {result.text[:300]!r}", file=sys.stderr)
    return {"cases": count, "false_positives": round(sum(wrong.values()) / count, 5), "by_kind": dict(wrong)}


def speed(redactor: Redactor, texts: Sequence[str]) -> dict[str, float]:
    """MB/s of UTF-8 and of processor time, best of three: other programs' work is not the redaction's."""
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        for text in texts:
            redactor.redact(text)
        best = min(best, time.process_time() - start)
    return {"mb_per_s": round(size / best / MB, 1), "texts": len(texts), "mb": round(size / MB, 2)}


def ordinary(seed: int, size: int) -> dict[str, list[str]]:
    """Texts as they come in: turns of a chat, pages, a log, code; about `size` bytes each."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for case in innocents(seed, 12_000):
        by_kind[case.kind].append(case.text)

    def some(kinds: Sequence[str], joint: str, lines: int) -> list[str]:
        pool = [text for kind in kinds for text in ({**by_kind, **EVERYDAY}[kind])]
        texts: list[str] = []
        at = total = 0
        while total < size:
            texts.append(joint.join(pool[(at + n) % len(pool)] for n in range(lines)))
            total += len(texts[-1].encode())
            at += lines
        return texts

    return {
        "chat_en": some(("everyday_en",), " ", 3),
        "chat_zh": some(("everyday_zh",), "", 3),
        "pages": some(("everyday_en", "everyday_zh", "program", "everyday_en", "everyday_zh", "log"), "\n", 40),
        "program": some(("program",), "\n", 60),
        "log": some(("log",), "\n", 200),
        "one_megabyte": ["\n".join(some(("everyday_en", "everyday_zh", "program", "log"), "\n", 10_000)[:1])],
        "numbers_only": some(("line", "timestamp", "uuid", "order"), "\n", 200),
        "all_about_passwords_en": some(("english talk",), " ", 1),
        "all_about_passwords_zh": some(("chinese talk",), "", 1),
    }


def read(path: Path) -> list[str]:
    texts = []
    for line in path.read_text("utf-8").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            value = line
        texts.append(str(value.get("text", line)) if isinstance(value, dict) else line)
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=20260101)
    parser.add_argument("--positives", type=int, default=6000)
    parser.add_argument("--negatives", type=int, default=12_000)
    parser.add_argument("--texts", type=Path, nargs="*", default=[])
    parser.add_argument("--show", type=int, default=0, help="print this many faults of each sort to stderr")
    options = parser.parse_args()
    redactor = Redactor()
    report: dict[str, Any] = {
        "bench": "redaction",
        "seed": options.seed,
        "positives": measure_positives(redactor, positives(options.seed, options.positives), options.show),
        "negatives": measure_negatives(redactor, options.seed + 1, options.negatives, options.show),
        "speed": {name: speed(redactor, texts) for name, texts in ordinary(options.seed + 2, 1_000_000).items()},
        "load": os.getloadavg(),
    }
    for path in options.texts:
        texts = read(path)
        hidden: Counter[str] = Counter()
        for text in texts:
            hidden.update(redactor.redact(text).counts)
        report.setdefault("files", {})[f"{path.parent.name}/{path.name}"] = {
            **speed(redactor, texts),
            "hidden": dict(hidden),
        }
    print(json.dumps(report, ensure_ascii=False, indent=2))


if __name__ == "__main__":
    main()
