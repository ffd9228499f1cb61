"""`h5mirror web` without a browser: the rights of visitors, its answers, and attacks by hostile files and pages."""

import json
import os
import signal
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import paths
from harness.fits import FITS, Fits, installed  # noqa: F401
from harness.process import run, wait_until
from harness.site import Site
from harness.web import Visitor, WebPage, site_with_files, wait_for_version

RUNS = """
    for n in (1, 2):
        with h5py.File("run.h5", "w" if n == 1 else "a", driver="h5mirror", config=CONFIG) as f:
            f.require_dataset("lab/d", (200, 1000), "f8")[:] = n
            f["lab"].attrs["pass"] = n
            f.require_dataset("huge", (1 << 20, 1 << 10), "f8", chunks=(1, 1 << 10))
"""
LIVE = """
    with h5py.File("live.h5", "w", driver="h5mirror", config=CONFIG + ";ack_tick=applied") as f:
        f["d"] = np.zeros(1000)
        n = 0
        while True:
            f["d"][:] = n
            f.flush()
            print(n, flush=True)
            sys.stdin.readline()
            n += 1
"""


@pytest.fixture(scope="module")
def fits(tmp_path_factory, installed):  # noqa: F811
    """A server with a file of two versions."""
    with site_with_files(tmp_path_factory.mktemp("web"), installed, RUNS, "run.h5") as fits:
        yield fits


@pytest.fixture(scope="module")
def page(fits):
    return WebPage(fits)


@pytest.fixture
def visitor(page):
    return page.visitor()


# Who gets in.


@pytest.mark.parametrize("path", ["/api/files", "/api/files/run.h5", "/api/files/run.h5/versions", "/api/files/run.h5/events",
                                  "/api/bytes/run.h5@1", "/api/h5/meta?file=run.h5&version=1&path=/"])
def test_nothing_is_told_to_who_has_not_signed_in(page, path):
    assert Visitor(page).refused(path) == (401, "sign in")


def test_the_printed_key_signs_in_and_no_other_text_does(page):
    stranger = Visitor(page)
    assert stranger.json("/api/session")["signed_in"] is False
    for given in ({"key": page.key[:-1]}, {"key": ""}, {"key": [page.key]}, {"token": "any"}, {"token": ""}, {}):
        status, said = stranger.sign_in(**given)
        assert status in (401, 403) and said["message"], given
    visitor = page.visitor()
    assert visitor.json("/api/session")["signed_in"] is True
    visitor.sign_in(key=page.key)
    cookie = visitor.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie


def test_a_page_of_another_site_changes_nothing(page, visitor):
    assert Visitor(page).sign_in(key=page.key, origin="https://evil.example")[0] == 403
    assert Visitor(page).sign_in(key=page.key, origin="null")[0] == 403
    assert Visitor(page).sign_in(key=page.key, origin="http://[::1")[0] == 403
    assert visitor.sign_out(Origin="https://evil.example") == 403
    assert visitor.sign_out(X_H5mirror_CSRF="wrong") == 403
    assert visitor.ask("/api/session", "POST", b'{"key": "x"}', Content_Type="text/plain", Origin=page.origin)[0] == 415
    assert visitor.ask("/api/session", "POST", b'{"key": "x"}', Content_Type="application/json; charset=nonsense",
                       Origin=page.origin)[0] == 415
    assert visitor.ask("/api/session", "PUT", b"{}", Origin=page.origin)[0] == 405
    assert visitor.json("/api/session")["signed_in"] is True


def test_a_name_of_another_site_that_leads_here_is_refused(page, visitor):
    for host in ("evil.example", f"evil.example:{page.port}", "127.0.0.1.evil.example", ""):
        assert visitor.ask("/api/files", Host=host)[0] in (400, 421), host
    assert visitor.ask("/api/files", Host=f"localhost:{page.port}")[0] == 200


