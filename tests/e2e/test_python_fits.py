"""What the Python package fits into: fsspec, kerchunk, xarray, silx, asyncio, each as it is on PyPI; and its annotations."""

import re
import shutil
import signal

import pytest

from harness import paths
from harness.package import PACKAGE, Package, secured
from harness.process import run, wait_until
from harness.site import Site

FITS = paths.CACHE / "venv-fits"
TOOLS = paths.CACHE / "venv-wheel" / "bin"

# Version n of run.h5 holds `d`, full of n, and version 2 a tag; n.nc is as netCDF4 writes it.
HISTORY = """
    os.makedirs("day/raw")
    for n in (1, 2, 3):
        with h5py.File("run.h5", "a", driver="h5mirror", config=CONFIG) as f:
            f.require_dataset("d", (200, 1000), "f8")[:] = n
    with h5py.File("day/raw/a b#1.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["x"] = 1
    import xarray as xr
    data = xr.Dataset({"t2m": (("time", "x"), np.arange(6000.0).reshape(6, 1000))}, {"time": np.arange(6.0)})
    data.to_netcdf("n.nc", engine="h5netcdf", encoding={"t2m": {"chunksizes": (2, 500), "zlib": True}})
    for n in (1, 2):
        with h5py.File("n.nc", "a", driver="h5mirror", config=CONFIG) as f:
            f["t2m"][0] = n
            f.attrs["pass"] = n
"""


class Fits(Package):
    """Programs in the environment with the packages of others, with ours installed as pip does: its entry points count."""

    def __init__(self, site, installed):
        super().__init__(site)
        self.installed = installed
        self.first = f"import h5mirror, fsspec\nH = 'h5mirror://{site.address}'"
        site.python = FITS / "bin" / "python"

    def env(self, **more):
        return super().env(**{"PYTHONPATH": str(self.installed), "TZ": "UTC", **more})


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    assert (FITS / "requirements.txt").exists(), f"{FITS} is missing; ./dev setup makes it"
    assert TOOLS.exists(), f"{TOOLS} is missing; ./dev setup makes it"
    directory = tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, directory / "package", ignore=shutil.ignore_patterns("_native", "__pycache__"))
    run([TOOLS / "python", "-m", "hatchling", "build", "-t", "wheel", "-d", directory], directory,
        cwd=directory / "package").ok()
    built, = directory.glob("*.whl")
    run([FITS / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", directory / "site",
         built], directory).ok()
    return directory / "site"


@pytest.fixture(scope="module")
def history(tmp_path_factory, installed):
    """A server with files that no test changes."""
    site = Site(tmp_path_factory.mktemp("history"))
    try:
        site.server.start()
        fits = Fits(site, installed)
        fits.py(HISTORY)
        site.cli("tag", "run.h5@2", "published").ok()
        yield fits
    finally:
        site.close()


@pytest.fixture
def fits(bare_site, installed):
    """A server of the test's own."""
    return Fits(bare_site, installed)


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


# kerchunk, xarray, silx.


def test_references_stay_true(fits):
    fits.py(HISTORY)
    assert fits.py("""
    import xarray as xr
    from kerchunk.hdf import SingleHdf5ToZarr
    fs = fsspec.filesystem("h5mirror")
    url = fs.pinned(H + "/n.nc@latest-1")
    with fs.open(url) as file:
        references = SingleHdf5ToZarr(file, url, inline_threshold=0).translate()
    with h5py.File("n.nc", "a", driver="h5mirror", config=CONFIG) as f:
        f["t2m"][:] = -1
        f["more"] = np.arange(10_000)
    data = xr.open_dataset("reference://", engine="zarr", consolidated=False,
                           storage_options={"fo": references, "remote_protocol": "h5mirror"})
    print(url.removeprefix(H), data.t2m[0, 5].item(), data.t2m[5, 999].item(), data.attrs["pass"])
    """) == "/n.nc@1 1.0 5999.0 1\n"


