"""Flushes for programs that do not flush, from a thread beside them."""

import atexit
import contextlib
import logging
import math
import os
import sys
import threading
import time
from datetime import timedelta
from types import TracebackType
from typing import Any

import h5py
from h5py._objects import phil

from . import _hdf5
from ._control import fill_api
from ._driver import set_fapl
from ._turn import turn

_log = logging.getLogger("h5mirror")

# As the connector's tick=TIME, in seconds.
_INTERVAL_MIN, _INTERVAL_MAX = 0.01, 24 * 3600.0
# After a flush that used a second of CPU time, none follows for this many seconds. Its waits, for
# the disk and for a busy processor, lengthen the pause to at most the second number: on a busy
# machine a flush of a millisecond may wait for seconds.
_REST = 20
_REST_OF_WAITS_MAX = 2.0
# Seconds between two tries at h5py's lock, where the main thread does not stand aside earlier. A blocking wait would not
# hear that the helper is to end, and a helper that got the lock while the interpreter ends would never give it back.
_POLL = 0.001
# Bytes of the disk that are left to the program: a flush that fails half-way leaves HDF5 unable to close the file.
_ROOM = 256 << 20
# Seconds that stop() waits for an idle helper. A helper that is flushing is always waited for: it
# has h5py's lock, without which no file could be closed either, and the driver's deadlines bound
# it.
_END = 5.0
_API_VERSION = 4

# Held over a fork, and by a helper that flushes: a child that had h5py's lock from a thread that it has not could never
# call h5py. (h5py itself sees to that from 3.13 on.) Taken before h5py's, and never while waiting for it.
_no_fork = threading.Lock()


