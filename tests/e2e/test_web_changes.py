"""`h5mirror web` without a browser: how versions differ, when an object changed, and changes of files, each shown first."""

import json
import os
import pwd
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import paths
from harness.fits import Fits, installed  # noqa: F401
from harness.process import run
from harness.site import Site
from harness.web import Visitor, WebPage, site_with_files, wait_for_version

FILES = """
    for n in (1, 2, 3):
        with h5py.File("run.h5", "w" if n == 1 else "a", driver="h5mirror", config=CONFIG + f";comment=pass {n}") as f:
            d = f.require_dataset("lab/d", (200, 1000), "f8")
            f["lab"].attrs["pass"] = n
            f["lab"].attrs.setdefault("unit", "K")
            if n == 2:
                d[3, 4:9] = 7.5
                f["lab/gone"] = 42
                f.require_dataset("huge", (1 << 16, 1 << 10), "f8", chunks=(1, 1 << 10))
            if n == 3:
                del f["lab/gone"]
                f["huge"][5, 8:10] = 1
                f["lab/names"] = ["a", "b"]
    with h5py.File("local.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["x"] = 1
    with h5py.File("local.h5", "a", driver="h5mirror", config=CONFIG) as f:
        del f["x"]
"""


@pytest.fixture(scope="module")
def fits(tmp_path_factory, installed):  # noqa: F811
    """A server with a file of three versions, of which there is no local one any more, and one with its local file."""
    with site_with_files(tmp_path_factory.mktemp("changes"), installed, FILES, "run.h5", "local.h5") as fits:
        (fits.site.work / "run.h5").unlink()
        yield fits


@pytest.fixture(scope="module")
def page(fits):
    return WebPage(fits)


@pytest.fixture
def visitor(page):
    return page.visitor()


def find(visitor: Visitor, call: str, name: str, **query) -> dict:
    return visitor.json(visitor.address(f"/api/{call}", file=name, **query))


def newest(visitor: Visitor, name: str) -> str:
    return visitor.json(f"/api/files/{name}")["newest_version"]["version"]


# Differences.


def test_a_diff_names_the_objects_and_their_values(visitor):
    diff = find(visitor, "diff", "run.h5", old=1, new=2)
    assert (diff["equal"], diff["all_compared"], diff["is_whole"]) == (False, True, True)
    found = {(each["change"], each["path"], each["what"]): each for each in diff["changes"]}
    changed = found["changed", "/lab", "attribute"]
    assert (changed["name"], changed["old"], changed["new"]) == ("pass", "1", "2")
    assert found["changed", "/lab/d", "data"]["elements"] == 5
    assert ("added", "/lab/gone", "") in found and ("added", "/huge", "") in found
    back = find(visitor, "diff", "run.h5", old=2, new=1)["changes"]
    assert ("removed", "/lab/gone") in {(each["change"], each["path"]) for each in back}
    assert find(visitor, "diff", "run.h5", old=2, new=2) == {
        "old": "2", "new": "2", "changes": [], "equal": True, "all_compared": True, "is_whole": True}


def test_a_comparison_has_a_grid_and_the_elements_of_both_versions(visitor):
    status, body = visitor.look("compare", "run.h5", "/lab/d", version=2, other=1)
    assert status == 200, body
    found = json.loads(body)
    assert (found["is_whole"], found["differing"], found["compared"]) == (True, 5, [200, 1000])
    assert found["values"] == [{"index": [3, column], "old": "0.0", "new": "7.5"} for column in range(4, 9)]
    grid = found["grid"]
    assert (len(grid), len(grid[0])) == (64, 64)
    assert [(row, column) for row, cells in enumerate(grid) for column, part in enumerate(cells) if part > 0] == [(1, 0)]
    assert visitor.headers["H5mirror-Version"] == "2"


