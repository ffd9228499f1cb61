"""Changes that a visitor makes: first a preview, which changes nothing, then the change that it showed.

Each runs in a process of its own, never in one that has read a file before (docs/design/045-web.md, "Changes").
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

from . import _answers
from ._findings import Findings, checked_name, checked_path, checked_version
from ._refused import Refused
from ._sessions import Session
from ._tools import Call, Tools

_RESTORE_S = 600.0
_COMMENT_MAX = 1000
_TAG = re.compile(r"[A-Za-z0-9._-]{1,100}")
_MOVED_ON = "the file has changed since this was shown; look at it again"

Preview = dict[str, Any]


class Changes:
    """Used by one event loop."""

    def __init__(self, tools: Tools, findings: Findings) -> None:
        self._tools, self._findings = tools, findings
        self._running: set[asyncio.Task[dict[str, Any]]] = set()
        self._changing: set[str] = set()

    async def answer(self, session: Session, given: Any) -> dict[str, Any]:
        """The preview, or what the change has made. Refused."""
        if not isinstance(given, dict):
            raise Refused(400, "the body is no object of JSON")
        wanted = _Wanted(given)
        preview, change = self._KINDS.get(wanted.text("what"), (None, None))
        if preview is None or change is None:
            raise Refused(400, f"there is no change {wanted.text('what')[:200]!r}")
        if given.get("preview") is True:
            return await preview(self, session, wanted)
        if not isinstance(given.get("expected"), str):
            raise Refused(400, "a change says what its preview expected")
        # A visitor who leaves does not stop it half-way.
        task = asyncio.create_task(self._alone(change, session, wanted))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _alone(self, change: "_Step", session: Session, wanted: "_Wanted") -> dict[str, Any]:
        """One change of a file at a time: two at once would both find what their previews showed."""
        name = wanted.name()
        if name in self._changing:
            raise Refused(409, _MOVED_ON)
        self._changing.add(name)
        try:
            return await change(self, session, wanted)
        finally:
            self._changing.discard(name)

    async def close(self) -> None:
        """Ends what still runs: a restore that is ended leaves the file at its newest version."""
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    # Tags.

    async def _preview_tag(self, session: Session, wanted: "_Wanted") -> Preview:
        version, tag = wanted.version(), wanted.tag()
        await self._tools.ask(session, Call("show", (f"{wanted.name()}@{version}",)))  # Refused: there is no such version.
        holder = await self._holder(session, wanted.name(), tag)
        if holder == version:
            raise Refused(409, f"version {version} has the tag {tag} already")
        moves = f", which version {holder} has now" if holder else ""
        return {"expected": holder, "says": f"Version {version} would get the tag {tag}{moves}."}

    async def _tag(self, session: Session, wanted: "_Wanted") -> dict[str, Any]:
        version, tag = wanted.version(), wanted.tag()
        await self._check_holder(session, wanted, tag)
        flags = ("--force",) if wanted.text("expected") else ()
        await self._tools.ask(session, Call("tag", (f"{wanted.name()}@{version}", tag), flags))
        return {"says": f"Version {version} has the tag {tag}."}

    async def _preview_untag(self, session: Session, wanted: "_Wanted") -> Preview:
        tag = wanted.tag()
        holder = await self._holder(session, wanted.name(), tag)
        if not holder:
            raise Refused(404, f"no version has the tag {tag}")
        return {"expected": holder, "says": f"Version {holder} would lose the tag {tag}. The version itself stays as long as "
                                            "the server retains it."}

    async def _untag(self, session: Session, wanted: "_Wanted") -> dict[str, Any]:
        tag = wanted.tag()
        await self._check_holder(session, wanted, tag)
        await self._tools.ask(session, Call("untag", (wanted.name(), tag)))
        return {"says": f"Version {wanted.text('expected')} has the tag {tag} no more."}

    async def _holder(self, session: Session, name: str, tag: str) -> str:
        """The version that has a tag; "": none has it."""
        try:
            said = await self._tools.ask(session, Call("show", (f"{name}@tag:{tag}",)))
        except Refused as refused:
            if refused.status != 404:
                raise
            await self._newest(session, name)  # It is the tag that is not there, or else the file.
            return ""
        return _number_of(said.document)

    async def _check_holder(self, session: Session, wanted: "_Wanted", tag: str) -> None:
        if await self._holder(session, wanted.name(), tag) != wanted.text("expected"):
            raise Refused(409, _MOVED_ON)

    # Contents.

    async def _preview_rollback(self, session: Session, wanted: "_Wanted") -> Preview:
        name, version = wanted.name(), wanted.version()
        newest = await self._newest(session, name)
        if newest == version:
            raise Refused(409, f"version {version} is the newest one already")
        diff = await self._findings.diff(session, name, newest, version)
        return {"expected": newest, "says": f"A new version would be made with all bytes of version {version}. Version {newest} "
                                            "and all others stay in the history. A local file stays as it is.", "diff": diff}

    async def _rollback(self, session: Session, wanted: "_Wanted") -> dict[str, Any]:
        name, version = wanted.name(), wanted.version()
        await self._check_newest(session, wanted)
        said = await self._tools.ask(session, Call("rollback", (f"{name}@{version}",), wanted.comment()))
        return {"says": f"{name} is as in version {version} again: version {_number_of(said.document)}.", "notes": said.notes}

    async def _preview_restore(self, session: Session, wanted: "_Wanted") -> Preview:
        newest = await self._newest(session, wanted.name())
        said = await self._tools.ask(session, wanted.restore("--dry-run"))
        return {"expected": newest, "says": f"A new version would be made, with {wanted.path()} of version {wanted.version()}.",
                "restore": _answers.restore_of(said)}

    async def _restore(self, session: Session, wanted: "_Wanted") -> dict[str, Any]:
        await self._check_newest(session, wanted)
        restored = _answers.restore_of(await self._tools.ask(session, wanted.restore(*wanted.comment())))
        return {"says": f"{wanted.path()} of version {wanted.version()} is back: version {restored['version']}.",
                "restore": restored}

    async def _newest(self, session: Session, name: str) -> str:
        """The newest version's number. Refused: there is no such file, or it has no version."""
        said = await self._tools.ask(session, Call("show", (f"{name}@latest",)))
        return _number_of(said.document)

    async def _check_newest(self, session: Session, wanted: "_Wanted") -> None:
        if await self._newest(session, wanted.name()) != wanted.text("expected"):
            raise Refused(409, _MOVED_ON)

    _Step = Callable[["Changes", Session, "_Wanted"], Awaitable[dict[str, Any]]]
    _KINDS: dict[str, tuple[_Step, _Step]] = {
        "tag": (_preview_tag, _tag), "untag": (_preview_untag, _untag), "rollback": (_preview_rollback, _rollback),
        "restore": (_preview_restore, _restore)}


