"""The VOL connector: programs that never flush are followed, and drivers that a program names are mirrored."""

import filecmp
import json

import pytest

from harness import hdf5, mounts, paths
from harness.package import Package
from harness.process import wait_until

# Writes a row at each line that comes in, and never flushes.
NEVER_FLUSHES = """
    f = h5py.File("run.h5", "w")
    d = f.create_dataset("d", (0, 500), maxshape=(None, 500), chunks=(4, 500), dtype="i4")
    print("ready", flush=True)
    for n, line in enumerate(sys.stdin):
        if line.strip() == "close": break
        d.resize(n + 1, axis=0)
        d[n] = n
        print("done", flush=True)
    f.close()
    print("closed", flush=True)
"""


def ticking(site, connector: str = "h5mirror tick=20ms", **more) -> dict:
    return site.env(HDF5_VOL_CONNECTOR=connector, **more)


def cut_of(site, name: str = "run.h5") -> int:
    asked = site.cli("--json", "status", name)
    return int(json.loads(asked.out)["last_cut"]) if asked.code == 0 else 0


def test_a_program_that_never_flushes_is_followed(both):
    writer = both.start(both.script(NEVER_FLUSHES), env=ticking(both), talks=True)
    assert writer.line() == "ready"
    for n in range(1, 8):
        before = cut_of(both) if n > 1 else 0
        # The flush is made at the entry of a call, once the time has passed.
        wait_until(lambda: writer.ask("row") == "done" and cut_of(both) > before, "no cut is made")
    follower = Package(both).start("""
    with h5mirror.open(URL) as f:
        rows = f["d"][:]
        assert len(rows) > 0 and (rows == np.arange(len(rows))[:, None]).all(), rows
        print(len(rows), flush=True)
    """)
    assert int(follower.line()) >= 1
    assert writer.ask("close") == "closed"
    writer.wait().ok()
    both.assert_mirrored("run.h5")
    assert both.versions("run.h5") == [1], "ticks are cuts, not versions"
    hdf5.assert_opens(both.export("run.h5", 1))


def test_without_changes_there_is_no_cut(site):
    writer = site.start(site.script("""
        f = h5py.File("run.h5", "w")
        f["d"] = np.arange(1000)
        f.flush()
        print("ready", flush=True)
        for line in sys.stdin:
            for _ in range(1000):
                f["d"][5]
                f.visit(lambda name: None)
            print("done", flush=True)
    """), env=ticking(site), talks=True)
    assert writer.line() == "ready"
    wait_until(lambda: cut_of(site) > 0, "the flush is no cut")
    assert writer.ask("read") == "done"  # Changes from before are flushed once.
    before = cut_of(site)
    for _ in range(5):
        assert writer.ask("read") == "done"
    assert cut_of(site) == before


def test_inside_of_an_iteration_nothing_is_flushed(site):
    """A flush there could meet objects that the iteration holds; the next call outside of it makes the cut."""
    writer = site.start(site.script("""
        f = h5py.File("run.h5", "w")
        for n in range(50): f.create_group("g%d" % n)
        f.flush()
        print("ready", flush=True)
        def change(name):
            f[name].attrs["a"] = name
            time.sleep(0.003)
        sys.stdin.readline()
        f.visit(change)
        print("visited", flush=True)
        sys.stdin.readline()
        f.attrs["after"] = 1
        print("done", flush=True)
        sys.stdin.readline()
    """), env=ticking(site), talks=True)
    assert writer.line() == "ready"
    wait_until(lambda: cut_of(site) > 0, "the flush is no cut")
    writer.ask("once")
    before = cut_of(site)
    assert writer.ask("after") == "done"
    wait_until(lambda: cut_of(site) == before + 1, "what the iteration changed is no cut")


def test_a_disk_that_is_nearly_full_is_left_alone(site):
    """After a failed flush HDF5 cannot close the file, so no flush is made that could fail."""
    with mounts.tmpfs(site.work, "8m") as resize:
        writer = site.start(site.script(NEVER_FLUSHES), env=ticking(site), talks=True)
        assert writer.line() == "ready"
        for _ in range(100):
            assert writer.ask("row") == "done"
        assert cut_of(site) == 0
        resize("600m")
        wait_until(lambda: writer.ask("row") == "done" and cut_of(site) > 0, "no cut is made")
        assert writer.ask("close") == "closed"
        writer.wait().ok()
        site.assert_mirrored("run.h5")


