"""The processes that read HDF5 files: which there are, whom they serve, and when they end."""

import asyncio
import contextlib
import os
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from . import _frames
from ._around import environment, readable
from ._sessions import Session
from ._settings import Settings

_OF_SESSION_MAX = 2
_CALL_S = 60.0
_START_S = 30.0
_WAIT_S = 15.0
_IDLE_S = 120.0
_BUFFER = 1 << 20


@dataclass(frozen=True)
class Answer:
    """A worker's answer, or the error in its place."""

    status: int
    kind: str = "json"
    body: bytes = b""
    message: str = ""
    version: int = 0
    """That was read; 0: a cut that is no version."""
    cut: int = 0
    left_out: int = 0
    """Of a group's children."""


class WorkerLost(Exception):
    """It ended, or said what cannot be understood."""


class MixedUp(WorkerLost):
    """It answered something else than what it was asked."""


class NotStarted(Exception):
    """The worker's own message is in the log of the web process."""


def answer_to(asked: dict[str, Any], badge: str, said: dict[str, Any], body: bytes) -> Answer:
    """A worker's answer, if it is for this request and for the requested bytes. Raises WorkerLost,
    MixedUp."""
    numbers = [said.get(key, 0) for key in ("status", "opened_version", "opened_cut", "left_out")]
    status, version, cut, left_out = numbers
    if not all(type(each) is int for each in numbers) or not 200 <= status <= 599:
        raise WorkerLost
    expected = {key: asked.get(key) for key in _frames.ECHOED} | {"badge": badge}
    if any(said.get(key) != value for key, value in expected.items()):
        raise MixedUp(f"an answer to {said.get('call')!r} of {said.get('name')!r} came for {asked['call']!r} of {asked['name']!r}")
    if status == 200 and not _is_of(asked, version, cut):
        raise MixedUp(f"{asked['name']!r}: version {asked['version']}, cut {asked['cut']} was asked for, and version {version}, "
                      f"cut {cut} was read")
    return Answer(status, str(said.get("kind", "json")), body, str(said.get("message", "")), version, cut, left_out)


def _is_of(asked: dict[str, Any], version: int, cut: int) -> bool:
    """A version is itself; a later cut may stand for one."""
    if asked["version"] is not None:
        return bool(asked["version"] == str(version))
    return asked["cut"] is not None and cut >= asked["cut"]


class _Worker:
    """A process, and the socket to it."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader,
                 writer: asyncio.StreamWriter) -> None:
        self._process, self._reader, self._writer = process, reader, writer
        self.session = ""
        self.token: str | None = None
        self._badge = secrets.token_hex(8)  # Which only the process has that got the session's token.
        self._number = 0  # of the last request
        self.is_busy = True
        self.used_at = time.monotonic()

    @classmethod
    async def start(cls, settings: Settings) -> "_Worker":
        """NotStarted: it does not come up."""
        ours, its = socket.socketpair()
        try:
            with its:
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-P", "-m", f"{__package__}._worker", str(its.fileno()), str(os.getpid()),
                    ",".join(map(str, settings.server_ports)), *readable(settings),
                    stdin=asyncio.subprocess.DEVNULL, pass_fds=(its.fileno(),), env=environment(), cwd="/",
                    start_new_session=True)  # Ctrl-C is for the web process, which ends it.
        except OSError as error:
            ours.close()
            raise NotStarted from error
        reader, writer = await asyncio.open_connection(sock=ours, limit=_BUFFER)
        worker = cls(process, reader, writer)
        try:
            async with asyncio.timeout(_START_S):
                await worker._receive()
        except (WorkerLost, TimeoutError):
            await worker.end()
            raise NotStarted from None
        except BaseException:
            await worker.end()
            raise
        return worker

    async def belong(self, session: Session, settings: Settings) -> None:
        self.session, self.token = session.identity, session.reads
        await self._send({"server": settings.server, "ca": settings.ca, "token": session.reads, "badge": self._badge})

    async def ask(self, session: Session, request: dict[str, Any]) -> Answer:
        """WorkerLost, MixedUp, TimeoutError: it is to be killed."""
        if session.identity != self.session:
            raise MixedUp(f"the worker of another session was asked for {request['name']}")
        self._number += 1
        asked = {**request, "number": self._number}
        async with asyncio.timeout(_CALL_S):
            await self._send(asked)
            said, body = await self._receive()
        return answer_to(asked, self._badge, said, body)

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            self._writer.write(_frames.encode(message))
            await self._writer.drain()
        except OSError:
            raise WorkerLost from None

    async def _receive(self) -> tuple[dict[str, Any], bytes]:
        try:
            text, body = _frames.lengths(await self._reader.readexactly(_frames.HEADER.size))
            return _frames.decode(await self._reader.readexactly(text)), await self._reader.readexactly(body)
        except (asyncio.IncompleteReadError, OSError, ValueError):
            raise WorkerLost from None

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    def kill(self) -> None:
        """Idempotent."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._writer.close()

    async def end(self) -> None:
        """The loop must not close before: it tells of a child that it does not know any more. A cancellation waits, too."""
        self.kill()
        await asyncio.shield(self._process.wait())


