"""Logins at the site's issuer for the page of `h5mirror web`: the access that they give, their end, and invalid
answers."""

import http.client
import json
import time
import urllib.parse
from pathlib import Path

import pytest

from harness import paths
from harness.browser import chromium, visit  # noqa: F401
from harness.fits import FITS, Fits, installed  # noqa: F401
from harness.issuer import PAGE, Issuer, Key
from harness.process import run, wait_until
from harness.site import Site
from harness.web import Visitor, WebPage, wait_for_version

LIFE_S = 30  # of a token that is to expire
FILE = """
    for user in ("anna", "bob"):
        os.makedirs(user)
        with h5py.File(user + "/a.h5", "w", driver="h5mirror", config=CONFIG, token="@{token}") as f:
            f.attrs["of"] = user
"""
TABLES = """
[[access]]
files = "**"
users = ["token:robot"]
allow = ["read", "write"]

[[access]]
files = "${user}/**"
users = ["jwt:anna", "jwt:bob"]
allow = ["read", "write"]
"""


class Lab:
    """A server that takes the issuer's tokens, with a file of anna's and one of bob's, and a page for both."""

    def __init__(self, directory: Path, installed: Path):  # noqa: F811
        self.issuer = Issuer(directory / "issuer")
        tokens, secret = directory / "tokens", directory / "robot.token"
        made = run([paths.BIN / "h5mirrord", "token", "add", "robot", "--tokens-file", tokens, "--rights", "read,write"],
                   directory, timeout=30).ok()
        secret.touch(mode=0o600)
        secret.write_text(made.out.strip())
        self.site = Site(directory, tables=TABLES, options={
            **self.issuer.options(), "tokens_file": tokens, "http_listen": "127.0.0.1:0"})
        self.site.server.start()
        self.fits = Fits(self.site, installed)
        self.fits.py(FILE.replace("{token}", str(secret)))
        self.robot = made.out.strip()
        self.page = self.start()
        settled = self.page.visitor(token=self.robot)
        for user in ("anna", "bob"):
            wait_for_version(settled, f"{user}%2Fa.h5", 1)

    def start(self, *options) -> WebPage:
        page = WebPage(self.fits, "--shared", "--oidc-issuer", self.issuer.url, "--oidc-client-id", PAGE, *options)
        self.issuer.redirects.append(page.origin + "/login")
        return page

    def start_with_secret(self, secret: str) -> WebPage:
        """As a confidential client. What it tells the issuer is in no file any more."""
        file = self.site.directory / "client.secret"
        file.touch(mode=0o600)
        file.write_text(secret + "\n")
        page = self.start("--oidc-client-secret", f"@{file}")
        file.unlink()
        return page

    def close(self) -> None:
        self.site.close()
        self.issuer.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory, installed):  # noqa: F811
    lab = Lab(tmp_path_factory.mktemp("login"), installed)
    try:
        yield lab
    finally:
        lab.close()


@pytest.fixture(autouse=True)
def right_issuer(lab):
    """The state from the test before must not matter."""
    lab.issuer.user, lab.issuer.audience, lab.issuer.lifetime = "anna", "h5mirror", 600
    lab.issuer.id_claims, lab.issuer.id_key, lab.issuer.is_down = {}, None, False
    lab.issuer.secret, lab.issuer.way, lab.issuer.more_metadata = None, "client_secret_basic", {}
    lab.issuer.sign_outs.clear()


class Person(Visitor):
    """A visitor that logs in."""

    def begin(self, to: object = "/", **headers: str) -> str:
        """Where the page sends the browser."""
        status, said = self.post("/api/login", {"to": to}, **headers)
        assert status == 200, (status, said)
        cookie, = self.headers.get_all("Set-Cookie")
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie, cookie
        self.cookie = cookie.partition(";")[0]
        return said["url"]

    def come_back(self, url: str) -> dict[str, str]:
        """The answer with which the issuer sends the browser back to the page."""
        parts = urllib.parse.urlsplit(url)
        link = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        link.request("GET", f"{parts.path}?{parts.query}")
        answer = link.getresponse()
        assert answer.status == 302, (answer.status, answer.read())
        where = urllib.parse.urlsplit(answer.headers["Location"])
        assert f"{where.scheme}://{where.netloc}{where.path}" == self.page.origin + "/login"
        return dict(urllib.parse.parse_qsl(where.query))

    def finish(self, answer: dict) -> tuple[int, dict]:
        status, said = self.post("/api/login/finish", answer)
        if status == 200:
            self.csrf = said["csrf"]
            self.cookie, = (each.partition(";")[0] for each in self.headers.get_all("Set-Cookie") if "h5mirror-login" not in each)
        return status, said

    def log_in(self, to: object = "/") -> tuple[int, dict]:
        return self.finish(self.come_back(self.begin(to)))

    def log_out(self, **headers: str) -> tuple[int, dict]:
        return self.post("/api/logout", {}, **headers)

    def names(self) -> list[str]:
        return [each["name"] for each in self.json("/api/files")["files"]]

    def of(self, user: str) -> object:
        """The result of a process that reads files."""
        status, body = self.look("attr", f"{user}/a.h5", version=1)
        return json.loads(body) if status == 200 else status


