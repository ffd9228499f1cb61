"""Asks `h5mirror` for findings: how versions differ, when an object changed, and the visitor's
rights."""

import asyncio
import re
from typing import Any

from . import _answers
from ._original import original_of
from ._refused import Refused
from ._sessions import Session
from ._tools import Call, Tools

_NAME_MAX = 4096
# As the server writes it: "0" would be another way to say "the newest".
_VERSION = re.compile(r"[1-9][0-9]{0,17}")
# Less than a call may take, so that the document is whole; after it the page shows as much as was found.
_DIFF_S = 50
RIGHTS = ("read", "write", "restore", "delete", "operate")


class Findings:
    """Used by one event loop. All calls may raise Refused."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def diff(self, session: Session, file: str, old: str, new: str) -> dict[str, Any]:
        """The first changes from one version to another, which may be an older one."""
        name = checked_name(file)
        arguments = (f"{name}@{checked_version(old)}", f"{name}@{checked_version(new)}")
        said = await self._tools.ask(session, Call("diff", arguments, ("--stop-after", f"{_DIFF_S}s"), reads_hdf5=True,
                                                   only_reads=True, codes=(0, 1, 2), is_whole=False))
        return {"old": old, "new": new, **_answers.diff_of(said)}

    async def history(self, session: Session, file: str, path: str) -> dict[str, Any]:
        """The versions in which an object changed, newest first."""
        call = Call("log", (f"{checked_name(file)}:{checked_path(path)}",), ("--limit", str(_answers.EVENTS_MAX)),
                    reads_hdf5=True, only_reads=True, codes=(0, 1))
        return _answers.history_of(await self._tools.ask(session, call))

    async def blame(self, session: Session, file: str, path: str) -> dict[str, Any]:
        """The attributes of an object, with the version behind each."""
        call = Call("blame", (f"{checked_name(file)}:{checked_path(path)}",), reads_hdf5=True, only_reads=True, codes=(0, 1))
        return _answers.blame_of(await self._tools.ask(session, call))

    async def rights(self, session: Session, file: str) -> dict[str, Any]:
        """The visitor's rights to a file. For "": the most that the visitor may have; a table may
        allow less for one file. A server or program too old to tell the rights to one file gives
        these for it too. Also names the local file that this page does not write."""
        status = await self._status(session, checked_name(file)) if file else {}
        told = status.get("rights")
        if not isinstance(told, list):
            told = (await self._status(session)).get("rights")
        allowed = told if isinstance(told, list) else []
        return {"rights": [each for each in RIGHTS if each in allowed],
                "original": await asyncio.to_thread(original_of, status)}

    async def _status(self, session: Session, *file: str) -> dict[str, Any]:
        said = await self._tools.ask(session, Call("status", file))
        return said.document or {}


def checked_name(name: str) -> str:
    """A name that the program takes for nothing but a file of the server. Refused."""
    if not name or len(name) > _NAME_MAX or not name.isprintable():
        raise Refused(400, "the request names no file")
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise Refused(400, f"{name!r} is no name of a file on the server")
    if ":/" in name:
        raise Refused(400, f"{name!r}: in a name with ':/' no object can be named; take a shell, or Python")
    return name


def checked_path(path: str) -> str:
    """Of an object. Refused."""
    if not path.startswith("/") or len(path) > _NAME_MAX or "\0" in path:
        raise Refused(400, f"{path[:200]!r} is no path of an object; it begins with '/'")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise Refused(400, "the path is no text") from None
    return path


def checked_version(version: str) -> str:
    """Refused."""
    if not _VERSION.fullmatch(version):
        raise Refused(400, f"{version[:200]!r} is no number of a version")
    return version
