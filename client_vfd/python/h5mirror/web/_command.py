"""`h5mirror web`: its flags, its beginning and its end."""

import argparse
import asyncio
import contextlib
import html
import os
import signal
import socket
import stat
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ._around import check_hidden
from ._configured import configured_server
from ._settings import SECRET_MAX, TOKEN_MAX, Issuer, Proxy, Settings

if TYPE_CHECKING:
    from ._app import Web

_ENDS_WITHIN_S = 2.0
# Of cli/context/exit_code.h. The unit does not start the page again after the last two.
_FAILURE, _USAGE, _NOT_FOUND = 1, 2, 3
_EXAMPLES = """examples:
  h5mirror web --server node7:7447 --http https://node7:7448 --ca ca.pem --token @token --open
  h5mirror web --server node7:7447 --http https://node7:7448 --ca ca.pem --shared --https \\
    --host-name files.example.org --port 8080
"""


def parser() -> argparse.ArgumentParser:
    """Its flags; those in cli/verbs/verb_web.cc are the same."""
    parser = argparse.ArgumentParser(
        prog="h5mirror web", description="A page that shows the files of a server, their versions, and what is in them.",
        epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", metavar="HOST[:PORT]",
                        help="the server, where workers read files; unix:PATH too (H5MIRROR_SERVER, then server in client.toml)")
    parser.add_argument("--http", required=True, metavar="URL",
                        help="its http_listen, as https://HOST:PORT; of a cluster URL|URL, as --server is HOST|HOST")
    parser.add_argument("--ca", metavar="FILE", help="PEM file with the certificate that signs the server's")
    parser.add_argument("--token", metavar="@FILE", help="whose rights the printed link gives")
    parser.add_argument("--read-token", metavar="@FILE", help="with fewer rights than --token, for processes that read files")
    parser.add_argument("--listen", default="127.0.0.1", metavar="ADDRESS", help="where the page is (127.0.0.1)")
    parser.add_argument("--port", default=0, type=int, help="0: any that is free (0)")
    parser.add_argument("--open", action="store_true", help="opens a browser")
    parser.add_argument("--shared", action="store_true", help="no link: each visitor signs in with a token")
    parser.add_argument("--https", action="store_true", help="browsers come by https, through a reverse proxy")
    parser.add_argument("--host-name", action="append", default=[], metavar="NAME", help="a name that browsers know it by")
    parser.add_argument("--workers", default=8, type=int, metavar="N", help="processes that read files, 1..64 (8)")
    parser.add_argument("--oidc-issuer", metavar="URL", help="where visitors log in: the issuer of the site's single sign-on")
    parser.add_argument("--oidc-client-id", metavar="ID", help="the page's name there")
    parser.add_argument("--oidc-client-secret", metavar="@FILE", help="its secret there, if it is a confidential client")
    parser.add_argument("--oidc-scope", metavar="SCOPE", help="the scope to request (openid offline_access)")
    parser.add_argument("--oidc-id-token", action="store_true", help="the server takes the ID token, not the access token")
    parser.add_argument("--oidc-ca", metavar="FILE", help="PEM of the CA of the issuer (those of the system)")
    parser.add_argument("--proxy-user-header", metavar="NAME", help="header in which a reverse proxy names the user it signed in")
    parser.add_argument("--proxy-secret", metavar="@FILE", help="with the secret that the proxy sends in X-Proxy-Secret")
    parser.add_argument("--proxy-tokens", metavar="DIRECTORY", help="with the token of each user in a file of the user's name")
    parser.add_argument("--proxy-sign-out", metavar="URL", help="where a browser ends its sign-in at the proxy, or a path (none)")
    return parser


def main(arguments: list[str]) -> None:
    """Serves the page until SIGINT or SIGTERM."""
    given = parser().parse_args(arguments)
    try:
        settings = Settings(
            server=given.server or configured_server(), http=given.http, ca=None if given.ca is None else os.path.abspath(given.ca),
            token=_token("--token", given.token),
            read_token=_token("--read-token", given.read_token), listen=given.listen, port=given.port,
            host_names=tuple(given.host_name), is_https=given.https, workers=given.workers,
            is_shared=given.shared or given.proxy_user_header is not None, issuer=_issuer(given), proxy=_proxy(given))
        settings.check()
        if settings.proxy is not None:
            check_hidden(settings, {"--proxy-tokens": settings.proxy.tokens, "--proxy-secret": given.proxy_secret[1:]})
        settings.tls()
        if settings.issuer is not None:
            settings.issuer.tls()
    except (ValueError, OSError) as error:
        _end(_USAGE, str(error))
    try:
        asyncio.run(_serve(settings, is_to_open=given.open))
    except ImportError as error:
        _end(_NOT_FOUND, f"{error}; install the wheel of `./dev wheel` with its extra: pip install \"$(ls build/wheel/*.whl)[web]\"")
    except OSError as error:
        _end(_FAILURE, str(error))


