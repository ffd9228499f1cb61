"""Servers that die, stop, fill up or cannot write: the program goes on, the file is marked, push brings it level."""

import random
import signal
import time

import pytest

from harness import hdf5, mounts
from harness.server import Server
from harness.site import Site

STEPS = """
    with h5py.File("s.h5", "w") as f:
        d = f.create_dataset("d", (0,), maxshape=(None,), chunks=(4096,), dtype="f8")
        f["fixed"] = np.zeros(200_000)
        for n in range({steps}):
            d.resize(len(d) + 4096, axis=0)
            d[-4096:] = n
            f["fixed"][:] = n
            f.flush()
            print("cut", n, flush=True)
            if os.path.exists("enough"):
                break
            if {pause} < 0:
                while not os.path.exists(f"go{{n}}"):
                    time.sleep(0.01)
            else:
                time.sleep({pause})
"""


def test_killed_server_comes_back_and_gets_what_it_lost(both):
    """SIGKILL between two flushes, none of them durable yet: the next barrier sends everything since."""
    writer = both.start(both.script(STEPS.format(steps=4, pause=-1)))
    for n in range(4):
        writer.wait_for_line(f"cut {n}")
        if n in (0, 2):
            both.wait_for_cut("s.h5")
        if n == 1:
            both.server.kill9()
            both.server.start()
            both.check_kept()
        both.local(f"go{n}").touch()
    result = writer.wait().ok()
    both.assert_mirrored("s.h5")
    assert both.versions("s.h5")[-1] >= 1
    assert both.record("s.h5")["state"] == "clean", result.describe()


@pytest.mark.limit(240)
def test_server_killed_again_and_again_under_a_writer(site):
    """Ten kills at random moments; at the end both sides are equal and no acked version was lost."""
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    writer = site.start(site.script(STEPS.format(steps=100_000, pause=0.03)))
    writer.wait_for_line("cut 0")
    for _ in range(10):
        time.sleep(chance.uniform(0.2, 1.2))
        site.server.kill9()
        time.sleep(chance.uniform(0, 0.3))
        site.server.start()
    site.local("enough").touch()
    writer.wait(120).ok()
    if site.record("s.h5")["state"] != "clean":
        site.cli("push", site.local("s.h5")).ok()
    site.assert_mirrored("s.h5")


def test_server_away_at_open_then_push(both):
    """No server at all: the program works, the file is behind, push brings it level."""
    both.server.kill9()
    started = time.monotonic()
    result = both.py("h5py.File('away.h5', 'w')['x'] = np.arange(300_000)")
    assert time.monotonic() - started < 20, result.describe()
    assert both.record("away.h5")["state"] == "behind"
    assert "h5mirror resync" in result.err, result.describe()
    hdf5.assert_opens(both.local("away.h5"))
    both.server.start()
    both.cli("push", both.local("away.h5")).ok()
    both.assert_mirrored("away.h5")
    assert both.record("away.h5")["state"] == "clean"
    both.py("h5py.File('away.h5', 'r+')['y'] = 1")
    both.assert_mirrored("away.h5")


def test_server_away_for_a_mirrored_file_then_push(both):
    """A file with a history is written while the server is away, twice; push makes one level version."""
    both.py("h5py.File('h.h5', 'w')['x'] = np.arange(3000)")
    both.keep("h.h5")
    both.server.kill9()
    for n in range(2):
        both.py(f"h5py.File('h.h5', 'a')['y{n}'] = 1")
    assert both.record("h.h5")["state"] == "behind"
    both.server.start()
    both.cli("push", both.local("h.h5")).ok()
    both.assert_mirrored("h.h5")
    assert both.versions("h.h5")[0] == 1


def test_push_of_a_whole_tree(site):
    site.server.kill9()
    site.py("""
        os.makedirs("tree/deep")
        for n in range(5):
            h5py.File(f"tree/deep/f{n}.h5", "w")["x"] = np.full(1000, n)
    """, config=site.config(timeout="1s"))
    site.server.start()
    site.cli("push", "-r", site.local("tree")).ok()
    for n in range(5):
        site.assert_mirrored(f"tree/deep/f{n}.h5")


def test_stopped_server_is_a_deadline_not_a_hang(both):
    """SIGSTOP: the kernel still accepts connections and bytes, but the server does not answer."""
    both.py("h5py.File('stop.h5', 'w')['x'] = np.arange(3000)")
    both.keep("stop.h5")
    both.server.process.signal(signal.SIGSTOP)
    started = time.monotonic()
    result = both.py("""
        with h5py.File("stop.h5", "r+") as f:
            f["x"][:] = 1
            f.flush()
            f["y"] = np.arange(100_000)
    """, config=both.config(timeout="2s"))
    took = time.monotonic() - started
    both.server.process.signal(signal.SIGCONT)
    print(f"took {took:.1f} s with timeout=2s")
    assert took < 12, f"several waits of 2 s at most:\n{result.describe()}"
    assert result.err.strip(), "one line says that the mirror is behind"
    both.cli("push", both.local("stop.h5")).ok()
    both.assert_mirrored("stop.h5")


def test_server_stopped_in_mid_session_resumes(both):
    """Stopped for longer than the timeout while the writer goes on, then continued."""
    writer = both.start(both.script(STEPS.format(steps=3, pause=-1)), config=both.config(timeout="1s"))
    writer.wait_for_line("cut 0")
    both.wait_for_cut("s.h5")
    both.server.process.signal(signal.SIGSTOP)
    both.local("go0").touch()
    writer.wait_for_line("cut 1", 30)
    time.sleep(2)
    both.server.process.signal(signal.SIGCONT)
    both.local("go1").touch()
    writer.wait_for_line("cut 2", 30)
    both.local("go2").touch()
    writer.wait().ok()
    if both.record("s.h5")["state"] != "clean":
        both.cli("push", both.local("s.h5")).ok()
    both.assert_mirrored("s.h5")


