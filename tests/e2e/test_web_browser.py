"""`h5mirror web` in a real browser: who looks, by mouse, keyboard or phone, sees the files and what is in them."""

import re
import socket

import pytest

from harness.browser import MANY, PHONE, chromium, entity, visit  # noqa: F401
from harness.fits import installed  # noqa: F401
from harness.process import wait_until
from harness.web import WebPage, site_with_files, wait_for_version

FILES = """
    for n in (1, 2):
        with h5py.File("run.h5", "w" if n == 1 else "a", driver="h5mirror", config=CONFIG + f";comment=pass {n}") as f:
            f.require_dataset("lab/d", (20, 100), "f8")[:] = n
            f["lab"].attrs["<img src=x onerror=alert(1)>"] = "<script>alert(2)</script>"
            f.require_dataset("value", (), "f8")[()] = n
    for n in (1, 2, 3):
        with h5py.File("changes.h5", "a", driver="h5mirror", config=CONFIG + f";comment=step {n}") as f:
            f.require_dataset("lab/d", (20, 100), "f8")[3, 4] = n
            f["lab"].attrs["unit"] = "KKC"[n - 1]
            if n == 1:
                f["lab/lost"] = 4711
            if n == 2:
                del f["lab/lost"]
    with h5py.File("other.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["x"] = 1
"""
LIVE = """
    with h5py.File("live.h5", "w", driver="h5mirror", config=CONFIG + ";ack_tick=applied") as f:
        f["lab/value"] = 0.0
        n = 0
        while True:
            f["lab/value"][()] = n + 0.25
            f.flush()
            print(n, flush=True)
            sys.stdin.readline()
            n += 1
"""
# Each line that it is told makes a version of other bytes; the file stays open in between.
GROWS = """
    n = 0
    while True:
        with h5py.File("NAME", "a", driver="h5mirror", config=CONFIG + ";ack_tick=applied") as f:
            f.require_dataset("d", (50_000,), "f8")[:] = np.random.default_rng(n).random(50_000)
            f.flush()
            print(n, flush=True)
            sys.stdin.readline()
        n += 1
"""


@pytest.fixture(scope="module")
def fits(tmp_path_factory, installed):  # noqa: F811
    with site_with_files(tmp_path_factory.mktemp("browser"), installed, FILES, "run.h5", "other.h5", "changes.h5") as fits:
        (fits.site.work / "changes.h5").unlink()  # So that an object comes back on the server.
        fits.site.cli("tag", "run.h5@1", "raw").ok()
        yield fits


@pytest.fixture(scope="module")
def web(fits):
    web = WebPage(fits)
    assert web.visitor().ask("/")[0] == 200, "the page was not built; ./dev setup does so"
    return web


def shown(page) -> str:
    return page.locator(".h5web").inner_text()


def test_the_page_says_what_files_there_are(chromium, web):  # noqa: F811
    with visit(chromium, web, path="", is_signed_in=False) as there:
        there.page.goto(f"{web.origin}/#key={web.key}")
        there.page.get_by_role("link", name="run.h5").wait_for()
        assert "key=" not in there.page.url
        # Names come first, their states behind them.
        there.page.get_by_role("row").filter(has_text="run.h5").get_by_text("in sync").wait_for()


def test_the_printed_link_counts_where_the_page_is_open_already(chromium, web):  # noqa: F811
    with visit(chromium, web, is_signed_in=False) as there:
        there.page.get_by_label("Token").wait_for()
        there.page.goto(f"{web.origin}/#key={web.key}")
        there.page.get_by_role("link", name="run.h5").wait_for()
        assert there.page.url == f"{web.origin}/"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(chromium, web, scheme):  # noqa: F811
    with visit(chromium, web, color_scheme=scheme) as there:
        assert there.barriers() == []
        ground = there.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        there.page.goto(web.origin + "/files/run.h5?version=2")
        entity(there.page, "lab", "d")
        there.page.get_by_role("tab", name="Heatmap").wait_for()
        assert there.barriers() == []
    with visit(chromium, web, is_signed_in=False, color_scheme=scheme) as there:
        there.page.get_by_label("Token").wait_for()
        assert there.barriers() == []


def test_a_phone_shows_it_all_without_scrolling_to_the_side(chromium, web):  # noqa: F811
    with visit(chromium, web, viewport=PHONE, has_touch=True, is_mobile=True) as there:
        assert there.overhang() <= 0
        there.page.get_by_role("link", name="run.h5").tap()
        entity(there.page, "value")
        assert there.overhang() <= 0
        there.page.get_by_role("button", name="Toggle sidebar").tap()
        wait_until(lambda: shown(there.page).rstrip().endswith("2"), "the value is not shown", 60)
        assert there.overhang() <= 0


