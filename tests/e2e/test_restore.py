"""`restore` brings one object of a version back into the file, with all that belongs to it, as one version."""

import json
import os
import signal

import pytest

from harness import hdf5, paths
from harness.process import Process, run, wait_until
from harness.site import Site
from harness.users import ANNA, needs_root, running_host

FULL = """
    with h5py.File("run.h5", "w") as f:
        g = f.create_group("g")
        g.attrs["title"] = "first"
        g.create_dataset("image", data=np.arange(10000).reshape(100, 100), chunks=(10, 10), compression="gzip")
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(g.id, b"compact", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((4,)), compact)
        g["compact"][:] = [1, 2, 3, 4]
        g.create_dataset("words", data=["one", "two", "three"], dtype=h5py.string_dtype())
        g["rows"] = np.array([(1, 2.5), (3, 4.5)], dtype=[("n", "i4"), ("x", "f8")])
        g.create_dataset("empty", shape=(0, 5), maxshape=(None, 5), chunks=(10, 5))
        g["null"] = h5py.Empty("f4")
        f["scale"] = np.arange(100)
        g.create_dataset("refs", data=[g["image"].ref, f["scale"].ref, g.ref], dtype=h5py.ref_dtype)
        g.create_dataset("regions", data=[g["image"].regionref[2:4, 5:9]], dtype=h5py.regionref_dtype)
        pair = np.dtype([("n", "i4"), ("r", h5py.ref_dtype)])
        g.create_dataset("pairs", data=np.array([(5, g["rows"].ref), (6, None)], dtype=pair), dtype=pair)
        lists = g.create_dataset("lists", (2,), dtype=h5py.vlen_dtype(h5py.ref_dtype))
        lists[0] = np.array([g["words"].ref, f["scale"].ref], dtype=h5py.ref_dtype)
        f["scale"].make_scale("x")
        g["image"].dims[0].attach_scale(f["scale"])
        g.attrs["best"] = g["image"].ref
        g["soft"] = h5py.SoftLink("/g/image")
        g["away"] = h5py.ExternalLink("other.h5", "/x")
        g["kind"] = np.dtype("i4")
        g["typed"] = h5py.Empty("i4")
        f["keep"] = 1
"""

# Facts about the group, wherever it is.
CHECK = """
    with h5py.File(NAME, "r") as f:
        g = f[GROUP]
        assert g.attrs["title"] == "first"
        assert (g["image"][:] == np.arange(10000).reshape(100, 100)).all() and g["image"].compression == "gzip"
        assert g["compact"][:].tolist() == [1, 2, 3, 4]
        assert g["compact"].id.get_create_plist().get_layout() == h5py.h5d.COMPACT
        assert [w.decode() for w in g["words"][:]] == ["one", "two", "three"]
        assert g["rows"][:].tolist() == [(1, 2.5), (3, 4.5)]
        assert g["empty"].shape == (0, 5) and g["null"].shape is None
        assert [f[r].name for r in g["refs"][:]] == [GROUP + "/image", "/scale", GROUP], [f[r].name for r in g["refs"]]
        region = g["regions"][0]
        assert f[region].name == GROUP + "/image" and f[region][region].sum() == g["image"][2:4, 5:9].sum()
        assert g["pairs"][0]["n"] == 5 and f[g["pairs"][0]["r"]].name == GROUP + "/rows" and not g["pairs"][1]["r"]
        assert [f[r].name for r in g["lists"][0]] == [GROUP + "/words", "/scale"]
        assert f[g.attrs["best"]].name == GROUP + "/image"
        assert g["image"].dims[0][0].name == "/scale"
        assert g.get("soft", getlink=True).path == "/g/image"
        assert g.get("away", getlink=True).filename == "other.h5"
        assert isinstance(g["kind"], h5py.Datatype) and g["kind"].dtype == np.dtype("i4")
        assert sorted(k for k in f if k.startswith(".")) == []
        assert f["keep"][()] == 1
"""


