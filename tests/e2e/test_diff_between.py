"""`diff` with paths left out, with a tolerance, and between two files."""

import json

import pytest

BASE = """
    with h5py.File("run.h5", "w") as f:
        f.create_dataset("keep/temp", data=np.arange(1000, dtype="f8")).attrs["mean"] = 499.5
        f.create_dataset("keep/count", data=np.arange(10, dtype=">i8"))
        f.create_dataset("scratch/a/image", shape=(100, 100), chunks=(10, 10), dtype="f4", compression="gzip")[:] = 7
        f.create_dataset("scratch/words", data=["one", "two"], dtype=h5py.string_dtype())
        f.create_dataset("tmp", data=1)
"""


@pytest.fixture
def base(site):
    site.py(BASE)
    site.settle("run.h5")
    return site


def diff(site, *arguments, code=1):
    """The findings, as (change, path, what or name); the whole document."""
    result = site.cli("diff", *arguments, "--json", timeout=120)
    assert result.code == code, result.describe()
    document = json.loads(result.out)
    assert document["equal"] == (code == 0), document
    return {(each["change"], each["path"], each.get("name") or each.get("what", "")) for each in document["changes"]}, document


EVERYWHERE = """
f['keep/temp'].attrs['mean'] = 1.0
f['scratch/a/image'][3, 3] = 9
f['scratch/a'].attrs['n'] = 1
f['scratch/new'] = 5
f['tmp'][...] = 2
f['keep'].create_group('tmp')['x'] = 1
"""
KEPT = {("changed", "/keep/temp", "mean")}
CHANGED_TMP = {("changed", "/tmp", "data")}
ADDED_TMP = {("added", "/keep/tmp", ""), ("added", "/keep/tmp/x", "")}
SCRATCH = {("changed", "/scratch/a/image", "data"), ("changed", "/scratch/a", "n"), ("added", "/scratch/new", "")}


@pytest.mark.parametrize("patterns, expected", [
    ((), KEPT | CHANGED_TMP | ADDED_TMP | SCRATCH), (("/scratch",), KEPT | CHANGED_TMP | ADDED_TMP),
    (("/scratch/**",), KEPT | CHANGED_TMP | ADDED_TMP), (("**/tmp",), KEPT | SCRATCH),
    (("/scratch", "**/tmp"), KEPT), (("**",), set()), (("/scratch/a", "**/tmp"), KEPT | {("added", "/scratch/new", "")})])
def test_what_is_excluded_is_not_listed(base, patterns, expected):
    base.edit("run.h5", EVERYWHERE)
    flags = [word for pattern in patterns for word in ("--exclude", pattern)]
    for more in ((), ("--full",)):
        found, document = diff(base, "run.h5@1", *flags, *more, code=1 if expected else 0)
        assert found == expected, found
        assert document["excluded"] == list(patterns)
    text = base.cli("diff", "run.h5@1", *flags).out.splitlines()
    assert [line for line in text if line.startswith("not told: ")] == (
        ["not told: objects at or below " + ", ".join(patterns)] if patterns else [])


def test_a_change_among_excluded_ones_is_found_as_soon_as_without(base):
    base.py("""
        with h5py.File("run.h5", "r+") as f:
            for i in range(300):
                f.create_dataset(f"many/d{i:03}", data=np.arange(100)).attrs["n"] = 1
    """)
    base.edit("run.h5", "f['scratch/a/image'][3, 3] = 9\nf['scratch/a'].attrs['n'] = 1\nf['keep/temp'].attrs['mean'] = 1.0")
    found, document = diff(base, "run.h5@2", "--exclude", "/scratch")
    assert found == KEPT
    assert document["objects_compared"] < 100, document


def test_an_excluded_name_of_an_object_does_not_hide_its_other_name(base):
    base.edit("run.h5", "f['scratch/alias'] = f['keep/temp']\nf['keep/group'] = f['scratch/a']")
    base.edit("run.h5", "f['keep/temp'].attrs['mean'] = 1.0\nf['keep/group/image'][3, 3] = 9")
    found, _ = diff(base, "run.h5@2", "--exclude", "/scratch")
    assert found == KEPT | {("changed", "/keep/group/image", "data")}


def test_what_moved_out_of_an_excluded_group_is_new(base):
    base.edit("run.h5", "f.move('scratch/a', 'a')")
    found, _ = diff(base, "run.h5@1", "--exclude", "/scratch")
    assert found == {("added", "/a", ""), ("added", "/a/image", "")}


@pytest.mark.parametrize("wrong", ["scratch", "/", "/a/", "/[a"])
def test_what_is_no_pattern_is_named(base, wrong):
    result = base.cli("diff", "run.h5@1", "--exclude", wrong)
    assert result.code == 2 and "is no pattern of paths" in result.err, result.describe()