def test_a_login_opens_what_the_server_gives_its_user_and_the_browser_gets_no_token(lab):
    people = {}
    for user in ("anna", "bob"):
        lab.issuer.user = user
        person = people[user] = Person(lab.page)
        assert person.json("/api/session")["login"] == "127.0.0.1"
        status, said = person.log_in()
        assert status == 200 and said["signed_in"] is True, said
        assert "eyJ" not in json.dumps(said) + person.headers.as_string()  # As each JWT begins.
    for user, person in people.items():
        assert (person.names(), person.of(user)) == ([f"{user}/a.h5"], {"of": user})
        assert person.of("bob" if user == "anna" else "anna") in (403, 404)
        shown = person.preview(what="tag", file=f"{user}/a.h5", version="1", tag="mine")
        assert "tag mine" in person.change(shown, what="tag", file=f"{user}/a.h5", version="1", tag="mine")["says"]
        assert person.json(f"/api/files/{user}%2Fa.h5/versions")["versions"][0]["tags"] == ["mine"]
    assert "eyJ" not in lab.page.process.out() + lab.page.process.err()


def test_the_issuer_is_asked_with_pkce_a_state_and_a_nonce_that_are_new_each_time(lab):
    asked = [dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(Person(lab.page).begin()).query)) for _ in range(2)]
    for key in ("state", "nonce", "code_challenge"):
        assert len(asked[0][key]) >= 43 and asked[0][key] != asked[1][key], key
    assert asked[0]["code_challenge_method"] == "S256" and asked[0]["redirect_uri"] == lab.page.origin + "/login"


@pytest.mark.parametrize("change", [{"state": "x"}, {"state": ""}, {"state": None}, {"code": "x"}, {"iss": "https://evil.example"},
                                    {"iss": ""}, {"error": "access_denied"}])
def test_an_answer_that_is_not_the_issuer_s_to_this_login_counts_for_nothing(lab, change):
    person = Person(lab.page)
    answer = person.come_back(person.begin())
    status, said = person.finish({**answer, **change})
    assert status == 401 and said["message"], said
    assert person.finish(answer)[0] == 401  # A login has one try.
    assert person.json("/api/session")["signed_in"] is False


def test_an_answer_counts_once_and_in_the_browser_that_began(lab):
    person, thief = Person(lab.page), Person(lab.page)
    answer = person.come_back(person.begin())
    thief.begin()
    assert thief.finish(answer)[0] == 401
    assert Person(lab.page).finish(answer)[0] == 401
    begun = person.cookie
    assert person.finish(answer)[0] == 200
    again = Person(lab.page)
    again.cookie = begun
    assert again.finish(answer)[0] == 401
    state = again.come_back(again.begin())["state"]
    assert again.finish({**answer, "state": state})[0] == 401  # A code that was used, in a login of its own.


@pytest.mark.parametrize("claims, words", [
    ({"nonce": "x"}, "nonce"), ({"nonce": None}, "nonce"), ({"aud": "other"}, "aud"), ({"iss": "https://evil.example"}, "iss"),
    ({"exp": 1}, "expired"), ({"aud": [PAGE, "other"], "azp": "other"}, "another client")])
def test_an_id_token_with_wrong_claims_signs_nobody_in(lab, claims, words):
    lab.issuer.id_claims = claims
    status, said = Person(lab.page).log_in()
    assert status == 401 and words in said["message"], said


def test_an_id_token_of_a_key_that_the_issuer_does_not_publish_signs_nobody_in(lab, tmp_path):
    lab.issuer.id_key = Key(tmp_path, "first")
    status, said = Person(lab.page).log_in()
    assert status == 401 and "ID token does not count" in said["message"], said


def test_a_token_that_the_server_refuses_signs_nobody_in(lab):
    lab.issuer.audience = "other"
    status, said = Person(lab.page).log_in()
    assert status == 401 and "aud" in said["message"], said


