"""server=embedded: versions beside a local file, with no server at all, and the file moves from cut to cut."""

import os
import random
import shutil
import time
from pathlib import Path

import pytest

from harness import hdf5, paths
from harness.process import run, wait_until
from harness.site import Site

FILE = "run.h5"
THREE = """
    for n in range(3):
        with h5py.File("run.h5", "a") as f:
            f.attrs["n"] = n
            f.require_dataset("d", (200_000,), "f8")[:] = n
        time.sleep(0.02)
"""
READ = 'f = h5py.File("run.h5", "r"); print(f.attrs["n"], f["d"][:].sum() / 200_000)'


# A writer, and version 1 beside it.
BOTH = """
        import ctypes
        lib = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "/libhdf5-" in line))
        fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        lib.H5Pset_driver_by_name(ctypes.c_int64(fapl.id), b"h5mirror", b"server=embedded;mode=reader;version=1")
        f = h5py.File("run.h5", "r+")
        f.attrs["n"] = 99
        old = h5py.File(h5py.h5f.open(b"run.h5", h5py.h5f.ACC_RDONLY, fapl))
"""


class Lab(Site):
    """A directory of files without a server."""

    def config(self, **keys) -> str:
        return ";".join(f"{key}={value}" for key, value in {"server": "embedded", **keys}.items() if value is not None)

    def cli(self, *arguments, timeout: float = 60):
        return run([paths.BIN / "h5mirror", *arguments], self.logs, cwd=self.work, timeout=timeout, name="h5mirror",
                   env=hdf5.plain_env(HOME=str(self.home)))

    def head(self, name: str = FILE) -> Path:
        return self.work / name

    def export(self, name: str, version: int, timeout: float = 120) -> Path:
        out = self.directory / f"{name}@{version}"
        out.unlink(missing_ok=True)
        self.cli("export", f"{name}@{version}", out, timeout=timeout).ok()
        return out

    def close(self) -> None:
        for process in self.beside:
            process.kill()


@pytest.fixture(params=["3.12.1", "3.16.0"])
def lab(request, tmp_path):
    if not paths.venv_python(request.param).exists():
        pytest.skip(f"no environment with h5py {request.param}; ./dev setup makes it")
    lab = Lab(tmp_path, h5py=request.param)
    yield lab
    lab.close()


