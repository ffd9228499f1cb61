"""Where the plugin and the program lie: in the package, where it came as a wheel, or in the system."""

import os
import shutil
from pathlib import Path

# Laid out as an installation's prefix, which is how the program finds the plugin and its helpers.
_CARRIED = Path(__file__).resolve().parent / "_native"


def plugin_directory() -> Path | None:
    """The plugin's directory: H5MIRROR_PLUGIN_DIR, else the package's own; None: where HDF5 looks by itself."""
    told = os.environ.get("H5MIRROR_PLUGIN_DIR")
    if told:
        return Path(told)
    carried = _CARRIED / "lib" / "h5mirror" / "plugin"
    return carried if carried.is_dir() else None


def program() -> Path:
    """The program `h5mirror`: the package's own, else that of PATH."""
    carried = _CARRIED / "bin" / "h5mirror"
    if carried.exists():
        return carried
    found = shutil.which("h5mirror")
    if found is None:
        raise FileNotFoundError("the program h5mirror is neither in this package nor in PATH: install the package as a "
                                "wheel that ./dev wheel built, or add the program's directory to PATH")
    return Path(found)
