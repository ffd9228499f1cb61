"""The pictures of docs/how-to/look-at-files-in-a-browser.md: that the page can still be shown like this, in small files.

scripts/make_pictures runs this with H5MIRROR_PICTURES, a directory that gets them. Names and times are the same in each run.
"""

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness import paths
from harness.browser import Visit, chromium, visit  # noqa: F401
from harness.fits import installed  # noqa: F401
from harness.web import WebPage, site_with_files

pytestmark = pytest.mark.skipif(not paths.TEST_ALL, reason="only with ./dev test --all")
SIZE = {"width": 1000, "height": 700}
BYTES_MAX = 100_000
NOON = datetime(2026, 11, 2, 12, 0, tzinfo=timezone.utc)
FILES = """
    y, x = np.mgrid[0:60, 0:80]
    for n, comment in enumerate(("first image", "beam centred", "after the calibration"), 1):
        with h5py.File("beamline/run7.h5", "a", driver="h5mirror", config=CONFIG + f";comment={comment}") as f:
            image = f.require_dataset("entry/image", y.shape, "f4")
            image[:] = 100 * np.exp(-((x - 20 - 10 * n) ** 2 + (y - 30) ** 2) / 120) if n < 3 else image[:]
            if n == 3:
                image[20:36, 44:60] += 25
            f.require_dataset("entry/temperature", (200,), "f4")[:] = 293 + np.sin(np.arange(200) / 15) * n
            f["entry/temperature"].attrs["units"] = "C" if n < 3 else "K"
            if n == 1:
                f["entry/notes"] = "no beam before 11:40"
            if n == 2:
                del f["entry/notes"]
    for name in ("beamline/run6.h5", "beamline/run8.h5", "simulation/heat.h5"):
        with h5py.File(name, "w", driver="h5mirror", config=CONFIG) as f:
            f["x"] = np.arange(1000)
"""
# The parts that differ from machine to machine.
SAME = {"host": "node7", "claimed_user": "anna", "verified_user": "anna", "user": "anna", "program": "python", "pid": 4711,
        "server": "node7:7447"}
WRITES = {"interval_seconds": 5, "received_bytes": [str(4096 * (n * n % 23) if n > 20 else 0) for n in range(60)]}


@pytest.fixture(scope="module")
def web(tmp_path_factory, installed):  # noqa: F811
    prepared = "    os.makedirs('beamline'); os.makedirs('simulation')\n"
    names = ("beamline/run7.h5", "beamline/run6.h5", "beamline/run8.h5", "simulation/heat.h5")
    with site_with_files(tmp_path_factory.mktemp("pictures"), installed, prepared + FILES, *names) as fits:
        (fits.site.work / "beamline/run7.h5").unlink()  # So that an object comes back on the server.
        fits.site.cli("tag", "beamline/run7.h5@2", "published").ok()
        yield WebPage(fits)


def alike(value: object, minutes: int = 0) -> object:
    """The answers to the page, the same in each picture."""
    if isinstance(value, list):
        return [alike(each, minutes) for each in value]
    if not isinstance(value, dict):
        return value
    if str(value.get("version", "")).isdecimal():
        minutes = 20 * int(value["version"])
    time = (NOON + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")
    return {key: SAME[key] if key in SAME and isinstance(each, (str, int)) else WRITES if key == "recent_writes" else
            time if key == "time" or key.endswith("_time") else alike(each, minutes) for key, each in value.items()}


def rewrite(route) -> None:
    if route.request.method != "GET" or route.request.url.endswith("/events"):
        return route.continue_()
    answer = route.fetch()
    route.fulfill(response=answer, body=json.dumps(alike(answer.json())))


def files(there: Visit) -> None:
    for name in ("beamline/run7.h5", "simulation/heat.h5"):
        there.page.get_by_role("row").filter(has_text=name).get_by_text("in sync").wait_for()


def drawn(there: Visit) -> None:
    """The image, which takes room when it comes."""
    there.page.locator(".h5web canvas").first.wait_for()
    there.page.locator(".h5web").get_by_label("Max: 1").first.wait_for()


def contents(there: Visit) -> None:
    there.page.get_by_role("tab", name="Heatmap").click()
    drawn(there)
    there.page.mouse.move(1, 1)
    there.page.locator(".h5web").evaluate("viewer => viewer.scrollIntoView()")


def file(there: Visit) -> None:
    there.page.get_by_role("tree").wait_for()
    there.page.get_by_role("radio", name="published").wait_for()
    there.page.evaluate("window.scrollTo(0, 0)")


def differences(there: Visit) -> None:
    drawn(there)
    region = there.page.get_by_role("region", name="Differences")
    region.get_by_label("Compare version 3 with").select_option("2")
    region.get_by_role("button", name="Show where /entry/image differs").click()
    region.get_by_role("img", name="Where /entry/image differs").wait_for()
    region.evaluate("region => region.scrollIntoView()")


def restore(there: Visit) -> None:
    drawn(there)
    region = there.page.get_by_role("region", name="One object")
    region.get_by_label("Path").fill("/entry/notes")
    region.get_by_role("button", name="Restore /entry/notes of version 1…").click()
    region.get_by_text("Comes: dataset /entry/notes").wait_for()
    region.evaluate("region => region.scrollIntoView()")


FILE = "/files/beamline/run7.h5?version="


@pytest.mark.parametrize("name, address, show", [
    ("files", "/", files), ("contents", FILE + "3&path=/entry/image", contents), ("file", FILE + "2", file),
    ("differences", FILE + "3&path=/entry/image", differences), ("restore", FILE + "1&path=/entry/image", restore)])
def test_a_picture_shows_the_page_and_is_small(chromium, web, tmp_path, name, address, show: Callable[[Visit], None]):  # noqa: F811
    with visit(chromium, web, viewport=SIZE, color_scheme="light", reduced_motion="reduce", locale="en-GB",
               timezone_id="UTC") as there:
        there.page.clock.set_fixed_time(NOON + timedelta(hours=2))
        there.page.route(lambda url: "/api/" in url and "/api/h5/" not in url, rewrite)
        there.page.goto(web.origin + address)
        show(there)
        picture = Path(os.environ.get("H5MIRROR_PICTURES") or tmp_path) / f"web-{name}.png"
        there.page.screenshot(path=picture, animations="disabled", caret="hide")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert 5_000 < picture.stat().st_size < BYTES_MAX, picture.stat().st_size
