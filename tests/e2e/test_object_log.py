"""`log FILE:/PATH` and `blame`: the changes of one object from version to version, and the cost of the answer."""

import fcntl
import json
import os
import signal
import subprocess

import pytest

from harness import hdf5, paths


def fill(site):
    """Versions 1 to 8 of run.h5."""
    site.edit("run.h5", "f.create_dataset('other', data=np.arange(100))")
    site.edit("run.h5", "d = f.create_dataset('g/temp', data=np.arange(10000.0), chunks=(100,), maxshape=(None,))\n"
                        "d.attrs['units'] = 'K'\nd.attrs['scale'] = 1.0")
    site.edit("run.h5", "f['other'][3] = 7")
    site.edit("run.h5", "f['g/temp'][5:8] = -1")
    site.edit("run.h5", "f['g/temp'].attrs['units'] = 'C'\nf['g/temp'].attrs['new'] = [1, 2]")
    site.edit("run.h5", "f['g/temp'].resize((10100,))\ndel f['g/temp'].attrs['new']")
    site.edit("run.h5", "f['g/more'] = 5")
    site.edit("run.h5", "del f['g/temp']")
    assert site.versions("run.h5") == list(range(1, 9))
    return site


@pytest.fixture
def history(site):
    return fill(site)


@pytest.fixture(scope="module")
def same_history(module_site):
    """For tests that change nothing."""
    return fill(module_site)


def log(site, path, *flags):
    """The events as (version, event, changes), newest first; the whole document."""
    document = site.json("log", f"run.h5:{path}", *flags)
    return [(each["version"]["version"], each["event"],
             sorted(change.get("name") or change.get("what") or change["path"] for change in each["changes"]))
            for each in document["events"]], document


ALL = [(8, "went", []), (6, "changed", ["new", "shape"]), (5, "changed", ["new", "units"]), (4, "changed", ["data"]),
       (2, "appeared", [])]


def test_each_change_of_an_object_is_told_and_no_other(same_history):
    events, document = log(same_history, "/g/temp")
    assert events == ALL
    assert document["complete"] and document["versions_seen"] == 8, document
    assert document["events"][0]["before"] == 7
    assert document["events"][3]["changes"][0]["elements"] == 3
    text = same_history.cli("log", "run.h5:/g/temp").ok().out
    for words in ("went; version 7 has it: dataset float64 (10100,)", 'attribute units: "K" -> "C"',
                  "data: 3 elements in 1 chunk", "appeared: dataset float64 (10000,)"):
        assert words in text, text


def test_versions_that_left_it_alone_are_not_opened(history):
    _, document = log(history, "/other")
    assert [each["version"]["version"] for each in document["events"]] == [3, 1], document
    for n in range(30):
        history.edit("run.h5", f"f['g/more'][()] = {n + 100}")
    _, later = log(history, "/other")
    assert later["versions_seen"] == document["versions_seen"] + 30
    assert later["versions_opened"] <= document["versions_opened"] + 2, later


def test_limit_and_times_choose_what_is_told(same_history):
    assert log(same_history, "/g/temp", "-n", "2")[0] == ALL[:2]
    times = {each["version"]: each["time"] for each in same_history.log("run.h5")}
    events, document = log(same_history, "/g/temp", "--since", times[5])
    assert events == ALL[:3] and not document["complete"], events
    assert log(same_history, "/g/temp", "--until", times[5])[0] == ALL[2:]
    assert log(same_history, "/g/temp", "--since", times[4], "--until", times[5])[0] == ALL[2:4]


def test_a_replaced_object_and_one_that_came_back(history):
    history.edit("run.h5", "f['g/temp'] = np.arange(5)")
    history.edit("run.h5", "f['new'] = np.arange(6)\ndel f['g/temp']\nf.move('new', 'g/temp')")
    history.edit("run.h5", "del f['g/temp']\nf.create_group('g/temp')")
    events, _ = log(history, "/g/temp")
    assert [event[:2] for event in events][:3] == [(11, "replaced"), (10, "replaced"), (9, "appeared")], events
    assert events[3:] == ALL


def test_of_a_group_attributes_and_links_count(history):
    events, _ = log(history, "/g")
    assert events == [(8, "changed", ["link"]), (7, "changed", ["link"]), (2, "appeared", [])]
    history.edit("run.h5", "f['g'].attrs['title'] = 'x'")
    assert log(history, "/g")[0][0] == (9, "changed", ["title"])
    assert log(history, "/")[0][-1] == (1, "appeared", [])


def test_soft_links_are_followed_and_others_are_objects(history):
    history.edit("run.h5", "f['g/temp'] = np.arange(5)\nf['to'] = h5py.SoftLink('/g')\nf['away'] = h5py.ExternalLink('x.h5', '/x')")
    history.edit("run.h5", "f['g/temp'][0] = 9")
    assert log(history, "/to/temp")[0][0] == (10, "changed", ["data"])
    events, document = log(history, "/away")
    assert events == [(9, "appeared", [])], events
    assert document["events"][0]["object"] == "external link to x.h5:/x"


