"""Three servers on one root with two cells, asked by HTTP: a client may ask any server, and the one that has the file
answers."""

import json
import signal
import ssl
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harness import fits as fits_of, hdf5, paths
from harness.fits import Fits, installed  # noqa: F401
from harness.process import run, wait_until
from harness.web import WebPage

import test_cluster_operations

NAMES = ("x/one.h5", "x/two.h5", "y/three.h5")
WRITE = """
    os.makedirs("x", exist_ok=True); os.makedirs("y", exist_ok=True)
    for name in ("x/one.h5", "x/two.h5", "y/three.h5"):
        for n in (1, 2):
            with h5py.File(name, "w" if n == 1 else "a", driver="h5mirror", config=CONFIG) as f:
                f.require_dataset("d", (100, 100), "f8")[:] = n
"""


FLUSHED_ONCE = """
    with h5py.File("x/live.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["x"] = 1
        f.flush()
        print("flushed", flush=True)
        sys.stdin.readline()
"""


class Trio(test_cluster_operations.Trio):
    """Servers `a`, `b` and `c` with HTTP; no two cells have one server."""

    def __init__(self, directory, tokens=None):
        self._tokens = {} if tokens is None else {"tokens_file": tokens}
        super().__init__(directory)
        self.owner_x = self.owner("x")
        self.owner_y = next(node for node in "abc" if node != self.owner_x)
        if self.owner("y") != self.owner_y:
            self.cli("cluster", "move", "y", self.owner_y).ok()
            wait_until(lambda: self.owner("y") == self.owner_y, "y does not move", 60)
        self.third = self.other_than(self.owner_x, self.owner_y)
        for node in "abc":
            for cell in ("x", "y"):
                wait_until(lambda: self.ask(node, f"/v1/files?directory={cell}")[0] != 503, f"{node} does not know {cell}", 60)

    def _options(self, node) -> dict:
        return {**super()._options(node), "http_listen": "127.0.0.1:0", **self._tokens}

    def base(self, node: str) -> str:
        return f"http://127.0.0.1:{self.servers[node].http_port}"

    def ask(self, node: str, path: str, **headers: str):
        """Status, body and headers, without following."""
        return _ask(self.base(node) + path, **headers)

    def follow(self, node: str, path: str, **headers: str):
        """The same, from the server that has the file."""
        url = self.base(node) + path
        for _ in range(4):
            status, body, answered = _ask(url, **headers)
            if status != 307:
                return status, body, answered
            url = answered["Location"]
        raise AssertionError(f"too many redirects, the last one to {url}")

    def names(self, node: str, query: str = "") -> list:
        """The rows of all pages, as a client of HTTP gets them: each page from the server that was asked first."""
        found, token = [], ""
        while True:
            status, body, _ = self.follow(node, f"/v1/files?{query}page_token={token}")
            assert status == 200, body
            page = json.loads(body)
            found += [each["name"] for each in page["files"]]
            token = page["next_page_token"]
            if not token:
                return found


class Stranger(ThreadingHTTPServer):
    """A server of HTTP that answers everything with one status. 0: in no words of HTTP. It leads to the path that it was asked
    for, at `leads_to`. `tls`: the directory of `h5mirrord init`."""

    daemon_threads = True

    def __init__(self, status: int, leads_to: str = "", *, tls: Path | None = None):
        stranger = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802
                stranger.asked.append(self.path)
                stranger.tokens.append(self.headers.get("Authorization"))
                if status == 0:
                    self.wfile.write(b"nothing\r\n\r\n")
                    return
                self.send_response(status)
                if leads_to:
                    self.send_header("Location", leads_to + self.path)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.asked: list[str] = []
        self.tokens: list[str | None] = []  # that came with them
        super().__init__(("127.0.0.1", 0), Handler)
        self.scheme = "http" if tls is None else "https"
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls / "server.pem", tls / "server.key")
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def base(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *args):
        self.shutdown()
        super().__exit__(*args)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def _ask(url: str, **headers: str):
    request = urllib.request.Request(url, headers={key.replace("_", "-"): value for key, value in headers.items()})
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=60) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


@pytest.fixture
def fits(tmp_path, installed):  # noqa: F811
    """Expects the bytes that a program has written, through any server."""
    trio = Trio(tmp_path)
    try:
        trio.site.server = trio.servers[trio.third]
        fits = Fits(trio.site, installed)
        fits.trio = trio
        fits.py(WRITE)
        for name in NAMES:
            trio.site.settle(name)
        yield fits
    finally:
        trio.close()


