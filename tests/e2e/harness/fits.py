"""Programs that use the Python package together with fsspec, kerchunk, xarray, dask and silx."""

import shutil

import pytest

from harness import paths
from harness.package import PACKAGE, Package
from harness.process import run
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
