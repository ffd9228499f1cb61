"""mode=remote: files that are on the server only, read and written by unmodified programs."""

import shutil
import signal
from textwrap import dedent

import pytest

from harness import hdf5, paths
from harness.process import wait_until

# Random changes of one file over several opens; `seed` and the names decide what they are. Without track_times HDF5
# writes the same bytes wherever the file is.
CHANGES = """
    rng = np.random.default_rng({seed})
    with h5py.File("run.h5", "w", libver={libver!r}) as f:
        f["contiguous"] = rng.integers(0, 255, 3 << 20, dtype="u1")
        f.create_dataset("chunked", (0,), maxshape=(None,), chunks=(100_000,), dtype="u1")
        f.create_dataset("strings", (0,), maxshape=(None,), dtype=h5py.string_dtype())
    for life in range(6):
        with h5py.File("run.h5", "r+") as f:
            for step in range(8):
                d = f["chunked"]
                kind = rng.integers(0, 7)
                if kind == 0: d.resize((int(rng.integers(0, 2 << 20)),))
                if kind == 1 and len(d) > 10: d[len(d) // 3:len(d) // 2] = step
                if kind == 2: f["contiguous"][int(rng.integers(0, 2 << 20)):][:7000] = life
                if kind == 3: f.create_group("group %d.%d" % (life, step)).attrs["text"] = "x" * int(rng.integers(1, 3000))
                if kind == 4: f["strings"].resize((step + 1,)); f["strings"][step] = "string %d" % life
                if kind == 5:
                    at = int(rng.integers(0, 2 << 20))
                    f["contiguous"][at:at + 7001] = life
                if kind == 6: f.flush()
                keys = sorted(k for k in f if k.startswith("group"))
                if kind == 2 and keys: del f[keys[0]]
            print(int(f["contiguous"][:].sum()), f["chunked"].shape, int(f["chunked"][:].sum()), f["strings"][:].tolist())
"""


class Remote:
    """A site whose programs have no local files."""

    def __init__(self, site):
        self.site = site

    def config(self, **keys) -> str:
        return self.site.config(**{"mode": "remote", **keys})

    def start(self, text, **keys):
        """A program that goes on line by line, as OBEYS does."""
        process = self.site.start(self.site.script(dedent(text) + dedent(OBEYS)), config=self.config(**keys), talks=True)
        assert process.line() == "ready"
        return process

    def run(self, text, **keys):
        return self.site.run(self.site.script(text), config=self.config(**keys))

    def py(self, text, **keys) -> str:
        return self.run(text, **keys).ok().out.strip()


# Runs each line that comes in; prints "done", or the error.
OBEYS = """
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            exec(line)
            print("done", flush=True)
        except Exception as error:
            print(type(error).__name__, getattr(error, "errno", ""), str(error).replace("\\n", " "), flush=True)
"""


@pytest.fixture
def remote(bare_site, h5py_version):
    """With either h5py. Afterwards there is no local file, and all files of the server are sound."""
    bare_site.python = paths.venv_python(h5py_version)
    yield Remote(bare_site)
    assert not [path for path in bare_site.work.iterdir() if path.name not in KEPT_LOCAL]
    for row in bare_site.json("ls")["files"] if bare_site.server.running() else []:
        bare_site.cli("verify", row["name"]).ok()


KEPT_LOCAL = {"local.h5", "mirrored.h5", "mirrored.h5.h5m"}


