"""The page of `h5mirror web` behind a reverse proxy that names the user: the rights of its visitors, and requests and
names without effect."""

import http.client
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness import paths
from harness.browser import chromium, visit  # noqa: F401
from harness.fits import FITS, Fits, installed  # noqa: F401
from harness.process import run
from harness.reverse_proxy import PROOF, USER, ReverseProxy
from harness.site import Site
from harness.web import Visitor, WebPage, wait_for_version

SECRET = "0123456789abcdef" * 4
FILE = """
    for user in ("anna", "bob"):
        os.makedirs(user)
        with h5py.File(user + "/a.h5", "w", driver="h5mirror", config=CONFIG, token="@{token}") as f:
            f.attrs["of"] = user
    with h5py.File("spy.h5", "w", driver="h5mirror", config=CONFIG, token="@{token}") as f:
        f.create_dataset("d", (8,), "S1", external=[("{spied}", 0, 8)])
"""
TABLES = """
[[access]]
files = "**"
users = ["token:robot"]
allow = ["read", "write"]

[[access]]
files = "anna/**"
users = ["token:anna"]
allow = ["read", "write"]

[[access]]
files = "bob/**"
users = ["token:bob"]
allow = ["read"]
"""


class Person(Visitor):
    """A visitor who comes by a proxy, which names them."""

    def open(self) -> tuple[int, dict]:
        """As a browser that loads the page."""
        status, body = self.ask("/api/session")
        said = json.loads(body)
        if status == 200:
            self.csrf = said["csrf"]
            for cookie in self.headers.get_all("Set-Cookie", []):
                assert "HttpOnly" in cookie and "SameSite=Strict" in cookie, cookie
                self.cookie = cookie.partition(";")[0]
        return status, said

    def names(self) -> list[str]:
        return [each["name"] for each in self.json("/api/files")["files"]]

    def of(self, user: str) -> object:
        """The result of a process that reads files."""
        status, body = self.look("attr", f"{user}/a.h5", version=1)
        return json.loads(body) if status == 200 else status


class Lab:
    """A server with a file of anna's, which she may change, and one of bob's, which he may read; and the page, with the tokens
    of both."""

    def __init__(self, directory: Path, installed: Path):  # noqa: F811
        self.list = directory / "tokens"
        self.made = {name: self.token("add", name, "--rights", "read,write") for name in ("anna", "bob", "robot")}
        robot = self.write(directory / "robot.token", self.made["robot"])
        self.secret = self.write(directory / "proxy.secret", SECRET + "\n")
        self.tokens = directory / "web-tokens"
        self.tokens.mkdir(mode=0o750)
        for user in self.made:
            self.write(self.tokens / user, self.made[user] + "\n")
        self.site = Site(directory, tables=TABLES, options={"tokens_file": self.list, "http_listen": "127.0.0.1:0"})
        self.site.server.start()
        self.fits = Fits(self.site, installed)
        self.fits.py(FILE.replace("{token}", str(robot)).replace("{spied}", str(self.tokens / "bob")))
        settled = WebPage(self.fits, "--shared").visitor(token=self.made["robot"])
        for name in ("anna%2Fa.h5", "bob%2Fa.h5", "spy.h5"):
            wait_for_version(settled, name, 1)
        self.proxies: list[ReverseProxy] = []
        self.page = self.start()

    def token(self, verb: str, name: str, *more: str) -> str:
        command = [paths.BIN / "h5mirrord", "token", verb, name, "--tokens-file", self.list, *more]
        return run(command, self.list.parent, timeout=30).ok().out.strip()

    @staticmethod
    def write(path: Path, text: str, mode: int = 0o600) -> Path:
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def flags(self) -> list:
        return ["--proxy-user-header", USER, "--proxy-secret", f"@{self.secret}", "--proxy-tokens", self.tokens]

    def start(self, *options, **env) -> WebPage:
        return WebPage(self.fits, *self.flags(), *options, **env)

    def proxy(self, user: str, page: WebPage | None = None) -> ReverseProxy:
        """One that has signed this user in."""
        self.proxies.append(ReverseProxy(int((page or self.page).port), SECRET, user))
        return self.proxies[-1]

    def come_as(self, user: str, page: WebPage | None = None) -> Person:
        person = Person(self.proxy(user, page))
        status, said = person.open()
        assert (status, said["signed_in"]) == (200, True), said
        return person

    def close(self) -> None:
        for proxy in self.proxies:
            proxy.close()
        self.site.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory, installed):  # noqa: F811
    lab = Lab(tmp_path_factory.mktemp("proxy"), installed)
    try:
        yield lab
    finally:
        lab.close()


