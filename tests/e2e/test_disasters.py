"""Outages that leave more than a gap: killed clients, full disks, servers replaced or restored, clocks that jump, local
files moved away. Each ends with both sides identical; or both report a divergence, and the user decides."""

import calendar
import os
import re
import shutil
import signal
import time

import pytest

from harness import hdf5, mounts, storm
from harness.clock import JumpingClock
from harness.process import wait_until
from harness.scripts import TIMER
from harness.site import Site
from harness.wire import Wire

# Each begins with a cut that is durable, for which it would wait ten seconds.
SOON = {"durable_every": "1s"}
pytestmark = pytest.mark.site(options=SOON)

MAKE = """
    with h5py.File("run.h5", "w") as f:
        f["d"] = np.random.default_rng(1).integers(0, 255, 24 << 20, "u1")
"""

# Three parts with a flush after each mebibyte; the second and third wait to be told.
RUN = TIMER + """
    f = h5py.File("run.h5", "r+")
    chance = np.random.default_rng(2)
    def change(n):
        def write():
            f["d"][n << 20:(n + 1) << 20] = chance.integers(0, 255, 1 << 20, "u1")
        timed(write)
        timed(f.flush)
    def part(name, begin, end):
        for n in range(begin, end):
            change(n)
        print(name, flush=True)
        while not os.path.exists("after " + name):
            time.sleep(0.01)
    part("first", 0, 2)
    part("second", 2, 20)
    change(20)
    timed(f.close)
    print("longest %.6f" % longest, flush=True)
"""


class Run:
    """A program in the middle of RUN, and the file that it writes."""

    def __init__(self, site: Site, **options):
        self.site = site
        site.py(MAKE)
        site.keep("run.h5")
        options.setdefault("config", site.config(timeout=None))
        self.writer = site.start(site.script(RUN), **options)
        self.writer.wait_for_line("first")
        wait_until(lambda: self.at_rest(), "the first part never became durable")

    def at_rest(self) -> bool:
        status = self.site.status("run.h5")
        return status["last_cut"] > self.site.log("run.h5")[-1]["cut"] and status["last_cut"] == status["durable_cut"]

    def go_on(self) -> None:
        self.site.local("after first").touch()
        self.writer.wait_for_line("second")

    def finish(self) -> None:
        self.site.local("after second").touch()
        result = self.writer.wait().ok()
        longest = float(re.search(r"longest ([\d.]+)", result.out).group(1))
        assert longest < 1 + storm.SLACK_S, result.describe()


def told_as_diverged(site: Site, **options) -> None:
    """The next open hears of it, and then both ends say so."""
    result = site.run(site.script("h5py.File('run.h5', 'r+').attrs['again'] = 1"), **options)
    assert "diverged" in result.err and "h5mirror recover" in result.err, result.describe()
    storm.assert_diverged_is_told(site, "run.h5")


def decide(site: Site, side: str) -> None:
    """`side` wins. The losing state is a version, and all former versions stay."""
    local, remote = hdf5.digest(site.local("run.h5")), hdf5.digest(site.head("run.h5"))
    refused = site.cli("resync", site.local("run.h5"))
    assert refused.code == 5 and "--from local" in refused.err and "--from remote" in refused.err, refused.describe()
    done = site.json("resync", "--from", side, site.local("run.h5"))["files"][0]
    site.settle("run.h5")
    assert hdf5.digest(site.head("run.h5")) == hdf5.digest(site.local("run.h5"))
    kept = hdf5.digest(site.export("run.h5", done["kept_version"]))
    assert (kept, hdf5.digest(site.head("run.h5"))) == ((remote, local) if side == "local" else (local, remote))
    site.check_kept()


@pytest.mark.parametrize("side", ["local", "remote"])
@pytest.mark.parametrize("who", ["client", "both"])
def test_killed_in_an_outage(bare_site, who, side):
    """kill -9 of the client while the server is away, or of both at once."""
    site = bare_site
    run = Run(site)
    if who == "client":
        site.server.kill9()
        run.go_on()
    else:
        before = site.local("run.h5").stat().st_mtime_ns
        site.local("after first").touch()
        wait_until(lambda: site.local("run.h5").stat().st_mtime_ns > before, "the second part does not begin", every=0.001)
        site.server.kill9()
    run.writer.kill()
    site.server.start()
    site.wait_for_no_lease("run.h5")
    told_as_diverged(site)
    decide(site, side)
    assert "diverged" not in site.py("h5py.File('run.h5', 'r+').attrs['n'] = 2").err
    site.assert_mirrored("run.h5")


