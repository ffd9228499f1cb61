"""The settings of `h5mirror web`."""

import ipaddress
import os
import re
import ssl
import stat
from dataclasses import dataclass, field
from urllib.parse import urlsplit

# Of gRPC, and so of a token that a header takes.
TOKEN_MAX = 16 << 10
SECRET_MAX = 4096
_PORT = 7447
# By which the reverse proxy shows that a request is its own.
PROOF_HEADER = "X-Proxy-Secret"
_PROOF_MIN = 16
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# With a meaning of their own, which a user's name must not get. Some go on to the server.
_OTHER_HEADERS = ("authorization", "connection", "content-length", "content-type", "cookie", "host", "if-match", "if-none-match",
                  "if-range", "last-event-id", "origin", "range", "transfer-encoding", "upgrade", "x-h5mirror-csrf",
                  PROOF_HEADER.lower())
_PATH = re.compile(r"/([!-.0-\[\]-~][!-\[\]-~]*)?")


@dataclass(frozen=True)
class Issuer:
    """Where visitors log in. Valid as a whole, as Settings are."""

    url: str
    """As the issuer's own tokens write it."""
    client_id: str
    scope: str = "openid offline_access"
    takes_id_token: bool = False
    """The server gets the ID token in place of the access token."""
    ca: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    """By which the issuer knows a confidential client; None: the page is a public one."""

    def check(self) -> None:
        """ValueError."""
        parts = urlsplit(self.url)
        if not is_safe_url(self.url) or parts.query or parts.fragment:
            raise ValueError(f"--oidc-issuer {self.url!r}: must be https://NAME..., as the issuer's own tokens write it")
        if not self.client_id.isprintable() or not self.client_id:
            raise ValueError("--oidc-client-id: is needed with --oidc-issuer: the page's name at the issuer")
        if "openid" not in self.scope.split():
            raise ValueError(f"--oidc-scope {self.scope!r}: must have openid in it")
        if self.client_secret is not None and not is_secret(self.client_secret):
            raise ValueError(f"--oidc-client-secret: its file must have one line of visible ASCII characters, {SECRET_MAX} at most")

    def tls(self) -> ssl.SSLContext | None:
        """OSError: `ca` cannot be read."""
        return ssl.create_default_context(cafile=self.ca) if self.ca is not None else None


@dataclass(frozen=True)
class Proxy:
    """A reverse proxy that signs visitors in, and names each. Valid as a whole, as Settings are."""

    user_header: str
    """With the visitor's name in every request."""
    secret: str = field(repr=False)
    """The value of PROOF_HEADER in every request."""
    tokens: str
    """The directory with the token of each user, in a file of the user's name."""
    sign_out: str = ""
    """Where a browser ends its sign-in at the proxy: a URL, or a path below the page's own address; "": not told."""

    def check(self) -> None:
        """ValueError, OSError."""
        if not _HEADER.fullmatch(self.user_header) or self.user_header.lower() in _OTHER_HEADERS:
            raise ValueError(f"--proxy-user-header {self.user_header!r}: must be a header's name without another meaning, such as "
                             "X-Forwarded-User")
        if len(self.secret) < _PROOF_MIN or not is_secret(self.secret) or " " in self.secret:
            raise ValueError(f"--proxy-secret: its file must have one line of visible ASCII characters, {_PROOF_MIN} to {SECRET_MAX}, "
                             "as `openssl rand -hex 32` prints it")
        mode = os.stat(self.tokens).st_mode
        if not stat.S_ISDIR(mode):
            raise ValueError(f"--proxy-tokens {self.tokens}: is no directory")
        if mode & stat.S_IWOTH:
            raise ValueError(f"--proxy-tokens {self.tokens}: every user may put tokens there; run `chmod o-w {self.tokens}`")
        if self.sign_out and not is_safe_url(self.sign_out) and not _PATH.fullmatch(self.sign_out):
            raise ValueError(f"--proxy-sign-out {self.sign_out!r}: must be https://NAME..., or a path of the page's own address")


