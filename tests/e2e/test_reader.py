"""mode=reader: versions opened by HDF5 programs as any file, with no local file and beside a live writer."""

import shutil
import time

import pytest

from harness import paths
from harness.scripts import TIMER

THREE = """
    for n in range(3):
        with h5py.File("run.h5", "a") as f:
            f.attrs["n"] = n
            f.require_dataset("d", (200_000,), "f8")[:] = n
        time.sleep(0.02)
"""
READ = 'f = h5py.File("run.h5", "r"); print(f.attrs["n"], f["d"][:].sum() / 200_000)'


def reader(site, **keys):
    return site.config(mode="reader", **keys)


def read(site, version, script=READ):
    return site.py(script, config=reader(site, version=version)).out.strip()


def forget_local(site):
    """The local files are gone; the directory too, so that names lead nowhere."""
    shutil.rmtree(site.work)
    site.work.mkdir()


@pytest.fixture(scope="module")
def module_three(module_both):
    module_both.py(THREE)
    module_both.keep("run.h5")
    forget_local(module_both)
    return module_both


@pytest.fixture
def three(module_three):
    """A site whose run.h5 has the versions 1, 2 and 3, and no local file. It is the same for many tests."""
    yield module_three
    assert module_three.server.running() and module_three.server.starts == 1
    assert module_three.versions("run.h5") == [1, 2, 3] and not module_three.local("run.h5").exists()


def test_a_version_opens_by_number_tag_time_and_place_without_a_local_file(three):
    newest, middle, oldest = three.log("run.h5")
    three.cli("tag", "run.h5@2", "published").ok()
    assert [read(three, each) for each in ("1", "latest-2", oldest["time"])] == ["0 0.0"] * 3
    assert [read(three, each) for each in ("2", "latest-1", "tag:published", middle["time"])] == ["1 1.0"] * 4
    assert [read(three, each) for each in ("3", "latest", None, "2999-01-01T00:00")] == ["2 2.0"] * 4
    three.check_kept()


def test_the_log_tells_the_version_and_the_time_in_utc(three):
    log = three.directory / "reader.log"
    three.py(READ, config=reader(three, version="2999-01-01T00:00", log=log), TZ="Europe/Berlin")
    assert "version 3 of run.h5, of 2" in log.read_text()
    assert "(2999-01-01T00:00 is 2998-12-31T23:00:00Z)" in log.read_text()


def test_what_is_not_there_is_an_error_that_h5py_understands(three):
    script = three.script("""
        try:
            h5py.File(sys.argv[1], "r")
        except OSError as error:
            print(type(error).__name__, error)
    """)
    for name, version, words in (("run.h5", "7", "FileNotFoundError [Errno 2]"), ("run.h5", "7", "no version 7"),
                                 ("run.h5", "tag:draft", "no tag 'draft'"), ("other.h5", "1", "FileNotFoundError"),
                                 ("run.h5", "2001-01-01T00:00Z", "no version from"),
                                 ("run.h5", "someday", "tag:NAME"), ("run.h5", "latest-3", "only 3 versions")):
        out = three.run([*script, name], config=reader(three, version=version)).ok().out
        assert words in out, (version, out)


def test_it_is_for_reading_only(three):
    for mode in ("r+", "a", "w", "x"):
        result = three.run(three.script(f'h5py.File("run.h5", {mode!r})'), config=reader(three, version="1"))
        assert result.code != 0 and "errno = 30" in result.err and "mode=reader reads versions" in result.err, result.err
    assert three.versions("run.h5") == [1, 2, 3]
    assert not three.local("run.h5").exists()


def test_files_that_the_rules_leave_out_are_local(three):
    three.py("""
        with h5py.File("run.h5", "r") as f, h5py.File("result.h5", "w") as out:
            out["mean"] = f["d"][:].mean()
    """, config=reader(three, version="2", exclude="result*"))
    result = three.run(three.script('print(h5py.File("result.h5")["mean"][()])'), env=three.plain_env()).ok()
    assert result.out == "1.0\n" and not three.exists("result.h5")