def check(site, name="run.h5", group="/g"):
    site.run(site.script(f"NAME, GROUP = {str(name)!r}, {group!r}\n" + CHECK.replace("\n    ", "\n")),
             env=site.plain_env()).ok()


def edit(site, text, name="run.h5", **options):
    lines = "\n".join("        " + line for line in text.strip().splitlines())
    site.py(f"\n    with h5py.File({name!r}, 'r+') as f:\n" + lines, **options)


def plain(site, text):
    return site.run(site.script(text), env=site.plain_env()).ok()


@pytest.fixture
def full(site):
    """run.h5: version 1 has the group, version 2 has lost it."""
    site.py(FULL)
    edit(site, "del f['g']")
    site.settle("run.h5")
    assert site.versions("run.h5") == [1, 2]
    return site


def test_a_group_comes_back_with_all_that_belongs_to_it(full):
    done = full.json("restore", "run.h5@1:/g")
    assert (done["action"], done["kind"], done["version"], done["from_version"]) == ("restored", "group", 3, 1), done
    assert done["objects"] == 13 and done["links"] == 2 and done["lost_references"] == [], done
    check(full)
    full.assert_mirrored("run.h5")
    newest = full.log("run.h5")[0]
    assert (newest["version"], newest["comment"]) == (3, "restore of /g from version 1"), newest
    assert full.record("run.h5")["state"] == "clean"
    full.check_kept()


def test_a_local_path_and_a_comment_with_a_semicolon(full):
    full.cli("restore", f"{full.work}/run.h5@latest-1:/g/rows", "--as", "/new/parent/rows", "-m", 'a; "b" ü').ok()
    plain(full, "assert h5py.File('run.h5')['/new/parent/rows'][:].tolist() == [(1, 2.5), (3, 4.5)]")
    assert full.log("run.h5")[0]["comment"] == 'a; "b" ü'
    assert full.versions("run.h5") == [1, 2, 3]
    full.assert_mirrored("run.h5")


def test_as_another_name_references_lead_to_the_copy(full):
    full.cli("restore", "run.h5@1:/g", "--as", "/old/g").ok()
    check(full, group="/old/g")


def test_what_is_there_is_refused_and_replaced(full):
    edit(full, "f['g/image'] = np.zeros(3)\nf['again'] = f['g']\nf['to'] = f['keep'].ref")
    refused = full.cli("restore", "run.h5@1:/g")
    assert refused.code == 5, refused.describe()
    assert "run.h5 has /g already" in refused.err and "--replace" in refused.err and "--as" in refused.err
    assert full.versions("run.h5") == [1, 2, 3]
    done = full.json("restore", "run.h5@1:/g", "--replace")
    assert done["action"] == "replaced" and done["other_names"] == 1 and done["version"] == 4, done
    check(full)
    plain(full, "f = h5py.File('run.h5'); assert f['again/image'].shape == (3,)")
    full.assert_mirrored("run.h5")


def test_references_to_what_is_replaced_lead_to_the_new_one(full):
    edit(full, "f['g/image'] = np.zeros(3)\nf.attrs['r'] = f['g/image'].ref")
    done = full.json("restore", "run.h5@1:/g", "--replace")
    assert done["led_over"] == 1, done
    plain(full, "f = h5py.File('run.h5'); assert f[f.attrs['r']].shape == (100, 100)")


def test_a_reference_to_what_is_gone_is_null_and_told(full):
    edit(full, "del f['scale']")
    result = full.cli("restore", "run.h5@1:/g").ok()
    assert "/scale, which" in result.err and "became null" in result.err, result.describe()
    plain(full, "f = h5py.File('run.h5'); assert not f['g/refs'][1] and f[f['g/refs'][0]].name == '/g/image'")
    full.cli("restore", "run.h5@1:/scale").ok()
    done = full.json("restore", "run.h5@1:/g", "--replace")
    assert done["lost_references"] == [], done
    check(full)


