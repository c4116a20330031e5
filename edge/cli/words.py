"""A status in words, and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from edge.cli.show import local, one_line, rfc3339, seconds, size, table

# What a box hides, in words; an owner's own pattern goes by its name.
_CLASSES = {
    "credential": "password",
    "token": "API key",
    "bank_card": "bank card",
    "identity": "identity number",
    "private_key": "private key",
    "phone": "phone number",
    "address": "address line",
}
# SpaceStatus fields of what is out of the way of a recall.
_PUT_AWAY = ("archived", "cold")


def status_dict(status: Any) -> dict[str, Any]:
    """All of a status; times RFC 3339, durations in seconds, sizes in bytes, what is not known as None."""
    queue = status.queue
    return {
        "version": status.version,
        "started_at": rfc3339(status.started_at),
        "now": rfc3339(status.now),
        "ready": status.ready,
        "read_only": status.read_only,
        "model": _model_dict(status.model),
        "models": [_model_dict(model) for model in models(status)],
        "queue": {
            "recalls": queue.recalls,
            "ingests": queue.ingests,
            "ingest_tokens": queue.ingest_tokens,
            "estimated_drain_seconds": seconds(queue.estimated_drain),
            "tokens_per_second": _number(queue.tokens_per_second),
        },
        "governor": _governor_dict(status.governor) if status.HasField("governor") else None,
        "spaces": [
            {
                "name": space.name,
                "turns": space.turns,
                "memories": space.memories,
                "vectors": space.vectors,
                "pending": space.pending,
                "log_bytes": space.log_bytes,
                "log_segments": space.log_segments,
                "index_size": space.index_size,
                "index_overlay": space.index_overlay,
                "index_deleted": space.index_deleted,
                "rebuilding": space.rebuilding,
                "damaged_lines": space.damaged_lines,
                "models": [
                    {"id": model.id, "vectors": model.vectors, "pending": model.pending} for model in space.models
                ],
                "filtered": dict(sorted(space.filtered.items())),
                "hidden": dict(sorted(space.hidden.items())),
                "revised": dict(sorted(space.revised.items())),
                "archived": space.archived,
                "cold": space.cold,
                "filtered_samples": [
                    {
                        "rule": sample.rule,
                        "source": sample.source,
                        "session": sample.session,
                        "seq": sample.seq,
                        "length": sample.length,
                    }
                    for sample in space.samples
                ],
            }
            for space in status.spaces
        ],
        "resident_bytes": status.resident_bytes,
        "addresses": list(status.addresses),
        "data_directory": status.data_directory,
        "warnings": list(status.warnings),
        "streams": status.streams,
    }


def models(status: Any) -> list[Any]:
    """Every running model; the one, of a box that names no others."""
    return list(status.models) or [status.model]


def _model_dict(model: Any) -> dict[str, Any]:
    return {
        "id": model.id,
        "dimension": model.dimension,
        "device": model.device,
        "workers": model.workers,
        "bytes": model.bytes,
        "variant": model.variant,
        "calibrated_at": rfc3339(model.calibrated_at) if model.HasField("calibrated_at") else None,
        "language": model.language,
    }


def _governor_dict(governor: Any) -> dict[str, Any]:
    return {
        "level": level_name(governor),
        "reason": governor.reason,
        "since": rfc3339(governor.since) if governor.HasField("since") else None,
        "changes": governor.changes,
        "padded_tokens": governor.padded_tokens,
        "row_tokens": governor.row_tokens,
        "threads": governor.threads,
        "duty": _number(governor.duty),
        "background": governor.background,
        "temperature": optional(governor, "temperature"),
        "temperature_limit": optional(governor, "temperature_limit"),
        "memory_available": optional(governor, "memory_available"),
        "sensors": [
            {
                "name": sensor.name,
                "value": optional(sensor, "value"),
                "unit": sensor.unit,
                "problem": sensor.problem,
            }
            for sensor in governor.sensors
        ],
    }


def status_text(status: Any) -> str:
    """The same for a reader."""
    governor = status.governor if status.HasField("governor") else None
    state = "ready" if status.ready else "not ready"
    rows = [
        ("box", f"{state}, version {status.version}, since {local(status.started_at)}"),
        ("at", ", ".join(status.addresses)),
        ("data", status.data_directory),
        *[("model", line) for line in _model_lines(status)],
        ("level", level_line(governor) if governor else ""),
        ("budget", _budget_line(governor) if governor else ""),
        ("heat", heat_line(governor) if governor else ""),
        ("memory", _memory_line(status, governor)),
        (
            "queue",
            f"{pending_line(status)}, {counted(status.queue.recalls, 'recall')} waiting, "
            f"{status.queue.tokens_per_second:,.0f} tokens/s",
        ),
        ("streams", f"{counted(status.streams, 'stream')} open" if status.streams else ""),
        ("sensors", _sensors_line(governor.sensors) if governor else ""),
        ("filtered", counts(_over(status.spaces, "filtered"))),
        ("hidden", classes(_over(status.spaces, "hidden"))),
        ("by itself", counts(_over(status.spaces, "revised"))),
        ("put away", counts(+Counter({name: sum(getattr(s, name) for s in status.spaces) for name in _PUT_AWAY}))),
        ("read-only", status.read_only),
        *[("warning", warning) for warning in status.warnings],
    ]
    parts = ["\n".join(f"{name:<10}{one_line(value)}" for name, value in rows if value)]
    if governor and (silent := [sensor for sensor in governor.sensors if sensor.problem]):
        parts.append(table([("sensor", "problem"), *((one_line(s.name), one_line(s.problem)) for s in silent)]))
    if status.spaces:
        heads = ("space", "turns", "memories", "vectors", "pending", "log", "segments", "overlay", "deleted", "")
        parts.append(table([heads, *map(_space_row, status.spaces)]))
    return "\n\n".join(parts)


def _model_lines(status: Any) -> list[str]:
    """Several share out the vectors, so each says how many of them are its own."""
    running = models(status)
    if len(running) == 1:
        return [_model_line(running[0])]
    return [f"{_model_line(model)}; {_vectors(status, model)}" for model in running]


def _vectors(status: Any, model: Any) -> str:
    parts = [part for space in status.spaces for part in space.models if part.id == model.id]
    made, missing = sum(part.vectors for part in parts), sum(part.pending for part in parts)
    return f"{counted(made, 'vector')}, {missing:,} pending"


def _model_line(model: Any) -> str:
    measured = f", measured here {local(model.calibrated_at)}" if model.HasField("calibrated_at") else ""
    facts = f"{model.dimension} dimensions, {size(model.bytes)}"
    return f"{model.id} ({facts}), {counted(model.workers, 'thread')} on {model.device}{measured}"


def level_name(governor: Any) -> str:
    """ "nominal", "warm", "hot" or "critical"; a number where a later box has more levels."""
    known = governor.DESCRIPTOR.fields_by_name["level"].enum_type.values_by_number
    if governor.level not in known:
        return f"level {governor.level}"
    return str(known[governor.level].name.removeprefix("PRESSURE_").lower())


def level_line(governor: Any) -> str:
    since = f" since {local(governor.since)}" if governor.HasField("since") else ""
    return f"{level_name(governor)}{since}: {governor.reason or 'no reason given'}"


def _budget_line(governor: Any) -> str:
    waits = "" if governor.background else "; snapshots and rebuilds wait"
    threads = counted(governor.threads, "thread")
    return f"{governor.padded_tokens} tokens a batch, {threads}, {governor.duty:.0%} of the time{waits}"


def heat_line(governor: Any) -> str:
    """Empty where no sensor tells a temperature."""
    temperature, limit = optional(governor, "temperature"), optional(governor, "temperature_limit")
    if temperature is None:
        return ""
    return f"{temperature:.1f} °C" + (f", limit {limit:.1f} °C" if limit is not None else "")


def pending(status: Any) -> int:
    """Vectors still to be made; the queue holds only the next of them."""
    return max([int(status.queue.ingests), sum(int(space.pending) for space in status.spaces)])


def pending_line(status: Any) -> str:
    count, queue = pending(status), status.queue
    if not count:
        return "nothing to embed"
    # The box estimates for those in the queue; the others take as long each.
    left = seconds(queue.estimated_drain) * count / queue.ingests if queue.ingests else 0.0
    return f"{count:,} to embed" + (f", {span(left)} left" if left else "")


def _memory_line(status: Any, governor: Any) -> str:
    free = optional(governor, "memory_available") if governor else None
    return f"{size(status.resident_bytes)} resident" + (f", {size(free)} available" if free is not None else "")


def _sensors_line(sensors: Any) -> str:
    silent = sum(bool(sensor.problem) for sensor in sensors)
    if not silent:
        return f"{counted(len(sensors), 'sensor')} read" if sensors else ""
    return f"{len(sensors) - silent} of {counted(len(sensors), 'sensor')} read"


def _space_row(space: Any) -> tuple[str, ...]:
    remarks = ["rebuilding"] if space.rebuilding else []
    if space.damaged_lines:
        remarks.append(f"{counted(space.damaged_lines, 'damaged line')}: see `edge verify`")
    return (
        one_line(space.name),
        f"{space.turns:,}",
        f"{space.memories:,}",
        f"{space.vectors:,}",
        f"{space.pending:,}",
        size(space.log_bytes),
        f"{space.log_segments:,}",
        f"{space.index_overlay:,}",
        f"{space.index_deleted:,}",
        ", ".join(remarks),
    )


def _over(spaces: Any, name: str) -> Counter[str]:
    """The counts of all spaces together."""
    total: Counter[str] = Counter()
    for space in spaces:
        total.update(dict(getattr(space, name)))
    return total


def counts(rules: Mapping[str, int]) -> str:
    """How often each rule held, the most frequent first: 12 greeting, 3 too short."""
    ranked = sorted(rules.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count:,} {rule.replace('_', ' ')}" for rule, count in ranked)


def classes(hidden: Mapping[str, int]) -> str:
    """What was hidden, the most frequent first: 2 bank cards, 1 token."""
    ranked = sorted(hidden.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(
        f"{count:,} {name}" if name not in _CLASSES else counted(count, _CLASSES[name]) for name, count in ranked
    )


def counted(count: int, noun: str) -> str:
    """The number with its noun: 1 turn, 2 turns."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def span(length: float) -> str:
    """Seconds, for a reader: two units at most."""
    if length < 60:
        return f"{length:.1f} s" if length < 10 else f"{length:.0f} s"
    minutes = int(length // 60)
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def optional(message: Any, name: str) -> Any:
    """None where it is unset, or where a sensor gave what is no number."""
    return _number(getattr(message, name)) if message.HasField(name) else None


def _number(value: float) -> float | None:
    """JSON has no word for NaN and infinity."""
    return value if math.isfinite(value) else None
