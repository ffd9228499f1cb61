"""Four threads write one file over an HDF5 that is built for threads: with `./dev test --all`."""

import shutil

import pytest

from harness import paths
from harness.package import Package
from harness.process import run, wait_until

THREADS, ROWS = 4, 500
LIBRARY = paths.CACHE / "hdf5-1.14.5-threadsafe"
TICKS = "h5mirror tick=10ms"

# Every row of a cut is whole; the last one of a dataset may be there and not written yet.
COUNT_ROWS = f"""
    seen = 0
    with h5mirror.open(URL) as f:
        for number in range({THREADS}):
            rows = f[f"d{{number}}"][:]
            expected = number * 1000000 + np.arange(1, len(rows) + 1)[:, None]
            assert (rows[:-1] == expected[:-1]).all(), number
            assert len(rows) == 0 or (rows[-1] == expected[-1]).all() or (rows[-1] == 0).all(), rows[-1]
            seen += len(rows)
    print(seen)
"""


@pytest.fixture
def program(tmp_path):
    if not paths.TEST_ALL:
        pytest.skip("one of the long tests: ./dev test --all")
    assert (LIBRARY / "include" / "hdf5.h").exists(), f"{LIBRARY} is missing; ./dev test --all makes it"
    out = tmp_path / "threads"
    run([shutil.which("cc"), "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{LIBRARY}/include",
         paths.PROGRAMS / "threads.c", "-o", out, f"-L{LIBRARY}/lib", "-lhdf5"], tmp_path).ok()
    return out


@pytest.mark.parametrize("connector", [TICKS, "h5mirror", None], ids=["ticks", "connector", "driver"])
def test_threads_write_one_file(site, program, connector):
    env = site.env(**({"HDF5_VOL_CONNECTOR": connector} if connector else {}))
    env["LD_LIBRARY_PATH"] = str(LIBRARY / "lib")
    writer = site.start([program, "run.h5", THREADS, ROWS], env=env, talks=True)
    assert writer.line() == "writing"
    package = Package(site)
    if connector == TICKS:
        site.wait_for_cut("run.h5")
        seen = set()

        def grew_twice() -> bool:
            seen.add(int(package.py(COUNT_ROWS)))
            return len(seen) >= 3

        wait_until(grew_twice, "the file is not followed")
    rows = int(writer.ask("stop"))
    writer.wait().ok()
    site.assert_mirrored("run.h5")
    assert rows >= THREADS * ROWS and int(package.py(COUNT_ROWS)) == rows
    assert site.versions("run.h5") == [1], "ticks are cuts, not versions"