def test_a_tolerance_is_that_of_numpy(base):
    base.edit("run.h5", """
f['keep/temp'][10] = 10.0009
f['keep/temp'][500] = 501
f['keep/temp'][999] = np.nan
f['keep/temp'].attrs['mean'] = 499.5001
f['keep/count'][3] = 4
f['scratch/a/image'][3, 3] = 7.0005
""")
    old, new = np_old_and_new(base)
    for flags in ([], ["--rtol", "1e-4"], ["--atol", "0.001"], ["--rtol", "1e-3", "--atol", "1e-3"], ["--atol", "1"]):
        limits = dict(zip(flags[::2], map(float, flags[1::2])))
        found, document = diff(base, "run.h5@1", *flags)
        expected = sum(not close(a, b, limits) for a, b in zip(old, new))
        told = [each for each in document["changes"] if each["path"] == "/keep/temp" and each["what"] == "data"]
        assert [each["elements"] for each in told] == [expected], (flags, told)
        assert (("changed", "/keep/temp", "mean") in found) == (not close(499.5, 499.5001, limits)), flags
        assert (("changed", "/keep/count", "data") in found) == (not close(3, 4, limits)), flags
        assert (("changed", "/scratch/a/image", "data") in found) == (not close(7, 7.0005, limits)), flags
        assert (document["atol"], document["rtol"]) == (limits.get("--atol", 0), limits.get("--rtol", 0))


def np_old_and_new(site):
    out = site.py("""
        import json
        with h5py.File("run.h5", "r") as f:
            print(json.dumps(f["keep/temp"][:].tolist()))
    """).out
    return [float(n) for n in range(1000)], json.loads(out)


def close(old, new, limits):
    """The rule of numpy.isclose(old, new)."""
    if not limits:
        return old == new
    return abs(old - new) <= limits.get("--atol", 0) + limits.get("--rtol", 0) * abs(new)


def test_a_nan_is_equal_to_a_nan(base):
    base.edit("run.h5", "f['keep/temp'][:] = np.nan")
    base.edit("run.h5", "f['keep/temp'][:] = -np.float64(np.nan)\nf['tmp'].attrs['n'] = 1")
    found, _ = diff(base, "run.h5@2", "run.h5@3", "--atol", "1")
    assert found == {("changed", "/tmp", "n")}


def test_two_files_on_a_server_are_compared(base):
    base.py(BASE.replace("run.h5", "second.h5").replace("499.5", "499.6"))
    base.settle("second.h5")
    found, document = diff(base, "run.h5@1", "second.h5@latest")
    assert found == {("changed", "/keep/temp", "mean")}
    assert (document["file"], document["new_file"]) == ("run.h5", "second.h5"), document
    base.edit("second.h5", "f['renamed'] = f['tmp']\ndel f['tmp']")
    found, _ = diff(base, "run.h5@1", "second.h5@latest", "--exclude", "/keep")
    assert found == {("removed", "/tmp", ""), ("added", "/renamed", "")}, "no moves between files"
    assert base.cli("diff", "run.h5@1", "second.h5@1", "--rtol", "1e-2").code == 0


def test_local_files_are_compared_as_they_are(base):
    base.cli("export", "run.h5@1", base.work / "one.h5").ok()
    base.cli("export", "run.h5@1", base.work / "other.h5").ok()
    assert base.cli("diff", base.work / "one.h5", base.work / "other.h5").code == 0
    base.py("h5py.File('other.h5', 'r+')['keep/count'][3] = 5")
    found, document = diff(base, base.work / "one.h5", base.work / "other.h5")
    assert found == {("changed", "/keep/count", "data")}
    assert (document["file"], document["old"]) == (None, None) and document["old_local"].endswith("one.h5"), document
    assert diff(base, "run.h5@1", base.work / "other.h5")[0] == found
    assert diff(base, base.work / "other.h5", "run.h5@1")[0] == found
    result = base.cli("diff", base.work / "one.h5")
    assert result.code == 2 and "names no version" in result.err, result.describe()


def test_a_user_block_on_one_side_changes_nothing(base):
    base.py("""
        for name, block in (("plain.h5", 0), ("block.h5", 512)):
            with h5py.File(name, "w", userblock_size=block) as f:
                f.create_dataset("image", data=np.arange(10000).reshape(100, 100), chunks=(10, 10), compression="gzip")
                f["temp"] = np.arange(1000)
                f.create_dataset("words", data=["one", "two"], dtype=h5py.string_dtype())
    """)
    for one, other in (("plain.h5", "block.h5"), ("block.h5", "plain.h5")):
        assert diff(base, base.work / one, base.work / other, code=0)[0] == set()


def test_what_is_no_hdf5_file_is_trouble(base):
    (base.work / "text.h5").write_text("no HDF5")
    result = base.cli("diff", "run.h5@1", base.work / "text.h5")
    assert result.code not in (0, 1) and "text.h5" in result.err, result.describe()


def test_pages_go_with_neither_a_pattern_nor_a_tolerance(base):
    for more in (("--exclude", "/a"), ("--rtol", "1"), ("--atol", "1")):
        assert base.cli("diff", "--pages", "run.h5@1", *more).code == 2
