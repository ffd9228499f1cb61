"""What the Python package fits into: kerchunk, xarray, dask, silx, asyncio, each as it is on PyPI; and its annotations."""

import pytest

from harness.fits import FITS, HISTORY, TOOLS, fits, history, installed  # noqa: F401
from harness.package import PACKAGE
from harness.process import run, wait_until

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


@pytest.mark.site(options={"http_listen": "127.0.0.1:0"})
def test_virtual_datasets_stay_true(fits):
    """VirtualiZarr reads by HTTP; what it has found is then read by HTTP, or by fsspec under the URL of the version."""
    fits.py(HISTORY)
    assert fits.py(f"""
    import xarray as xr
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import HTTPStore
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import HDFParser
    HTTP = "http://127.0.0.1:{fits.site.server.http_port}/f"
    fs = fsspec.filesystem("h5mirror")
    url = fs.pinned(H + "/n.nc@latest-1")
    store = HTTPStore.from_url(HTTP, client_options={{"allow_http": True}})
    registry = ObjectStoreRegistry({{HTTP: store}})
    found = HTTP + url.removeprefix(H)
    virtual = open_virtual_dataset(found, registry=registry, parser=HDFParser(), loadable_variables=[])
    manifest = HDFParser()(found, registry)
    with h5py.File("n.nc", "a", driver="h5mirror", config=CONFIG) as f:
        f["t2m"][:] = -1
        f["more"] = np.arange(10_000)
    live = xr.open_zarr(manifest, consolidated=False, zarr_format=3, chunks=None)
    print(live.t2m[0, 5].item(), live.t2m[5, 999].item(), live.attrs["pass"])
    references = virtual.vz.rename_paths(url).vz.to_kerchunk(format="dict")
    data = xr.open_dataset("reference://", engine="zarr", consolidated=False,
                           storage_options={{"fo": references, "remote_protocol": "h5mirror"}})
    print(url.removeprefix(H), data.t2m[0, 5].item(), data.t2m[5, 999].item(), data.attrs["pass"])
    """) == "1.0 5999.0 1\n/n.nc@1 1.0 5999.0 1\n"


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