def test_each_way_to_open_a_file(remote):
    out = remote.py("""
        def tried(mode):
            try:
                with h5py.File("run.h5", mode) as f:
                    f.attrs[mode] = 1 if mode != "r" else 0
                    return f.mode
            except OSError as error:
                return type(error).__name__
            except Exception as error:
                return "cannot"
        print(*[tried(mode) for mode in ("r", "r+", "x", "x", "a", "r+", "w-")])
        with h5py.File("run.h5", "r") as f: print(sorted(f.attrs))
        print(tried("w"))
        with h5py.File("run.h5", "r") as f: print(sorted(f.attrs))
        print(os.path.exists("run.h5"))
    """)
    assert out.splitlines() == [
        "FileNotFoundError FileNotFoundError r+ FileExistsError r+ r+ FileExistsError", "['a', 'r+', 'x']", "r+", "['w']",
        "False"]
    assert remote.site.versions("run.h5") == [1, 2, 3, 4]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_the_servers_file_is_byte_for_byte_what_a_local_one_is(remote, libver):
    for seed in range(3):
        text = CHANGES.format(seed=seed, libver=libver)
        local = remote.site.run(remote.site.script(text), env=remote.site.plain_env()).ok()
        plain = remote.site.work / "run.h5"
        kept = plain.rename(remote.site.directory / f"plain-{seed}.h5")
        assert remote.py(text, cache="1MiB") == local.out.strip()
        remote.site.settle("run.h5")
        if libver == "earliest":  # The latest format notes when the root group was made.
            hdf5.assert_same(kept, remote.site.head("run.h5"))
        held = remote.py(text.replace("run.h5", "held.h5"), metadata="memory")
        assert held == local.out.strip()


def test_an_open_that_changes_nothing_asks_for_nothing(remote):
    remote.py('h5py.File("run.h5", "w").attrs["a"] = 1')
    before = remote.site.server.log().count("session start")
    remote.py('f = h5py.File("run.h5", "r+"); print(f.attrs["a"]); f.close()')
    assert remote.site.server.log().count("session start") == before
    assert remote.site.versions("run.h5") == [1]


def test_what_was_cut_off_reads_as_zeros_where_the_file_grows_again(remote):
    out = remote.py("""
        with h5py.File("run.h5", "w") as f: f["old"] = np.ones(1 << 20, "u1")
        with h5py.File("run.h5", "r+") as f:
            del f["old"]
            f.flush()
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            h5py.h5d.create(f.id, b"new", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((1 << 20,)), plist)
            f.flush()
            print(f["new"][:].sum())
        print(h5py.File("run.h5", "r")["new"][:].sum())
    """)
    assert out.split() == ["0", "0"]


def test_a_refused_open_says_nothing_of_a_mirror(remote):
    remote.py("""
        h5py.File("run.h5", "w").close()
        try:
            h5py.File("run.h5", "x")
        except FileExistsError:
            print("exists")
    """)
    assert not remote.site.status("run.h5")["mirror"]


def test_what_is_read_while_it_is_written_is_what_was_written(remote):
    remote.py("""
        with h5py.File("run.h5", "w") as f:
            f["a"] = np.arange(1_000_000)
        f = h5py.File("run.h5", "r+")
        f["a"][10:20] = -1
        g = h5py.File("run.h5", "r+")  # HDF5 shares the one that is open.
        assert g == f and (g["a"][10:20] == -1).all() and g["a"][20] == 20 and g["a"][9] == 9
        assert h5py.File("run.h5", "r") == f
        h = h5py.File("run.h5", "r", driver="sec2") if os.path.exists("run.h5") else None
        assert h is None
        try:
            h5py.File("run.h5", "w")
            print("truncated")
        except OSError as error:
            assert "already open" in str(error)
        f.close(); g.close()
        assert h5py.File("run.h5", "r")["a"][:].sum() == np.arange(1_000_000).sum() - sum(range(10, 20)) - 10
    """)


def test_an_open_for_reading_stays_at_its_cut(remote):
    remote.py('h5py.File("run.h5", "w").attrs["n"] = 1')
    reader = remote.start('f = h5py.File("run.h5", "r")')
    assert reader.ask("assert f.attrs['n'] == 1") == "done"
    remote.py('h5py.File("run.h5", "r+").attrs["n"] = 2')
    assert reader.ask("assert f.attrs['n'] == 1") == "done"
    assert reader.ask("g = h5py.File('run.h5', 'r'); assert g != f and g.attrs['n'] == 2") == "done"


