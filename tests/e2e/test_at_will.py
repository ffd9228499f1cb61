"""Versions at will: on request, on a schedule, folded; and files that are moved, removed and brought back."""

import time

import pytest

from harness.process import wait_until

LOOP = """
    with h5py.File("run.h5", "a") as f:
        f.require_dataset("d", (1000,), "f8")
        n = 0
        while not os.path.exists("stop"):
            n += 1
            f["d"][:] = n
            f.flush()
            time.sleep(0.02)
"""


def loop(site, **keys):
    writer = site.start(site.script(LOOP), config=site.config(ack="applied", **keys))
    site.wait_for_cut("run.h5")
    return writer


def stop(site, writer):
    (site.work / "stop").touch()
    writer.wait(30).ok()
    site.wait_for_no_lease("run.h5")


def test_commit_takes_the_next_cut_of_a_living_writer(site):
    writer = loop(site)
    made = [site.json("commit", "run.h5", "-m", f"number {n}")["version"] for n in range(3)]
    assert [each["version"] for each in made] == [1, 2, 3]
    assert [each["comment"] for each in made] == ["number 0", "number 1", "number 2"]
    assert made[0]["program"].startswith("python"), "the writing program, not the asking one"
    wait_until(lambda: int(site.status("run.h5")["last_cut"]) > int(made[2]["cut"]), "the writer goes on")
    stop(site, writer)
    assert len(site.versions("run.h5")) == 4, "and the close"
    site.keep("run.h5")
    site.check_kept()
    again = site.json("commit", "run.h5", "-m", "nothing new")
    assert again["unchanged"] and again["version"]["version"] == 4


def test_commit_says_that_no_cut_came_in_time(site):
    writer = site.start(site.script("""
        with h5py.File("run.h5", "w") as f:
            f["d"] = 1
            f.flush()
            while not os.path.exists("stop"):
                time.sleep(0.02)
    """), config=site.config(ack="applied"))
    site.wait_for_cut("run.h5")
    refused = site.cli("commit", "run.h5", "--wait", "0.5")
    assert refused.code == 4 and "made no cut in" in refused.err, refused.describe()
    stop(site, writer)
    assert len(site.versions("run.h5")) == 1, "the request that ran out left nothing behind"


def test_a_request_outlives_its_writer(site):
    """The writer is killed while a caller waits for a version: its last cut becomes that version, or is one already."""
    writer = loop(site)
    site.cli("commit", "run.h5", "-m", "first").ok()
    writer.kill()
    made = site.json("commit", "run.h5", "-m", "second")
    assert made["version"]["version"] in (1, 2)
    site.keep("run.h5")
    site.check_kept()


def test_versions_come_on_a_schedule(site):
    writer = loop(site, version_every="1s")
    wait_until(lambda: len(site.versions("run.h5")) >= 4, "no fourth version", 20)
    times = sorted(row["time"] for row in site.log("run.h5"))
    stop(site, writer)
    seconds = [float(each[17:29]) for each in times]
    gaps = [(b - a) % 60 for a, b in zip(seconds, seconds[1:])]
    assert all(gap >= 0.99 for gap in gaps), gaps
    site.keep("run.h5")
    site.check_kept()


def test_closes_in_a_loop_are_folded(site):
    began = time.monotonic()
    site.py("""
        for n in range(20):
            with h5py.File("run.h5", "a") as f:
                f.attrs["n"] = n
            time.sleep(0.05)
    """, config=site.config(version_min_interval="2s"))
    assert site.record("run.h5")["state"] == "clean", "each close is durable"
    # The first close is one, and from there on at most one comes each 2 s, however long the loop takes.
    most = 2 + int((time.monotonic() - began) / 2)
    last_cut = site.status("run.h5")["last_cut"]
    wait_until(lambda: site.log("run.h5")[0]["cut"] == last_cut, "the folded closes made no version", 30)
    time.sleep(0.3)
    site.assert_mirrored("run.h5")
    versions = site.versions("run.h5")
    assert 2 <= len(versions) <= most, (versions, most)
    out = site.export("run.h5", versions[-1])
    assert int(site.run(site.script(f"print(h5py.File({str(out)!r}).attrs['n'])"), env=site.plain_env()).ok().out) == 19
    assert site.versions("run.h5") == versions