def direct(lab, *headers: tuple[str, str], path: str = "/api/session") -> tuple[int, str]:
    """A request that does not come by a proxy. A header may stand in it twice."""
    link = http.client.HTTPConnection("127.0.0.1", int(lab.page.port), timeout=60)
    try:
        link.putrequest("GET", path)
        for name, value in headers:
            link.putheader(name, value.encode())
        link.endheaders()
        answer = link.getresponse()
        return answer.status, answer.read().decode()
    finally:
        link.close()


# Rights.


def test_a_user_whom_the_proxy_names_has_the_rights_of_the_own_token(lab):
    people = {user: lab.come_as(user) for user in ("anna", "bob")}
    for user, person in people.items():
        other = "bob" if user == "anna" else "anna"
        assert (person.names(), person.of(user)) == ([f"{user}/a.h5"], {"of": user})
        assert person.of(other) in (403, 404)
        assert person.ask(f"/api/bytes/{other}%2Fa.h5@1")[0] in (403, 404)
    tag = {"what": "tag", "file": "anna/a.h5", "version": "1", "tag": "mine"}
    assert "tag mine" in people["anna"].change(people["anna"].preview(**tag), **tag)["says"]
    shown = people["bob"].preview(**{**tag, "file": "bob/a.h5"})
    status, said = people["bob"].post("/api/changes", {**tag, "file": "bob/a.h5", "expected": shown["expected"]})
    assert status == 403, said
    assert people["bob"].post("/api/changes", {**tag, "preview": True})[0] in (403, 404)


def test_no_key_is_printed_and_no_secret_leaves_the_page(lab):
    assert lab.page.key is None
    person = lab.come_as("anna")
    assert person.of("anna") == {"of": "anna"}
    status, body = person.ask("/api/session")
    told = body.decode() + person.headers.as_string() + lab.page.process.out() + lab.page.process.err()
    for pid in (lab.page.process.pid, *lab.page.workers()):
        told += Path(f"/proc/{pid}/cmdline").read_text() + Path(f"/proc/{pid}/environ").read_text()
    assert status == 200
    for secret in (SECRET, *lab.made.values()):
        assert secret not in told


def test_readers_get_at_no_token_but_the_session_s(lab):
    """As HDF5's external storage would, for a file that a stranger has made."""
    begin = lab.made["bob"][:8]
    spied = lab.fits.py("""
    with h5py.File("spy.h5") as f:
        print(b"".join(f["d"][()]).decode())
    """)
    assert spied.strip() == begin  # Where nothing keeps it from that.
    status, body = lab.come_as("robot").look("data", "spy.h5", "/d", version=1)
    assert status != 200 and begin.encode() not in body, (status, body)


# The proof.

NAMED = (USER, "anna")
PROVEN = (PROOF, SECRET)


@pytest.mark.parametrize("headers", [
    [NAMED], [NAMED, (PROOF, "")], [NAMED, (PROOF, "0" * 64)], [NAMED, (PROOF, SECRET[:-1])], [NAMED, (PROOF, SECRET + "0")],
    [NAMED, (PROOF, "ä" * 64)], [NAMED, PROVEN, PROVEN], [NAMED, PROVEN, (PROOF, "x")], []])
@pytest.mark.parametrize("path", ["/", "/login", "/icon.svg", "/signed-out", "/api/session", "/api/files", "/api/none"])
def test_a_request_without_the_proof_is_refused_everywhere(lab, headers, path):
    status, body = direct(lab, *headers, path=path)
    assert status == 403 and "answers its reverse proxy alone" in body, (status, body)


def test_a_session_s_cookie_is_no_proof(lab):
    person = lab.come_as("anna")
    status, body = direct(lab, NAMED, ("Cookie", person.cookie), path="/api/files")
    assert status == 403 and "answers its reverse proxy alone" in body
    thief = Visitor(lab.page)
    thief.cookie, thief.csrf = person.cookie, person.csrf
    assert thief.post("/api/logout", {}, X_Forwarded_User="anna")[0] == 403
    assert person.names() == ["anna/a.h5"]


