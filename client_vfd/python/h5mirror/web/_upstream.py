"""The way to the server's HTTP: each request carries the token of the visitor for whom it is.

In a cluster any server is asked, and sends the request on to the one that has the file. That is followed here, and not left to
the HTTP library, as no library takes a token along to another address.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from ._settings import Settings, is_loopback, is_safe_url

_CONNECT_S = 10.0
# An event stream has a comment every 10 s.
_SILENT_S = 30.0
# A server sends on once. More come while a cell changes its server.
_REDIRECTS_MAX = 4
_REDIRECT = 307
# The status of a server that does not know which server has the file, or cannot reach it. Another
# server may.
_NOT_NOW = 503
# Of a visitor's headers, those that go on to the server.
_PASSED_ON = ("Range", "If-Match", "If-None-Match", "If-Range", "Last-Event-ID")


class Unreachable(Exception):
    """The server does not answer."""


class Upstream:
    """Used by one event loop, and to be closed in it."""

    def __init__(self, settings: Settings) -> None:
        # The one that answered last comes first.
        self._bases = [URL(each) for each in settings.https]
        tls = settings.tls()
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=True if tls is None else tls), cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False, trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_SILENT_S))

    @asynccontextmanager
    async def get(self, token: str | None, path: str, query: str = "",
                  headers: dict[str, str] | None = None) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a GET; path and query as they stand in a request line. Unreachable."""
        more = {name: value for name, value in (headers or {}).items() if name in _PASSED_ON}
        more["Accept-Encoding"] = "identity"  # It goes on as it comes.
        if token is not None:
            more["Authorization"] = f"Bearer {token}"
        response = await self._first_answer(path, query, more)
        server = str(response.url.origin())
        try:
            async with response:
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unreachable(server, error) from None

    async def _first_answer(self, path: str, query: str, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """Of the first server that answers, and not with 503; else the first 503. Unreachable: none answers."""
        away: Unreachable | None = None
        busy: list[aiohttp.ClientResponse] = []
        failed: set[URL] = set()
        try:
            for base in list(self._bases):
                try:
                    response = await self._followed(base, path, query, headers, failed)
                except Unreachable as error:
                    away = away or error
                    continue
                if response.status == _NOT_NOW:
                    busy.append(response)
                    continue
                if base in self._bases[1:]:
                    self._bases.remove(base)
                    self._bases.insert(0, base)
                return response
            if busy:
                return busy.pop(0)
        finally:
            for each in busy:
                each.close()
        assert away is not None
        raise away

    async def _followed(self, base: URL, path: str, query: str, headers: dict[str, str],
                        failed: set[URL]) -> aiohttp.ClientResponse:
        """The answer of a server of the list, or of the server to which it redirects. Raises
        Unreachable, also if a token would go in plain text to another machine. A server that does
        not answer is in `failed` then, and not asked again."""
        if "Authorization" in headers and not is_safe_url(str(base)):
            raise Unreachable(f"{base.origin()}: a token goes there only by https; start `h5mirror web` with --http https://HOST:PORT")
        url = URL.build(scheme=base.scheme, authority=base.raw_authority, path=path, query_string=query, encoded=True)
        for _ in range(_REDIRECTS_MAX + 1):
            if url.origin() in failed:
                raise _unreachable(str(url.origin()), TimeoutError())
            try:
                response = await self._client.get(url, headers=headers, allow_redirects=False)
                if response.status != _REDIRECT:
                    return response
                await response.read()  # So that the connection serves again.
            except (aiohttp.ClientError, TimeoutError) as error:
                failed.add(url.origin())
                raise _unreachable(str(url.origin()), error) from None
            named = response.headers.get("Location", "")
            url = _next(url, named, has_token="Authorization" in headers)
        raise Unreachable(f"{base.origin()}: the servers of the cluster send each other's callers in a circle; try again")

    async def status_of(self, token: str | None) -> tuple[int, str]:
        """The server's opinion of a token: the status of a list, and its message. Raises
        Unreachable."""
        async with self.get(token, "/v1/files", "page_size=1") as response:
            if response.status == 200:
                return 200, ""
            return response.status, await message_of(response)

    async def close(self) -> None:
        await self._client.close()


def _unreachable(server: str, error: Exception) -> Unreachable:
    return Unreachable(f"{server}: {str(error) or 'it does not answer'}; look whether h5mirrord runs there with http_listen, and "
                       "give its address with --http")


def _next(asked: URL, named: str, *, has_token: bool) -> URL:
    """Where a redirect leads. Raises Unreachable: a token must not go there, or no server of a
    cluster redirects like this."""
    try:
        to = URL(named, encoded=True)
        is_ours = to.is_absolute() and to.scheme == asked.scheme and to.raw_path == asked.raw_path and not to.raw_user
        is_private = to.scheme == "https" or all(is_loopback(each.host or "") for each in (asked, to))
    except ValueError:
        is_ours = is_private = False
    if not is_ours:
        raise Unreachable(f"{asked.origin()}: it sends callers to {named!r}, which is no http_address of a server of a cluster")
    if has_token and not is_private:
        raise Unreachable(f"{to.origin()}: {asked.origin()} sends callers there, and a token goes to a named server only by https, "
                          "or on this machine")
    return to


async def message_of(response: aiohttp.ClientResponse) -> str:
    """The words of an error."""
    try:
        body = await response.json(content_type=None)
        return str(body["error"]["message"])
    except (ValueError, KeyError, TypeError, aiohttp.ClientError):
        return f"the server answers {response.status}"
