"""The findings of `diff` about two versions, in terms of HDF5, and its cost."""

import json
import os
import random
import time

import pytest

BASE = """
    with h5py.File("run.h5", "w") as f:
        f.attrs["title"] = "first"
        g = f.create_group("g")
        g.create_dataset("temp", data=np.arange(1000, dtype="f8")).attrs["units"] = "K"
        g.create_dataset("image", shape=(100, 100), chunks=(10, 10), dtype="i4", compression="gzip")[:] = 7
        g.create_dataset("log", data=[b"one", b"two"], dtype=h5py.string_dtype(), chunks=(1,), maxshape=(None,))
        f["soft"] = h5py.SoftLink("/g/temp")
        f["away"] = h5py.ExternalLink("other.h5", "/x")
        f.create_group("old").create_dataset("x", data=1)
        f["kind"] = np.dtype("i4")
"""


def diff(site, *arguments, code=1):
    """The findings, as (change, path, what, name) -> the finding; the rest of the document."""
    result = site.cli("diff", *arguments, "--json", timeout=120)
    assert result.code == code, result.describe()
    document = json.loads(result.out)
    assert document["equal"] == (code == 0)
    found = {(each["change"], each["path"], each.get("what", ""), each.get("name", "")): each
             for each in document["changes"]}
    assert len(found) == len(document["changes"]), document["changes"]
    return found, document


@pytest.fixture
def base(site):
    site.py(BASE)
    site.settle("run.h5")
    return site


EDITS = {
    "f['g/temp'].attrs['units'] = 'C'": {("changed", "/g/temp", "attribute", "units"): ('"K"', '"C"')},
    "f['g'].attrs['n'] = np.arange(3)": {("changed", "/g", "attribute", "n"): (None, "int64 (3,) [0, 1, 2]")},
    "del f.attrs['title']": {("changed", "/", "attribute", "title"): ('string "first"', None)},
    "f['g/new'] = np.zeros(10)": {("added", "/g/new", "", ""): (None, "dataset float64 (10,)")},
    "del f['old']": {("removed", "/old", "", ""): ("group", None),
                     ("removed", "/old/x", "", ""): ("dataset int64 ()", None)},
    "del f['soft']; f['soft'] = h5py.SoftLink('/g')": {("changed", "/soft", "link", ""): ("/g/temp", "/g")},
    "del f['away']; f['away'] = h5py.ExternalLink('b.h5', '/y')":
        {("changed", "/away", "link", ""): ("other.h5:/x", "b.h5:/y")},
    "f['kind'].attrs['a'] = 1": {("changed", "/kind", "attribute", "a"): (None, "int64 1")},
    "f['g/temp'][...] = f['g/temp'][...]": {},
    "f['g/log'][0] = b'1'": {("changed", "/g/log", "data", ""): None},
    "f['g/temp'][3:5] = -1": {("changed", "/g/temp", "data", ""): None},
    "del f['old/x']; f['old/x'] = 2.5": {("changed", "/old/x", "type", ""): ("int64", "float64")},
}


@pytest.mark.parametrize("text", EDITS)
def test_each_kind_of_change_is_told(base, text):
    base.edit("run.h5", text)
    expected = EDITS[text]
    versions = base.versions("run.h5")
    if len(versions) == 1:  # Written with equal bytes: not even a version.
        assert not expected
        return
    for more in ((), ("--full",)):
        found, _ = diff(base, "run.h5@1", *more, code=1 if expected else 0)
        assert set(found) == set(expected), found
        for key, values in expected.items():
            if values is not None:
                assert (found[key]["old"], found[key]["new"]) == values, found[key]