class Workers:
    """The pool. Used by one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._workers: list[_Worker | None] = []  # None: one that is being started.
        self._starting: dict[str, int] = {}  # how many of them are for which session
        self._changed = asyncio.Condition()
        self._spare: asyncio.Task[_Worker] | None = None
        self._ended: set[str] = set()
        self._killed: list[_Worker] = []  # to make room; close() waits until they have ended

    def prepare(self) -> None:
        """Starts a worker that nobody has asked for yet."""
        if self._spare is None:
            self._spare = asyncio.create_task(_Worker.start(self._settings))

    async def ask(self, session: Session, request: dict[str, Any]) -> Answer:
        """Goes on to its end where the visitor does not wait for it: an answer that nobody reads would come in place of the
        next one."""
        return await asyncio.shield(asyncio.create_task(self._ask(session, request)))

    async def _ask(self, session: Session, request: dict[str, Any]) -> Answer:
        name = request["name"]
        try:
            async with self._taken(session) as worker:
                return await worker.ask(session, request)
        except TimeoutError:
            return Answer(504, message=f"{name}: reading this took longer than {_CALL_S:.0f} s; choose a smaller part")
        except MixedUp as mixed:
            print(f"h5mirror web: {mixed}; the worker was ended, and its answer thrown away", file=sys.stderr, flush=True)
            return Answer(502, message=f"{name}: the process that read this answered something else, and was ended; try again")
        except WorkerLost:
            return Answer(502, message=f"{name}: the process that read this has ended. The file may be damaged, or the part too "
                          "large; nothing else was touched")
        except NotStarted:
            return Answer(503, message="no process that reads files could be started; the log of h5mirror web says why")
        except _Busy:
            return Answer(503, message="all processes that read files are busy; try again")

    @contextlib.asynccontextmanager
    async def _taken(self, session: Session) -> AsyncIterator[_Worker]:
        """One for this session alone; it goes where the body raises."""
        worker = await self._take(session)
        try:
            yield worker
        except BaseException:
            await self._drop(worker)
            raise
        async with self._changed:
            worker.is_busy, worker.used_at = False, time.monotonic()
            self._changed.notify_all()
        if session.identity in self._ended:
            await self._drop(worker)

    async def _take(self, session: Session) -> _Worker:
        identity = session.identity
        try:
            async with asyncio.timeout(_WAIT_S), self._changed:
                while True:
                    self._workers = [each for each in self._workers if each is None or each.is_busy or not each.has_ended]
                    self._leave_old_tokens(session)
                    if (worker := self._idle_of(identity)) is not None:
                        worker.is_busy = True
                        return worker
                    if self._may_start(identity):
                        break
                    await self._changed.wait()
                self._make_room()
                self._workers.append(None)
                self._starting[identity] = self._starting.get(identity, 0) + 1
        except TimeoutError:
            raise _Busy from None
        return await self._start_for(session)

    async def _start_for(self, session: Session) -> _Worker:
        worker: _Worker | None = None
        try:
            spare, self._spare = self._spare, None
            if spare is not None:
                with contextlib.suppress(NotStarted):  # Then or now: it may be better now.
                    worker = await spare
            if worker is None or worker.has_ended:
                worker = await _Worker.start(self._settings)
            await worker.belong(session, self._settings)
            self.prepare()
            return worker
        except BaseException:
            if worker is not None:
                await worker.end()
            worker = None
            raise
        finally:
            self._workers.remove(None)
            self._starting[session.identity] -= 1
            if not self._starting[session.identity]:
                del self._starting[session.identity]
            if worker is not None:
                self._workers.append(worker)
            async with self._changed:
                self._changed.notify_all()

    def _idle_of(self, identity: str) -> _Worker | None:
        """The one that was used last: it most likely has the file open."""
        mine = [each for each in self._workers if each is not None and not each.is_busy and each.session == identity]
        return max(mine, key=lambda each: each.used_at, default=None)

    def _may_start(self, identity: str) -> bool:
        mine = sum(1 for each in self._workers if each is not None and each.session == identity)
        is_room = len(self._workers) < self._settings.workers or self._longest_idle() is not None
        return mine + self._starting.get(identity, 0) < _OF_SESSION_MAX and is_room

    def _longest_idle(self) -> _Worker | None:
        idle = [each for each in self._workers if each is not None and not each.is_busy]
        return min(idle, key=lambda each: each.used_at, default=None)

    def _leave_old_tokens(self, session: Session) -> None:
        """A worker that got the token before goes: that one may have expired."""
        for worker in [each for each in self._workers if each is not None and not each.is_busy]:
            if worker.session == session.identity and worker.token != session.reads:
                self._kill(worker)

    def _make_room(self) -> None:
        if len(self._workers) >= self._settings.workers and (worker := self._longest_idle()) is not None:
            self._kill(worker)

    def _kill(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.kill()
        self._killed = [each for each in [*self._killed, worker] if not each.has_ended]

    async def _drop(self, worker: _Worker) -> None:
        if worker in self._workers:
            self._workers.remove(worker)
        await worker.end()
        async with self._changed:
            self._changed.notify_all()

    async def keep(self, live: set[str]) -> None:
        """Ends those of sessions that have ended, and those that nobody has used for a while."""
        now = time.monotonic()
        sessions = {each.session for each in self._workers if each is not None}
        self._ended = sessions - live
        for worker in [each for each in self._workers if each is not None and not each.is_busy]:
            if worker.session not in live or worker.used_at + _IDLE_S < now:
                await self._drop(worker)

    async def close(self) -> None:
        if self._spare is not None:
            self._spare.cancel()
            with contextlib.suppress(asyncio.CancelledError, NotStarted):
                await (await self._spare).end()
        for worker in [*(each for each in self._workers if each is not None), *self._killed]:
            await worker.end()


class _Busy(Exception):
    """No worker is free for too long."""
