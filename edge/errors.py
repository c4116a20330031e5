"""Every failure, its gRPC code and the next step."""

from __future__ import annotations


class EdgeError(Exception):
    """A failure that its caller can act on.

    `message` is one sentence that says what is wrong, and what to do next. `reason` is a constant for programs
    (google.rpc.ErrorInfo.reason), `field` names the offending field of a request, `retry_after` is in seconds.
    """

    code = "INTERNAL"
    reason = "INTERNAL"

    def __init__(self, message: str, *, field: str = "", reason: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.reason = reason or type(self).reason
        self.retry_after = retry_after


class InvalidArgument(EdgeError):
    """The request can never work as it is; `field` names the part to change."""

    code = "INVALID_ARGUMENT"
    reason = "INVALID_FIELD"


class NotFound(EdgeError):
    """There is no such memory, space or model."""

    code = "NOT_FOUND"
    reason = "NOT_FOUND"


class Unauthenticated(EdgeError):
    """The caller did not say who it is, or is not known."""

    code = "UNAUTHENTICATED"
    reason = "TOKEN_NEEDED"


class PermissionDenied(EdgeError):
    """The caller is known, and may not do this."""

    code = "PERMISSION_DENIED"
    reason = "NOT_ALLOWED"


class Exhausted(EdgeError):
    """A limit or a resource is used up; `retry_after` says when it is worth trying again."""

    code = "RESOURCE_EXHAUSTED"
    reason = "OVERLOADED"


class FailedPrecondition(EdgeError):
    """Right request, wrong state: the message says what has to change first."""

    code = "FAILED_PRECONDITION"
    reason = "WRONG_STATE"


class ReadOnly(FailedPrecondition):
    """The data directory cannot be written; recalls go on."""

    reason = "READ_ONLY"


class Unavailable(EdgeError):
    """The box is starting, stopping or away; the same call may work later."""

    code = "UNAVAILABLE"
    reason = "UNAVAILABLE"


class DeadlineExceeded(EdgeError):
    """The caller's time ran out before the answer was ready."""

    code = "DEADLINE_EXCEEDED"
    reason = "DEADLINE_EXCEEDED"


class Unimplemented(EdgeError):
    """Named in the wire, built by a later version."""

    code = "UNIMPLEMENTED"
    reason = "NOT_BUILT_YET"


class DataLoss(EdgeError):
    """Something on disk does not match its checksum."""

    code = "DATA_LOSS"
    reason = "DAMAGED"


class DiskFull(Exhausted):
    """No room to write; nothing of the request was kept."""

    reason = "DISK_FULL"


class ModelError(FailedPrecondition):
    """The model's files are missing, foreign or damaged; the message says how to get good ones."""

    reason = "MODEL_UNUSABLE"


class VectorRefused(EdgeError):
    """The model gave NaN, infinity or a zero vector for this text; it can still be found by its words."""

    reason = "VECTOR_REFUSED"


class Locked(FailedPrecondition):
    """Another process has the data directory."""

    reason = "DATA_DIRECTORY_LOCKED"
