"""`find` lists objects by path and attribute, over files and versions."""

import json

import pytest


def fill(site):
    for name, count in (("one.h5", 10), ("two.h5", 20)):
        site.edit(name, f"""
d = f.create_dataset('entry/data', data=np.arange({count}.0))
d.attrs['units'] = 'K'
d.attrs['count'] = {count}
d.attrs['pair'] = [1, 2]
f['entry/raw/data'] = np.arange(3)
f['soft'] = h5py.SoftLink('/entry')
""")
    return site


@pytest.fixture
def files(site):
    return fill(site)


@pytest.fixture(scope="module")
def same_files(module_site):
    """For tests that change nothing."""
    return fill(module_site)


def find(site, *words):
    document = site.json("find", *words)
    assert document["failed"] == [], document
    return {(each["file"], each["path"], each["oldest_version"], each["newest_version"]) for each in document["found"]}


BOTH = {("one.h5", "/entry/data", 1, 1), ("two.h5", "/entry/data", 1, 1)}
RAW = {("one.h5", "/entry/raw/data", 1, 1), ("two.h5", "/entry/raw/data", 1, 1)}


@pytest.mark.parametrize("words, expected", [
    (("/entry/data",), BOTH), (("/entry/d*",), BOTH), (("**/data",), BOTH | RAW), (("/*/*/data",), RAW),
    (("/none",), set()), (("/entry/data", "one.h5"), {("one.h5", "/entry/data", 1, 1)}),
    (("/entry/data", "one.h5", "two.h5"), BOTH),
    (("/soft",), {("one.h5", "/soft", 1, 1), ("two.h5", "/soft", 1, 1)}), (("/soft", "--attr", "units"), set()),
    (("**", "--attr", "units"), BOTH), (("**", "--attr", "units=K"), BOTH), (("**", "--attr", "units=k"), set()),
    (("**", "--attr", "units=K", "--attr", "count=10.0"), {("one.h5", "/entry/data", 1, 1)}),
    (("**", "--attr", "pair=[1, 2]"), BOTH)])
def test_a_pattern_and_attributes_choose(same_files, words, expected):
    assert find(same_files, *words) == expected


def test_what_is_found_is_described(same_files):
    text = same_files.cli("find", "/entry/data").ok().out
    lines = [line.split(None, 3) for line in text.splitlines()]
    assert lines[0] == ["FILE", "VERSIONS", "PATH", "OBJECT"], text
    assert ["one.h5", "1", "/entry/data", "dataset float64 (10,)"] in lines, text


def test_every_version_tells_which_have_it(files):
    files.edit("one.h5", "f['new'] = 1")
    files.edit("one.h5", "del f['entry/data']")
    files.edit("one.h5", "f['entry/data'] = np.arange(5)")
    files.edit("one.h5", "f['new'][()] = 2")
    assert find(files, "/entry/data", "one.h5", "--every-version") == {
        ("one.h5", "/entry/data", 1, 2), ("one.h5", "/entry/data", 4, 5)}
    assert find(files, "/new", "--every-version") == {("one.h5", "/new", 2, 5)}
    assert find(files, "/entry/data", "one.h5") == {("one.h5", "/entry/data", 5, 5)}
    assert "4-5" in files.cli("find", "/entry/data", "one.h5", "--every-version").ok().out


def test_a_time_chooses_the_version(files):
    files.edit("one.h5", "del f['entry/data']")
    times = {each["version"]: each["time"] for each in files.log("one.h5")}
    assert find(files, "/entry/data") == {("two.h5", "/entry/data", 1, 1)}
    assert find(files, "/entry/data", "--at", times[1]) == {("one.h5", "/entry/data", 1, 1)}, "the other is younger"
    assert find(files, "/entry/data", "--at", "2020-01-01", "--every-version") == set()


def test_what_only_older_versions_have_is_hinted_at(files):
    files.edit("one.h5", "del f['entry/data']")
    gone = files.cli("find", "/entry/data", "one.h5").ok()
    assert gone.out == "" and "--every-version" in gone.err, gone.describe()
    for words in (["/entry/data"], ["/entry/data", "one.h5", "--every-version"], ["/none", "--every-version"]):
        assert "--every-version" not in files.cli("find", *words).ok().err, words


def test_a_group_that_holds_itself_is_looked_into_once(files):
    files.edit("one.h5", "f['entry/self'] = f['entry']")
    found = {path for _, path, _, _ in find(files, "**", "one.h5")}
    assert found == {"/entry", "/entry/data", "/entry/raw", "/entry/raw/data", "/entry/self", "/soft"}


def test_an_object_is_found_by_each_of_its_paths(files):
    files.edit("one.h5", "f['z'] = f['entry']")
    for path in ("/entry/data", "/z/data", "/z/raw/data"):
        assert find(files, path, "one.h5") == {("one.h5", path, 2, 2)}
    assert find(files, "/*/data", "one.h5") == {("one.h5", "/entry/data", 2, 2)}, "several names: by the first"


def test_whole_numbers_and_texts_are_compared_as_such(files):
    files.edit("one.h5", "f.attrs['x'] = 1\nd = f['entry/data']\nd.attrs['big'] = 9007199254740993\nd.attrs['text'] = '1000'")
    for wish, is_found in (("big=9007199254740993", True), ("big=9007199254740992", False), ("text=1000", True), ("text=1e3", False)):
        assert bool(find(files, "**", "one.h5", "--attr", wish)) == is_found, wish


def test_a_broken_object_hides_no_other(site):
    site.py("""
    with h5py.File("broken.h5", "w", driver="sec2") as f:
        f["a"], f["mid/x"], f["ok"] = 1, 2, 3
        at = h5py.h5o.get_info(f["mid"].id).addr
    with open("broken.h5", "r+b") as file:
        file.seek(at)
        file.write(b"\\xff")
    """)
    site.cli("push", site.work / "broken.h5", "--name", "broken.h5").ok()
    assert find(site, "/ok") == {("broken.h5", "/ok", 1, 1)}
    result = site.cli("find", "**", "broken.h5", "--json")
    document = json.loads(result.out)
    assert result.code == 1 and {each["path"] for each in document["found"]} == {"/a", "/ok"}, result.describe()
    failed, = document["failed"]
    assert failed["file"] == "broken.h5" and failed["error"].startswith("version 1: /mid: "), failed


def test_a_place_is_a_file_or_a_directory(files):
    (files.work / "sub").mkdir()
    files.edit("sub/three.h5", "f['entry/data'] = 1")
    for place in ("sub", "sub/"):
        assert find(files, "/entry/data", place) == {("sub/three.h5", "/entry/data", 1, 1)}
    missing = files.cli("find", "/entry/data", "none")
    assert missing.code == 3 and "none" in missing.err, missing.describe()


@pytest.mark.parametrize("words, said", [
    (("entry",), "is no pattern of paths"), (("/a", "--attr", "=5"), "names no attribute"), (("/a", "--at", "never"), "never")])
def test_what_cannot_be_is_named(same_files, words, said):
    result = same_files.cli("find", *words)
    assert result.code == 2 and said in result.err, result.describe()
