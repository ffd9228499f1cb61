"""Versions by number, place, time and tag; the facts about each, and the places of its pages."""

import re
import time

import pytest

from harness.records import packed_pages

THREE = """
    for n in range(3):
        with h5py.File("run.h5", "a") as f:
            f.attrs["n"] = n
            f.require_dataset("d", (200_000,), "f8")[:] = n
        time.sleep(0.05)
"""


@pytest.fixture
def three(site):
    """A site whose run.h5 has the versions 1, 2 and 3."""
    site.py(THREE)
    site.settle("run.h5")
    site.keep("run.h5")
    return site


def content_of(site, version):
    out = site.directory / "out.h5"
    site.cli("export", "--force", f"run.h5@{version}", out).ok()
    script = site.script(f"print(h5py.File({str(out)!r}).attrs['n'])")
    return int(site.run(script, env=site.plain_env()).ok().out)


def test_a_version_is_named_by_number_place_time_and_tag(three):
    newest, middle, oldest = three.log("run.h5")
    three.cli("tag", "run.h5@latest-1", "published").ok()
    assert [content_of(three, each) for each in (1, "latest-2", oldest["time"])] == [0, 0, 0]
    assert [content_of(three, each) for each in (2, "latest-1", "tag:published", middle["time"])] == [1, 1, 1, 1]
    assert [content_of(three, each) for each in (3, "latest", "2999-01-01T00:00")] == [2, 2, 2]
    three.check_kept()


def test_what_names_no_version_is_one_line_and_a_code(three):
    for spec, code, words in (("7", 3, "no version 7"), ("latest-3", 3, "only 3 versions"),
                              ("tag:draft", 3, "no tag 'draft'"), ("2001-01-01T00:00Z", 3, "no version from"),
                              ("someday", 2, "tag:NAME"), ("2026-02-30T10:00", 2, "no such day")):
        result = three.cli("export", f"run.h5@{spec}", "-")
        assert result.code == code and words in result.err, result.describe()
        assert result.err.count("\n") == 1 and result.err.startswith("h5mirror: "), result.describe()


def test_a_local_time_is_echoed_in_utc(three):
    result = three.cli("show", "run.h5@2999-01-01T00:00").ok()
    assert re.search(r"h5mirror: 2999-01-01T00:00 is 2\d{3}-\d\d-\d\dT\d\d:\d\d:00Z", result.err), result.err


def test_tags_survive_a_killed_server_and_a_rollback(three):
    three.cli("tag", "run.h5@1", "published").ok()
    three.cli("tag", "run.h5@1", "v1.0").ok()
    three.server.kill9()
    three.server.start()
    assert three.log("run.h5")[-1]["tags"] == ["published", "v1.0"]
    three.cli("rollback", "run.h5@tag:published").ok()
    newest = three.log("run.h5")[0]
    assert newest["version"] == 4 and newest["tags"] == [], "the tag stays where it was"
    assert content_of(three, "latest") == 0
    refused = three.cli("tag", "run.h5@4", "published")
    assert refused.code == 5 and "version 1" in refused.err and "--force" in refused.err, refused.describe()
    moved = three.json("tag", "--force", "run.h5@4", "published")
    assert moved["previous_version"] == 1 and moved["version"]["tags"] == ["published"]
    assert three.json("untag", "run.h5", "published")["version"] == 4
    assert three.cli("untag", "run.h5", "published").code == 3
    for bad in ("12", "a b", "x" * 101, ""):
        assert three.cli("tag", "run.h5@1", bad).code == 2, bad


def test_a_file_is_tagged_while_it_is_written(three):
    writer = three.start(three.script("""
        with h5py.File("run.h5", "r+") as f:
            while not os.path.exists("stop"):
                f["d"][:1000] = time.time()
                f.flush()
                time.sleep(0.01)
    """), config=three.config(ack="applied"))
    three.wait_for_cut("run.h5")
    tags = sorted(three.cli("tag", "run.h5@2", f"t{n}").ok().seconds for n in range(20))
    reads = sorted(three.cli("show", "run.h5@1").ok().seconds for _ in range(5))
    assert tags[10] < 0.8 + 2 * reads[2], ("a tag waits for the writer", tags, reads)
    assert len(three.json("show", "run.h5@2")["version"]["tags"]) == 20
    (three.work / "stop").touch()
    writer.wait(60).ok()
    three.assert_mirrored("run.h5")
    three.check_kept()


@pytest.mark.limit(400)
def test_log_pages_through_thousands_and_takes_times(site):
    site.py("""
        for n in range(1100):
            with h5py.File("run.h5", "a") as f:
                f.attrs["n"] = n
    """, config=site.config(ack="applied"), timeout=300)
    site.settle("run.h5")
    versions = site.log("run.h5")
    assert [each["version"] for each in versions] == list(range(1100, 0, -1))
    times = [each["time"] for each in versions]
    assert times == sorted(times, reverse=True)
    some = site.json("log", "run.h5", "--since", times[1000], "--until", times[100])["versions"]
    assert [each["version"] for each in some] == list(range(1000, 99, -1))
    assert len(site.json("log", "run.h5", "--limit", "7", "--until", times[500])["versions"]) == 7
    assert site.json("show", "run.h5@latest-1099")["version"]["version"] == 1
    lines = site.cli("log", "run.h5").ok().out.splitlines()
    assert len(lines) == 1101 and "PAGES" in lines[0] and "CHANGED" in lines[0]


def test_show_describes_a_version(three):
    three.cli("tag", "run.h5@2", "published").ok()
    version = three.json("show", "run.h5@2")["version"]
    assert version["tags"] == ["published"] and version["changed_pages"] > 390 and version["pid"] > 0
    text = three.cli("show", "run.h5@2").ok().out
    for words in ("version:      2, cut ", "generation 1", "(unverified)", "python", f"{version['changed_pages']} pages",
                  "published", "client time:"):
        assert words in text, text


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_map_leads_to_every_byte(three, version):
    """A version is put together by hand, with nothing but its map and the files that it names."""
    shown = three.json("show", f"run.h5@{version}", "--map")
    page_size, size = shown["page_size_bytes"], shown["version"]["size_bytes"]
    rebuilt = bytearray()
    for run in shown["map"]:
        assert run["page"] * page_size == len(rebuilt), "runs follow each other"
        length = run["page_count"] * page_size
        if run["place"] in ("head", "pages"):
            with (three.root / run["file"]).open("rb") as file:
                file.seek(run["offset"])
                rebuilt += file.read(length).ljust(length, b"\0")
        elif run["place"] == "packed":
            rebuilt += packed_pages(three.root / run["file"], run["offset"], run["page"], run["page_count"])
        else:
            assert run["place"] in ("hole", "zeros"), run
            rebuilt += bytes(length)
    assert bytes(rebuilt[:size]) == three.export("run.h5", version).read_bytes()
    assert bool({"pages", "packed"} & {run["place"] for run in shown["map"]}) == (version < 3)
    assert len(three.cli("show", f"run.h5@{version}", "--map").ok().out.splitlines()) > len(shown["map"])