def test_every_answer_keeps_other_sites_out(page, visitor):
    for path in ("/", "/files/run.h5", "/api/files", "/api/none", "/none", "/api/h5/meta?file=run.h5&version=1"):
        visitor.ask(path)
        headers = visitor.headers
        assert "default-src 'none'" in headers["Content-Security-Policy"], path
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"], path
        assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer"), path
        assert "Access-Control-Allow-Origin" not in headers, path
        assert ("no-store" in headers.get("Cache-Control", "")) == path.startswith("/api/"), path


@pytest.mark.parametrize("path", ["/../_app.py", "/..%2f_app.py", "/%2e%2e/_app.py", "/assets/../../_app.py", "//etc/passwd",
                                  "/static/index.html", "/_app.py"])
def test_no_path_leads_out_of_the_page_s_own_files(visitor, path):
    status, body = visitor.ask(path)
    assert status in (400, 404) and b"aiohttp" not in body and b"root:" not in body, (status, body[:200])


# Its answers.


def test_lists_states_and_versions_are_the_server_s(fits, visitor):
    assert [each["name"] for each in visitor.json("/api/files")["files"]] == ["run.h5"]
    assert visitor.json("/api/files?match=x*")["files"] == []
    assert visitor.json("/api/files/run.h5")["newest_version"]["version"] == "2"
    assert [each["version"] for each in visitor.json("/api/files/run.h5/versions")["versions"]] == ["2", "1"]
    status, message = visitor.refused("/api/files/other.h5")
    assert status == 404 and "other.h5" in message
    assert visitor.refused("/api/files?state=X")[0] == 400


def test_events_come_as_the_server_tells_them(fits, visitor):
    fits.py("""
    with h5py.File("more.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["x"] = 1
    """)
    stream = visitor.stream("/api/files/more.h5/events")
    assert "text/event-stream" in stream.read_until("event: state\n")
    fits.py("""
    with h5py.File("more.h5", "a", driver="h5mirror", config=CONFIG) as f:
        f["y"] = 1
    """)
    stream.read_until("event: version\n")
    stream.close()


CLOSED_TAB = """
    import asyncio, io, logging
    from aiohttp import web
    from aiohttp.test_utils import TestServer
    from h5mirror.web._guard import Guard
    from h5mirror.web._sessions import Sessions
    from h5mirror.web._settings import Settings

    log = io.StringIO()
    logging.basicConfig(stream=log)
    ended = asyncio.Event()

    async def endless(request):
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b": still here" * 1000)
                await asyncio.sleep(0)
        finally:
            ended.set()

    async def upstream_breaks(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        raise ConnectionResetError

    async def ask(server, path):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET " + path + b" HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n")
        await reader.readuntil(b"h")
        return reader, writer

    async def main():
        app = web.Application(middlewares=[Guard(Settings(server="h:1", http="http://h:1"), Sessions()).middleware])
        app.add_routes([web.get("/endless", endless), web.get("/breaks", upstream_breaks)])
        async with TestServer(app) as server:
            reader, writer = await ask(server, b"/endless")
            writer.transport.abort()
            await ended.wait()
            reader, writer = await ask(server, b"/breaks")
            try:
                rest = await reader.read()
            except ConnectionResetError:
                rest = b""
            print(rest.endswith(b"0\\r\\n\\r\\n"))
            writer.close()

    asyncio.run(main())
    print(repr(log.getvalue()))
"""


def test_a_tab_that_is_closed_leaves_no_line_and_a_broken_answer_is_not_whole(fits):
    assert fits.py(CLOSED_TAB).split() == ["False", "''"]


