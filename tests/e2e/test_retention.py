"""The server drops versions by itself: by rule, or at a limit, and never more than it must."""

import contextlib
import shutil
import signal
import sqlite3
import time

import pytest
from harness import inotify, mounts, paths
from harness.process import wait_until
from harness.site import Site

CLOSES = """
    for n in range({first}, {end}):
        with h5py.File("{name}", "a") as f:
            f.attrs["n"] = n
            f.require_dataset("d", ({size},), "f8")[:] = np.random.rand({size})
"""

RULES = """
[[retention]]
files = "kept/**"
keep_all = true
[[retention]]
files = "*.h5"
keep_last = 3
"""

LIMIT = """
[[retention]]
files = "*.h5"
history_max_bytes = "2MiB"
"""


def number_in(site, name, version):
    script = site.script(f"print(h5py.File({str(site.export(name, version))!r}).attrs['n'])")
    return int(site.run(script, env=site.plain_env()).ok().out)


@pytest.mark.site(options={"prune_every": "2s"}, tables=RULES)
def test_rules_prune_by_name(bare_site):
    site = bare_site
    (site.work / "kept").mkdir()
    for name in ("run.h5", "kept/run.h5"):
        site.py(CLOSES.format(name=name, first=0, end=8, size=20_000))
    wait_until(lambda: site.versions("run.h5") == [6, 7, 8], "the rule is not applied")
    assert len(site.versions("kept/run.h5")) == 8
    assert [number_in(site, "run.h5", version) for version in (6, 7, 8)] == [5, 6, 7]
    log = site.server.log()
    assert 'file="run.h5" drops versions' in log and '"*.h5" (h5mirrord.toml:' in log, site.server.log_tail()
    assert site.status("run.h5")["history_notice"] is None


@pytest.mark.site(tables=LIMIT)
def test_a_limit_thins_and_then_stops_and_goes_on(bare_site):
    site = bare_site
    site.py(CLOSES.format(name="run.h5", first=0, end=40, size=20_000))
    site.settle("run.h5")
    wait_until(lambda: site.status("run.h5")["history_bytes"] <= 2 << 20, "the limit does not thin", 60)
    versions = site.versions("run.h5")
    assert versions[-1] == 40 and versions == list(range(versions[0], 41)), versions
    assert number_in(site, "run.h5", versions[0]) == versions[0] - 1
    assert "history_max_bytes" in site.status("run.h5")["history_notice"]
    assert "dropped early" in site.cli("status", "run.h5").ok().out
    assert "dropped early" in site.cli("log", "run.h5").ok().err

    tagged = 40
    while not (site.status("run.h5")["history_notice"] or "").startswith("stopped"):
        assert tagged < 80, site.server.log_tail()
        site.cli("tag", f"run.h5@{site.versions('run.h5')[-1]}", f"t{tagged}").ok()
        site.py(CLOSES.format(name="run.h5", first=tagged, end=tagged + 1, size=20_000))
        site.settle("run.h5")
        tagged += 1
        time.sleep(0.3)
    newest = site.versions("run.h5")[-1]
    site.py(CLOSES.format(name="run.h5", first=100, end=103, size=20_000))
    assert site.versions("run.h5")[-1] == newest, "no version is made"
    site.settle("run.h5")
    script = site.script(f"print(h5py.File({str(site.head('run.h5'))!r}).attrs['n'])")
    assert int(site.run(script, env=site.plain_env()).ok().out) == 102, "the head goes on"
    refused = site.cli("commit", "run.h5", "-m", "please")
    assert refused.code != 0 and "stopped" in refused.err, refused.describe()
    site.cli("prune", "run.h5", "--keep-last", "2").ok()
    wait_until(lambda: not (site.status("run.h5")["history_notice"] or "").startswith("stopped"),
               "it does not go on", 90)
    site.py(CLOSES.format(name="run.h5", first=200, end=201, size=20_000))
    assert site.versions("run.h5")[-1] == newest + 1


def fill(root, size):
    """Writes a file of `size` bytes below `root`, no faster than histories there give way to it."""
    filler = root / "filler"
    with open(filler, "wb", buffering=0) as file:
        for _ in range(size >> 20):
            wait_until(lambda: shutil.disk_usage(root).free > 4 << 20, "histories do not give way", 30)
            file.write(b"x" * (1 << 20))
    return filler


