"""The driver's name at h5py, and its keys as Python values."""

import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import h5py

from . import _hdf5
from ._places import plugin_directory

NAME = "h5mirror"


def register() -> None:
    """Makes `driver="h5mirror"` known to h5py. Idempotent, and cheap: nothing is loaded before the first file.

    ImportError: h5py runs on an HDF5 before 1.14.
    """
    _hdf5.function("H5Pset_driver_by_name", None)  # Raises an error with the way out if it is missing.
    directory = plugin_directory()
    if directory is not None:
        if not (directory / "libhdf5_vfd_h5mirror.so").exists():
            raise ImportError(f"libhdf5_vfd_h5mirror.so is not in {directory}: see H5MIRROR_PLUGIN_DIR")
        _hdf5.prepend_plugin_directory(str(directory))
    h5py.register_driver(NAME, set_fapl)


def set_fapl(plist: h5py.h5p.PropFAID, config: str = "", **keys: Any) -> None:
    """Called by h5py for `h5py.File(..., driver="h5mirror", **keys)`.

    `keys` are those of docs/reference/driver-keys.md. h5py.File has a `name` and a `mode` of its own: these two go into
    `config`, a string in the driver's own words ("name=run7.h5;ack=applied"). Where a key is in both, that of `keys`
    counts.
    """
    text = config_string(config, keys)
    try:
        _hdf5.set_driver(plist.id, NAME, text)
    except OSError as error:
        if plugin_directory() is not None:
            raise
        raise OSError(f"{error}; this package came without libhdf5_vfd_h5mirror.so: name its directory by "
                      "H5MIRROR_PLUGIN_DIR, or install a wheel that ./dev wheel built") from None


def config_string(config: str, keys: Mapping[str, Any]) -> str:
    """`config` and `keys` in one string. A key that is None is left out.

    ValueError: a value cannot be part of a config string, or `config` is a file. Only the plugin
    knows the keys, so it checks them.
    """
    items = [f"{key}={_text(key, value)}" for key, value in keys.items() if value is not None]
    if items and config.lstrip().startswith("@"):
        raise ValueError(f"config={config!r} is a file, beside which no other key can be given: write "
                         f"{', '.join(keys)} into it")
    # The driver takes the last of several values of a key.
    return ";".join([*([config.strip().rstrip(";")] if config.strip() else []), *items])


def _text(key: str, value: Any) -> str:
    text = _words(value)
    if ";" in text or "\0" in text:
        raise ValueError(f"{key}={text!r}: a ';' or a null cannot stand in a driver's configuration; "
                         "~/.config/h5mirror/client.toml takes any text")
    return text


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{round(value / timedelta(milliseconds=1))}ms"
    if isinstance(value, (list, tuple)):
        return ",".join(_words(each) for each in value)
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    return str(value)
