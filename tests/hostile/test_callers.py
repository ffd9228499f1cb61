"""Callers with a token that wait, read nothing or open all they can: others are served, and memory_max holds."""

import collections
import os
import queue
import signal
import threading
import time

import grpc
import pytest

from harness import paths
from harness.process import run, wait_until
from target import MIB, PATIENCE_S, Honest, Peak

FULL = grpc.StatusCode.RESOURCE_EXHAUSTED


class Session:
    """A stream that writes. It sends the given messages, and stays open."""

    def __init__(self, target, channel, token: str, *requests):
        self._requests = queue.SimpleQueue()
        for request in requests:
            self._requests.put(request)
        stub = target.stubs.mirror_grpc.MirrorStub(channel)
        self.call = stub.MirrorFile(iter(self._requests.get, None), metadata=target.metadata(token))

    def send(self, request) -> None:
        self._requests.put(request)

    def close(self) -> None:
        self._requests.put(None)
        self.call.cancel()


def open_request(target, name: str):
    """A new file."""
    mirror, types = target.stubs.mirror, target.stubs.types
    return mirror.MirrorFileRequest(open=mirror.OpenSession(
        protocol=types.ProtocolRange(oldest=1, newest=1), name=name, session_id=os.urandom(16),
        intent=mirror.INTENT_CREATE, origin=types.Origin(machine_id="hostile", path=f"/{name}")))


def opened(target, channel, token: str, name: str) -> Session:
    """A session whose file is open."""
    session = Session(target, channel, token, open_request(target, name))
    assert next(session.call).opened.file_id
    return session


def make_file(target, name: str, megabytes: int = 1) -> None:
    """A file of the honest caller, of one version."""
    mirror = target.stubs.mirror
    with target.channel() as channel:
        session = opened(target, channel, target.token, name)
        for n in range(megabytes):
            session.send(mirror.MirrorFileRequest(writes=mirror.Writes(offset=[n * MIB], length=[MIB], data=bytes(MIB))))
        session.send(mirror.MirrorFileRequest(barrier=mirror.Barrier(
            seq=1, kind=target.stubs.types.BARRIER_KIND_COMMIT, size_bytes=megabytes * MIB)))
        next(answer for answer in session.call if answer.WhichOneof("response") == "cut_durable")
        session.close()


@pytest.fixture
def two(start):
    """A server, and the tokens of a greedy caller and of an honest one, whose token the target has."""
    def start_with(**options):
        target = start(tokens=True, **options)
        greedy = add_token(target, "greedy")
        reload(target)
        return target, greedy

    return start_with


def add_token(target, name: str) -> str:
    return run([paths.BIN / "h5mirrord", "token", "add", name, "--tokens-file", target.keys / "tokens"],
               target.directory).ok().out.split()[-1]


def reload(target) -> None:
    os.kill(target.pid, signal.SIGHUP)
    target.wait_for_log("reloaded log")


def code_soon(call) -> grpc.StatusCode:
    """The status that a call ends with."""
    wait_until(call.done, "the end of the call", PATIENCE_S)
    return call.code()


def count_refused(calls, wanted: int) -> None:
    """Waits until so many of the calls were refused for a share, and sees that no other has ended."""
    def done() -> int:
        return sum(call.done() for call in calls)

    try:
        wait_until(lambda: done() >= wanted, "", PATIENCE_S)
    except AssertionError:
        raise AssertionError(f"{done()} of {len(calls)} ended, not {wanted}") from None
    assert {call.code() for call in calls if call.done()} == {FULL}


def attack(target, channels, begin, count: int, refused: int) -> None:
    """`count` calls that `begin` makes on each channel: so many in all are refused, and others are served."""
    with Peak(target) as peak, Honest(target) as honest:
        calls = [begin(channel) for channel in channels for _ in range(count)]
        count_refused(calls, refused)
        served = honest.served
        wait_until(lambda: honest.served > served, "others are served", PATIENCE_S)
    for channel in channels:
        channel.close()
    assert not honest.errors
    assert peak.bytes < 256 * MIB


def test_300_commits_that_wait(two):
    target, greedy = two()
    with target.channel() as writers, target.channel() as callers:
        writer = opened(target, writers, target.token, "a.h5")
        stub = target.stubs.versions_grpc.VersionsStub(callers)
        request = target.stubs.versions.CommitVersionRequest(name="a.h5", wait={"seconds": 3600})
        before = target.threads()
        calls = []
        for _ in range(300):
            request.request_id = os.urandom(16)
            calls.append(stub.CommitVersion.future(request, metadata=target.metadata(greedy)))
        with Honest(target) as honest:
            wait_until(lambda: honest.served > 5, "others are served", PATIENCE_S)
        assert not honest.errors
        assert not any(call.done() for call in calls)
        assert target.threads() < before + 100
        for call in calls:
            call.cancel()
        writer.close()