@pytest.mark.parametrize("to, expected", [
    ("/files/anna/a.h5?version=1", "/files/anna/a.h5?version=1"), ("//evil.example/", "/"), ("https://evil.example/", "/"),
    ("/\\evil.example", "/"), ("/files/\\x", "/"), ("/login?state=x", "/"), (None, "/")])
def test_a_visitor_comes_back_to_this_page_alone(lab, to, expected):
    status, said = Person(lab.page).log_in(to)
    assert (status, said["to"]) == (200, expected)


def test_a_page_of_another_site_begins_and_ends_no_login(lab):
    person = Person(lab.page)
    assert person.post("/api/login", {}, Origin="https://evil.example")[0] == 403
    answer = person.come_back(person.begin())
    assert person.post("/api/login/finish", answer, Origin="https://evil.example")[0] == 403
    assert person.finish(answer)[0] == 200
    assert person.ask("/login?code=x&state=y")[0] == 200  # The page itself, which changes nothing.


def test_a_token_is_renewed_before_it_expires_and_readers_get_the_new_one(lab):
    lab.issuer.lifetime = LIFE_S
    person = Person(lab.page)
    assert person.log_in()[0] == 200
    expires, before = time.time() + LIFE_S, lab.issuer.refreshes
    assert person.of("anna") == {"of": "anna"}
    wait_until(lambda: lab.issuer.refreshes > before, "the page renews no token", LIFE_S)
    lab.issuer.lifetime = 600
    wait_until(lambda: time.time() > expires + 1, "the first token does not expire", LIFE_S + 10)
    assert (person.names(), person.of("anna")) == (["anna/a.h5"], {"of": "anna"})
    assert lab.issuer.reuses == 0


def test_a_session_ends_with_a_token_that_cannot_be_renewed(lab):
    lab.issuer.lifetime = LIFE_S
    lab.issuer.refuses_refresh = True
    try:
        person = Person(lab.page)
        assert person.log_in()[0] == 200
        assert person.of("anna") == {"of": "anna"}
        wait_until(lambda: not person.json("/api/session")["signed_in"], "the session outlives its token", LIFE_S + 30)
        assert person.refused("/api/files") == (401, "sign in")
        assert "is not renewed" in lab.page.process.err()
    finally:
        lab.issuer.refuses_refresh = False


def test_the_server_gets_the_id_token_where_the_page_is_told_so(lab):
    page = lab.start("--oidc-id-token")
    lab.issuer.audience = "other"  # of access tokens, which the server would refuse
    lab.issuer.id_claims = {"aud": [PAGE, "h5mirror"], "azp": PAGE}
    person = Person(page)
    assert person.log_in()[0] == 200
    assert (person.names(), person.of("anna")) == (["anna/a.h5"], {"of": "anna"})


# A confidential client.

SECRET = "s:e%c+r e/t&="


@pytest.mark.parametrize("way, ways", [
    ("client_secret_basic", None), ("client_secret_basic", ["client_secret_post", "client_secret_basic"]),
    ("client_secret_post", ["private_key_jwt", "client_secret_post"])])
def test_a_secret_is_told_as_the_issuer_takes_it(lab, way, ways):
    lab.issuer.secret, lab.issuer.way = SECRET, way
    lab.issuer.more_metadata = {} if ways is None else {"token_endpoint_auth_methods_supported": ways}
    page = lab.start_with_secret(SECRET)
    person = Person(page)
    assert person.log_in()[0] == 200
    assert (person.names(), person.of("anna")) == (["anna/a.h5"], {"of": "anna"})
    for pid in (page.process.pid, *page.workers()):
        shown = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
        assert SECRET.encode() not in shown
    assert SECRET not in page.process.out() + page.process.err()


def test_a_renewal_tells_the_secret_too(lab):
    lab.issuer.secret, lab.issuer.lifetime = SECRET, LIFE_S
    person = Person(lab.start_with_secret(SECRET))
    before = lab.issuer.refreshes
    assert person.log_in()[0] == 200
    wait_until(lambda: lab.issuer.refreshes > before, "no token is renewed by a client with a secret", LIFE_S)


def test_a_wrong_secret_signs_nobody_in_and_is_not_told(lab):
    lab.issuer.secret = SECRET
    status, said = Person(lab.start_with_secret("another")).log_in()
    assert status == 401 and "invalid_client" in said["message"] and "another" not in said["message"], said
    status, said = Person(lab.page).log_in()  # Without one.
    assert status == 401 and "invalid_client" in said["message"], said