class Recorder:
    """In place of the server's HTTP: notes the headers of requests."""

    def __init__(self, *, asks_for_token: bool = True):
        self.seen: list[http.client.HTTPMessage] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                recorder.seen.append(self.headers)
                self.send_response_only(401 if asks_for_token and "Authorization" not in self.headers else 200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def test_the_server_gets_the_token_and_neither_name_nor_proof(lab):
    recorder = Recorder()
    try:
        person = lab.come_as("anna", lab.start("--http", recorder.url))
        assert person.json("/api/files") == {}
        given = [each.get("Authorization") for each in recorder.seen]
        assert given[-1] == f"Bearer {lab.made['anna']}" and {*given} <= {None, given[-1]}
        for headers in recorder.seen:
            assert USER not in headers and PROOF not in headers and "Cookie" not in headers, headers.as_string()
    finally:
        recorder.close()


def test_a_server_that_asks_for_no_token_is_refused(lab):
    recorder = Recorder(asks_for_token=False)
    try:
        status, said = Person(lab.proxy("anna", lab.start("--http", recorder.url))).open()
        assert status == 403 and "the operator has to set its tokens_file" in said["message"], said
    finally:
        recorder.close()


# Names and tokens.


def test_a_user_without_a_token_is_told_so_in_words(lab):
    person = Person(lab.proxy("carl"))
    assert person.ask("/")[0] == 200
    status, said = person.open()
    assert (status, said["message"]) == (
        403, f"carl is signed in at the proxy, but has no token here: ask the operator to put one into {lab.tokens}/carl")
    assert person.refused("/api/files") == (401, "the reverse proxy signs you in: load this page again")
    lab.write(lab.tokens / "carl", lab.made["bob"])  # Read at the sign-in, not at the start.
    try:
        assert person.open()[0] == 200
        assert person.names() == ["bob/a.h5"]
    finally:
        (lab.tokens / "carl").unlink()


@pytest.mark.parametrize("name", [
    "../x", ".x", "x/y", "/x", "..", ".", "", "x" * 129, "x" * 300, "é", "x\u200b", "x y", "x\ty", "web-tokens/../x"])
def test_a_name_that_a_file_should_not_have_is_refused_even_where_there_is_one(lab, name):
    (lab.tokens / "x").mkdir(exist_ok=True)
    made = [lab.write(lab.tokens / each, lab.made["anna"]) for each in ("../x", ".x", "x/y", "x" * 129, "é", "x y", "x\ty")]
    try:
        status, body = direct(lab, (USER, name), PROVEN)
        assert status == 403 and "gives no name that this page takes" in body, (status, body)
        assert direct(lab, (USER, name), PROVEN, path="/")[0] == 403
    finally:
        for each in made:
            each.unlink()
        (lab.tokens / "x").rmdir()


def test_two_names_are_none(lab):
    for names in ((NAMED, (USER, "bob")), (NAMED, NAMED)):
        status, body = direct(lab, *names, PROVEN)
        assert status == 403 and "gives no name that this page takes" in body
    status, body = direct(lab, (USER, "anna,bob"), PROVEN)
    assert status == 403 and "has no token here" in body


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o644, 0o601])
def test_a_token_that_others_may_read_is_refused(lab, mode):
    path = lab.write(lab.tokens / "dora", lab.made["anna"], mode)
    try:
        person = Person(lab.proxy("dora"))
        status, said = person.open()
        assert status == 403 and f"run `chmod o-rwx {path}`" in said["message"], said
        path.chmod(0o640)
        assert person.open()[0] == 200
    finally:
        path.unlink()


@pytest.mark.parametrize("text", ["", "two\nlines", "@/etc/h5mirror/token", "é", "x" * 17000])
def test_a_file_that_holds_no_token_is_told(lab, text):
    path = lab.write(lab.tokens / "dora", text)
    try:
        status, said = Person(lab.proxy("dora")).open()
        assert status == 403 and "has no token, as one line" in said["message"], said
    finally:
        path.unlink()


def test_a_token_s_place_that_is_no_file_is_told(lab):
    (lab.tokens / "eva").mkdir(mode=0o700)
    os.mkfifo(lab.tokens / "finn", 0o600)
    try:
        for user, words in (("eva", "Is a directory"), ("finn", "has no token, as one line")):
            status, said = Person(lab.proxy(user)).open()
            assert status == 403 and words in said["message"], said
    finally:
        (lab.tokens / "eva").rmdir()
        (lab.tokens / "finn").unlink()