# Several writers.


def test_a_second_writer_is_told_who_has_the_file(remote):
    writer = remote.start('f = h5py.File("run.h5", "w"); f["a"] = 1; f.flush()')
    result = remote.run("""
        for mode in ("w", "x"):
            try:
                h5py.File("run.h5", mode)
            except OSError as error:
                print(type(error).__name__, error)
        f = h5py.File("run.h5", "r+")
        assert f["a"][()] == 1
        try:
            f["b"] = np.arange(100_000)
        except OSError as error:
            print(type(error).__name__, error)
        os._exit(0)
    """).ok()
    lines = result.out.splitlines()
    assert len(lines) == 3 and all(f"pid {writer.pid})" in line for line in lines), result.describe()
    assert "BlockingIOError" in lines[0]
    assert writer.ask("f['c'] = 3; f.close()") == "done"
    assert remote.py('print(sorted(h5py.File("run.h5", "r")))') == "['a', 'c']"


def test_a_file_that_has_moved_on_is_not_overwritten(remote):
    remote.py('h5py.File("run.h5", "w")["a"] = np.zeros(100_000)')
    late = remote.start('f = h5py.File("run.h5", "r+"); d = f["a"]')
    assert late.ask("assert d[5] == 0") == "done"
    remote.py('h5py.File("run.h5", "r+")["a"][:] = 1')
    answer = late.ask("d[:] = 2")
    assert answer.startswith("OSError") and "has changed on" in answer and "open it again" in answer, answer
    assert late.ask("d[:] = 2") == answer
    late.ask("f.close()")
    assert late.ask("print('alive')") == "alive"
    late.kill()
    assert remote.py('print(h5py.File("run.h5", "r")["a"][:].sum())') == "100000.0"
    assert remote.site.versions("run.h5") == [1, 2]


# The server goes away.


def test_a_server_that_starts_again_in_the_middle_is_no_matter(remote):
    remote.py('h5py.File("old.h5", "w")["a"] = np.arange(1_000_000)')
    writer = remote.start("""
        f = h5py.File("old.h5", "r+")
        g = h5py.File("new.h5", "w")
    """, timeout="20s")
    for n in range(4):
        for name in "fg":
            assert writer.ask(f"{name}['{n}'] = np.full(100_000, {n}); {name}.flush()") == "done"
        remote.site.server.kill9()
        remote.site.server.start()
        assert writer.ask("assert f['a'][999_999] == 999_999 and g['0'][5] == 0") == "done"
    assert writer.ask("f.close(); g.close()") == "done"
    remote.py("""
        for name in ("old.h5", "new.h5"):
            with h5py.File(name, "r") as f:
                for n in range(4): assert (f[str(n)][:] == n).all()
        assert (h5py.File("old.h5", "r")["a"][:] == np.arange(1_000_000)).all()
    """)


@pytest.mark.site(options={"durable_every": "1h"})
def test_creating_a_file_of_others_again_outlives_a_crash_of_the_server_before_it_is_durable(remote):
    """The server forgets the new generation, and has the old one, of another origin."""
    site = remote.site
    site.py('h5py.File("mirrored.h5", "w")["old"] = 1')
    writer = remote.start('f = h5py.File("mirrored.h5", "w"); f["new"] = 2; f.flush()', timeout="20s")
    writer.signal(signal.SIGSTOP)  # Else it may have come back before the reader looks.
    site.server.kill9()
    site.server.start()
    assert remote.py('print(sorted(h5py.File("mirrored.h5", "r")))') == "['old']"
    writer.signal(signal.SIGCONT)
    assert writer.ask("f['newer'] = 3; f.flush()") == "done"
    assert remote.py('print(sorted(h5py.File("mirrored.h5", "r")))') == "['new', 'newer']"
    assert writer.ask("f.close()") == "done"


