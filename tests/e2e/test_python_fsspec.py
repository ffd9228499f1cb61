"""The Python package as a file system of fsspec, and the C face that it reads by."""

import re
import signal

from harness import paths
from harness.fits import Fits, fits, history, installed  # noqa: F401
from harness.package import secured
from harness.site import Site

# The C face.


HEADER = paths.SOURCE / "client_vfd" / "api" / "session_api.h"


def members(struct: str) -> str:
    """The names of a struct's members in the header, in order."""
    header = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    body = re.search(rf"typedef struct {struct} \{{(.*?)\}} {struct};", header, re.DOTALL)[1]
    names = []
    for declared in body.split(";")[:-1]:
        function = re.search(r"\(\*(\w+)\)", declared)
        names.append(function[1] if function else re.search(r"(\w+)(\[\d+\])?$", declared)[1])
    return " ".join(names)


def test_the_structs_are_those_of_the_c_header(history):
    abi = re.search(r"H5M_SESSION_ABI (\d+)u", HEADER.read_text())[1]
    library = re.search(r'H5M_SESSION_LIBRARY "(.+)"', HEADER.read_text())[1]
    assert history.py("""
    from h5mirror import _session as s
    print(s.ABI, s._LIBRARY)
    for each in (s.ReaderOpen, s.ReaderInfo, s.Wait, s.Api):
        print(*(name for name, *_ in each._fields_))
    """).splitlines() == [f"{abi} {library}", *map(members, ("H5mReaderOpen", "H5mReaderInfo", "H5mWait", "H5mSessionApi"))]


def test_a_module_of_another_release_is_refused(history, tmp_path):
    (tmp_path / "h5mirror").mkdir()
    for each in ("libhdf5_vfd_h5mirror.so", "h5mirror/libh5mirror_session.so"):
        (tmp_path / each).symlink_to(paths.LIB / each)
    said = history.raised("s.api()", "    from h5mirror import _session as s; s.ABI = 12", H5MIRROR_PLUGIN_DIR=str(tmp_path))
    assert said.startswith("ImportError") and "belongs to another release than this package: install" in said
    (tmp_path / "h5mirror" / "libh5mirror_session.so").unlink()
    said = history.raised("fsspec.open(H + '/run.h5').open()", H5MIRROR_PLUGIN_DIR=str(tmp_path))
    assert said.startswith(f"FileNotFoundError h5mirror/libh5mirror_session.so is not in {tmp_path}: install"), said


# fsspec.


def test_fsspec_opens_a_url_at_the_version_that_it_says(history):
    assert history.py("""
    for at, value in (("@1", 1), ("@tag:published", 2), ("@latest", 3), ("@latest-1", 2), ("", 3), ("@today", 3)):
        with fsspec.open(H + "/run.h5" + at) as file, h5py.File(file) as f:
            assert f["d"][7, 7] == value, at
            assert (file.url, file.version) == (f"{H}/run.h5@{value}", value), file.url
    with fsspec.open(H + "/run.h5@1") as file, open("1.h5", "wb") as copy:
        file.seek(-10, 2)
        assert len(file.read()) == 10 and file.read() == b"" and file.tell() == file.size
        file.seek(0)
        copy.write(file.read())
    print("read")
    """) == "read\n"
    assert history.site.local("1.h5").read_bytes() == history.site.export("run.h5", 1).read_bytes()


