"""Files that are renamed without being asked: the history follows at the next open."""

import os
import shutil

MAKE = """
    with h5py.File("run.h5", "w") as f:
        f["d"] = np.arange(100_000)
    with h5py.File("run.h5", "r+") as f:
        f.attrs["n"] = 1
"""
GO_ON = "with h5py.File({name!r}, 'r+') as f: f.attrs['n'] = f.attrs['n'] + 1"


def go_on(site, name, **options):
    result = site.py(GO_ON.format(name=name), **options)
    assert result.err == "", result.describe()


def assert_followed(site, old, new, versions):
    """All of the history is under the new name, nothing was sent twice, nothing is left of the old name."""
    state = site.assert_mirrored(new)
    assert site.versions(new) == versions
    assert not site.exists(old) and not site.head(old).exists()
    assert site.record(new)["state"] == "clean" and "renamed_from" not in site.record(new)
    assert state["origin"]["path"] == str(site.local(new))


def test_history_follows_a_file_renamed_in_its_directory(site):
    site.py(MAKE)
    os.rename(site.local("run.h5"), site.local("final.h5"))
    go_on(site, "final.h5")
    assert_followed(site, "run.h5", "final.h5", [1, 2, 3])
    assert not site.local("run.h5.h5m").exists()
    go_on(site, "final.h5")
    assert site.versions("final.h5") == [1, 2, 3, 4]


def test_history_follows_a_directory(site):
    (site.work / "runs").mkdir()
    site.py(MAKE.replace("run.h5", "runs/run.h5"))
    os.rename(site.work / "runs", site.work / "archive")
    go_on(site, "archive/run.h5")
    assert_followed(site, "runs/run.h5", "archive/run.h5", [1, 2, 3])


def test_old_name_is_free_for_another_file(site):
    site.py(MAKE)
    os.rename(site.local("run.h5"), site.local("run-1.h5"))
    go_on(site, "run-1.h5")
    site.py(MAKE)
    assert site.versions("run-1.h5") == [1, 2, 3]
    assert site.versions("run.h5") == [1, 2]
    site.assert_mirrored("run.h5")
    site.assert_mirrored("run-1.h5")


def test_copy_is_a_file_of_its_own(site):
    site.py(MAKE)
    shutil.copytree(site.local("run.h5.h5m"), site.local("copy.h5.h5m"))
    shutil.copy2(site.local("run.h5"), site.local("copy.h5"))
    go_on(site, "copy.h5")
    go_on(site, "run.h5")
    assert site.versions("run.h5") == [1, 2, 3]
    assert site.versions("copy.h5") == [1]
    site.assert_mirrored("copy.h5")


def test_two_configured_names_of_one_path_are_no_rename(site):
    site.py(MAKE)
    other_root = site.config(root=site.work.parent)
    go_on(site, "run.h5", config=other_root)
    assert site.versions("run.h5") == [1, 2]
    assert site.versions("work/run.h5") == [1]


def test_rename_is_told_when_the_server_is_back(site):
    site.py(MAKE)
    site.server.stop()
    os.rename(site.local("run.h5"), site.local("final.h5"))
    result = site.py(GO_ON.format(name="final.h5"), config=site.config(timeout="1s"))
    assert "is behind" in result.err, result.describe()
    assert site.record("final.h5")["renamed_from"] == "run.h5"
    site.server.start()
    go_on(site, "final.h5")  # Sends the changes that the close before could not send.
    assert_followed(site, "run.h5", "final.h5", [1, 2, 3])


def test_where_the_server_has_lost_it_it_is_a_new_file(site):
    site.py(MAKE)
    site.cli("rm", "run.h5").ok()
    os.rename(site.local("run.h5"), site.local("final.h5"))
    go_on(site, "final.h5")
    assert site.versions("final.h5") == [1]
    site.assert_mirrored("final.h5")
    assert site.record("final.h5")["state"] == "clean"


def test_new_name_that_is_taken_is_not_overwritten(site):
    site.py(MAKE)
    site.py(MAKE.replace("run.h5", "final.h5"))
    os.rename(site.local("run.h5"), site.local("final.h5"))  # Its record stays, and is that of the other.
    result = site.py(GO_ON.format(name="final.h5"))
    assert "diverged" in result.err, result.describe()
    assert site.versions("final.h5") == [1, 2] and site.versions("run.h5") == [1, 2]