def test_the_server_is_the_configured_one_and_a_silent_http_is_told_at_once(fits):
    silent = "http://127.0.0.1:1"
    page = WebPage(fits, command=[FITS / "bin" / "python", "-m", "h5mirror", "web", "--http", silent],
                   H5MIRROR_SERVER=fits.site.address)
    wait_until(lambda: silent in page.process.err(), "nothing is said of the server that does not answer", 60)
    line, = page.process.err().splitlines()
    assert "http_listen" in line and "--http" in line, line
    visitor = page.visitor()
    assert visitor.json("/api/session")["server"] == fits.site.address
    status, said = visitor.refused("/api/files")
    assert status == 503 and said in line, (status, said)
    assert visitor.look("meta", "run.h5", version=1)[0] == 200  # By gRPC.


@pytest.mark.parametrize("more, said", [
    (["--http", "unix:/run/h5mirror.sock"], "an http_listen on TCP"), (["--http", "http://h:1"], "which is no server")])
def test_an_address_that_the_page_cannot_use_is_told_with_the_way_out(fits, more, said):
    result = run([FITS / "bin" / "python", "-m", "h5mirror", "web", *more], fits.site.work,
                 env=fits.env(H5MIRROR_SERVER="embedded" if "server" in said else "node7:7447"), timeout=60)
    assert result.code == 2 and said in result.err and len(result.err.splitlines()) == 1, result.describe()


def test_a_download_is_the_version_whole_or_in_a_range(fits, visitor):
    exported = fits.site.export("run.h5", 1).read_bytes()
    status, body = visitor.ask("/api/bytes/run.h5@1")
    assert (status, body == exported) == (200, True)
    assert visitor.headers["Content-Disposition"].startswith("attachment;")
    assert visitor.headers["Content-Type"] == "application/octet-stream"
    status, body = visitor.ask("/api/bytes/run.h5@1", Range="bytes=100-199")
    assert (status, body == exported[100:200]) == (206, True)
    assert visitor.refused("/api/bytes/run.h5@9")[0] == 404


def test_contents_are_those_of_the_version_that_is_asked_for(visitor):
    for version in (1, 2):
        state = {"version": version}
        root = json.loads(visitor.look("meta", "run.h5", **state)[1])
        assert sorted(each["name"] for each in root["children"]) == ["huge", "lab"]
        assert json.loads(visitor.look("attr", "run.h5", "/lab", **state)[1]) == {"pass": version}
        status, data = visitor.look("data", "run.h5", "/lab/d", selection="3,0:4", format="bin", dtype="safe", **state)
        assert (status, struct.unpack("<4d", data)) == (200, (version,) * 4)
        assert json.loads(visitor.look("paths", "run.h5", **state)[1]) == ["/", "/huge", "/lab", "/lab/d"]
        assert json.loads(visitor.look("stats", "run.h5", "/lab/d", **state)[1])["max"] == version
    status, body = visitor.look("data", "run.h5", "/lab/d", selection="0", format="npy", version=1)
    assert status == 200 and body.startswith(b"\x93NUMPY") and "data.npy" in visitor.headers["Content-Disposition"]


def test_a_large_group_is_told_in_part_and_its_paths_whole(fits, visitor):
    fits.py("""
    with h5py.File("large.h5", "w", driver="h5mirror", config=CONFIG) as f:
        for n in range(1003):
            f.create_group(f"large/{n:04}")
        f["large"].attrs["of"] = 1
    """)
    wait_for_version(visitor, "large.h5", 1)
    told = json.loads(visitor.look("meta", "large.h5", "/large", version=1)[1])
    assert visitor.headers["H5mirror-Left-Out"] == "3"
    assert [each["name"] for each in told["children"]] == [f"{n:04}" for n in range(1000)]
    assert (told["name"], told["kind"], told["attributes"][0]["name"]) == ("large", "group", "of")
    visitor.look("meta", "large.h5", "/", version=1)
    assert "H5mirror-Left-Out" not in visitor.headers
    assert len(json.loads(visitor.look("paths", "large.h5", version=1)[1])) == 1005