def test_attributes_alone(full):
    edit(full, """
g = f.create_group('g')
g['image'] = np.zeros(3)
g.attrs['title'] = 'second'
g.attrs['own'] = 1
""")
    refused = full.cli("restore", "run.h5@1:/g", "--attribute", "title", "--attribute", "best")
    assert refused.code == 5 and "title" in refused.err, refused.describe()
    done = full.json("restore", "run.h5@1:/g", "--attribute", "title", "--attribute", "best", "--replace")
    assert done["attribute_names"] == ["title", "best"] and done["version"] == 4, done
    plain(full, """
        f = h5py.File("run.h5")
        assert f["g"].attrs["title"] == "first" and f["g"].attrs["own"] == 1
        assert f[f["g"].attrs["best"]].name == "/g/image" and sorted(f["g"].attrs) == ["best", "own", "title"]
    """)
    missing = full.cli("restore", "run.h5@1:/g", "--attribute", "none")
    assert missing.code == 3 and "no attribute none" in missing.err, missing.describe()
    full.assert_mirrored("run.h5")


def test_links_come_back_as_links(full):
    full.cli("restore", "run.h5@1:/g/soft", "--as", "/soft").ok()
    full.cli("restore", "run.h5@1:/g/away", "--as", "/away").ok()
    plain(full, """
        f = h5py.File("run.h5")
        assert f.get("soft", getlink=True).path == "/g/image"
        assert f.get("away", getlink=True).filename == "other.h5"
    """)


def test_into_another_file(full):
    plain(full, "h5py.File('plain.h5', 'w')['scale'] = 5")
    done = full.json("restore", "run.h5@1:/g/image", "--into", full.work / "plain.h5")
    assert done["version"] is None and done["into"].endswith("plain.h5"), done
    plain(full, "f = h5py.File('plain.h5'); assert f['g/image'].shape == (100, 100) and f['scale'][()] == 5")
    full.cli("restore", "run.h5@1:/g", "--into", full.work / "made.h5").ok()
    plain(full, "f = h5py.File('made.h5'); assert f['g/rows'].shape == (2,)")
    failed = full.cli("restore", "run.h5@1:/none", "--into", full.work / "never.h5")
    assert failed.code == 3 and not (full.work / "never.h5").exists(), failed.describe()
    # One that is mirrored gets a version.
    full.py("h5py.File('second.h5', 'w')['x'] = 1")
    done = full.json("restore", "run.h5@1:/g/image", "--into", full.work / "second.h5")
    assert done["version"] == 2, done
    full.assert_mirrored("second.h5")
    assert full.log("second.h5")[0]["comment"] == "restore of /g/image from run.h5@1"


def test_a_dry_run_changes_nothing(full):
    before = hdf5.digest(full.local("run.h5"))
    done = full.json("restore", "run.h5@1:/g", "--dry-run")
    assert (done["action"], done["objects"], done["version"]) == ("would_restore", 13, None), done
    assert done["bytes"] > 1000, done
    there = full.json("restore", "run.h5@1:/keep", "--replace", "--dry-run")
    assert there["action"] == "would_replace", there
    assert full.cli("restore", "run.h5@1:/keep", "--dry-run").code == 5
    assert full.cli("restore", "run.h5@1:/g", "--into", full.work / "new.h5", "--dry-run").ok()
    assert not (full.work / "new.h5").exists()
    assert hdf5.digest(full.local("run.h5")) == before and full.versions("run.h5") == [1, 2]


def test_what_cannot_be_is_named(full):
    for wrong, code, words in [
            ("run.h5:/g", 2, "names no version"), ("run.h5@1", 2, "names no object"), ("run.h5@1:/", 2, "root group"),
            ("run.h5@9:/g", 3, "9"), ("none.h5@1:/g", 3, "none.h5"), ("run.h5@1:/none", 3, "has no /none"),
            ("run.h5@2:/g", 3, "run.h5@2 has no /g")]:
        result = full.cli("restore", wrong)
        assert result.code == code and words in result.err, result.describe()
    assert full.versions("run.h5") == [1, 2]


