"""`h5mirror web` in a real browser before three servers with two cells: the browser is sent nowhere, sees the files of all, and
each new cut while a cell moves and when its server is lost."""

import pytest

from harness import paths
from harness.browser import chromium, entity, visit  # noqa: F401
from harness.fits import Fits, installed  # noqa: F401
from harness.process import wait_until
from harness.web import WebPage

from test_cluster_http import NAMES, WRITE, Trio

pytestmark = pytest.mark.skipif(not paths.TEST_ALL, reason="only with ./dev test --all")

# Each line that it is told makes a cut; the file stays open in between.
LIVE = """
    with h5py.File("x/live.h5", "w", driver="h5mirror", config=CONFIG + ";ack_tick=applied") as f:
        f["lab/value"] = 0.25
        n = 0
        while True:
            f["lab/value"][()] = n + 0.25
            f.flush()
            print(n, flush=True)
            sys.stdin.readline()
            n += 1
"""


@pytest.fixture
def fits(tmp_path, installed):  # noqa: F811
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


def test_a_browser_sees_one_site_through_moves_and_losses(chromium, fits):  # noqa: F811
    trio = fits.trio
    order = (trio.third, trio.owner_y, trio.owner_x)  # A server without a cell is asked first.
    servers = "|".join(trio.servers[node].address for node in order)
    web = WebPage(fits, "--server", servers, "--http", "|".join(trio.base(node) for node in order))
    writer = fits.start(LIVE.replace("CONFIG", f"CONFIG + ';server={servers}'"), talks=True)
    assert writer.line() == "0"
    # A visit fails where the browser asks any other address, or an error is logged there.
    with visit(chromium, web) as there:
        page = there.page
        for name in (*NAMES, "x/live.h5"):
            page.get_by_role("link", name=name).wait_for()
        page.goto(f"{web.origin}/files/y/three.h5?version=1")
        entity(page, "d")
        page.get_by_role("tab", name="Inspect").click()
        page.get_by_text("100 x 100").or_(page.get_by_text("100 × 100")).first.wait_for()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download version 1").click()
        assert download.value.path().read_bytes()[:8] == b"\x89HDF\r\n\x1a\n"

        page.goto(f"{web.origin}/files/x/live.h5")
        page.get_by_text("Live: each new cut as it comes").wait_for()
        entity(page, "lab", "value")

        def shows(n: int, when: str) -> None:
            assert writer.ask("go on", timeout=60) == str(n)
            wait_until(lambda: f"{n}.25" in page.locator(".h5web").inner_text(), f"cut {n} is not shown {when}", 60)

        shows(1, "from another server than the one that the page asks first")
        trio.cli("cluster", "move", "x", trio.third).ok()
        wait_until(lambda: trio.owner("x") == trio.third, "x does not move", 60)
        shows(2, "after its cell has moved")
        trio.servers[trio.third].kill9()
        shows(3, "after its server was lost, which the page asked first")
        # Streams that broke with their server, and what was asked while nobody had the cell.
        there.complaints[:] = [each for each in there.complaints if "ERR_INCOMPLETE_CHUNKED" not in each and "of 503" not in each]
    writer.kill()