def test_a_keyboard_finds_a_file_and_chooses_a_version(chromium, web):  # noqa: F811
    with visit(chromium, web) as there:
        keys = there.page.keyboard
        keys.press("Tab")
        assert there.page.evaluate("document.activeElement.textContent") == "Skip to the content"
        while there.page.evaluate("document.activeElement.id") != "search":
            keys.press("Tab")
        keys.type("run")
        there.page.get_by_text("1 of 3 files").wait_for()
        while there.page.evaluate("document.activeElement.textContent") != "run.h5":
            keys.press("Tab")
        keys.press("Enter")
        there.page.get_by_role("heading", name="run.h5", exact=True).wait_for()
        there.page.get_by_role("radio", name="pass 2").wait_for()
        while there.page.evaluate("document.activeElement.name") != "version":
            keys.press("Tab")
        keys.press("ArrowDown")
        assert there.page.url.endswith("?version=2")
        there.page.get_by_role("tree").wait_for()  # Which leaves the focus where it is.
        keys.press("ArrowDown")
        there.page.get_by_text("Version 1", exact=True).wait_for()
        assert there.page.url.endswith("?version=1")


def test_a_version_is_what_was_in_the_file_then(chromium, web):  # noqa: F811
    with visit(chromium, web, "/files/run.h5?version=1") as there:
        there.page.get_by_role("radio", name="raw").wait_for()
        entity(there.page, "value")
        wait_until(lambda: shown(there.page).rstrip().endswith("1"), "not the value of version 1", 60)
        there.page.get_by_role("radio", name="pass 2").check()
        wait_until(lambda: shown(there.page).rstrip().endswith("2"), "not the value of version 2", 60)
        with there.page.expect_download() as saved:
            there.page.get_by_role("link", name="Download version 2").click()
        assert saved.value.path().read_bytes().startswith(b"\x89HDF")


def test_a_group_of_100000_objects_opens_in_part_and_search_finds_the_last(chromium, fits, web):  # noqa: F811
    fits.py(MANY)
    wait_for_version(web.visitor(), "many.h5", 1)
    with visit(chromium, web, "/files/many.h5?version=1") as there:
        entity(there.page, "many")
        there.page.get_by_text("/many has 99,000 objects more than the tree shows.").wait_for()
        there.page.get_by_role("tab", name="Search").click()
        there.page.get_by_role("searchbox").or_(there.page.get_by_placeholder("Search")).first.fill("d099999")
        there.page.locator(".h5web").get_by_text("d099999").first.click()
        wait_until(lambda: "4711" in shown(there.page).replace(",", ""), "the last object is not shown", 60)


def test_the_content_security_policy_lets_each_view_be_drawn(chromium, web):  # noqa: F811
    with visit(chromium, web, "/files/run.h5?version=2") as there:
        entity(there.page, "lab", "d")
        for view, part in (("Matrix", "table, [role=table], [role=grid]"), ("Line", "canvas"), ("Heatmap", "canvas")):
            tab = there.page.get_by_role("tab", name=view)
            tab.click()
            there.page.locator(f".h5web :is({part})").first.wait_for()
            wait_until(lambda tab=tab: tab.get_attribute("aria-selected") == "true", f"{view} is not chosen", 60)


def test_what_a_file_has_for_text_is_text(chromium, web):  # noqa: F811
    with visit(chromium, web, "/files/run.h5?version=2") as there:
        entity(there.page, "lab")
        there.page.get_by_role("tab", name="Inspect").click()
        there.page.get_by_role("row", name="<img src=x onerror=alert(1)>").get_by_text("<script>alert(2)</script>").wait_for()


def test_cuts_come_as_a_program_makes_them_and_the_selection_stays(chromium, fits, web):  # noqa: F811
    writer = fits.start(LIVE, talks=True)
    assert writer.line() == "0"
    with visit(chromium, web, "/files/live.h5") as there:
        there.page.get_by_text("Live: each new cut as it comes").wait_for()
        entity(there.page, "lab", "value")
        wait_until(lambda: "0.25" in shown(there.page), "not the first cut", 60)
        for n in (1, 2, 3):
            assert writer.ask("go on") == str(n)
            wait_until(lambda n=n: f"{n}.25" in shown(there.page), f"not what cut {n} holds", 60)
            chosen = there.page.get_by_role("treeitem", name="value", exact=True)
            assert chosen.get_attribute("aria-selected") == "true"
        there.page.get_by_text("python", exact=False).first.wait_for()
    writer.kill()