def test_of_a_large_dataset_a_block_is_compared(visitor):
    huge = json.loads(visitor.look("compare", "run.h5", "/huge", version=3, other=2)[1])
    assert (huge["is_whole"], huge["grid"], huge["values"], huge["shape"]) == (False, None, [], [65536, 1024])
    data, = [each for each in find(visitor, "diff", "run.h5", old=2, new=3)["changes"] if each["path"] == "/huge"]
    region, = data["regions"]
    block = {key: ",".join(map(str, region[name])) for key, name in (("offset", "offset"), ("extent", "shape"))}
    found = json.loads(visitor.look("compare", "run.h5", "/huge", version=3, other=2, **block)[1])
    assert [each["index"] for each in found["values"]] == [[5, 8], [5, 9]]
    for wrong in ({"offset": "0", "extent": "1"}, {"offset": "-1,0", "extent": "1,1"}, {"offset": "0,0", "extent": "65536,1024"}):
        assert visitor.look("compare", "run.h5", "/huge", version=3, other=2, **wrong)[0] == 422, wrong
    assert visitor.look("compare", "run.h5", "/huge", version=3, other=2, offset="x", extent="1")[0] == 400


@pytest.mark.parametrize("path, query, expected", [
    ("/lab", {"other": 1}, 422), ("/none", {"other": 1}, 404), ("/lab/d", {}, 400), ("/lab/d", {"other": "latest"}, 400),
    ("/lab/d", {"other": 99}, 404), ("/lab/gone", {"other": 1}, 404)])
def test_what_cannot_be_compared_is_told_in_words(visitor, path, query, expected):
    status, body = visitor.look("compare", "run.h5", path, version=2, **query)
    assert status == expected and json.loads(body)["message"] and b"Traceback" not in body, (status, body[:2000])


def test_an_object_s_history_names_its_versions(visitor):
    history = find(visitor, "history", "run.h5", path="/lab/gone")
    assert [(each["event"], each["version"]["version"]) for each in history["events"]] == [("went", "3"), ("appeared", "2")]
    assert history["is_complete"] is True
    blame = {each["name"]: each for each in find(visitor, "blame", "run.h5", path="/lab")["attributes"]}
    assert (blame["pass"]["value"], blame["pass"]["version"]["version"]) == ("int64 3", "3")
    assert blame["unit"]["version"]["version"] == "1"


@pytest.mark.parametrize("call, query, expected", [
    ("diff", {"file": "run.h5", "old": 1}, 400), ("diff", {"file": "run.h5", "old": 1, "new": "latest"}, 400),
    ("diff", {"file": "run.h5", "old": 1, "new": 99}, 404), ("diff", {"file": "none.h5", "old": 1, "new": 2}, 404),
    ("diff", {"file": "", "old": 1, "new": 2}, 400), ("diff", {"file": "/etc/passwd", "old": 1, "new": 2}, 400),
    ("diff", {"file": "../work/local.h5", "old": 1, "new": 2}, 400), ("diff", {"file": "--pages", "old": 1, "new": 2}, 404),
    ("history", {"file": "run.h5", "path": "lab"}, 400), ("history", {"file": "run.h5", "path": "/none"}, 404),
    ("history", {"file": "/etc/hosts:/x", "path": "/lab"}, 400), ("history", {"file": "a:/b", "path": "/lab"}, 400),
    ("rights", {"file": "none.h5"}, 404), ("rights", {"file": "/etc/passwd"}, 400), ("rights", {"file": "a:/b"}, 400),
    ("blame", {"file": "run.h5", "path": ""}, 400), ("blame", {"file": "run.h5", "path": "/lab\0"}, 400)])
def test_what_cannot_be_found_is_told_in_words(visitor, call, query, expected):
    status, message = visitor.refused(visitor.address(f"/api/{call}", **query))
    assert status == expected and message and "Traceback" not in message, (status, message)


@pytest.mark.parametrize("path", ["/api/diff?file=run.h5&old=1&new=2", "/api/history?file=run.h5&path=/lab",
                                  "/api/blame?file=run.h5&path=/lab", "/api/rights"])
def test_nothing_is_found_for_who_has_not_signed_in(page, path):
    assert Visitor(page).refused(path) == (401, "sign in")


HOSTILE = """
    secret = os.path.abspath("secret.h5")
    with h5py.File(secret, "w") as f:
        f["x"] = np.frombuffer(b"secret of the host" * 100, "u1")
    for n in (1, 2):
        with h5py.File("hostile.h5", "a", driver="h5mirror", config=CONFIG) as f:
            f.create_dataset(f"external{n}", (18,), "u1", external=[(secret, 2048, 18)])
            f[f"link{n}"] = h5py.ExternalLink(secret, "/x")
"""