@dataclass(frozen=True)
class Settings:
    """Valid as a whole: check() has been called."""

    server: str
    """Where workers read files: HOST[:PORT] or unix:PATH; of a cluster several, with | between them."""
    http: str
    """Where lists, states and bytes come from: the URL of the server's http_listen; of a cluster several, likewise."""
    ca: str | None = None
    token: str | None = field(default=None, repr=False)
    """The token of the user who started the page itself, not "@FILE"."""
    read_token: str | None = field(default=None, repr=False)
    """In its place for processes that read HDF5."""
    listen: str = "127.0.0.1"
    port: int = 0
    """0: any."""
    host_names: tuple[str, ...] = ()
    """The names that Host may have, beside those of loopback."""
    is_shared: bool = False
    """Every visitor has a token; there is no key."""
    is_https: bool = False
    """Browsers come by https, through a reverse proxy."""
    workers: int = 8
    issuer: Issuer | None = None
    proxy: Proxy | None = None
    """None: no proxy names visitors."""

    def check(self) -> None:
        """ValueError: what is wrong, and what to give instead. OSError: the proxy's tokens cannot be looked for."""
        self._check_http()
        try:
            _ = self.server_ports
        except ValueError:
            raise ValueError(f"--server {self.server!r}: must be HOST[:PORT] or unix:PATH") from None
        shared = "--shared" if self.proxy is None else "--proxy-user-header"
        if self.is_shared and any(each.startswith("unix:") for each in self.servers):
            raise ValueError(f"{shared}: workers that come by a Unix socket may count as the user who started this; give --server "
                             "HOST:PORT")
        if self.is_shared and self.token is not None:
            raise ValueError(f"{shared} and --token: each visitor has a token, so leave --token out")
        if self.read_token is not None and self.token is None:
            raise ValueError("--read-token: stands beside --token, for what only reads")
        for flag, token in (("--token", self.token), ("--read-token", self.read_token)):
            if token is not None and not is_token(token):
                raise ValueError(f"{flag}: must be one line of visible ASCII characters")
        if not is_loopback(self.listen) and not (self.is_shared and self.is_https and self.host_names):
            raise ValueError(f"--listen {self.listen}: other machines need --shared, --https (behind a proxy that has the "
                             "certificate) and --host-name NAME")
        if self.issuer is not None:
            self.issuer.check()
        if self.proxy is not None:
            if self.issuer is not None:
                raise ValueError("--proxy-user-header and --oidc-issuer: the proxy signs visitors in, so leave one of them out")
            self.proxy.check()
        if not 1 <= self.workers <= 64:
            raise ValueError(f"--workers {self.workers}: must be from 1 to 64")
        takes_tokens = self.is_shared or self.token is not None or self.issuer is not None
        if takes_tokens and not all(is_safe_url(url) for url in self.https):
            raise ValueError(f"--http {self.http!r}: tokens go there, and others could read them on the way; give https://HOST:PORT, "
                             "or an address of this machine such as http://127.0.0.1:7448")

    def _check_http(self) -> None:
        """ValueError."""
        for url in self.https:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query or parts.username:
                raise ValueError(f"--http {self.http!r}: must be http://HOST:PORT or https://HOST:PORT, of the server's "
                                 "http_listen; the page needs an http_listen on TCP, such as 127.0.0.1:7448, and none on a Unix "
                                 "socket")
        if len({urlsplit(url).scheme for url in self.https}) > 1:
            raise ValueError(f"--http {self.http!r}: all servers of a cluster must have http://, or all https://")

    @property
    def servers(self) -> tuple[str, ...]:
        """Those of `server`."""
        return tuple(each.strip() for each in self.server.split("|"))

    @property
    def https(self) -> tuple[str, ...]:
        """Those of `http`."""
        return tuple(each.strip().rstrip("/") for each in self.http.split("|"))

    @property
    def server_ports(self) -> tuple[int, ...]:
        """The ports of `servers`; a Unix socket has none."""
        ports = (urlsplit(f"//{each}").port or _PORT for each in self.servers if not each.startswith("unix:"))
        return tuple(dict.fromkeys(ports))

    def tls(self) -> ssl.SSLContext | None:
        """Of the way to the server's HTTP. OSError: `ca` cannot be read."""
        return ssl.create_default_context(cafile=self.ca) if self.http.startswith("https:") else None


def is_token(text: str) -> bool:
    """True: the text can stand in a header. "@FILE" cannot: drivers and programs would read that
    file."""
    return (0 < len(text) <= TOKEN_MAX and text.isascii() and all("!" <= each <= "~" for each in text)
            and not text.startswith("@"))


def is_secret(text: str) -> bool:
    """Whether it can be a client's secret (RFC 6749, A.2)."""
    return 0 < len(text) <= SECRET_MAX and all(" " <= each <= "~" for each in text)


def is_safe_url(text: str) -> bool:
    """Whether nobody between can read or change what goes there."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    return text.isprintable() and bool(host) and not parts.username and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """The name in a Host header, in lower case and without the port; "": no name."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""
