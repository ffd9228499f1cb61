"""The bytes of one version or cut of a file on a server."""

import contextlib
import ctypes
import errno
import hashlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from . import _session
from ._url import Url

_TIMEOUT_MAX_S = 24 * 3600.0
# Of one call of the module: between two of them a signal is handled, a fork comes and other threads read.
_SLICE = 1 << 20
# Seconds after which a reader that is kept is opened anew: the file may have been removed, or made anew.
_KEPT_S = 5.0
# Reads up to this size are taken for HDF5's metadata, of which more comes ahead.
_METADATA_MAX = 16 << 10


@dataclass(frozen=True)
class Access:
    """The way to a server. Values that are None come from the client's own configuration."""

    ca: str | None = None
    token: str | None = None
    """The token, or "@FILE"."""
    timeout: float = 5.0
    """How many seconds a call may go on without an answer."""
    cache_bytes: int = 64 << 20
    """Of memory that all readers of the process share."""
    agent: str = "auto"
    """"auto", "off", or the socket of h5mirror-agent."""

    def __post_init__(self) -> None:
        if not 0 < self.timeout <= _TIMEOUT_MAX_S:
            raise ValueError(f"timeout={self.timeout!r}: must be more than 0 and at most {_TIMEOUT_MAX_S:.0f} seconds")
        if not 0 <= self.cache_bytes < 1 << 63:
            raise ValueError(f"cache_bytes={self.cache_bytes!r}: must be a number of bytes")

    def __repr__(self) -> str:
        return f"Access(ca={self.ca!r}, timeout={self.timeout!r})"  # No token in a traceback.


def access(ca: str | os.PathLike[str] | None, token: str | None, timeout: float = 5.0, **more: Any) -> Access:
    """With absolute paths, so that it means the same after a change of directory."""
    if token is not None and token.startswith("@"):
        token = "@" + os.path.abspath(token[1:])
    return Access(None if ca is None else os.path.abspath(ca), token, timeout, **more)


@dataclass(frozen=True)
class Pin:
    """Names bytes so that this process, or another one, can read the same again."""

    identity: str
    version: int
    """0: a cut that is no version."""
    cut: int


class _Handle:
    """The module's reader, used by one thread at a time."""

    def __init__(self, pointer: int) -> None:
        self.pointer: int | None = pointer
        self.lock = threading.Lock()
        self.lost = False  # A fork came in the middle of a call: its bytes are not to be trusted, nor is it to be closed.
        _handles.add(self)

    def close(self) -> None:
        with self.lock:
            pointer, self.pointer = self.pointer, None
            if pointer is not None and not self.lost:
                _session.api().reader_close(pointer)


_handles: weakref.WeakSet[_Handle] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for handle in list(_handles):
        if handle.lock.locked():
            handle.lost = True
        handle.lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork_in_child)


class Reader:
    """Reads the same bytes from its open on, also beside a writer: those of a closed HDF5 file.

    Thread-safe; reads of one reader wait for each other. Works in a forked child too. A call waits `timeout` at most for
    an answer.
    """

    def __init__(self, target: Url, how: Access, pin: Pin | None = None) -> None:
        """Opens the state that the url names, or exactly the pinned one.

        Errors: those of h5mirror.open(); OSError (ESTALE): what was pinned cannot be read any more.
        """
        self._target, self._how = target, how
        self._open(pin)

    def _open(self, pin: Pin | None) -> None:
        pointer, info = _open(self._target, self._how, pin)
        identity = info.identity.decode(errors="replace")
        handle = _Handle(pointer)
        if pin is not None and pin.identity != identity:
            handle.close()
            raise OSError(errno.ESTALE, f"{self._target.name} has been made anew since: open it again", self._target.text)
        self._handle = handle
        self._end = weakref.finalize(self, handle.close)  # Runs at the end of the interpreter too.
        self.pin = Pin(identity, info.version, info.cut)
        self.size = int(info.size_bytes)
        self.description = info.text.decode(errors="replace")

    @property
    def version(self) -> int | None:
        """None: it is a cut that is no version."""
        return self.pin.version or None

    @property
    def cut(self) -> int:
        return self.pin.cut

    @property
    def url(self) -> str:
        """That of this version; for a cut that is no version, that of the file."""
        return replace(self._target, version=None if self.version is None else str(self.version)).url()

    @property
    def ukey(self) -> str:
        """Equal for equal bytes of one file, and for no others."""
        return hashlib.sha256(self.pin.identity.encode()).hexdigest()

    def read(self, start: int, end: int, raw: bool | None = None) -> bytes:
        """The bytes [start, end) as far as the file has them."""
        start, end = max(0, start), min(end, self.size)
        if start >= end:
            return b""
        out = bytearray(end - start)
        self.read_into(start, memoryview(out), raw)
        return bytes(out)

    def read_into(self, offset: int, out: memoryview, raw: bool | None = None) -> int:
        """Fills `out`, which is of bytes, from an offset on; returns how many bytes the file has there.

        `raw` says that it is no metadata of HDF5; None: by its size.
        """
        length = max(0, min(len(out), self.size - offset))
        if length == 0:
            return 0
        if raw is None:
            raw = length > _METADATA_MAX
        for start in range(0, length, _SLICE):
            self._read_once(offset + start, out[start:min(length, start + _SLICE)], raw)
        return length

    def _read_once(self, offset: int, out: memoryview, raw: bool) -> None:
        place = ctypes.c_char.from_buffer(out)
        message = _session.Message()
        while True:
            handle = self._handle
            with handle.lock:
                if handle.pointer is None:
                    raise ValueError(f"{self._target.text} is closed")
                if not handle.lost:
                    number = _session.api().reader_read(handle.pointer, offset, ctypes.addressof(place), len(out), int(raw),
                                                        message.buffer, message.size)
                    break
            self._reopen()
        if number != 0:  # EPERM: another file has taken the name.
            raise message.error(errno.ESTALE if number == errno.EPERM else number, self.url)

    def _reopen(self) -> None:
        """In a forked child, whose parent was reading."""
        with _reopening:
            if self._handle.lost:
                self._end.detach()
                self._open(self.pin)

    def close(self) -> None:
        """Idempotent."""
        self._end()