def test_disk_full_under_a_writer(tmp_path):
    """Once there is room the session sends the missing bytes by itself."""
    with mounts.tmpfs(tmp_path / "small", "56m") as resize:
        site = Site(tmp_path, root=tmp_path / "small", options={"durable_every": "100ms"})
        try:
            site.server.start()
            run = Run(site)
            (site.root / "filler").write_bytes(bytes(20 << 20))
            run.go_on()
            wait_until(lambda: "RESOURCE_EXHAUSTED" in site.server.log(), "the disk was never full")
            site.check_versions_kept("run.h5")
            resize("400m")
            run.finish()
            print(storm.bring_level(site, "run.h5"))
            assert site.server.starts == 1
            storm.assert_all_identical(site, "run.h5")
            site.check_kept()
        finally:
            site.close()


def replace_root(site: Site, by=None) -> None:
    shutil.rmtree(site.root)
    if by is None:
        site.root.mkdir()
    else:
        shutil.copytree(by, site.root)


def test_server_replaced_by_an_empty_one(bare_site):
    site = bare_site
    run = Run(site)
    site.server.kill9()
    replace_root(site)
    site.server.start()
    run.go_on()
    run.finish()
    assert site.record("run.h5")["state"] == "diverged"
    assert "the server has no file run.h5" in site.cli("status", site.local("run.h5")).out
    assert not site.head("run.h5").exists()
    site.cli("resync", site.local("run.h5")).ok()
    storm.assert_all_identical(site, "run.h5")
    assert "diverged" not in site.py("h5py.File('run.h5', 'r+').attrs['n'] = 2").err
    site.assert_mirrored("run.h5")


@pytest.mark.parametrize("side", ["local", "remote"])
def test_server_restored_from_an_older_backup(bare_site, side):
    """Under a writer: its changes since the backup are gone, and the rest is not added to the old state."""
    site = bare_site
    site.py(MAKE)
    site.settle("run.h5")
    site.server.stop()
    backup = site.directory / "backup"
    shutil.copytree(site.root, backup)
    site.server.start()
    site.py("h5py.File('run.h5', 'r+').attrs['since'] = 'the backup'")
    run = Run(site)
    site.server.kill9()
    replace_root(site, backup)
    restored = hdf5.digest(site.head("run.h5"))
    site.kept.clear()
    site.server.start()
    site.keep("run.h5")
    run.go_on()
    run.finish()
    assert site.record("run.h5")["state"] == "diverged"
    storm.assert_diverged_is_told(site, "run.h5")
    assert hdf5.digest(site.head("run.h5")) == restored
    decide(site, side)
    assert "diverged" not in site.py("h5py.File('run.h5', 'r+').attrs['n'] = 2").err
    site.assert_mirrored("run.h5")


HOURS = 3600


@pytest.mark.parametrize("jump_s", [-30 * HOURS, 30 * HOURS])
def test_clock_of_the_server_jumps(tmp_path, jump_s):
    """Sessions, leases and the order of versions do not depend on the time of day."""
    clock = JumpingClock(tmp_path / "clock")
    site = Site(tmp_path, env=clock.env, options={"lease_ttl": "2s", **SOON})
    try:
        site.server.start()
        run = Run(site)
        clock.jump(jump_s)
        time.sleep(2.5)
        assert site.status("run.h5")["lease"], "the writer lost its lease"
        with Wire(site) as silent:
            silent.open("silent.h5")
            silent.read_until("opened")
            silent.write(0, b"x" * 4096)
            silent.barrier("TICK", 4096)
            silent.read_until("cut_visible")
            os.kill(silent.pid, signal.SIGSTOP)
            wait_until(lambda: site.versions("silent.h5") == [1], "its lease does not expire")
        run.go_on()
        clock.jump(0)
        run.finish()
        assert site.record("run.h5")["state"] == "clean"
        storm.assert_all_identical(site, "run.h5")
        times = [row["time"] for row in reversed(site.log("run.h5"))]
        assert times == sorted(times), times
    finally:
        site.close()