@pytest.mark.limit(600)
def test_a_small_disk_makes_histories_give_way_before_a_writer_fails(tmp_path):
    with mounts.tmpfs(tmp_path / "small", "64m") as resize:
        site = Site(tmp_path, root=tmp_path / "small", options={"min_free": "35%"})
        try:
            site.server.start()
            for turn in range(25):  # 100 MiB of history on 64 MiB, one second each.
                site.py(CLOSES.format(name="run.h5", first=4 * turn, end=4 * turn + 4, size=1 << 17))
                assert site.record("run.h5")["state"] == "clean", site.server.log_tail()
                time.sleep(1)
            site.assert_mirrored("run.h5")
            versions = site.versions("run.h5")
            # How many closes found the history stopped for a moment depends on the machine's speed.
            assert 2 < len(versions) < 60 and versions[0] > 20, versions
            assert number_in(site, "run.h5", versions[0]) >= versions[0] - 1
            assert number_in(site, "run.h5", versions[-1]) >= 90
            assert "min_free" in site.server.log(), site.server.log_tail()

            filler = fill(site.root, 44 << 20)
            wait_until(lambda: (site.status("run.h5")["history_notice"] or "").startswith("stopped"),
                       "history does not stop", 30)
            newest = site.versions("run.h5")[-1]
            site.py("h5py.File('run.h5', 'a').attrs['n'] = 1000")
            assert site.versions("run.h5")[-1] == newest
            assert site.record("run.h5")["state"] == "clean"
            filler.unlink()
            resize("128m")
            wait_until(lambda: site.status("run.h5")["history_notice"] is None
                       or not site.status("run.h5")["history_notice"].startswith("stopped"), "it does not go on", 30)
            site.py("h5py.File('run.h5', 'a').attrs['n'] = 1001")
            assert site.versions("run.h5")[-1] == newest + 1
        finally:
            site.close()


def test_stats_and_a_dry_run_say_what_a_prune_gives_back(bare_site):
    """Within 2 % of the space that the segments free, and exact as long as there is no writer."""
    site = bare_site
    site.py(CLOSES.format(name="run.h5", first=0, end=30, size=20_000))
    site.settle("run.h5")
    keep = ("--keep-last", "4")
    stats = site.json("stats", "run.h5", *keep)
    assert stats["version_count"] == 30 and stats["prune"]["versions"] == 26
    assert sum(each["saved_bytes"] for each in stats["versions"]) == stats["pages_bytes"]
    assert stats["head_bytes"] > 160_000 and stats["index_bytes"] > 0 and stats["garbage_bytes"] == 0
    shown = site.cli("stats", "run.h5", *keep, "-n", "3").ok().out
    assert "would drop 26 of 30 versions" in shown, shown
    dry = site.json("prune", "run.h5", *keep, "--dry-run")
    done = site.json("prune", "run.h5", *keep)
    assert dry["estimated_bytes"] == stats["prune"]["bytes"] == done["estimated_bytes"]
    assert abs(done["freed_bytes"] - dry["estimated_bytes"]) <= done["freed_bytes"] // 50, (dry, done)
    assert site.json("stats", "run.h5")["pages_bytes"] == stats["pages_bytes"] - done["freed_bytes"]


def versions_of_stopped(site, name, copy):
    """How many versions the index of `name` has, as a start after a kill would find it."""
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for part in ("index", "index-wal"):
        shutil.copy(site.root / f"{name}.h5m" / part, copy / part)
    with contextlib.closing(sqlite3.connect(copy / "index")) as index:
        return index.execute("SELECT COUNT(*) FROM version").fetchone()[0]


def kill_between_halves(site, name, kept, mark_is_there):
    """Lets the server prune in slices, and kills it once `kept` versions are left and the mark is still there."""
    process = site.server.process
    while mark_is_there():
        process.signal(signal.SIGSTOP)
        if versions_of_stopped(site, name, site.work / "copy") == kept and mark_is_there():
            break
        process.signal(signal.SIGCONT)
        time.sleep(0.0005)
    site.server.kill9()


def test_a_prune_that_a_kill_cut_short_is_finished_by_the_next_start(bare_site):
    """The kill comes after a prune has dropped its versions, before it has given back their pages."""
    site = bare_site
    pruning = site.root / ".h5mirror" / "pruning"
    pruning.mkdir(exist_ok=True)
    for turn in range(10):  # On a loaded machine the moment may be missed.
        end = 40 * (turn + 1)
        site.py(CLOSES.format(name="run.h5", first=end - 40, end=end, size=20_000))
        site.settle("run.h5")
        before = site.json("stats", "run.h5")["pages_bytes"]
        with inotify.made_in(pruning) as wait_for_mark:
            prune = site.start([paths.BIN / "h5mirror", "--server", site.server.address, "prune", "run.h5",
                                "--keep-last", "2"], env=site.plain_env())
            assert wait_for_mark(20), "no mark of the prune"
            kill_between_halves(site, "run.h5", 2, lambda: any(pruning.iterdir()))
        prune.kill()
        cut_short = any(pruning.iterdir())
        site.server.start()
        wait_until(lambda: not any(pruning.iterdir()), "the prune is not finished", 30)
        assert number_in(site, "run.h5", end) == end - 1
        assert len(site.versions("run.h5")) == 2
        if cut_short:
            assert site.json("stats", "run.h5")["pages_bytes"] < before / 4
            return
    raise AssertionError("no kill came after the versions were dropped and before their pages were")