def _end(code: int, message: str) -> NoReturn:
    print(f"h5mirror web: {message}", file=sys.stderr)
    sys.exit(code)


def _issuer(given: argparse.Namespace) -> Issuer | None:
    """ValueError, OSError."""
    more = {"--oidc-client-id": given.oidc_client_id, "--oidc-client-secret": given.oidc_client_secret,
            "--oidc-scope": given.oidc_scope, "--oidc-id-token": given.oidc_id_token, "--oidc-ca": given.oidc_ca}
    if given.oidc_issuer is None:
        for flag, value in more.items():
            if value:
                raise ValueError(f"{flag}: stands beside --oidc-issuer")
        return None
    return Issuer(given.oidc_issuer, given.oidc_client_id or "", given.oidc_scope or Issuer.scope, given.oidc_id_token,
                  None if given.oidc_ca is None else os.path.abspath(given.oidc_ca),
                  _secret("--oidc-client-secret", given.oidc_client_secret))


def _proxy(given: argparse.Namespace) -> Proxy | None:
    """ValueError, OSError."""
    more = {"--proxy-secret": given.proxy_secret, "--proxy-tokens": given.proxy_tokens}
    if given.proxy_user_header is None:
        for flag, value in {**more, "--proxy-sign-out": given.proxy_sign_out}.items():
            if value:
                raise ValueError(f"{flag}: stands beside --proxy-user-header")
        return None
    for flag, value in more.items():
        if not value:
            raise ValueError(f"{flag}: is needed with --proxy-user-header")
    if given.open:
        raise ValueError("--open: browsers come to the address of the reverse proxy, so leave --open out")
    return Proxy(given.proxy_user_header, _secret("--proxy-secret", given.proxy_secret) or "", os.path.abspath(given.proxy_tokens),
                 given.proxy_sign_out or "")


def _token(flag: str, text: str | None) -> str | None:
    """ValueError, OSError."""
    if text is None:
        return None
    with open(_file_of(flag, text), encoding="ascii") as file:
        return file.read(TOKEN_MAX + 2).strip()


def _secret(flag: str, text: str | None) -> str | None:
    """Of a file that only its owner and group may read. It is read once. ValueError, OSError."""
    if text is None:
        return None
    path = _file_of(flag, text)
    with open(path, encoding="ascii") as file:
        if os.fstat(file.fileno()).st_mode & stat.S_IRWXO:
            raise ValueError(f"{flag} {text}: every user may read or change it; run `chmod o-rwx {path}`")
        try:
            return file.read(SECRET_MAX + 2).strip("\r\n")
        except UnicodeDecodeError:
            return ""  # Which is none.


def _file_of(flag: str, text: str) -> str:
    """ValueError."""
    if not text.startswith("@"):
        raise ValueError(f"{flag}: everybody can read a command line, so name the file that holds it, as @FILE")
    return text[1:]


async def _serve(settings: Settings, *, is_to_open: bool) -> None:
    from aiohttp import web

    from ._app import Web

    ended = _signalled()  # Before anybody is told that the page is there.
    page = Web(settings)
    runner = web.AppRunner(page.application(), access_log=None, shutdown_timeout=_ENDS_WITHIN_S)
    await runner.setup()
    try:
        site = web.TCPSite(runner, settings.listen, settings.port)
        await site.start()
        port = runner.addresses[0][1]
        page.guard.name_cookies(f"-{port}")
        host = f"[{settings.listen}]" if ":" in settings.listen else settings.listen
        url = f"http://{host}:{port}/" + (f"#key={page.key}" if page.key else "")
        print(f"h5mirror web: {url}", flush=True)
        _tell_systemd()
        asking = asyncio.create_task(_warn(page))
        with _opened(url) if is_to_open else contextlib.nullcontext():
            await ended.wait()
        asking.cancel()
    finally:
        await runner.cleanup()


async def _warn(page: "Web") -> None:
    """That nothing listens at --http. The page is there all the same, and shows the files once the server is."""
    why = await page.why_unreachable()
    if why:
        print(f"h5mirror web: {why}", file=sys.stderr, flush=True)


def _tell_systemd() -> None:
    """That the page is there, where a unit of Type=notify waits for it: sd_notify(3)."""
    path = os.environ.pop("NOTIFY_SOCKET", "")
    if not path:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.connect("\0" + path[1:] if path.startswith("@") else path)
        link.send(b"READY=1")


def _signalled() -> asyncio.Event:
    """Set by SIGINT and SIGTERM, from now on."""
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    return ended


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
