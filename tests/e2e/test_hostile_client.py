"""Clients that send messages that no plugin would send, or stop in the middle: only they get an error."""

import itertools
import os
import random
import socket
import tempfile

import pytest

from harness import hdf5
from harness.process import wait_until
from harness.proxy import Proxy
from harness.wire import Wire

NUMBERS = itertools.count()
NEAR_2_64 = (1 << 64) - 1
NEAR_2_63 = (1 << 63) - 1


def refused(wire, codes=("INVALID_ARGUMENT",)):
    """The stream ends with one of `codes` and a message."""
    end = wire.finish()
    assert end["code"] in codes, end
    assert end["message"], end
    return end["message"]


@pytest.fixture
def wire(shared_site):
    """An opened session of a new file."""
    name = f"hostile{next(NUMBERS)}.h5"
    with Wire(shared_site) as client:
        client.open(name)
        opened = client.read_until("opened")
        assert opened["relation"] == "RELATION_NEW", opened
        yield client
    assert not shared_site.head(name).exists(), "what was refused never becomes a head"


@pytest.mark.parametrize("offset, length", [(NEAR_2_64, 1), (NEAR_2_64 - 4096, 4096), (NEAR_2_64 - 10, 100),
                                            (NEAR_2_63, 1), (NEAR_2_63 - 1, 4096), (1 << 63, 8)])
def test_offset_beyond_the_range_is_refused(wire, offset, length):
    wire.writes([[offset, length]], length)
    message = refused(wire)
    assert str(offset) in message or "2^63" in message, message


@pytest.mark.parametrize("extents, data_bytes", [
    ([[0, 100]], 50), ([[0, 50]], 100), ([[0, 0]], 0), ([[0, 0]], 10), ([], 10),
    ([[0, 0xFFFFFFFF], [0, 0xFFFFFFFF], [0, 2]], 4096), ([[0, 4096], [NEAR_2_64, 4096]], 8192),
    ([[n, 1] for n in range(3)], 4),
])
def test_extents_that_do_not_fit_their_data_are_refused(wire, extents, data_bytes):
    wire.writes(extents, data_bytes)
    refused(wire)