def test_fsspec_tells_what_there_is(history):
    out = history.py("""
    fs = fsspec.filesystem("h5mirror")
    one, tagged, two, newest = (fs.info(H + "/run.h5" + at) for at in ("@1", "@tag:published", "@2", ""))
    assert one["ukey"] != two["ukey"] == tagged["ukey"] == fs.ukey(H + "/run.h5@2") and newest["version"] == 3
    assert (two["size"], two["type"], two["version"]) == (fs.size(H + "/run.h5@2"), "file", 2)
    print(fs.pinned(H + "/run.h5@tag:published").removeprefix(H))
    print(fs.ls(H, detail=False), fs.ls(H + "/day", detail=False), [each["type"] for each in fs.ls(H)])
    print(fs.find(H + "/day"), fs.glob(H + "/*.h5"), fs.glob(H + "/**/*.h5"), fs.ls(H + "/run.h5", detail=False))
    print([each[1:] for each in fs.walk(H)])
    odd, = fs.find(H + "/day")
    with fs.open(odd) as file, h5py.File(file) as f:
        print(f["x"][()], fs.isfile(odd), fs.isdir(H + "/day"), fs.isdir(H), fs.exists(H + "/day/none"), fs._parent(odd))
    print(fsspec.filesystem("h5mirror", server=H[11:]).ls("h5mirror:///day", detail=False))
    """).replace(f"h5mirror://{history.site.address}", "H")
    assert out.splitlines() == [
        "/run.h5@2", "['H/day', 'H/n.nc', 'H/run.h5'] ['H/day/raw'] ['directory', 'file', 'file']",
        "['H/day/raw/a%20b%231.h5'] ['H/run.h5'] ['H/day/raw/a%20b%231.h5', 'H/run.h5'] ['H/run.h5']",
        "[(['day'], ['n.nc', 'run.h5']), (['raw'], []), ([], ['a%20b%231.h5'])]",
        "1 True True True False H/day/raw", "['h5mirror:///day/raw']"], out


def test_fsspec_reads_ranges_of_several_versions(history):
    assert history.py("""
    fs = fsspec.filesystem("h5mirror")
    whole = {n: fs.cat_file(f"{H}/run.h5@{n}") for n in (1, 2)}
    a, b, c = (H + "/run.h5@1", H + "/run.h5@2", H + "/other.h5@1")
    got = fs.cat_ranges([a, b, c, a, b], [0, 100, 0, 5000, -9], [8, 300000, 9, None, None])
    assert got[0] == whole[1][:8] and got[1] == whole[2][100:300000] and got[3] == whole[1][5000:] and got[4] == whole[2][-9:]
    assert type(got[2]) is FileNotFoundError and "other.h5" in str(got[2])
    assert fs.cat([a, b]) == {a: whole[1], b: whole[2]} and fs.cat_file(a, 5, 5) == fs.cat_file(a, 1 << 40, None) == b""
    fs.get(a, "got.h5")
    assert open("got.h5", "rb").read() == whole[1]
    print("same")
    """) == "same\n"


def test_one_open_reads_one_moment_whatever_is_written_meanwhile(fits):
    assert fits.py("""
    import pickle, subprocess, sys
    fs = fsspec.filesystem("h5mirror")
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG + ";ack_tick=applied") as f:
        f["d"] = np.full(500_000, 1.0)
        f.flush()
        file = fs.open(H + "/run.h5")
        assert file.version is None and file.cut == 1
        f["d"][:] = 2
        f.flush()
        newer = fs.open(H + "/run.h5")
        assert newer.cut == 2 and fs.ukey(H + "/run.h5") == newer.info()["ukey"] != file.info()["ukey"]
        # Another process reads it on at the cut, and this one too.
        seen = subprocess.run([sys.executable, "-c", "import sys, pickle, h5py; f = h5py.File(pickle.load(sys.stdin.buffer));"
                               "print(set(f['d'][:].tolist()))"], input=pickle.dumps(file), capture_output=True, check=True)
        print(seen.stdout.decode().strip(), set(h5py.File(file)["d"][:].tolist()), set(h5py.File(newer)["d"][:].tolist()))
        try:
            fs.pinned(H + "/run.h5")
        except ValueError as error:
            print(str(error).removeprefix(H))
        assert h5mirror.commit(f) == 1
    with fs.open(H + "/run.h5@1") as file:
        copy = pickle.loads(pickle.dumps(file))
        print(copy.url.removeprefix(H), copy == file, copy.tell())
    """) == ("{1.0} {1.0} {2.0}\n/run.h5: no version, but a cut that its writer goes on from: name one, as in "
             f"h5mirror://{fits.site.address}/run.h5@latest\n/run.h5@1 True 0\n")


