"""An HDF5 that is built for threads, with `./dev test --all`: several threads write a file, the connector's ticks show it."""

import shutil

import pytest

from harness import paths
from harness.package import Package
from harness.process import run, wait_until

THREADS, ROWS = 4, 3000
LIBRARY = paths.HDF5.parent / "hdf5-1.14.5-threadsafe"

# Every row of a cut is whole; the last one of a dataset may be there and not written yet.
CHECK = f"""
    seen = 0
    with h5mirror.open(URL) as f:
        for number in range({THREADS}):
            rows = f["d%d" % number][:]
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
         paths.SOURCE / "tests/compat/threads.c", "-o", out, f"-L{LIBRARY}/lib", "-lhdf5"], tmp_path).ok()
    return out


@pytest.mark.parametrize("connector", ["h5mirror tick=10ms", "h5mirror", None])
def test_threads_write_one_file(site, program, connector):
    env = site.env(**({"HDF5_VOL_CONNECTOR": connector} if connector else {}))
    writer = site.start([program, "run.h5", THREADS, ROWS], env={**env, "LD_LIBRARY_PATH": str(LIBRARY / "lib")})
    assert writer.line() == "writing"
    package = Package(site)
    if connector == "h5mirror tick=10ms":
        seen = []

        def grows() -> bool:
            seen.append(int(package.py(CHECK)))
            return len(set(seen)) >= 3

        wait_until(lambda: site.cli("status", "run.h5").code == 0, "no cut is made")
        wait_until(grows, "the file is not followed")
        assert writer.running(), "it ended before it was followed"
    writer.wait(200).ok()
    site.assert_mirrored("run.h5")
    assert int(package.py(CHECK)) == THREADS * ROWS
    assert site.versions("run.h5") == [1]