@pytest.mark.parametrize("years", [-56, 73], ids=["1970", "2099"])
def test_clock_of_the_server_is_years_off(tmp_path, years):
    """Versions are not stamped years ahead, and removed files are not purged; once the clock is right all goes on."""
    clock = JumpingClock(tmp_path / "clock")
    site = Site(tmp_path, env=clock.env)
    try:
        site.server.start()
        begin = time.time()
        site.py("h5py.File('run.h5', 'w')['x'] = np.arange(1000)")
        site.py("h5py.File('gone.h5', 'w')['x'] = np.arange(1000)")
        site.settle("gone.h5")
        site.cli("rm", "gone.h5").ok()
        clock.jump(years * 366 * 24 * HOURS)
        site.py("h5py.File('run.h5', 'a')['y'] = np.arange(1000)")
        wait_until(lambda: "clock: the machine's clock shows" in site.server.log(), "nobody says that the clock is off")
        site.server.stop()
        site.server.start()
        wait_until(lambda: "purge: nothing is dropped for its age now" in site.server.log(), "no purge was looked at")
        site.py("h5py.File('run.h5', 'a')['z'] = np.arange(1000)")
        site.cli("undelete", "gone.h5").ok()
        clock.jump(0)
        wait_until(lambda: "clock is right again" in site.server.log(), "nobody says that the clock is right again")
        site.py("h5py.File('run.h5', 'a')['last'] = np.arange(1000)")
        site.assert_mirrored("run.h5")
        times = [row["time"] for row in reversed(site.log("run.h5"))]
        assert len(times) == 4 and times == sorted(times), times
        seconds = [calendar.timegm(time.strptime(each[:19], "%Y-%m-%dT%H:%M:%S")) for each in times]
        assert begin - 5 <= seconds[0] and seconds[-1] <= time.time() + 5, times
    finally:
        site.close()


@pytest.mark.parametrize("jump_s", [-30 * HOURS, 30 * HOURS])
def test_clock_of_the_client_jumps(bare_site, jump_s):
    """The server is there: the mirror goes on. It is stopped: the program waits no longer than ever."""
    site = bare_site
    clock = JumpingClock(site.directory / "clock")
    run = Run(site, config=site.config(timeout=None, flush="sync", ack="durable"), **clock.env)
    clock.jump(jump_s)
    run.go_on()
    time.sleep(1)
    # A disk that is slow for a moment is an outage, from which it comes back.
    wait_until(lambda: site.status("run.h5")["mirror"]["state"] == "connected", "the mirror does not go on")
    site.server.process.signal(signal.SIGSTOP)
    site.local("after second").touch()
    time.sleep(0.5)  # It waits for its flush.
    clock.jump(0 if jump_s > 0 else 2 * jump_s)
    run.finish()
    site.server.process.signal(signal.SIGCONT)
    print(storm.bring_level(site, "run.h5"))
    storm.assert_all_identical(site, "run.h5")


@pytest.mark.parametrize("when", ["before the close", "after the close"])
def test_local_file_renamed_in_an_outage(bare_site, when):
    """The file goes on under its new name; the server's file of the old name stays as it is."""
    site = bare_site
    run = Run(site)
    site.server.kill9()
    run.go_on()
    if when == "before the close":
        site.local("run.h5").rename(site.local("moved.h5"))
    run.finish()
    if when == "after the close":
        site.local("run.h5").rename(site.local("moved.h5"))
    site.server.start()
    written = hdf5.digest(site.local("moved.h5"))
    result = site.py("h5py.File('moved.h5', 'r+').attrs['again'] = 1")
    assert hdf5.digest(site.local("moved.h5")) != written
    assert "diverged" not in result.err, result.describe()
    site.assert_mirrored("moved.h5")
    site.settle("run.h5")
    site.check_versions_kept("run.h5")
    hdf5.assert_opens(site.head("run.h5"))


@pytest.mark.parametrize("side", ["local", "remote"])
@pytest.mark.parametrize("how", ["replaced before the close", "replaced after it", "overwritten after it"])
def test_local_file_is_another_after_an_outage(bare_site, how, side):
    site = bare_site
    other = site.local("other.h5")
    site.run(site.script("h5py.File('other.h5', 'w')['other'] = np.arange(300_000)"), env=site.plain_env()).ok()
    run = Run(site)
    site.server.kill9()
    run.go_on()
    if how == "replaced before the close":
        other.rename(site.local("run.h5"))
    run.finish()
    if how == "replaced after it":
        other.rename(site.local("run.h5"))
    elif how == "overwritten after it":
        shutil.copyfile(other, site.local("run.h5"))
    site.server.start()
    told_as_diverged(site, config=site.config(on_outside_change="ask"))
    decide(site, side)
    site.assert_mirrored("run.h5")
