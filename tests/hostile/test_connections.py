"""Connections: a lack of descriptors, limits, and the lines of log and metrics about them."""

import contextlib
import os
import re
import resource
import socket
import subprocess
import time
from pathlib import Path

import grpc
import pytest

from harness.process import wait_until
from http2 import Cut, RawClient, connect
from target import PATIENCE_S, for_seconds


def ended(connection: socket.socket) -> bool:
    """Whether the server has hung up."""
    connection.settimeout(0.01)
    try:
        while connection.recv(1 << 16):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


@contextlib.contextmanager
def busy(count: int):
    """So many programs that only compute."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.parametrize("unix", [False, True], ids=["tcp", "unix"])
def test_server_without_descriptors_accepts_again(start, unix):
    """As many descriptors as are open already: every connection fails with EMFILE, until there are more."""
    target = start(unix=unix)
    target.assert_serves()
    wait_until(lambda: target.metric("h5mirror_server_connections") == 0, "the connection stays", PATIENCE_S)
    soft, hard = resource.prlimit(target.pid, resource.RLIMIT_NOFILE)
    held = [connect(target.address) for _ in range(8)]
    wait_until(lambda: target.metric("h5mirror_server_connections") == 8, "they are not accepted", PATIENCE_S)
    resource.prlimit(target.pid, resource.RLIMIT_NOFILE, (len(target.descriptors()) - 4, hard))
    refused = [connect(target.address) for _ in range(40)]
    # Not all: a descriptor or two may be closed meanwhile.
    wait_until(lambda: sum(map(ended, refused)) >= 30, "nobody hangs up", PATIENCE_S)
    resource.prlimit(target.pid, resource.RLIMIT_NOFILE, (soft, hard))
    wait_until(lambda: target.turned("descriptors") >= 30, "the metric does not grow", PATIENCE_S)
    target.wait_for_log("no descriptors left")
    for connection in held + refused:
        connection.close()
    target.assert_serves()


def test_descriptor_that_serves_to_refuse_is_given_to_no_connection(start):
    """A connection takes two. One becomes free after the first refusal: with the reserve, there would be two."""
    target = start()
    target.assert_serves()
    wait_until(lambda: target.metric("h5mirror_server_connections") == 0, "the connection stays", PATIENCE_S)
    scraper = target.connect_to_metrics()
    client = scraper.getsockname()
    wait_until(lambda: target.holds(client), "it is not accepted", PATIENCE_S)
    soft, hard = resource.prlimit(target.pid, resource.RLIMIT_NOFILE)
    taken = target.descriptors()
    resource.prlimit(target.pid, resource.RLIMIT_NOFILE, (min(set(range(len(taken) + 1)) - taken), hard))
    tried = [connect(target.address) for _ in range(5)]
    wait_until(lambda: sum(map(ended, tried)) >= 4, "nobody hangs up", PATIENCE_S)
    scraper.close()
    wait_until(lambda: not target.holds(client), "its descriptor stays open", PATIENCE_S)
    tried += [connect(target.address) for _ in range(20)]
    # One is let in, if another descriptor was about to be closed.
    wait_until(lambda: sum(map(ended, tried)) >= len(tried) - 2, "the rest waits", PATIENCE_S)
    resource.prlimit(target.pid, resource.RLIMIT_NOFILE, (soft, hard))
    for connection in tried:
        connection.close()
    target.assert_serves()


def test_300_connections_with_300_descriptors(start):
    target = start(descriptors="300:300")
    held = [connect(target.address) for _ in range(300)]
    for connection in held:
        connection.close()
    target.assert_serves()


def test_newest_waits_for_the_descriptors_of_those_that_were_cut_for_it(start):
    """gRPC's threads get little of the machine, the door's much: they close later than it accepts."""
    target = start(descriptors="300:300")
    for task in Path(f"/proc/{target.pid}/task").iterdir():
        if (task / "comm").read_text().strip() != "h5m-door":
            os.setpriority(os.PRIO_PROCESS, int(task.name), 12)
    with busy(2 * os.cpu_count()):
        held = [connect(target.address) for _ in range(300)]
        target.assert_serves()
    for connection in held:
        connection.close()


def test_soft_limit_of_descriptors_is_raised(start):
    target = start(descriptors="256:4096")
    assert resource.prlimit(target.pid, resource.RLIMIT_NOFILE) == (4096, 4096)


def test_as_many_connections_as_configured(start):
    """Admitted ones stay, the next one is refused, and comes in when one of them has gone."""
    target = start(max_connections=20)
    channels = [target.channel() for _ in range(20)]
    for channel in channels:
        target.get_server(channel)
    with connect(target.address) as refused:
        wait_until(lambda: ended(refused), "nobody hangs up", PATIENCE_S)
    wait_until(lambda: target.turned("max_connections") >= 1, "the metric does not grow", PATIENCE_S)
    assert target.metric("h5mirror_server_connections") == 20
    for channel in channels:
        target.get_server(channel)
    for channel in channels:
        channel.close()
    wait_until(lambda: target.metric("h5mirror_server_connections") < 20, "the connections stay", PATIENCE_S)
    target.assert_serves()


def test_user_of_a_unix_socket_has_a_limit(start):
    target = start(unix=True, max_peer_connections=10)
    held = [connect(target.address) for _ in range(10)]
    with connect(target.address) as refused:
        wait_until(lambda: ended(refused), "nobody hangs up", PATIENCE_S)
    wait_until(lambda: target.turned("max_peer_connections") == 1, "the metric does not grow", PATIENCE_S)
    target.wait_for_log("connection from uid ")
    for connection in held:
        connection.close()
    wait_until(lambda: target.metric("h5mirror_server_connections") == 0, "the connections stay", PATIENCE_S)
    target.assert_serves()


def test_connection_without_a_token_is_cut_in_time(start):
    """A connection that has shown its token stays, even if it is silent for longer; so does a probe's."""
    target = start(tokens=True, token_timeout="2s")
    with target.channel() as honest, target.channel() as probe, connect(target.address) as silent, \
            RawClient(target.address, "/h5mirror.v1.Server/GetServer", token="wrong") as wrong:
        target.get_server(honest)
        stub = target.stubs.health_grpc.HealthStub(probe)
        states = stub.Watch(target.stubs.health.HealthCheckRequest())
        assert next(states).status == target.stubs.health.HealthCheckResponse.SERVING
        wrong.call()
        wait_until(lambda: ended(silent) and wrong.cut(), "nobody hangs up", PATIENCE_S)
        wait_until(lambda: target.turned("token_timeout") >= 2, "the metric does not grow", PATIENCE_S)
        # A third one, whose time began after that of the others was over: they are older than it by then.
        with connect(target.address) as third:
            wait_until(lambda: ended(third), "nobody hangs up", PATIENCE_S)
        wait_until(lambda: target.turned("token_timeout") >= 3, "the metric does not grow", PATIENCE_S)
        target.get_server(honest)
        assert states.is_active()
        assert target.metric("h5mirror_server_connections") == 2
    target.wait_for_log("token_timeout")


