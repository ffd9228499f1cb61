"""The last flush of a program before it failed is a version, and `recover` goes back to that and no further."""

import signal

import pytest

from harness import hdf5, mounts

# Its second part does not fit on the disk. HDF5 2 keeps more in memory, so the failure may come in the close.
OUTGROWS_THE_DISK = """
    f = h5py.File("full.h5", "{mode}")
    f["flushed"] = np.arange(40_000)
    f.flush()
    print("flushed", flush=True)
    try:
        f["lost"] = np.random.default_rng(1).integers(0, 255, 6 << 20, dtype="u1")
        f.flush()
        print("written", flush=True)
    except Exception as error:
        print("failed", error, flush=True)
    {end}
"""
ENDS = {
    "close": "f.close()",
    "ends": "",
    "exits": "os._exit(1)",
}


def assert_recovers_the_flush(site, name, comment):
    site.wait_for_no_lease(name)
    site.settle(name)
    newest = site.log(name)[0]
    assert comment in newest["comment"], newest
    site.cli("recover", site.local(name)).ok()
    site.assert_mirrored(name)
    assert b"flushed" in hdf5.dump(site.local(name), "-H")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("mode", ["w", "a"])
def test_a_full_disk_leaves_the_last_flush_as_a_version(bare_site, mode, end):
    site = bare_site
    with mounts.tmpfs(site.work, "2m") as resize:
        before = 0
        if mode == "a":
            site.py("h5py.File('full.h5', 'w')['first'] = np.arange(1000)")
            before = 1
        # If a process exits at once, its unsent bytes are lost, except for flushes that wait.
        waits = {"flush": "sync", "ack": "durable"} if end == "exits" else {}
        result = site.run(site.script(OUTGROWS_THE_DISK.format(mode=mode, end=ENDS[end])), config=site.config(**waits))
        assert "failed" in result.out, result.describe()
        resize("64m")
        site.wait_for_no_lease("full.h5")
        site.settle("full.h5")
        assert site.versions("full.h5") == list(range(1, before + 2)), result.describe()
        site.keep("full.h5")
        assert_recovers_the_flush(site, "full.h5", "writer lost")
        site.check_kept()


FORKS = """
    f = h5py.File("fork.h5", "w")
    f["flushed"] = np.arange(40_000)
    f.flush()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    print("forked", flush=True)
    time.sleep(100)
"""


def test_a_writer_that_forked_and_was_killed_leaves_its_last_flush(bare_site):
    """Its cuts are of a stream that was half-closed before the fork."""
    site = bare_site
    writer = site.start(site.script(FORKS), config=site.config(flush="sync"))
    writer.wait_for_line("forked")
    site.wait_for_cut("fork.h5")
    writer.signal(signal.SIGKILL)
    writer.wait()
    site.wait_for_no_lease("fork.h5")
    before = site.json("recover", site.local("fork.h5"), "--dry-run")
    site.cli("recover", site.local("fork.h5")).ok()
    assert site.log("fork.h5")[0]["version"] == (before["version"] or {"version": 1})["version"]
    site.assert_mirrored("fork.h5")
    assert b"flushed" in hdf5.dump(site.local("fork.h5"), "-H")


STAYS = """
    f = h5py.File("both.h5", "a")
    f["flushed"] = np.arange(40_000)
    f.flush()
    print("flushed", flush=True)
    time.sleep(100)
"""


def test_recover_makes_the_newest_cut_a_version_where_the_server_was_killed_too(bare_site):
    site = bare_site
    site.py("h5py.File('both.h5', 'w')['first'] = np.arange(1000)")
    site.settle("both.h5")
    writer = site.start(site.script(STAYS), config=site.config(flush="sync"))
    writer.wait_for_line("flushed")
    site.settle("both.h5")
    site.server.kill9()
    writer.signal(signal.SIGKILL)
    writer.wait()
    site.server.start()
    assert site.versions("both.h5") == [1], "a restart is no reason for a version"
    # The plan, and the result.
    said = site.cli("recover", site.local("both.h5"), "--dry-run").ok()
    assert "newer than its newest version, 1" in said.out, said.describe()
    assert site.versions("both.h5") == [1]
    # A user that asks for the older one gets it, and is told.
    result = site.cli("recover", "--version", "1", site.local("both.h5")).ok()
    assert "newer than its newest version, 1" in result.err, result.describe()
    assert b"flushed" not in hdf5.dump(site.local("both.h5"), "-H")
    result = site.cli("recover", site.local("both.h5")).ok()
    assert "it is version 2 now" in result.err, result.describe()
    assert site.versions("both.h5") == [1, 2]
    site.assert_mirrored("both.h5")
    assert b"flushed" in hdf5.dump(site.local("both.h5"), "-H")