def test_no_comparison_reads_a_file_of_the_page_s_host(fits, visitor):
    fits.py(HOSTILE)
    wait_for_version(visitor, "hostile.h5", 2)
    told = [visitor.ask(visitor.address("/api/diff", file="hostile.h5", old=1, new=2))[1]]
    told += [visitor.ask(visitor.address("/api/history", file="hostile.h5", path=path))[1] for path in ("/external1", "/link1")]
    told += [visitor.look("compare", "hostile.h5", "/external1", version=2, other=1)[1]]
    numbers = ", ".join(str(each) for each in b"secret")
    assert not any(b"secret of" in each or numbers.encode() in each for each in told), told


# Changes.


def test_all_rights_are_told_where_all_are_given(visitor):
    for path in ("/api/rights", "/api/rights?file=run.h5"):
        assert visitor.json(path)["rights"] == ["read", "write", "restore", "delete", "operate"]


UNTOLD = """
    import asyncio
    from h5mirror.web._findings import Findings
    from h5mirror.web._tools import Said

    class Tools:
        async def ask(self, session, call):
            return Said({"name": "a.h5"} if call.arguments else {"rights": ["write", "read"]}, [], [])

    print(asyncio.run(Findings(Tools()).rights(None, "a.h5")))
"""


def test_an_older_server_that_tells_no_rights_of_one_file_tells_those_at_most(fits):
    assert fits.py(UNTOLD).strip() == "{'rights': ['read', 'write'], 'original': None}"


ORIGINALS = """
    import json
    from h5mirror.web._original import _own_machine, original_of
    here = _own_machine()
    for machine, path in ((here, "/etc/hosts"), (here, "/none/a.h5"), (here, "/etc/hosts/a.h5"), ("other", "/none/a.h5"),
                          ("other", "(mode=remote, session 3f2a91c0)"), (here, "")):
        print(json.dumps(original_of({"origin": {"machine_id": machine, "host": "lab7", "path": path}}) is not None))
    print(json.dumps(original_of({})))
"""


def test_an_original_is_what_another_machine_may_have_or_lies_here(fits):
    assert fits.py(ORIGINALS).split() == ["true", "false", "false", "true", "false", "false", "null"]


def test_the_original_that_the_page_does_not_write_is_told_beforehand(fits, visitor):
    told = visitor.json("/api/rights?file=local.h5")["original"]
    assert told["path"] == str(fits.site.work / "local.h5") and told["host"], told
    assert visitor.json("/api/rights?file=run.h5")["original"] is None  # It is gone, so nothing parts.


def test_a_version_made_here_has_the_name_of_its_user(fits, visitor):
    fits.py("""
    for n in (1, 2):
        with h5py.File("named.h5", "a", driver="h5mirror", config=CONFIG) as f:
            f.attrs["n"] = n
    """)
    wait_for_version(visitor, "named.h5", 2)
    wanted = {"what": "rollback", "file": "named.h5", "version": "1"}
    visitor.change(visitor.preview(**wanted), **wanted)
    made = visitor.json("/api/files/named.h5")["newest_version"]["writer"]
    assert made["claimed_user"] == pwd.getpwuid(os.geteuid()).pw_name, made
    assert made["program"] == "h5mirror"  # By which the page knows that the local file is older.


def test_a_tag_is_shown_first_then_given_moved_and_taken(visitor):
    tag = {"what": "tag", "file": "run.h5", "tag": "first"}
    shown = visitor.preview(**tag, version="1")
    assert shown["expected"] == "" and "Version 1 would get the tag first" in shown["says"]
    tags = lambda: {each["version"]: each["tags"] for each in visitor.json("/api/files/run.h5/versions")["versions"]}  # noqa: E731
    assert not any(tags().values())
    visitor.change(shown, **tag, version="1")
    assert tags()["1"] == ["first"]
    moved = visitor.preview(**tag, version="2")
    assert moved["expected"] == "1" and "which version 1 has now" in moved["says"]
    assert visitor.post("/api/changes", {**tag, "version": "2", "expected": ""})[0] == 409  # As of the first preview.
    visitor.change(moved, **tag, version="2")
    assert (tags()["1"], tags()["2"]) == ([], ["first"])
    assert visitor.post("/api/changes", {**tag, "version": "2", "preview": True})[0] == 409
    gone = visitor.preview(**{**tag, "what": "untag"}, version="2")
    visitor.change(gone, **{**tag, "what": "untag"}, version="2")
    assert not any(tags().values())
    assert visitor.post("/api/changes", {**tag, "what": "untag", "preview": True})[0] == 404


