"""Every method that proto/ names is answered: built, or told to be later and why."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf import descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_calls import SECONDS, Wire, reason_of, refused
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status

from edge.service.later import LATER
from edge.v1 import appliance_pb2, graph_pb2, memory_pb2, pairing_pb2, working_pb2

FILES = (memory_pb2, graph_pb2, working_pb2, appliance_pb2, pairing_pb2)
SERVICES = [service for file in FILES for service in file.DESCRIPTOR.services_by_name.values()]
METHODS = {f"/{service.full_name}/{method.name}": method for service in SERVICES for method in service.methods}
BUILT = {
    "/edge.v1.MemoryService/Ingest",
    "/edge.v1.MemoryService/Recall",
    "/edge.v1.MemoryService/RecallStream",
    "/edge.v1.MemoryService/Remember",
    "/edge.v1.MemoryService/GetMemory",
    "/edge.v1.MemoryService/ListMemories",
    "/edge.v1.MemoryService/Forget",
    "/edge.v1.MemoryService/ReviewCandidate",
    "/edge.v1.MemoryService/Archive",
    "/edge.v1.MemoryService/Undo",
    "/edge.v1.MemoryService/ListDeeds",
    "/edge.v1.WorkingService/PutState",
    "/edge.v1.WorkingService/GetState",
    "/edge.v1.WorkingService/ListStates",
    "/edge.v1.WorkingService/DeleteState",
    "/edge.v1.WorkingService/RecentTurns",
    "/edge.v1.ApplianceService/GetStatus",
    "/edge.v1.ApplianceService/WatchStatus",
    "/edge.v1.ApplianceService/Rebuild",
    "/edge.v1.ApplianceService/ListSpaces",
    "/edge.v1.ApplianceService/CreateSpace",
    "/edge.v1.ApplianceService/DeleteSpace",
    "/edge.v1.ApplianceService/CreateToken",
    "/edge.v1.ApplianceService/ListTokens",
    "/edge.v1.ApplianceService/RevokeToken",
    "/edge.v1.PairingService/Pair",
}


def call(channel: grpc.Channel, path: str, method: descriptor.MethodDescriptor, *messages: bytes) -> Any:
    """The first answer to these messages, as bytes."""
    if method.client_streaming and method.server_streaming:
        return next(channel.stream_stream(path)(iter(messages), timeout=SECONDS))
    if method.client_streaming:
        return channel.stream_unary(path)(iter(messages), timeout=SECONDS)
    if method.server_streaming:
        return next(channel.unary_stream(path)(messages[0], timeout=SECONDS))
    return channel.unary_unary(path)(messages[0], timeout=SECONDS)


def test_every_method_is_either_built_or_comes_later() -> None:
    assert METHODS.keys() == BUILT | LATER.keys()
    assert not BUILT & LATER.keys()


@pytest.mark.parametrize("path", sorted(LATER))
def test_what_comes_later_says_so(wire: Wire, path: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        call(wire.channel, path, METHODS[path], b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert LATER[path] in caught.value.details()
    status = rpc_status.from_call(caught.value)
    assert status is not None
    assert reason_of(status) == "NOT_BUILT_YET"


# An empty Rebuild is lawful, and every other test of the shared box would wait for it; test_status asks for one. An
# empty Undo would undo what another test has done.
@pytest.mark.parametrize("path", sorted(BUILT - {"/edge.v1.ApplianceService/Rebuild", "/edge.v1.MemoryService/Undo"}))
def test_no_built_method_is_unimplemented_or_fails_inside_on_an_empty_message(wire: Wire, path: str) -> None:
    method = METHODS[path]
    try:
        call(wire.channel, path, method, b"")
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, error


@pytest.mark.parametrize("path", sorted(BUILT))
@pytest.mark.parametrize("rubbish", [b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x0b" * 1000, b"\x0a\x01\xc0"])
def test_bytes_that_are_no_message_are_the_caller_s_fault(wire: Wire, path: str, rubbish: bytes) -> None:
    # Where field 1 is no text, the last of them is a field of another type, which proto3 passes over.
    try:
        call(wire.channel, path, METHODS[path], rubbish)
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, error


def test_a_method_that_nobody_named_is_unimplemented(wire: Wire) -> None:
    for path in ("/edge.v1.MemoryService/Nothing", "/edge.v2.MemoryService/Recall", "/nothing"):
        with refused(grpc.StatusCode.UNIMPLEMENTED):
            wire.channel.unary_unary(path)(b"", timeout=SECONDS)


@pytest.mark.parametrize("service", ["", *(service.full_name for service in SERVICES)])
def test_health_says_serving(wire: Wire, service: str) -> None:
    answer = health_pb2_grpc.HealthStub(wire.channel).Check(
        health_pb2.HealthCheckRequest(service=service), timeout=SECONDS
    )
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_health_does_not_know_a_service_that_is_not_there(wire: Wire) -> None:
    with refused(grpc.StatusCode.NOT_FOUND):
        health_pb2_grpc.HealthStub(wire.channel).Check(
            health_pb2.HealthCheckRequest(service="edge.v1.Nothing"), timeout=SECONDS
        )


def reflected(wire: Wire, **request: Any) -> reflection_pb2.ServerReflectionResponse:
    stub = reflection_pb2_grpc.ServerReflectionStub(wire.channel)
    asked = reflection_pb2.ServerReflectionRequest(**request)
    answer: reflection_pb2.ServerReflectionResponse = next(stub.ServerReflectionInfo(iter([asked]), timeout=SECONDS))
    return answer


def test_reflection_lists_every_service(wire: Wire) -> None:
    names = {service.name for service in reflected(wire, list_services="").list_services_response.service}
    assert {service.full_name for service in SERVICES} <= names
    assert {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} <= names


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: str(service.full_name))
def test_reflection_tells_the_methods_of_a_service(wire: Wire, service: descriptor.ServiceDescriptor) -> None:
    answer = reflected(wire, file_containing_symbol=service.full_name)
    files = [FileDescriptorProto.FromString(raw) for raw in answer.file_descriptor_response.file_descriptor_proto]
    told = {method.name for file in files for found in file.service if found.name == service.name
            for method in found.method}  # fmt: skip
    assert told == {method.name for method in service.methods}