def test_xarray_opens_a_url_eagerly_and_lazily(history):
    assert history.py("""
    import pickle, xarray as xr
    with xr.open_dataset(H + "/n.nc@1") as data:
        assert data.t2m._in_memory is False
        assert data.encoding["source"] == H + "/n.nc@1" and data.attrs["pass"] == 1
        assert data.t2m.sel(time=5).mean().item() == 5499.5 and data.t2m[0, 0].item() == 1
        copy = pickle.loads(pickle.dumps(data))
    assert copy.t2m[1, 1].item() == 1001
    eager = xr.load_dataset(H + "/n.nc@latest", engine="h5mirror")
    assert eager.t2m._in_memory and eager.t2m[0, 0].item() == 2
    assert xr.open_dataset(H + "/n.nc", engine="h5netcdf").t2m[0, 0].item() == 2  # By fsspec, as any URL.
    assert xr.open_dataset("h5mirror:///n.nc@1", storage_options={"server": H[11:]}).t2m[0, 0].item() == 1
    with xr.open_datatree(H + "/n.nc@2", engine="h5mirror") as tree:
        assert tree["t2m"].shape == (6, 1000)
    print(sorted(xr.open_groups(H + "/n.nc@2", engine="h5mirror")), "h5mirror" in xr.backends.list_engines())
    """) == "['/'] True\n"
    said = history.raised("xr.open_dataset(H + '/n.nc@9')", "    import xarray as xr")
    assert said.startswith(f"FileNotFoundError [Errno 2] {history.site.address}: n.nc has no version 9; the newest is 2"), said


def test_a_lazy_dataset_stays_as_it_was_opened(fits):
    assert fits.py("""
    import xarray as xr
    with h5py.File("run.nc", "w", driver="h5mirror", config=CONFIG + ";ack_tick=applied") as f:
        f.create_dataset("a", data=np.zeros(200_000), chunks=(1000,))
        f.flush()
        data = xr.open_dataset(H + "/run.nc", engine="h5mirror", phony_dims="sort", cache=False)
        f["a"][:] = 1
        f.flush()
        print(data.a.values.max(), xr.open_dataset(H + "/run.nc", engine="h5mirror", phony_dims="sort").a.values.max())
    """) == "0.0 1.0\n"


def test_two_moments_of_a_url_are_two_arrays_for_dask(fits):
    assert fits.py("""
    import pickle
    import xarray as xr
    def write(value):
        with h5py.File("w.nc", "a", driver="h5mirror", config=CONFIG) as f:
            f.require_dataset("a", (1000,), "f8", chunks=(100,))[:] = value
    more = {"engine": "h5mirror", "chunks": {}, "phony_dims": "sort"}
    def opened():
        return xr.open_dataset(H + "/w.nc", **more), xr.open_datatree(H + "/w.nc", **more)
    write(1)
    a, tree = opened()
    again, _ = opened()
    write(2)
    b, grown = opened()
    print((b.a - a.a).max().compute().item(), xr.concat([a.a, b.a], "n").max("phony_dim_0").compute().values.tolist())
    print((grown["a"] - tree["a"]).max().compute().item(), again.a.data.name == a.a.data.name)
    print((pickle.loads(pickle.dumps(b)).a - a.a).max().compute().item())
    file = fsspec.open(H + "/w.nc@1").open()
    print(xr.open_dataset(file, engine="h5mirror", phony_dims="sort").a.max().item())
    """) == "1.0 [1.0, 2.0]\n1.0 True\n1.0\n1.0\n"


def test_silx_s_file_takes_urls_and_paths(history):
    assert history.py("""
    import silx.io.h5py_utils
    from h5mirror.silx import File
    assert issubclass(File, silx.io.h5py_utils.File)
    with File(H + "/run.h5@tag:published") as f:
        print(f["d"][0, 0], f.mode, h5mirror.status(f).version)
    with File(H + "/run.h5", "r", version=1, timeout="20s", locking=None, swmr=None) as f:
        print(f["d"][0, 0])
    with File("run.h5") as f, File("new.h5", mode="w") as g:
        g["d"] = f["d"][0, 0]
        print(g["d"][()], g.mode)
    """) == "2.0 r 2\n1.0\n3.0 r+\n"
    for expression, words in (("File(H + '/run.h5', 'a')", "ValueError mode 'a'"),
                              ("File(H + '/other.h5')", "FileNotFoundError [Errno 2]"),
                              ("File('other.h5')", "FileNotFoundError [Errno 2]")):
        assert history.raised(expression, "    from h5mirror.silx import File").startswith(words), expression


# Events.


def test_events_tell_cuts_and_the_version_that_the_last_one_becomes(fits):
    program = fits.start("""
    for event in h5mirror.events(H + "/run.h5", wait=True, idle_timeout=60):
        print(event.cut, event.version, event.url.removeprefix(H), flush=True)
        if event.version:
            break
    """)
    writer = fits.start("""
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        for n in range(2):
            f[f"d{n}"] = n
            f.flush()
            print("flushed", flush=True)
            sys.stdin.readline()
    """, talks=True)
    first = program.line()
    assert writer.line() == "flushed" and writer.ask("go on") == "flushed"
    second = program.line()
    writer.popen.stdin.close()
    lines = [line.split() for line in program.wait(60).ok().out.splitlines()]
    assert [" ".join(each) for each in lines[:2]] == [first, second]
    assert [each[1:] for each in lines[:2]] == [["None", "/run.h5"]] * 2 and lines[-1][1:] == ["1", "/run.h5@1"], lines
    cuts = [int(each[0]) for each in lines]
    assert cuts == sorted(cuts) and cuts[:2] == sorted(set(cuts[:2])), lines


