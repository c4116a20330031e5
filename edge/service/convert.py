"""Between the wire's messages and the domain's nouns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2, timestamp_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2

from edge.admission.check import check_tags
from edge.config import Limits
from edge.errors import EdgeError, InvalidArgument
from edge.ports import GovernorState
from edge.recall.level import at_level
from edge.types import (
    Answer,
    Depth,
    Filter,
    Hit,
    Level,
    Memory,
    MemoryState,
    Micros,
    ModelInfo,
    Receipt,
    SensorFact,
    check_kind,
)
from edge.upkeep.decay import Rules
from edge.v1 import appliance_pb2, memory_pb2, types_pb2

_SECOND = 1_000_000
_FIRST: Micros = 0
# 2101-01-01, exclusive.
_LAST: Micros = 4_133_980_800 * _SECOND
_DOMAIN = "edge-memory"
_ORDINARY = Rules()


def timestamp(micros: Micros) -> timestamp_pb2.Timestamp:
    seconds, rest = divmod(micros, _SECOND)
    return timestamp_pb2.Timestamp(seconds=seconds, nanos=rest * 1000)


def duration(seconds: float) -> duration_pb2.Duration:
    nanos = round(max(seconds, 0.0) * 1e9)
    return duration_pb2.Duration(seconds=nanos // 1_000_000_000, nanos=nanos % 1_000_000_000)


def micros(value: timestamp_pb2.Timestamp, field: str) -> Micros:
    """Raises InvalidArgument outside the years 1970 to 2100."""
    if 0 <= value.nanos < 1_000_000_000:
        result = value.seconds * _SECOND + value.nanos // 1000
        if _FIRST <= result < _LAST:
            return result
    raise InvalidArgument(
        f"{field}: outside the years 1970 to 2100; give seconds and nanoseconds of UTC, as in RFC 3339", field=field
    )


def optional_micros(message: Any, name: str, field: str) -> Micros | None:
    return micros(getattr(message, name), field) if message.HasField(name) else None


def filter_of(message: types_pb2.Filter, limits: Limits, field: str = "filter") -> Filter:
    since = optional_micros(message, "since", f"{field}.since")
    until = optional_micros(message, "until", f"{field}.until")
    if since is not None and until is not None and since >= until:
        raise InvalidArgument(f"{field}.until: must be later than since", field=f"{field}.until")
    for name in ("kinds", "sources", "sessions", "states"):
        at_most(limits.filter_values, getattr(message, name), f"{field}.{name}")
    return Filter(
        since=since,
        until=until,
        tags=check_tags(message.tags, limits, f"{field}.tags"),
        kinds=tuple(check_kind(kind, f"{field}.kinds") for kind in message.kinds),
        sources=tuple(message.sources),
        sessions=tuple(message.sessions),
        include_archived=message.include_archived,
        states=tuple(MemoryState(_known(state, MemoryState, f"{field}.states")) for state in message.states),
    )


def at_most(limit: int, values: Sequence[object], field: str) -> None:
    if len(values) > limit:
        raise InvalidArgument(f"{field}: has {len(values)} values, more than {limit}; ask in parts", field=field)


def memory_message(
    memory: Memory, now: Micros, level: Level = Level.DETAIL, rules: Rules = _ORDINARY
) -> types_pb2.Memory:
    """`rules` say how it fades."""
    return types_pb2.Memory(
        id=memory.id,
        uri=memory.uri,
        space=memory.space,
        kind=memory.kind,
        state=int(memory.state),  # type: ignore[arg-type]  # the enums share their numbers
        text=at_level(memory.text, level),
        source=memory.source,
        session=memory.session,
        seq=memory.seq,
        role=memory.role,
        occurred_at=timestamp(memory.occurred_at),
        created_at=timestamp(memory.created_at),
        weight=memory.weight,
        tags=memory.tags,
        access_count=memory.access_count,
        decay=rules.strength(memory, now),
        archived=memory.archived,
        piece=memory.piece,
        pieces=memory.pieces,
        attributes=memory.attributes,
        replaced_by=memory.replaced_by or "",
        valid_from=None if memory.valid_from is None else timestamp(memory.valid_from),
        valid_until=None if memory.valid_until is None else timestamp(memory.valid_until),
    )


def hit_message(hit: Hit, now: Micros, rules: Rules = _ORDINARY) -> memory_pb2.Hit:
    """The recall has shown its text at the level asked for."""
    signals = hit.signals
    return memory_pb2.Hit(
        memory=memory_message(hit.memory, now, rules=rules),
        score=hit.score,
        relevance=hit.relevance,
        signals=memory_pb2.Signals(
            semantic=signals.semantic,
            lexical=signals.lexical,
            association=signals.association,
            time=signals.time,
            recency=signals.recency,
            frequency=signals.frequency,
            weight=signals.weight,
        ),
    )


def answer_message(
    answer: Answer, spaces: Sequence[str], now: Micros, rules: Rules = _ORDINARY
) -> memory_pb2.RecallResponse:
    return memory_pb2.RecallResponse(
        hits=[hit_message(hit, now, rules) for hit in answer.hits],
        depth=int(answer.depth),  # type: ignore[arg-type]  # the enums share their numbers
        trigger=answer.trigger,
        context=answer.context,
        timing=memory_pb2.RecallTiming(
            total=duration(dict(answer.timing).get("total", 0.0)),
            stages=[
                memory_pb2.StageTiming(stage=stage, took=duration(took))
                for stage, took in answer.timing
                if stage != "total"
            ],
        ),
        spaces=spaces,
        notes=answer.notes,
    )


def receipt_message(receipt: Receipt) -> memory_pb2.ForgetReceipt:
    return memory_pb2.ForgetReceipt(
        id=receipt.id,
        dry_run=receipt.dry_run,
        turns=receipt.turns,
        memories=receipt.memories,
        vectors=receipt.vectors,
        segments_rewritten=receipt.segments_rewritten,
        snapshots_dropped=receipt.snapshots_dropped,
        memory_ids=receipt.memory_ids,
        words=receipt.words,
        candidates=receipt.candidates,
        revisions=receipt.revisions,
        marks=receipt.marks,
        erased_at=None if receipt.erased_at is None else timestamp(receipt.erased_at),
    )


def model_message(info: ModelInfo, calibrated_at: Micros | None) -> appliance_pb2.ModelStatus:
    """A prepared model's id is `<id>+<variant>`."""
    return appliance_pb2.ModelStatus(
        id=info.id,
        dimension=info.dimension,
        device=info.device,
        workers=info.workers,
        bytes=info.bytes,
        variant=info.id.partition("+")[2] or "stock",
        calibrated_at=None if calibrated_at is None else timestamp(calibrated_at),
        language=info.language,
    )