@pytest.mark.parametrize("call, path, query, expected", [
    ("meta", "/none", {"version": 1}, 404), ("data", "/lab", {"version": 1}, 422), ("meta", "/", {"version": 9}, 404),
    ("meta", "/", {}, 400), ("meta", "/", {"version": "latest"}, 400), ("meta", "/", {"cut": "x"}, 400),
    ("meta", "/", {"version": "0"}, 400), ("meta", "/", {"version": "01"}, 400),
    ("data", "/lab/d", {"version": 1, "selection": "9999"}, 422), ("data", "/lab/d", {"version": 1, "format": "exe"}, 422),
    ("data", "/lab/d", {"version": 1, "selection": "a:b"}, 422), ("data", "/huge", {"version": 1}, 413)])
def test_what_cannot_be_shown_is_told_in_words(visitor, call, path, query, expected):
    status, body = visitor.look(call, "run.h5", path, **query)
    assert status == expected, (status, body[:2000], visitor.headers.as_string())
    assert json.loads(body)["message"] and b"Traceback" not in body, body


def test_a_cut_that_is_not_there_yet_is_gone_and_a_former_one_is_the_newest(fits, visitor):
    """After a close in the store a file's cuts go on at numbers as large as its clock: the page asks the file which cut
    is newer."""
    newest = int(visitor.json("/api/files/run.h5")["last_cut"])
    status, body = visitor.look("meta", "run.h5", cut=newest + 1)
    assert status == 410 and f"cut {newest + 1} is not there" in json.loads(body)["message"], (status, body[:2000])
    status, body = visitor.look("meta", "run.h5", cut=newest)
    assert (status, visitor.headers["H5mirror-Cut"]) == (200, str(newest)), body[:2000]


ANSWERS = """
    from h5mirror.web._workers import Answer, MixedUp, WorkerLost, answer_to
    asked = {"number": 7, "call": "meta", "name": "run.h5", "version": None, "cut": 4, "query": {}}
    right = {**asked, "badge": "b", "status": 200, "kind": "json", "opened_version": 0, "opened_cut": 4}
    def outcome(**other):
        try:
            return answer_to(asked, "b", {**right, **other}, b"x").status
        except WorkerLost as lost:
            return type(lost)
    assert [outcome(), outcome(opened_cut=5), outcome(status=410, opened_cut=0)] == [200, 200, 410]
    for other in ({"number": 6}, {"name": "other.h5"}, {"badge": "c"}, {"badge": None}, {"call": "attr"}, {"cut": None},
                  {"version": "1"}, {"opened_cut": 3}):
        assert outcome(**other) is MixedUp, other
    for other in ({"status": 99}, {"status": "200"}, {"status": None}, {"opened_cut": "4"}, {"opened_cut": True}):
        assert outcome(**other) is WorkerLost, other
    asked["version"] = right["version"] = "2"
    assert [outcome(opened_version=2), outcome(opened_version=3)] == [200, MixedUp]
"""


def test_no_answer_passes_for_that_to_another_request(fits):
    fits.py(ANSWERS)


def test_answers_to_requests_at_once_are_their_own(page):
    """Of two sessions, with visitors that leave before the answer."""
    visitors = [page.visitor() for _ in range(2)]
    too_new = int(visitors[0].json("/api/files/run.h5")["last_cut"]) + 1

    def look(n: int) -> None:
        visitor, version = visitors[n % 2], n // 2 % 2 + 1
        if n % 7 == 0:
            visitor.leave_before_the_answer("meta", "run.h5", version=version)
        asked = {"cut": too_new} if n % 5 == 0 else {"version": version}
        status, body, headers = visitor.answer("attr", "run.h5", "/lab", **asked)
        if n % 5 == 0:
            assert status == 410 and json.loads(body)["message"], (status, body, headers.as_string())
        else:
            assert (status, json.loads(body), headers["H5mirror-Version"]) == (200, {"pass": version}, str(version))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(look, range(120))) == [None] * 120
    assert "thrown away" not in page.process.err()