def test_5000_waits_for_a_cut(two):
    """On ten connections; 4,096 have room in 256 MiB, and one token has half."""
    target, greedy = two()
    make_file(target, "a.h5")
    request = target.stubs.snapshots.WaitForCutRequest(name="a.h5", after_cut=1 << 60, timeout={"seconds": 3600})

    def wait(channel):
        stub = target.stubs.snapshots_grpc.SnapshotsStub(channel)
        return stub.WaitForCut.future(request, metadata=target.metadata(greedy))

    attack(target, [target.channel() for _ in range(10)], wait, 500, refused=5000 - 2048)


def test_reads_that_nobody_takes(two):
    target, greedy = two()
    make_file(target, "a.h5", megabytes=8)
    request = target.stubs.versions.ReadVersionRequest(name="a.h5")

    def read(channel):
        stub = target.stubs.versions_grpc.VersionsStub(channel)
        return stub.ReadVersion(request, metadata=target.metadata(greedy))

    attack(target, [target.channel(fixed_window=True) for _ in range(10)], read, 100, refused=1000 - 512)


def test_empty_sessions(two):
    target, greedy = two(max_sessions=32)
    with target.channel() as channel:
        sessions = [Session(target, channel, greedy) for _ in range(40)]
        count_refused([session.call for session in sessions], 40 - 16)
        modest = opened(target, channel, target.token, "b.h5")
        modest.close()
        for session in sessions:
            session.close()


def test_a_removed_token(two):
    target, greedy = two()
    with target.channel() as channel:
        session = opened(target, channel, greedy, "a.h5")
        other = opened(target, channel, target.token, "b.h5")
        follower = target.stubs.snapshots_grpc.SnapshotsStub(channel).FollowFile(
            target.stubs.snapshots.FollowFileRequest(name="b.h5"), metadata=target.metadata(greedy))
        waiter = target.stubs.snapshots_grpc.SnapshotsStub(channel).WaitForCut.future(
            target.stubs.snapshots.WaitForCutRequest(name="b.h5", after_cut=1 << 60, timeout={"seconds": 3600}),
            metadata=target.metadata(greedy))
        target.get_server(channel)  # They have come to the server before it.
        run([paths.BIN / "h5mirrord", "token", "remove", "greedy", "--tokens-file", target.keys / "tokens"],
            target.directory).ok()
        os.kill(target.pid, signal.SIGHUP)
        for call in session.call, follower, waiter:
            assert code_soon(call) == grpc.StatusCode.UNAUTHENTICATED
        target.wait_for_log('token "greedy": 3 sessions and calls end')
        target.get_server(channel)
        assert other.call.is_active()
        other.close()


class Flood:
    """Calls in a closed loop each, as fast as answers come, in `count` threads."""

    def __init__(self, count: int, call):
        self.codes: collections.Counter = collections.Counter()
        self._call, self._stop = call, threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(count)]

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._call()
                self.codes[None] += 1
            except grpc.RpcError as error:
                self.codes[error.code()] += 1

    def __enter__(self) -> "Flood":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def test_a_caller_over_its_limit_of_calls_is_slow(two):
    """Its refusals are held back, so it asks some dozens of times a second and not thousands; nobody else is refused."""
    threads = 16
    target, greedy = two(tables="[[limits]]\nusers = [\"greedy\"]\ncalls = 5\n")
    with target.channel() as channel, Honest(target) as honest:
        metadata = target.metadata(greedy)
        start = time.monotonic()
        with Flood(threads, lambda: target.get_server(channel, metadata=metadata)) as flood:
            wait_until(lambda: flood.codes[FULL] >= 5 * threads, "refusals", PATIENCE_S)
            served = honest.served
            wait_until(lambda: honest.served > served, "others are served", PATIENCE_S)
        took = time.monotonic() - start
        assert set(flood.codes) == {None, FULL}
        # Of each thread two or three a second, ten a second at once and as many again after a pause, and the first of
        # all.
        assert flood.codes[FULL] <= 2.5 * threads * (took + 1) + 10 * (took + 1) + threads, (flood.codes, took)
        assert not honest.errors
        # It is served as before once it asks less.
        wait_until(lambda: target.get_server(channel, metadata=metadata) is not None, "it is served again", PATIENCE_S)


def test_sessions_over_a_limit_leave_other_calls_alone(two):
    target, greedy = two(tables="[[limits]]\nusers = [\"greedy\"]\nsessions = 2\n")
    with target.channel() as channel:
        held = [opened(target, channel, greedy, f"{n}.h5") for n in range(2)]

        def refused() -> None:
            session = Session(target, channel, greedy, open_request(target, "more.h5"))
            next(session.call)

        with Flood(8, refused) as flood:
            wait_until(lambda: flood.codes[FULL] >= 40, "refusals", PATIENCE_S)
            target.get_server(channel, metadata=target.metadata(greedy))
            opened(target, channel, target.token, "honest.h5").close()
        assert set(flood.codes) == {FULL}
        held.pop().close()

        def is_open() -> bool:
            try:
                held.append(opened(target, channel, greedy, "3.h5"))
                return True
            except grpc.RpcError as error:
                assert error.code() == FULL
                return False

        wait_until(is_open, "a slot that was given back", PATIENCE_S)
        for session in held:
            session.close()
