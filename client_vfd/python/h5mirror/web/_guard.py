"""Checks each request before anything else looks at it, and sets the headers of every answer."""

import traceback
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from ._proxy import LOAD_AGAIN, named_user
from ._refused import Refused, refused_by
from ._sessions import Session, Sessions, is_same
from ._settings import Settings, host_of, is_loopback

# Before there is a session whose value they could have.
_SIGN_INS = ("/api/session", "/api/login", "/api/login/finish")
CSRF_HEADER = "X-H5mirror-CSRF"
_PAGE = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
         "connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
_API = "default-src 'none'; sandbox; frame-ancestors 'none'"


def error(status: int, message: str, code: str = "") -> web.Response:
    """In words, as the server's HTTP says it, and as h5grove does."""
    return web.json_response({"error": {"code": code, "message": message}, "message": message}, status=status)


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Of every answer."""
    headers = response.headers
    is_api = request.path.startswith("/api/")
    headers["Content-Security-Policy"] = _API if is_api else _PAGE
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Referrer-Policy"] = "no-referrer"
    headers["X-Frame-Options"] = "DENY"
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    headers["Permissions-Policy"] = "camera=(), microphone=(), geolocation=()"
    if is_api:
        headers["Cache-Control"] = "no-store"
    headers.pop("Server", None)


def has_left(request: web.Request) -> bool:
    """Whether the visitor's connection is closed."""
    return request.transport is None or request.transport.is_closing()


def _cut_off(request: web.Request) -> web.Response:
    """Cuts an answer off, so that a visitor sees that it is not whole. The response
    reaches nobody; aiohttp would write a raised error into its log."""
    if request.transport is not None:
        request.transport.abort()
    return error(503, "the connection has ended")


def _failed(failed: Exception) -> web.Response:
    """In the except clause of `failed`, which standard error gets."""
    traceback.print_exc()
    refused = refused_by(failed)
    return error(refused.status, str(refused))


class Guard:
    """Finds the visitor of a request, and checks that it comes from our own page."""

    def __init__(self, settings: Settings, sessions: Sessions,
                 end: Callable[[Session], Awaitable[None]] | None = None) -> None:
        """`end` ends a session and what runs for it."""
        self._settings, self._sessions, self._end = settings, sessions, end
        self._hosts = {each.lower() for each in settings.host_names}
        self.name_cookies("")

    def name_cookies(self, port: str) -> None:
        """With the port, as cookies know none."""
        prefix = "__Host-" if self._settings.is_https else ""
        self.cookie, self.login_cookie = f"{prefix}h5mirror{port}", f"{prefix}h5mirror-login{port}"

    @property
    def middleware(self) -> Middleware:
        async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                refusal = await self._refusal(request)
                return await handler(request) if refusal is None else refusal
            except web.HTTPException as raised:
                return error(raised.status, raised.reason)
            except ConnectionError as left:
                if not has_left(request) and request.writer.output_size == 0:
                    return _failed(left)
                return _cut_off(request)
            except Exception as failed:
                if request.writer.output_size > 0:  # An answer has begun: the visitor sees that it is not whole.
                    raise
                return _failed(failed)

        middleware: Middleware = web.middleware(checked)
        return middleware

    def session(self, request: web.Request) -> Session | None:
        """The one of a request's cookie that has not ended, and that is of the user whom a proxy names."""
        session = self._of_cookie(request)
        return session if session is not None and session.user == self.user(request) else None

    def user(self, request: web.Request) -> str:
        """The user that the reverse proxy names; "": no proxy names users for this page. Raises
        Refused."""
        proxy = self._settings.proxy
        return "" if proxy is None else named_user(proxy, request.headers)

    def no_session(self) -> web.Response:
        """For a request that needs one."""
        return error(401, "sign in" if self._settings.proxy is None else LOAD_AGAIN, "UNAUTHENTICATED")

    def _of_cookie(self, request: web.Request) -> Session | None:
        return self._sessions.find(request.cookies.get(self.cookie, ""))

    async def _leave_other_user(self, request: web.Request) -> None:
        """Ends the session of the cookie where the proxy names somebody else. Refused."""
        session = self._of_cookie(request)
        if session is not None and session.user != self.user(request) and self._end is not None:
            await self._end(session)

    async def _refusal(self, request: web.Request) -> web.Response | None:
        host = host_of(request.headers.get("Host", ""))
        if host not in self._hosts and not is_loopback(host):
            return error(421, f"this page is not served under the name {host!r}; `h5mirror web --host-name` allows a name")
        try:
            self.user(request)
        except Refused as refused:
            return error(refused.status, str(refused))
        await self._leave_other_user(request)
        if request.method in ("GET", "HEAD"):
            return None
        if request.method not in ("POST", "DELETE"):
            return error(405, f"no request is a {request.method}")
        return self._refusal_of_change(request)

    def _refusal_of_change(self, request: web.Request) -> web.Response | None:
        if _place_of(request.headers.get("Origin", "")) != request.headers.get("Host", "").lower():
            return error(403, "another site's page has sent this")
        is_json = request.content_type == "application/json" and (request.charset or "utf-8").lower() == "utf-8"
        if request.method == "POST" and not is_json:
            return error(415, "the body must be JSON in UTF-8")
        if request.method == "POST" and request.path in _SIGN_INS:
            return None
        session = self.session(request)
        if session is None:
            return self.no_session()
        if not is_same(request.headers.get(CSRF_HEADER, ""), session.csrf):
            return error(403, "this page is an old one; load it again")
        return None


def _place_of(origin: str) -> str:
    """Host and port; "": it is no origin."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
