"""A person's browser at the page of `h5mirror web`: Debian's chromium, driven by Playwright."""

import shutil
import site
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from harness import paths

_VENV = paths.CACHE / "venv-browser"
_CHROMIUM = shutil.which("chromium")
if _CHROMIUM is None or not (_VENV / "requirements.txt").exists():
    pytest.skip("no chromium, or no Playwright to drive it; ./dev setup installs both", allow_module_level=True)
site.addsitedir(str(_VENV / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"))

from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

# Root's chromium has no sandbox; the page's own files and those of the test are all that it sees.
_FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"]
PHONE = {"width": 360, "height": 740}
WAIT_MS = 60_000
# A group of 100,000 objects.
MANY = """
    with h5py.File("many.h5", "w", driver="h5mirror", config=CONFIG, libver="latest") as f:
        group = f.create_group("many")
        space = h5py.h5s.create(h5py.h5s.SCALAR)
        for n in range(100000):
            h5py.h5d.create(group.id, b"d%06d" % n, h5py.h5t.NATIVE_INT32, space)
        group["d099999"][()] = 4711
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS)
        yield browser
        browser.close()


class Visit:
    """A tab of its own. It notes everything that the page must not do."""

    def __init__(self, browser: Browser, origin: str, **options):
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(WAIT_MS)
        self.page: Page = self.context.new_page()
        self.origin = origin
        self.complaints: list[str] = []
        self.page.on("console", lambda said: self._complain("console", said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self._complain("error", str(error)))
        self.page.on("dialog", lambda dialog: self._complain("dialog", dialog.message))
        self.page.on("request", lambda request: self._note(request.url))

    def _complain(self, kind: str, text: str) -> None:
        self.complaints.append(f"{kind}: {text}")

    def _note(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self._complain("request", url)

    def describe(self) -> str:
        """The text that it shows now, and the faults before."""
        return "\n".join([self.page.url, *self.complaints, self.page.locator("body").aria_snapshot()[:4000]])

    def barriers(self) -> list[str]:
        """The findings of axe in the present page."""
        found = Axe().run(self.page).response["violations"]
        return [f"{each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes'][:4]]}" for each in found]

    def overhang(self) -> int:
        """Pixels by which the page is wider than the screen."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


@contextmanager
def visit(browser: Browser, web, path: str = "/", *, is_signed_in: bool = True, **options) -> Iterator[Visit]:
    """Visits the page by the printed link; with the path "" no page yet. At the end no error must have been seen, and
    no other address asked."""
    visit = Visit(browser, web.origin, **options)
    try:
        if is_signed_in:
            visit.page.goto(f"{web.origin}/#key={web.key}")
            visit.page.get_by_role("heading", name="Files").wait_for()
            if path != "/":
                visit.page.goto(web.origin + path)
        elif path:
            visit.page.goto(web.origin + path)
        yield visit
        assert not visit.complaints
    except BaseException as error:
        error.add_note(visit.describe())
        raise
    finally:
        visit.context.close()


def entity(page: Page, *names: str) -> None:
    """Chooses an object in h5web's tree, and opens the groups above it."""
    for name in names:
        item = page.get_by_role("treeitem", name=name, exact=True)
        item.wait_for()
        if item.get_attribute("aria-expanded") != "true" and item.get_attribute("aria-selected") != "true":
            item.click()
