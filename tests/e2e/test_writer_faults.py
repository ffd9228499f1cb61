"""Writers that die, and the next run of the same program."""

import filecmp
import signal

import pytest

from harness import hdf5

FOR_PROGRAMS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM, signal.SIGCHLD, signal.SIGPROF)
KILLED = """
    with h5py.File("k.h5", "{mode}") as f:
        n = len(f)
        f[f"first{{n}}"] = np.full(50_000, n)
        f.flush()
        print("flushed", flush=True)
        f[f"second{{n}}"] = np.full(500_000, n)
        f[f"first{{n}}"][:100] = -1
        print("writing", flush=True)
        if not os.path.exists("finish"):
            time.sleep(100)
"""


def kill_writer(site, mode):
    """Runs the program until it is in the middle of its second half, and kills it."""
    writer = site.start(site.script(KILLED.format(mode=mode)))
    writer.wait_for_line("writing")
    site.wait_for_cut("k.h5")
    writer.signal(signal.SIGKILL)
    writer.wait()
    site.wait_for_no_lease("k.h5")


def test_killed_writer_leaves_its_last_cut_as_a_version(both):
    kill_writer(both, "w")
    both.settle("k.h5")
    newest = both.log("k.h5")[0]
    assert "writer lost" in newest["comment"], newest
    dumped = hdf5.dump(both.head("k.h5"), "-H")
    assert b"first0" in dumped and b"second0" not in dumped
    both.keep("k.h5")


def test_killed_writer_then_recover(both):
    """`recover` makes the local file the last complete cut and keeps the broken one beside it."""
    kill_writer(both, "w")
    broken = both.local("k.h5").read_bytes()
    both.keep("k.h5")
    both.cli("recover", both.local("k.h5")).ok()
    both.assert_mirrored("k.h5")
    others = [p for p in both.work.rglob("k.h5*") if p.is_file() and p.read_bytes() == broken]
    assert others, f"the broken file is kept: {sorted(both.work.rglob('k.h5*'))}"
    both.local("finish").touch()
    both.py(KILLED.format(mode="a"))
    both.assert_mirrored("k.h5")


def test_killed_writer_then_the_same_script_creates(both):
    """kill -9 and a rerun of a 'w' script: mirrored at once, the lost run's version stays."""
    kill_writer(both, "w")
    both.keep("k.h5")
    lost = both.versions("k.h5")[-1]
    both.local("finish").touch()
    result = both.py(KILLED.format(mode="w"))
    assert "diverged" not in result.err.lower(), result.describe()
    both.assert_mirrored("k.h5")
    assert both.versions("k.h5") == list(range(1, lost + 2))


def test_killed_writer_then_the_same_script_appends(both):
    """kill -9 and a rerun of an 'a' script: diverged until the user recovers; then it goes on."""
    both.local("finish").touch()
    both.py(KILLED.format(mode="a"))
    both.local("finish").unlink()
    kill_writer(both, "a")
    both.keep("k.h5")
    versions = both.versions("k.h5")
    both.local("finish").touch()
    again = both.run(both.script(KILLED.format(mode="a")))
    if again.code == 0:  # The local file opened: HDF5 of this format does not notice the crash.
        assert "diverged" in again.err.lower() and "h5mirror recover" in again.err, again.describe()
    assert both.versions("k.h5") == versions, "nothing of the broken file came through"
    both.cli("recover", both.local("k.h5")).ok()
    both.assert_mirrored("k.h5")
    both.py(KILLED.format(mode="a"))
    both.assert_mirrored("k.h5")


def test_writer_killed_before_its_first_cut_leaves_nothing(both):
    writer = both.start(both.script("""
        f = h5py.File("none.h5", "w")
        f["x"] = np.zeros(2_000_000)
        print("written", flush=True)
        time.sleep(100)
    """))
    writer.wait_for_line("written")
    writer.signal(signal.SIGKILL)
    writer.wait()
    both.wait_for_no_lease("none.h5")
    assert not both.head("none.h5").exists(), "uncut bytes never become a head"
    both.py("h5py.File('none.h5', 'w')['x'] = 1")
    both.assert_mirrored("none.h5")
    assert both.versions("none.h5") == [1]