def test_a_writer_that_has_the_file_is_in_the_way(full):
    writer = full.start(full.script("""
        f = h5py.File("run.h5", "r+")
        print("open", flush=True)
        sys.stdin.read()
    """), talks=True)
    assert writer.line() == "open"
    refused = full.cli("restore", "run.h5@1:/g")
    assert refused.code == 5 and "run.h5" in refused.err and "open" in refused.err, refused.describe()
    writer.popen.stdin.close()
    writer.wait().ok()
    full.wait_for_no_lease("run.h5")
    full.cli("restore", "run.h5@1:/g").ok()
    check(full)


def test_a_file_that_is_on_the_server_only(bare_site):
    site = bare_site
    config = site.config(mode="remote")
    site.py(FULL, config=config)
    edit(site, "del f['g']", config=config)
    assert site.versions("run.h5") == [1, 2] and not site.local("run.h5").exists()
    done = site.json("restore", "run.h5@1:/g")
    assert done["version"] == 3, done
    assert site.log("run.h5")[0]["comment"] == "restore of /g from version 1"
    check(site, site.export("run.h5", 3))
    assert site.json("restore", "run.h5@1:/g", "--replace", "--dry-run")["action"] == "would_replace"
    assert not site.local("run.h5").exists()


def embedded_cli(site, *arguments):
    return run([paths.BIN / "h5mirror", *arguments], site.logs, cwd=site.work, name="h5mirror",
               env=hdf5.plain_env(HOME=str(site.home)))


def test_a_history_beside_the_file(bare_site):
    site = bare_site
    site.py(FULL, config="server=embedded")
    edit(site, "del f['g']", config="server=embedded")
    assert json.loads(embedded_cli(site, "restore", "run.h5@1:/g", "--dry-run", "--json").ok().out)["objects"] == 13
    done = json.loads(embedded_cli(site, "restore", "run.h5@1:/g", "--json").ok().out)
    assert done["version"] == 3 and done["lost_references"] == [], done
    check(site)
    versions = json.loads(embedded_cli(site, "log", "run.h5", "--json").ok().out)["versions"]
    assert versions[0]["comment"] == "restore of /g from version 1" and len(versions) == 3
    edit(site, "f['g'].attrs['title'] = 'x'", config="server=embedded")
    embedded_cli(site, "restore", "run.h5@1:/g", "--attribute", "title", "--attribute", "best", "--replace").ok()
    check(site)


@pytest.mark.parametrize("seen", ["progress", "start"])
def test_a_kill_of_the_helper_leaves_a_whole_version(site, seen):
    site.py("""
        with h5py.File("run.h5", "w") as f:
            f["keep"] = 1
            big = f.create_dataset("big", (64, 1 << 20), "u1", chunks=(1, 1 << 20))
            for n in range(64):
                big[n] = np.random.default_rng(n).integers(0, 255, 1 << 20, dtype="u1")
    """, timeout=300)
    edit(site, "del f['big']\nf['after'] = 2")
    site.settle("run.h5")
    site.keep("run.h5")
    size = site.local("run.h5").stat().st_size
    restore = Process([paths.BIN / "h5mirror", "--server", site.address, "restore", "run.h5@1:/big"], site.logs,
                      env=hdf5.plain_env(HOME=str(site.home)), cwd=site.directory, name="h5mirror")
    site.beside.append(restore)

    def grown() -> bool:
        wanted = size + (8 << 20) if seen == "progress" else 0
        return not restore.running() or site.local("run.h5").stat().st_size > wanted

    wait_until(grown, "the file does not grow", 120)
    restore.signal(signal.SIGKILL)
    restore.wait()
    site.wait_for_no_lease("run.h5")
    assert site.versions("run.h5")[:2] == [1, 2]
    site.check_versions_kept("run.h5")
    hdf5.assert_opens(site.head("run.h5"))
    plain(site, "f = h5py.File('run.h5'); assert f['keep'][()] == 1 and f['after'][()] == 2 and '.h5' not in str(list(f))")
    again = site.cli("restore", "run.h5@1:/big", timeout=300)
    if again.code != 0 and "has /big already" not in again.err:  # The kill has left bytes behind the end.
        assert again.code == 5 and "h5mirror recover" in again.err, again.describe()
        site.cli("recover", site.local("run.h5")).ok()
        site.cli("restore", "run.h5@1:/big", timeout=300).ok()
    plain(site, "assert h5py.File('run.h5')['big'].shape == (64, 1 << 20)")
    site.assert_mirrored("run.h5")