def test_a_rollback_is_shown_as_a_diff_and_refused_where_the_file_has_moved_on(fits, visitor):
    fits.py("""
    for n in (1, 2):
        with h5py.File("back.h5", "a", driver="h5mirror", config=CONFIG) as f:
            f.attrs["n"] = n
    """)
    wait_for_version(visitor, "back.h5", 2)
    wanted = {"what": "rollback", "file": "back.h5", "version": "1", "comment": "n was wrong"}
    shown = visitor.preview(**wanted)
    assert (shown["expected"], shown["diff"]["old"], shown["diff"]["new"]) == ("2", "2", "1")
    change, = shown["diff"]["changes"]
    assert (change["name"], change["old"], change["new"]) == ("n", "2", "1")
    assert newest(visitor, "back.h5") == "2"
    assert visitor.post("/api/changes", {**wanted, "expected": "1"})[0] == 409
    assert visitor.post("/api/changes", wanted)[0] == 400  # No preview came before.
    assert "version 3" in visitor.change(shown, **wanted)["says"]
    assert fits.site.export("back.h5", 3).read_bytes() == fits.site.export("back.h5", 1).read_bytes()
    assert visitor.json("/api/files/back.h5")["newest_version"]["comment"] == "n was wrong"
    assert visitor.post("/api/changes", {**wanted, "expected": "2"})[0] == 409


def test_of_changes_at_once_one_is_made(visitor, fits):
    fits.py("""
    for n in (1, 2):
        with h5py.File("once.h5", "a", driver="h5mirror", config=CONFIG) as f:
            f.attrs["n"] = n
    """)
    wait_for_version(visitor, "once.h5", 2)
    wanted = {"what": "rollback", "file": "once.h5", "version": "1", "expected": visitor.preview(
        what="rollback", file="once.h5", version="1")["expected"]}
    with ThreadPoolExecutor(3) as pool:
        statuses = sorted(pool.map(lambda _: visitor.post("/api/changes", wanted)[0], range(3)))
    assert statuses == [200, 409, 409] and newest(visitor, "once.h5") == "3"


def test_an_object_comes_back_as_it_was_shown(visitor):
    wanted = {"what": "restore", "file": "run.h5", "version": "2", "path": "/lab/gone"}
    before = newest(visitor, "run.h5")
    shown = visitor.preview(**wanted)
    assert (shown["expected"], shown["restore"]["action"], shown["restore"]["kind"]) == (before, "would_restore", "dataset")
    assert newest(visitor, "run.h5") == before
    done = visitor.change(shown, **wanted)
    made = str(done["restore"]["version"])
    assert int(made) == int(before) + 1
    assert json.loads(visitor.look("data", "run.h5", "/lab/gone", version=made)[1]) == 42
    status, body = visitor.post("/api/changes", {**wanted, "preview": True})
    assert status == 409 and "--replace" in body["message"], body
    assert visitor.preview(**wanted, replace=True)["restore"]["old_kind"] == "dataset"


def test_a_local_file_is_never_written(fits, visitor):
    local = fits.site.work / "local.h5"
    before = local.read_bytes()
    status, body = visitor.post("/api/changes", {"what": "restore", "file": "local.h5", "version": "1", "path": "/x",
                                                 "preview": True})
    assert status == 409 and str(local) in body["message"], (status, body)
    status, body = visitor.post("/api/changes", {"what": "restore", "file": "local.h5", "version": "1", "path": "/x",
                                                 "expected": newest(visitor, "local.h5")})
    assert status == 409 and str(local) in body["message"], (status, body)
    assert local.read_bytes() == before and newest(visitor, "local.h5") == "2"