def test_versions_of_one_file_are_files_of_their_own_in_one_program(three):
    three.py("""
        files = {}
        for version in (1, 2, 3, 3):
            fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
            fapl.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
            os.environ.pop("HDF5_DRIVER", None)
            import ctypes
            library = ctypes.CDLL([line.split()[-1] for line in open("/proc/self/maps")
                                   if "libhdf5-" in line or "libhdf5.so" in line][0])
            config = sys.argv[1].replace("VERSION", str(version)).encode()
            assert library.H5Pset_driver_by_name(ctypes.c_int64(fapl.id), b"h5mirror", config) >= 0
            f = h5py.File(h5py.h5f.open(b"run.h5", h5py.h5f.ACC_RDONLY, fapl=fapl))
            files.setdefault(version, []).append(f)
        for version, opened in files.items():
            for f in opened:
                assert f.attrs["n"] == version - 1 and f["d"][1000] == version - 1
        a, b = files[3]
        assert a == b and files[1][0] != files[2][0]
    """.replace("sys.argv[1]", repr(reader(three, version="VERSION"))))


def tool(site, name, *arguments, code=0):
    env = {**site.plain_env(), "HDF5_PLUGIN_PATH": str(paths.LIB)}
    result = site.run([paths.hdf5_tool(name), *arguments], env=env)
    assert result.code == code, result.describe()
    return result.out


def test_h5dump_and_h5diff_open_versions(three):
    vfd = ("--vfd-name", "h5mirror", "--vfd-info")
    assert "(0): 1\n" in tool(three, "h5dump", *vfd, reader(three, version="2"), "-a", "/n", "run.h5")
    pair = ("--vfd-name-1", "h5mirror", "--vfd-name-2", "h5mirror", "--vfd-info-1", reader(three, version="1"))
    out = tool(three, "h5diff", *pair, "--vfd-info-2", reader(three, version="3"), "run.h5", "run.h5", "/d", code=1)
    assert "200000 differences found" in out
    tool(three, "h5diff", *pair, "--vfd-info-2", reader(three, version="latest-2"), "run.h5", "run.h5", code=0)


LINKED = """
    for n in range(3):
        with h5py.File("raw/a.h5", "a") as f:
            f.require_dataset("d", (1000,), "f8")[:] = n
            f.require_dataset("s", (), "i4")[()] = n
            f.require_group("back")
            if "again" not in f: f["again"] = h5py.ExternalLink("b.h5", "/n")
        with h5py.File("raw/b.h5", "a") as f:
            f.require_dataset("n", (), "i4")[()] = n
        with h5py.File("master.h5", "a") as f:
            f.attrs["n"] = n
            if n == 0:
                f["link"] = h5py.ExternalLink("raw/a.h5", "/")
                layout = h5py.VirtualLayout((1000,), "f8")
                layout[:] = h5py.VirtualSource("raw/a.h5", "d", (1000,))
                f.create_virtual_dataset("v", layout, fillvalue=-1)
        time.sleep(0.02)
    with h5py.File("raw/a.h5", "r+") as f:
        f["d"][:] = 99
    with h5py.File("raw/b.h5", "r+") as f:
        f["n"][()] = 99
"""
FOLLOW = """
    with h5py.File("master.h5", "r") as f:
        print(f.attrs["n"], f["link/d"][0], f["link/s"][()], f["v"][:].mean(), f["link/again"][()])
"""


LINKED_FILES = ("master.h5", "raw/a.h5", "raw/b.h5")


def make_linked(site):
    """master.h5 with a link and a virtual dataset to raw/a.h5, which links to raw/b.h5."""
    (site.work / "raw").mkdir()
    site.py(LINKED)
    for name in LINKED_FILES:
        site.settle(name)
    forget_local(site)
    return site


@pytest.fixture(scope="module")
def module_linked(module_both):
    return make_linked(module_both)


@pytest.fixture
def linked(module_linked):
    """What make_linked() makes, the same for many tests."""
    yield module_linked
    assert module_linked.server.running() and module_linked.server.starts == 1
    assert [module_linked.versions(name) for name in LINKED_FILES] == [[1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4]]


@pytest.fixture
def own_linked(both):
    """The same for one test."""
    return make_linked(both)


def test_links_and_virtual_datasets_lead_to_the_masters_time(linked):
    linked.cli("tag", "master.h5@2", "published").ok()
    assert read(linked, "1", FOLLOW) == "0 0.0 0 0.0 0"
    for version in ("2", "tag:published", "latest-1"):
        assert read(linked, version, FOLLOW) == "1 1.0 1 1.0 1"
    assert read(linked, "3", FOLLOW) == "2 2.0 2 2.0 2"


