"""The program `h5mirror` for one call of a session: behind a fence, with an end, and with an answer of bounded size."""

import asyncio
import contextlib
import functools
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _program
from . import _fence
from ._around import environment, readable, readable_for_tools, user
from ._refused import Refused
from ._sessions import Session
from ._settings import Settings

_AT_ONCE_MAX = 4
_OF_CALLER_MAX = 2
_WAIT_S = 15.0
_CONNECT_S = 10.0
_OUT_MAX = 8 << 20
_ERR_MAX = 64 << 10
_ENDS_WITHIN_S = 5.0
_PART = 64 << 10
_WORDS_MAX = 2000
_NOTES_MAX = 20
# Of the program's exit codes (cli/context/exit_code.h), as statuses of HTTP.
_STATUSES = {2: 400, 3: 404, 4: 503, 5: 409, 8: 403}


@dataclass(frozen=True)
class Call:
    """One call of the program."""

    verb: str
    arguments: tuple[str, ...]
    flags: tuple[str, ...] = ()
    reads_hdf5: bool = False
    """It reads strangers' bytes, so it starts behind a fence or not at all."""
    only_reads: bool = False
    """A token with the right to read is enough."""
    spools: bool = False
    """It writes a file of the server, and so a spool."""
    seconds: float = 60.0
    codes: tuple[int, ...] = (0,)
    """With which there is an answer."""
    is_whole: bool = True
    """An answer that is too long, or takes too long, is a failure; else as much counts as has come."""


@dataclass(frozen=True)
class Said:
    document: dict[str, Any] | None
    """None: it was cut off, and `lines` has what came before."""
    lines: list[str]
    notes: list[str]
    """For people, beside the answer."""


class Tools:
    """Used by one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turns = asyncio.Semaphore(_AT_ONCE_MAX)
        self._of_caller: dict[str, _Turns] = {}

    async def ask(self, session: Session, call: Call) -> Said:
        """Refused."""
        async with self._turn(session):
            return await self._run(session, call)

    @contextlib.asynccontextmanager
    async def _turn(self, session: Session) -> AsyncIterator[None]:
        # Signing in once more gives nobody a further share.
        caller = session.token or session.identity
        mine = self._of_caller.setdefault(caller, _Turns())
        mine.users += 1
        try:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(_WAIT_S):
                        await stack.enter_async_context(mine.semaphore)
                        await stack.enter_async_context(self._turns)
                except TimeoutError:
                    raise Refused(503, "all processes that compare and change files are busy; try again") from None
                yield
        finally:
            mine.users -= 1
            if mine.users == 0:
                del self._of_caller[caller]

    async def _run(self, session: Session, call: Call) -> Said:
        try:
            places = await asyncio.to_thread(_places, self._settings)
            token = session.reads if call.only_reads else session.token
            server = "|".join(map(_absolute, self._settings.servers))
            with (_program.command(server, self._settings.ca, token, _CONNECT_S) as (begin, more),
                  tempfile.TemporaryDirectory(prefix="h5mirror-spool-") as spool):
                end = ["--"] if call.arguments else []  # A name may begin with '-'.
                command = [str(each) for each in begin] + [call.verb, *call.flags, *end, *call.arguments]
                fence = [sys.executable, "-I", "-S", str(Path(_fence.__file__).resolve()), str(os.getpid()),
                         ",".join(map(str, self._settings.server_ports)), "always" if call.reads_hdf5 else "if-possible", spool if call.spools else "", *places, "--"]
                process = await asyncio.create_subprocess_exec(
                    *fence, *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                    env={**environment(), **user(), "TMPDIR": spool}, start_new_session=True, **more)
                return await _end_of(process, call)
        except (FileNotFoundError, ValueError) as error:  # The program is not there; an argument holds a zero byte.
            raise Refused(503, str(error)) from None
        except OSError as error:
            raise Refused(503, f"h5mirror {call.verb} could not be started: {error.strerror}") from None


class _Turns:
    """Of one token."""

    def __init__(self) -> None:
        self.semaphore = asyncio.Semaphore(_OF_CALLER_MAX)
        self.users = 0


@functools.lru_cache(maxsize=1)
def _places(settings: Settings) -> tuple[str, ...]:
    return (*readable(settings), *readable_for_tools())


def _absolute(server: str) -> str:
    """A socket's path means the same in another directory."""
    return "unix:" + os.path.abspath(server.removeprefix("unix:")) if server.startswith("unix:") else server


async def _end_of(process: asyncio.subprocess.Process, call: Call) -> Said:
    """Of a process that is gone afterwards."""
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = bytearray(), bytearray()
    talking = asyncio.create_task(_drain(process.stderr, err))
    is_late = is_cut = False
    try:
        async with asyncio.timeout(call.seconds):
            is_cut = not await _fill(process.stdout, out)
            if not is_cut:
                await process.wait()
    except TimeoutError:
        is_late = True
    finally:
        _kill(process)
        # It may have left a process of its own, which holds the other ends of the pipes.
        rest = [talking, asyncio.create_task(_drain(process.stdout, bytearray())), asyncio.create_task(_ended(process))]
        await asyncio.wait(rest, timeout=_ENDS_WITHIN_S)
        for each in rest:
            each.cancel()
    if is_late or is_cut:
        return _cut_off(call, bytes(out), is_late)
    return _said(call, process.returncode or 0, bytes(out), err.decode(errors="replace"))


def _kill(process: asyncio.subprocess.Process) -> None:
    """With the helpers that it has started, also where it has ended itself."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _ended(process: asyncio.subprocess.Process) -> None:
    await process.wait()


async def _fill(stream: asyncio.StreamReader, into: bytearray) -> bool:
    """False: there is more than an answer may have."""
    while part := await stream.read(_PART):
        into += part
        if len(into) > _OUT_MAX:
            return False
    return True


async def _drain(stream: asyncio.StreamReader, into: bytearray) -> None:
    """Reads to the end, so that the writer never waits."""
    while part := await stream.read(_PART):
        into += part[:max(0, _ERR_MAX - len(into))]


def _cut_off(call: Call, out: bytes, is_late: bool) -> Said:
    if call.is_whole:
        why = f"took longer than {call.seconds:.0f} s" if is_late else f"has an answer of more than {_OUT_MAX >> 20} MiB"
        raise Refused(504 if is_late else 413, f"h5mirror {call.verb} {why}, and was ended; look at the versions to see what "
                      "has become of it, or run it in a shell")
    return Said(None, out.decode(errors="replace").split("\n")[:-1], [])


def _said(call: Call, code: int, out: bytes, err: str) -> Said:
    notes = [line.removeprefix("h5mirror: ")[:_WORDS_MAX] for line in err.splitlines() if line.startswith("h5mirror: ")]
    document = _document(out) if code in call.codes else None
    if document is not None:
        return Said(document, [], notes[:_NOTES_MAX])
    if code == _fence.NOT_FENCED and call.reads_hdf5:
        raise Refused(503, f"h5mirror {call.verb} reads HDF5, which this page does on a kernel with Landlock only (Linux 5.13); "
                      "run it in a shell")
    if code < 0 or code > 128:
        raise Refused(502, f"the process of h5mirror {call.verb} has ended. The file may be damaged, or too large; nothing else "
                      "was touched")
    raise Refused(_STATUSES.get(code, 422), notes[-1] if notes else f"h5mirror {call.verb} ended with {code}")


def _document(out: bytes) -> dict[str, Any] | None:
    """None: it is no object of JSON. It may come from a process that a file has taken over."""
    try:
        document = json.loads(out)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