@pytest.mark.parametrize("screen", [{}, {"viewport": PHONE, "has_touch": True, "is_mobile": True, "color_scheme": "dark"}],
                         ids=["desk", "phone"])
def test_a_row_shows_who_writes_how_fast_and_how_the_history_grows(chromium, fits, web, screen):  # noqa: F811
    name = f"grows-{'phone' if screen else 'desk'}.h5"
    writer = fits.start(GROWS.replace("NAME", name), talks=True)
    assert writer.line() == "0"
    with visit(chromium, web, **screen) as there:
        row = there.page.get_by_role("row").filter(has=there.page.get_by_role("link", name=name))
        row.get_by_text("writing now").wait_for()
        assert f"@{socket.gethostname()} python" in row.inner_text()
        line = row.get_by_role("img", name=re.compile("^Bytes a second in the last 5 min: now .+, at most "))
        line.wait_for()
        drawn = line.locator("path").get_attribute("d")
        history = row.locator("[data-label=History]")
        before = history.inner_text()
        assert writer.ask("go on") == "1" and writer.ask("go on") == "2"
        wait_until(lambda: history.inner_text() != before, "the history has not grown", 60)
        wait_until(lambda: line.locator("path").get_attribute("d") != drawn, "the line has not moved", 60)
        assert fits.site.status(name)["history_bytes"] > 0
        there.page.reload()
        line.wait_for()  # The server has it, not the page.
        assert (there.barriers(), there.overhang() <= 0) == ([], True)
    writer.kill()


def test_what_is_not_there_is_told_in_words(chromium, web):  # noqa: F811
    with visit(chromium, web, "/files/none.h5") as there:
        there.page.get_by_role("alert").filter(has_text="none.h5").wait_for()
        assert there.page.get_by_role("main").locator("p").count() == 1
        there.complaints.clear()  # The browser tells of each status above 399.


def test_who_signs_out_sees_no_file(chromium, web):  # noqa: F811
    with visit(chromium, web) as there:
        there.page.get_by_role("button", name="Sign out").click()
        there.page.get_by_label("Token").wait_for()
        there.page.goto(web.origin + "/files/run.h5")
        there.page.get_by_label("Token").wait_for()
        assert there.page.get_by_text("pass 2").count() == 0
        there.complaints.clear()  # Of 401.


def test_two_versions_show_their_differences_with_values_and_a_map(chromium, web):  # noqa: F811
    with visit(chromium, web, "/files/changes.h5?version=2&path=/lab/d") as there:
        there.page.get_by_role("tab", name="Heatmap").wait_for()  # h5web's words for a group are too pale for axe.
        differences = there.page.get_by_role("region", name="Differences")
        differences.get_by_label("Compare version 2 with").select_option("1")
        differences.get_by_role("heading", name="From version 1 to version 2").wait_for()
        differences.get_by_text("lost", exact=True).wait_for()
        differences.get_by_role("button", name="Show where /lab/d differs").click()
        differences.get_by_role("img", name="Where /lab/d differs").wait_for()
        assert differences.get_by_role("row").filter(has_text="[3, 4]").inner_text().split() == ["[3,", "4]", "1.0", "2.0"]
        assert there.barriers() == []
        assert there.overhang() <= 0
        differences.get_by_label("Compare version 2 with").select_option("3")
        differences.get_by_text("attribute unit:").wait_for()


def test_one_object_is_the_one_that_is_selected_in_the_tree_in_each_version(chromium, web):  # noqa: F811
    with visit(chromium, web, "/files/changes.h5?version=1") as there:
        one = there.page.get_by_role("region", name="One object")
        restore = one.get_by_role("button", name="Restore")
        select = lambda name: there.page.get_by_role("treeitem", name=name, exact=True).click()  # noqa: E731

        def is_offered(path: str, version: int) -> None:
            one.get_by_role("button", name=f"Restore {path} of version {version}…", exact=True).wait_for()
            assert one.get_by_label("Path").input_value() == path
            assert restore.count() == 1

        there.page.get_by_role("treeitem", name="lab", exact=True).wait_for()
        assert restore.count() == 0  # Of a file as a whole.
        for name, path in (("lab", "/lab"), ("d", "/lab/d"), ("lost", "/lab/lost"), ("lab", "/lab"), ("lost", "/lab/lost")):
            select(name)
            is_offered(path, 1)
        select("d")
        there.page.get_by_role("radio", name="step 2").check()
        there.page.get_by_text("Version 2", exact=True).first.wait_for()
        is_offered("/lab/d", 2)
        select("lab")
        is_offered("/lab", 2)
        select("d")
        is_offered("/lab/d", 2)
        assert all("404" in each for each in there.complaints), there.complaints
        there.complaints.clear()  # Of 404: what was shown of version 1 is asked of version 2 too, which has no /lab/lost.