_reopening = threading.Lock()


def _open(target: Url, how: Access, pin: Pin | None) -> tuple[int, Any]:
    request = _session.ReaderOpen(
        name=_session.encode("name", target.name), server=_session.encode("server", target.server),
        ca=_session.encode("path", how.ca), token=_session.encode("token", how.token), version=b"",
        agent=_session.encode("socket", how.agent), cache_bytes=how.cache_bytes,
        timeout_ms=max(1, round(how.timeout * 1000)))
    if pin is None:
        request.version = _session.encode("version", target.version)
    elif pin.version:
        request.version = str(pin.version).encode()
    else:
        request.linked, request.live, request.cut = 1, 1, pin.cut
        request.root_id[:] = os.urandom(16)  # Pins of its own: the server forgets those of a root when it is closed.
    info, message = _session.ReaderInfo(), _session.Message()
    pointer = _session.api().reader_open(ctypes.byref(request), ctypes.byref(info), message.buffer, message.size)
    if not pointer:
        raise message.error(info.error_number or errno.EIO, target.text)
    return pointer, info


class Readers:
    """Readers of versions: the last few that were used are kept open for a while. Thread-safe."""

    _KEPT = 16

    def __init__(self, how: Access) -> None:
        self._how = how
        self._lock = threading.Lock()
        self._kept: dict[Url, tuple[Reader, float]] = {}  # and when it was opened
        _caches.add(self)

    def use(self, target: Url, body: Callable[[Reader], Any]) -> Any:
        """`body` with a reader of the url's present state; of a url with a number, of its state some seconds ago.

        OSError (ESTALE): what was kept cannot be read any more; the next use opens the url anew.
        """
        if target.version is None or not target.version.isdecimal():
            with contextlib.closing(Reader(target, self._how)) as reader:
                return body(reader)
        reader = self._get(target)
        try:
            return body(reader)
        except OSError as error:
            if error.errno == errno.ESTALE:
                self._forget(target, reader)
            raise

    def _get(self, target: Url) -> Reader:
        now = time.monotonic()
        with self._lock:
            kept = self._kept.pop(target, None)
            if kept is not None and now < kept[1] + _KEPT_S:
                self._kept[target] = kept  # as the last one
                return kept[0]
        reader = Reader(target, self._how)
        with self._lock:
            self._kept[target] = reader, now
            if len(self._kept) > self._KEPT:
                del self._kept[next(iter(self._kept))]  # Closed when nobody reads it any more.
        return reader

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    def _forget(self, target: Url, reader: Reader) -> None:
        with self._lock:
            if target in self._kept and self._kept[target][0] is reader:
                del self._kept[target]


_caches: weakref.WeakSet[Readers] = weakref.WeakSet()


def _caches_after_fork_in_child() -> None:
    global _reopening
    _reopening = threading.Lock()
    for cache in list(_caches):
        cache.after_fork()


os.register_at_fork(after_in_child=_caches_after_fork_in_child)
