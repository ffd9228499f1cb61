"""A file on a server as it is written: one h5py.File after the other."""

import contextlib
import os
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import h5py

from ._control import status
from ._open import open  # noqa: A004
from ._places import program
from ._url import Url
from ._watch import Watch

# Seconds between two tries for something missing: an awaited file, or a server that was there before.
_RETRY = 1.0
# Errors of an open that do not tell the state of the server count only after this many tries.
_TRIES = 3


def follow(url: str, *, every: float | None = None, nth: int = 1, until_done: bool = False, after: int | None = None,
           wait: bool = False, idle_timeout: float | None = None, keep_open: bool = False, server: str | None = None,
           ca: str | os.PathLike[str] | None = None, token: str | None = None, config: str = "",
           **keys: Any) -> Generator[h5py.File, None, None]:
    """The newest cut of a file as an h5py.File, and again at each new cut (H5Fflush, close) that its writer makes.

        for f in h5mirror.follow("h5mirror://node7:7447/run7.h5"):
            print(h5mirror.status(f).cut, f["temperature"][-1])

    Each is a file of its own, opened at the newest cut of that moment, and stays at it: all of it is of one moment. A
    body that takes longer than the writer from cut to cut sees some of them, the newest each time. Between two files
    nothing is asked of the server again and again, and neither h5py's lock nor the interpreter's is held.

    A file is closed when the loop goes on, unless `keep_open`; the one at which the loop is left stays open. It can be read
    until a minute after the next cut (the server's snapshot_keep), then it is "snapshot expired, reopen".

    `every`       at most one file in so many seconds.
    `nth`         only every n-th cut, counted by the server's numbers from the file before on; the last one always, with
                  `until_done`.
    `until_done`  ends when nobody has the file open for writing any more, after its last cut.
    `after`       begins with the first cut newer than that number; without it with the newest one, which may be old.
    `wait`        a file that does not exist yet, or not any more, is waited for.
    `idle_timeout`  a TimeoutError where there is nothing to give for so many seconds.
    `server`, `ca`, `token`, `config` and `keys` are those of open(); server, ca and token are arguments here and not in
    `config`, as not only the driver is to know them.

    A server that goes away, and comes back, is waited for, before the first file for a minute: the loop goes on with the
    next cut. What the body reads meanwhile may fail (OSError; KeyError or RuntimeError where h5py has them for a failed read).

    The program `h5mirror watch` runs beside until the generator is closed, which leaving the loop does.

    Errors: ValueError         a bad url, one with a version, a number that cannot be.
            FileNotFoundError  the server has no such file; or there is no program h5mirror.
            ConnectionError    no connection to the server, at the beginning.
            PermissionError    no token, or a wrong one.
            OSError            as the text says.
    """
    target = Url.parse(url).without_version().with_server(server)
    for name, value, least in (("nth", nth, 1), ("every", every, 0), ("after", after, 0), ("idle_timeout", idle_timeout, 0)):
        if value is not None and not value >= least:
            raise ValueError(f"{name}={value!r}: must be at least {least}")
    if "version" in keys:
        raise ValueError(f"version={keys['version']!r}: what is followed is the newest cut; open() opens a version")
    program()  # Raises an error with the way out if it is missing.
    options = ["--changes=none", *(["--until-done"] if until_done else [])]
    if every:
        options += ["--every", str(min(every, 86400.0))]

    def start(after: int) -> Watch:
        return Watch(target, [*options, *(["--after", str(after)] if after else [])], ca, token)

    def open_newest() -> h5py.File:
        return open(url, server=server, config=config, ca=ca, token=token, **keys)

    return _Follower(start, open_newest, float(every or 0), nth, after or 0, wait, idle_timeout, keep_open).files()


@dataclass
class _Follower:
    start: Callable[[int], Watch]
    """Watches from after a cut on; 0: begins with the newest one."""
    open_newest: Callable[[], h5py.File]
    every: float
    nth: int
    after: int
    """The cut that was given last; 0: none."""
    wait: bool
    idle_timeout: float | None
    keep_open: bool
    _given_at: float = float("-inf")
    _asked_at: float = 0.0

    def files(self) -> Generator[h5py.File, None, None]:
        self._asked_at = time.monotonic()
        while True:
            try:
                with contextlib.closing(self.start(self.after)) as watch:
                    yield from self._files_of(watch)
                return
            except FileNotFoundError:
                if not self.wait:
                    raise
            self.after = 0  # The file of that name that comes has numbers of its own.
            self._pause()

    def _files_of(self, watch: Watch) -> Generator[h5py.File, None, None]:
        told = self.after
        while True:
            cut = watch.next_cut(self._until())
            if cut is None:
                if told > self.after:  # The last one, which was not an n-th.
                    yield from self._newest()
                return
            told = cut
            # Also cuts that were told of before the newest one was opened.
            if self.after == 0 or cut - self.after >= self.nth:
                yield from self._newest()

    def _newest(self) -> Generator[h5py.File, None, None]:
        """One file; none where a server that was killed came back with an older cut than it had, or with none."""
        time.sleep(max(0.0, self._given_at + self.every - time.monotonic()))
        file = self._open()
        if file is None:
            return
        cut = status(file).cut or 0
        if cut > self.after:
            self.after, self._given_at = cut, time.monotonic()
            yield file
            self._asked_at = time.monotonic()
            if self.keep_open:
                return
        file.close()

    def _open(self) -> h5py.File | None:
        failed = 0
        while True:
            try:
                return self.open_newest()
            except PermissionError:
                raise
            except OSError as error:
                if self._given_at == float("-inf"):
                    raise
                if isinstance(error, FileNotFoundError):
                    return None  # The watch knows whether it is gone for good.
                failed += not isinstance(error, (ConnectionError, TimeoutError))
                if failed == _TRIES:
                    raise
            self._pause()

    def _until(self) -> float | None:
        return None if self.idle_timeout is None else self._asked_at + self.idle_timeout

    def _pause(self) -> None:
        until = self._until()
        if until is not None and time.monotonic() + _RETRY > until:
            raise TimeoutError(f"nothing came to follow in {self.idle_timeout} s")
        time.sleep(_RETRY)