def test_server_stops_cleanly_under_a_writer(site):
    """SIGTERM with a session open ends in time; the writer goes on and resumes at the next server."""
    writer = site.start(site.script(STEPS.format(steps=3, pause=-1)))
    writer.wait_for_line("cut 0")
    site.wait_for_cut("s.h5")
    site.server.stop(timeout=45)
    site.local("go0").touch()
    writer.wait_for_line("cut 1", 30)
    site.server.start()
    site.check_kept()
    site.local("go1").touch()
    writer.wait_for_line("cut 2", 30)
    site.local("go2").touch()
    writer.wait().ok()
    if site.record("s.h5")["state"] != "clean":
        site.cli("push", site.local("s.h5")).ok()
    site.assert_mirrored("s.h5")


@pytest.fixture
def small_disk(tmp_path):
    """A site whose root has 32 MiB."""
    with mounts.tmpfs(tmp_path / "small", "32m") as resize:
        site = Site(tmp_path, root=tmp_path / "small")
        site.resize_disk = resize
        try:
            site.server.start()
            yield site
        finally:
            site.close()


FILL = """
    with h5py.File("big.h5", "{mode}") as f:
        f["big"] = np.random.default_rng(1).integers(0, 255, 60 << 20, dtype="u1")
        f.flush()
        f["after"] = np.arange(10)
"""


def test_full_disk(small_disk):
    """The session that fills the disk gets the error; what was acked stays, others go on, push later works."""
    site = small_disk
    site.py("h5py.File('first.h5', 'w')['x'] = np.arange(100_000)")
    site.py("h5py.File('first.h5', 'r+')['x'][:1000] = 0")
    site.keep("first.h5")
    result = site.py(FILL.format(mode="w"), timeout=90)
    hdf5.assert_opens(site.local("big.h5"))
    assert site.record("big.h5")["state"] == "behind", result.describe()
    assert any(word in result.err.lower() for word in ("disk", "space", "full")), result.describe()
    assert site.server.running(), site.server.log_tail()
    site.check_kept()
    assert not site.head("big.h5").exists(), "a torn state never becomes the head"
    site.py("h5py.File('first.h5', 'r+')['y'] = 1")
    site.assert_mirrored("first.h5")
    site.resize_disk("300m")
    site.cli("push", site.local("big.h5")).ok()
    site.assert_mirrored("big.h5")
    site.check_kept()


def test_disk_full_while_a_head_is_overwritten(small_disk):
    """Overwrites that do not fit: every version that was acked is there, the head is one of them."""
    site = small_disk
    script = """
        with h5py.File("o.h5", "a") as f:
            d = f.require_dataset("d", (6 << 20,), "u1")
            for n in range(8):
                d[...] = np.random.default_rng(n).integers(0, 255, 6 << 20, dtype="u1")
                f.flush()
                time.sleep(0.1)
    """
    site.py("h5py.File('o.h5', 'w')['d'] = np.zeros(6 << 20, 'u1')")
    site.keep("o.h5")
    for _ in range(3):
        site.py(script, timeout=90)
    assert site.server.running(), site.server.log_tail()
    site.resize_disk("600m")
    site.check_kept()
    if site.record("o.h5")["state"] != "clean":
        site.cli("push", site.local("o.h5")).ok()
    site.assert_mirrored("o.h5")
    site.check_kept()


def test_server_restarts_on_a_full_disk(small_disk):
    """A server that was killed on a full disk starts again and serves its files."""
    site = small_disk
    site.py("h5py.File('first.h5', 'w')['x'] = np.arange(100_000)")
    site.keep("first.h5")
    site.py(FILL.format(mode="w"), timeout=90)
    filler = site.root / "filler"
    try:
        filler.write_bytes(b"x" * (64 << 20))
    except OSError:
        pass  # As intended: the disk is full now.
    site.server.kill9()
    site.server.start()
    site.check_kept()
    filler.unlink()
    site.check_kept()


def test_read_only_root_is_refused_at_start(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    with mounts.read_only(root):
        result = Server(root, tmp_path).launch().wait(20)
    assert result.code != 0 and str(root) in result.said, result.describe()
    assert "Read-only file system; mount it for writing, or set another root" in result.said, result.describe()


def test_read_only_directory_is_an_error_of_its_session(site):
    """One directory under the root cannot be written: the error is that session's alone."""
    (site.root / "frozen").mkdir()
    site.local("frozen").mkdir()
    with mounts.read_only(site.root / "frozen"):
        result = site.py("h5py.File('frozen/x.h5', 'w')['x'] = np.arange(1000)")
        hdf5.assert_opens(site.local("frozen/x.h5"))
        assert "frozen/x.h5" in result.err, result.describe()
        site.check_kept()
    site.cli("push", site.local("frozen/x.h5")).ok()
    site.assert_mirrored("frozen/x.h5")


def test_history_survives_a_clean_restart(site):
    site.server.stop()
    site.server.start()
    site.check_kept()


def test_heads_are_read_while_no_server_runs(site):
    """The heads are plain files."""
    site.server.stop()
    hdf5.assert_same(site.local("bystander.h5"), site.head("bystander.h5"))
    site.server.start()
