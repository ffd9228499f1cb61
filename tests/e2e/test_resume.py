"""A file is re-created, and its server is lost before any of the new file is durable: the result is never a mixture."""

import signal

from harness.process import wait_until
from harness.proxy import Proxy
from harness.site import Site

import pytest

OLD = """
    with h5py.File("r.h5", "w") as f:
        f["old"] = np.random.default_rng(1).random(400_000)
        f["more"] = np.arange(100_000)
"""

# Bytes written before the first flush are never written again: after a restart of the server only the client has them.
# "sparse" is mostly a hole: there the old generation's bytes would show.
NEW = """
    with h5py.File("r.h5", "w") as f:
        f["first"] = np.random.default_rng(2).random(200_000)
        f.create_dataset("sparse", (150_000,), "f8")[-1000:] = 7
        d = f.create_dataset("d", (4, 50_000))
        for n in range(4):
            d[n] = n + 1
            f.flush()
            print("cut", n, flush=True)
            while not os.path.exists(f"go{n}"):
                time.sleep(0.01)
"""


@pytest.fixture
def lazy(tmp_path):
    """A server on which a flush is visible at once, and durable only at a close."""
    site = Site(tmp_path, options={"durable_every": "1h"})
    site.server.start()
    yield site
    site.close()


def begin_again(site, **options):
    site.py(OLD)
    site.assert_mirrored("r.h5")
    site.keep("r.h5")
    writer = site.start(site.script(NEW), config=site.config(ack="applied", **options))
    writer.wait_for_line("cut 0")
    return writer


def finish(site, writer):
    for n in range(4):
        site.local(f"go{n}").touch()
    result = writer.wait().ok()
    assert site.record("r.h5")["state"] == "clean", result.describe()
    site.assert_mirrored("r.h5")
    site.check_kept()
    assert len(site.versions("r.h5")) >= 2


def test_server_killed_before_the_first_durable_cut_of_a_new_generation(lazy):
    """The restarted server has the old generation's head and knows nothing of the new one."""
    writer = begin_again(lazy)
    lazy.server.kill9()
    lazy.server.start()
    lazy.check_kept()
    finish(lazy, writer)


def test_server_killed_while_the_writer_is_at_its_last_cut(lazy):
    """Only the close's commit finds the server restarted."""
    writer = begin_again(lazy)
    for n in range(3):
        lazy.local(f"go{n}").touch()
        writer.wait_for_line(f"cut {n + 1}")
    lazy.server.kill9()
    lazy.server.start()
    finish(lazy, writer)


def test_stream_broken_before_the_first_cut(lazy):
    """The connection breaks in the middle of the first frames, again and again, then holds."""
    lazy.py(OLD)
    lazy.keep("r.h5")
    with Proxy(lazy.server.address, cut_after=300_000) as proxy:
        writer = lazy.start(lazy.script(NEW), config=lazy.config(ack="applied", server=proxy.address))
        wait_until(lambda: proxy.cuts >= 1, "the connection was never cut")
        proxy.cut_after = None
        finish(lazy, writer)


def test_stopped_server_comes_back_before_the_first_durable_cut(lazy):
    """The writer has given up on a server that hangs; the server did not restart and still has the first cut."""
    writer = begin_again(lazy, timeout="1s")
    lazy.server.process.signal(signal.SIGSTOP)
    lazy.local("go0").touch()
    writer.wait_for_line("cut 1")
    lazy.server.process.signal(signal.SIGCONT)
    finish(lazy, writer)


def test_first_connection_that_breaks_is_tried_again(lazy):
    """As a TLS handshake may on a machine under load: the program hears nothing of it."""
    with Proxy(lazy.server.address, cut_after=1) as proxy:
        writer = lazy.start(lazy.script(OLD), config=lazy.config(server=proxy.address))
        wait_until(lambda: proxy.cuts >= 1, "the connection was never cut")
        proxy.cut_after = None
        result = writer.wait().ok()
    assert lazy.record("r.h5")["state"] == "clean", result.describe()
    assert "behind" not in result.err, result.describe()
    lazy.assert_mirrored("r.h5")


def test_server_away_is_told_in_one_line(lazy):
    """And the line says what to do."""
    lazy.server.kill9()
    result = lazy.py(OLD)
    lines = [line for line in result.err.splitlines() if line.startswith("h5mirror:")]
    assert len(lines) == 1 and "h5mirror resync" in lines[0], result.describe()
