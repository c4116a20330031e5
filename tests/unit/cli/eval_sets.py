"""A tiny evaluation set, written on the fly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

PETS = {
    "fish": ("u1", "阿哲养了三条金鱼。", "2026-03-01T09:00:00"),
    "cat": ("u1", "小满的猫叫团子，今年两岁。", "2026-03-02"),
    "bike": ("u1", "老周把自行车借给了邻居。", None),
    "dog": ("u2", "晓岚的狗叫旺财。", "2026-03-03T10:00:00Z"),
}
QUESTIONS = (
    {"id": "q1", "scope": "u1", "text": "猫叫团子吗", "relevant": ["cat"], "category": "fact"},
    {"id": "q2", "scope": "u1", "text": "谁养了金鱼", "relevant": ["fish"], "category": "who", "ts": "2026-05-01"},
    {"id": "q3", "scope": "all", "text": "狗叫旺财吗", "relevant": [], "groups": [["dog", "cat"]], "category": "fact"},
    {"id": "q4", "scope": "u1", "text": "谁会飞", "relevant": [], "category": "adversarial"},
)


def write(folder: Path, memories: Sequence[object], queries: Sequence[object]) -> Path:
    folder.mkdir()
    for name, rows in (("memories", memories), ("queries", queries)):
        lines = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def rows(pets: dict[str, tuple[str, str, str | None]] = PETS) -> list[dict[str, object]]:
    return [
        {"id": id_, "session": session, "role": "user", "ts": ts, "text": text}
        for id_, (session, text, ts) in pets.items()
    ]
