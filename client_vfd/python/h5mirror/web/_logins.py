"""The issuer's side of signing in: what the page asks, and what it brings back; and tokens that are renewed meanwhile."""

import asyncio
import dataclasses
import re
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aiohttp import web

from ._guard import Guard, error
from ._refused import Refused
from ._sessions import Grant, Session, Sessions
from ._settings import Settings

if TYPE_CHECKING:
    from ._oidc import Oidc

_RENEWALS_MAX = 8
_COOKIE_S = 600
# A page of ours, and no address that begins with the name of another host.
_PAGE = re.compile(r"/(files/[^\\]*)?")
_PAGE_MAX = 4000
_NONE = "this page has no issuer to log in at; `h5mirror web --oidc-issuer` names one"


class Logins:
    """Used by one event loop. Without an issuer it refuses all."""

    def __init__(self, settings: Settings, sessions: Sessions, guard: Guard) -> None:
        self._settings, self._sessions, self._guard = settings, sessions, guard
        self._oidc: Oidc | None = None

    def open(self) -> None:
        """In the event loop. ImportError: the package has no joserfc."""
        if self._settings.issuer is not None:
            from ._oidc import Oidc

            self._oidc = Oidc(self._settings.issuer)

    async def close(self) -> None:
        if self._oidc is not None:
            await self._oidc.close()

    @property
    def where(self) -> str:
        """The issuer's name, for people; "": there is none."""
        issuer = self._settings.issuer
        return "" if issuer is None else urlsplit(issuer.url).hostname or ""

    async def begin(self, request: web.Request) -> web.StreamResponse:
        """The URL where the browser logs in. The issuer sends it back to this page, under the name that it came by."""
        if self._oidc is None:
            return error(404, _NONE)
        from ._oidc import IssuerAway

        to = (await _object(request)).get("to")
        to = to if isinstance(to, str) and len(to) <= _PAGE_MAX and _PAGE.fullmatch(to) else "/"
        try:
            identity, url = await self._oidc.start(self._address(request, "/login"), to)
        except IssuerAway as away:
            return error(503, str(away), "UNAVAILABLE")
        response = web.json_response({"url": url})
        response.set_cookie(self._guard.login_cookie, identity, path="/", max_age=_COOKIE_S, httponly=True, samesite="Strict",
                            secure=self._settings.is_https)
        return response

    def where_to_end(self, request: web.Request, session: Session) -> str:
        """The URL where the browser ends its login at the issuer, too; "": no issuer gave the session, or it has no such place."""
        if self._oidc is None or session.grant is None:
            return ""
        return self._oidc.sign_out(self._address(request, "/"))

    def _address(self, request: web.Request, path: str) -> str:
        """Of this page, under the name that the request came by."""
        return f"{'https' if self._settings.is_https else 'http'}://{request.headers['Host']}{path}"

    async def finish(self, request: web.Request) -> tuple[Grant, str]:
        """The issuer's grant, and the page that was wanted. Raises Refused."""
        if self._oidc is None:
            raise Refused(404, _NONE)
        from ._oidc import IssuerAway, LoginRefused

        try:
            return await self._oidc.finish(request.cookies.get(self._guard.login_cookie, ""), await _object(request))
        except LoginRefused as refused:
            raise Refused(401, str(refused)) from None
        except IssuerAway as away:
            raise Refused(503, str(away)) from None

    async def renew(self) -> None:
        """Renews tokens when half of their time is over. A session that cannot be renewed ends with
        its token."""
        if self._oidc is None:
            return
        turns = asyncio.Semaphore(_RENEWALS_MAX)

        async def in_turn(oidc: "Oidc", session: Session) -> None:
            async with turns:
                await _renew(oidc, session)

        await asyncio.gather(*(in_turn(self._oidc, each) for each in self._sessions.to_renew()))


async def _renew(oidc: "Oidc", session: Session) -> None:
    from ._oidc import IssuerAway, LoginRefused

    grant = session.grant
    if grant is None:
        return
    try:
        session.take(await oidc.renew(grant))
    except LoginRefused as refused:
        print(f"h5mirror web: a login of {grant.subject!r} is not renewed: {refused}", file=sys.stderr, flush=True)
        session.take(dataclasses.replace(grant, refresh=None))
    except IssuerAway as away:
        print(f"h5mirror web: {away}", file=sys.stderr, flush=True)


async def _object(request: web.Request) -> dict[str, Any]:
    """The body's JSON object; an empty one if the body is no object."""
    try:
        given = await request.json()
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}