class Ticks:
    """Flushes of the process's files, again and again, from a thread beside the program; see ticks()."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._helper: _Helper | None = None

    @property
    def running(self) -> bool:
        """Whether there is a thread that flushes."""
        return self._helper is not None and self._helper.is_alive()

    def start(self) -> "Ticks":
        """Begins; does nothing while it runs. Returns itself.

        Errors: OSError       HDF5 cannot load the driver: there is no plugin.
                RuntimeError  no thread can be started.
        """
        if not self.running:
            _check_plugin()
            helper = _Helper(self._interval)
            helper.start()
            self._helper = helper
            _Owners.add(self)
        return self

    def stop(self) -> None:
        """Ends; a flush under way is waited for. Does nothing where it does not run, as in a forked child."""
        helper, self._helper = self._helper, None
        _Owners.discard(self)
        if helper is not None:
            helper.end()

    def _forget(self) -> None:
        """In a forked child, where the thread is not."""
        self._helper = None

    def __enter__(self) -> "Ticks":
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()


def ticks(interval: float | timedelta = 0.1) -> Ticks:
    """Makes readers see a file that its program does not flush: a context manager, or start() and stop().

        with h5mirror.ticks(0.1):
            simulate(f)

    A helper thread flushes the files that this process has open for writing through the driver, every `interval`
    (seconds, or a timedelta; 10 ms to 24 h). Each is a cut, like a flush of the program's own, and makes no version. A
    file that did not change since its newest cut gets none.

    It flushes under h5py's lock, so between two calls: never within one, an iteration (`visit`) or a callback. Python
    code runs meanwhile; h5py calls of other threads wait. A main thread that calls h5py without a pause stands aside
    between two calls; another thread that does so may keep a tick waiting for long.

    After a flush there is none for twenty times the CPU time that it took. A flush waits for no server that is there, and
    none is made with less than 256 MiB of the disk left. An error of a flush never reaches the program: the logger
    "h5mirror" tells it once, and the file gets no more ticks.

    It ends with the interpreter. It is not in processes that this one forks; they may begin their own, which leaves the
    inherited files alone.

    Programs that call HDF5 all the time, from other languages too, get the same without a thread, by
    `h5mirror exec --tick`.

    ValueError: an interval out of range.
    """
    seconds = interval.total_seconds() if isinstance(interval, timedelta) else float(interval)
    if math.isnan(seconds) or not _INTERVAL_MIN <= seconds <= _INTERVAL_MAX:
        raise ValueError(f"interval={interval!r}: must be 0.01 (10 ms) to 86400 seconds (24 h)")
    return Ticks(seconds)


class _Helper(threading.Thread):
    def __init__(self, interval: float) -> None:
        # A daemon: Python does not wait for it, and the end of the interpreter (_Owners.end_all) comes here first.
        super().__init__(name="h5mirror-ticks", daemon=True)
        self._interval = interval
        self._ended = threading.Event()
        self._flushes = False  # it may have h5py's lock
        self._failed: set[int] = set()  # ids of files

    def end(self) -> None:
        self._ended.set()
        if self is threading.current_thread():  # A handler of the logger may do that.
            return
        interrupted = None
        until = time.monotonic() + _END
        while self.is_alive() and (self._flushes or time.monotonic() < until):
            try:
                self.join(0.05)
            except KeyboardInterrupt as error:
                interrupted = error
                until = 0.0
        if interrupted is not None:
            raise interrupted

    def run(self) -> None:
        pause = self._interval
        try:
            while not self._ended.wait(pause):
                told: list[str] = []
                rest = self._tick(told)
                # Not under the lock: handlers may do anything.
                for each in told:
                    _log.warning("%s", each)
                pause = max(self._interval, rest)
        except Exception as error:
            _log.warning("ticks end: %s: %s", type(error).__name__, error)

    def _tick(self, told: list[str]) -> float:
        """Flushes changed files. Returns the seconds in which no flush may follow."""
        if not self._await_turn():
            return 0.0
        try:
            with _hdf5.quiet_errors():
                return self._flush_all(told)
        finally:
            phil.release()
            _no_fork.release()
            self._flushes = False

    def _await_turn(self) -> bool:
        """Takes the locks; False: it is to end."""
        aside = False
        while not self._ended.is_set():
            begun = self._begin_flush()
            if begun or aside:
                turn.tried(begun)
            if begun:
                return True
            turn.ask()
            aside = turn.wait(_POLL)
        turn.tried(False)
        return False

    def _begin_flush(self) -> bool:
        self._flushes = True  # Before: end() must not miss it.
        self._flushes = _take_locks()
        return self._flushes

    def _flush_all(self, told: list[str]) -> float:
        cpu = wall = 0.0
        files = h5py.h5f.get_obj_ids(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE)
        self._failed &= {file.id for file in files}
        for file in files:
            if self._ended.is_set():
                break
            if file.id in self._failed or not file.get_intent() & h5py.h5f.ACC_RDWR:
                continue
            began, began_cpu = time.monotonic(), time.thread_time()
            reason = _flush(file)
            cpu += time.thread_time() - began_cpu
            # Beside a thread that computes, a switch interval passes until this one goes on after the flush.
            wall += max(0.0, time.monotonic() - began - sys.getswitchinterval())
            if reason is not None:
                self._failed.add(file.id)
                told.append(f"{os.fsdecode(h5py.h5f.get_name(file))}: a tick could not flush it, and it gets no more: "
                            f"{reason}")
        return max(_REST * cpu, min(_REST * wall, _REST_OF_WAITS_MAX))


def _take_locks() -> bool:
    with contextlib.ExitStack() as stack:
        stack.enter_context(_no_fork)
        if not phil.acquire(False):
            return False
        stack.pop_all()
    return True


def _flush(file: Any) -> str | None:
    """Why it failed; None: it is flushed, or not to be."""
    api = fill_api(file, _API_VERSION)
    if api is None or not _has_room(file) or api.arm_tick(api.file) != 0:
        return None
    try:
        return _hdf5.flush(file.id)
    finally:
        api.finish(api.file)


def _has_room(file: Any) -> bool:
    # A file that is not on this machine's disks has no path here.
    with contextlib.suppress(OSError, ValueError):
        disk = os.statvfs(h5py.h5f.get_name(file))
        return disk.f_bavail * disk.f_frsize >= _ROOM
    return True


def _check_plugin() -> None:
    with phil:
        set_fapl(h5py.h5p.create(h5py.h5p.FILE_ACCESS), "mode=off")


class _Owners:
    """Those that run, for the end of the interpreter and for forks."""

    _all: set[Ticks] = set()
    _hooked = False

    @classmethod
    def add(cls, owner: Ticks) -> None:
        if not cls._hooked:
            cls._hooked = True
            atexit.register(cls.end_all)
            os.register_at_fork(before=cls.before_fork, after_in_parent=cls.after_fork,
                                after_in_child=cls.after_fork_in_child)
        cls._all.add(owner)

    @classmethod
    def discard(cls, owner: Ticks) -> None:
        cls._all.discard(owner)

    @classmethod
    def end_all(cls) -> None:
        for owner in list(cls._all):
            owner.stop()

    @classmethod
    def before_fork(cls) -> None:
        _no_fork.acquire()
        turn.forking = True  # No helper could tell the main thread to go on.

    @classmethod
    def after_fork(cls) -> None:
        turn.forking = False
        _no_fork.release()

    @classmethod
    def after_fork_in_child(cls) -> None:
        turn.reset()
        cls.after_fork()
        for owner in list(cls._all):
            owner._forget()
        cls._all.clear()
