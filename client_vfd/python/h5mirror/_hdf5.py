"""Calls into the libhdf5 that h5py itself runs on.

A process may hold several: each wheel brings its own, under a name of its own and hidden from the others. Ids mean
something only in the one that gave them, so each function is looked up from one of h5py's own modules on, as the
dynamic linker did for h5py. Callers hold h5py's lock (`phil`).
"""

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import h5py
from h5py._objects import phil

# hid_t since HDF5 1.10, and herr_t.
hid_t = ctypes.c_int64
herr_t = ctypes.c_int


class _ErrorRecord(ctypes.Structure):
    """H5E_error2_t (H5Epublic.h)."""

    _fields_ = [("cls_id", hid_t), ("maj_num", hid_t), ("min_num", hid_t), ("line", ctypes.c_uint),
                ("func_name", ctypes.c_char_p), ("file_name", ctypes.c_char_p), ("desc", ctypes.c_char_p)]


_Walk = ctypes.CFUNCTYPE(herr_t, ctypes.c_uint, ctypes.POINTER(_ErrorRecord), ctypes.c_void_p)


# The library that is loaded already, and with it all its own libraries.
_LOADED = os.RTLD_NOW | os.RTLD_NOLOAD


@functools.cache
def _library() -> ctypes.PyDLL:
    # It keeps the interpreter's lock: beside a thread that computes, it takes 5 ms to get it back.
    return ctypes.PyDLL(h5py.h5p.__file__, mode=_LOADED)


@functools.cache
def _library_for_waits() -> ctypes.CDLL:
    return ctypes.CDLL(h5py.h5p.__file__, mode=_LOADED)


def function(name: str, result: Any, *arguments: Any, waits: bool = False) -> Callable[..., Any]:
    """A function of h5py's libhdf5. ImportError: it has no function of that name. `waits`: other
    threads run during a call."""
    try:
        found = getattr(_library_for_waits() if waits else _library(), name)
    except AttributeError:
        raise ImportError(f"h5mirror needs HDF5 1.14 or later, and h5py {h5py.version.version} runs on HDF5 "
                          f"{h5py.version.hdf5_version} ({name} is not in it): pip install 'h5py>=3.12'") from None
    found.restype, found.argtypes = result, arguments
    return found  # type: ignore[no-any-return]


def set_driver(fapl_id: int, name: str, config: str) -> None:
    """H5Pset_driver_by_name."""
    call = function("H5Pset_driver_by_name", herr_t, hid_t, ctypes.c_char_p, ctypes.c_char_p)
    with phil:
        if call(fapl_id, name.encode(), config.encode("utf-8", "surrogateescape")) < 0:
            raise OSError(f"HDF5 cannot load its driver {name}: {_reason()}")


def prepend_plugin_directory(directory: str) -> None:
    """H5PLprepend: HDF5 looks there first for plugins."""
    call = function("H5PLprepend", herr_t, ctypes.c_char_p)
    with phil:
        if call(os.fsencode(directory)) < 0:
            raise OSError(f"HDF5 does not take {directory} as a directory of plugins: {_reason()}")


def pass_pointer(fapl_id: int, name: str, address: int) -> None:
    """H5Pinsert2 of a pointer, as a property of that list alone."""
    pointers = [ctypes.c_void_p] * 7
    call = function("H5Pinsert2", herr_t, hid_t, ctypes.c_char_p, ctypes.c_size_t, *pointers)
    value = ctypes.c_void_p(address)
    with phil:
        if call(fapl_id, name.encode(), ctypes.sizeof(value), ctypes.byref(value), *[None] * 6) < 0:
            raise OSError(f"HDF5 does not take the property {name}: {_reason()}")


def ask_driver(file_id: int, fapl_id: int) -> bool:
    """H5Fget_vfd_handle; the list passes values to the driver. False: the driver refused."""
    handle = ctypes.c_void_p()
    call = function("H5Fget_vfd_handle", herr_t, hid_t, hid_t, ctypes.c_void_p)
    with phil:
        return bool(call(file_id, fapl_id, ctypes.byref(handle)) >= 0)


def flush(file_id: int) -> str | None:
    """H5Fflush of the file alone. None: done; else why not.

    The interpreter's lock is free meanwhile, so that a program that computes goes on; h5py's is the caller's.
    """
    call = function("H5Fflush", herr_t, hid_t, ctypes.c_int, waits=True)
    clear = function("H5Eclear2", herr_t, hid_t)
    if call(file_id, 0) >= 0:  # H5F_SCOPE_LOCAL
        return None
    reason = _reason()
    clear(0)
    return reason


@contextlib.contextmanager
def quiet_errors() -> Iterator[None]:
    """Within it HDF5 prints no errors. h5py sees to that for the thread that imports it; a libhdf5 that is built for
    threads has a setting for each. The caller holds h5py's lock."""
    get = function("H5Eget_auto2", herr_t, hid_t, ctypes.c_void_p, ctypes.c_void_p)
    put = function("H5Eset_auto2", herr_t, hid_t, ctypes.c_void_p, ctypes.c_void_p)
    print_them, data = ctypes.c_void_p(), ctypes.c_void_p()
    known = get(0, ctypes.byref(print_them), ctypes.byref(data)) >= 0
    if known:
        put(0, None, None)
    try:
        yield
    finally:
        if known:
            put(0, print_them, data)


def _reason() -> str:
    """Why the last call failed, from the innermost entries of HDF5's error stack."""
    said: list[str] = []

    def note(_depth: int, record: Any, _data: Any) -> int:
        text = (record.contents.desc or b"").decode(errors="replace")
        if text and text not in said:
            said.append(text)
        return 0

    walk = function("H5Ewalk2", herr_t, hid_t, ctypes.c_int, _Walk, ctypes.c_void_p)
    walk(0, 0, _Walk(note), None)  # H5E_DEFAULT, H5E_WALK_UPWARD
    return "; ".join(said[:3]) or "it says no reason"
