"""h5mirror.ticks(): programs that compute, and call no HDF5 meanwhile, are followed; and they end as they do without."""

import json

import pytest

from harness import paths
from harness.package import Package
from harness.process import wait_until

# A program changes its file, and computes then: no call of HDF5 comes.
COMPUTES = """
    f = h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG)
    d = f.create_dataset("d", (100, 500), dtype="i4")
    def compute(seconds):
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end: n += 1
"""

# A tick is made as the last call before the end, or while it is under way: without an end it would go on.
BUSY = COMPUTES + """
    ticks = h5mirror.ticks(0.01).start()
    d[0] = 1
"""

# Seconds that an end may take on a loaded machine, in which no driver waits for a server.
QUICK = 20


def cut_of(site, name: str = "run.h5") -> int:
    asked = site.cli("--json", "status", name)
    return int(json.loads(asked.out)["last_cut"]) if asked.code == 0 else 0


def followed(package, row: int) -> bool:
    """Whether a reader sees that row."""
    out = package.py(f"""
    try:
        with h5mirror.open(URL) as f: print((f["d"][{row}] == {row + 1}).all())
    except (OSError, KeyError) as error: print("not yet", error)
    """)
    return out.startswith("True")


def test_a_program_that_computes_is_followed(package):
    writer = package.start(COMPUTES + """
    with h5mirror.ticks(0.02):
        for line in sys.stdin:
            n = int(line)
            d[n] = n + 1
            print("wrote", flush=True)
            compute(1e9 if n == 3 else 0.05)
    """, talks=True)
    for row in range(4):
        assert writer.ask(str(row)) == "wrote"
        wait_until(lambda: cut_of(package.site) > 0 and followed(package, row), f"row {row} is not seen")
    assert package.site.status("run.h5")["version_count"] == 0, "ticks are cuts, not versions"
    writer.kill()


