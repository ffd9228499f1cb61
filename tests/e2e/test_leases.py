"""A writer whose lease was taken over never writes again, even if its messages arrive late, twice or out of order."""

import base64
import os
import signal
import time

import pytest

from harness.process import wait_until
from harness.proxy import Proxy
from harness.wire import Wire

PAGE = 4096
TTL = pytest.mark.site(options={"lease_ttl": "3s", "durable_every": "100ms"})


@pytest.fixture
def proxied(site):
    with Proxy(site.server.address, record=True) as proxy:
        site.through = proxy
        yield site


def page(text: str) -> bytes:
    return text.encode() * PAGE


def begin(wire: Wire, *arguments, **fields) -> dict:
    wire.open("x.h5", *arguments, **fields)
    opened = wire.read_until("opened")
    assert opened["relation"] in ("RELATION_MATCH", "RELATION_NEW"), opened
    return opened


def write(wire: Wire, text: str, kind: str = "COMMIT") -> int:
    """A cut that is all of `text`; returns its number."""
    wire.write(0, page(text))
    wire.barrier(kind, PAGE)
    return int(wire.read_until("cut_durable" if kind == "COMMIT" else "cut_visible")["cut"])


def take_over(site, wire: Wire, cut: int, opened: dict) -> dict:
    """Another machine's writer, once the lease has expired."""
    site.wait_for_no_lease("x.h5")
    taken = begin(wire, "RESYNC", base_cut=cut, file_id=base64.b64decode(opened["file_id"]).hex())
    assert int(taken["token"]) > int(opened["token"])
    wire.stay()
    return taken


def assert_head_is(site, text: str) -> None:
    site.settle("x.h5")
    assert site.head("x.h5").read_bytes() == page(text)


def resume(wire: Wire, opened: dict, cut: int, seq: int = 0) -> dict:
    """The same session's next stream; returns the answer."""
    wire.seq = seq
    wire.open("x.h5", "RESUME", stream=seq + 1, base_cut=cut, file_id=base64.b64decode(opened["file_id"]).hex())
    return wire.read_until("opened")


@TTL
@pytest.mark.parametrize("fault", ["hold", "half-open client"])
def test_frames_that_arrive_after_the_lease_was_taken_over(proxied, fault):
    """The old writer's machine is cut off; its frames arrive when the new one has written, or never."""
    site, network = proxied, proxied.through
    with Wire(site, address=network.address) as old, Wire(site, machine="other", path="/other") as new:
        opened = begin(old)
        cut = write(old, "a")
        network.tell(fault)
        old.write(0, page("l"))
        old.barrier("COMMIT", PAGE)
        take_over(site, new, cut, opened)
        cut = write(new, "b")
        network.tell("pass")
        assert old.finish()["code"] in ("ABORTED", "UNAVAILABLE", "CANCELLED")
        assert_head_is(site, "b")
        write(new, "c")
        assert new.finish()["code"] == "OK"
    assert_head_is(site, "c")
    assert [row["version"] for row in site.log("x.h5")] == [3, 2, 1]
    # It comes back as itself, and as one that never heard.
    for seq in (1, 2):
        with Wire(site, session=old.session) as again:
            told = resume(again, opened, cut - 1, seq)
            assert told["relation"] == "RELATION_DIVERGED", told
    assert_head_is(site, "c")


@TTL
def test_a_stopped_writer_that_wakes_up(site):
    """SIGSTOP of the writer's whole machine: it knows nothing, and goes on where it stood."""
    with Wire(site) as old, Wire(site, machine="other", path="/other") as new:
        opened = begin(old)
        cut = write(old, "a")
        os.kill(old.pid, signal.SIGSTOP)
        old.write(0, page("l"))
        old.barrier("COMMIT", PAGE)
        take_over(site, new, cut, opened)
        write(new, "b")
        os.kill(old.pid, signal.SIGCONT)
        assert old.finish()["code"] == "ABORTED"
        write(new, "c")
        assert new.finish()["code"] == "OK"
    assert_head_is(site, "c")


