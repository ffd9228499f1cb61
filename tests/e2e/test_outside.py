"""A plain run between two mirrored ones: its changes become a version, unless the server has moved or the file is
torn."""

import os
import signal
import threading

import pytest

from harness import hdf5, paths
from harness.process import wait_until
from harness.proxy import Proxy

MAKE = """
    with h5py.File("run.h5", "w") as f:
        f["d"] = np.random.default_rng(1).integers(0, 256, {mib} << 20, "u1")
"""

# The work of a program that knows nothing of the driver.
PLAIN = """
    with h5py.File("run.h5", "r+") as f:
        f["d"][4096:8192] = 7
        f["plain"] = np.arange(5)
"""

GO_ON = """
    with h5py.File("run.h5", "r+") as f:
        f["d"][9000:9100] = 9
        f.attrs["n"] = {n}
"""


def plainly(site, script: str = PLAIN) -> str:
    """Runs it without the driver; returns the digest of the file after it."""
    site.run(site.script(script), env=site.plain_env()).ok()
    return hdf5.digest(site.local("run.h5"))


def go_on(site, n: int = 1, **keys):
    return site.py(GO_ON.format(n=n), config=site.config(**keys))


def assert_taken_in(site, result, outside: str, version: int = 2) -> None:
    """The plain run's file is a version of its own, and the mirror goes on from it."""
    assert "diverged" not in result.err, result.describe()
    assert site.versions("run.h5") == list(range(1, version + 2))
    assert site.log("run.h5")[1]["comment"] == "outside change"
    assert hdf5.digest(site.export("run.h5", version)) == outside
    site.assert_mirrored("run.h5")
    assert site.record("run.h5")["state"] == "clean"


def test_a_plain_run_between_two_mirrored_ones_is_a_version(site):
    site.py(MAKE.format(mib=24))
    site.keep("run.h5")
    outside = plainly(site)
    result = go_on(site)
    assert_taken_in(site, result, outside)
    go_on(site, 2)
    site.assert_mirrored("run.h5")


def test_only_what_differs_is_sent(bare_site):
    site = bare_site
    with Proxy(site.server.address) as site.proxy:
        site.py(MAKE.format(mib=24))
        site.settle("run.h5")
        outside = plainly(site)
        before = site.proxy.tell("totals")["to_server_bytes"]
        result = go_on(site)
        sent = site.proxy.tell("totals")["to_server_bytes"] - before
        assert "run.h5 was changed by a program without the driver" in result.err, result.describe()
        assert result.err.count("outside change") == 1 and "That is version 2" in result.err
        assert sent < 1 << 20, sent
        assert_taken_in(site, result, outside)
        # And again: the file is shorter now, and was replaced by another one.
        outside = plainly(site, """
            with h5py.File("new.h5", "w") as f:
                f["d"] = np.arange(20000)
            os.rename("new.h5", "run.h5")
        """)
        assert_taken_in(site, go_on(site, 2), outside, version=4)
        assert os.path.getsize(site.head("run.h5")) < 1 << 20


def test_times_alone_make_no_version(site):
    site.py(MAKE.format(mib=2))
    site.keep("run.h5")
    os.utime(site.local("run.h5"))
    result = go_on(site)
    assert result.err == "", result.describe()
    site.assert_mirrored("run.h5")
    assert site.versions("run.h5") == [1, 2]


def test_who_wants_to_be_asked_is(site):
    site.py(MAKE.format(mib=2))
    site.keep("run.h5")
    plainly(site)
    result = go_on(site, on_outside_change="ask")
    assert "have diverged" in result.err and "h5mirror resync" in result.err, result.describe()
    assert site.record("run.h5")["state"] == "diverged" and site.versions("run.h5") == [1]
    # From there on the user decides.
    assert "have diverged" in go_on(site, 2).err


def test_nothing_is_overwritten_where_the_server_has_moved(site):
    site.py(MAKE.format(mib=2))
    go_on(site)
    site.cli("rollback", "run.h5@1").ok()
    site.keep("run.h5")
    plainly(site)
    assert "have diverged" in go_on(site, 2).err
    assert site.versions("run.h5") == [1, 2, 3]
    assert hdf5.digest(site.head("run.h5")) == hdf5.digest(site.export("run.h5", 1))


