"""Visitors whom a reverse proxy signs in: the proof that a request is the proxy's, the name in it, and the token of that name."""

import os
import stat

from aiohttp import web
from multidict import CIMultiDictProxy

from ._refused import Refused
from ._sessions import is_same
from ._settings import PROOF_HEADER, TOKEN_MAX, Proxy, is_token

NAME_MAX = 128
SIGNED_OUT = "/signed-out"
LOAD_AGAIN = "the reverse proxy signs you in: load this page again"
_NO_PROOF = "this page answers its reverse proxy alone: come by the proxy's address"
_NO_NAME = (f"the reverse proxy gives no name that this page takes: 1 to {NAME_MAX} visible ASCII characters, without / and not "
            "beginning with a dot")
_SIGNED_OUT_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Signed out - h5mirror</title>
<link rel="icon" href="/icon.svg">
<main>
<h1>Signed out</h1>
<p>This page has forgotten you. The proxy before it may still know you: then <a href="/">the page</a> signs you in again.</p>
</main>
</html>
"""


def named_user(proxy: Proxy, headers: CIMultiDictProxy[str]) -> str:
    """The visitor's name in a request that shows to be the proxy's. Refused: it does not, or names nobody whom a file could be
    named after."""
    proofs, names = headers.getall(PROOF_HEADER, []), headers.getall(proxy.user_header, [])
    # Each once: of two names one may be the visitor's own.
    if len(proofs) != 1 or not is_same(proofs[0], proxy.secret):
        raise Refused(403, _NO_PROOF)
    if len(names) != 1 or not _is_name(names[0]):
        raise Refused(403, _NO_NAME)
    return str(names[0])


def _is_name(text: str) -> bool:
    return (0 < len(text) <= NAME_MAX and all("!" <= each <= "~" for each in text) and "/" not in text
            and not text.startswith("."))


def token_of(proxy: Proxy, user: str) -> str:
    """By which the server knows a user of named_user(). Refused."""
    path = os.path.join(proxy.tokens, user)
    begin = f"{user} is signed in at the proxy, but "
    try:
        # Of a pipe nobody would write to, an open would not come back.
        with open(path, encoding="ascii", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            mode = os.fstat(file.fileno()).st_mode
            if mode & stat.S_IRWXO:
                raise Refused(403, f"{begin}every user of the page's machine may read or change {path}: ask the operator to run "
                              f"`chmod o-rwx {path}`")
            token = file.read(TOKEN_MAX + 2).strip() if stat.S_ISREG(mode) else ""
    except FileNotFoundError:
        raise Refused(403, f"{begin}has no token here: ask the operator to put one into {path}") from None
    except OSError as error:
        raise Refused(403, f"{begin}the page cannot read {path}: {error.strerror}; ask the operator") from None
    except ValueError:
        token = ""  # It is no ASCII.
    if not is_token(token):
        raise Refused(403, f"{begin}{path} has no token, as one line: ask the operator to put one there")
    return token


async def signed_out(_request: web.Request) -> web.StreamResponse:
    """Where a browser goes that has ended its session."""
    return web.Response(text=_SIGNED_OUT_PAGE, content_type="text/html", headers={"Cache-Control": "no-cache"})