def test_any_server_leads_to_a_file(fits):
    trio = fits.trio
    status, body, headers = trio.ask(trio.third, "/f/x/one.h5@1", Range="bytes=0-7")
    assert status == 307 and json.loads(body)["error"]["code"] == "UNAVAILABLE"
    to = urlsplit(headers["Location"])
    assert f"{to.scheme}://{to.netloc}" == trio.base(trio.owner_x) and to.path == "/f/x/one.h5@1"
    assert {each["id"]: each["http"] for each in trio.status()["servers"]} == {node: trio.base(node) for node in "abc"}
    text = trio.cli("cluster", "status").ok().out
    assert all(len(line) <= 80 for line in text.splitlines()), text
    for node in "abc":
        status, body, headers = trio.follow(node, "/f/x/one.h5@1", Range="bytes=0-7")
        assert (status, body) == (206, b"\x89HDF\r\n\x1a\n") and headers["H5mirror-Version"] == "1"
        assert json.loads(trio.follow(node, "/v1/files/y/three.h5")[1])["newest_version"]["version"] == "2"
        assert len(json.loads(trio.follow(node, "/v1/files/y/three.h5/versions")[1])["versions"]) == 2
        assert trio.names(node) == list(NAMES)
        assert trio.names(node, "page_size=1&") == list(NAMES)
        assert trio.names(node, "details=true&") == list(NAMES)
        assert trio.names(node, "directory=y&") == ["y/three.h5"]
        assert trio.names(node, "match=*/t*&") == ["x/two.h5", "y/three.h5"]
        assert trio.follow(node, "/f/x/none.h5")[0] == 404
    # Also to a file that a program has flushed only once, while a server was naming another server.
    writer = fits.start(FLUSHED_ONCE, talks=True)
    assert writer.line() == "flushed"
    wait_until(lambda: "x/live.h5" in trio.names(trio.third), "the flush does not come", 60)
    writer.kill()


def test_a_file_is_found_again_after_a_takeover(fits):
    """Its server is killed. Another one takes the cell, and the third one leads there; a version keeps its tag."""
    trio = fits.trio
    tag = trio.follow(trio.third, "/f/x/one.h5@1")[2]["ETag"]
    trio.servers[trio.owner_x].kill9()

    def leads_to_one_that_lives(node: str) -> bool:
        """Each server learns of the loss, and of the next one, when it looks at the registry."""
        status, body, headers = trio.ask(node, "/f/x/one.h5@1", If_Match=tag)
        if status == 503:
            assert headers["Retry-After"], body
        if status == 307 and headers["Location"].startswith(trio.base(trio.owner_x)):
            return False  # It does not know of the loss yet.
        return status == 200 or (status == 307 and _ask(headers["Location"], If_Match=tag)[0] == 200)

    for node in (trio.third, trio.owner_y):
        wait_until(lambda: leads_to_one_that_lives(node), f"{node} leads to nobody who has the file", 90)
    for node in {trio.third, trio.owner_y}:
        status, _, headers = trio.follow(node, "/f/x/one.h5@1", If_None_Match=tag)
        assert status == 304 and headers["ETag"] == tag
        assert trio.names(node) == list(NAMES)


def test_a_stream_of_events_ends_with_its_server(fits):
    """Where a cell moves, its streams end, and the client is sent to the next server when it comes back."""
    trio = fits.trio
    request = urllib.request.Request(trio.base(trio.owner_x) + "/v1/files/x/one.h5/events")
    with urllib.request.urlopen(request, timeout=60) as stream:
        assert stream.readline() == b"event: state\n"
        place = stream.readline().decode().removeprefix("id: ").strip()
        trio.cli("cluster", "move", "x", trio.third).ok()
        try:
            while stream.readline():
                continue
        except OSError:
            pass  # It has no end of its own: the connection does.
    wait_until(lambda: trio.ask(trio.owner_x, "/v1/files/x/one.h5")[0] == 307, "it does not know the next server", 60)
    status, _, headers = trio.ask(trio.owner_x, "/v1/files/x/one.h5/events")
    assert status == 307 and headers["Location"].startswith(trio.base(trio.third))
    # The registry has the move first. Then the next server opens the cell.
    wait_until(lambda: trio.ask(trio.third, "/v1/files/x/one.h5")[0] == 200, "the next server does not serve the file", 60)
    again = urllib.request.Request(headers["Location"], headers={"Last-Event-ID": place})
    with urllib.request.urlopen(again, timeout=60) as stream:
        assert stream.readline() == b"event: state\n"