def test_a_token_that_the_server_does_not_know_signs_nobody_in(lab):
    path = lab.write(lab.tokens / "dora", "x" * 40)
    try:
        person = Person(lab.proxy("dora"))
        status, said = person.open()
        assert status == 401 and said["message"] and "x" * 40 not in said["message"], said
        assert person.ask("/api/files")[0] == 401
    finally:
        path.unlink()


# Sessions.


def test_a_session_ends_where_the_proxy_names_another_user(lab):
    person = lab.come_as("anna")
    assert person.of("anna") == {"of": "anna"}
    anna, csrf = person.cookie, person.csrf
    stream = person.stream("/api/files/anna%2Fa.h5/events")
    stream.read_until("event: state")
    person.page.user = "bob"
    assert person.refused("/api/files") == (401, "the reverse proxy signs you in: load this page again")
    assert stream.is_ended()
    stream.close()
    person.page.user = "anna"
    assert person.ask("/api/files")[0] == 401  # It has ended, and is not only put aside.
    person.page.user = "bob"
    assert person.open()[0] == 200
    assert person.cookie != anna and person.csrf != csrf
    assert (person.names(), person.of("bob"), person.of("anna") in (403, 404)) == (["bob/a.h5"], {"of": "bob"}, True)


def test_a_change_is_not_made_for_another_user(lab):
    person = lab.come_as("anna")
    tag = {"what": "tag", "file": "anna/a.h5", "version": "1", "tag": "late"}
    expected = person.preview(**tag)["expected"]
    person.page.user = "bob"
    assert person.post("/api/changes", {**tag, "expected": expected})[0] == 401
    person.page.user = "anna"
    assert person.post("/api/changes", {**tag, "expected": expected})[0] == 401
    assert person.open()[0] == 200
    assert "late" not in person.json("/api/files/anna%2Fa.h5/versions")["versions"][0].get("tags", [])


def test_a_user_has_one_session_in_all_browsers_until_the_token_is_another_one(lab):
    first, second = lab.come_as("bob"), lab.come_as("bob")
    assert first.cookie == second.cookie and first.cookie != lab.come_as("anna").cookie
    before = first.cookie
    lab.write(lab.tokens / "bob", lab.made["robot"])
    try:
        assert first.open()[0] == 200 and first.cookie == before  # Of a session that lives no file is read.
        third = lab.come_as("bob")
        assert third.cookie != before and third.names() == ["anna/a.h5", "bob/a.h5", "spy.h5"]
        assert second.ask("/api/files")[0] == 401
    finally:
        lab.write(lab.tokens / "bob", lab.made["bob"])
    assert lab.come_as("bob").names() == ["bob/a.h5"]


def test_a_sign_out_ends_the_session_and_says_that_the_proxy_s_own_remains(lab):
    person = lab.come_as("anna")
    before = person.cookie
    assert person.post("/api/logout", {}, X_H5mirror_CSRF="x")[0] == 403
    assert person.post("/api/logout", {}, Origin="https://evil.example")[0] == 403
    status, said = person.post("/api/logout", {})
    assert (status, said["signed_in"], said["url"]) == (200, False, "/signed-out")
    status, body = person.ask(said["url"])
    assert status == 200 and b"The proxy before it may still know you" in body
    assert "default-src 'none'" in person.headers["Content-Security-Policy"]
    assert person.ask("/api/files")[0] == 401
    assert person.open()[0] == 200 and person.cookie != before


@pytest.mark.parametrize("url", ["/oauth2/sign_out?rd=%2F", "https://sso.example/out"])
def test_a_sign_out_leads_to_the_proxy_s_where_the_page_is_told(lab, url):
    status, said = lab.come_as("anna", lab.start("--proxy-sign-out", url)).post("/api/logout", {})
    assert (status, said["url"]) == (200, url)


def test_nobody_signs_in_another_way(lab):
    person = Person(lab.proxy("carl"))
    for given in ({"token": lab.made["anna"]}, {"key": ""}, {"key": "x"}, {}):
        status, said = person.post("/api/session", given)
        assert status == 403 and "the reverse proxy signs you in" in said["message"], said
    assert person.post("/api/login", {})[0] == 404


# Flags.

WITH = ["--proxy-user-header", USER]
ALL = [*WITH, "--proxy-secret", "@{secret}", "--proxy-tokens", "{tokens}"]


def start(lab, *options: str):
    """The error of a page that does not start with these flags."""
    named = {"secret": lab.secret, "tokens": lab.tokens, "installed": lab.fits.installed}
    command = [FITS / "bin" / "python", "-m", "h5mirror", "web", "--server", "h:1", "--http", "https://h:1"]
    done = lab.site.run([*command, *(each.format(**named) for each in options)], env=lab.fits.env())
    assert done.code == 2 and "Traceback" not in done.err and SECRET not in done.err, done.describe()
    return done.err


