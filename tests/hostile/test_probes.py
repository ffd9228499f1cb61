"""Health and reflection: few, and no thread is held for them."""

import threading

import grpc
import pytest

from harness.process import wait_until
from target import PATIENCE_S

WATCHERS_MAX = 32


def watch(target, channel):
    return target.stubs.health_grpc.HealthStub(channel).Watch(target.stubs.health.HealthCheckRequest())


def test_300_watches_hold_no_thread(start):
    """On 20 connections: one without a token may have 16 calls that have not begun."""
    target = start(tokens=True)
    serving = target.stubs.health.HealthCheckResponse.SERVING
    channels = [target.channel() for _ in range(20)]
    before = target.threads()
    calls = [watch(target, channel) for channel in channels for _ in range(15)]
    answers = []
    for call in calls:
        try:
            answers.append(next(call).status)
        except grpc.RpcError as error:
            answers.append(error.code())
    assert answers.count(serving) == WATCHERS_MAX
    assert answers.count(grpc.StatusCode.RESOURCE_EXHAUSTED) == len(calls) - WATCHERS_MAX
    assert target.threads() < before + WATCHERS_MAX
    target.assert_serves()
    for channel in channels:
        channel.close()

    def room() -> bool:
        with target.channel() as channel:
            try:
                return next(watch(target, channel)).status == serving
            except grpc.RpcError:
                return False

    wait_until(room, "no room after the watchers have gone", PATIENCE_S)


def test_check_wants_no_token(start):
    target = start(tls=True, tokens=True)
    with target.channel() as channel:
        stub = target.stubs.health_grpc.HealthStub(channel)
        for _ in range(100):
            answer = stub.Check(target.stubs.health.HealthCheckRequest(), timeout=PATIENCE_S)
            assert answer.status == target.stubs.health.HealthCheckResponse.SERVING


def reflect(target, channel, requests, metadata=None):
    stub = target.stubs.reflection_grpc.ServerReflectionStub(channel)
    return stub.ServerReflectionInfo(iter(requests), timeout=PATIENCE_S,
                                     metadata=target.metadata() if metadata is None else metadata)


def test_no_reflection_unless_asked_for(start):
    target = start(tokens=True)
    request = target.stubs.reflection.ServerReflectionRequest(list_services="")
    with target.channel() as channel, pytest.raises(grpc.RpcError) as refused:
        next(reflect(target, channel, [request]))
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_reflection_wants_a_token_and_tells_the_protos(start):
    target = start(tokens=True, reflection=True)
    pb = target.stubs.reflection
    requests = [pb.ServerReflectionRequest(list_services=""),
                pb.ServerReflectionRequest(file_containing_symbol="h5mirror.v1.Files"),
                pb.ServerReflectionRequest(file_by_filename="h5mirror/v1/types.proto"),
                pb.ServerReflectionRequest(file_containing_symbol="no.such.Thing")]
    with target.channel() as channel:
        with pytest.raises(grpc.RpcError) as refused:
            next(reflect(target, channel, requests, metadata=[]))
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
        services, symbol, file, nothing = reflect(target, channel, requests)
    assert "h5mirror.v1.Files" in [each.name for each in services.list_services_response.service]
    assert b"h5mirror/v1/files.proto" in symbol.file_descriptor_response.file_descriptor_proto[0]
    assert b"h5mirror/v1/types.proto" in file.file_descriptor_response.file_descriptor_proto[0]
    assert nothing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


@pytest.mark.parametrize("on", [False, True], ids=["off", "on"])
def test_300_streams_of_reflection_shut_nobody_out(start, on):
    """Of a client with a token, and of one without."""
    target = start(tokens=True, **({"reflection": True} if on else {}))
    for metadata in (target.metadata(), []):
        with target.channel() as channel:
            before = target.threads()
            stub = target.stubs.reflection_grpc.ServerReflectionStub(channel)
            over = threading.Event()
            calls = [stub.ServerReflectionInfo(iter(over.wait, True), metadata=metadata) for _ in range(300)]
            target.assert_serves()
            assert target.threads() < before + 100
            for call in calls:
                call.cancel()
            over.set()
    target.assert_serves()
