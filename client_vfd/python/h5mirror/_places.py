"""Where the plugin and the program lie: in the package, where it came as a wheel, or in the system."""

import os
import shutil
from pathlib import Path

# Laid out as an installation's prefix, which is how the program finds the plugin and its helpers.
_CARRIED = Path(__file__).resolve().parent / "_native"


def plugin_directory() -> Path | None:
    """The plugin's directory; None: where HDF5 looks by itself.

    It is H5MIRROR_PLUGIN_DIR, else the package's own, else that of HDF5_PLUGIN_PATH (None), else that of the installation
    whose program is in PATH.
    """
    told = os.environ.get("H5MIRROR_PLUGIN_DIR")
    if told:
        return Path(told)
    carried = _CARRIED / "lib" / "h5mirror" / "plugin"
    if carried.is_dir():
        return carried
    found = None if os.environ.get("HDF5_PLUGIN_PATH") else _in_path()[0]
    if found is None:
        return None
    prefix = found.resolve().parent.parent
    for place in ("lib*/h5mirror/plugin", "lib*/*/h5mirror/plugin"):  # The second is Debian's in /usr.
        for directory in prefix.glob(place):
            if (directory / "libhdf5_vfd_h5mirror.so").exists():
                return directory
    return None


def let_hdf5_find_plugin() -> None:
    """Before h5py is imported: with HDF5_DRIVER=h5mirror its HDF5 wants the plugin at its first call, and h5py ends in
    "ValueError: Not a datatype" without."""
    directory = plugin_directory()
    if os.environ.get("HDF5_DRIVER") != "h5mirror" or directory is None:
        return
    paths = [path for path in os.environ.get("HDF5_PLUGIN_PATH", "").split(os.pathsep) if path]
    if str(directory) not in paths:
        os.environ["HDF5_PLUGIN_PATH"] = os.pathsep.join([str(directory), *paths])


def program() -> Path:
    """The program `h5mirror`: the package's own, else that of PATH. FileNotFoundError."""
    carried = _CARRIED / "bin" / "h5mirror"
    if carried.exists():
        return carried
    found, wrapper = _in_path()
    if found is not None:
        return found
    but = f" ({wrapper} only starts this package)" if wrapper else ""
    raise FileNotFoundError(f"the program h5mirror is neither in this package nor in PATH{but}: install the package as a "
                            "wheel that ./dev wheel built, or h5mirror itself (cmake --install), and add the "
                            "program's directory to PATH")


def _in_path() -> tuple[Path | None, Path | None]:
    """The first `h5mirror` of PATH that is the program, and the first that only starts this package, as pip makes it."""
    wrapper = None
    for directory in os.get_exec_path():
        found = shutil.which("h5mirror", path=directory or os.curdir)
        if found is None:
            continue
        path = Path(found).absolute()
        if not _is_wrapper(path):
            return path, wrapper
        wrapper = wrapper or path
    return None, wrapper


def _is_wrapper(path: Path) -> bool:
    try:
        with path.open("rb") as script:
            beginning = script.read(4096)
    except OSError:  # A program may be one that can be run and not read.
        return False
    return beginning.startswith(b"#!") and b"h5mirror.__main__" in beginning