def test_data_is_told_by_chunk_and_run(base):
    base.edit("run.h5", """
f['g/image'][12, 30:33] = 8
f['g/image'][95, 95] = 9
f['g/temp'][10:20] = 0
f['g/temp'][999] = 0
f['g/log'].resize((3,)); f['g/log'][2] = 'three'
""")
    found, _ = diff(base, "run.h5@1", "run.h5@2")
    image = found["changed", "/g/image", "data", ""]
    assert image["elements"] == 4 and image["chunk_count"] == 2
    assert image["chunks"] == [{"offset": [10, 30], "shape": [10, 10], "elements": 3},
                               {"offset": [90, 90], "shape": [10, 10], "elements": 1}]
    temp = found["changed", "/g/temp", "data", ""]
    assert [(run["offset"], run["elements"]) for run in temp["runs"]] == [([10], 10), ([999], 1)]
    assert found["changed", "/g/log", "shape", ""]["new"] == "(3,) of at most (unlimited,)"
    assert found["changed", "/g/log", "data", ""]["chunks"] == [
        {"offset": [2], "shape": [1], "elements": 1, "note": "added"}]
    text = base.cli("diff", "run.h5@2", "run.h5@1")
    assert text.code == 1 and "chunk at (10, 30) of (10, 10): 3 elements" in text.out, text.describe()


def test_a_moved_link_and_its_change_are_told(base):
    base.edit("run.h5", "f.move('g/temp', 'warm')\nf['warm'].attrs['units'] = 'F'")
    found, _ = diff(base, "run.h5@1")
    assert found.pop(("moved", "/warm", "", ""))["old_path"] == "/g/temp"
    assert list(found) == [("changed", "/warm", "attribute", "units")]


def test_a_change_below_a_moved_group_is_told(base):
    base.edit("run.h5", "f.move('g', 'h')\nf['h/temp'].attrs['units'] = 'F'\nf['h/image'][3, 3] = 9")
    for more in ((), ("--full",)):
        found, _ = diff(base, "run.h5@1", *more)
        assert set(found) == {("moved", "/h", "", ""), ("changed", "/h/temp", "attribute", "units"),
                              ("changed", "/h/image", "data", "")}, found


def test_an_object_with_several_names_is_told_once_and_never_missed(base):
    base.edit("run.h5", "f['again'] = f['g/temp']")
    base.edit("run.h5", "f['third'] = f['g/temp']\nf['g/temp'].attrs['units'] = 'F'")
    found, _ = diff(base, "run.h5@2", "run.h5@3")
    assert sorted(key[0] for key in found) == ["added", "changed"], found
    assert [key[3] for key in found if key[0] == "changed"] == ["units"]


def test_a_text_in_the_place_of_one_as_long_is_told(base):
    """The element's own bytes, which lead to the text, are the same."""
    base.edit("run.h5", "f.create_dataset('word', data=['first'], dtype=h5py.string_dtype(), chunks=(1,), maxshape=(None,))")
    base.edit("run.h5", "f['word'][0] = 'other'")
    for more in ((), ("--full",)):
        found, _ = diff(base, "run.h5@2", *more)
        assert list(found) == [("changed", "/word", "data", "")]


def test_a_new_name_of_a_group_hides_no_change_below_it(base):
    base.edit("run.h5", "f['again'] = f['g']\nf['g/temp'].attrs['units'] = 'F'\nf['g/image'][3, 3] = 9")
    for more in ((), ("--full",)):
        found, _ = diff(base, "run.h5@1", *more)
        told = {(key[0], key[2], key[3]) for key in found}
        assert {("changed", "attribute", "units"), ("changed", "data", "")} <= told, found
        assert ("added", "/again", "", "") in found, found


def test_a_file_made_again_is_compared_by_its_objects(base):
    base.py(BASE)
    base.settle("run.h5")
    assert base.versions("run.h5") == [1, 2]
    diff(base, "run.h5@1", "run.h5@2", code=0)
    base.py(BASE.replace('"K"', '"C"').replace("shape=(100, 100)", "shape=(100, 110)").replace('b"two"', 'b"TWO"'))
    base.settle("run.h5")
    for more in ((), ("--full",)):
        found, _ = diff(base, "run.h5@1", *more)
        assert ("changed", "/g/temp", "attribute", "units") in found
        assert found["changed", "/g/image", "shape", ""]["new"] == "(100, 110)"
        assert found["changed", "/g/log", "data", ""]["elements"] == 1
        assert len(found) == 4, found


