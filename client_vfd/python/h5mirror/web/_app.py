"""The web process: its routes, and what each answers."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import quote, unquote

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Handler

from ._changes import Changes
from ._findings import Findings
from ._guard import Guard, add_headers, error, has_left
from ._logins import Logins
from ._proxy import LOAD_AGAIN, SIGNED_OUT, signed_out, token_of
from ._refused import Refused
from ._sessions import Grant, Session, Sessions, is_same
from ._settings import Proxy, Settings, is_token
from ._static import Static
from ._tools import Tools
from ._upstream import Unreachable, Upstream, message_of
from ._workers import Workers

_BODY_MAX = 64 << 10
_STREAMS_MAX = 32
_TOO_MANY = "too many requests of this session run at once; close other tabs of this page"
_SIGN_INS_MAX = 4
_NEEDS_TOKEN = ("the server asks for a token, and `h5mirror web` was started without --token: give a token here, or start it "
                "again with --token @FILE")
_AFTER_FAILURE_S = 0.5
_TOO_MANY_SIGN_INS = "too many sign in at once; try again"
_ASKED_S = 10.0
_KEEP_EVERY_S = 10.0
_LEFT_EVERY_S = 1.0
_KINDS = {"json": "application/json", "bin": "application/octet-stream", "csv": "text/csv", "npy": "application/octet-stream",
          "tiff": "image/tiff"}
# Of the server's headers, those that go on to the visitor.
_OF_JSON = ("Content-Length", "Retry-After")
_OF_BYTES = ("Content-Length", "Content-Range", "Accept-Ranges", "ETag", "Last-Modified", "H5mirror-Version", "H5mirror-Cut")
_OF_VISITOR = ("Range", "If-Match", "If-None-Match", "If-Range", "Last-Event-ID")


class Web:
    """One page for one server. Used by one event loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        # The key that signs in as the user who started the page; "": no such key.
        self.key = "" if settings.is_shared else secrets.token_urlsafe(32)
        self._sessions = Sessions()
        self.guard = Guard(settings, self._sessions, self._end)
        self._static = Static()
        self._workers = Workers(settings)
        tools = Tools(settings)
        self._findings = Findings(tools)
        self._changes = Changes(tools, self._findings)
        self._logins = Logins(settings, self._sessions, self.guard)
        self._signing_in = asyncio.Semaphore(_SIGN_INS_MAX)
        self._streams: dict[str, set[asyncio.Task[Any]]] = {}  # of each session

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self.guard.middleware], client_max_size=_BODY_MAX)
        app.on_response_prepare.append(add_headers)
        app.cleanup_ctx.append(self._running)
        if self.settings.proxy is not None:
            app.add_routes([_get(SIGNED_OUT, signed_out)])
        app.add_routes([
            _get("/api/session", self._who), web.post("/api/session", self._sign_in),
            web.delete("/api/session", self._sign_out), web.post("/api/logout", self._sign_out),
            web.post("/api/login", self._logins.begin), web.post("/api/login/finish", self._finish_login),
            _get("/api/files", self._files), _get("/api/files/{name:.+}", self._files), _get("/api/bytes/{name:.+}", self._bytes),
            _get("/api/h5/{call:meta|data|attr|stats|paths|compare}", self._contents),
            _get("/api/{find:diff|history|blame|rights}", self._found), web.post("/api/changes", self._change),
            _get("/api/{rest:.*}", self._nothing),
            web.get("/{path:.*}", self._static.answer)])
        return app

    async def why_unreachable(self) -> str:
        """While the application runs: why the server's HTTP cannot be asked, and the way out; "": it can."""
        try:
            await self._upstream.status_of(None)
        except Unreachable as away:
            return str(away)
        return ""

    async def _running(self, _app: web.Application) -> AsyncIterator[None]:
        self._upstream = Upstream(self.settings)
        self._logins.open()
        self._workers.prepare()
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeping.cancel()
            await self._logins.close()
            for streams in self._streams.values():
                for stream in streams:
                    stream.cancel()
            await self._changes.close()
            await self._workers.close()
            await self._upstream.close()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_KEEP_EVERY_S)
            await self._logins.renew()
            live = self._sessions.live()
            for identity in [each for each in self._streams if each not in live]:
                self._end_streams(identity)
            await self._workers.keep(live)

    # Sessions.

    async def _who(self, request: web.Request) -> web.StreamResponse:
        session, proxy = self.guard.session(request), self.settings.proxy
        if session is None and proxy is not None:
            return await self._sign_in_named(proxy, self.guard.user(request))
        return web.json_response(self._about(session))

    def _about(self, session: Session | None) -> dict[str, Any]:
        return {"signed_in": session is not None, "csrf": session.csrf if session else "", "server": self.settings.server,
                "login": self._logins.where}

    async def _sign_in_named(self, proxy: Proxy, user: str) -> web.StreamResponse:
        """As the user whom the proxy names. Nobody can guess tokens here, so a failure does not wait."""
        async with self._signing_in:
            try:
                token = token_of(proxy, user)
            except Refused as refused:
                return error(refused.status, str(refused))
            refusal = await self._why_not(token)
        if refusal is not None:
            return refusal
        # One session of a user, so that tabs which open at once share it, and that nobody can take all.
        while (session := self._sessions.of_user(user)) is not None and session.token != token:
            await self._end(session)
        return self._with_cookie(session or self._sessions.start(token, token, user=user))

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        if self.settings.proxy is not None:
            return error(403, LOAD_AGAIN)
        try:
            given = await request.json()
        except ValueError:
            return error(400, "the body is no JSON")
        key, token = (given.get("key"), given.get("token")) if isinstance(given, dict) else (None, None)
        if isinstance(key, str) and self.key and is_same(key, self.key):
            if self.settings.token is None and await self._asks_for_token():
                return error(401, _NEEDS_TOKEN, "UNAUTHENTICATED")
            return await self._signed_in(request, self.settings.token, self.settings.read_token)
        if self._signing_in.locked():
            return error(429, _TOO_MANY_SIGN_INS)
        async with self._signing_in:
            refusal = await self._why_not(token)
            if refusal is not None:
                await asyncio.sleep(_AFTER_FAILURE_S)
                return refusal
        return await self._signed_in(request, str(token), None)

    async def _finish_login(self, request: web.Request) -> web.StreamResponse:
        if self._signing_in.locked():
            return error(429, _TOO_MANY_SIGN_INS)
        async with self._signing_in:
            try:
                grant, to = await self._logins.finish(request)
                refusal = await self._why_not(grant.token)
            except Refused as refused:
                refusal = error(refused.status, str(refused))
            if refusal is not None:
                await asyncio.sleep(_AFTER_FAILURE_S)
                refusal.del_cookie(self.guard.login_cookie, path="/")
                return refusal
        response = await self._signed_in(request, grant.token, None, grant, to)
        response.del_cookie(self.guard.login_cookie, path="/")
        return response

    async def _asks_for_token(self) -> bool:
        """False where the server does not answer: the page tells that by itself."""
        try:
            async with asyncio.timeout(_ASKED_S):
                return (await self._upstream.status_of(None))[0] == 401
        except (Unreachable, TimeoutError):
            return False

    async def _why_not(self, token: object) -> web.Response | None:
        """None: the server takes the token."""
        if not isinstance(token, str) or not is_token(token):
            return error(401, "give a token of the server, as one line; the link that `h5mirror web` printed counts only as "
                         "long as it runs", "UNAUTHENTICATED")
        try:
            if (await self._upstream.status_of(None))[0] == 200:
                # Any text would do for a token, and other machines would get what is meant for this one.
                return error(403, f"the server asks for no token, so tokens do not tell who you are; {self._without_tokens()}",
                             "PERMISSION_DENIED")
            status, message = await self._upstream.status_of(token)
        except Unreachable as away:
            return error(503, str(away), "UNAVAILABLE")
        return None if status in (200, 403) else error(status, message)

    def _without_tokens(self) -> str:
        """The way out where the server asks for none."""
        if self.settings.proxy is not None:
            return "the operator has to set its tokens_file"
        return "start `h5mirror web` without --shared, and use the link that it prints"

    async def _signed_in(self, request: web.Request, token: str | None, reads: str | None, grant: Grant | None = None,
                         to: str = "") -> web.Response:
        before = self.guard.session(request)
        if before is not None:
            await self._end(before)
        return self._with_cookie(self._sessions.start(token, token if reads is None else reads, grant), to)

    def _with_cookie(self, session: Session, to: str = "") -> web.Response:
        response = web.json_response(self._about(session) | {"to": to})
        response.set_cookie(self.guard.cookie, session.identity, path="/", httponly=True, samesite="Strict",
                            secure=self.settings.is_https)
        return response

    async def _sign_out(self, request: web.Request) -> web.StreamResponse:
        """And says where the browser ends its login at the issuer, or its sign-in at the proxy, too."""
        session = self.guard.session(request)
        url = ""
        if session is not None:
            proxy = self.settings.proxy
            url = self._logins.where_to_end(request, session) if proxy is None else proxy.sign_out or SIGNED_OUT
            await self._end(session)
        response = web.json_response(self._about(None) | {"url": url})
        response.del_cookie(self.guard.cookie, path="/")
        return response

    async def _end(self, session: Session) -> None:
        self._sessions.end(session)
        self._end_streams(session.identity)
        await self._workers.keep(self._sessions.live())

    def _end_streams(self, identity: str) -> None:
        for stream in self._streams.pop(identity, set()):
            stream.cancel()

    # Requests that the server answers.

    async def _files(self, request: web.Request) -> web.StreamResponse:
        path = request.rel_url.raw_path
        target = "/v1/files" + path.removeprefix("/api/files")
        return await self._pass_on(request, target, is_endless=target.endswith("/events"))

    async def _bytes(self, request: web.Request) -> web.StreamResponse:
        return await self._pass_on(request, "/f/" + request.rel_url.raw_path.removeprefix("/api/bytes/"), is_bytes=True)

    async def _pass_on(self, request: web.Request, target: str, *, is_endless: bool = False,
                       is_bytes: bool = False) -> web.StreamResponse:
        session = self.guard.session(request)
        if session is None:
            return self.guard.no_session()
        headers = {name: request.headers[name] for name in _OF_VISITOR if name in request.headers}
        response: web.StreamResponse | None = None
        with self._stream(session) as is_one_more:
            if not is_one_more:
                return error(429, _TOO_MANY)
            try:
                async with self._upstream.get(session.token, target, request.rel_url.raw_query_string, headers) as answer:
                    if answer.status == 401:
                        self._sessions.end(session)
                    if answer.status >= 400:
                        return error(answer.status, await message_of(answer))
                    response = _begun(answer, target, is_bytes=is_bytes, is_endless=is_endless)
                    await response.prepare(request)
                    async for part in answer.content.iter_any():
                        await response.write(part)
                    await response.write_eof()
                    return response
            except Unreachable as away:
                if response is None or not response.prepared:
                    return error(503, str(away), "UNAVAILABLE")
                raise ConnectionResetError from None  # The visitor sees that it is not whole.

    @contextlib.contextmanager
    def _stream(self, session: Session) -> Iterator[bool]:
        """Counts this request among those of its session, with which it ends. False: there are too many."""
        task = asyncio.current_task()
        streams = self._streams.setdefault(session.identity, set())
        if task is None or len(streams) >= _STREAMS_MAX:
            yield False
            return
        streams.add(task)
        try:
            yield True
        finally:
            streams.discard(task)
            if not streams and self._streams.get(session.identity) is streams:
                del self._streams[session.identity]

    # Requests for the contents of a file.

    async def _contents(self, request: web.Request) -> web.StreamResponse:
        session = self.guard.session(request)
        if session is None:
            return self.guard.no_session()
        query = request.query
        cut = query.get("cut")
        if cut is not None and not (cut.isascii() and cut.isdecimal() and len(cut) < 19):
            return error(400, f"cut {cut!r} is no number")
        with self._stream(session) as is_one_more:
            if not is_one_more:
                return error(429, _TOO_MANY)
            answer = await self._workers.ask(session, {
                "call": request.match_info["call"], "name": query.get("file", ""), "version": query.get("version"),
                "cut": None if cut is None else int(cut), "query": {key: query.getall(key) for key in query}})
        if answer.status != 200:
            return error(answer.status, answer.message)
        kind = answer.kind if answer.kind in _KINDS else "bin"
        response = web.Response(body=answer.body, content_type=_KINDS[kind], headers={
            "H5mirror-Version": str(answer.version), "H5mirror-Cut": str(answer.cut)})
        if answer.left_out:
            response.headers["H5mirror-Left-Out"] = str(answer.left_out)
        if kind in ("csv", "npy", "tiff"):
            response.headers["Content-Disposition"] = f'attachment; filename="data.{kind}"'
        return response

    # Requests that the program `h5mirror` answers: findings and changes.

    async def _found(self, request: web.Request) -> web.StreamResponse:
        """Ends with its session, and with the process that looks."""
        query, findings = request.query, self._findings
        file, path = query.get("file", ""), query.get("path", "")
        calls: dict[str, Callable[[Session], Awaitable[dict[str, Any]]]] = {
            "diff": lambda session: findings.diff(session, file, query.get("old", ""), query.get("new", "")),
            "history": lambda session: findings.history(session, file, path),
            "blame": lambda session: findings.blame(session, file, path),
            "rights": lambda session: findings.rights(session, file)}
        return await self._told(request, calls[request.match_info["find"]])

    async def _change(self, request: web.Request) -> web.StreamResponse:
        try:
            given = await request.json()
        except (ValueError, RecursionError):
            return error(400, "the body is no JSON")
        return await self._told(request, lambda session: self._changes.answer(session, given))

    async def _told(self, request: web.Request,
                    call: Callable[[Session], Awaitable[dict[str, Any]]]) -> web.StreamResponse:
        session = self.guard.session(request)
        if session is None:
            return self.guard.no_session()
        with self._stream(session) as is_one_more:
            if not is_one_more:
                return error(429, _TOO_MANY)
            try:
                return web.json_response(await _while_wanted(request, call(session)))
            except Refused as refused:
                return error(refused.status, str(refused))

    async def _nothing(self, _request: web.Request) -> web.StreamResponse:
        return error(404, "there is no such path", "NOT_FOUND")


async def _while_wanted(request: web.Request, answer: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """The answer; ConnectionResetError: the visitor has left, and nobody looks for it any more."""
    task = asyncio.ensure_future(answer)
    try:
        while not (await asyncio.wait({task}, timeout=_LEFT_EVERY_S))[0]:
            if has_left(request):
                raise ConnectionResetError
        return task.result()
    finally:
        task.cancel()


def _get(path: str, handler: Handler) -> web.RouteDef:
    """Without HEAD: an event stream has no end that it could tell."""
    return web.get(path, handler, allow_head=False)


def _begun(answer: aiohttp.ClientResponse, target: str, *, is_bytes: bool, is_endless: bool) -> web.StreamResponse:
    """An answer with the status and the headers of the server's answer."""
    response = web.StreamResponse(status=answer.status)
    for name in _OF_BYTES if is_bytes else _OF_JSON:
        if name in answer.headers:
            response.headers[name] = answer.headers[name]
    if is_endless:
        response.content_type = "text/event-stream"
    elif is_bytes:
        response.content_type = "application/octet-stream"
        name = unquote(target, errors="replace").rpartition("/")[2]
        response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    else:
        response.content_type = "application/json"
    return response
