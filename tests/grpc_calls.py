"""The wire as a program in any language sees it: the stubs of proto/, nothing of edge.client."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import grpc
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from edge.v1 import appliance_pb2, appliance_pb2_grpc, memory_pb2, memory_pb2_grpc, types_pb2, working_pb2_grpc

# No test waits longer for one call; a box that is busy with its neighbours' tests still answers in this time.
SECONDS = 60.0
Results = Sequence[memory_pb2.IngestResult]
IngestState = memory_pb2.IngestState


class Wire:
    """A plain connection to a box: stubs, and the calls that tests make most."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.insecure_channel(address)
        self.memory = memory_pb2_grpc.MemoryServiceStub(self.channel)
        self.appliance = appliance_pb2_grpc.ApplianceServiceStub(self.channel)
        self.working = working_pb2_grpc.WorkingServiceStub(self.channel)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def answers(self, *messages: memory_pb2.IngestRequest) -> list[memory_pb2.IngestResponse]:
        """All responses to these messages on one stream."""
        return list(self.memory.Ingest(iter(messages), timeout=SECONDS))

    def ingest(self, *turns: types_pb2.Turn) -> tuple[Results, Results]:
        """The results of one message: when the log had it, and when it could be found."""
        first, second = self.answers(memory_pb2.IngestRequest(turns=turns))
        return first.results, second.results

    def say(self, *texts: str, space: str, session: str = "", **more: Any) -> list[str]:
        """Ingests these texts and waits until they can be found; their memories' ids."""
        session = session or uuid.uuid4().hex
        _, found = self.ingest(
            *(turn(text, seq=seq, space=space, session=session, **more) for seq, text in enumerate(texts))
        )
        assert [result.state for result in found] == [IngestState.INGEST_STATE_SEARCHABLE] * len(texts), found
        return [memory_id for result in found for memory_id in result.memory_ids]

    def recall(self, query: str, *spaces: str, within: float = SECONDS, **more: Any) -> memory_pb2.RecallResponse:
        request = memory_pb2.RecallRequest(query=query, spaces=spaces, **more)
        response: memory_pb2.RecallResponse = self.memory.Recall(request, timeout=within)
        return response

    def texts(self, query: str, *spaces: str, **more: Any) -> list[str]:
        return [hit.memory.text for hit in self.recall(query, *spaces, **more).hits]

    def listed(self, space: str, **more: Any) -> list[types_pb2.Memory]:
        """All memories of a space, newest first, read page by page."""
        memories: list[types_pb2.Memory] = []
        token = ""
        while True:
            request = memory_pb2.ListMemoriesRequest(spaces=[space], page_token=token, **more)
            page = self.memory.ListMemories(request, timeout=SECONDS)
            memories += page.memories
            token = page.next_page_token
            if not token:
                return memories

    def status(self) -> appliance_pb2.Status:
        status: appliance_pb2.Status = self.appliance.GetStatus(
            appliance_pb2.GetStatusRequest(), timeout=SECONDS
        ).status
        return status


def turn(text: str, *, seq: int = 0, session: str = "", source: str = "test", **more: Any) -> types_pb2.Turn:
    """A turn of a session of its own, unless one is named."""
    session = session or uuid.uuid4().hex
    return types_pb2.Turn(source=source, session=session, seq=seq, role=more.pop("role", "user"), text=text, **more)


def message(*turns: types_pb2.Turn, ref: str = "") -> memory_pb2.IngestRequest:
    return memory_pb2.IngestRequest(client_ref=ref, turns=turns)


def at(seconds: int, nanos: int = 0) -> Timestamp:
    return Timestamp(seconds=seconds, nanos=nanos)


def field_of(status: status_pb2.Status) -> str:
    """The field that google.rpc.BadRequest names, or nothing."""
    bad = error_details_pb2.BadRequest()
    for detail in status.details:
        if detail.Unpack(bad):
            return str(bad.field_violations[0].field)
    return ""


def reason_of(status: status_pb2.Status) -> str:
    info = error_details_pb2.ErrorInfo()
    for detail in status.details:
        if detail.Unpack(info):
            return str(info.reason)
    return ""


def retry_of(status: status_pb2.Status) -> float:
    """Seconds of google.rpc.RetryInfo; 0 without one."""
    retry = error_details_pb2.RetryInfo()
    for detail in status.details:
        if detail.Unpack(retry):
            return float(retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9)
    return 0.0


@contextlib.contextmanager
def refused(code: grpc.StatusCode, field: str | None = None) -> Iterator[None]:
    """The call inside fails with this code, and names this field."""
    try:
        yield
    except grpc.RpcError as error:
        assert error.code() is code, f"{error.code()}: {error.details()}"
        if field is not None:
            status = rpc_status.from_call(error)
            assert status is not None
            assert field_of(status) == field
            assert status.message.startswith(field)
        return
    raise AssertionError(f"nothing was refused, where {code} was due")


def rejected(result: memory_pb2.IngestResult) -> tuple[int, str]:
    """(code, field) of a turn that was not taken; an AssertionError when it was."""
    assert result.state == IngestState.INGEST_STATE_REJECTED, result
    return result.error.code, field_of(result.error)
