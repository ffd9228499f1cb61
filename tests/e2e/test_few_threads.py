"""Programs and tools that may start no more threads: gRPC hangs without them, and so must not begin there."""

import os

import pytest

from harness import hdf5, paths
from harness.process import run

# Root has no limit of threads as long as it has the rights to set one. A user without a process of its own has the limit for
# itself; the user that opens files stays as it was.
LIMITED = """
    import ctypes, resource

    def limit_threads(left, user):
        if os.geteuid() == 0:
            os.setresuid(user, 0, 0)
            libc = ctypes.CDLL(None, use_errno=True)
            for right in (21, 24):  # CAP_SYS_ADMIN, CAP_SYS_RESOURCE
                assert libc.prctl(24, right, 0, 0, 0) == 0  # PR_CAPBSET_DROP: for programs that it starts
            header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
            assert libc.capget(header, sets) == 0
            sets[0] &= ~(1 << 21 | 1 << 24)
            assert libc.capset(header, sets) == 0
        used = len(os.listdir("/proc/self/task"))
        resource.setrlimit(resource.RLIMIT_NPROC, (used + left, used + left))

    def limit_memory(left_mib):
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (left_mib << 20),) * 2)

    def in_children(cases, body):
        '''Runs body(case) to the end of a child's whole life, for each case; a signal or a long wait is a failure.'''
        for case in cases:
            child = os.fork()
            if child == 0:
                body(case)
                sys.exit()
            until = time.monotonic() + 30
            while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
                if time.monotonic() > until:
                    os.kill(child, 9)
                    sys.exit(f"{case} hangs")
                time.sleep(0.01)
            if ended[1] != 0:
                sys.exit(f"{case} ended with {os.waitstatus_to_exitcode(ended[1])}")
        print("end", flush=True)
"""


@pytest.fixture
def site(bare_site):
    """No history is at stake here."""
    return bare_site


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="the user's other processes count against its limit")
WRITES = """
    def write(left):
        limit_threads(left, 54000 + left)
        with h5py.File(f"few-{left}.h5", "w") as f:
            f["x"] = np.arange(1000)
            f.flush()
            f["y"] = left
"""


@needs_root
def test_a_program_without_threads_goes_on(site):
    log = site.work / "told.log"
    done = site.py(LIMITED + WRITES + """
    in_children([0, 3, 4, 8, 12], write)
    """, config=site.config(log=log), timeout=280)
    assert done.out == "end\n", done.describe()
    for left in (0, 3, 4, 8, 12):
        assert hdf5.dump(site.local(f"few-{left}.h5"))
    assert "few-3.h5 is NOT mirrored: fewer than" in log.read_text()
    assert "raise `ulimit -u`" in log.read_text()


@needs_root
def test_it_ends_where_others_take_the_threads_later(site):
    """Nobody can tell then; the file is whole, and the program ends."""
    done = site.py(LIMITED + """
    def write(left):
        with h5py.File(f"later-{left}.h5", "w") as f:
            f["x"] = np.arange(1000)
            f.flush()
            limit_threads(left, 54100 + left)
            for n in range(20):
                f[f"y{n}"] = np.arange(10000)
                f.flush()
        with h5py.File(f"more-{left}.h5", "w") as f:
            f["x"] = left
    in_children([0, 1], write)
    """, config=site.config(timeout="5s", linger="5s"), timeout=280)
    assert done.out == "end\n", done.describe()
    for left in range(2):
        assert hdf5.dump(site.local(f"later-{left}.h5"))
        assert hdf5.dump(site.local(f"more-{left}.h5"))


def test_a_program_without_memory_for_stacks_goes_on(site):
    """Threads take more of the addresses later. Wherever they end, the program does."""
    log = site.work / "told.log"
    stacks_of_8_mib = ["sh", "-c", 'ulimit -s 8192; exec "$@"', "sh"]
    done = site.run([*stacks_of_8_mib, *site.script(LIMITED + """
    def write(left_mib):
        limit_memory(left_mib)
        with h5py.File(f"few-{left_mib}.h5", "w") as f:
            f["x"] = np.arange(1000)
    in_children([40, 160, 340, 600], write)
    """)], config=site.config(log=log, timeout="5s", linger="5s"), timeout=280).ok()
    assert done.out == "end\n", done.describe()
    assert "few-40.h5 is NOT mirrored: fewer than" in log.read_text()


@needs_root
@pytest.mark.parametrize("keys", [{"server": "embedded"}, {"mode": "remote"}])
def test_an_open_that_needs_threads_fails(site, keys):
    """There is nothing to go on with. A file whose first write failed instead would crash HDF5."""
    done = site.py(LIMITED + """
    def write(left):
        limit_threads(left, 54200 + left)
        try:
            with h5py.File(f"s-{left}.h5", "w") as f:
                f["x"] = np.arange(1000)
        except OSError as error:
            print(error, flush=True)
    in_children([0, 2], write)
    """, config=site.config(**keys))
    assert "threads are left to the program: raise `ulimit -u`" in done.out, done.describe()


@needs_root
def test_a_reader_without_threads_has_an_error(site):
    site.py('h5py.File("r.h5", "w")["x"] = 7')
    site.settle("r.h5")
    done = site.py(LIMITED + """
    def read(left):
        limit_threads(left, 54300 + left)
        try:
            with h5py.File("r.h5") as f:
                assert f["x"][()] == 7
        except OSError as error:
            assert "threads are left to the program" in str(error), error
    in_children([0, 4, 8, 20], read)
    """, config=site.config(mode="reader"), timeout=280)
    assert done.out == "end\n", done.describe()


@needs_root
@pytest.mark.parametrize("left", [0, 6, 20])
def test_a_tool_without_threads_has_an_error(site, left):
    site.py('h5py.File("r.h5", "w")["x"] = 7')
    site.settle("r.h5")
    tool = site.script(LIMITED + f"""
    limit_threads({left}, {54400 + left})
    os.execv(sys.argv[1], sys.argv[1:])
    """)
    listed = run([*tool, paths.BIN / "h5mirror", "--server", site.address, "ls"], site.logs, env=site.plain_env(),
                 cwd=site.work, timeout=60)
    if listed.code != 0:
        assert listed.code == 1 and "threads are left to the program: raise `ulimit -u`" in listed.err, listed.describe()
        assert left < 20
