"""Where the build, HDF5 and the Python environments are: from ctest's environment, else as ./dev lays them out."""

import os
from pathlib import Path

SOURCE = Path(os.environ.get("H5MIRROR_SOURCE_DIR", Path(__file__).resolve().parents[3]))
BUILD = Path(os.environ.get("H5MIRROR_BUILD_DIR", SOURCE / "build" / "release"))
CACHE = Path(os.environ.get("H5MIRROR_CACHE")
             or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "h5mirror")
HDF5 = Path(os.environ.get("H5MIRROR_HDF5_ROOT") or CACHE / "hdf5-1.14.5")
HDF5_SOURCE = Path(os.environ.get("H5MIRROR_HDF5_SOURCE") or CACHE / "hdf5-1.14.5-src")

BIN = BUILD / "bin"
LIB = BUILD / "lib"
TEST_BIN = BUILD / "test_bin"
PROGRAMS = Path(__file__).resolve().parents[1] / "programs"

# Of an older release, with bin/ and lib/; None: tests of both are skipped.
OLD_BUILD = Path(os.environ["H5MIRROR_TEST_OLD_BUILD"]) if os.environ.get("H5MIRROR_TEST_OLD_BUILD") else None

# True where the long tests run too.
TEST_ALL = os.environ.get("H5MIRROR_TEST_ALL", "") not in ("", "0")


def venv_python(h5py_version: str) -> Path:
    """The interpreter of the environment with that h5py."""
    return CACHE / f"venv-h5py-{h5py_version}" / "bin" / "python"


def hdf5_tool(name: str) -> Path:
    """h5dump and its friends, of the HDF5 that the plugin was built on."""
    return HDF5 / "bin" / name