def test_a_live_cut_is_one_moment_and_the_next_one_is_newer(fits, visitor):
    writer = fits.start(LIVE, talks=True)
    assert writer.line() == "0"

    def cut() -> int:
        return int(visitor.json("/api/files/live.h5")["last_cut"])

    def value(of: int) -> float:
        status, data = visitor.look("data", "live.h5", "/d", format="bin", cut=of)
        assert status == 200, data
        return struct.unpack("<d", data[-8:])[0]

    first = cut()
    assert value(first) == 0
    assert writer.ask("go on") == "1"
    wait_until(lambda: cut() > first, "the next cut is not told", 60)
    assert value(cut()) == 1
    assert value(first) == 0  # The cut that was opened stays as it was.
    writer.kill()


# Attacks by a file or a page.


HOSTILE = """
    secret = os.path.abspath("secret.h5")
    with h5py.File(secret, "w") as f:
        f["x"] = np.frombuffer(b"secret of the host" * 100, "u1")
    with h5py.File("hostile.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f.create_dataset("external", (18,), "u1", external=[(secret, 2048, 18)])
        f["link"] = h5py.ExternalLink(secret, "/x")
        layout = h5py.VirtualLayout((1800,), "u1")
        layout[:] = h5py.VirtualSource(secret, "x", (1800,))
        f.create_virtual_dataset("virtual", layout)
        f.attrs["script"] = "<script>alert(1)</script>"
"""


def test_a_hostile_file_reads_nothing_of_the_page_s_host(fits, visitor):
    fits.py(HOSTILE)
    wait_for_version(visitor, "hostile.h5", 1)
    for path in ("/external", "/link", "/virtual"):
        status, body = visitor.look("data", "hostile.h5", path, version=1, format="bin")
        assert b"secret" not in body, (path, status)
    visitor.look("attr", "hostile.h5", "/", version=1)
    assert visitor.headers["Content-Type"].startswith("application/json")


def test_a_worker_that_dies_ends_one_answer_and_not_the_page(page, visitor):
    assert visitor.look("meta", "run.h5", version=1)[0] == 200
    for pid in page.workers():
        os.kill(pid, signal.SIGKILL)

    def looks() -> bool:
        status, body = visitor.look("meta", "run.h5", version=1)
        assert status in (200, 502, 503), body
        return status == 200

    wait_until(looks, "no other worker reads the file", 60)
    assert visitor.json("/api/files")["files"]


def test_no_secret_stands_where_other_users_can_read(fits, page):
    visitor = page.visitor()
    assert visitor.look("meta", "run.h5", version=1)[0] == 200
    for pid in (page.process.pid, *page.workers()):
        shown = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        assert page.key.encode() not in shown and visitor.cookie.encode() not in shown
    assert visitor.cookie not in page.process.err() + page.process.out()


def test_a_sign_out_ends_streams_and_workers(fits):
    page = WebPage(fits)
    visitor = page.visitor()
    assert visitor.look("meta", "run.h5", version=1)[0] == 200
    wait_until(lambda: len(page.workers()) == 2, "there are not the worker and the spare one", 60)
    stream = visitor.stream("/api/files/run.h5/events")
    stream.read_until("event: state\n")
    assert visitor.sign_out() == 200
    assert stream.is_ended()
    wait_until(lambda: len(page.workers()) == 1, "the worker of the session goes on", 60)
    assert visitor.refused("/api/files") == (401, "sign in")
    page.process.signal(signal.SIGTERM)
    assert page.process.wait(60).code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_page_that_ends_while_a_worker_starts_ends_in_order(fits, number):
    """As Ctrl-C does, the signal goes to all processes of the terminal."""
    page = WebPage(fits)
    page.process.signal(number)
    ended = page.process.wait(60)
    assert (ended.code, ended.err) == (0, "")