@TTL
def test_a_stream_that_arrives_twice_while_the_next_writer_writes(proxied):
    site, network = proxied, proxied.through
    with Wire(site, address=network.address) as old, Wire(site, machine="other", path="/other") as new:
        opened = begin(old)
        cut = write(old, "a")
        network.tell("drop")
        take_over(site, new, cut, opened)
        network.tell("pass")
        cut = write(new, "b")
        replay(site, network)
        assert_head_is(site, "b")
        write(new, "c")
        assert new.finish()["code"] == "OK"
        replay(site, network)
    assert_head_is(site, "c")
    assert [row["version"] for row in site.log("x.h5")] == [3, 2, 1]


def replay(site, network) -> None:
    """All messages of the first connection are sent to the server once more, and the server handles them."""
    before = answered(site)
    network.tell("replay 0")
    wait_until(lambda: answered(site) > before, "the duplicate was not noticed")
    time.sleep(0.3)
    site.wait_for_no_lease("bystander.h5")


def answered(site) -> int:
    return site.server.log().count("session start: file=\"x.h5\"") + site.server.log().count(
        "session refused: file=\"x.h5\"")


@TTL
@pytest.mark.parametrize("intent", ["CREATE", "RESUME"])
def test_a_duplicate_after_the_same_machines_next_session(proxied, intent):
    """The same origin, so that only the session's age speaks against it."""
    site, network = proxied, proxied.through
    with Wire(site, address=network.address) as old:
        opened = begin(old, intent)
        cut = write(old, "a")
        assert old.finish()["code"] == "OK"
    with Wire(site) as new:
        begin(new, "CONTINUE", base_cut=cut, file_id=base64.b64decode(opened["file_id"]).hex())
        new.stay()
        write(new, "b")
        replay(site, network)
        write(new, "c")
        assert new.finish()["code"] == "OK"
    replay(site, network)
    assert_head_is(site, "c")
    assert [row["version"] for row in site.log("x.h5")] == [3, 2, 1]


@TTL
def test_a_duplicate_of_the_stream_that_is_writing(proxied):
    """It must not take the lease from its original stream, nor begin the file again."""
    site, network = proxied, proxied.through
    with Wire(site, address=network.address) as writer:
        begin(writer)
        writer.stay()
        write(writer, "a")
        write(writer, "b")
        replay(site, network)
        cut = write(writer, "c")
        assert writer.finish()["code"] == "OK"
    assert cut > 0
    assert_head_is(site, "c")


@TTL
def test_barriers_out_of_order_end_the_session(site):
    """And leave the file at its last cut."""
    with Wire(site) as wire:
        begin(wire)
        write(wire, "a")
        wire.write(0, page("z"))
        wire.barrier("COMMIT", PAGE, seq=3)
        wire.read_until("cut_durable")
        wire.write(0, page("y"))
        wire.barrier("COMMIT", PAGE, seq=2)
        assert wire.finish()["code"] == "INVALID_ARGUMENT"
    assert_head_is(site, "z")


@TTL
def test_tokens_never_repeat(site):
    """Over sessions, clean restarts and kills of the server."""
    tokens, cut, file_id = [], 0, ""
    for turn in range(9):
        with Wire(site) as wire:
            opened = begin(wire, *(("CONTINUE",) if turn else ()), base_cut=cut, file_id=file_id or "-")
            file_id = base64.b64decode(opened["file_id"]).hex()
            tokens.append(int(opened["token"]))
            if turn % 3 != 2:  # Sometimes it is granted for nothing.
                cut = write(wire, "abc"[turn % 3])
            assert wire.finish()["code"] == "OK"
        site.wait_for_no_lease("x.h5")
        if turn % 2:
            site.server.kill9()
            site.server.start()
        elif turn % 3 == 0:
            site.server.stop()
            site.server.start()
        cut = int(site.status("x.h5")["last_cut"])
    assert tokens == sorted(set(tokens)), tokens