@pytest.fixture
def one_lab(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.close()


@pytest.fixture
def three(lab):
    lab.py(THREE)
    return lab


def read(lab, version, script=READ):
    return lab.py(script, config=lab.config(mode="reader", version=version)).out.strip()


def plain(lab, text: str):
    """A stock program, without the plugin."""
    return lab.run(lab.script(text), env=lab.plain_env())


def test_each_close_is_a_version_and_the_file_is_the_newest(three):
    assert plain(three, READ).ok().out.strip() == "2 2.0"
    assert sorted(os.listdir(three.work)) == [FILE, FILE + ".h5m"]
    newest, middle, oldest = three.log(FILE)
    assert [read(three, each) for each in ("1", "latest-2", oldest["time"])] == ["0 0.0"] * 3
    assert [read(three, each) for each in ("2", "latest-1", middle["time"])] == ["1 1.0"] * 3
    assert [read(three, each) for each in ("3", "latest", None)] == ["2 2.0"] * 3
    assert not (three.work / f"{FILE}.h5m" / "open").exists()


def test_a_program_reads_what_it_has_written(lab):
    lab.py("""
        with h5py.File("run.h5", "w") as f:
            d = f.create_dataset("d", (1000, 1000), "f8", chunks=(100, 100))
            d[:] = 1
            f.flush()
            d[10:500, 10:500] = 2
            f.attrs["a"] = "x" * 10000
            with h5py.File("run.h5", "r+") as g:  # the same file
                assert g["d"][:].sum() == 1_000_000 + 490 * 490
            del f["d"]
            f["e"] = np.arange(100000)
            assert (f["e"][:] == np.arange(100000)).all() and f.attrs["a"] == "x" * 10000
    """)
    assert plain(lab, 'print(list(h5py.File("run.h5", "r")))').ok().out == "['e']\n"
    assert lab.versions(FILE) == [1]


def test_the_head_moves_from_cut_to_cut(lab):
    writer = lab.start(lab.script("""
        f = h5py.File("run.h5", "w")
        f["a"] = np.zeros(100000)
        f.flush(); print("cut", flush=True)
        f["a"][:] = 1
        f["b"] = np.ones(100000)
        print("uncut", flush=True)
        time.sleep(600)
    """))
    writer.wait_for_line("uncut")
    look = 'f = h5py.File("run.h5", "r"); print(list(f), f["a"][:].sum())'
    env = {**lab.plain_env(), "HDF5_USE_FILE_LOCKING": "FALSE"}
    # Until the first cut is durable and applied there is no file, or a part of it.
    wait_until(lambda: lab.run(lab.script(look), env=env).out == "['a'] 0.0\n", "the first cut is not in the head")
    writer.kill()
    assert lab.py(look).out == "['a'] 0.0\n"
    assert [row["comment"] for row in lab.log(FILE)] == ["writer lost"]


@pytest.mark.limit(300)
def test_a_killed_writer_leaves_the_last_cut_and_all_versions(lab):
    seed = int(os.environ.get("H5M_SEED", random.SystemRandom().randrange(1 << 30)))
    print(f"H5M_SEED={seed}")
    chance = random.Random(seed)
    writer_script = lab.script("""
        f = h5py.File("run.h5", "a")
        n = int(f.attrs.get("n", 0))
        while True:
            n += 1
            f.attrs["n"] = n
            d = f.require_dataset("d", (50_000,), "i8")
            d[:] = n
            if n % 7 == 0:
                if "big" in f: del f["big"]
                f["big"] = np.full(300_000, n)
            f.flush()
            print(n, flush=True)
            if n % 5 == 0:
                f.close()
                print("version", n, flush=True)
                f = h5py.File("run.h5", "a")
    """)
    closed, golden = 0, {}
    for _ in range(6):
        writer = lab.start(writer_script, config=lab.config(flush="sync"))
        if not golden:
            writer.wait_for_line("version")
        time.sleep(chance.uniform(0.2, 2))
        writer.kill()
        lines = writer.out().split("\n")[:-1]
        flushed = max([int(line) for line in lines if line.isdigit()], default=0)
        closed = max([closed, *(int(line.split()[1]) for line in lines if line.startswith("version"))])
        # The next open with h5mirror puts it in order; then it is a plain file again.
        n = int(lab.py("""
            f = h5py.File("run.h5", "r")
            n = int(f.attrs["n"])
            assert (f["d"][:] == n).all(), (n, f["d"][:3])
            print(n)
        """).out)
        assert n >= max(flushed, closed), f"the cut of {flushed} was acknowledged, the file is at {n}"
        hdf5.assert_opens(lab.head())
        # On a fast disk there are hundreds: the newest, and some that were looked at before.
        versions = [int(row["version"]) for row in lab.log(FILE)]
        known = [version for version in versions if version in golden]
        for version in versions[:4] + chance.sample(known, min(len(known), 6)):
            exported = lab.export(FILE, version)
            hdf5.assert_opens(exported)
            digest = hdf5.digest(exported)
            assert golden.setdefault(version, digest) == digest
    assert closed and golden
    lab.cli("verify", FILE).ok()


def test_a_second_process_is_refused_and_told_who_writes(lab):
    writer = lab.start(lab.script("""
        f = h5py.File("run.h5", "w")
        f["a"] = 1
        f.flush()
        print("open", flush=True)
        time.sleep(600)
    """), config=lab.config(flush="sync"))
    writer.wait_for_line("open")
    for env in ({}, {"HDF5_USE_FILE_LOCKING": "FALSE"}):
        refused = lab.run(lab.script("""
            try:
                h5py.File("run.h5", "r+")
            except OSError as error:
                print(type(error).__name__, error.errno, error)
        """), **env).ok()
        assert f"pid {writer.pid} on" in refused.out, refused.describe()
        assert "BlockingIOError 11" in refused.out
    refused = lab.cli("log", FILE)
    assert refused.code == 4 and f"(pid {writer.pid} on" in refused.err
    writer.kill()
    lab.py('h5py.File("run.h5", "r+").attrs["x"] = 1')


def test_readers_of_versions_share_the_history(three):
    reader = three.start(three.script('f = h5py.File("run.h5", "r"); print("open", flush=True); time.sleep(600)'),
                         config=three.config(mode="reader", version=1))
    reader.wait_for_line("open")
    assert read(three, "2") == "1 1.0"
    refused = three.run(three.script('h5py.File("run.h5", "r+")'))
    assert refused.code != 0 and "a reader of its versions" in refused.err
    assert plain(three, READ).ok().out.strip() == "2 2.0"


def test_old_versions_open_beside_the_writer_of_the_same_process(three):
    three.py(BOTH + """
        assert (old.attrs["n"], f.attrs["n"]) == (0, 99)
        f.close()
        assert (old["d"][:] == 0).all()  # goes on when the writer is gone
    """)
    assert three.versions(FILE) == [1, 2, 3, 4]


def test_an_untouched_open_makes_nothing(three):
    before = three.head().stat().st_mtime_ns
    three.py('h5py.File("run.h5", "r+").close()\nh5py.File("run.h5", "a").close()\nh5py.File("run.h5", "r").close()')
    assert three.versions(FILE) == [1, 2, 3] and three.head().stat().st_mtime_ns == before
    plain(three, 'h5py.File("plain.h5", "w").attrs["x"] = 1').ok()
    three.py('h5py.File("plain.h5", "r+").close()')
    assert not three.head("plain.h5.h5m").exists()


def test_what_was_there_becomes_the_first_version(lab):
    plain(lab, 'h5py.File("run.h5", "w")["d"] = np.arange(100000)').ok()
    digest = hdf5.digest(lab.head())
    lab.py('h5py.File("run.h5", "r+")["d"][5] = -1')
    assert [row["comment"] for row in lab.log(FILE)] == ["", "found"]
    assert hdf5.digest(lab.export(FILE, 1)) == digest


def test_creating_a_file_again_keeps_the_old_one(three):
    digest = hdf5.digest(three.export(FILE, 3))
    three.py('h5py.File("run.h5", "w").attrs["new"] = 1')
    assert three.versions(FILE) == [1, 2, 3, 4]
    assert hdf5.digest(three.export(FILE, 3)) == digest
    assert plain(three, 'print(list(h5py.File("run.h5", "r").attrs))').ok().out == "['new']\n"


def test_a_change_from_outside_becomes_a_version_loudly(three):
    plain(three, 'f = h5py.File("run.h5", "r+"); f.attrs["n"] = 77').ok()
    changed = hdf5.digest(three.head())
    said = three.py('f = h5py.File("run.h5", "r+"); f.attrs["m"] = 1').err
    assert "was changed by a program without server=embedded: what it left is version 4" in said
    assert [row["comment"] for row in three.log(FILE)][:2] == ["", "outside change"]
    assert hdf5.digest(three.export(FILE, 4)) == changed
    assert hdf5.digest(three.export(FILE, 5)) == hdf5.digest(three.head())


def test_a_mirrored_file_and_a_file_with_its_own_history_are_kept_apart(three):
    refused = three.run(three.script('h5py.File("run.h5", "r+")'), config="server=127.0.0.1:1")
    assert refused.code != 0 and "has a history of its own beside it" in refused.err
    (three.work / "other.h5.h5m").mkdir()
    (three.work / "other.h5.h5m" / "client.json").write_text("{}")
    refused = three.run(three.script('h5py.File("other.h5", "w")'))
    assert refused.code != 0 and "is mirrored to a server" in refused.err


def test_all_verbs_work_without_a_server(three):
    three.cli("tag", f"{FILE}@1", "first").ok()
    assert read(three, "tag:first") == "0 0.0"
    shown = three.json("show", "--map", f"{FILE}@1")
    assert {run["file"] for run in shown["map"] if run["file"]} <= {FILE, f"{FILE}.h5m/pages-000001"}
    assert three.cli("diff", f"{FILE}@1", f"{FILE}@3").code == 1
    assert "version 1 again" in three.cli("rollback", f"{FILE}@tag:first").ok().out
    # The verb ends when the head has the version.
    assert plain(three, READ).ok().out.strip() == "0 0.0"
    three.cli("untag", FILE, "first").ok()
    three.cli("commit", FILE, "-m", "now").ok()  # Nothing has changed: no version.
    three.cli("verify", FILE).ok()
    three.cli("prune", FILE, "--keep-last", "2").ok()
    assert three.versions(FILE) == [3, 4]
    assert three.json("status", FILE)["exists"] is True
    refused = three.cli("rm", FILE)
    assert refused.code != 0 and "rm -r" in refused.err
    assert three.cli("log", "--server", "embedded", FILE).code == 0
    assert "name a file that has its history beside it" in three.cli("log", "--server", "embedded", "no.h5").err


def test_a_history_moves_under_a_servers_root_and_back(three, tmp_path):
    digests = [hdf5.digest(three.export(FILE, each)) for each in (1, 2, 3)]
    (tmp_path / "server").mkdir()
    site = Site(tmp_path / "server")
    try:
        for name in (FILE, f"{FILE}.h5m"):
            shutil.move(three.work / name, site.root / name)
        site.server.start()
        assert [hdf5.digest(site.export(FILE, each)) for each in (1, 2, 3)] == digests
        refused = three.run(three.script(f'h5py.File("{site.root / FILE}", "r+")'))
        assert refused.code != 0 and "the root of an h5mirrord" in refused.err
        site.cli("rollback", f"{FILE}@1").ok()
        site.settle(FILE)
    finally:
        site.close()
    for name in (FILE, f"{FILE}.h5m"):
        shutil.move(site.root / name, three.work / name)
    assert three.versions(FILE) == [1, 2, 3, 4]
    assert read(three, "4") == "0 0.0"
    three.py('h5py.File("run.h5", "r+").attrs["back"] = 1')
    assert three.versions(FILE) == [1, 2, 3, 4, 5]
    assert [hdf5.digest(three.export(FILE, each)) for each in (1, 2, 3)] == digests


def test_links_and_virtual_datasets_open_at_the_versions_time(lab):
    lab.py("""
        for n in range(2):
            with h5py.File("raw.h5", "a") as f:
                f.require_dataset("d", (100,), "i8")[:] = n
            with h5py.File("run.h5", "a") as f:
                if n == 0:
                    f["link"] = h5py.ExternalLink("raw.h5", "/d")
                    layout = h5py.VirtualLayout((100,), "i8")
                    layout[:] = h5py.VirtualSource("raw.h5", "d", shape=(100,))
                    f.create_virtual_dataset("virtual", layout)
                f.attrs["n"] = n
            time.sleep(0.02)
    """)
    script = 'f = h5py.File("run.h5", "r"); print(f["link"][0], f["virtual"][99])'
    assert read(lab, "1", script) == "0 0"
    assert read(lab, "2", script) == "1 1"


def test_a_forked_child_changes_nothing(lab):
    lab.py("""
        f = h5py.File("run.h5", "w")
        f["a"] = np.zeros(100_000)  # more than HDF5 holds back
        f.flush()
        pid = os.fork()
        if pid == 0:
            try:
                f["a"][:] = 5
                f.flush()
                os._exit(1)
            except Exception as error:
                os._exit(0 if "forked" in str(error) else 2)
        assert os.waitpid(pid, 0)[1] == 0
        f["a"][:] = 1
        f.close()
        pid = os.fork()
        if pid == 0:
            with h5py.File("run.h5", "r+") as g:
                g["a"][:] = 2
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert (h5py.File("run.h5", "r")["a"][:] == 2).all()
    """)
    assert lab.versions(FILE) == [1, 2]


def test_a_forked_child_does_not_read_versions_through_its_parent(three):
    """The parent's index goes on in the parent's memory: there its later bytes would pass for version 1."""
    three.py(BOTH + """
        def child(wanted):
            begin, end = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.read(begin, 1)
                try:
                    seen = "old" if (old["d"][:] == 0).all() else "wrong"
                except (OSError, KeyError):  # h5py says one or the other
                    seen = "error"
                os._exit(0 if seen == wanted else 1)
            return lambda: os.write(end, b"x") and os.waitpid(pid, 0)[1]

        beside, after = child("error"), child("old")
        f["d"][:] = 77
        f.flush()
        assert beside() == 0, "while the parent writes"
        f.close()
        assert after() == 0, "when it has closed"
        assert (old["d"][:] == 0).all()
    """)


def test_a_child_that_inherits_a_version_keeps_nobody_from_writing(three):
    reader = three.start(three.script("""
        old = h5py.File("run.h5", "r")
        if os.fork() == 0:
            print("forked", flush=True)
            time.sleep(600)
        old.close()
        print("closed", flush=True)
        time.sleep(600)
    """), config=three.config(mode="reader", version=1))
    for line in ("forked", "closed"):
        reader.wait_for_line(line)
    three.py('h5py.File("run.h5", "r+").attrs["n"] = 5')
    assert three.versions(FILE) == [1, 2, 3, 4]


def test_the_file_does_not_change_under_a_plain_reader(three):
    reader = three.start(three.script('f = h5py.File("run.h5", "r"); print("open", flush=True); time.sleep(600)'),
                         env=three.plain_env())
    reader.wait_for_line("open")
    before = hdf5.digest(three.head())
    three.cli("rollback", f"{FILE}@1")
    assert three.versions(FILE) == [1, 2, 3, 4]
    assert hdf5.digest(three.head()) == before
    reader.kill()
    three.cli("log", FILE).ok()
    assert three.py(READ).out.strip() == "0 0.0"


def test_closes_fold_and_flushes_keep(lab):
    lab.py("""
        for n in range(4):
            with h5py.File("run.h5", "a") as f:
                f.attrs["n"] = n
    """, config=lab.config(version_min_interval="1h"))
    assert lab.versions(FILE) == [1]
    assert plain(lab, 'print(h5py.File("run.h5", "r").attrs["n"])').ok().out == "3\n"
    lab.py("""
        with h5py.File("run.h5", "a") as f:
            for n in range(3):
                f.attrs["n"] = 10 + n
                f.flush()
                time.sleep(0.5)
    """, config=lab.config(version_every="100ms", ack_tick="durable"))
    assert len(lab.versions(FILE)) >= 4


def test_a_full_disk_is_an_error_and_the_history_stays(three):
    refused = three.run(three.script("""
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
        f = h5py.File("run.h5", "r+")
        f["big"] = np.ones(1_000_000)
        f.close()
    """))
    assert refused.code != 0 and "File too large" in refused.err
    assert plain(three, READ).ok().out.strip() == "2 2.0"
    assert three.versions(FILE) == [1, 2, 3]


def test_the_cli_is_quick(one_lab):
    one_lab.py(THREE)
    best = min(one_lab.cli("log", FILE).ok().seconds for _ in range(5))
    print(f"h5mirror log takes {best * 1000:.0f} ms")
    assert best < 1
