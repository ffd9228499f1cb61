"""Where the build, HDF5 and the scratch space are."""

import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(os.environ["H5MIRROR_SOURCE_DIR"])
BUILD = Path(os.environ["H5MIRROR_BUILD_DIR"])
BIN = BUILD / "bin"
TEST_BIN = BUILD / "test_bin"
PLUGIN_DIR = BUILD / "lib"
CACHE = Path(os.environ.get("H5MIRROR_CACHE")
             or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "h5mirror")
HDF5_ROOT = Path(os.environ.get("H5MIRROR_HDF5_ROOT") or CACHE / "hdf5-1.14.5")
STOCK_MIRROR_SERVER = HDF5_ROOT / "bin" / "mirror_server"


def require_disk(directory: Path) -> None:
    """A page cache with a disk behind it is part of the measurement."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", directory], check=True, text=True,
                          capture_output=True).stdout.strip()
    if kind in ("tmpfs", "ramfs"):
        raise SystemExit(f"{directory} is on {kind}: give --dir on a real filesystem")


def mpiexec() -> str:
    """The command that starts the ranks of a program that was built against the parallel HDF5."""
    found = shutil.which("mpirun.openmpi")
    if found is None or not (BIN / "bench_parallel").exists():
        raise SystemExit("no Open MPI, or no parallel HDF5: ./dev bench parallel builds them")
    return found


def python() -> Path:
    """The interpreter with h5py that runs bench/programs."""
    return CACHE / "venv-h5py-3.12.1" / "bin" / "python"


PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