def test_events_wait_for_a_server_that_starts_again_and_not_for_one_that_was_never_there(fits):
    program = fits.start("""
    for event in h5mirror.events(H + "/run.h5", wait=True, idle_timeout=100):
        print(event.version, flush=True)
        if event.version == 2:
            break
    """)
    write = """
    with h5py.File("run.h5", "a", driver="h5mirror", config=CONFIG) as f:
        f[f"d{len(f)}"] = 1
    """
    fits.py(write)
    wait_until(lambda: "1\n" in program.out(), "the first version is not told")
    fits.site.server.stop()
    fits.site.server.start()
    fits.py(write)
    told = [each for each in program.wait(100).ok().out.split() if each != "None"]  # A cut may be told before it is a version.
    assert told == ["1", "2"]
    for expression, words in (("h5mirror.events('h5mirror://127.0.0.1:1/a.h5', timeout=1)", "ConnectionRefusedError"),
                              ("h5mirror.events(H + '/other.h5')", "FileNotFoundError [Errno 2]"),
                              ("h5mirror.events(H + '/run.h5', after=1 << 60, idle_timeout=0.3)",
                               "TimeoutError [Errno 110] nothing new came in 0.3 s"),
                              ("h5mirror.events(H + '/run.h5@1')", "ValueError"),
                              ("h5mirror.events(H + '/run.h5', after=-1)", "ValueError after=-1: must be at least 0")):
        assert fits.raised(f"next({expression})").startswith(words), expression


def test_asyncio_goes_on_meanwhile(history):
    assert history.py("""
    import asyncio
    from h5mirror import aio

    async def main():
        async for event in aio.events(H + "/run.h5"):
            print(event.version, [each.number for each in await aio.versions(H + "/run.h5")])
            break
        ticks = 0

        async def wait():
            async for event in aio.events(H + "/run.h5", after=event_cut):
                print("unexpected", event)

        event_cut = event.cut
        waiting = asyncio.create_task(wait())
        while ticks < 20:
            await asyncio.sleep(0.01)
            ticks += 1
        waiting.cancel()
        try:
            await waiting
        except asyncio.CancelledError:
            print("cancelled")
        many = [asyncio.create_task(wait()) for _ in range(40)]  # More than the loop's executor has threads.
        await asyncio.sleep(0.1)
        print(await asyncio.wait_for(asyncio.to_thread(lambda: "not kept waiting"), 60))
        print([await anext(aio.events(H + "/run.h5", idle_timeout=0)) == event for _ in range(2)])
        for each in many:
            each.cancel()

    asyncio.run(main())
    """) == "3 [1, 2, 3]\ncancelled\nnot kept waiting\n[True, True]\n"


# URLs and types.


def test_a_url_takes_every_form_of_a_version_and_survives_being_written(history):
    assert history.py(r"""
    Url = h5mirror.Url
    for at in ("12", "latest", "latest-3", "tag:a b/c", "2026-11-03", "2026-11-03T14:00:05+01:00", "yesterday", "Monday", "sun",
               "last-monday-9:05:30", "monday_14:00", "2h-ago", "3 days ago", "a-week-ago", "now"):
        assert Url.parse("h5mirror://h/a.h5@" + at).version == at, at
    for name in ("a@home.h5", "a.h5@mondays", "a@2h", "a@ago", "me@nowhere"):
        assert Url.parse("h5mirror://h/" + name) == Url("h", name), name
    for name in ("a b", "a@12", "a@@now", "50%", "a?b#c", "über/[x]*.h5", "a::b", "a&b=c+d;e"):
        for server in ("h:1", None, "unix:/run/a b@1", "[::1]:7"):
            for version in (None, "7", "tag:x@y z"):
                assert Url.parse(Url(server, name, version).url()) == Url(server, name, version), (server, name, version)
    print("same")
    """) == "same\n"


def test_it_is_typed_also_beside_the_packages_that_it_fits_into(tmp_path):
    run([TOOLS / "mypy", "--strict", "--ignore-missing-imports", "--python-executable", FITS / "bin" / "python", "--cache-dir",
         tmp_path, PACKAGE / "h5mirror"], tmp_path, timeout=200).ok()
