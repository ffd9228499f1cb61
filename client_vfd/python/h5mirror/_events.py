"""The cuts and versions of a file as they are made, told by the session module."""

import contextlib
import ctypes
import errno
import os
import time
from collections.abc import Generator
from dataclasses import dataclass, replace

from . import _session
from ._reader import Access, Reader, access
from ._url import Url

# Seconds of one call. A signal such as Ctrl-C is handled after it.
_SLICE = 1.0
# Seconds after which a cut that is no version is looked at again, at first and at most.
_LOOK_FIRST = 1.0
_LOOK_MAX = 30.0
# Some errors do not tell the state of the server, such as a call that a stopping server cancelled.
# They count after this many tries.
_TRIES = 3
# Seconds within which a writer is back after an outage of the server. Until then, a server that was
# killed may not know the writer's file.
_WRITER_RETURNS = 10.0


@dataclass(frozen=True)
class Event:
    """A file's newest cut, or the version that its newest cut has become."""

    cut: int
    version: int | None
    """None: it is no version, yet."""
    size: int
    """Of the file, in bytes."""
    url: str
    """That of the version; for a cut that is no version, that of the file."""


def events(url: str, *, after: int = 0, wait: bool = False, idle_timeout: float | None = None,
           server: str | None = None, ca: str | os.PathLike[str] | None = None, token: str | None = None,
           timeout: float = 5.0) -> Generator[Event, None, None]:
    """An Event for each new cut (H5Fflush, close) of a file, and for a version that is made of the newest cut later.

        for event in h5mirror.events("h5mirror://node7:7447/run7.h5"):
            print(event.cut, event.version)

    The first is the newest cut that exists, or that comes after the cut `after`. A body that takes longer than the writer
    from cut to cut leaves out the cuts between. The server answers when there is something new; h5py's lock is free
    meanwhile, and the interpreter's too. h5mirror.follow() gives each cut as an h5py.File.

    `wait`          a file that does not exist, yet or any more, is waited for.
    `idle_timeout`  a TimeoutError where nothing new comes for so many seconds.
    `timeout`       how many seconds a read may go on without an answer. A wait has six.

    A server that goes away after the first event, and comes back, is waited for.

    Errors: those of h5mirror.open(); a ValueError also for a url with a version.
    """
    watch = _Watch(url, after, wait, idle_timeout, server, access(ca, token, timeout))
    return _events(watch)


def _events(watch: "_Watch") -> Generator[Event, None, None]:
    while True:
        watch.begin()
        while (event := watch.step()) is None:
            pass
        yield event


class _Watch:
    """Steps of about a second each. Used by one thread at a time."""

    def __init__(self, url: str, after: int, wait: bool, idle_timeout: float | None, server: str | None,
                 how: Access) -> None:
        if after < 0:
            raise ValueError(f"after={after!r}: must be at least 0")
        if idle_timeout is not None and not idle_timeout >= 0:
            raise ValueError(f"idle_timeout={idle_timeout!r}: must be at least 0")
        self._target = Url.parse(url).without_version().with_server(server)
        self._wait, self._idle_timeout, self._how = wait, idle_timeout, how
        self._last = Event(after, 0, 0, url)  # Not a cut of which a version is still to come.
        self._has_told = False
        self._gone_since: float | None = None
        self._failed = 0
        self._until = float("inf")
        self._look_at, self._look_every = 0.0, _LOOK_FIRST

    def begin(self) -> None:
        """The time to be idle begins."""
        self._until = float("inf") if self._idle_timeout is None else time.monotonic() + self._idle_timeout

    def step(self) -> Event | None:
        """Waits a moment for the next event. Errors are those of events()."""
        event = self._try()
        if event is None and time.monotonic() >= self._until:  # First asked: its thread may have been kept from it.
            raise TimeoutError(errno.ETIMEDOUT, f"nothing new came in {self._idle_timeout} s", self._target.text)
        return event

    def _try(self) -> Event | None:
        try:
            event = self._ask(max(0.0, min(self._until - time.monotonic(), _SLICE)))
            self._gone_since, self._failed = None, 0
            return event
        except FileNotFoundError:
            if not self._wait and not self._may_return():
                raise
            self._last = Event(0, 0, 0, self._target.text)  # The file of that name that comes has numbers of its own.
        except OSError as error:
            self._failed += not isinstance(error, (ConnectionError, TimeoutError))
            if not self._has_told or isinstance(error, PermissionError) or self._failed == _TRIES:
                raise
        time.sleep(max(0.0, min(_SLICE, self._until - time.monotonic())))
        return None

    def _may_return(self) -> bool:
        now = time.monotonic()
        if self._gone_since is None:
            self._gone_since = now
        return self._has_told and now < self._gone_since + _WRITER_RETURNS

    def _ask(self, seconds: float) -> Event | None:
        is_new = wait_for_cut(self._target, self._last.cut, seconds, self._how)
        if not is_new and (self._last.version is not None or time.monotonic() < self._look_at):
            return None
        with contextlib.closing(Reader(self._target, self._how)) as reader:
            event = Event(reader.cut, reader.version, reader.size, reader.url)
        if event.cut < self._last.cut or (event.cut, event.version) == (self._last.cut, self._last.version):
            self._look_every = min(2 * self._look_every, _LOOK_MAX)
            self._look_at = time.monotonic() + self._look_every
            return None
        self._last, self._has_told = event, True
        self._look_every = _LOOK_FIRST
        self._look_at = time.monotonic() + self._look_every
        return event


def wait_for_cut(target: Url, after: int, seconds: float, how: Access) -> bool:
    """True: a cut newer than `after` came within `seconds`. Errors: those of events()."""
    request = _session.Wait(
        name=_session.encode("name", target.name), server=_session.encode("server", target.server),
        ca=_session.encode("path", how.ca), token=_session.encode("token", how.token), after_cut=after,
        timeout_ms=max(0, round(seconds * 1000)))
    cut, message = ctypes.c_int64(), _session.Message()
    number = _session.api().wait_for_cut(ctypes.byref(request), ctypes.byref(cut), message.buffer, message.size)
    if number == 0:
        return True
    if number == errno.ETIMEDOUT and not message.buffer.value:
        return False
    raise message.error(number, replace(target, version=None).text)
