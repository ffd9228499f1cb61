"""`h5mirror web` beside a site, and a visitor as a browser is one: with a cookie, an Origin and no other magic."""

import http.client
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .fits import FITS, Fits
from .process import wait_until
from .site import Site


@contextmanager
def site_with_files(directory: Path, installed: Path, program: str, *names: str) -> Iterator[Fits]:
    """A server without tokens, with what a program has written, once all of `names` are at rest."""
    site = Site(directory, options={"http_listen": "127.0.0.1:0"})
    try:
        site.server.start()
        fits = Fits(site, installed)
        fits.py(program)
        for name in names:
            site.settle(name)
        yield fits
    finally:
        site.close()


class WebPage:
    """The program, started as the package's user does. It is killed with the site."""

    def __init__(self, fits, *options, token: str | None = None, ca: Path | None = None, command: list | None = None, **env):
        """`command` runs it in another way, and has its own flags."""
        site = fits.site
        scheme = "http" if ca is None else "https"
        more = list(options) if ca is None else ["--ca", ca, *options]
        if token is not None:
            secret = site.directory / "web.token"
            secret.touch(mode=0o600)
            secret.write_text(token)
            more += ["--token", f"@{secret}"]
        own = [FITS / "bin" / "python", "-m", "h5mirror", "web", "--server", site.address, "--http",
               f"{scheme}://127.0.0.1:{site.server.http_port}"]
        self.process = site.start([*(command or own), *more], env=fits.env(**env))
        printed = self.process.line()
        self.port, self.key = re.fullmatch(r"h5mirror web: http://127\.0\.0\.1:(\d+)/(?:#key=(.+))?", printed).groups()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def visitor(self, **given) -> "Visitor":
        """A visitor that has signed in; by the printed key, if nothing else is given."""
        visitor = Visitor(self)
        status, said = visitor.sign_in(**(given or {"key": self.key}))
        assert status == 200, said
        return visitor

    def workers(self) -> list[int]:
        """The processes that read files, the spare one among them."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(each) for each in children]


class Visitor:
    def __init__(self, page: WebPage):
        self.page = page
        self.cookie = self.csrf = ""
        self.headers: http.client.HTTPMessage | None = None  # of the last answer

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        status, body, self.headers = self._exchange(path, method, body, **headers)
        return status, body

    def _exchange(self, path: str, method: str = "GET", body: bytes | None = None,
                  **headers: str) -> tuple[int, bytes, http.client.HTTPMessage]:
        connection = http.client.HTTPConnection("127.0.0.1", int(self.page.port), timeout=100)
        more = {key.replace("_", "-"): value for key, value in headers.items()}
        try:
            connection.request(method, path, body, {"Cookie": self.cookie, **more})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def json(self, path: str):
        status, body = self.ask(path)
        assert status == 200, (path, status, body[:2000])
        return json.loads(body)

    def refused(self, path: str) -> tuple[int, str]:
        """The status, and the page's message."""
        status, body = self.ask(path)
        return status, json.loads(body)["message"]

    @staticmethod
    def address(call: str, /, **query) -> str:
        return call + "?" + "&".join(f"{key}={_quoted(str(value))}" for key, value in query.items())

    def post(self, path: str, given, **headers: str) -> tuple[int, dict]:
        """A change, or its preview, as the page's own front end asks for it."""
        own = {"Content_Type": "application/json", "Origin": self.page.origin, "X_H5mirror_CSRF": self.csrf}
        status, body = self.ask(path, "POST", json.dumps(given).encode(), **{**own, **headers})
        return status, json.loads(body)

    def preview(self, **wanted) -> dict:
        status, body = self.post("/api/changes", {**wanted, "preview": True})
        assert status == 200, (status, body)
        return body

    def change(self, shown: dict, **wanted) -> dict:
        """The content of a preview."""
        status, body = self.post("/api/changes", {**wanted, "expected": shown["expected"]})
        assert status == 200, (status, body)
        return body

    def sign_in(self, *, origin: str | None = None, **given) -> tuple[int, dict]:
        status, body = self.ask("/api/session", "POST", json.dumps(given).encode(), Content_Type="application/json",
                                Origin=origin or self.page.origin)
        said = json.loads(body)
        if status == 200:
            self.csrf = said["csrf"]
            self.cookie = self.headers["Set-Cookie"].partition(";")[0]
        return status, said

    def sign_out(self, **headers: str) -> int:
        return self.ask("/api/session", "DELETE", **{"Origin": self.page.origin, "X_H5mirror_CSRF": self.csrf, **headers})[0]

    def look(self, call: str, name: str, path: str = "/", **query) -> tuple[int, bytes]:
        """A call of h5web's."""
        return self.ask(_look(call, name, path, query))

    def answer(self, call: str, name: str, path: str = "/", **query) -> tuple[int, bytes, http.client.HTTPMessage]:
        """As look(), for several threads at once."""
        return self._exchange(_look(call, name, path, query))

    def leave_before_the_answer(self, call: str, name: str, path: str = "/", **query) -> None:
        with socket.create_connection(("127.0.0.1", int(self.page.port)), timeout=100) as link:
            target = _look(call, name, path, query)
            link.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {self.cookie}\r\n\r\n".encode())

    def stream(self, path: str) -> "Stream":
        return Stream(self, path)


class Stream:
    """An event stream that a test reads as far as it likes."""

    def __init__(self, visitor: Visitor, path: str):
        self._socket = socket.create_connection(("127.0.0.1", int(visitor.page.port)), timeout=100)
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {visitor.cookie}\r\n\r\n".encode())
        self.text = ""

    def read_until(self, part: str) -> str:
        while part not in self.text:
            received = self._socket.recv(65536)
            assert received, f"the stream has ended:\n{self.text}"
            self.text += received.decode()
        return self.text

    def is_ended(self) -> bool:
        """Whether the stream ends within the timeout of a socket."""
        try:
            while self._socket.recv(65536):
                continue
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self._socket.close()


def wait_for_version(visitor: Visitor, name: str, version: int) -> None:
    wait_until(lambda: visitor.ask(f"/api/files/{name}")[0] == 200 and
               visitor.json(f"/api/files/{name}").get("newest_version", {}).get("version") == str(version),
               f"{name} gets no version {version}", 60)


def _look(call: str, name: str, path: str, query: dict) -> str:
    pairs = {"file": name, "path": path, **query}
    return f"/api/h5/{call}?" + "&".join(f"{key}={_quoted(str(value))}" for key, value in pairs.items())


def _quoted(text: str) -> str:
    return re.sub(rb"[^A-Za-z0-9._-]", lambda found: b"%%%02X" % found[0][0], text.encode()).decode()
