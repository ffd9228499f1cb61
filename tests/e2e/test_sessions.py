"""The right to write: a second writer, two origins under one name, which side is right after a change."""

import filecmp

from harness import hdf5
from harness.process import wait_until
from harness.wire import Wire

HOLD = """
    with h5py.File("held.h5", "w") as f:
        f["x"] = np.arange(50_000)
        f.flush()
        print("open", flush=True)
        while not os.path.exists("release"):
            time.sleep(0.02)
        f["y"] = np.arange(50_000)
"""


def record_state(site, name):
    return site.record(name)["state"]


def test_second_writer_of_a_file_is_refused_and_goes_on_locally(site):
    """The first one's lease stands; the second program's own file is written, unmirrored, and marked."""
    first = site.start(site.script(HOLD))
    first.wait_for_line("open")
    site.wait_for_cut("held.h5")
    second = site.py("""
        with h5py.File("copy.h5", "w") as f:
            f["z"] = 1
    """, config=site.config(root=None, name="held.h5"))
    assert "held.h5" in second.err or "copy.h5" in second.err, second.describe()
    hdf5.assert_opens(site.local("copy.h5"))
    site.local("release").touch()
    first.wait().ok()
    site.assert_mirrored("held.h5")
    assert site.versions("held.h5") == [1]
    assert record_state(site, "copy.h5") in ("behind", "diverged"), "marked as not mirrored"


def test_second_writer_of_the_same_local_file_without_locks(site):
    """With HDF5's file locking off nothing local stops a second writer; the server's lease does."""
    first = site.start(site.script(HOLD), HDF5_USE_FILE_LOCKING="FALSE")
    first.wait_for_line("open")
    site.settle("held.h5")
    lease = site.status("held.h5")["lease"]
    assert int(lease["pid"]) == first.pid, lease
    with Wire(site) as wire:
        wire.open("held.h5", "CONTINUE", path=lease_path(site), base_cut=1)
        opened = wire.read()["opened"]
        assert opened["relation"] == "RELATION_BUSY", opened
        assert opened["state"], "a sentence for people"
        assert wire.finish()["code"] == "FAILED_PRECONDITION"
    site.local("release").touch()
    first.wait().ok()
    site.assert_mirrored("held.h5")


def lease_path(site):
    return site.status("held.h5")["origin"]["path"]


def test_locks_are_those_of_sec2(site):
    """A second process that opens the file for writing gets the same error as without the plugin."""
    for env in (site.plain_env(), site.env()):
        site.local("release").unlink(missing_ok=True)
        first = site.start(site.script(HOLD), env=env)
        first.wait_for_line("open")
        second = site.run(site.script("h5py.File('held.h5', 'r+')"), env=env)
        assert second.code != 0 and "BlockingIOError" in second.err, second.describe()
        assert "unable to lock file, errno = 11" in second.err, second.describe()
        site.local("release").touch()
        first.wait().ok()
        site.local("held.h5").unlink()


def test_two_origins_under_one_name(site):
    """Another machine's or path's file of the same name changes nothing; the user is asked."""
    site.py("h5py.File('a.h5', 'w')['x'] = np.arange(100)", config=site.config(root=None, name="one.h5"))
    site.keep("one.h5")
    for mode in ("w", "a"):
        other = site.py(f"""
            with h5py.File("b.h5", "{mode}") as f:
                f["y"] = np.arange(200)
                del f["y"]
        """, config=site.config(root=None, name="one.h5"))
        assert "diverged" in other.err.lower(), other.describe()
        for command in ("h5mirror resync --from", "push", "adopt"):
            assert command in other.err, other.describe()
        assert record_state(site, "b.h5") == "diverged"
    assert site.versions("one.h5") == [1]
    assert filecmp.cmp(site.local("a.h5"), site.head("one.h5"), shallow=False)


def test_push_settles_two_origins(site):
    """`h5mirror push` makes the local file the next generation; what was there stays in the history."""
    site.py("h5py.File('a.h5', 'w')['x'] = np.arange(100)", config=site.config(root=None, name="one.h5"))
    site.keep("one.h5")
    other = site.config(root=None, name="one.h5")
    site.py("h5py.File('b.h5', 'w')['y'] = np.arange(200)", config=other)
    site.cli("push", site.local("b.h5")).ok()
    site.settle("one.h5")
    assert filecmp.cmp(site.local("b.h5"), site.head("one.h5"), shallow=False)
    assert site.versions("one.h5") == [1, 2]
    site.py("h5py.File('b.h5', 'r+')['z'] = 3", config=other)
    site.settle("one.h5")
    assert site.versions("one.h5") == [1, 2, 3]
    assert filecmp.cmp(site.local("b.h5"), site.head("one.h5"), shallow=False)