FAILING = """
    import asyncio
    from aiohttp import web
    from aiohttp.test_utils import TestClient, TestServer
    from h5mirror.web._guard import Guard
    from h5mirror.web._sessions import Sessions
    from h5mirror.web._settings import Settings

    async def unreadable(request):
        raise PermissionError(13, "Permission denied", "/data/run.h5")

    async def broken(request):
        raise KeyError("x")

    async def ask():
        app = web.Application(middlewares=[Guard(Settings(server="h:1", http="http://h:1"), Sessions()).middleware])
        app.add_routes([web.get("/unreadable", unreadable), web.get("/broken", broken)])
        async with TestClient(TestServer(app)) as client:
            for path in ("/unreadable", "/broken"):
                answer = await client.get(path)
                print(answer.status, (await answer.json())["message"])

    asyncio.run(ask())
"""


def test_a_failure_of_the_page_itself_is_told_in_words(fits):
    unreadable, broken = fits.py(FAILING).splitlines()
    assert unreadable == "409 /data/run.h5 cannot be read here: Permission denied"
    assert broken.startswith("500 this page has failed")


@pytest.mark.parametrize("given, expected", [
    ({"what": "remove"}, 400), ({}, 400), ([], 400), ({"what": "tag", "tag": "12", "version": "1"}, 400),
    ({"what": "tag", "tag": "a b", "version": "1"}, 400), ({"what": "tag", "tag": "a", "version": "latest"}, 400),
    ({"what": "tag", "tag": "a", "version": "99"}, 404), ({"what": "rollback", "version": "99"}, 404),
    ({"what": "rollback", "version": "1", "file": "none.h5"}, 404), ({"what": "rollback", "version": "1", "file": "/etc/x"}, 400),
    ({"what": "untag", "tag": "--force"}, 404), ({"what": "restore", "version": "1", "path": "/"}, 400),
    ({"what": "restore", "version": "1", "path": "/none"}, 404)])
def test_a_wrong_request_is_refused_in_words(visitor, given, expected):
    if isinstance(given, dict):
        given = {"file": "run.h5", "preview": True, **given}
    status, body = visitor.post("/api/changes", given)
    assert status == expected and body["message"], (status, body)


def test_a_page_of_another_site_changes_nothing(page, visitor):
    wanted = {"what": "tag", "file": "run.h5", "version": "1", "tag": "evil", "expected": ""}
    assert visitor.post("/api/changes", wanted, X_H5mirror_CSRF="wrong")[0] == 403
    assert visitor.post("/api/changes", wanted, X_H5mirror_CSRF="")[0] == 403
    assert visitor.post("/api/changes", wanted, Origin="https://evil.example")[0] == 403
    assert visitor.post("/api/changes", wanted, Content_Type="text/plain")[0] == 415
    assert Visitor(page).post("/api/changes", wanted)[0] == 401
    assert visitor.ask("/api/changes")[0] == 404
    assert not any("evil" in each["tags"] for each in visitor.json("/api/files/run.h5/versions")["versions"])


def test_no_process_is_left_of_a_change(fits):
    page = WebPage(fits)
    visitor = page.visitor()
    visitor.preview(what="rollback", file="run.h5", version="1")
    programs = [os.readlink(f"/proc/{pid}/exe") for pid in page.workers()]
    assert not any("h5mirror" in Path(each).name for each in programs), programs


# Tokens.

TABLES = """
[[access]]
files = "**"
users = ["token:blind"]
allow = []

[[access]]
files = "**"
users = ["token:robot"]
allow = ["read", "write"]

[[access]]
files = "**"
allow = ["read"]
"""


@dataclass
class Secured:
    fits: Fits
    ca: Path
    tokens: dict[str, str]

    def shared(self) -> WebPage:
        return WebPage(self.fits, "--shared", ca=self.ca)