def test_a_time_is_everyones_and_latest_is_each_files_newest(linked):
    last = linked.log("raw/b.h5")[0]["time"]
    assert read(linked, last, FOLLOW) == "2 99.0 2 99.0 99"
    assert read(linked, "latest", FOLLOW) == "2 99.0 2 99.0 99"


def test_a_target_that_the_program_names_too_is_what_it_named(linked):
    assert read(linked, "1", """
        with h5py.File("master.h5", "r") as f, h5py.File("raw/a.h5", "r") as a:
            print(f["link/d"][0], a["d"][0], f["link/again"][()], f["link"].file == a)
    """) == "0.0 0.0 0 False", "one version, and links from it lead to two times"
    assert read(linked, "latest-1", """
        with h5py.File("raw/a.h5", "r") as a, h5py.File("master.h5", "r") as f:
            print(a["d"][0], a["again"][()], f["link/d"][0], f["v"][0], f["link/again"][()])
    """) == "2.0 1 1.0 1.0 1", "a.h5@3 was made just before b.h5's third version"


def test_links_work_for_files_that_a_driver_of_their_own_was_set_for(linked):
    """No HDF5_DRIVER: the configuration is only in the master's property list."""
    vfd = ("--vfd-name", "h5mirror", "--vfd-info", reader(linked, version="2"))
    out = tool(linked, "h5dump", *vfd, "-d", "/link/s", "master.h5")
    assert "(0): 1\n" in out
    assert "(0): 1, 1, 1" in tool(linked, "h5dump", *vfd, "-d", "/v", "master.h5")


def test_with_name_the_targets_lie_to_it_as_the_local_paths_do(linked):
    config = linked.config(mode="reader", version="2", name="master.h5", root=None)
    script = linked.script(FOLLOW.replace("master.h5", "copies/mine.h5"))
    assert linked.run(script, config=config).ok().out.strip() == "1 1.0 1 1.0 1"


def test_a_target_that_cannot_be_asked_for_is_an_error_not_fill_values(own_linked, h5py_version):
    script = own_linked.script("""
        f = h5py.File("master.h5", "r")
        v = f["v"]
        os.kill(int(sys.argv[1]), 9)
        try:
            print("read", v[0])
        except OSError as error:
            print(error)
    """)
    pid = own_linked.server.pid
    result = own_linked.run([*script, str(pid)], config=reader(own_linked, version="2", timeout="1s")).ok()
    own_linked.server.close()
    own_linked.server.start()
    if h5py_version == "3.12.1":  # HDF5 1.14.4 forgets why a source could not be opened, whatever the driver.
        assert result.out == "read -1.0\n"
    else:
        assert "no connection" in result.out or "no answer" in result.out, result.describe()
    assert result.err.count("cannot be read, and a virtual dataset may show fill values") == 1, result.err


def test_twenty_readers_beside_a_live_writer(both):
    both.py(THREE)
    both.settle("run.h5")
    both.keep("run.h5")
    writer = both.start(both.script("""
        with h5py.File("run.h5", "r+") as f:
            n = 0
            while not os.path.exists("stop"):
                f["d"][:] = 100 + n
                f.attrs["n"] = 100 + n
                f.flush()
                n += 1
            print("wrote", n)
    """))
    both.wait_for_cut("run.h5")
    script = both.script("""
        for _ in range(10):
            with h5py.File("run.h5", "r") as f:
                print(f.attrs["n"], f["d"][:].min(), f["d"][:].max())
    """)
    readers = [both.start(script, config=reader(both, version=str(1 + n % 3))) for n in range(20)]
    for n, each in enumerate(readers):
        assert each.wait(100).ok().out == f"{n % 3} {n % 3}.0 {n % 3}.0\n" * 10
    (both.work / "stop").touch()
    assert "wrote" in writer.wait(60).ok().out
    both.assert_mirrored("run.h5")
    both.check_kept()