def test_a_file_whose_plain_writer_died_is_not_taken_in(site):
    site.py('with h5py.File("run.h5", "w", libver="latest") as f: f["d"] = np.arange(9000)')
    site.keep("run.h5")
    killed = site.run(site.script("""
        f = h5py.File("run.h5", "r+", libver="latest")
        f["plain"] = np.arange(9)
        f.flush()
        os.kill(os.getpid(), 9)
    """), env=site.plain_env())
    assert killed.code == -signal.SIGKILL
    result = site.run(site.script('h5py.File("run.h5", "r+", libver="latest").attrs["n"] = 1'))
    assert "have diverged" in result.err, result.describe()
    assert site.versions("run.h5") == [1]


def test_without_locks_nobody_knows_whether_it_is_closed(site):
    site.py(MAKE.format(mib=2))
    site.keep("run.h5")
    plainly(site)
    result = site.py(GO_ON.format(n=1), HDF5_USE_FILE_LOCKING="FALSE")
    assert "have diverged" in result.err, result.describe()


def test_it_comes_after_a_close_that_the_server_did_not_see(site):
    site.py(MAKE.format(mib=2))
    site.keep("run.h5")
    site.server.stop()
    assert "behind" in go_on(site, timeout="200ms").err
    outside = plainly(site)
    assert site.record("run.h5")["state"] == "behind"
    site.server.start()
    result = go_on(site, 2)
    assert_taken_in(site, result, outside)


def test_it_comes_while_the_server_is_away(site):
    site.py(MAKE.format(mib=2))
    site.keep("run.h5")
    plainly(site)
    site.server.stop()
    assert "behind" in go_on(site, timeout="200ms").err
    site.server.start()
    result = go_on(site, 2)
    assert "diverged" not in result.err, result.describe()
    site.assert_mirrored("run.h5")
    # The plain run's change is in the version of the next run.
    assert site.versions("run.h5") == [1, 2]


@pytest.mark.limit(300)
def test_a_server_that_dies_in_the_middle_gets_it_again(bare_site):
    site = bare_site
    with Proxy(site.server.address) as site.proxy:
        site.py(MAKE.format(mib=24))
        site.settle("run.h5")
        plainly(site, """
            with h5py.File("run.h5", "r+") as f:
                f["d"][:] = np.random.default_rng(2).integers(0, 256, len(f["d"]), "u1")
        """)
        site.proxy.tell(f"throttle {16 << 20}")
        before = site.proxy.tell("totals")["to_server_bytes"]

        def die() -> None:
            wait_until(lambda: site.proxy.tell("totals")["to_server_bytes"] - before > 4 << 20, "nothing was sent")
            site.server.kill9()
            site.server.start()
            site.proxy.tell("throttle 0")

        killer = threading.Thread(target=die)
        killer.start()
        result = go_on(site)
        killer.join()
        assert "diverged" not in result.err, result.describe()
        if site.record("run.h5")["state"] != "clean":  # It was closed before the server was back.
            go_on(site, 2)
        site.assert_mirrored("run.h5")
        assert any("outside change" in row["comment"] for row in site.log("run.h5")), site.log("run.h5")


KILLED = """
    f = h5py.File("run.h5", "r+")
    d = f["d"]
    del os.environ["KILL_FILE"]
    d[9200:9300] = {n}
    f.close()
"""


def is_version(site, outside: str, newer_than: int) -> bool:
    return any(hdf5.digest(site.export("run.h5", version)) == outside for version in site.versions("run.h5")[newer_than:])