def test_adopt_settles_a_file_that_moved(site):
    """A renamed local file is another origin; `adopt` accepts it when it equals the newest version."""
    config = site.config(root=None, name="one.h5")
    site.py("h5py.File('a.h5', 'w')['x'] = np.arange(100)", config=config)
    site.keep("one.h5")
    site.local("a.h5").rename(site.local("moved.h5"))
    if site.local("a.h5.h5m").exists():
        site.local("a.h5.h5m").rename(site.local("moved.h5.h5m"))
    site.cli("adopt", site.local("moved.h5")).ok()
    site.py("h5py.File('moved.h5', 'r+')['y'] = 1", config=config).ok()
    site.settle("one.h5")
    assert site.versions("one.h5") == [1, 2]
    assert filecmp.cmp(site.local("moved.h5"), site.head("one.h5"), shallow=False)


def test_file_changed_without_the_plugin_is_diverged(site):
    """A local file that was changed outside is never taken for the head's successor."""
    site.py("h5py.File('a.h5', 'w')['x'] = np.arange(100)")
    site.keep("a.h5")
    site.py("h5py.File('a.h5', 'r+')['y'] = 1", env=site.plain_env())
    result = site.py("h5py.File('a.h5', 'r+')['z'] = 1", config=site.config(on_outside_change="ask"))
    assert "diverged" in result.err.lower() and "h5mirror resync" in result.err, result.describe()
    assert site.versions("a.h5") == [1]
    site.cli("push", site.local("a.h5")).ok()
    site.assert_mirrored("a.h5")
    site.py("h5py.File('a.h5', 'r+')['w'] = 1")
    site.assert_mirrored("a.h5")
    assert site.versions("a.h5") == [1, 2, 3]


def test_rollback_then_the_same_program_appends(site):
    """After a rollback the local file is newer than the head: 'a' is diverged, recover brings the old state."""
    site.py("h5py.File('r.h5', 'w')['x'] = np.zeros(9000)")
    site.py("h5py.File('r.h5', 'a')['x'][:] = 1")
    site.keep("r.h5")
    site.cli("rollback", "r.h5@1").ok()
    site.settle("r.h5")
    assert filecmp.cmp(site.head("r.h5"), site.export("r.h5", 1), shallow=False)
    assert site.versions("r.h5") == [1, 2, 3]
    again = site.py("h5py.File('r.h5', 'a')['x'][:] = 2")
    assert "diverged" in again.err.lower() and "h5mirror recover" in again.err, again.describe()
    assert site.versions("r.h5") == [1, 2, 3], "nothing was overwritten on either side"
    site.cli("recover", site.local("r.h5")).ok()
    site.assert_mirrored("r.h5")
    site.py("f = h5py.File('r.h5', 'a'); assert f['x'][0] == 0; f['x'][:] = 4; f.close()")
    site.assert_mirrored("r.h5")


def test_rollback_then_the_same_program_creates(site):
    """After a rollback a program that re-creates its file is mirrored at once."""
    program = "h5py.File('r.h5', 'w')['x'] = np.arange(5000)"
    site.py(program)
    site.py("h5py.File('r.h5', 'a')['y'] = 1")
    site.keep("r.h5")
    site.cli("rollback", "r.h5@1").ok()
    site.py(program)
    site.assert_mirrored("r.h5")
    site.keep("r.h5")
    assert site.versions("r.h5") == [1, 2, 3, 4]


def test_rollback_can_be_undone(site):
    site.py("h5py.File('r.h5', 'w')['x'] = np.zeros(9000)")
    site.py("h5py.File('r.h5', 'a')['x'][:] = 1")
    site.keep("r.h5")
    site.cli("rollback", "r.h5@1").ok()
    site.cli("rollback", "r.h5@2").ok()
    site.assert_mirrored("r.h5")
    assert site.versions("r.h5") == [1, 2, 3, 4]


def test_rollback_is_refused_while_a_writer_holds_the_lease(site):
    writer = site.start(site.script(HOLD))
    writer.wait_for_line("open")
    wait_until(lambda: site.cli("status", "held.h5").code == 0, "the session is there")
    result = site.cli("rollback", "held.h5@1")
    assert result.code != 0, result.describe()
    site.local("release").touch()
    writer.wait().ok()
    site.keep("held.h5")
    site.local("release").unlink()
    writer = site.start(site.script(HOLD.replace('"w"', '"a"').replace('"x"', '"x2"').replace('"y"', '"y2"')))
    writer.wait_for_line("open")
    wait_until(lambda: site.status("held.h5")["lease"], "the session is not there")
    result = site.cli("rollback", "held.h5@1")
    assert result.code != 0 and str(writer.pid) in result.err or "writer" in result.err, result.describe()
    site.local("release").touch()
    writer.wait().ok()
    site.assert_mirrored("held.h5")
