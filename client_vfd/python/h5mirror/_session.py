"""The session module, libh5mirror_session.so, which the driver also reads with: its C face through ctypes.

The structs and their order are those of client_vfd/api/session_api.h. The library lies beside the plugin, and is one and the
same in the process for both: they share its connections and its cache. Calls let go of the interpreter's lock.
"""

import ctypes
import functools
import os
from pathlib import Path
from typing import Any

from ._places import plugin_directory

# H5M_SESSION_ABI and H5M_SESSION_LIBRARY.
ABI = 15
_LIBRARY = "h5mirror/libh5mirror_session.so"
_ERROR_MAX = 2048


class ReaderOpen(ctypes.Structure):
    """H5mReaderOpen."""

    _fields_ = [("name", ctypes.c_char_p), ("server", ctypes.c_char_p), ("ca", ctypes.c_char_p), ("token", ctypes.c_char_p),
                ("version", ctypes.c_char_p), ("linked", ctypes.c_int), ("at_ns", ctypes.c_int64),
                ("number", ctypes.c_int64), ("live", ctypes.c_int), ("cut", ctypes.c_int64),
                ("root_id", ctypes.c_uint8 * 16), ("agent", ctypes.c_char_p), ("cache_bytes", ctypes.c_uint64),
                ("timeout_ms", ctypes.c_uint32)]


class ReaderInfo(ctypes.Structure):
    """H5mReaderInfo."""

    _fields_ = [("version", ctypes.c_int64), ("cut", ctypes.c_int64), ("size_bytes", ctypes.c_uint64),
                ("targets_at_ns", ctypes.c_int64), ("targets_live", ctypes.c_int), ("root_id", ctypes.c_uint8 * 16),
                ("writer_session_id", ctypes.c_uint8 * 16), ("is_swmr", ctypes.c_int), ("text", ctypes.c_char * 512),
                ("identity", ctypes.c_char * 4608), ("error_number", ctypes.c_int)]


class Wait(ctypes.Structure):
    """H5mWait."""

    _fields_ = [("name", ctypes.c_char_p), ("server", ctypes.c_char_p), ("ca", ctypes.c_char_p), ("token", ctypes.c_char_p),
                ("after_cut", ctypes.c_int64), ("timeout_ms", ctypes.c_int64)]


_text = ctypes.c_char_p
_Open = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ReaderOpen), ctypes.POINTER(ReaderInfo), _text, ctypes.c_size_t)
_Read = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                         _text, ctypes.c_size_t)
_Close = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_WaitForCut = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Wait), ctypes.POINTER(ctypes.c_int64), _text, ctypes.c_size_t)

# Of writers, which have no use here.
_WRITERS = ("attach", "await_opened", "before_write", "after_write", "before_truncate", "after_truncate", "cut", "await_cut",
            "set_group", "detach_cuts", "part_ticket", "end_part", "send_part", "seal", "await_sealed", "begin_close", "close",
            "status", "child_wrote", "drain")


class Api(ctypes.Structure):
    """H5mSessionApi."""

    _fields_ = [("abi", ctypes.c_uint32), ("size", ctypes.c_uint32), *((name, ctypes.c_void_p) for name in _WRITERS),
                ("reader_open", _Open), ("reader_read", _Read), ("reader_close", _Close), ("wait_for_cut", _WaitForCut)]


class Message:
    """Where a call writes why it failed."""

    def __init__(self) -> None:
        self.buffer = ctypes.create_string_buffer(_ERROR_MAX)
        self.size = _ERROR_MAX

    def error(self, number: int, url: str) -> Exception:
        """The exception to raise for an errno value."""
        text = self.buffer.value.decode(errors="replace") or os.strerror(number)
        return ValueError(f"{url}: {text}") if number == _EINVAL else OSError(number, text, url)


_EINVAL = 22


@functools.cache
def api() -> Any:
    """The module's functions. Loads it at the first call. Thread-safe.

    Errors: FileNotFoundError  it is nowhere.
            ImportError        it cannot be loaded, or is of another release than this package.
    """
    path = _find()
    try:
        get = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL).h5mirror_session_api
    except (OSError, AttributeError) as error:
        raise ImportError(f"{path} cannot be loaded: {error}") from None
    get.restype, get.argtypes = ctypes.POINTER(Api), ()
    found = get()
    if not found or found.contents.abi != ABI or found.contents.size != ctypes.sizeof(Api):
        raise ImportError(f"{path} belongs to another release than this package: install the wheel and h5mirror of one "
                          "release, or name the plugin's directory by H5MIRROR_PLUGIN_DIR")
    return found.contents


def _find() -> Path:
    told = plugin_directory()
    places = [told] if told is not None else [Path(each) for each in
                                              os.environ.get("HDF5_PLUGIN_PATH", "").split(os.pathsep) if each]
    for place in places:
        if (place / _LIBRARY).exists():
            return place / _LIBRARY
    raise FileNotFoundError(f"{_LIBRARY} is not in {', '.join(map(str, places)) or 'this package'}: install a wheel that "
                            "./dev wheel built, or name the plugin's directory by H5MIRROR_PLUGIN_DIR")


def encode(what: str, text: str | None) -> bytes:
    """As C takes it; None is "". ValueError: it cannot be told to C."""
    if text is None:
        return b""
    if "\0" in text:
        raise ValueError(f"a {what} cannot hold a null")
    return text.encode("utf-8", "surrogateescape")