def test_writer_killed_while_it_recreates_keeps_the_old_head(both):
    both.py("h5py.File('g.h5', 'w')['x'] = np.arange(9000)")
    both.keep("g.h5")
    writer = both.start(both.script("""
        f = h5py.File("g.h5", "w")
        f["y"] = np.zeros(2_000_000)
        print("written", flush=True)
        time.sleep(100)
    """))
    writer.wait_for_line("written")
    writer.signal(signal.SIGKILL)
    writer.wait()
    both.wait_for_no_lease("g.h5")
    assert both.versions("g.h5") == [1]
    assert filecmp.cmp(both.head("g.h5"), both.export("g.h5", 1), shallow=False)
    both.cli("recover", both.local("g.h5")).ok()
    both.assert_mirrored("g.h5")


def test_forked_child_that_writes_is_local_and_seen(both):
    """A child's writes to an inherited open file arrive as with sec2; the mirror half is off in the child."""
    result = both.py("""
        f = h5py.File("fork.h5", "w")
        f["parent"] = np.arange(1000)
        f.flush()
        pid = os.fork()
        if pid == 0:
            f["parent"][:10] = -1
            f.flush()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        f.attrs["after"] = 1
        f.close()
    """)
    check = both.py("print(h5py.File('fork.h5', 'r')['parent'][:3].tolist())", env=both.plain_env())
    assert check.out.strip() in ("[-1, -1, -1]", "[0, 1, 2]"), check.describe()
    if both.exists("fork.h5"):
        both.settle("fork.h5")
        hdf5.assert_opens(both.head("fork.h5"))
        same = filecmp.cmp(both.local("fork.h5"), both.head("fork.h5"), shallow=False)
        assert same or both.record("fork.h5")["state"] in ("diverged", "behind"), result.describe()


def test_forked_child_without_writes_leaves_the_parent_mirrored(both):
    """multiprocessing by fork around an open file: the child exits normally, the parent goes on mirrored."""
    both.py("""
        import multiprocessing
        def work(n):
            return n * n
        f = h5py.File("pool.h5", "w")
        f["x"] = np.arange(100_000)
        f.flush()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            f["squares"] = pool.map(work, range(100))
        f.close()
    """)
    both.assert_mirrored("pool.h5")
    assert both.versions("pool.h5") == [1]


def test_forked_child_mirrors_its_own_files(both):
    both.py("""
        f = h5py.File("parent.h5", "w")
        f["x"] = np.arange(1000)
        pid = os.fork()
        if pid == 0:
            with h5py.File("child.h5", "w") as g:
                g["y"] = np.arange(2000)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        f["z"] = 1
        f.close()
    """)
    for name in ("parent.h5", "child.h5"):
        both.assert_mirrored(name)
        assert both.versions(name) == [1]


@pytest.mark.parametrize("mode", ["mirror", "remote", "reader"])
def test_signals_of_the_program_go_to_none_of_our_threads(site, mode):
    """gRPC's threads are ours as well. If one of them took a signal, the program's own sleep would not be
    interrupted."""
    site.py("h5py.File('s.h5', 'w')['x'] = np.arange(100_000)")
    result = site.py(f"""
        from pathlib import Path
        def blocked():
            for task in Path("/proc/self/task").iterdir():
                lines = dict(line.split(":\\t", 1) for line in (task / "status").read_text().splitlines())
                yield task.name, lines["Name"], int(lines["SigBlk"], 16)
        before = {{number for number, *_ in blocked()}}
        f = h5py.File("s.h5", "{'r' if mode == 'reader' else 'r+'}")
        assert f["x"][99_999] == 99_999
        if f.mode == "r+":
            f["x"][0] = 1
            f.flush()
        for number, name, mask in blocked():
            if number not in before:
                print(name, [n for n in ({', '.join(str(int(n)) for n in FOR_PROGRAMS)}) if not mask >> (n - 1) & 1])
    """, config=site.config(mode=mode, ack_tick="applied"))
    ours = result.out.splitlines()
    assert len(ours) > 3 and all(line.endswith("[]") for line in ours), result.describe()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_program_ended_by_a_signal_dies_as_it_does_without_the_plugin(site, number):
    codes = []
    for env in (site.plain_env(), site.env()):
        program = site.start(site.script("""
            f = h5py.File("s.h5", "w")
            f["x"] = 1
            f.flush()
            print("open", flush=True)
            for _ in range(1000):  # Python misses a signal that comes just before it sleeps, until it wakes.
                time.sleep(0.1)
        """), env=env)
        program.wait_for_line("open")
        program.signal(number)
        codes.append(program.wait().code)
    assert codes[0] == codes[1]