def test_an_issuer_that_takes_no_secret_is_told_before_anybody_logs_in(lab):
    lab.issuer.more_metadata = {"token_endpoint_auth_methods_supported": ["private_key_jwt"]}
    status, said = Person(lab.start_with_secret(SECRET)).post("/api/login", {})
    assert status == 503 and "neither by client_secret_basic nor by client_secret_post" in said["message"], said


@pytest.mark.parametrize("text, mode, words", [
    (SECRET, 0o604, "every user may read or change it; run `chmod o-rwx"), (SECRET, 0o602, "every user may read or change it"),
    ("", 0o600, "must have one line of visible ASCII"), ("two\nlines", 0o600, "must have one line of visible ASCII"),
    ("é", 0o640, "must have one line of visible ASCII"), ("x" * 4097, 0o600, "must have one line of visible ASCII")])
def test_a_file_that_holds_no_secret_is_refused_before_anything_starts(lab, tmp_path, text, mode, words):
    file = tmp_path / "secret"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    command = [FITS / "bin" / "python", "-m", "h5mirror", "web", "--server", "h:1", "--http", "https://h:1"]
    done = lab.site.run([*command, "--oidc-issuer", lab.issuer.url, "--oidc-client-id", PAGE, "--oidc-client-secret", f"@{file}"],
                        env=lab.fits.env())
    assert done.code == 2 and words in done.err and "Traceback" not in done.err, done.describe()
    assert SECRET not in done.err


# Signing out.


def with_sign_out(lab) -> WebPage:
    lab.issuer.more_metadata = {"end_session_endpoint": f"{lab.issuer.url}/sign-out"}
    return lab.start()


def test_a_sign_out_forgets_the_session_and_names_the_issuer_s_place(lab):
    person = Person(with_sign_out(lab))
    assert person.log_in()[0] == 200
    for wrong in ({"X_H5mirror_CSRF": "wrong"}, {"X_H5mirror_CSRF": ""}, {"Origin": "https://evil.example"}):
        assert person.log_out(**wrong)[0] == 403
    assert person.ask("/api/logout")[0] == 404  # A GET changes nothing.
    assert person.names() == ["anna/a.h5"]
    status, said = person.log_out()
    assert (status, said["signed_in"], said["csrf"]) == (200, False, ""), said
    place, _, query = said["url"].partition("?")
    assert place == f"{lab.issuer.url}/sign-out"
    assert dict(urllib.parse.parse_qsl(query)) == {"client_id": PAGE, "post_logout_redirect_uri": person.page.origin + "/"}
    assert "eyJ" not in said["url"]  # No token, as addresses are kept.
    assert person.refused("/api/files") == (401, "sign in")  # The old cookie counts no more.
    assert person.log_out()[0] == 401


def test_a_sign_out_goes_nowhere_without_a_place_or_a_login(lab):
    person = Person(lab.page)  # This page knows no such place of its issuer.
    assert person.log_in()[0] == 200
    status, said = person.log_out()
    assert (status, said["url"]) == (200, "")
    holder = with_sign_out(lab).visitor(token=lab.robot)  # Whom no issuer knows.
    status, said = holder.post("/api/logout", {})
    assert (status, said["url"]) == (200, "")
    assert holder.refused("/api/files") == (401, "sign in")


def test_a_sign_out_never_leads_to_an_address_that_others_can_read(lab):
    lab.issuer.more_metadata = {"end_session_endpoint": "http://sso.example/sign-out"}
    person = Person(lab.start())
    assert person.log_in()[0] == 200
    assert person.log_out()[1]["url"] == ""


def test_an_issuer_that_is_away_is_told_and_tokens_sign_in_as_before(lab):
    person = Person(lab.page)
    answer = person.come_back(person.begin())
    lab.issuer.is_down = True
    status, said = person.finish(answer)
    assert status == 503 and lab.issuer.url in said["message"], said
    assert lab.page.visitor(token=lab.robot).json("/api/files")["files"]


def test_an_issuer_that_has_another_name_is_refused(lab):
    page = WebPage(lab.fits, "--shared", "--oidc-issuer", lab.issuer.url + "/", "--oidc-client-id", PAGE)
    status, said = Person(page).post("/api/login", {})
    assert status == 503 and f"it calls itself {lab.issuer.url}" in said["message"], said