def test_another_file_at_the_place_of_the_local_one_is_not_touched(full):
    moved = full.work / "moved.h5"
    full.local("run.h5").rename(moved)
    (full.work / "run.h5.h5m").rename(full.work / "moved.h5.h5m")
    plain(full, "h5py.File('run.h5', 'w')['g'] = 5")
    before = hdf5.digest(full.local("run.h5"))
    refused = full.cli("restore", "run.h5@1:/g", "--replace")
    assert refused.code == 5 and "--into" in refused.err, refused.describe()
    assert hdf5.digest(full.local("run.h5")) == before and full.versions("run.h5") == [1, 2]


def test_a_mirror_that_has_gone_on_is_settled_first(full):
    full.cli("rollback", "run.h5@1").ok()
    before = hdf5.digest(full.local("run.h5"))
    refused = full.cli("restore", "run.h5@1:/g")
    assert refused.code == 5 and "diverged" in refused.err, refused.describe()
    assert hdf5.digest(full.local("run.h5")) == before


def test_the_target_stays_with_its_own_server(full, tmp_path):
    (tmp_path / "other").mkdir()
    other = Site(tmp_path / "other")
    try:
        other.server.start()
        other.py("h5py.File('b.h5', 'w')['x'] = np.arange(7)")
        other.settle("b.h5")
        env = hdf5.plain_env(HOME=str(full.home))
        command = [paths.BIN / "h5mirror", "--server", other.address, "restore", "b.h5@1:/x", "--into", full.local("run.h5")]
        refused = run(command, full.logs, env=env, cwd=full.directory, name="h5mirror")
        assert refused.code != 0 and full.address in refused.err, refused.describe()
        run(command, full.logs, env={**env, "H5MIRROR_SERVER": full.address}, cwd=full.directory, name="h5mirror").ok()
        assert full.versions("run.h5") == [1, 2, 3] and full.record("run.h5")["server"] == full.address
        assert other.versions("b.h5") == [1]
        assert [each["name"] for each in other.json("ls")["files"]] == ["b.h5"]
        full.assert_mirrored("run.h5")
    finally:
        other.close()


def test_a_kill_of_the_tool_ends_the_helper(site):
    site.py("""
        with h5py.File("run.h5", "w") as f:
            big = f.create_dataset("big", (64, 1 << 20), "u1", chunks=(1, 1 << 20))
            for n in range(64):
                big[n] = np.random.default_rng(n).integers(0, 255, 1 << 20, dtype="u1")
    """, timeout=300)
    site.settle("run.h5")
    made = site.work / "new.h5"
    restore = Process([paths.BIN / "h5mirror", "--server", site.address, "restore", "run.h5@1:/big", "--into", made], site.logs,
                      env=hdf5.plain_env(HOME=str(site.home)), cwd=site.directory, name="h5mirror")
    site.beside.append(restore)

    def unfinished():
        return [each for each in site.work.iterdir() if each.name.startswith(".new.h5")]

    wait_until(lambda: unfinished() or not restore.running(), "the helper makes no file", 120)
    os.kill(restore.pid, signal.SIGKILL)  # Not its group: the helper lives.
    restore.wait()
    wait_until(lambda: not unfinished(), "the helper goes on, or leaves its file", 120)
    if made.exists():  # It was at its end.
        plain(site, "assert h5py.File('new.h5')['big'].shape == (64, 1 << 20)")
        made.unlink()
    site.cli("restore", "run.h5@1:/big", "--into", made, timeout=300).ok()
    plain(site, "assert h5py.File('new.h5')['big'].shape == (64, 1 << 20)")


