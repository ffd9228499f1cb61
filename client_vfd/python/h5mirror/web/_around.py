"""The surroundings of the processes beside the web process: variables, and files that they may
read."""

import os
import pwd
import subprocess
from pathlib import Path

from .._places import plugin_directory, program
from . import _fence
from ._settings import Settings

# Nothing that is a secret.
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH", "HDF5_PLUGIN_PATH", "H5MIRROR_PLUGIN_DIR",
              "H5MIRROR_LIBEXEC_DIR")
_OURS = {"HOME": "/nonexistent", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
         "PYTHONDONTWRITEBYTECODE": "1", "HDF5_USE_FILE_LOCKING": "FALSE"}
_PACKAGES = str(Path(__file__).resolve().parents[2])
_CONFIGURATION = ("/etc/h5mirror/client.toml", "/etc/h5mirror/ca.pem")
_LISTED_MAX_S = 10.0


def user() -> dict[str, str]:
    """Variables that name the user who runs the page, for a program that the fence keeps from the
    user database."""
    try:
        return {"LOGNAME": pwd.getpwuid(os.geteuid()).pw_name}
    except KeyError:
        return {}


def environment() -> dict[str, str]:
    given = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # Last: where the package is not installed it comes from where this one came from.
    paths = [*filter(None, given.get("PYTHONPATH", "").split(os.pathsep)), _PACKAGES]
    return {**given, **_OURS, "PYTHONPATH": os.pathsep.join(paths)}


def readable(settings: Settings) -> list[str]:
    """The files that a worker may read beside Python and the system: the driver, its libraries,
    certificates."""
    places = [_PACKAGES, *_CONFIGURATION]
    directory = plugin_directory()
    if directory is not None:
        places.append(str(directory))
    for variable in ("LD_LIBRARY_PATH", "HDF5_PLUGIN_PATH", "PYTHONPATH"):
        places += [each for each in os.environ.get(variable, "").split(os.pathsep) if each]
    if settings.ca is not None:
        places.append(settings.ca)
    return places


def check_hidden(settings: Settings, secrets: dict[str, str]) -> None:
    """That no process that reads files may read these, each by the flag that names it: a file may take the process over, and
    the secrets are not of its session alone. ValueError."""
    if not _fence.is_there():
        raise ValueError("--proxy-user-header: processes that read files could read all users' tokens, as this kernel has no "
                         "Landlock (Linux 5.13); leave it out, and each visitor signs in with a token")
    places = {os.path.realpath(each) for each in (*_fence.always_readable(), *readable(settings))} - {"/"}
    for flag, path in secrets.items():
        for place in places:
            if os.path.commonpath((place, os.path.realpath(path))) == place:
                raise ValueError(f"{flag} {path}: processes that read files may read all of {place}; put it elsewhere, such as "
                                 "below /etc/h5mirror")


def readable_for_tools() -> list[str]:
    """The files that the program `h5mirror` and its helpers need besides. FileNotFoundError: there
    is no such program."""
    main = program().resolve()
    told = os.environ.get("H5MIRROR_LIBEXEC_DIR")
    helpers = Path(told) if told else main.parent.parent / "libexec" / "h5mirror"
    programs = [main, *(each for each in helpers.glob("h5mirror-*") if os.access(each, os.X_OK) and each.suffix != ".so")]
    libraries = {library for each in programs for library in _libraries_of(each)}
    return [str(main), str(helpers), "/etc/machine-id", *sorted(libraries)]


def _libraries_of(executable: Path) -> list[str]:
    """Where a program of ours finds its libraries, as the dynamic linker says: HDF5 may lie anywhere."""
    try:
        listed = subprocess.run([executable], env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"}, stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, check=False, timeout=_LISTED_MAX_S)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return []
    found = (line.partition("=>")[2].split() for line in listed.stdout.splitlines())
    return [os.path.realpath(parts[0]) for parts in found if parts and parts[0].startswith("/")]
