"""The way to the server's HTTP: each request carries the token of the visitor for whom it is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from ._settings import Settings

_CONNECT_S = 10.0
# An event stream has a comment every 10 s.
_SILENT_S = 30.0
# Of a visitor's headers, those that go on to the server.
_PASSED_ON = ("Range", "If-Match", "If-None-Match", "If-Range", "Last-Event-ID")


class Unreachable(Exception):
    """The server does not answer."""


class Upstream:
    """Used by one event loop, and to be closed in it."""

    def __init__(self, settings: Settings) -> None:
        self._server = settings.http
        self._base = URL(settings.http)
        tls = settings.tls()
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=True if tls is None else tls), cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False, trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_SILENT_S))

    @asynccontextmanager
    async def get(self, token: str | None, path: str, query: str = "",
                  headers: dict[str, str] | None = None) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a GET; path and query as they stand in a request line. Unreachable."""
        url = URL.build(scheme=self._base.scheme, authority=self._base.raw_authority, path=path, query_string=query, encoded=True)
        more = {name: value for name, value in (headers or {}).items() if name in _PASSED_ON}
        more["Accept-Encoding"] = "identity"  # It goes on as it comes.
        if token is not None:
            more["Authorization"] = f"Bearer {token}"
        try:
            async with self._client.get(url, headers=more, allow_redirects=False) as response:
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unreachable(f"{self._server}: {str(error) or 'it does not answer'}; look whether h5mirrord runs there with "
                              "http_listen, and give its address with --http") from None

    async def status_of(self, token: str | None) -> tuple[int, str]:
        """What the server thinks of a token: the status of a list, and what it says. Unreachable."""
        async with self.get(token, "/v1/files", "page_size=1") as response:
            if response.status == 200:
                return 200, ""
            return response.status, await message_of(response)

    async def close(self) -> None:
        await self._client.close()


async def message_of(response: aiohttp.ClientResponse) -> str:
    """The words of an error."""
    try:
        body = await response.json(content_type=None)
        return str(body["error"]["message"])
    except (ValueError, KeyError, TypeError, aiohttp.ClientError):
        return f"the server answers {response.status}"