@pytest.fixture(scope="module")
def secured(tmp_path_factory, installed):  # noqa: F811
    """A server with tokens: `robot` may write, and by its token alone also roll back; `anna` may read, `blind` may do nothing."""
    directory = tmp_path_factory.mktemp("secured")
    secrets = directory / "secrets"
    run([paths.BIN / "h5mirrord", "init", "--dir", secrets, "--host", "127.0.0.1"], directory).ok()
    tokens = {}
    for name, rights in (("robot", "read,write,restore"), ("anna", "read"), ("blind", "read,write")):
        made = run([paths.BIN / "h5mirrord", "token", "add", name, "--tokens-file", secrets / "tokens", "--rights", rights],
                   directory, timeout=30).ok()
        tokens[name] = made.out.strip()
    site = Site(directory, tables=TABLES, options={
        "tls_cert": secrets / "server.pem", "tls_key": secrets / "server.key", "tokens_file": secrets / "tokens",
        "http_listen": "127.0.0.1:0"})
    try:
        site.server.start()
        fits = Fits(site, installed)
        robot = directory / "robot.token"
        robot.touch(mode=0o600)
        robot.write_text(tokens["robot"])
        fits.py(f"""
    for n in (1, 2):
        with h5py.File("a.h5", "a", driver="h5mirror", config=CONFIG, ca="{secrets}/ca.pem", token="@{robot}") as f:
            f.attrs["n"] = n
        """)
        yield Secured(fits, secrets / "ca.pem", tokens)
    finally:
        site.close()


def test_the_server_s_own_rights_decide(secured):
    page, tokens = secured.shared(), secured.tokens
    anna, robot = (page.visitor(token=tokens[name]) for name in ("anna", "robot"))
    assert (robot.json("/api/rights")["rights"], anna.json("/api/rights")["rights"]) == (["read", "write", "restore"], ["read"])
    to_file = "/api/rights?file=a.h5"
    assert (robot.json(to_file)["rights"], anna.json(to_file)["rights"]) == (["read", "write"], ["read"])
    assert page.visitor(token=tokens["blind"]).refused(to_file)[0] in (403, 404)
    tag = {"what": "tag", "file": "a.h5", "version": "1", "tag": "raw"}
    shown = anna.preview(**tag)  # Which reads only.
    status, body = anna.post("/api/changes", {**tag, "expected": shown["expected"]})
    assert status == 403 and "write" in body["message"], body
    robot.change(robot.preview(**tag), **tag)
    back = {"what": "rollback", "file": "a.h5", "version": "1"}
    status, body = robot.post("/api/changes", {**back, "expected": robot.preview(**back)["expected"]})
    assert status == 403 and "restore" in body["message"], body
    status, body = anna.post("/api/changes", {"what": "restore", "file": "a.h5", "version": "1", "path": "/", "preview": True})
    assert status >= 400 and body["message"], body
    assert newest(anna, "a.h5") == "2"


def test_a_link_without_a_token_says_why_it_does_not_sign_in(secured):
    page = WebPage(secured.fits, ca=secured.ca)
    status, said = Visitor(page).sign_in(key=page.key)
    assert status == 401 and said["message"].startswith("the server asks for a token"), (status, said)
    page.visitor(token=secured.tokens["anna"])


def test_differences_are_told_to_each_visitor_by_the_own_token(secured):
    page, tokens = secured.shared(), secured.tokens
    anna = page.visitor(token=tokens["anna"])
    change, = find(anna, "diff", "a.h5", old=1, new=2)["changes"]
    assert (change["name"], change["old"], change["new"]) == ("n", "1", "2")
    assert not any(token in page.process.out() + page.process.err() for token in tokens.values())


def test_what_reads_files_gets_the_token_that_may_only_read(secured):
    """Here one that may not even read, to tell them apart."""
    blind = secured.ca.parent / "blind.token"
    blind.touch(mode=0o600)
    blind.write_text(secured.tokens["blind"])
    visitor = WebPage(secured.fits, "--read-token", f"@{blind}", ca=secured.ca, token=secured.tokens["robot"]).visitor()
    assert visitor.look("meta", "a.h5", version=1)[0] in (403, 404)
    for call in ("diff?file=a.h5&old=1&new=2", "history?file=a.h5&path=/", "blame?file=a.h5&path=/"):
        assert visitor.ask(f"/api/{call}")[0] in (403, 404), call
    tag = {"what": "tag", "file": "a.h5", "version": "2", "tag": "by-the-other"}
    visitor.change(visitor.preview(**tag), **tag)
