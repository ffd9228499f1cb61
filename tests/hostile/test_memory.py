"""Attacks by strangers at the port: memory_max holds, and callers with a token are served, meanwhile and after."""

import os
import threading
import time

import pytest

from harness.process import wait_until
from http2 import PREFACE, Cut, RawClient, connect
from target import MIB, PATIENCE_S, Honest, Peak, for_seconds

UNARY = "/h5mirror.v1.Files/ListFiles"
STREAM = "/h5mirror.v1.Mirror/MirrorFile"
PROBE = "/grpc.health.v1.Health/Check"
ATTACK_S = 5


def attack(target, seconds: float, path: str, strike, **arguments) -> int:
    """Connects, and strikes until the time is over or the server hangs up; then again. Returns how often it hung up."""
    cuts = 0
    for _ in for_seconds(seconds):
        try:
            with RawClient(target.address, path, ca=target.ca, **arguments) as client:
                for _ in for_seconds(seconds):
                    strike(client)
                    if client.cut():
                        raise Cut
                return cuts
        except TimeoutError:
            return cuts
        except OSError:
            cuts += 1
        except Cut:
            cuts += 1
    return cuts


def check(target, memory_max: int, strike, path=UNARY, seconds=ATTACK_S, may_refuse=False, **arguments) -> int:
    """Attacks beside an honest client. `may_refuse`: some of its calls may be refused, not all."""
    with Peak(target) as peak, Honest(target) as honest:
        cuts = attack(target, seconds, path, strike, **arguments)
        wait_until(lambda: honest.served > 0, f"nobody is served: {honest.errors}", PATIENCE_S)
    target.assert_serves_again()
    print(f"peak {peak.bytes // MIB} MiB, {cuts} cuts, {honest.served} served, refused: {honest.errors}")
    assert peak.bytes < memory_max
    assert may_refuse or not honest.errors, honest.errors
    return cuts


@pytest.mark.parametrize("message", [None, b""], ids=["headers", "messages"])
def test_rapid_resets_without_a_token(start, any_door, message):
    target = start(**any_door)
    cuts = check(target, 256 * MIB, lambda client: client.reset(200, message))
    assert cuts > 0


@pytest.mark.parametrize("path", [STREAM, PROBE, "/no.such/Method"])
def test_rapid_resets_of_other_calls(start, path):
    target = start(tls=True, tokens=True)
    assert check(target, 256 * MIB, lambda client: client.reset(200, b""), path, seconds=3) > 0


def test_rapid_resets_with_more_memory(start):
    target = start(tls=True, tokens=True, memory_max="1GiB")
    assert check(target, 1024 * MIB, lambda client: client.reset(200, b"")) > 0


@pytest.mark.parametrize("tokens", [True, False], ids=["token", "open"])
def test_rapid_resets_of_an_admitted_client(start, tokens):
    target = start(tokens=tokens)
    check(target, 256 * MIB, lambda client: client.reset(200, b""), may_refuse=True, token=target.token)
    check(target, 256 * MIB, lambda client: client.reset(200, None), STREAM, seconds=3, may_refuse=True,
          token=target.token)


def test_60000_half_open_calls_of_one_connection(start, any_door):
    """The client does not acknowledge the server's settings, so that gRPC's limit of streams does not count."""
    target = start(**any_door)
    begun = 0

    def strike(client):
        nonlocal begun
        if begun < 60_000:
            client.half_open(500)
            begun += 500
        else:
            time.sleep(0.05)

    check(target, 256 * MIB, strike, acks_settings=False)


def test_ten_connections_reset_at_once(start, any_door):
    target = start(**any_door)
    with Peak(target) as peak, Honest(target) as honest:
        attackers = [threading.Thread(target=attack, args=(target, ATTACK_S, UNARY, lambda client: client.reset(200, b"")))
                     for _ in range(10)]
        for attacker in attackers:
            attacker.start()
        for attacker in attackers:
            attacker.join()
        wait_until(lambda: honest.served > 0, f"nobody is served: {honest.errors}", PATIENCE_S)
    target.assert_serves_again()
    print(f"peak {peak.bytes // MIB} MiB, {honest.served} served, refused: {honest.errors}")
    assert peak.bytes < 256 * MIB


def test_half_open_calls_of_an_open_server(start):
    """Many connections, and nobody needs a token."""
    target = start()
    clients = []
    with Peak(target) as peak, Honest(target) as honest:
        for _ in range(20):
            client = RawClient(target.address, UNARY, acks_settings=False)
            clients.append(client)
            try:
                for _ in range(6):
                    client.half_open(500)
            except Cut:
                pass
        wait_until(lambda: honest.served > 0, f"nobody is served: {honest.errors}", PATIENCE_S)
    for client in clients:
        client.close()
    target.assert_serves_again()
    print(f"peak {peak.bytes // MIB} MiB, {honest.served} served, refused: {honest.errors}")
    assert peak.bytes < 256 * MIB


@pytest.mark.parametrize("flood", ["ping", "settings"])
def test_floods_by_a_client_that_reads_nothing(start, flood):
    target = start(tls=True, tokens=True)

    def strike(client):
        client.socket.settimeout(1)
        getattr(client, flood)(1000)

    check(target, 256 * MIB, strike, seconds=3, reads=False)


def test_connections_that_say_nothing_more(start):
    """400 of them, most with half a preface: the oldest go for the newer ones, and honest clients come in."""
    target = start(tls=True, tokens=True, max_new_connections=100)
    with Peak(target) as peak, Honest(target) as honest:
        idle = []
        for n in range(400):
            try:
                connection = connect(target.address, ca=target.ca if n % 4 else None)
                connection.sendall(PREFACE[:20] if n % 4 else os.urandom(100))
            except OSError:
                continue
            idle.append(connection)
        wait_until(lambda: honest.served > 0, f"nobody is served: {honest.errors}", PATIENCE_S)
    assert peak.bytes < 256 * MIB
    wait_until(lambda: target.turned("max_new_connections") >= 50, "the metric does not grow", PATIENCE_S)
    target.wait_for_log("max_new_connections")
    for connection in idle:
        connection.close()
    target.assert_serves_again()
