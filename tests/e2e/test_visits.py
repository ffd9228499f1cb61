"""Opens that change nothing, and opens that only look as if they did: none becomes a version."""

import os

import pytest

from harness import hdf5


@pytest.fixture
def written(both):
    """A site with `v.h5`, one version."""
    both.py("""
        with h5py.File("v.h5", "w") as f:
            f["x"] = np.arange(20000)
    """)
    both.keep("v.h5")
    assert both.versions("v.h5") == [1]
    return both


def test_open_that_changes_nothing_makes_no_version(written):
    written.py("""
        for mode in ("r", "r+", "a", "r+"):
            with h5py.File("v.h5", mode) as f:
                f["x"][:10]
    """)
    written.assert_mirrored("v.h5")
    assert written.versions("v.h5") == [1]


def test_open_that_changes_nothing_needs_no_server(written):
    """An untouched r+ open opens no session: with the server gone it is neither slow nor marked."""
    before = written.record("v.h5")
    written.server.kill9()
    result = written.py("h5py.File('v.h5', 'r+').close()", timeout=20)
    assert result.err == "", result.describe()
    assert written.record("v.h5") == before
    written.server.start()


def test_write_of_equal_bytes_makes_no_version(written):
    written.py("""
        with h5py.File("v.h5", "r+") as f:
            f["x"][...] = np.arange(20000)
    """)
    written.assert_mirrored("v.h5")
    assert written.versions("v.h5") == [1]


def test_second_open_while_the_first_is_dirty(written):
    """A second r+ open and close in the same process does not cut the first one's half-written state."""
    written.py("""
        f = h5py.File("v.h5", "r+")
        f["x"][:] = 7
        f["extra"] = np.zeros(100_000)
        for _ in range(3):
            g = h5py.File("v.h5", "r+")
            g.close()
        f["x"][:100] = 8
        f.close()
    """)
    written.assert_mirrored("v.h5")
    assert written.versions("v.h5") == [1, 2]


def test_second_open_as_a_path_alias_while_the_first_is_dirty(written):
    """The same file by a symlink is the same file."""
    written.local("alias.h5").symlink_to("v.h5")
    written.py("""
        f = h5py.File("v.h5", "r+")
        f["x"][:] = 7
        h5py.File("alias.h5", "r+").close()
        f["x"][:100] = 8
        f.close()
    """)
    written.assert_mirrored("v.h5")
    assert written.versions("v.h5") == [1, 2]


def test_refused_truncation_changes_nothing(written):
    """'w' on a file that is open is refused by HDF5 after its probe; the open one goes on."""
    written.py("""
        f = h5py.File("v.h5", "r+")
        f["x"][:] = 9
        for _ in range(2):
            try:
                h5py.File("v.h5", "w")
                raise SystemExit("'w' was not refused")
            except OSError as error:
                assert "truncate" in str(error), error
        f["y"] = 1
        f.close()
    """)
    written.assert_mirrored("v.h5")
    assert written.versions("v.h5") == [1, 2]


def test_refused_exclusive_creation_changes_nothing(written):
    written.py("""
        try:
            h5py.File("v.h5", "x")
            raise SystemExit("'x' was not refused")
        except FileExistsError:
            pass
    """)
    written.assert_mirrored("v.h5")
    assert written.versions("v.h5") == [1]


def test_missing_file_is_file_not_found(both):
    both.py("""
        for mode in ("r", "r+"):
            try:
                h5py.File("absent.h5", mode)
                raise SystemExit("opened")
            except FileNotFoundError as error:
                assert error.errno == 2
    """)
    assert not both.exists("absent.h5")
    assert not both.local("absent.h5.h5m").exists()


def test_file_recreated_under_its_name_keeps_its_history(written):
    """'w' over the file is a next generation: a smaller file, the older version still there."""
    for n in range(2, 5):
        written.py(f"h5py.File('v.h5', 'w')['y{n}'] = np.arange({n})")
        written.assert_mirrored("v.h5")
    assert written.versions("v.h5") == [1, 2, 3, 4]
    assert int(written.status("v.h5")["generation"]) == 4


def test_file_removed_and_created_keeps_its_history(written):
    written.local("v.h5").unlink()
    written.py("h5py.File('v.h5', 'w')['z'] = 1")
    written.assert_mirrored("v.h5")
    assert written.versions("v.h5") == [1, 2]


def test_file_removed_together_with_its_record_and_created(written):
    """Even with no record left: the same origin re-creates its file."""
    written.local("v.h5").unlink()
    for path in written.work.glob("v.h5.h5m/*"):
        path.unlink()
    os.rmdir(written.local("v.h5.h5m"))
    written.py("h5py.File('v.h5', 'w')['z'] = 1")
    written.assert_mirrored("v.h5")
    assert written.versions("v.h5") == [1, 2]


def test_write_temporary_then_replace(both):
    """The safe-save pattern, time after time: no state of either name is lost or torn."""
    for n in range(4):
        result = both.py(f"""
            with h5py.File("save.tmp.h5", "w") as f:
                f["n"] = np.full(5000, {n})
            os.replace("save.tmp.h5", "save.h5")
            with h5py.File("save.h5", "r") as f:
                assert f["n"][0] == {n}
        """)
        assert "diverged" not in result.err.lower(), result.describe()
    both.settle("save.tmp.h5")
    assert both.versions("save.tmp.h5") == [1, 2, 3, 4]
    hdf5.assert_same(both.local("save.h5"), both.head("save.tmp.h5"))
    both.keep("save.tmp.h5")


def test_replaced_file_is_not_taken_for_its_predecessor(written):
    """A file that was moved onto a mirrored name and then changed in place is diverged, not spliced."""
    written.py("h5py.File('new.h5', 'w')['other'] = np.arange(20000) * 2", env=written.plain_env())
    os.replace(written.local("new.h5"), written.local("v.h5"))
    result = written.py("h5py.File('v.h5', 'r+')['z'] = 1", config=written.config(on_outside_change="ask"))
    assert "diverged" in result.err.lower() and "h5mirror resync" in result.err, result.describe()
    assert written.versions("v.h5") == [1]
    written.cli("push", written.local("v.h5")).ok()
    written.assert_mirrored("v.h5")


def test_file_closed_without_being_written_by_hdf5(both):
    """An empty create and close is a version of an empty HDF5 file."""
    both.py("h5py.File('empty.h5', 'w').close()")
    both.assert_mirrored("empty.h5")
    assert both.versions("empty.h5") == [1]


def test_handle_left_open_at_exit_is_closed_by_hdf5(both):
    """A program that never closes its file: HDF5 does at exit, and that is a version."""
    both.py("""
        f = h5py.File("left.h5", "w")
        f["x"] = np.arange(1000)
    """)
    both.assert_mirrored("left.h5")
    assert both.versions("left.h5") == [1]


def test_readers_take_no_lease(written):
    """While a reader has the file open, a writer of another process is mirrored."""
    reader = written.start(written.script("""
        f = h5py.File("v.h5", "r", locking=False)
        print("reading", flush=True)
        while not os.path.exists("enough"):
            time.sleep(0.02)
    """))
    reader.wait_for_line("reading")
    written.py("h5py.File('v.h5', 'r+', locking=False)['y'] = 1")
    written.assert_mirrored("v.h5")
    assert written.versions("v.h5") == [1, 2]
    written.local("enough").touch()
    reader.wait().ok()