@pytest.mark.parametrize("options, words", [
    (["--proxy-secret", "@x"], "stands beside --proxy-user-header"), (["--proxy-tokens", "x"], "stands beside --proxy-user-header"),
    (["--proxy-sign-out", "/x"], "stands beside --proxy-user-header"), (WITH, "--proxy-secret: is needed"),
    ([*WITH, "--proxy-secret", "@{secret}"], "--proxy-tokens: is needed"),
    ([*WITH, "--proxy-secret", SECRET, "--proxy-tokens", "{tokens}"], "can read a command line"),
    ([*ALL, "--proxy-tokens", "/none"], "No such file"), ([*ALL, "--proxy-tokens", "{secret}"], "is no directory"),
    ([*ALL, "--proxy-tokens", "/tmp"], "every user may put tokens there"),
    ([*ALL, "--proxy-tokens", "{installed}"], "processes that read files may read all of {installed}"),
    ([*ALL, "--proxy-tokens", "/usr/share"], "may read all of /usr;"),
    *(([*ALL, "--proxy-user-header", each], "must be a header's name without another meaning")
      for each in ("", "a b", "X:", "é", "Range", "cookie", "X-PROXY-SECRET", "Host", "Last-Event-ID", "X-H5mirror-CSRF")),
    *(([*ALL, "--proxy-sign-out", each], "a path of the page's own address")
      for each in ("//evil.example", "/\\evil.example", "http://sso.example", "javascript:alert(1)", "x", "/a b")),
    ([*ALL, "--open"], "leave --open out"), ([*ALL, "--token", "@{secret}"], "--proxy-user-header and --token"),
    ([*ALL, "--server", "unix:/x"], "give --server HOST:PORT"),
    ([*ALL, "--oidc-issuer", "https://sso.example", "--oidc-client-id", "x"], "--proxy-user-header and --oidc-issuer"),
    ([*ALL, "--listen", "0.0.0.0"], "other machines need")])
def test_wrong_flags_are_told_before_anything_starts(lab, options, words):
    assert words.replace("{installed}", str(lab.fits.installed)) in start(lab, *options)


@pytest.mark.parametrize("text, mode, words", [
    (SECRET, 0o604, "every user may read or change it; run `chmod o-rwx"), ("x" * 15, 0o600, "16 to 4096"), ("", 0o600, "16 to 4096"),
    (SECRET[:32] + "\n" + SECRET[:32], 0o600, "16 to 4096"), (SECRET[:32] + " " + SECRET[:32], 0o600, "16 to 4096"),
    ("é" * 32, 0o600, "16 to 4096"), ("x" * 4097, 0o600, "16 to 4096")])
def test_a_file_that_holds_no_proof_is_refused_before_anything_starts(lab, tmp_path, text, mode, words):
    file = lab.write(tmp_path / "secret", text, mode)
    assert words in start(lab, *ALL, "--proxy-secret", f"@{file}")


# In a browser.


def test_in_a_browser_who_is_signed_in_at_the_proxy_sees_the_files_at_once_and_can_sign_out(chromium, lab):  # noqa: F811
    with visit(chromium, lab.proxy("bob"), "/", is_signed_in=False) as there:
        there.page.get_by_role("link", name="bob/a.h5").wait_for()
        assert there.page.get_by_role("link", name="anna/a.h5").count() == 0
        with there.page.expect_navigation(url=there.origin + "/signed-out"):
            there.page.get_by_role("button", name="Sign out").click()
        there.page.get_by_role("heading", name="Signed out").wait_for()
        assert there.barriers() == []
        there.page.get_by_role("link", name="the page").click()
        there.page.get_by_role("link", name="bob/a.h5").wait_for()
        # A list that was asked for before the session ended.
        there.complaints = [each for each in there.complaints if "401" not in each]


def test_in_a_browser_who_has_no_token_is_told_so(chromium, lab):  # noqa: F811
    with visit(chromium, lab.proxy("carl"), "/", is_signed_in=False) as there:
        there.page.get_by_role("alert").filter(has_text="carl is signed in at the proxy, but has no token here").wait_for()
        assert there.page.get_by_label("Token").count() == 0
        there.complaints = [each for each in there.complaints if "403" not in each]