@pytest.mark.limit(300)
def test_who_is_killed_in_the_middle_loses_nothing(bare_site):
    """At each call by which the program changes a file, from its first write on."""
    site = bare_site
    site.py(MAKE.format(mib=1))
    site.settle("run.h5")
    untouched, before = 0, 1
    for number in range(1, 100):
        outside = plainly(site, PLAIN.replace('f["plain"]', f'f["plain{number}"]').replace("= 7", f"= {number}"))
        env = site.env(LD_PRELOAD=str(paths.TEST_BIN / "libe2e_kill_at.so"), KILL_FILE="none", KILL_AT=str(number))
        done = site.run(site.script(KILLED.format(n=number)), env=env)
        if done.code == 0:
            break
        assert done.code == -signal.SIGKILL, done.describe()
        site.wait_for_no_lease("run.h5")
        if site.record("run.h5")["state"] != "open":
            # It had changed nothing yet, or was about to end: the user is not asked.
            untouched += hdf5.digest(site.local("run.h5")) == outside
            assert "diverged" not in go_on(site, number).err, number
            assert is_version(site, outside, before), number
        else:
            # Before its own first byte changed the file the outside change was a version.
            assert is_version(site, outside, before), number
            site.cli("recover", site.local("run.h5")).ok()
        before = len(site.versions("run.h5"))
    assert done.code == 0 and untouched >= 3 and number > untouched + 1, (number, untouched)
    site.assert_mirrored("run.h5")


# As MATLAB's files are made: HDF5 leaves room before the superblock, and the program writes it by open().
USER_BLOCK = """
    with h5py.File("run.h5", "w", userblock_size={bytes}) as f:
        f["d0"] = np.arange(20_000)
    for n in range(1, 4):
        with open("run.h5", "r+b") as f:
            f.write(b"MATLAB 7.3 MAT-file %d" % n)
        with h5py.File("run.h5", "r+") as f:
            f["d%d" % n] = np.arange(20_000)
"""


@pytest.mark.parametrize("size", [512, 8192])
def test_a_user_block_is_a_change_of_the_next_open(site, size):
    result = site.py(USER_BLOCK.format(bytes=size))
    assert result.err == "", result.describe()
    site.assert_mirrored("run.h5")
    assert site.versions("run.h5") == [1, 2, 3, 4]
    newest = site.export("run.h5", 4).read_bytes()
    assert newest.startswith(b"MATLAB 7.3 MAT-file 3") and newest == site.local("run.h5").read_bytes()


@pytest.mark.parametrize("ack", ["applied", "none"])
def test_a_user_block_of_a_file_whose_close_was_not_waited_for(site, ack):
    """If the answer comes between the block and the open, nothing is known to be level: all of the file is sent."""
    result = site.py(USER_BLOCK.format(bytes=512), config=site.config(ack=ack))
    assert "diverged" not in result.err, result.describe()
    site.assert_mirrored("run.h5")
    assert site.local("run.h5").read_bytes().startswith(b"MATLAB 7.3 MAT-file 3")


def test_a_user_block_and_data_are_an_outside_change(site):
    site.py(USER_BLOCK.format(bytes=512))
    site.keep("run.h5")
    outside = plainly(site, """
        with h5py.File("run.h5", "r+") as f:
            f["d1"][3] = 7
        with open("run.h5", "r+b") as f:
            f.write(b"another one")
    """)
    result = site.py('h5py.File("run.h5", "r+").attrs["n"] = 1')
    assert "outside change" in result.err and "diverged" not in result.err, result.describe()
    assert hdf5.digest(site.export("run.h5", 5)) == outside
    site.assert_mirrored("run.h5")


def test_files_of_matlab_are_mirrored(site):
    result = site.py("""
        import hdf5storage
        for n in range(3):
            hdf5storage.savemat("run.mat", {"a": np.arange(10.0), "s": "step %d" % n}, appendmat=False, truncate_existing=True)
        hdf5storage.savemat("run.mat", {"b": np.eye(3)}, appendmat=False)
        assert (hdf5storage.loadmat("run.mat")["b"] == np.eye(3)).all()
    """)
    assert "diverged" not in result.err, result.describe()
    site.assert_mirrored("run.mat")
    assert site.export("run.mat", site.versions("run.mat")[-1]).read_bytes() == site.local("run.mat").read_bytes()