def test_a_page_without_an_issuer_begins_no_login(lab):
    page = WebPage(lab.fits, "--shared")
    assert Visitor(page).json("/api/session")["login"] == ""
    for call in ("/api/login", "/api/login/finish"):
        status, said = Visitor(page).post(call, {})
        assert status == 404 and "--oidc-issuer" in said["message"], said


@pytest.mark.parametrize("options, words", [
    (["--oidc-client-secret", "@x"], "stands beside --oidc-issuer"),
    (["--oidc-issuer", "https://sso.example", "--oidc-client-id", "x", "--oidc-client-secret", "x"], "can read a command line"),
    (["--oidc-issuer", "https://sso.example", "--oidc-client-id", "x", "--oidc-client-secret", "@/none"], "No such file"),
    (["--oidc-issuer", "http://sso.example"], "must be https://"), (["--oidc-client-id", "x"], "stands beside --oidc-issuer"),
    (["--oidc-issuer", "https://sso.example?x=1", "--oidc-client-id", "x"], "must be https://"),
    (["--oidc-issuer", "https://sso.example"], "--oidc-client-id: is needed"),
    (["--oidc-issuer", "https://sso.example", "--oidc-client-id", "x", "--oidc-scope", "email"], "must have openid in it"),
    (["--oidc-issuer", "https://sso.example", "--oidc-client-id", "x", "--oidc-ca", "/none.pem"], "No such file")])
def test_wrong_flags_are_told_before_anything_starts(lab, options, words):
    command = [FITS / "bin" / "python", "-m", "h5mirror", "web", "--server", "h:1", "--http", "https://h:1", *options]
    done = lab.site.run(command, env=lab.fits.env())
    assert done.code == 2 and words in done.err and "Traceback" not in done.err, done.describe()


def test_in_a_browser_a_login_ends_at_the_page_that_was_wanted(chromium, lab):  # noqa: F811
    wanted = "/files/anna/a.h5?version=1"
    with visit(chromium, lab.page, wanted, is_signed_in=False) as there:
        button = there.page.get_by_role("button", name="Log in at 127.0.0.1")
        button.wait_for()
        assert there.barriers() == []
        button.click()
        there.page.get_by_role("heading", name="anna/a.h5").wait_for()
        assert there.page.url == lab.page.origin + wanted
        stored = there.page.evaluate("[{...localStorage}, {...sessionStorage}, document.cookie]")
        # Of the viewer, if it is there already: the width of its tree.
        width = stored[0].pop("react-resizable-panels:h5web:layout", "{}")
        assert all(isinstance(each, int | float) for each in json.loads(width).values()), width
        assert stored == [{}, {}, ""], stored
        asked = [each for each in there.complaints if each.startswith(f"request: {lab.issuer.url}/authorize?")]
        assert len(asked) == 1
        there.complaints.remove(asked[0])  # The one address of another site, where the login is.


def test_in_a_browser_a_login_that_fails_is_told_and_can_be_tried_again(chromium, lab):  # noqa: F811
    lab.issuer.id_claims = {"nonce": "x"}
    with visit(chromium, lab.page, "/", is_signed_in=False) as there:
        there.page.get_by_role("button", name="Log in at").click()
        there.page.get_by_role("alert").filter(has_text="ID token does not count").wait_for()
        assert there.page.url == lab.page.origin + "/"
        lab.issuer.id_claims = {}
        there.page.get_by_role("button", name="Log in at").click()
        there.page.get_by_role("link", name="anna/a.h5").wait_for()
        assert there.page.get_by_role("alert").count() == 0
        there.complaints = [each for each in there.complaints if "/authorize?" not in each and "401" not in each]


def test_in_a_browser_a_sign_out_ends_the_login_at_the_issuer_too(chromium, lab):  # noqa: F811
    with visit(chromium, with_sign_out(lab), "/", is_signed_in=False) as there:
        there.page.get_by_role("button", name="Log in at").click()
        there.page.get_by_role("link", name="anna/a.h5").wait_for()
        with there.page.expect_navigation(url=there.origin + "/"):
            there.page.get_by_role("button", name="Sign out").click()
        there.page.get_by_role("button", name="Log in at").wait_for()
        assert [each["client_id"] for each in lab.issuer.sign_outs] == [PAGE]
        assert there.page.get_by_role("link", name="anna/a.h5").count() == 0
        there.page.goto(there.origin + "/files/anna/a.h5")
        there.page.get_by_role("button", name="Log in at").wait_for()
        # The addresses of another site are those where the login is; a list that was asked for meanwhile is refused.
        there.complaints = [each for each in there.complaints
                            if not any(part in each for part in ("/authorize?", "/sign-out?", "401"))]