def test_log_has_a_line_a_second(start):
    target = start(max_connections=16)
    channels = [target.channel() for _ in range(16)]
    for channel in channels:
        target.get_server(channel)
    began = time.monotonic()
    count = 0
    for _ in for_seconds(3):
        with connect(target.address):
            count += 1
    seconds = time.monotonic() - began
    wait_until(lambda: target.turned("max_connections") >= count, "not all are refused", PATIENCE_S)
    lines = [line for line in target.log().splitlines() if "connection from" in line]
    assert 1 <= len(lines) <= seconds + 2, lines
    assert count > 20
    assert any(re.search(r"; \d+ more", line) for line in lines), lines
    for channel in channels:
        channel.close()


def test_two_servers_do_not_share_a_port(start):
    first = start()
    with pytest.raises(AssertionError, match="cannot listen on .*in use"):
        start(listen=first.address)
    first.assert_serves()


def test_peer_is_told_as_before(start):
    """The log names address and port of a caller without a token."""
    target = start(tokens=True)
    with target.channel() as channel:
        with pytest.raises(grpc.RpcError) as refused:
            target.get_server(channel, metadata=[])
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
    assert "wants a token" in refused.value.details()
    wait_until(lambda: re.search(r"GetServer from ipv[46]:\S+:\d+: UNAUTHENTICATED", target.log()),
               f"no such line:\n{target.log()}", PATIENCE_S)


def test_after_a_cut_connections_from_there_wait_in_line(start):
    """One each 100 ms, for 5 s at most: of 80 at once most wait, and the rest is refused. Then all is as before."""
    target = start()
    held = []

    def strike() -> bool:
        with RawClient(target.address, "/h5mirror.v1.Files/ListFiles", acks_settings=False) as client:
            try:
                for _ in range(6):
                    client.half_open(500)
            except Cut:
                pass
            wait_until(client.cut, "it is not cut", PATIENCE_S)
        held.extend(connect(target.address) for _ in range(80))
        return target.turned("after_cuts") > 0

    wait_until(strike, "nobody is refused after a cut", PATIENCE_S)
    assert target.turned("calls") > 0
    for connection in held:
        connection.close()
    target.assert_serves_again()