def test_an_outage_beyond_the_timeout_fails_the_flush_and_a_later_one_brings_it(remote):
    writer = remote.start('f = h5py.File("run.h5", "w"); f["a"] = 1; f.flush()', timeout="1s")
    remote.site.server.kill9()
    assert writer.ask("f['b'] = np.arange(10)") == "done"
    answer = writer.ask("f.flush()")
    assert answer.split()[0] in ("OSError", "RuntimeError") and "not on the server" in answer, answer
    remote.site.server.start()
    wait_until(lambda: writer.ask("f.flush()") == "done", "the writer has come back")
    assert remote.py('print(sorted(h5py.File("run.h5", "r")))') == "['a', 'b']"
    assert writer.ask("f['c'] = 3; f.close()") == "done"
    assert remote.site.versions("run.h5") == [1]


@pytest.mark.parametrize("ends", ["f.close()", "sys.exit()"])
def test_a_close_that_does_not_reach_the_server_is_an_error(remote, ends):
    writer = remote.start('f = h5py.File("run.h5", "w"); f["a"] = 1; f.flush()', timeout="1s", flush="sync")
    assert writer.ask("f['b'] = 2") == "done"
    remote.site.server.kill9()
    if ends == "f.close()":
        answer = writer.ask(ends)
        assert answer.split()[0] in ("OSError", "RuntimeError") and "not on the server" in answer, answer
    writer.popen.stdin.close()
    result = writer.wait()
    assert result.code == 0, result.describe()
    assert result.err.count("h5mirror: ") == 1 and "is not on the server" in result.err, result.describe()
    remote.site.server.start()
    assert remote.py('print(sorted(h5py.File("run.h5", "r")))', timeout="20s") == "['a']"
    remote.py('h5py.File("run.h5", "r+")["c"] = 2')


def test_without_a_server_nothing_opens(remote):
    remote.py('h5py.File("run.h5", "w")["a"] = 1')
    remote.site.server.kill9()
    for mode in ("r", "r+", "w", "x"):
        result = remote.run(f'h5py.File("run.h5", "{mode}")', timeout="1s")
        assert result.code != 0 and "OSError" in result.err or "Error" in result.err, result.describe()
        assert "FileNotFoundError" not in result.err and "FileExistsError" not in result.err
    remote.site.server.start()


def test_a_killed_program_leaves_the_last_cut(remote):
    writer = remote.start("""
        f = h5py.File("run.h5", "w")
        f["a"] = np.arange(1_000_000)
        f.flush()
        f["b"] = np.arange(1_000_000)
    """)
    writer.kill()
    remote.site.wait_for_no_lease("run.h5")
    assert remote.py('print(list(h5py.File("run.h5", "r")))') == "['a']"
    assert remote.site.log("run.h5")[0]["comment"] == "writer lost"
    remote.py('h5py.File("run.h5", "r+")["c"] = 1')


@pytest.mark.site(options={"snapshot_keep": "1s"})
def test_a_writer_reads_on_when_the_cut_that_it_opened_has_expired(remote):
    remote.py('h5py.File("run.h5", "w")["a"] = np.arange(1_000_000)')
    remote.py('h5py.File("run.h5", "r+").attrs["x"] = 1', version_min_interval="1h")
    assert remote.site.versions("run.h5") == [1], "the newest cut is a version, and lasts"
    out = remote.py("""
        f = h5py.File("run.h5", "r+")
        for n in range(8):
            f["a"][n * 1000:n * 1000 + 10] = -n
            f.flush()
            time.sleep(0.4)
            expected = np.arange(1_000_000)
            for k in range(n + 1): expected[k * 1000:k * 1000 + 10] = -k
            assert (f["a"][:] == expected).all()
        print("right")
    """, cache="1MiB")
    assert out == "right"


# Other files, other processes.


