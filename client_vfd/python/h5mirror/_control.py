"""The driver's functions for an open file: commits, and its state.

The driver fills in a table of functions for a program that passes the table's address in a property list: see
client_vfd/include/H5FDh5mirror.h, whose structs these are.
"""

import ctypes
import time
import warnings
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import h5py
from h5py._objects import phil

from . import _hdf5

# In the order of H5FDh5mirror_state_t.
STATES = ("off", "unchanged", "connecting", "connected", "degraded", "diverged", "in sync", "reading", "resyncing")

_API_VERSION = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class NotMirroredWarning(UserWarning):
    """A commit is in the local file alone: the server is away, or the file is not mirrored."""


@dataclass(frozen=True)
class Status:
    """How the mirror of an open file stands, as far as this process knows: the server is not asked.

    With several mirrors it is that of the one which is worst off.
    """

    state: str
    """In the words of `h5mirror status`: "connected", "in sync", "degraded", "diverged", "off", ..."""
    cut: int | None
    """The newest cut that the server confirmed."""
    version: int | None
    """The newest version that the server confirmed; of a file from h5mirror.open() the one that is read."""
    pending_bytes: int
    """Written locally and not yet sent."""
    behind_since: datetime | None
    """None: it is not behind."""
    message: str
    """For people."""


class _Status(ctypes.Structure):
    """H5FDh5mirror_status_t."""

    _fields_ = [("state", ctypes.c_int), ("cut", ctypes.c_int64), ("version", ctypes.c_int64),
                ("pending_bytes", ctypes.c_uint64), ("behind_since_ns", ctypes.c_int64),
                ("message", ctypes.c_char * 256)]


class Api(ctypes.Structure):
    """H5FDh5mirror_api_t."""

    _fields_ = [("version", ctypes.c_uint), ("file", ctypes.c_void_p),
                ("arm", ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)),
                ("finish", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)),
                ("status", ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Status))),
                # From version 2 on; not used here.
                ("mirror_count", ctypes.c_void_p), ("mirror_status", ctypes.c_void_p),
                # 3
                ("wait", ctypes.c_void_p),
                # 4
                ("arm_tick", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p))]


def commit(file: h5py.File, comment: str = "") -> int | None:
    """Flushes a file and makes a version of it, with a comment of at most 4 KiB.

    Returns the number of the newest version that the server confirmed: the one made, unless nothing had changed since
    the one before, or `ack_commit=none` says not to wait; None where nothing has changed since the open. While the server
    is away, or where the file is not mirrored, the data is in the local file alone: that is a NotMirroredWarning, and None.

    Errors: ValueError  the file is closed, open for reading, or was opened by another driver.
            OSError     the flush failed.
    """
    with phil:
        file = _open_file(file)
        api = _api_of(file)
        if file.mode == "r":
            raise ValueError(f"{file.filename} is open for reading: it has nothing to commit")
        api.arm(api.file, 1, comment.encode())
        try:
            h5py.h5f.flush(file.id, h5py.h5f.SCOPE_GLOBAL)
        finally:
            result = api.finish(api.file)
        now = _status_of(api)
        name = file.filename
    if result == 0:
        return now.version
    warnings.warn(f"{name}: the commit {comment!r} is in the local file alone: " +
                  (now.message or f"its mirror is {now.state}"), NotMirroredWarning, stacklevel=2)
    return None


def status(file: h5py.File) -> Status:
    """How the file's mirror stands. ValueError: the file is closed, or was opened by another driver."""
    with phil:
        now = _status_of(_api_of(_open_file(file)))
    # A program that asks again and again would hold the lock nearly always: others get it now.
    time.sleep(0)
    return now


def _open_file(file: h5py.File) -> h5py.File:
    # A closed object does not know its file any more. Groups and datasets do for theirs.
    if not file:
        raise ValueError("the file is closed")
    return file.file


def fill_api(file: h5py.h5f.FileID, version: int) -> Any:
    """The driver's functions for an open file; None: another driver opened it, or one that does not know `version`.

    The caller holds h5py's lock, and uses them only while the file is open.
    """
    api = Api(version=version)
    fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    _hdf5.pass_pointer(fapl.id, "h5mirror_api", ctypes.addressof(api))
    _hdf5.ask_driver(file.id, fapl.id)
    return api if api.file else None


def _api_of(file: h5py.File) -> Any:
    api = fill_api(file.id, _API_VERSION)
    if api is None:
        raise ValueError(f"{file.filename} was not opened by h5mirror: open it with driver='h5mirror', or the program "
                         "with HDF5_DRIVER=h5mirror")
    return api


def _status_of(api: Any) -> Status:
    found = _Status()
    api.status(api.file, ctypes.byref(found))
    since = _EPOCH + timedelta(microseconds=found.behind_since_ns // 1000) if found.behind_since_ns else None
    return Status(STATES[found.state] if found.state < len(STATES) else "unknown", found.cut or None,
                  found.version or None, found.pending_bytes, since, found.message.decode(errors="replace"))