def test_a_commit_by_name_is_never_folded_and_a_stop_keeps_the_fold(site):
    site.py("""
        for n in range(3):
            with h5py.File("run.h5", "a") as f:
                f.attrs["n"] = n
    """, config=site.config(version_min_interval="1h"))
    assert len(site.versions("run.h5")) == 1
    assert not site.json("commit", "run.h5", "-m", "now")["unchanged"]
    site.py('h5py.File("run.h5", "a").attrs["n"] = 7', config=site.config(version_min_interval="1h"))
    assert len(site.versions("run.h5")) == 2
    site.server.stop()
    site.server.start()
    assert len(site.versions("run.h5")) == 3


def test_a_moved_file_keeps_its_history(site):
    site.py("for n in range(2):\n  with h5py.File('run.h5', 'a') as f: f.attrs['n'] = n")
    site.keep("run.h5")
    noted = dict(site.kept["run.h5"])
    site.cli("mv", "run.h5", "old/first.h5").ok()
    assert not site.exists("run.h5")
    site.kept = {"old/first.h5": noted}
    site.check_kept()
    assert site.cli("mv", "none.h5", "x.h5").code == 3
    refused = site.cli("mv", "old/first.h5", "old/first.h5")
    assert refused.code == 5, refused.describe()


def test_a_local_file_is_moved_with_its_mirror_and_written_on(site):
    site.py("for n in range(2):\n  with h5py.File('run.h5', 'a') as f: f.attrs['n'] = n")
    site.settle("run.h5")
    moved = site.json("mv", site.local("run.h5"), site.local("final.h5"), "--name", "final.h5")
    assert moved["to"] == "final.h5" and moved["local"]["to"] == str(site.local("final.h5"))
    assert not site.local("run.h5").exists() and not site.exists("run.h5")
    site.py("with h5py.File('final.h5', 'a') as f: f.attrs['n'] = 2")
    site.assert_mirrored("final.h5")
    assert site.versions("final.h5") == [1, 2, 3], "it goes on where it was"
    assert site.record("final.h5")["state"] == "clean"


def test_a_file_that_is_written_is_neither_moved_nor_removed(site):
    writer = loop(site)
    for arguments in (("mv", "run.h5", "x.h5"), ("rm", "run.h5")):
        refused = site.cli(*arguments)
        assert refused.code == 5 and "is being written by" in refused.err, refused.describe()
    stop(site, writer)
    site.assert_mirrored("run.h5")


def test_a_removed_file_comes_back(site):
    site.py("for n in range(2):\n  with h5py.File('run.h5', 'a') as f: f.attrs['n'] = n")
    site.keep("run.h5")
    removed = site.json("rm", "run.h5")["removed"]
    assert not site.exists("run.h5") and not site.head("run.h5").exists()
    assert [each["name"] for each in site.json("ls", "--removed")["files"]] == ["run.h5"]
    site.server.kill9()
    site.server.start()
    site.cli("undelete", "run.h5").ok()
    site.check_kept()
    assert site.json("ls", "--removed")["files"] == []
    site.cli("rm", "run.h5").ok()
    site.kept["back.h5"] = site.kept.pop("run.h5")
    site.py("with h5py.File('run.h5', 'w') as f: f.attrs['n'] = 9")
    taken = site.cli("undelete", "run.h5")
    assert taken.code == 5 and "--as" in taken.err, taken.describe()
    site.cli("undelete", "run.h5", "--as", "back.h5").ok()
    assert site.versions("back.h5") == [1, 2] and site.versions("run.h5") == [1]
    assert site.cli("undelete", "--id", removed["id"]).code == 3


@pytest.mark.site(options={"removed_keep": "1s"})
def test_what_has_expired_cannot_come_back(site):
    site.py("h5py.File('run.h5', 'w').attrs['n'] = 1")
    site.settle("run.h5")
    site.cli("rm", "run.h5").ok()
    time.sleep(1.1)
    late = site.cli("undelete", "run.h5")
    assert late.code == 3 and "retention ended" in late.err, late.describe()
    site.server.stop()
    site.server.start()
    wait_until(lambda: site.json("ls", "--removed")["files"] == [], "it was not purged", 10)
    removed = site.root / ".h5mirror" / "removed"
    wait_until(lambda: not list(removed.iterdir()), "what was purged is still on the disk", 10)