def test_a_shared_page_asks_for_tokens_that_mean_something(fits):
    page = WebPage(fits, "--shared")
    assert page.key is None
    status, said = Visitor(page).sign_in(token="any-text")
    assert status == 403 and "asks for no token" in said["message"]


# Tokens.

TABLES = """
[[access]]
files = "**"
users = ["token:robot"]
allow = ["read", "write"]

[[access]]
files = "${user}/**"
allow = ["read"]
"""


class Secured:
    """A server with TLS; `robot` has written a file for anna, and one for bob, who may only read their own."""

    def __init__(self, directory: Path, installed: Path):  # noqa: F811
        secrets = directory / "secrets"
        run([paths.BIN / "h5mirrord", "init", "--dir", secrets, "--host", "127.0.0.1"], directory).ok()
        self.ca = secrets / "ca.pem"
        self.tokens = {}
        for name, rights in (("robot", "read,write"), ("anna", "read"), ("bob", "read")):
            made = run([paths.BIN / "h5mirrord", "token", "add", name, "--tokens-file", secrets / "tokens", "--rights", rights],
                       directory, timeout=30).ok()
            self.tokens[name] = made.out.strip()
        self.site = Site(directory, tables=TABLES, options={
            "tls_cert": secrets / "server.pem", "tls_key": secrets / "server.key", "tokens_file": secrets / "tokens",
            "http_listen": "127.0.0.1:0"})
        self.site.server.start()
        self.fits = Fits(self.site, installed)
        robot = directory / "robot.token"
        robot.touch(mode=0o600)
        robot.write_text(self.tokens["robot"])
        self.fits.py(f"""
    for name in ("anna", "bob"):
        os.makedirs(name)
        with h5py.File(name + "/a.h5", "w", driver="h5mirror", config=CONFIG, ca="{self.ca}", token="@{robot}") as f:
            f.attrs["of"] = name
        """)

    def page(self, *options, **more) -> WebPage:
        return WebPage(self.fits, *options, ca=self.ca, **more)


@pytest.fixture(scope="module")
def secured(tmp_path_factory, installed):  # noqa: F811
    secured = Secured(tmp_path_factory.mktemp("secured"), installed)
    try:
        yield secured
    finally:
        secured.site.close()


def test_each_visitor_of_a_shared_page_has_the_rights_of_the_own_token(secured):
    page = secured.page("--shared")
    visitors = {name: page.visitor(token=secured.tokens[name]) for name in ("anna", "bob")}
    for name, visitor in visitors.items():
        other = "bob" if name == "anna" else "anna"
        assert [each["name"] for each in visitor.json("/api/files")["files"]] == [f"{name}/a.h5"]
        assert json.loads(visitor.look("attr", f"{name}/a.h5", version=1)[1]) == {"of": name}
        for status in (visitor.look("attr", f"{other}/a.h5", version=1)[0], visitor.ask(f"/api/files/{other}%2Fa.h5")[0],
                       visitor.ask(f"/api/files/{other}%2Fa.h5/events")[0], visitor.ask(f"/api/bytes/{other}/a.h5@1")[0]):
            assert status in (403, 404), (name, status)
    said = page.process.out() + page.process.err()
    assert not any(token in said for token in secured.tokens.values())


def test_a_token_that_the_server_does_not_know_signs_nobody_in(secured):
    page = secured.page("--shared")
    for token in (secured.tokens["anna"][:-1], "x", "two words", "line\nline", "\u00e9", "x" * 100_000, "@/etc/hostname"):
        assert Visitor(page).sign_in(token=token)[0] in (401, 413), token[:20]
    assert Visitor(page).sign_in(key="")[0] == 401