def test_a_committed_type_that_datasets_use_is_not_missed(base):
    base.edit("run.h5", "f['g'].create_dataset('typed', shape=(3,), dtype=f['kind'])")
    base.edit("run.h5", "f['g/typed'].attrs['a'] = 1\nf['kind'].attrs['b'] = 2")
    for more in ((), ("--full",)):
        found, _ = diff(base, "run.h5@2", "run.h5@3", *more)
        assert sorted(key[3] for key in found) == ["a", "b"], found


def test_pages_tells_bytes(base):
    base.edit("run.h5", "f['g/temp'][3] = -1")
    done = base.cli("diff", "--pages", "run.h5@1", "--json")
    assert done.code == 1, done.describe()
    document = json.loads(done.out)
    assert sum(run["bytes"] for run in document["pages"]) == document["bytes"] > 0
    one, other = (base.export("run.h5", n).read_bytes() for n in (1, 2))
    size = max(len(one), len(other))
    one, other = one.ljust(size, b"\0"), other.ljust(size, b"\0")
    pages = {at // 4096 for at in range(size) if one[at] != other[at]}
    told = {page for run in document["pages"] for page in range(run["page"], run["page"] + run["page_count"])}
    assert pages == told
    assert base.cli("diff", "--pages", "run.h5@2", "run.h5@2").code == 0


def test_a_diff_that_is_out_of_time_says_so(base):
    base.edit("run.h5", "f['g/temp'][3] = -1")
    for flags in ((), ("--full",), ("--pages",)):
        stopped = base.cli("diff", "--stop-after", "0s", *flags, "run.h5@1", "run.h5@2", "--json")
        document = json.loads(stopped.out)
        assert stopped.code == 2 and document["stopped_after_s"] == 0, stopped.describe()
        assert not document["equal"] and not document.get("all_compared"), document
        assert document.get("changes", document.get("pages")) == [], document
        text = base.cli("diff", "--stop-after", "0s", *flags, "run.h5@1", "run.h5@2")
        assert text.code == 2 and text.out.startswith("stopped after ") and "not compared" in text.out, text.describe()
        whole = base.cli("diff", "--stop-after", "24h", *flags, "run.h5@1", "run.h5@2", "--json")
        assert whole.code == 1 and json.loads(whole.out)["stopped_after_s"] is None, whole.describe()
    assert base.cli("diff", "--stop-after", "soon", "run.h5@1").code == 2


def test_trouble_is_neither_equal_nor_different(base):
    assert base.cli("diff", "run.h5@7").code == 3
    assert base.cli("diff", "run.h5").code == 2
    assert base.cli("diff", "run.h5@1", "other.h5@1").code == 3
    assert base.cli("diff", "run.h5@1", "run.h5@1").code == 0


RANDOM = """
    import random
    r = random.Random({seed})
    with h5py.File("run.h5", "r+", libver={libver}) as f:
        for _ in range(r.randrange(1, 4)):
            names = []
            f.visit(names.append)
            groups = ["/"] + [n for n in names if isinstance(f[n], h5py.Group)]
            sets = [n for n in names if isinstance(f[n], h5py.Dataset)]
            g, what = f[r.choice(groups)], r.randrange(9)
            name = "n%d" % r.randrange(1000)
            if what == 0 and name not in g:
                g.create_group(name)
            elif what == 1 and name not in g:
                g.create_dataset(name, data=np.arange(r.randrange(50, 2000)), chunks=r.choice([None, (50,)]))
            elif what == 2 and len(names) > 20:
                del f[r.choice(names)]
            elif what == 3:
                f[r.choice(names + ["/"])].attrs["a%d" % r.randrange(12)] = "v%d" % r.randrange(1000)
            elif what == 4:
                f[r.choice(names + ["/"])].attrs["b%d" % r.randrange(12)] = r.random()
            elif what == 5 and name not in g and sets:
                g[name] = f[r.choice(sets)]
            elif what in (6, 7) and sets:
                d = f[r.choice(sets)]
                if d.shape:
                    d[r.randrange(d.shape[0])] = r.randrange(100)
            elif what == 8 and sets and name not in g:
                f.move(r.choice(sets), g.name + "/" + name)
"""


ALIASES = """
    import json
    names = {{}}
    with h5py.File("{file}", "r") as f:
        def links(group, path):
            for name in sorted(group):
                names.setdefault(h5py.h5o.get_info(group[name].id).addr, []).append(path + name)
                if isinstance(group[name], h5py.Group):
                    links(group[name], path + name + "/")
        links(f, "/")
    print(json.dumps([each for each in names.values() if len(each) > 1]))
"""


def by_first_name(site, version, lines):
    """What is told of an object that both versions have, under the first of its names: which of them a walk meets first
    depends on where it begins."""
    copy = site.directory / f"at{version}.h5"
    site.cli("export", "--force", f"run.h5@{version}", copy).ok()
    first = {name: min(names) for names in json.loads(site.py(ALIASES.format(file=copy)).out) for name in names}
    told = [line.split(" ", 3) for line in lines]
    return sorted(" ".join([mark, first.get(path, path) if mark == "~" else path, *rest])
                  for mark, path, *rest in told)


@pytest.mark.limit(200)
@pytest.mark.parametrize("libver", ["'earliest'", "'latest'"])
def test_the_short_way_finds_what_the_long_way_finds(site, libver):
    """Random edits: the walk that stops once all changes are explained finds the same as the full walk."""
    seed = int(os.environ.get("H5M_SEED", random.randrange(10**6)))
    print(f"H5M_SEED={seed}")
    site.py(f"""
        with h5py.File("run.h5", "w", libver={libver}) as f:
            for i in range(8):
                for j in range(30):
                    d = f.create_dataset(f"g{{i}}/d{{j}}", data=np.arange(j * 20 + 1))
                    d.attrs["units"] = "unit %d" % j
    """)
    for step in range(14):
        site.py(RANDOM.format(seed=seed + step, libver=libver))
    site.settle("run.h5")
    versions = site.versions("run.h5")
    pairs = list(zip(versions, versions[1:])) + [(versions[0], versions[-1]), (versions[-1], versions[3])]
    for one, other in pairs:
        found = []
        for more in ((), ("--full",)):
            result = site.cli("diff", f"run.h5@{one}", f"run.h5@{other}", *more)
            assert result.code in (0, 1), result.describe()
            found.append(sorted(result.out.splitlines()))
        if found[0] != found[1]:
            found = [by_first_name(site, other, lines) for lines in found]
        assert found[0] == found[1], f"seed {seed}, libver {libver}, {one} to {other}"


LAYOUTS = {
    "100 groups of 1,000": """
        for i in range(100):
            g = f.create_group("group%03d" % i)
            for j in range(1000):
                g.create_dataset("d%04d" % j, data=float(j)).attrs["units"] = 1.0
    """,
    "one group of 100,000": """
        for j in range(100_000):
            f.create_dataset("d%06d" % j, data=float(j)).attrs["units"] = 1.0
    """,
}
MIDDLE = {"100 groups of 1,000": "/group050/d0500", "one group of 100,000": "/d050000"}


@pytest.mark.limit(400)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_attribute_among_100_000_objects_costs_next_to_nothing(site, layout):
    body = LAYOUTS[layout].replace("\n        ", "\n            ")
    site.py('\n        with h5py.File("run.h5", "w") as f:\n' + body, timeout=300)
    site.settle("run.h5", timeout=60)
    path = MIDDLE[layout]
    site.edit("run.h5", f"f['{path}'].attrs['units'] = 2.0")
    best = 1e9
    for _ in range(3):
        start = time.monotonic()
        found, document = diff(site, "run.h5@1", "run.h5@2")
        best = min(best, time.monotonic() - start)
    assert {key: (each["old"], each["new"]) for key, each in found.items()} == {
        ("changed", path, "attribute", "units"): ("1.0", "2.0")}
    print(layout, document["pages_read"], "pages,", document["objects_compared"], "objects,", round(best, 3), "s")
    assert document["pages_read"] < 200
    assert best < 1