def test_an_object_tells_its_history_and_who_gave_its_attributes(chromium, web):  # noqa: F811
    with visit(chromium, web, "/files/changes.h5?version=3") as there:
        entity(there.page, "lab")
        one = there.page.get_by_role("region", name="One object")
        wait_until(lambda: one.get_by_label("Path").input_value() == "/lab", "the chosen object is not taken", 60)
        one.get_by_role("button", name="Show its history").click()
        one.get_by_role("row").filter(has_text="unit").filter(has_text="C").wait_for()
        one.get_by_label("Path").fill("/lab/lost")
        one.get_by_role("button", name="Show its history").click()
        one.get_by_role("listitem").filter(has_text="went").get_by_role("button", name="Version 2").click()
        there.page.get_by_text("Version 2", exact=True).first.wait_for()
        assert "version=2" in there.page.url
        there.complaints.clear()  # Of 404: an object that is gone has no attributes.


def test_a_lost_object_comes_back_once_it_was_shown_what_would_change(chromium, web):  # noqa: F811
    with visit(chromium, web, "/files/changes.h5?version=1&path=/lab/d") as there:
        there.page.get_by_role("tab", name="Heatmap").wait_for()
        one = there.page.get_by_role("region", name="One object")
        one.get_by_label("Path").fill("/lab/lost")
        one.get_by_role("button", name="Restore /lab/lost of version 1…").click()
        shown = one.get_by_role("group", name="Restore /lab/lost of version 1: what would change")
        shown.get_by_text("Comes: dataset /lab/lost").wait_for()
        assert there.barriers() == []
        assert there.page.get_by_role("radio", name="restore of /lab/lost").count() == 0
        shown.get_by_role("button", name="Cancel").click()
        one.get_by_role("button", name="Restore /lab/lost of version 1…").click()
        one.get_by_role("button", name="Restore /lab/lost of version 1 now").click()
        there.page.get_by_role("radio", name="restore of /lab/lost").check()
        entity(there.page, "lab", "lost")
        wait_until(lambda: "4711" in there.page.locator(".h5web").inner_text(), "the object is not back", 60)


PREVIEW = {"expected": "3", "says": "A new version would be made, with " + "/long" * 40 + " of version 1.", "restore": {
    "action": "would_replace", "kind": "dataset", "old_kind": "group", "path": "/long" * 40, "into": "changes.h5", "objects": 1,
    "attributes": 2, "bytes": 4096, "old_objects": 3, "old_bytes": 8192, "from_version": 1, "version": 0, "lost_references": 0,
    "notes": ["2 references of other objects lead to nothing afterwards."]}}


@pytest.mark.parametrize("screen", [PHONE, {"width": 1280, "height": 800}])
def test_a_preview_stands_below_its_button_over_the_full_width(chromium, web, screen):  # noqa: F811
    with visit(chromium, web, "/files/changes.h5?version=1&path=/lab/d", viewport=screen) as there:
        there.page.route("**/api/changes", lambda route: route.fulfill(json=PREVIEW))
        there.page.get_by_role("tab", name="Heatmap").wait_for(state="attached")
        one = there.page.get_by_role("region", name="One object")
        one.get_by_label("Path").fill("/long" * 40)
        one.get_by_label("Replace what is there now").check()
        one.get_by_role("button", name="Restore").click()
        shown = one.get_by_role("group", name="what would change")
        shown.get_by_role("button", name="Cancel").wait_for()
        button, preview, row = (each.bounding_box() for each in (one.get_by_role("button", name="of version 1…"), shown, one))
        assert preview["y"] >= button["y"] + button["height"], (button, preview)
        assert abs(preview["x"] - row["x"]) < 1 and abs(preview["width"] - row["width"]) < 1, (preview, row)
        for part in (*shown.get_by_role("button").all(), *shown.get_by_role("listitem").all()):
            box = part.bounding_box()
            assert box["x"] >= row["x"] and box["x"] + box["width"] <= row["x"] + row["width"] + 1, (box, row)
        assert there.overhang() <= 0
        assert there.barriers() == []