@pytest.mark.parametrize("more", ["", ", chunks=(1,), maxshape=(None,)"])
def test_texts_that_are_written_again_are_seen(site, more):
    site.edit("run.h5", f"f.create_dataset('word', data=['first'], dtype=h5py.string_dtype(){more})")
    for word in ("other", "third", "third"):
        site.edit("run.h5", f"f['word'][0] = '{word}'\nf.attrs['n'] = np.random.rand()")
    events, _ = log(site, "/word")
    assert events == [(3, "changed", ["data"]), (2, "changed", ["data"]), (1, "appeared", [])]


def test_a_file_made_again_is_followed(history):
    history.edit("run.h5", "f['x'] = 1")
    history.py("""
        with h5py.File("run.h5", "w") as f:
            f["pad"] = np.arange(100)
            f["other"] = np.arange(100)
            f["other"][3] = 7
            f["x"] = 2
    """)
    history.settle("run.h5")
    assert log(history, "/x")[0] == [(10, "changed", ["data"]), (9, "appeared", [])]
    assert [event[0] for event in log(history, "/other")[0]] == [3, 1], "equal values"


def test_versions_that_were_dropped_are_not_guessed(history):
    history.cli("prune", "run.h5", "--keep-last", "4").ok()
    events, _ = log(history, "/g/temp")
    assert events == [(8, "went", []), (6, "changed", ["new", "shape"]), (5, "first_seen", [])]


@pytest.mark.parametrize("words, code, said", [
    (("log", "run.h5:/none"), 3, "has no /none in any of the 8 versions"), (("log", "none.h5:/g"), 3, "none.h5"),
    (("blame", "run.h5"), 2, "names no object"), (("blame", "run.h5:/g/temp"), 3, "run.h5@8 has no object /g/temp"),
    (("blame", "none.h5:/g"), 3, "none.h5")])
def test_what_cannot_be_is_named(same_history, words, code, said):
    result = same_history.cli(*words)
    assert result.code == code and said in result.err, result.describe()


def blame(site, path):
    document = site.json("blame", f"run.h5:{path}")
    return {each["name"]: (each["value"], each["version"]["version"], each["or_earlier"])
            for each in document["attributes"]}


def test_blame_names_the_version_behind_each_attribute(site):
    site.edit("run.h5", "f['d'] = 1\nf['d'].attrs['a'] = 1\nf['d'].attrs['b'] = 'x'")
    site.edit("run.h5", "f['d'].attrs['b'] = 'y'")
    site.edit("run.h5", "f['d'].attrs['c'] = 2.5\nf['other'] = 1")
    site.edit("run.h5", "f['d'].attrs['a'] = 1\nf['other'][()] = 2")
    assert blame(site, "/d") == {"a": ("int64 1", 1, False), "b": ('string "y"', 2, False), "c": ("float64 2.5", 3, False)}
    text = site.cli("blame", "run.h5:/d").ok().out
    assert text.splitlines()[0].split()[:3] == ["ATTRIBUTE", "VALUE", "VERSION"], text
    site.edit("run.h5", "f['new'] = 1\nf['new'].attrs['b'] = 'y'\ndel f['d']\nf.move('new', 'd')")
    assert {name: found[1] for name, found in blame(site, "/d").items()} == {"b": 5}
    assert site.cli("blame", "run.h5:/other").ok().out == "/other has no attributes\n"


def test_blame_says_where_older_versions_are_gone(site):
    site.edit("run.h5", "f['d'] = 1\nf['d'].attrs['a'] = 1")
    site.edit("run.h5", "f['d'].attrs['b'] = 1")
    site.edit("run.h5", "f['d'].attrs['c'] = 1")
    site.cli("prune", "run.h5", "--keep-last", "2").ok()
    assert {name: found[1:] for name, found in blame(site, "/d").items()} == {
        "a": (2, True), "b": (2, True), "c": (3, False)}


def test_what_dropped_versions_did_is_not_said_of_the_next_one(site):
    site.edit("run.h5", "f['d'] = 1\nf['d'].attrs['a'] = f['d'].attrs['b'] = 1")
    site.edit("run.h5", "f['d'].attrs['a'] = 2")
    site.edit("run.h5", "f['d'].attrs['b'] = 2")
    site.edit("run.h5", "f['x'] = 1")
    site.edit("run.h5", "f['d'].attrs['c'] = 1")
    site.edit("run.h5", "f['d'].attrs['c'] = 2")
    site.cli("tag", "run.h5@1", "keep").ok()
    site.cli("prune", "run.h5", "--keep-last", "2", "--keep-tag", "keep").ok()
    assert site.versions("run.h5") == [1, 5, 6]
    assert {name: found[1:] for name, found in blame(site, "/d").items()} == {"a": (5, True), "b": (5, True), "c": (6, False)}
    event, = log(site, "/x")[1]["events"]
    assert (event["event"], event["version"]["version"], event["before"]) == ("appeared", 5, 1)
    assert "(since version 1)" in site.cli("log", "run.h5:/x").ok().out


