"""Unmodified programs in three languages: local file, head and h5dump's output are the same after close."""

import filecmp

import pytest

from harness import hdf5, paths
from harness.process import wait_until


def check_after(site, name):
    status = site.assert_mirrored(name)
    assert not status.get("lease"), status
    for version in site.versions(name):
        hdf5.assert_opens(site.export(name, version))
    newest = site.export(name, site.versions(name)[-1])
    assert filecmp.cmp(newest, site.local(name), shallow=False)


def test_h5py_program_is_mirrored(both):
    both.local("lab").mkdir()
    both.run([both.python, paths.PROGRAMS / "measure.py", "lab/day1.h5"]).ok()
    check_after(both, "lab/day1.h5")
    assert len(both.versions("lab/day1.h5")) == 3, "one version for each of the three closes"


@pytest.mark.parametrize("program", ["simulate", "heat"])
def test_compiled_program_is_mirrored(site, program):
    executable = paths.TEST_BIN / f"e2e_{program}"
    if not executable.exists():
        pytest.skip(f"no {executable}: built only with HDF5's Fortran modules")
    site.run([executable, "out.h5"]).ok()
    check_after(site, "out.h5")
    assert site.versions("out.h5") == [1, 2]


def test_program_run_again_continues_the_history(both):
    program = [both.python, paths.PROGRAMS / "measure.py", "again.h5"]
    both.run(program).ok()
    both.keep("again.h5")
    both.run(program).ok()
    check_after(both, "again.h5")
    assert both.versions("again.h5") == [1, 2, 3, 4, 5, 6]


def test_output_is_what_it_is_without_the_plugin(both):
    """The program writes and prints the same as without a driver."""
    program = [both.python, paths.PROGRAMS / "measure.py", "same.h5"]
    plain = both.run(program, env=both.plain_env()).ok()
    both.local("same.h5").rename(both.local("plain.keep"))
    mirrored = both.run(program).ok()
    assert (mirrored.out, mirrored.err) == (plain.out, plain.err)
    # Not byte for byte: objects of the latest format hold the time at which they were made.
    assert both.local("same.h5").stat().st_size == both.local("plain.keep").stat().st_size
    assert hdf5.dump(both.local("same.h5")) == hdf5.dump(both.local("plain.keep"))


def test_head_follows_a_running_writer(site):
    """With the writer still active, the head at rest is its last cut and opens with plain h5dump."""
    writer = site.start(site.script("""
        with h5py.File("live.h5", "w") as f:
            d = f.create_dataset("d", (0,), maxshape=(None,), chunks=(1000,))
            for n in range(5):
                d.resize(len(d) + 1000, axis=0)
                d[-1000:] = n
                f.flush()
                print("cut", n, flush=True)
                while not os.path.exists(f"go{n}"):
                    time.sleep(0.01)
    """), config=site.config(flush="sync", ack="durable"))
    for n in range(5):
        writer.wait_for_line(f"cut {n}")
        # The local file is locked by its writer, and its bytes can be compared all the same.
        wait_until(lambda: site.head("live.h5").exists()
                   and filecmp.cmp(site.local("live.h5"), site.head("live.h5"), shallow=False), "the head follows")
        assert f"( {1000 * (n + 1)} )".encode() in hdf5.dump(site.head("live.h5"), "-H")
        site.local(f"go{n}").touch()
    writer.wait().ok()
    check_after(site, "live.h5")
    assert site.versions("live.h5") == [1], "flushes are cuts, not versions"


def test_exclude_and_include_keep_files_out(site):
    site.py("""
        for name in ("kept.h5", "scratch.tmp.h5", "other.dat"):
            with h5py.File(name, "w") as f:
                f["x"] = np.arange(10)
    """, config=site.config(include="*.h5", exclude="*.tmp.h5"))
    site.assert_mirrored("kept.h5")
    for name in ("scratch.tmp.h5", "other.dat"):
        assert not site.head(name).exists()
        hdf5.assert_opens(site.local(name))
        assert not (site.work / f"{name}.h5m").exists()


def test_files_outside_the_client_root_pass_through(site, tmp_path):
    outside = tmp_path / "outside.h5"
    site.py(f"""
        with h5py.File({str(outside)!r}, "w") as f:
            f["x"] = np.arange(10)
    """)
    hdf5.assert_opens(outside)
    assert not list(site.root.rglob("outside*"))


def test_a_plugin_directory_alone_changes_no_error(both):
    """After an open that failed HDF5 loads every plugin that it finds, and then tells of the open."""
    script = both.script("""
        try:
            h5py.File("missing.h5", "r")
        except Exception as error:
            print(type(error).__name__, error.errno)
    """)
    env = {**both.plain_env(), "HDF5_PLUGIN_PATH": str(paths.LIB)}
    assert both.run(script, env=env).ok().out == "FileNotFoundError 2\n"


def test_strict_exec_names_a_library_that_is_too_old(site):
    """HDF5 before 1.13 ignores HDF5_DRIVER without a word: `h5mirror exec` says so."""
    old = paths.venv_python("3.8.0")
    if not old.exists():
        pytest.skip("no environment with h5py 3.8.0; ./dev setup makes it")
    script = site.script("h5py.File('old.h5', 'w').close()")
    for strict, code in (([], 0), (["--strict"], None)):
        result = site.cli("exec", "--root", site.work, *strict, "--", old, script[1])
        assert "NOT mirrored: libhdf5 1.12.2" in result.said, result.describe()
        assert result.code == code if code is not None else result.code != 0, result.describe()
    assert not site.exists("old.h5")