def test_a_comment_that_the_driver_does_not_take_is_refused_before(full):
    before = hdf5.digest(full.local("run.h5"))
    refused = full.cli("restore", "run.h5@1:/g", "-m", "x" * 5000)
    assert refused.code == 2 and "4096" in refused.err, refused.describe()
    assert hdf5.digest(full.local("run.h5")) == before


def test_what_is_replaced_and_references_to_it_are_told(full):
    edit(full, """
f['g/old'] = np.zeros(3)
f['g/image'] = np.zeros((2, 2))
f['refs'] = np.array([f['g/old'].ref, f['g/image'].ref], dtype=h5py.ref_dtype)
""")
    for words in (["--dry-run"], []):
        done = full.json("restore", "run.h5@1:/g", "--replace", *words)
        assert (done["old_kind"], done["old_objects"], done["led_over"]) == ("group", 3, 1), done
        assert done["old_bytes"] == 3 * 8 + 4 * 8, done
        assert done["lost_references"] == [
            {"object": "/refs", "leads_to": "/g/old", "count": 1, "why": "missing", "removed": True}], done
    plain(full, "f = h5py.File('run.h5'); assert not f['refs'][0] and f[f['refs'][1]].shape == (100, 100)")
    check(full)
    result = full.cli("restore", "run.h5@1:/keep", "--as", "/g", "--replace", "--dry-run").ok()
    assert "instead of a group (13 objects" in result.out + result.err, result.describe()
    assert "reference of /refs to /g/image, which the restored object does not have" in result.err, result.describe()
    full.assert_mirrored("run.h5")


def test_one_object_of_two_names_becomes_two_and_is_told(site):
    site.py("""
        with h5py.File("run.h5", "w") as f:
            f["g/data"] = 1
            f["det"] = f["g/data"]
            f["h/root"] = f["/"]
    """)
    edit(site, "f['det'][()] = 2")
    site.settle("run.h5")
    done = site.json("restore", "run.h5@1:/g", "--replace", "--dry-run")
    assert done["splits"] == [{"object": "/g/data", "other": "/det"}] and done["split_count"] == 1, done
    told = site.cli("restore", "run.h5@1:/g", "--replace").ok()
    assert "/g/data and /det were one object" in told.err, told.describe()
    plain(site, "f = h5py.File('run.h5'); assert f['g/data'][()] == 1 and f['det'][()] == 2")
    whole = site.json("restore", "run.h5@1:/h", "--as", "/copy", "--dry-run")
    assert {"object": "/copy/root", "other": "/"} in whole["splits"], whole
    site.assert_mirrored("run.h5")


def test_a_filter_that_is_missing_is_named_before_any_change(site):
    site.py("""
        with h5py.File("run.h5", "w") as f:
            f["n"] = 1
            f.create_dataset("words", data=["one"] * 100, dtype=h5py.string_dtype(), chunks=(100,), compression="lzf")
            f.create_dataset("numbers", data=np.zeros(100), chunks=(100,), compression="lzf")
    """)
    edit(site, "del f['words']\ndel f['numbers']")
    site.settle("run.h5")
    for words in (["--dry-run"], []):
        refused = site.cli("restore", "run.h5@1:/words", *words)
        assert refused.code == 5 and "/words" in refused.err and "lzf (32000)" in refused.err, refused.describe()
        assert "HDF5_PLUGIN_PATH" in refused.err, refused.describe()
    assert site.versions("run.h5") == [1, 2]
    site.cli("restore", "run.h5@1:/numbers").ok()  # Its chunks are copied as they are.
    plain(site, "assert (h5py.File('run.h5')['numbers'][:] == 0).all()")
    edit(site, "f.create_dataset('refs', data=[f['n'].ref] * 9, dtype=h5py.ref_dtype, chunks=(9,), compression='lzf')")
    site.settle("run.h5")
    versions = site.versions("run.h5")
    for words in (["--dry-run"], []):
        refused = site.cli("restore", "run.h5@1:/n", "--replace", *words)
        assert refused.code == 5 and "/refs" in refused.err and "lzf (32000)" in refused.err, refused.describe()
    assert site.versions("run.h5") == versions


