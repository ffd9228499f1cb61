"""The Python package as pip installs it, in an environment with the packages that it fits into."""

import shutil

import pytest

from . import paths
from .package import PACKAGE, Package
from .process import run

FITS = paths.CACHE / "venv-fits"
TOOLS = paths.CACHE / "venv-wheel" / "bin"


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


@pytest.fixture
def fits(bare_site, installed):
    """A server of the test's own."""
    return Fits(bare_site, installed)