def test_what_cannot_be_read_has_not_changed(site):
    """Texts behind a filter that is missing: whether they changed is not known."""
    site.edit("run.h5", "f.create_dataset('w', data=['text %d' % n for n in range(1000)], dtype=h5py.string_dtype(), chunks=(500,), "
                        "compression='lzf')")
    site.edit("run.h5", "f['n'] = 1")
    difference = site.cli("diff", "--full", "run.h5@1", "run.h5@2")
    assert difference.code == 1 and "? /w  data: data cannot be read" in difference.out and "bytes differ" not in difference.out, difference.describe()
    logged = site.cli("log", "run.h5:/w", "--json")
    document = json.loads(logged.out)
    assert logged.code == 1 and not document["complete"], logged.describe()
    assert [each["event"] for each in document["events"]] == ["unknown", "appeared"], document


def test_large_values_are_read_a_few_at_a_time(site):
    site.edit("run.h5", "d = f.create_dataset('v', (2000,), dtype=h5py.vlen_dtype('f8'))\n"
                        "for n in range(2000): d[n] = np.full(12_500, float(n))")
    site.edit("run.h5", "f['n'] = 1")
    assert log(site, "/v")[0] == [(1, "appeared", [])]
    log_it = [paths.BIN / "h5mirror", "--server", site.address, "log", "run.h5:/v", "--json"]
    pid = os.posix_spawn(log_it[0], log_it, hdf5.plain_env(HOME=str(site.home)), file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    assert status == 0 and usage.ru_maxrss < 400 << 10, usage  # KiB


def test_rows_come_as_they_are_found_and_a_signal_ends_it(site):
    count = 80
    site.py(f"""
    for n in range({count}):
        with h5py.File("run.h5", "a") as f:
            f.require_dataset("d", (10,), "f8").attrs["text"] = "a text that is long enough, number %d" % n
    """)
    site.settle("run.h5")
    assert site.versions("run.h5") == list(range(1, count + 1))
    ours, its = os.pipe()
    fcntl.fcntl(its, fcntl.F_SETPIPE_SZ, 4096)  # It takes no more than half of the rows.
    command = subprocess.Popen([paths.BIN / "h5mirror", "--server", site.address, "log", "run.h5:/d"], stdout=its,
                               env=site.plain_env(), start_new_session=True)
    os.close(its)
    with os.fdopen(ours, "rb", buffering=0) as rows:
        titles, newest = rows.readline(), rows.readline()
        assert titles.split()[:3] == [b"VERSION", b"TIME", b"WHAT"] and newest.split()[0] == b"80", (titles, newest)
        assert command.poll() is None, "all other rows do not fit into the pipe"
        command.send_signal(signal.SIGINT)
        assert command.wait(60) == 128 + signal.SIGINT
        assert rows.read().count(b"\n") < count - 1, "the helper has ended too"


RANDOM = """
    import random
    r = random.Random({seed})
    with h5py.File("run.h5", "a", libver={libver}) as f:
        for _ in range(r.randrange(1, 4)):
            name = "d%d" % r.randrange(6)
            what = r.randrange(6)
            if name not in f:
                f.create_dataset(name, data=np.arange(r.randrange(50, 2000)), chunks=r.choice([None, (50,)]))
            elif what == 0:
                del f[name]
            elif what in (1, 2):
                f[name].attrs["a%d" % r.randrange(3)] = r.randrange(3)
            elif what == 3:
                f[name].attrs["s%d" % r.randrange(3)] = "v%d" % r.randrange(1000)
            else:
                f[name][r.randrange(f[name].shape[0])] = r.randrange(100)
"""


@pytest.mark.limit(200)
@pytest.mark.parametrize("libver", ["'earliest'", "'latest'"])
def test_the_log_says_what_diffs_of_neighbours_say(site, libver):
    """Random edits: each version that `diff --full` says has changed an object is in its log, and no other."""
    import os
    import random

    seed = int(os.environ.get("H5M_SEED", random.randrange(10**6)))
    print(f"H5M_SEED={seed}")
    for step in range(16):
        site.py(RANDOM.format(seed=seed + step, libver=libver))
    site.settle("run.h5")
    versions = site.versions("run.h5")
    told = {}
    for one, other in zip(versions, versions[1:]):
        document = json.loads(site.cli("diff", "--full", f"run.h5@{one}", f"run.h5@{other}", "--json").out)
        for change in document["changes"]:
            assert change["change"] != "unknown", change
            for path in {change["path"], change.get("old_path", change["path"])}:
                told.setdefault(path, set()).add(other)
    for path in {f"/d{n}" for n in range(6)} & set(told):
        events, _ = log(site, path)
        # An object in another one's place may be equal to it: that is a change here, but none for `diff`.
        logged = {version for version, event, changes in events
                  if version != versions[0] and (event != "replaced" or changes)}
        assert logged == told[path], f"seed {seed}, libver {libver}, {path}: {events}"