def test_scattered_changes_in_an_outage_harm_nothing_in_between(remote):
    """More of them than the dirty map of a mirrored file has room for; the spool holds nothing between them."""
    remote.py("""
        with h5py.File("run.h5", "w") as f:
            f.create_dataset("d", data=np.full(8_000_000, 7, "u1"), chunks=(100,))
    """)
    writer = remote.start("""
        import signal
        from h5py import h5f
        f = h5py.File("run.h5", "r+", rdcc_nbytes=0)
        d = f["d"]
        assert (d[:] == 7).all()  # From here on the reader's cache has what says where the chunks are.
        d[0:100] = 1
        f.flush()
        def scatter():
            for i in range(2, 80_000, 2):
                d[100 * i:100 * i + 100] = 1
    """, timeout="60s")
    site = remote.site
    site.server.process.signal(signal.SIGSTOP)
    try:
        assert writer.ask("scatter()", timeout=120) == "done"
    finally:
        site.server.process.signal(signal.SIGCONT)
    assert writer.ask("f.close()") == "done"
    assert remote.py("""
        d = h5py.File("run.h5", "r")["d"][:].reshape(-1, 200)
        print((d[:, :100] == 1).all(), (d[:, 100:] == 7).all())
    """) == "True True"


def test_a_file_whose_last_close_changed_nothing_can_be_changed(remote):
    """Its newest version is of the cut before, and that is what an open reads."""
    site = remote.site
    site.py("""
        import time
        f = h5py.File("run.h5", "w", libver="latest")
        f.attrs["n"] = 1
        f.flush()
        time.sleep(1.2)
        f.attrs["n"] = 2
        f.flush()
        f.close()
    """, config=site.config(version_every="1s"))
    site.settle("run.h5")
    status = site.status("run.h5")
    remote.py('h5py.File("run.h5", "r+").attrs["n"] = 3')
    assert remote.py('print(h5py.File("run.h5", "r").attrs["n"])') == "3", status
    site.local("run.h5").unlink()
    shutil.rmtree(site.local("run.h5.h5m"))


def test_links_and_virtual_datasets_lead_to_files_on_the_server(remote):
    out = remote.py("""
        with h5py.File("raw.h5", "w") as f: f["d"] = np.arange(100)
        with h5py.File("run.h5", "w") as f:
            f["link"] = h5py.ExternalLink("raw.h5", "/d")
            f["none"] = h5py.ExternalLink("none.h5", "/d")
            layout = h5py.VirtualLayout((100,), "i8")
            layout[:] = h5py.VirtualSource("raw.h5", "d", shape=(100,))
            f.create_virtual_dataset("virtual", layout)
        for mode in ("r", "r+"):
            with h5py.File("run.h5", mode) as f:
                assert f.get("none") is None
                print(f["link"][7], f["virtual"][99])
        with h5py.File("run.h5", "r+") as f: f["link"][7] = 70
        print(h5py.File("raw.h5", "r")["d"][7])
    """)
    assert out.splitlines() == ["7 99", "7 99", "70"]
    assert len(remote.site.versions("raw.h5")) == 2


def test_a_source_that_cannot_be_reached_is_no_empty_one(remote):
    """HDF5 2.0 passes the error on, 1.14.4 forgets it: then the driver says so."""
    remote.py("""
        with h5py.File("raw.h5", "w") as f: f["d"] = np.arange(1, 101)
        with h5py.File("run.h5", "w") as f:
            layout = h5py.VirtualLayout((100,), "i8")
            layout[:] = h5py.VirtualSource("raw.h5", "d", shape=(100,))
            f.create_virtual_dataset("virtual", layout)
    """)
    program = remote.start('f = h5py.File("run.h5", "r+"); v = f["virtual"]', timeout="1s")
    remote.site.server.kill9()
    answer = program.ask("assert not v[:].any()")
    assert answer == "done" or ("raw.h5" in answer and "no connection to" in answer), answer
    assert "raw.h5, which run.h5 leads to, cannot be read" in program.err()
    program.kill()
    remote.site.server.start()