def test_the_printed_link_gives_the_rights_of_its_token_and_nobody_sees_the_token(secured):
    page = secured.page(token=secured.tokens["anna"])
    visitor = page.visitor()
    assert [each["name"] for each in visitor.json("/api/files")["files"]] == ["anna/a.h5"]
    assert json.loads(visitor.look("attr", "anna/a.h5", version=1)[1]) == {"of": "anna"}
    for pid in (page.process.pid, *page.workers()):
        shown = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        assert secured.tokens["anna"].encode() not in shown


# Its flags.


@pytest.mark.parametrize("options, words", [
    (["--http", "node7:7448"], "--http 'node7:7448': must be http://HOST:PORT"),
    (["--http", "http://h:1", "--listen", "0.0.0.0"], "other machines need --shared"),
    (["--http", "http://h:1", "--shared", "--token", "@/dev/null"], "leave --token out"),
    (["--http", "http://h:1", "--token", "secret"], "everybody can read a command line"),
    (["--http", "http://h:1", "--read-token", "@/etc/hostname"], "--read-token: stands beside --token"),
    (["--http", "http://h:1", "--workers", "0"], "--workers 0: must be from 1 to 64"),
    (["--http", "http://h:1", "--token", "@/etc/hostname"], "tokens go there, and others could read them on the way"),
    (["--http", "https://h:1|http://127.0.0.1:1", "--shared"], "all servers of a cluster must have http://, or all https://"),
    (["--http", "http://127.0.0.1:1|http://h:1", "--shared"], "give https://HOST:PORT, or an address of this machine"),
    (["--http", "https://h:1", "--ca", "/none.pem"], "No such file")])
def test_wrong_flags_are_told_before_anything_starts(fits, options, words):
    done = fits.site.run([fits.site.python, "-m", "h5mirror", "web", "--server", "h:1", *options], env=fits.env())
    assert done.code == 2 and words in done.err and "Traceback" not in done.err, done.describe()


# The system's program.

FLAGS = """
    from h5mirror.web import _command
    parser = _command.parser()
    print(*sorted(flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")))
"""


def test_the_system_s_program_becomes_the_page_and_keeps_its_flags(fits):
    command = [paths.BIN / "h5mirror", "--server", fits.site.address, "web", "--http",
               f"http://127.0.0.1:{fits.site.server.http_port}"]
    page = WebPage(fits, command=command, H5MIRROR_PYTHON=str(FITS / "bin" / "python"))
    command_line = Path(f"/proc/{page.process.pid}/cmdline").read_bytes().split(b"\0")
    assert command_line[1:4] == [b"-m", b"h5mirror", b"web"], command_line
    visitor = page.visitor()
    assert visitor.json("/api/session")["server"] == fits.site.address
    page.process.signal(signal.SIGTERM)
    assert page.process.wait(60).code == 0


def test_the_system_s_program_takes_no_module_of_the_current_directory(fits):
    planted = fits.site.work / "aiohttp.py"
    planted.write_text("raise SystemExit('planted')")
    try:
        refused = fits.site.run([paths.BIN / "h5mirror", "web", "--workers", "0", "--server", "h:1", "--http", "http://h:1"],
                                env=fits.env(H5MIRROR_PYTHON=str(FITS / "bin" / "python")))
    finally:
        planted.unlink()
    assert refused.code == 2 and "--workers 0: must be from 1 to 64" in refused.err, refused.describe()


def test_the_system_s_program_without_the_package_tells_how_to_get_it(fits):
    python = str(paths.venv_python("3.12.1"))
    refused = fits.site.run([paths.BIN / "h5mirror", "web"], env=fits.site.plain_env() | {"H5MIRROR_PYTHON": python})
    assert refused.code == 3 and f"{python} has no h5mirror, aiohttp, h5grove; build the wheel" in refused.err, refused.describe()


def test_the_system_s_program_lists_the_page_s_flags(fits):
    helped = fits.site.run([paths.BIN / "h5mirror", "help", "web"], env=fits.site.plain_env()).ok().out
    for flag in fits.py(FLAGS).split():
        assert flag in helped, flag