def test_threads_read_one_file_and_forks_come_between(history):
    out = history.py("""
    import threading
    fs = fsspec.filesystem("h5mirror", cache_bytes=1 << 20)
    url = H + "/run.h5@2"
    whole = fs.cat_file(url)
    file = fs.open(url)
    done = threading.Event()
    wrong = []

    def check(start, length):
        try:
            if file._fetch_range(start, start + length) != whole[start:start + length] or fs.cat_file(url, start, start + 9) != \\
                    whole[start:start + 9]:
                wrong.append(start)
        except Exception as error:
            if "forked while" not in str(error):  # A call was under way that did not end for half a second.
                wrong.append(repr(error))

    def read(seed):
        random = np.random.default_rng(seed)
        while not done.is_set():
            check(int(random.integers(0, len(whole))), int(random.integers(1, 300_000)))

    threads = [threading.Thread(target=read, args=(each,)) for each in range(3)]
    for each in threads:
        each.start()
    codes = []
    for n in range(10):
        child = os.fork()
        if child == 0:
            wrong.clear()
            for start in range(0, len(whole), 100_000):
                check(start, 100_000)
            os._exit(len(wrong))
        codes.append(os.waitpid(child, 0)[1])
    done.set()
    for each in threads:
        each.join()
    print(codes, wrong)
    """)
    assert out == f"{[0] * 10} []\n", out


def test_errors_name_the_file_and_the_way_out(history):
    for expression, words in (
            ("fs.open(H + '/other.h5')", "FileNotFoundError [Errno 2] {}: no file other.h5; see h5mirror ls"),
            ("fs.open(H + '/run.h5@9')", "FileNotFoundError [Errno 2] {}: run.h5 has no version 9; the newest is 3"),
            ("fs.info(H + '/run.h5@tag:draft')", "FileNotFoundError [Errno 2] {}: run.h5 has no tag 'draft'"),
            ("fs.ls(H + '/none')", "FileNotFoundError [Errno 2] {}: no file none"),
            ("fs.open(H)", "it names no file"),
            ("fs.open(H + '/run.h5@0')", "ValueError h5mirror://{}/run.h5@0: version '0': a version is a number from 1"),
            ("fs.open(H + '/run.h5', 'wb')", "OSError [Errno 30] a server's file is opened for reading only; to write, open"),
            ("fs.glob('h5mirror+unix:///run/s?name=*.h5')", "ls() and find() list its directories"),
            ("fs.exists('h5mirror://127.0.0.1:1/run.h5')", "ConnectionRefusedError [Errno 111] no connection to 127.0.0.1:1"),
            ("fs.ls('h5mirror://127.0.0.1:1/day')", "ConnectionError [Errno 113]"),
            ("fsspec.filesystem('h5mirror', timeout=0)", "ValueError timeout=0: must be more than 0")):
        said = history.raised(expression, "    fs = fsspec.filesystem('h5mirror', timeout=2)")
        assert words.format(history.site.address) in said, (expression, said)


def test_a_server_that_hangs_is_a_timeout(fits):
    fits.py("""
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["d"] = 1
    """)
    program = fits.start("""
    fs = fsspec.filesystem("h5mirror", timeout=1)
    fs.info(H + "/run.h5@1")
    print("ready", flush=True)
    input()
    for call in (lambda: fs.info(H + "/run.h5"), lambda: fs.open(H + "/run.h5@latest")):
        begin = time.monotonic()
        try:
            call()
        except TimeoutError as error:
            print(SERVER in str(error), time.monotonic() - begin < 10, flush=True)
    """, talks=True)
    assert program.line() == "ready"
    fits.site.server.process.signal(signal.SIGSTOP)
    try:
        assert program.ask("go") == "True True"
        assert program.line() == "True True"
    finally:
        fits.site.server.process.signal(signal.SIGCONT)
    program.wait(60).ok()


def test_a_file_that_takes_a_name_is_read_anew_and_not_mixed_with_the_old_one(fits):
    assert fits.py("""
    def write(value):
        with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
            f["d"] = np.full(1_000_000, value)
    import subprocess
    fs = fsspec.filesystem("h5mirror", cache_bytes=1 << 20)
    write(1)
    url = H + "/run.h5@1"
    file, old = fs.open(url), fs.cat_file(url)
    subprocess.run(["h5mirror", "--server", SERVER, "rm", "run.h5"], cwd="/", check=True, capture_output=True)
    import shutil
    shutil.rmtree("run.h5.h5m")
    os.remove("run.h5")
    write(2)
    try:
        new = fs.cat_file(url)
    except OSError as error:  # Of the reader that was kept, unless some seconds have passed.
        assert error.errno == 116 and "run.h5" in str(error)
        new = fs.cat_file(url)
    print(len(new) == len(old), new != old, fs.cat_file(url, 5000, 9000) == new[5000:9000])
    try:
        for start in range(0, len(old), 1 << 20):
            assert file._fetch_range(start, start + (1 << 20)) == old[start:start + (1 << 20)]
    except OSError as error:
        print(error.errno == 116, "run.h5" in str(error))
    """) == "True True True\nTrue True\n"


