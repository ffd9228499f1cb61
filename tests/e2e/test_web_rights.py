"""`h5mirror web` in a browser, for a visitor whose rights differ from file to file: the page does not offer forbidden
actions, and names the missing right."""

from pathlib import Path

import pytest

from harness import paths
from harness.browser import Visit, chromium, visit  # noqa: F401
from harness.fits import Fits, installed  # noqa: F401
from harness.process import run
from harness.site import Site
from harness.web import WebPage, wait_for_version

TABLES = """
[[access]]
files = "own/**"
users = ["token:anna"]
allow = ["read", "write"]

[[access]]
files = "**"
users = ["token:anna"]
allow = ["read"]

[[access]]
files = "**"
users = ["token:robot"]
allow = ["read", "write"]
"""
FILES = """
    os.makedirs("own")
    for name in ("a.h5", "own/b.h5"):
        for n in (1, 2):
            with h5py.File(name, "a", driver="h5mirror", config=CONFIG, token="@{token}") as f:
                f.require_dataset("lab/d", (20, 100), "f8")[:] = n
    os.remove("own/b.h5")  # So that an object comes back on the server.
"""


class Lab:
    """A server where anna's token has all rights, of which the tables leave some: to read `a.h5`, and to write `own/b.h5` too."""

    def __init__(self, directory: Path, installed: Path):  # noqa: F811
        tokens, secret = directory / "tokens", directory / "robot.token"
        anna, robot = (run([paths.BIN / "h5mirrord", "token", "add", name, "--tokens-file", tokens, "--rights",
                            "read,write,restore"], directory, timeout=30).ok().out.strip() for name in ("anna", "robot"))
        secret.touch(mode=0o600)
        secret.write_text(robot)
        self.anna = anna
        self.site = Site(directory, tables=TABLES, options={"tokens_file": tokens, "http_listen": "127.0.0.1:0"})
        self.site.server.start()
        fits = Fits(self.site, installed)
        fits.py(FILES.replace("{token}", str(secret)))
        self.page = WebPage(fits, "--shared")
        settled = self.page.visitor(token=robot)
        for name in ("a.h5", "own%2Fb.h5"):
            wait_for_version(settled, name, 2)


@pytest.fixture(scope="module")
def lab(tmp_path_factory, installed):  # noqa: F811
    lab = Lab(tmp_path_factory.mktemp("rights"), installed)
    try:
        yield lab
    finally:
        lab.site.close()


def sign_in(there: Visit, token: str) -> None:
    there.page.get_by_label("Token").fill(token)
    there.page.get_by_role("button", name="Sign in").click()
    there.page.get_by_role("tab", name="Heatmap").wait_for()


def test_rights_are_told_for_each_file(lab):
    anna = lab.page.visitor(token=lab.anna)
    assert anna.json("/api/rights")["rights"] == ["read", "write", "restore"]
    assert anna.json("/api/rights?file=a.h5")["rights"] == ["read"]
    assert anna.json("/api/rights?file=own%2Fb.h5")["rights"] == ["read", "write"]


def test_who_may_only_read_a_file_sees_no_button_and_which_right_is_missing(chromium, lab):  # noqa: F811
    with visit(chromium, lab.page, "/files/a.h5?version=1&path=/lab/d", is_signed_in=False) as there:
        sign_in(there, lab.anna)
        for to, right in (("change tags", "write"), ("roll back to this version", "restore"), ("restore an object", "write")):
            there.page.get_by_text(f"To {to} you need the right {right} to this file, which you do not have.").wait_for()
        there.page.get_by_role("link", name="Download version 1").wait_for()
        for name in ("Tag version", "Roll back", "Restore"):
            assert there.page.get_by_role("button", name=name).count() == 0
        assert there.barriers() == []
        assert there.overhang() <= 0


def test_what_may_be_done_with_another_file_is_there(chromium, lab):  # noqa: F811
    with visit(chromium, lab.page, "/files/own/b.h5?version=1&path=/lab/d", is_signed_in=False) as there:
        sign_in(there, lab.anna)
        there.page.get_by_role("button", name="Tag version 1…").wait_for()
        there.page.get_by_role("button", name="Restore /lab/d of version 1…").wait_for()
        there.page.get_by_text("To roll back to this version you need the right restore").wait_for()
        assert there.page.get_by_text("To change tags you need").count() == 0
        assert there.page.get_by_role("button", name="Roll back").count() == 0