def test_with_a_name_of_its_own_links_lie_to_it_as_the_paths_do(remote):
    remote.py('h5py.File("raw.h5", "w")["d"] = 5', name="beam/raw.h5", root=None)
    remote.py("""
        with h5py.File("run.h5", "w") as f: f["link"] = h5py.ExternalLink("raw.h5", "/d")
        for mode in ("r", "r+"): assert h5py.File("run.h5", mode)["link"][()] == 5
    """, name="beam/run.h5", root=None)


def test_what_the_rules_leave_out_is_local(remote):
    remote.py("""
        h5py.File("local.h5", "w")["a"] = 1
        assert os.path.exists("local.h5")
    """, exclude="local*")
    assert not remote.site.exists("local.h5")


def test_a_forked_child_reads_and_cannot_write(remote):
    remote.py("""
        with h5py.File("run.h5", "w") as f: f["a"] = np.arange(1_000_000)
        f = h5py.File("run.h5", "r+")
        f["a"][3] = -3
        f.flush()
        pid = os.fork()
        if pid == 0:
            assert f["a"][3] == -3 and f["a"][999_999] == 999_999
            try:
                f["a"][:] = 5
                f.flush()
                os._exit(1)
            except Exception as error:
                os._exit(0 if "forked" in str(error) else 2)
        assert os.waitpid(pid, 0)[1] == 0
        f["a"][4] = -4
        f.close()
        f = h5py.File("run.h5", "r")
        assert f["a"][:6].tolist() == [0, 1, 2, -3, -4, 5]
        f.close()
        pid = os.fork()
        if pid == 0:
            with h5py.File("run.h5", "r+") as g: g["a"][5] = -5
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert h5py.File("run.h5", "r")["a"][5] == -5
    """)


def test_a_mirrored_file_that_is_changed_remotely_has_diverged_until_somebody_decides(remote):
    site = remote.site
    site.py('h5py.File("mirrored.h5", "w")["a"] = 1')
    remote.py('h5py.File("mirrored.h5", "r+")["b"] = 2')
    for mode in ("r+", "w"):
        result = site.py(f'h5py.File("mirrored.h5", "{mode}")["c"] = 3')
        assert "have diverged" in result.err and "(mode=remote, session" in result.err, result.describe()
    assert remote.py('print(sorted(h5py.File("mirrored.h5", "r")))') == "['a', 'b']"
    site.cli("resync", "--from", "remote", site.work / "mirrored.h5").ok()
    assert "diverged" not in site.py('h5py.File("mirrored.h5", "r+")["d"] = 4').err
    assert remote.py('print(sorted(h5py.File("mirrored.h5", "r")))') == "['a', 'b', 'd']"


# Things that cannot work.


@pytest.mark.parametrize(("keys", "text"), [
    ({"server": "embedded"}, "needs a server"), ({"server": "127.0.0.1:1,127.0.0.1:2"}, "one server"),
    ({"under": "direct"}, "leave out under="), ({"version": "2"}, "with mode=reader")])
def test_what_does_not_go_together_is_said(remote, keys, text):
    result = remote.run('h5py.File("run.h5", "w")', **keys)
    assert "OSError: [Errno 22]" in result.err and text in result.err, result.describe()


def test_a_spool_that_cannot_be_made_is_named(remote):
    result = remote.run('h5py.File("run.h5", "w")', spool="/proc/none")
    assert "the spool in /proc/none" in result.err and "spool= names another directory" in result.err, result.describe()


def test_a_full_spool_is_an_error_and_the_server_keeps_the_last_cut(remote):
    """As small as a file may become in this process: nobody can mount a small disk here."""
    result = remote.run("""
        import resource, signal
        f = h5py.File("run.h5", "w")
        f["a"] = 1
        f.flush()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            f["b"] = np.zeros(1 << 20)
        except OSError as error:
            print(error)
        os._exit(0)
    """).ok()
    assert "the spool in " in result.out, result.describe()
    remote.site.wait_for_no_lease("run.h5")
    assert remote.py('print(list(h5py.File("run.h5", "r")))') == "['a']"