class _Wanted:
    """The wishes of a request. All methods raise Refused if the request is malformed."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given

    def text(self, key: str) -> str:
        """"": it is not there."""
        value = self._given.get(key)
        return value if isinstance(value, str) else ""

    def name(self) -> str:
        return checked_name(self.text("file"))

    def version(self) -> str:
        return checked_version(self.text("version"))

    def path(self) -> str:
        return checked_path(self.text("path"))

    def tag(self) -> str:
        tag = self.text("tag")
        if not _TAG.fullmatch(tag) or tag.isdecimal():
            raise Refused(400, f"{tag[:200]!r} is no tag: it has 1 to 100 letters, digits, '.', '_' and '-', and is no number")
        return tag

    def comment(self) -> tuple[str, ...]:
        """As flags of the program."""
        comment = self.text("comment").strip()
        if len(comment) > _COMMENT_MAX or not all(each.isprintable() for each in comment):
            raise Refused(400, f"a comment is one line of at most {_COMMENT_MAX} characters")
        return (f"--comment={comment}",) if comment else ()

    def restore(self, *more: str) -> Call:
        replaces = ("--replace",) if self._given.get("replace") is True else ()
        return Call("restore", (f"{self.name()}@{self.version()}:{self.path()}",), (*replaces, *more), reads_hdf5=True,
                    spools=True, seconds=_RESTORE_S)


def _number_of(document: dict[str, Any] | None) -> str:
    """Of the version that a document tells of."""
    version = _answers.version_of((document or {}).get("version"))
    if version is None or version["version"] == "0":
        raise Refused(502, "h5mirror tells no version")
    return str(version["version"])