# Calls that a program repeats. e takes long within HDF5, where no other thread runs.
CALLS = {
    "short reads": "d[0:1, 0]",
    "long reads": "e[...]",
    "writes": "d[50] = 1",
    "low-level reads": "e.id.read(h5py.h5s.ALL, h5py.h5s.ALL, out)",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_program_that_calls_h5py_without_a_pause_is_followed(package, call):
    """It looks at a byte of its memory between two calls, so that it gives up the interpreter nowhere else."""
    seen = package.site.work / "seen"
    seen.write_bytes(bytes(1))
    writer = package.start(COMPUTES + """
    import mmap
    e = f.create_dataset("e", (1000, 1000), "i4", chunks=(250, 250), compression="gzip")
    e[...] = np.arange(1000000).reshape(e.shape)
    out = np.empty(e.shape, "i4")
    with h5mirror.ticks(0.1), open("seen", "rb") as file, mmap.mmap(file.fileno(), 1, prot=mmap.PROT_READ) as seen:
        for n in range(3):
            d[n] = n + 1
            while seen[0] <= n: """ + CALLS[call] + """
    f.close()
    """)
    for row in range(3):
        wait_until(lambda: cut_of(package.site) > 0 and followed(package, row), f"row {row} is not seen")
        with open(seen, "r+b") as file:
            file.write(bytes([row + 1]))
    assert writer.wait().code == 0, writer.err()
    package.site.assert_mirrored("run.h5")


def test_a_file_that_does_not_change_gets_no_cuts(package):
    """Nor one that is only read; each change gets one."""
    writer = package.start(COMPUTES + """
    with h5mirror.ticks(0.01) as ticks:
        flushes = []
        flush = h5mirror._ticks._hdf5.flush
        h5mirror._ticks._hdf5.flush = lambda file: flushes.append(file) or flush(file)
        for line in sys.stdin:
            if line.strip() == "write": d[0] = len(flushes)
            if line.strip() == "commit": h5mirror.commit(f)
            before = len(flushes)
            while len(flushes) < before + 2: d[0:1, 0]
            print("done", flush=True)
    f.close()
    """, talks=True)
    assert writer.ask("write") == "done"
    wait_until(lambda: cut_of(package.site) > 0, "the change is no cut")
    # The file was made before: that may be a cut of its own. A commit waits until all before it has come.
    assert writer.ask("commit") == "done"
    first = cut_of(package.site)
    for change in range(1, 3):
        assert writer.ask("write") == "done"
        assert writer.ask("read") == "done"
        wait_until(lambda: cut_of(package.site) >= first + change, "the change is no cut")
        assert cut_of(package.site) == first + change, "cuts are numbered: there were others"


def test_a_flush_of_the_program_is_a_cut_though_nothing_changed(package):
    """Its promises are its own: a version on request waits for the next one."""
    package.py(COMPUTES + """
    f["e"] = 1
    f.flush()
    cuts = []
    for _ in range(4):
        f.flush()
        h5mirror.commit(f)
        cuts.append(h5mirror.status(f).cut)
    assert cuts == [cuts[0] + 2 * n for n in range(4)], cuts
    f.close()
    """)


def test_no_tick_comes_inside_of_an_iteration(package):
    """Nor in a group of calls that h5py makes under its lock."""
    writer = package.start(COMPUTES + """
    for n in range(20): f.create_group("g%d" % n)
    f.flush()
    print("ready", flush=True)
    def change(name):
        f[name].attrs["a"] = name
        compute(0.01)
    with h5mirror.ticks(0.01):
        sys.stdin.readline()
        with h5mirror._ticks.phil:
            f.visit(change)
            print(h5mirror.status(f).cut or 0, flush=True)
        sys.stdin.readline()
    """, talks=True)
    assert writer.line() == "ready"
    wait_until(lambda: cut_of(package.site) > 0, "the flush is no cut")
    before = cut_of(package.site)
    assert int(writer.ask("visit")) == before
    wait_until(lambda: cut_of(package.site) == before + 1, "what the iteration changed is no cut")


def test_several_files_come_and_go(package):
    """Closed ones, ones open for reading, and other drivers' are left alone."""
    package.py("""
    other = h5py.File("other.h5", "w")
    other["d"] = 1
    ticks = h5mirror.ticks(0.01).start()
    for n in range(40):
        with h5py.File(f"{n % 4}.h5", "w", driver="h5mirror", config=CONFIG) as f, \\
             h5py.File(f"{4 + n % 4}.h5", "a", driver="h5mirror", config=CONFIG) as g:
            f["d"] = np.arange(1000)
            g.require_dataset("d", (1000,), "i4")[...] = n
            time.sleep(0.003)
    with h5py.File("0.h5", "r", driver="h5mirror", config=CONFIG) as f: time.sleep(0.05)
    assert ticks.running
    ticks.stop()
    other.close()
    """)
    for n in range(8):
        package.site.assert_mirrored(f"{n}.h5")
    assert not package.site.exists("other.h5")


def test_threads_that_call_h5py_all_the_time_leave_room_for_ticks(package):
    out = package.py(COMPUTES + """
    import threading
    enough = threading.Event()
    def write(first):
        n = 0
        while not enough.is_set():
            d[first + n % 50] = n
            n += 1
    with h5mirror.ticks(0.02):
        threads = [threading.Thread(target=write, args=(50 * each,)) for each in range(2)]
        for each in threads: each.start()
        cuts = set()
        end = time.monotonic() + 60
        while len(cuts) < 4 and time.monotonic() < end:
            cuts.add(h5mirror.status(f).cut)
            time.sleep(0.01)
        enough.set()
        for each in threads: each.join()
    f.close()
    print(len(cuts))
    """)
    package.site.assert_mirrored("run.h5")
    assert int(out) >= 4, "so few cuts in a minute"


ENDS = {
    "the last line": ("", 0, ""),
    "sys.exit": ("sys.exit(3)", 3, ""),
    "an exception": ("raise ValueError('own')", 1, "ValueError: own"),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", -2, "KeyboardInterrupt"),
    "a signal": ("import signal; os.kill(os.getpid(), signal.SIGINT); compute(60)", -2, "KeyboardInterrupt"),
    "sys.exit in a thread": (
        "import threading; t = threading.Thread(target=sys.exit, args=(5,)); t.start(); t.join()", 0, ""),
    "a thread that goes on": (
        "import threading; threading.Thread(target=lambda: [d.__setitem__(n, n) for n in range(100)]).start()", 0, ""),
    "in an iteration": ("f['g/h/i'] = 1\n    f.visit(lambda name: sys.exit(4))", 4, ""),
    "stopped in an iteration": ("f['g/h/i'] = 1\n    f.visit(lambda name: ticks.stop())\n    f.close()", 0, ""),
    "files closed": ("f.close()", 0, ""),
    "within a tick": ("n = h5mirror.status(f).cut\n"
                      "    while h5mirror.status(f).cut == n: d[0] = time.monotonic_ns() % 100", 0, ""),
    "under the lock": ("h5mirror._ticks.phil.acquire(); sys.exit(6)", 6, ""),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_program_ends_as_it_does_without(package, end):
    body, code, said = ENDS[end]
    result = package.run(BUSY + f"    {body}\n")
    assert result.code == code and said in result.err, result.describe()
    assert "h5mirror" not in result.err.replace(str(paths.SOURCE), ""), result.describe()
    assert result.seconds < QUICK, result.describe()


def test_it_starts_and_stops_a_hundred_times(package):
    package.py(COMPUTES + """
    import threading
    ticks = h5mirror.ticks(0.01)
    for n in range(100):
        assert ticks.start() is ticks.start() and ticks.running
        d[n] = n + 1
        if n % 3: time.sleep(0.001 * (n % 15))
        ticks.stop()
        ticks.stop()
        assert not ticks.running
    with ticks, h5mirror.ticks(0.02):
        assert threading.active_count() == 3
    assert threading.active_count() == 1
    f.close()
    """)
    package.site.assert_mirrored("run.h5")


def test_a_forked_child_has_none_and_begins_its_own(package):
    """It leaves the files alone that it inherits; the parent's ticks go on."""
    out = package.py(BUSY + """
    for n in range(20):
        child = os.fork()
        if child == 0:
            assert not ticks.running
            ticks.stop()
            if n % 2:
                with h5py.File(f"child.h5", "w", driver="h5mirror", config=CONFIG) as g, h5mirror.ticks(0.01):
                    g["d"] = n
                    while not h5mirror.status(g).cut: compute(0.01)
            os._exit(7)
        d[n] = n + 1
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert ticks.running
    before = h5mirror.status(f).cut
    d[50] = 50
    while h5mirror.status(f).cut == before: compute(0.01)
    print("followed")
    f.close()
    """)
    assert out == "followed\n"
    package.site.assert_mirrored("run.h5")
    package.site.assert_mirrored("child.h5")


def test_a_forked_child_that_ends_by_itself(package):
    result = package.run(BUSY + """
    for n in range(10):
        if os.fork() == 0: sys.exit(3)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 3
    """)
    result.ok()
    assert result.seconds < QUICK, result.describe()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(package, method):
    script = package.script("""
    import multiprocessing
    def work(n):
        with h5py.File(f"{n}.h5", "w", driver="h5mirror", config=CONFIG) as f, h5mirror.ticks(0.01):
            f["d"] = n
            while not h5mirror.status(f).cut: time.sleep(0.001)
        return n
    if __name__ == "__main__":
        with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f, h5mirror.ticks(0.01):
            f["d"] = np.arange(1000)
            with multiprocessing.get_context(""" + repr(method) + """).Pool(2) as pool:
                assert pool.map(work, range(4)) == [0, 1, 2, 3]
            f["e"] = 1
    """)
    result = package.site.run(script, env=package.env()).ok()
    assert result.err == "", result.describe()
    for name in ("run.h5", *(f"{n}.h5" for n in range(4))):
        package.site.assert_mirrored(name)


def test_a_flush_that_fails_is_told_once_and_the_program_goes_on(package):
    result = package.run(COMPUTES + """
    g = h5py.File("other.h5", "w", driver="h5mirror", config=CONFIG)
    flush, calls = h5mirror._ticks._hdf5.flush, []
    def fails(file):
        calls.append(file)
        return "no such luck" if file == f.id.id else flush(file)
    h5mirror._ticks._hdf5.flush = fails
    with h5mirror.ticks(0.01):
        d[0] = g["d"] = 1
        while calls.count(g.id.id) < 10: compute(0.01)
        assert calls.count(f.id.id) == 1
    f.close()
    g.close()
    """).ok()
    assert result.err.count("run.h5: a tick could not flush it, and it gets no more: no such luck") == 1, result.describe()
    assert len(result.err.splitlines()) == 1, result.describe()
    package.site.assert_mirrored("run.h5")


def test_a_mirror_that_is_lost_ends_the_ticks_of_its_file(package):
    """on_outage=fail: the error is the tick's, in words; the program's next flush has its own."""
    writer = package.start(COMPUTES.replace("CONFIG)", "CONFIG + ';on_outage=fail;timeout=2s')") + """
    with h5mirror.ticks(0.01):
        d[0] = 1
        while not h5mirror.status(f).cut: time.sleep(0.001)
        print("ready", flush=True)
        sys.stdin.readline()
        for n in range(100000):
            d[n % 100] = n
            compute(0.01)
            if os.path.exists("told"): break
        try: f.flush()
        except (OSError, RuntimeError): print("own", flush=True)
        sys.stdin.readline()
    """, talks=True)
    assert writer.line() == "ready"
    package.site.server.kill9()
    writer.popen.stdin.write(b"go\n")
    writer.popen.stdin.flush()
    wait_until(lambda: "run.h5: a tick could not flush it" in writer.err(), "it is not told")
    (package.site.work / "told").touch()
    assert writer.line() == "own"
    assert writer.err().count("a tick could not flush it") == 1 and "the mirror is lost" in writer.err(), writer.err()
    writer.popen.stdin.close()
    assert writer.wait().code == 0, writer.err()


def test_a_server_that_is_away_holds_nothing_up(package):
    """Ticks wait for no answer, whatever the configuration says of the program's own flushes."""
    package.site.server.stop()
    result = package.run(COMPUTES.replace("CONFIG)", "CONFIG + ';ack=durable;timeout=5s;linger=0s')") + """
    longest = 0
    with h5mirror.ticks(0.01):
        for n in range(100):
            began = time.monotonic()
            d[n] = n
            longest = max(longest, time.monotonic() - began)
            compute(0.005)
    print(longest)
    os._exit(0)
    """).ok()
    assert float(result.out) < 4, "a call waited for the server"


def test_ticks_of_a_file_without_a_server(package):
    """server=embedded: no cut of a file that does not change."""
    package.py("""
    flushes = []
    flush = h5mirror._ticks._hdf5.flush
    h5mirror._ticks._hdf5.flush = lambda file: flushes.append(file) or flush(file)
    f = h5py.File("run.h5", "w", driver="h5mirror", config="server=embedded")
    f["d"] = np.arange(1000)
    with h5mirror.ticks(0.01):
        while not h5mirror.status(f).cut: time.sleep(0.01)
        cut, before = h5mirror.status(f).cut, len(flushes)
        while len(flushes) < before + 2: time.sleep(0.01)
        f["e"] = np.arange(1000)
        while h5mirror.status(f).cut == cut: time.sleep(0.01)
        assert h5mirror.status(f).cut == cut + 1, "cuts are numbered: there were others"
    f.close()
    """)
    assert (package.site.work / "run.h5.h5m").exists()


def test_wrong_intervals_are_refused(package):
    for interval in ("0", "-1", "0.001", "1e9", "float('nan')", "float('inf')"):
        said = package.raised(f"h5mirror.ticks({interval})")
        assert said.startswith("ValueError interval=") and "must be 0.01 (10 ms) to 86400 seconds (24 h)" in said, said
    assert package.py("""
    from datetime import timedelta
    with h5mirror.ticks(timedelta(milliseconds=50)) as ticks, h5mirror.ticks() as more: print(ticks.running, more.running)
    """) == "True True\n"


def test_without_a_plugin_it_says_so(package):
    nowhere = {"H5MIRROR_PLUGIN_DIR": "", "PATH": "/nowhere", "HDF5_PLUGIN_PATH": "/nowhere"}
    said = package.raised("h5mirror.ticks(0.1).start()", **nowhere)
    assert said.startswith("OSError HDF5 cannot load its driver h5mirror: ") and "H5MIRROR_PLUGIN_DIR" in said, said


def test_beside_the_connector(package):
    """Both flush: the second makes no cut of changes that the first has already shown."""
    site = package.site
    writer = site.start(package.script(COMPUTES.replace(', driver="h5mirror", config=CONFIG', "") + """
    with h5mirror.ticks(0.02):
        for line in sys.stdin:
            d[0] = d[0] + 1
            print("wrote", flush=True)
    f.close()
    """), env={**package.env(), **site.env(HDF5_VOL_CONNECTOR="h5mirror tick=20ms"), "PYTHONPATH": package.env()["PYTHONPATH"]},
        talks=True)
    for _ in range(5):
        before = cut_of(site)
        assert writer.ask("write") == "wrote"
        wait_until(lambda: cut_of(site) > before, "the change is no cut")
    writer.popen.stdin.close()
    assert writer.wait().code == 0, writer.err()
    site.assert_mirrored("run.h5")