def test_a_version_gets_a_tag_and_a_file_is_rolled_back_by_keyboard(chromium, fits, web):  # noqa: F811
    fits.py("""
    for n in (1, 2):
        with h5py.File("back.h5", "a", driver="h5mirror", config=CONFIG) as f:
            f.attrs["n"] = n
    """)
    wait_for_version(web.visitor(), "back.h5", 2)
    with visit(chromium, web, "/files/back.h5?version=1") as there:
        page, keys = there.page, there.page.keyboard
        page.get_by_role("textbox", name="Tag").focus()
        keys.type("good")
        keys.press("Tab")
        keys.press("Enter")
        page.get_by_text("Version 1 would get the tag good.").wait_for()
        assert page.evaluate("document.activeElement.getAttribute('role')") == "group"
        keys.press("Tab")
        keys.press("Enter")
        page.get_by_text("Version 1 has the tag good.").wait_for()
        page.get_by_role("radio", name="good").wait_for()
        page.get_by_role("button", name="Roll back to version 1…").focus()
        keys.press("Enter")
        page.get_by_text("attribute n: 2 → 1").wait_for()
        keys.press("Tab")
        keys.press("Enter")
        page.get_by_role("radio", name="rollback to version 1").wait_for()


def test_who_may_only_look_sees_no_button_that_changes(chromium, web):  # noqa: F811
    with visit(chromium, web) as there:
        there.page.route("**/api/rights*", lambda route: route.fulfill(json={"rights": ["read"], "original": None}))
        there.page.goto(web.origin + "/files/run.h5?version=1")
        there.page.get_by_role("link", name="Download version 1").wait_for()
        there.page.get_by_role("tree").wait_for()
        there.page.get_by_text("To change tags you need the right write to this file").wait_for()
        for name in ("Tag version", "Roll back", "Restore"):
            assert there.page.get_by_role("button", name=name).count() == 0


def test_a_refusal_is_told_in_words_with_the_way_out(chromium, web):  # noqa: F811
    with visit(chromium, web) as there:
        there.page.route("**/api/rights*", lambda route: route.fulfill(json={"rights": ["read", "write"], "original": None}))
        there.page.goto(web.origin + "/files/run.h5?version=1")
        one = there.page.get_by_role("region", name="One object")
        one.get_by_label("Path").fill("/value")
        one.get_by_role("button", name="Restore /value of version 1…").click()
        one.get_by_role("alert").wait_for()
        one.get_by_text("h5mirror restore run.h5@1:/value", exact=True).wait_for()
        there.complaints.clear()  # Of 4xx.


def test_an_original_that_the_page_does_not_write_is_named_with_the_command(chromium, fits, web):  # noqa: F811
    local = fits.site.work / "run.h5"
    with visit(chromium, web, "/files/run.h5?version=1") as there:
        there.page.get_by_role("treeitem", name="value", exact=True).click()
        one = there.page.get_by_role("region", name="One object")
        one.get_by_text(f"h5mirror restore {local}@1:/value", exact=True).wait_for()
        assert one.get_by_role("button", name="Restore").count() == 0
        assert there.page.get_by_role("alert").count() == 0


def test_after_a_rollback_the_page_says_how_the_local_file_gets_it(chromium, fits, web):  # noqa: F811
    fits.py("""
    for n in (1, 2):
        with h5py.File("older.h5", "a", driver="h5mirror", config=CONFIG) as f:
            f.attrs["n"] = n
    """)
    wait_for_version(web.visitor(), "older.h5", 2)
    with visit(chromium, web, "/files/older.h5?version=1") as there:
        there.page.get_by_role("button", name="Roll back to version 1…").click()
        there.page.get_by_role("button", name="Roll back to version 1 now").click()
        there.page.get_by_text("newer than the local file").wait_for()
        there.page.get_by_text(f"h5mirror recover {fits.site.work / 'older.h5'}", exact=True).wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_differences_and_changes_too(chromium, web, scheme):  # noqa: F811
    with visit(chromium, web, "/files/changes.h5?version=2&path=/lab/d", viewport=PHONE, has_touch=True, is_mobile=True,
               color_scheme=scheme) as there:
        there.page.get_by_role("tab", name="Heatmap").wait_for(state="attached")
        there.page.get_by_label("Compare version 2 with").select_option("1")
        there.page.get_by_role("button", name="Show where /lab/d differs").tap()
        there.page.get_by_role("img", name="Where /lab/d differs").wait_for()
        assert there.overhang() <= 0
        assert there.barriers() == []