def test_a_dataset_whose_scale_stays_is_told(full):
    result = full.cli("restore", "run.h5@1:/g").ok()
    assert "/g/image leads to a dimension scale" in result.err, result.describe()


@needs_root
def test_reading_takes_read_and_writing_takes_write(tmp_path):
    with running_host(tmp_path) as host:
        host.fill()
        # The tool of other users is a copy, and its helper lies elsewhere.
        env = hdf5.plain_env(HOME=str(host.directory / ANNA), H5MIRROR_LIBEXEC_DIR=str(paths.BUILD / "libexec/h5mirror"),
                             H5MIRROR_PLUGIN_DIR=str(paths.LIB), LD_LIBRARY_PATH=str(paths.HDF5 / "lib"))

        def restore(*arguments):
            secret = host.directory / "robot.token"
            return run([host.tool, "--server", host.site.address, "--token", f"@{secret}", "restore", *arguments],
                       host.site.logs, env=env, cwd=host.directory / "robot", name="h5mirror")

        denied = restore("beamline/a.h5@1:/x", "--as", "/y")
        assert denied.code == 8, denied.describe()
        out = host.directory / "robot" / "out.h5"
        restore("beamline/a.h5@1:/x", "--into", out).ok()
        hidden = restore("home/news/a.h5@1:/x", "--into", out, "--replace")
        assert hidden.code == 3, hidden.describe()
        assert b"/x" in hdf5.dump(out, "-n")


def test_python_restores_and_tells_what_came(package):
    out = package.py("""
    import asyncio, h5py, h5mirror.aio
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["entry/d"] = np.arange(100.0)
        f["entry/d"].attrs["units"] = "K"
    with h5py.File("run.h5", "a", driver="h5mirror", config=CONFIG) as f:
        f["entry/d"][:] = 0
        f["entry/d"].attrs["units"] = "C"
    os.remove("run.h5")
    shown = h5mirror.restore(URL + "@1", "/entry/d", to="/entry/before", dry_run=True)
    print(shown.kind, shown.path, shown.version, shown.is_dry_run, len(h5mirror.versions(URL)))
    came = h5mirror.restore(URL + "@1", "/entry/d", to="/entry/before", comment="as it was")
    print(came.kind, came.objects, came.attributes, came.from_version, came.version, came.replaced_kind, came.lost_references)
    print(h5mirror.versions(URL)[-1].comment)
    attempts = {"there": lambda: h5mirror.restore(URL + "@1", "/entry/d"), "path": lambda: h5mirror.restore(URL + "@1", "entry"),
                "none": lambda: h5mirror.restore(URL + "@1", "/none"), "version": lambda: h5mirror.restore(URL + "@9", "/entry/d")}
    for name, attempt in attempts.items():
        try:
            attempt()
        except Exception as error:
            print(name, type(error).__name__, getattr(error, "errno", None))
    units = asyncio.run(h5mirror.aio.restore(URL + "@1", "/entry/d", attributes=["units"], replace=True))
    print(units.attributes, units.version)
    with h5mirror.open(URL) as f:
        print(f["entry/before"][99], f["entry/d"][99], f["entry/d"].attrs["units"])
    """, first="import h5mirror\nimport numpy as np")
    assert out.splitlines() == [
        "dataset /entry/before None True 2", "dataset 1 1 1 3 None ()", "as it was", "there OSError 16", "path ValueError None",
        "none FileNotFoundError 2", "version FileNotFoundError 2", "1 4", "99.0 0.0 K"], out