def governor_message(state: GovernorState) -> appliance_pb2.GovernorStatus:
    """`since` is unset while the level never changed."""
    budget = state.budget
    return appliance_pb2.GovernorStatus(
        level=int(budget.level),  # type: ignore[arg-type]  # the enums share their numbers
        reason=budget.reason,
        since=timestamp(state.since) if state.since else None,
        changes=state.changes,
        padded_tokens=budget.padded_tokens,
        row_tokens=budget.row_tokens,
        threads=budget.threads,
        duty=budget.duty,
        background=budget.background,
        temperature=state.temperature,
        temperature_limit=state.limit,
        memory_available=state.memory_available,
        sensors=[_sensor(fact) for fact in state.sensors],
    )


def _sensor(fact: SensorFact) -> appliance_pb2.SensorStatus:
    lies = fact.value is not None and not math.isfinite(fact.value)
    return appliance_pb2.SensorStatus(
        name=fact.name,
        value=None if lies else fact.value,
        unit=fact.unit,
        problem=fact.problem or ("its value is not a number" if lies else ""),
    )


def level_of(value: int) -> Level:
    """Unset means detail; a number that this version does not know is refused."""
    return Level(_known(value, Level, "level")) if value else Level.DETAIL


def depth_of(value: int) -> Depth:
    return Depth(_known(value, Depth, "depth")) if value else Depth.AUTO


def _known(value: int, kind: type[Level] | type[Depth] | type[MemoryState], field: str) -> int:
    if value not in {int(member) for member in kind}:
        raise InvalidArgument(f"{field}: {value} is not known to this version", field=field)
    return value


def status_message(error: EdgeError) -> status_pb2.Status:
    """google.rpc.Status with ErrorInfo, BadRequest and RetryInfo details (google.aip.dev/193)."""
    # What a program may want to know besides the reason, from those errors that have it.
    metadata = getattr(error, "metadata", None)
    details: list[Any] = [error_details_pb2.ErrorInfo(reason=error.reason, domain=_DOMAIN, metadata=metadata)]
    if error.field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=error.message)
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    if error.retry_after is not None:
        details.append(error_details_pb2.RetryInfo(retry_delay=duration(error.retry_after)))
    packed = []
    for detail in details:
        any_message = any_pb2.Any()
        any_message.Pack(detail)
        packed.append(any_message)
    return status_pb2.Status(code=code_pb2.Code.Value(error.code), message=error.message, details=packed)


def trailing(error: EdgeError) -> tuple[grpc.StatusCode, str, tuple[tuple[str, str | bytes], ...]]:
    """(code, details, trailing metadata) for context.abort; a wait goes into grpc-retry-pushback-ms too (gRFC A6)."""
    metadata: list[tuple[str, str | bytes]] = [("grpc-status-details-bin", status_message(error).SerializeToString())]
    if error.retry_after is not None:
        metadata.append(("grpc-retry-pushback-ms", str(max(1, round(error.retry_after * 1000)))))
    return getattr(grpc.StatusCode, error.code), error.message, tuple(metadata)