NAMED = {
    "sec2": {}, "stdio": {}, "core": {"backing_store": True},
}


@pytest.mark.parametrize("driver", NAMED)
def test_a_driver_that_the_program_names_is_mirrored(both, driver):
    arguments = "".join(f", {key}={value}" for key, value in NAMED[driver].items())
    both.run(both.script(f"""
        def opened(mode): return h5py.File("run.h5", mode, driver="{driver}"{arguments})
        with opened("w") as f:
            f["d"] = np.arange(5000)
            assert f.driver == "{driver}", f.driver
        with opened("r+") as f:
            f["e"] = np.arange(5000)
            assert f.driver == "{driver}", f.driver
        with opened("r") as f:
            assert (f["e"][:] == f["d"][:]).all() and f.driver == "{driver}"
    """), env=ticking(both, "h5mirror drivers=all")).ok()
    both.assert_mirrored("run.h5")
    assert both.versions("run.h5") == [1, 2]
    assert filecmp.cmp(both.export("run.h5", 2), both.local("run.h5"), shallow=False)


def test_core_without_a_file_and_images_are_left_alone(both):
    both.run(both.script("""
        with h5py.File("memory.h5", "w", driver="core", backing_store=False) as f:
            f["d"] = np.arange(5000)
        assert not os.path.exists("memory.h5")
        with h5py.File("seen.h5", "w") as f: f["d"] = 1
        image = open("seen.h5", "rb").read()
        import io
        with h5py.File(io.BytesIO(image), "r") as f: assert f["d"][()] == 1
    """), env=ticking(both, "h5mirror drivers=all")).ok()
    assert not both.exists("memory.h5")


def test_without_it_a_named_driver_is_not_mirrored(site):
    site.run(site.script('h5py.File("run.h5", "w", driver="stdio").close()'), env=ticking(site)).ok()
    assert not site.exists("run.h5")


def test_a_wrong_setting_is_told_and_the_program_goes_on(both):
    result = both.run(both.script('h5py.File("run.h5", "w").attrs["a"] = 1'), env=ticking(both, "h5mirror tock=1s")).ok()
    assert "HDF5_VOL_CONNECTOR: tock=1s: unknown key; known are: tick, drivers" in result.err, result.describe()
    both.assert_mirrored("run.h5")


def test_it_stands_below_another_connector(site):
    """HDF5's own pass-through connector above ours: ticks go on."""
    writer = site.start(site.script(NEVER_FLUSHES), talks=True,
                        env=ticking(site, "pass_through under_vol=457;under_info={tick=20ms;}"))
    assert writer.line() == "ready"
    wait_until(lambda: writer.ask("row") == "done" and cut_of(site) > 1, "no cut is made")
    assert writer.ask("close") == "closed"
    site.assert_mirrored("run.h5")


def test_exec_sets_it_and_says_where_it_is_missing(site):
    script = site.script(f'h5py.File({str(site.local("run.h5"))!r}, "w", driver="stdio").attrs["a"] = 1')
    report = site.directory / "report.json"
    result = site.cli("exec", "--root", site.work, "--tick", "50ms", "--all-drivers", "--report", report, "--", *script)
    assert result.ok() and "connector" not in result.err, result.describe()
    libraries = json.loads(report.read_text())["libraries"]
    assert libraries and all(each["connector"] for each in libraries), libraries
    site.assert_mirrored("run.h5")
    refused = site.cli("exec", "--tick", "1ms", "--", "true")
    assert refused.code == 2 and "--tick: '1ms' is no duration from 10ms to 24h" in refused.err, refused.describe()


def test_a_library_before_1_14_runs_without_it(site):
    old = paths.venv_python("3.8.0")
    if not old.exists():
        pytest.skip("no environment with h5py 3.8.0; ./dev setup makes it")
    script = site.script(f'h5py.File({str(site.local("old.h5"))!r}, "w").attrs["a"] = 1')
    result = site.cli("exec", "--root", site.work, "--tick", "100ms", "--", old, *script[1:])
    assert result.code == 0 and "NOT mirrored: libhdf5 1.12.2" in result.err, result.describe()
    hdf5.assert_opens(site.local("old.h5"))