def test_frame_beyond_the_limit_is_refused(wire):
    wire.writes([[0, (1 << 20) + 1]], (1 << 20) + 1)
    refused(wire, ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"))


def test_message_beyond_the_limit_is_refused(wire):
    wire.writes([[0, 8 << 20]], 8 << 20)
    refused(wire, ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"))


def test_wrong_checksum_is_data_loss(wire):
    wire.writes([[0, 4096]], 4096, crc=12345)
    refused(wire, ("DATA_LOSS",))


@pytest.mark.parametrize("size", [NEAR_2_64, 1 << 63, NEAR_2_63 + 1])
def test_truncate_beyond_the_range_is_refused(wire, size):
    wire.truncate(size)
    refused(wire)


@pytest.mark.parametrize("size", [NEAR_2_64, 1 << 63])
def test_barrier_beyond_the_range_is_refused(wire, size):
    wire.fill(0, 4096)
    wire.commit(size)
    refused(wire)


def test_a_size_that_the_file_system_does_not_take_is_refused(shared_site, wire):
    """16 TiB on ext4: a durable cut of more could never get into the head."""
    with tempfile.TemporaryFile(dir=shared_site.root) as probe:
        size = 1 << 62
        while size > 1 << 40:
            try:
                os.ftruncate(probe.fileno(), size)
                break
            except OSError:
                size >>= 1
    if size == 1 << 62:
        pytest.skip("this file system takes files of any size")
    wire.fill(0, 4096)
    wire.commit(2 * size)
    message = refused(wire)
    assert str(2 * size) in message and "file system of the head allows" in message, message


@pytest.mark.parametrize("seq", [0, 1 << 63, NEAR_2_64])
def test_barrier_beyond_the_sequence_is_refused(wire, seq):
    wire.fill(0, 4096)
    wire.barrier("COMMIT", 4096, seq=seq)
    refused(wire)


def test_barrier_that_goes_back_is_refused(shared_site):
    """The cut that came first stays; the stream that counts backwards ends."""
    with Wire(shared_site) as wire:
        wire.open("backwards.h5")
        for seq in (1, 2, 2):
            wire.fill(0, 4096, seq)
            wire.barrier("COMMIT", 4096, seq=seq)
        refused(wire)
    shared_site.wait_for_no_lease("backwards.h5")
    assert shared_site.versions("backwards.h5") == [1, 2]


def test_barrier_without_a_kind_is_refused(wire):
    wire.fill(0, 4096)
    wire.barrier("UNSPECIFIED", 4096)
    refused(wire)


@pytest.mark.parametrize("message", [b"", b"\xff" * 100, b"\x12\xff\xff\xff\xff\x0f", b"\x12\x80\x80\x80\x80\x80\x80",
                                     b"\x0a\x02\x08\x01", os.urandom(4096)])
def test_message_that_is_no_request_is_refused(wire, message):
    wire.raw(message)
    refused(wire)


def test_random_messages_are_refused(shared_site):
    """Valid messages with bytes changed: each stream ends, with an error or not, and the server goes on."""
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(40):
        with Wire(shared_site) as client:
            client.open("fuzz.h5", size_bytes=chance.choice([0, -1, NEAR_2_63]))
            for _ in range(chance.randrange(1, 6)):
                client.raw(chance.randbytes(chance.choice([1, 10, 1000])))
                client.writes([[chance.choice([0, 1, 4095, NEAR_2_63]), chance.choice([1, 100])]
                               for _ in range(chance.randrange(3))], chance.choice([0, 1, 100, 200]))
            client.finish()
    assert shared_site.server.running()


def test_requests_before_open_are_refused(shared_site):
    for send in (lambda wire: wire.fill(0, 100), lambda wire: wire.commit(0), lambda wire: wire.truncate(5)):
        with Wire(shared_site) as wire:
            send(wire)
            refused(wire, ("INVALID_ARGUMENT", "FAILED_PRECONDITION"))


def test_second_open_on_a_stream_is_refused(wire):
    wire.open("other.h5")
    refused(wire, ("INVALID_ARGUMENT", "FAILED_PRECONDITION"))


@pytest.mark.parametrize("fields", [{"session": "00"}, {"session": "-"}, {"file_id": "0011"}, {"page_size_bytes": 3},
                                    {"page_size_bytes": 1 << 31}, {"intent": "NONSENSE"}])
def test_open_with_a_bad_field_is_refused(shared_site, fields):
    with Wire(shared_site) as wire:
        wire.open("bad.h5", **fields)
        wire.commit(0)
        refused(wire)
    assert not shared_site.head("bad.h5").exists()


def test_protocol_of_the_future_is_refused_with_both_ranges(shared_site):
    with Wire(shared_site) as wire:
        wire.open("bad.h5", protocol_oldest=900, protocol_newest=901)
        message = refused(wire, ("FAILED_PRECONDITION",))
    assert "900" in message and "1" in message, message


def test_sparse_file_near_the_limit_takes_no_disk(site):
    """A legal offset far beyond any disk: refused or sparse, never an allocation."""
    with Wire(site) as wire:
        wire.open("sparse.h5")
        wire.fill((1 << 40), 4096, 1)
        wire.truncate((1 << 43))
        wire.commit(1 << 43)
        wire.finish()
    used = sum(p.stat().st_blocks * 512 for p in site.root.rglob("*") if p.is_file())
    assert used < 64 << 20, f"{used} bytes on disk"


def test_connection_that_breaks_in_mid_frame(both):
    """The network cuts every connection after some bytes, ten times: never a torn head, and it resumes."""
    with Proxy(both.server.address, cut_after=700_000) as proxy:
        both.py("""
            with h5py.File("cut.h5", "w") as f:
                for n in range(10):
                    f[f"d{n}"] = np.full(40_000, n, "f8")
                    f.flush()
        """, config=both.config(server=proxy.address, timeout="3s"), timeout=100)
        assert proxy.cuts >= 1, "the proxy never cut"
    hdf5.assert_opens(both.local("cut.h5"))
    if both.exists("cut.h5"):
        both.settle("cut.h5")
        hdf5.assert_opens(both.head("cut.h5"))
    if both.record("cut.h5")["state"] != "clean":
        both.cli("push", both.local("cut.h5")).ok()
    both.settle("cut.h5")
    hdf5.assert_same(both.local("cut.h5"), both.head("cut.h5"))


def test_client_killed_in_mid_frame_keeps_the_last_cut(site):
    with Wire(site) as wire:
        wire.open("vanish.h5")
        wire.read_until("opened")
        wire.fill(0, 3 << 20, 7)
        wire.barrier("TICK", 3 << 20)
        wire.read_until("cut_visible")
        wire.fill(0, 8 << 20, 9)
        wire.die()
    site.wait_for_no_lease("vanish.h5")
    site.settle("vanish.h5")
    assert site.head("vanish.h5").read_bytes() == bytes([7]) * (3 << 20)
    assert "writer lost" in site.log("vanish.h5")[0]["comment"]


def test_garbage_on_the_port(shared_site):
    """Bytes that are no HTTP/2 at all, and half a preface."""
    host, port = shared_site.server.address.rsplit(":", 1)
    half_a_preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\xff\xff\x00"
    for data in (b"GET / HTTP/1.1\r\n\r\n", os.urandom(100_000), half_a_preface, b""):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            try:
                connection.sendall(data)
            except OSError:
                pass  # The server hung up first.
    wait_until(lambda: shared_site.cli("ls").code == 0, "the server answers")
