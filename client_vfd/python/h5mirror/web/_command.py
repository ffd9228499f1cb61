"""`h5mirror web`: its flags, its beginning and its end."""

import argparse
import asyncio
import contextlib
import html
import os
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from ._settings import TOKEN_MAX, Settings

_ENDS_WITHIN_S = 2.0
_EXAMPLES = """examples:
  h5mirror web --server node7:7447 --http http://node7:7448 --token @token --open
  h5mirror web --server node7:7447 --http https://node7:7448 --ca ca.pem --shared --https \\
    --host-name files.example.org --port 8080
"""


def main(arguments: list[str]) -> None:
    """Serves the page until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="h5mirror web", description="A page that shows the files of a server, their versions, and what is in them.",
        epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, metavar="HOST[:PORT]",
                        help="the server, where workers read files; unix:PATH too")
    parser.add_argument("--http", required=True, metavar="URL", help="its http_listen, as http://HOST:PORT")
    parser.add_argument("--ca", metavar="FILE", help="PEM file with the certificate that signs the server's")
    parser.add_argument("--token", metavar="@FILE", help="whose rights the printed link gives")
    parser.add_argument("--listen", default="127.0.0.1", metavar="ADDRESS", help="where the page is (127.0.0.1)")
    parser.add_argument("--port", default=0, type=int, help="0: any that is free (0)")
    parser.add_argument("--open", action="store_true", help="opens a browser")
    parser.add_argument("--shared", action="store_true", help="no link: each visitor signs in with a token")
    parser.add_argument("--https", action="store_true", help="browsers come by https, through a reverse proxy")
    parser.add_argument("--host-name", action="append", default=[], metavar="NAME", help="a name that browsers know it by")
    parser.add_argument("--workers", default=8, type=int, metavar="N", help="processes that read files, 1..64 (8)")
    given = parser.parse_args(arguments)
    try:
        settings = Settings(
            server=given.server, http=given.http.rstrip("/"), ca=None if given.ca is None else os.path.abspath(given.ca),
            token=None if given.token is None else _token(given.token), listen=given.listen, port=given.port,
            host_names=tuple(given.host_name), is_shared=given.shared, is_https=given.https, workers=given.workers)
        settings.check()
        settings.tls()
    except (ValueError, OSError) as error:
        sys.exit(f"h5mirror web: {error}")
    try:
        asyncio.run(_serve(settings, is_to_open=given.open))
    except ImportError as error:
        sys.exit(f"h5mirror web: {error}; install the package with its extra: pip install 'h5mirror[web]'")
    except OSError as error:
        sys.exit(f"h5mirror web: {error}")


def _token(text: str) -> str:
    """ValueError, OSError."""
    if not text.startswith("@"):
        raise ValueError("--token: everybody can read a command line, so name the file that holds it, as @FILE")
    with open(text[1:], encoding="ascii") as file:
        return file.read(TOKEN_MAX + 2).strip()


async def _serve(settings: Settings, *, is_to_open: bool) -> None:
    from aiohttp import web

    from ._app import Web

    page = Web(settings)
    runner = web.AppRunner(page.application(), access_log=None, shutdown_timeout=_ENDS_WITHIN_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.listen, settings.port)
        await site.start()
        port = runner.addresses[0][1]
        page.guard.cookie = f"{'__Host-' if settings.is_https else ''}h5mirror-{port}"
        host = f"[{settings.listen}]" if ":" in settings.listen else settings.listen
        url = f"http://{host}:{port}/" + (f"#key={page.key}" if page.key else "")
        print(f"h5mirror web: {url}", flush=True)
        with _opened(url) if is_to_open else contextlib.nullcontext():
            await _until_ended()
    finally:
        await runner.cleanup()


async def _until_ended() -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()


@contextlib.contextmanager
def _opened(url: str) -> Iterator[None]:
    """A browser at a url, which does not stand on its command line: a page that only this user can read leads there."""
    with tempfile.TemporaryDirectory(prefix="h5mirror-web-") as directory:
        page = Path(directory) / "open.html"
        page.write_text(f'<!doctype html><meta charset="utf-8"><title>h5mirror</title>'
                        f'<meta http-equiv="refresh" content="0; url={html.escape(url)}">'
                        f'<a href="{html.escape(url)}">h5mirror</a>\n')
        page.chmod(0o600)
        webbrowser.open(page.as_uri())
        yield