def test_a_page_shows_the_files_of_all_servers(fits):
    trio = fits.trio
    http = "|".join(trio.base(node) for node in "abc")
    server = "|".join(trio.servers[node].address for node in "abc")
    page = WebPage(fits, "--server", server, "--http", http)
    visitor = page.visitor()
    files = visitor.json("/api/files?details=true")
    while files["next_page_token"]:
        more = visitor.json(visitor.address("/api/files", details="true", page_token=files["next_page_token"]))
        files = {"files": files["files"] + more["files"], "next_page_token": more["next_page_token"]}
    assert [each["name"] for each in files["files"]] == list(NAMES)
    for name in NAMES:
        assert visitor.json(f"/api/files/{name}")["newest_version"]["version"] == "2"
        assert visitor.ask(f"/api/bytes/{name}@1", Range="bytes=0-3") == (206, b"\x89HDF")
        status, body = visitor.look("data", name, "/d", version=1, selection="0,0:2", format="json")
        assert (status, json.loads(body)) == (200, [1, 1]), body
        assert visitor.json(visitor.address("/api/diff", file=name, old=1, new=2))["changes"]
    # It goes past servers that do not help, and asks none of them twice.
    with Stranger(503) as busy, Stranger(0) as lost, Stranger(307, lost.base) as one, Stranger(307, lost.base) as other:
        page = WebPage(fits, "--server", server, "--http", "|".join((busy.base, one.base, other.base, http)))
        guest = page.visitor()
        status, body = guest.ask("/api/bytes/y/three.h5@1", Range="bytes=0-3")
        assert (status, body) == (206, b"\x89HDF"), body
        assert busy.asked and len(busy.asked) == len(one.asked) == len(other.asked) == len(lost.asked)
    # The page goes on when a server is lost, also the one that it asks first.
    trio.servers[trio.owner_x].process.signal(signal.SIGKILL)
    trio.servers[trio.owner_x].process.wait(30)
    wait_until(lambda: visitor.ask("/api/files/x/one.h5")[0] == 200, "the page does not find the file again", 90)
    status, body = visitor.look("data", "x/one.h5", "/d", version=2, selection="0,0:2", format="json")
    assert (status, json.loads(body)) == (200, [2, 2]), body


# Where a token goes.

TOKEN = "secret-of-the-visitor"
ELSEWHERE = "http://192.0.2.7:7448"  # Of no machine (RFC 5737).
NOT_OURS = "which is no http_address of a server of a cluster"
ASK = """
import asyncio, sys
from h5mirror.web._settings import Settings
from h5mirror.web._upstream import Unreachable, Upstream
async def ask():
    upstream = Upstream(Settings(server="node7:7447", http=sys.argv[1], ca=sys.argv[2] or None))
    try:
        print((await upstream.status_of(sys.argv[3]))[0])
    except Unreachable as refused:
        print(refused)
    finally:
        await upstream.close()
asyncio.run(ask())
"""


@pytest.fixture
def asked(tmp_path, installed):  # noqa: F811
    """What the page hears about an address, and where it sends a visitor's token."""
    def ask(http: str, ca: Path | str = "") -> str:
        command = [fits_of.FITS / "bin" / "python", "-c", ASK, http, ca, TOKEN]
        return run(command, tmp_path, env=hdf5.plain_env(PYTHONPATH=str(installed)), timeout=60).ok().out

    return ask


def test_a_token_does_not_follow_to_another_machine_by_http(asked):
    with Stranger(307, ELSEWHERE) as leader:
        said = asked(leader.base)
        assert "a token goes to a named server only by https" in said and ELSEWHERE in said and TOKEN not in said, said
        assert leader.tokens == [f"Bearer {TOKEN}"]


def test_a_token_does_not_follow_from_https_to_http(asked, tmp_path):
    secrets = tmp_path / "secrets"
    run([paths.BIN / "h5mirrord", "init", "--dir", secrets, "--host", "127.0.0.1"], tmp_path).ok()
    with Stranger(200) as plain, Stranger(307, plain.base, tls=secrets) as leader:
        assert NOT_OURS in asked(leader.base, secrets / "ca.pem")
        assert leader.tokens == [f"Bearer {TOKEN}"] and plain.asked == []


@pytest.mark.parametrize("change", [lambda base: base.replace("//", "//user@"), lambda base: base + "/elsewhere"],
                         ids=["user", "path"])
def test_a_token_follows_to_the_same_path_and_nobody_s_password(asked, change):
    with Stranger(200) as other, Stranger(307, change(other.base)) as leader:
        assert NOT_OURS in asked(leader.base) and other.asked == []


def test_a_token_follows_on_this_machine(asked):
    """So the refusals above are not those of all redirects."""
    with Stranger(403) as other, Stranger(307, other.base) as leader:
        assert asked(leader.base) == "403\n" and other.tokens == [f"Bearer {TOKEN}"]


def test_a_token_goes_to_no_configured_server_by_http_but_to_this_machine(asked):
    """Of a page that was started without tokens, whose server asks for them later."""
    said = asked(ELSEWHERE)
    assert "a token goes there only by https" in said and TOKEN not in said, said
