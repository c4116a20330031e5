"""A memory as JSON and as lines."""

from __future__ import annotations

from typing import Any

import click
import msgpack

from edge.cli.show import as_json, bar, lines, local, one_line, rfc3339

SIGNALS = ("semantic", "lexical", "association", "time", "recency", "frequency", "weight")
_STATES = ("unspecified", "temporary", "candidate", "confirmed", "superseded", "rejected", "forgotten", "cold")


def memory_dict(memory: Any) -> dict[str, Any]:
    """All of it, times as RFC 3339, attributes unpacked where JSON can hold them."""
    return {
        "id": memory.id,
        "uri": memory.uri,
        "space": memory.space,
        "kind": memory.kind,
        "state": _state(memory),
        "text": memory.text,
        "source": memory.source,
        "session": memory.session,
        "seq": memory.seq,
        "role": memory.role,
        "occurred_at": rfc3339(memory.occurred_at),
        "created_at": rfc3339(memory.created_at),
        "weight": memory.weight,
        "tags": list(memory.tags),
        "access_count": memory.access_count,
        "decay": memory.decay,
        "archived": memory.archived,
        "piece": memory.piece,
        "pieces": memory.pieces,
        "attributes": _attributes(memory.attributes),
        "replaced_by": memory.replaced_by,
        "replaces": list(memory.replaces),
        "valid_from": rfc3339(memory.valid_from) if memory.HasField("valid_from") else "",
        "valid_until": rfc3339(memory.valid_until) if memory.HasField("valid_until") else "",
    }


def hit_dict(hit: Any) -> dict[str, Any]:
    """The memory with its score and signals."""
    return {
        "score": hit.score,
        "relevance": hit.relevance,
        "signals": {name: getattr(hit.signals, name) for name in SIGNALS},
        "memory": memory_dict(hit.memory),
    }


def _attributes(packed: bytes) -> Any:
    if not packed:
        return {}
    try:
        return _plain(msgpack.unpackb(packed, strict_map_key=False))
    except (ValueError, TypeError, RecursionError, msgpack.exceptions.UnpackException):
        return {"msgpack": packed.hex()}


def _plain(value: Any) -> Any:
    """As JSON can say it: bytes and msgpack's own types in hexadecimal, NaN and infinity as words."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, msgpack.ExtType):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _state(memory: Any) -> str:
    return _STATES[memory.state] if 0 <= memory.state < len(_STATES) else str(memory.state)


def tell_reviewed(reviewed: Any, done: str, why_not: str, json_: bool) -> None:
    """Prints what became of memories that were named: `done` with a number, and `why_not` of those passed over."""
    if json_:
        memories = [memory_dict(memory) for memory in reviewed.memories]
        passed_over, events = list(reviewed.passed_over), list(reviewed.event_ids)
        click.echo(as_json({"memories": memories, "passed_over": passed_over, "event_ids": events}))
        return
    click.echo(f"{done} {len(reviewed.memories):,}")
    for id_ in reviewed.passed_over[:10]:
        click.echo(f"passed over, since {why_not}: {one_line(id_)}", err=True)
    if len(reviewed.passed_over) > 10:
        click.echo(f"and {len(reviewed.passed_over) - 10:,} more", err=True)
    for event in reviewed.event_ids:
        click.echo(f"to take it back: edge undo {one_line(event)}")


def away(memory: Any) -> str:
    """Behind where it is from: that it is not at hand; empty when it is."""
    if not memory.archived:
        return ""
    return "  (rejected)" if _state(memory) == "rejected" else "  (archived)"


def hit_lines(rank: int, hit: Any, *, explain: bool = False) -> str:
    """Rank, score, date, source, text and id; with `explain` the signals as bars."""
    memory = hit.memory
    parts = [
        f"{rank:2d}. {hit.score:.3f}  {local(memory.occurred_at)}  {one_line(memory.source) or '-'}{away(memory)}"
        + ("" if hit.relevance >= 1 else "  (far from the question)"),
        lines(memory.text, "    "),
        f"    {one_line(memory.id)}",
    ]
    if explain:
        parts += signal_lines(hit)
    return "\n".join(parts)


def signal_lines(hit: Any) -> list[str]:
    """A bar a signal."""
    values = [(name, getattr(hit.signals, name)) for name in SIGNALS]
    return [f"      {name:<12}{bar(value)} {value:.2f}" for name, value in values]


def memory_lines(memory: Any) -> str:
    """All that a reader may want to know of one memory, its text last."""
    plain = memory_dict(memory)
    piece = f"{memory.piece + 1} of {memory.pieces}" if memory.pieces > 1 else ""
    rows = [
        ("id", plain["id"]),
        ("uri", plain["uri"]),
        ("state", plain["state"] + (", archived" if memory.archived else "")),
        ("said", f"{local(memory.occurred_at)} by {memory.role or '-'}"),
        ("in", f"{memory.source}, {memory.session} #{memory.seq}"),
        ("piece", piece),
        ("weight", f"{memory.weight:g}"),
        ("valid", _validity(memory)),
        ("replaced by", plain["replaced_by"]),
        ("replaces", ", ".join(plain["replaces"])),
        ("tags", ", ".join(memory.tags)),
        ("attributes", str(plain["attributes"] or "")),
    ]
    head = "\n".join(f"{name:<12}{one_line(value)}" for name, value in rows if value)
    return f"{head}\n\n{lines(memory.text)}"


def _validity(memory: Any) -> str:
    since = f"from {local(memory.valid_from)} " if memory.HasField("valid_from") else ""
    return (since + (f"until {local(memory.valid_until)}" if memory.HasField("valid_until") else "")).strip()