def test_a_file_that_has_gone_is_not_there(fits):
    """Although its bytes are kept."""
    assert fits.py("""
    import subprocess
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["d"] = 1
    fs = fsspec.filesystem("h5mirror")
    url = H + "/run.h5@1"
    print(len(fs.cat_file(url)) > 0, fs.exists(url))
    subprocess.run(["h5mirror", "--server", SERVER, "rm", "run.h5"], cwd="/", check=True, capture_output=True)
    print(fs.exists(url))
    time.sleep(5.1)  # Readers are kept for five seconds.
    try:
        fs.cat_file(url)
    except FileNotFoundError:
        print("gone")
    """) == "True True\nFalse\ngone\n"


def test_files_of_a_block_cache_are_those_of_one_version(history):
    assert history.py("""
    import tempfile
    fs = fsspec.filesystem("h5mirror")
    whole = fs.cat_file(H + "/run.h5@2")
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            with fsspec.open(f"blockcache::{fs.pinned(H + '/run.h5@tag:published')}", blockcache={"cache_storage": cache}) as file:
                print(file.read(5000) == whole[:5000])
    """) == "True\nTrue\n"


def test_options_are_checked_and_a_token_is_not_told(history):
    said = history.raised("fsspec.filesystem('h5mirror', tokne='x')")
    assert said.startswith("TypeError h5mirror knows no option 'tokne'"), said
    assert history.py("""
    fs = fsspec.filesystem("h5mirror", token="secret", ca="ca.pem", skip_instance_cache=True)
    print(any("secret" in each for each in (repr(fs), str(fs), fs.to_json(include_password=False))), "secret" in fs.to_json())
    print(fs.storage_options["ca"] == os.path.abspath("ca.pem"))
    """) == "False True\nTrue\n"


def test_a_socket_and_a_token_are_options(tmp_path, installed):
    site = Site(tmp_path, listen=f"unix:{tmp_path}/a socket")
    try:
        site.server.start()
        fits = Fits(site, installed)
        assert fits.py(f"""
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["d"] = 5
    url = "h5mirror+unix://{tmp_path}/a%20socket?name="
    fs = fsspec.filesystem("h5mirror+unix")
    print(fs.ls(url, detail=False) == [url + "run.h5"], h5py.File(fsspec.open(url + "run.h5@1").open())["d"][()])
    fs.get_file(url + "run.h5@1", "copy.h5")
    print(h5py.File("copy.h5")["d"][()], len(fs.cat(url + "run.h5")) == os.path.getsize("copy.h5"))
    with fsspec.open_files([url + "run.h5"])[0] as file:
        print(h5py.File(file)["d"][()])
    """) == "True 5\n5 True\n5\n"
    finally:
        site.close()


def test_a_wrong_token_is_a_permission_error(tmp_path, installed):
    with secured(tmp_path, "3.16.0") as (package, keys):
        fits = Fits(package.site, installed)
        assert fits.py(f"""
    with h5py.File("run.h5", "w", driver="h5mirror", server=SERVER, root=os.getcwd(), {keys}) as f:
        f["d"] = 5
    fs = fsspec.filesystem("h5mirror", {keys})
    print(h5py.File(fs.open(H + "/run.h5"))["d"][()], len(fs.ls(H)), next(h5mirror.events(H + "/run.h5", {keys})).version)
    """) == "5 1 1\n"
        ca, _, token = keys.partition(", token=")
        for expression in (f"fsspec.filesystem('h5mirror', {ca}, token='wrong').open(H + '/run.h5')",
                           f"fsspec.filesystem('h5mirror', {ca}, token='wrong').ls(H)"):
            said = fits.raised(expression)
            assert said.startswith("PermissionError [Errno 13]"), said
