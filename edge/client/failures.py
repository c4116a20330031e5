"""From what gRPC says to edge.errors."""

from __future__ import annotations

import re
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import code_pb2, error_details_pb2, status_pb2

from edge import errors
from edge.errors import EdgeError

_DETAILS = "grpc-status-details-bin"
# What grpc.aio makes of a write to a stream that the box has just ended: the box's own status is lost to it.
_WRITE_FAILED = "Internal error from Core"
_PUSHBACK = "grpc-retry-pushback-ms"


def _descendants(kind: type[EdgeError]) -> list[type[EdgeError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in _descendants(child))]


_BY_REASON = {(kind.code, kind.reason): kind for kind in reversed(_descendants(EdgeError))}
_BY_CODE: dict[str, type[EdgeError]] = {
    "INVALID_ARGUMENT": errors.InvalidArgument,
    "OUT_OF_RANGE": errors.InvalidArgument,
    "NOT_FOUND": errors.NotFound,
    "UNAUTHENTICATED": errors.Unauthenticated,
    "PERMISSION_DENIED": errors.PermissionDenied,
    "RESOURCE_EXHAUSTED": errors.Exhausted,
    "FAILED_PRECONDITION": errors.FailedPrecondition,
    "ABORTED": errors.FailedPrecondition,
    "ALREADY_EXISTS": errors.FailedPrecondition,
    "UNAVAILABLE": errors.Unavailable,
    # Nobody cancels a call from outside: either side is closing.
    "CANCELLED": errors.Unavailable,
    "DEADLINE_EXCEEDED": errors.DeadlineExceeded,
    "UNIMPLEMENTED": errors.Unimplemented,
    "DATA_LOSS": errors.DataLoss,
}


def from_status(status: status_pb2.Status) -> EdgeError:
    """The error of a google.rpc.Status: class by (code, reason), with the field and the wait (seconds) it names."""
    try:
        code = code_pb2.Code.Name(status.code)
    except ValueError:
        code = "UNKNOWN"
    info = _detail(status, error_details_pb2.ErrorInfo())
    bad = _detail(status, error_details_pb2.BadRequest())
    retry = _detail(status, error_details_pb2.RetryInfo())
    reason = info.reason if info else ""
    kind = _BY_REASON.get((code, reason)) or _BY_CODE.get(code, EdgeError)
    return kind(
        status.message or f"the box answered {code} without a word; see its log",
        field=bad.field_violations[0].field if bad and bad.field_violations else "",
        reason=reason,
        # Not as a timedelta, which does not hold all that a box can say.
        retry_after=max(0.0, retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9) if retry else None,
    )


def _detail(status: status_pb2.Status, message: Any) -> Any:
    for packed in status.details:
        try:
            if packed.Unpack(message):
                return message
        except DecodeError:  # noqa: PERF203  # one detail that cannot be read must not hide the others
            continue
    return None


def from_rpc(failure: grpc.aio.AioRpcError, address: str) -> EdgeError:
    """The error of a failed call; one without google.rpc details comes from the transport, and names the address."""
    pushback: float | None = None
    # The type stubs say it is always there; without a connection it is None.
    for key, value in failure.trailing_metadata() or ():
        if key == _DETAILS:
            try:
                status = status_pb2.Status.FromString(value if isinstance(value, bytes) else value.encode())
            except DecodeError:
                continue
            if status.code == failure.code().value[0]:
                return from_status(status)
        elif key == _PUSHBACK:
            text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
            pushback = int(text) / 1000 if re.fullmatch(r"[0-9]{1,15}", text) else None
    code = failure.code().name
    details = failure.details() or "no details"
    if code == "INTERNAL" and details == _WRITE_FAILED:
        return errors.Unavailable(f"the stream to {address} broke; try again", reason="STREAM_BROKEN", retry_after=0.0)
    if code == "UNAVAILABLE":
        return unreachable(address, details, pushback)
    if code == "CANCELLED":
        return errors.Unavailable(f"the call to {address} was broken off ({details}); try again", retry_after=pushback)
    if code == "DEADLINE_EXCEEDED":
        return errors.DeadlineExceeded(f"no answer from {address} in the time given; try again, or give it more time")
    return _BY_CODE.get(code, EdgeError)(f"{address} answered {code}: {details}", retry_after=pushback)


def unreachable(address: str, details: str, retry_after: float | None = None) -> errors.Unavailable:
    """No box at the address: what was tried, and the next step."""
    # gRPC's own words list every layer it passed; the last is the system's.
    cause = details.rpartition(": ")[2] if "ailed to connect" in details else details
    return errors.Unavailable(
        f"no box answers at {address} ({cause}): is the box running? Start it with `edge serve`. "
        "One on another machine is found and trusted by `edge pair`, or named with EDGE_ADDRESS",
        reason="UNREACHABLE",
        retry_after=retry_after,
    )