def test_a_version_that_is_cut_while_an_swmr_writer_has_it_open_reads_as_a_closed_one(both):
    writer = both.start(both.script("""
        f = h5py.File("run.h5", "w", libver="latest")
        d = f.create_dataset("d", (0,), "i4", maxshape=(None,), chunks=(1000,))
        f.swmr_mode = True
        for n in range(50):
            d.resize((1000 * (n + 1),))
            d[-1000:] = n
            d.flush()
        open("written", "w").close()
        while True: time.sleep(0.1)
    """), config=both.config(ack="applied"))
    while not (both.work / "written").exists():
        assert writer.running(), writer.err()
        time.sleep(0.02)
    writer.kill()
    both.wait_for_no_lease("run.h5")
    assert both.log("run.h5")[0]["comment"] == "writer lost"
    assert read(both, "latest", 'd = h5py.File("run.h5", "r")["d"]; print(d.shape[0], d[-1])') == "50000 49"
    out = tool(both, "h5dump", "--vfd-name", "h5mirror", "--vfd-info", reader(both, version="latest"), "-H", "run.h5")
    assert "50000" in out


SLOW = TIMER + """
    f = h5py.File("big.h5", "r")
    print(f["d"][:1000].sum(), flush=True)
    while not os.path.exists("go"): time.sleep(0.01)
    started, ready = time.monotonic(), without_a_core()
    try:
        f["d"][:]
    except OSError as error:
        took = time.monotonic() - started
        print(f"{took:.1f} {took - (without_a_core() - ready):.1f}", error)
    else:
        print("read all")
    print("goes on", h5py.File("local.h5", "w").mode)
"""


@pytest.fixture
def big(site, request):
    """big.h5: 80 MB, one version; a reader has begun to read it. The parameter is its timeout."""
    site.py('with h5py.File("big.h5", "w") as f: f["d"] = np.arange(10_000_000, dtype="f8")')
    site.settle("big.h5")
    timeout = getattr(request, "param", "2s")
    process = site.start(site.script(SLOW), config=reader(site, version="1", timeout=timeout, exclude="local*"))
    process.wait_for_line("499500.0")
    return site, process


def assert_is_about_2_s(line: str) -> None:
    """By the clock, and at most so much longer if the program had a core of its own."""
    by_the_clock, alone = map(float, line.split()[:2])
    assert by_the_clock > 1.5 and alone < 4, line


def test_a_server_that_is_killed_while_it_is_read_from_is_an_error_within_the_timeout(big):
    site, process = big
    site.server.kill9()
    (site.work / "go").touch()
    lines = process.wait(30).ok().out.splitlines()
    assert_is_about_2_s(lines[1])
    assert "no connection" in lines[1] and "big.h5@1" in lines[1], lines
    assert lines[2] == "goes on r+"
    site.server.start()


def test_a_server_that_does_not_answer_is_an_error_within_the_timeout(big):
    site, process = big
    site.server.process.signal(19)
    try:
        (site.work / "go").touch()
        lines = process.wait(30).ok().out.splitlines()
        assert_is_about_2_s(lines[1])
        assert "no answer" in lines[1], lines
        assert lines[2] == "goes on r+"
    finally:
        site.server.process.signal(18)


@pytest.mark.parametrize("big", ["60s"], indirect=True)
def test_a_server_that_comes_back_in_time_is_not_noticed(big):
    """In time is any moment before the timeout: a server may take seconds to start."""
    site, process = big
    site.server.kill9()
    (site.work / "go").touch()
    site.server.start()
    assert process.wait(90).ok().out.splitlines()[1] == "read all"


def test_a_forked_child_reads_what_its_parent_opened(three):
    three.py("""
        f = h5py.File("run.h5", "r")
        assert f["d"][0] == 1
        pid = os.fork()
        assert f["d"][199_999] == 1 and f.attrs["n"] == 1
        with h5py.File("run.h5", "r") as again:
            assert again["d"][:].sum() == 200_000
        f.close()
        if pid == 0: os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    """, config=reader(three, version="2", cache="1MiB"))


def test_a_program_that_writes_one_file_and_reads_another_does_both(three):
    """Sessions and readers share one gRPC, and end in any order."""
    three.py("""
        import subprocess
        with h5py.File("new.h5", "w") as out:
            out["x"] = np.arange(100_000)
            out.flush()
            subprocess.run([sys.executable, "-c", "import h5py; assert h5py.File('run.h5').attrs['n'] == 1"],
                           env={**os.environ, "HDF5_DRIVER_CONFIG": THE_CONFIG}, check=True)
    """.replace("THE_CONFIG", repr(reader(three, version="2"))))
    three.assert_mirrored("new.h5")
