"""h5mirror watch: a line for each new cut, and which objects it changed."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from harness import paths
from harness.process import Process, memory_kb, wait_until
from harness.proxy import Proxy
from test_agent import Agent

WRITER = """
    f = h5py.File("run.h5", "w")
    d = f.create_dataset("d", (100_000,), "f8")
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "close": break
        d[:] = float(line)
        f.flush()
        print("done", flush=True)
    f.close()
    print("closed", flush=True)
"""


@pytest.fixture
def writer(site):
    process = site.start(site.script(WRITER), config=site.config(ack="applied"), talks=True)
    assert process.line() == "ready" and process.ask("0") == "done"
    return process


def watch(site, *arguments):
    process = Process([paths.BIN / "h5mirror", "--server", site.address, "watch", "run.h5", *arguments], site.logs,
                      cwd=site.directory, env=site.plain_env())
    site.beside.append(process)
    return process


def test_each_cut_is_a_line_as_it_is_made(site, writer):
    lines = watch(site, "--json", "--until-done")
    first = json.loads(lines.line())
    assert first["file"] == "run.h5" and first["written_bytes"] is None and first["has_writer"]
    for n in range(1, 4):
        assert writer.ask(str(n)) == "done"
        row = json.loads(lines.line())
        assert row["cut"] > first["cut"] and row["written_bytes"] >= 800_000 and row["size_bytes"] >= 800_000
        first = row
    assert writer.ask("close") == "closed"
    assert lines.wait().code == 0
    assert lines.out().count("\n") in (4, 5)  # A close that changed nothing makes no cut of its own.


def test_it_ends_after_n_lines_and_begins_after_a_cut(site, writer):
    cut = json.loads(watch(site, "--json", "-n", "1").wait().ok().out)["cut"]
    later = watch(site, "--json", "-n", "1", "--after", str(cut))
    assert writer.ask("1") == "done"
    assert json.loads(later.line())["cut"] > cut and later.wait().code == 0


def test_a_command_runs_for_each_and_may_fail(site, writer):
    lines = watch(site, "-n", "2", "--exec", 'echo "$H5MIRROR_FILE at $H5MIRROR_CUT, $H5MIRROR_SIZE bytes" >> told; exit 7')
    told = site.directory / "told"
    wait_until(told.exists, "the command did not run")
    assert writer.ask("1") == "done"
    result = lines.wait().ok()
    assert told.read_text().count("run.h5 at ") == 2 and "ended with 7" in result.err
    assert result.out.count("lag") == 2 and " written" in result.out


def test_it_waits_for_a_server_that_comes_back(site, writer):
    lines = watch(site, "--json")
    lines.line()
    site.server.stop()
    wait_until(lambda: "waiting for it" in lines.err(), "it did not say that the server is away")
    site.server.start()
    assert writer.ask("1") == "done"
    assert json.loads(lines.line())["cut"] > 0


def test_a_file_that_is_not_there_is_an_error(site):
    result = watch(site, "-n", "1").wait()
    assert result.code == 3 and "run.h5" in result.err


# Runs the lines that come in, and flushes.
EDITOR = """
    f = h5py.File("run.h5", "w", libver={libver!r})
    f.create_group("g").attrs["units"] = "K"
    f["g/temp"] = np.zeros(300_000)
    f.create_dataset("g/chunked", shape=(100, 100), chunks=(10, 10), dtype="i4", fillvalue=7)[:] = 8
    f.create_dataset("log", data=["one"] * 20, dtype=h5py.string_dtype(), chunks=(4,), maxshape=(None,))
    for i in range(300): f.create_group("more/%03d" % i).attrs["i"] = i
    f.flush()
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "close": break
        exec(line)
        f.flush()
        print("done", flush=True)
    f.close()
    print("closed", flush=True)
"""
# Each change, and the text of its line.
EDITS = {
    "f['g/temp'][3:5] = 1": {("changed", "/g/temp"): ["data"]},
    "f['g/chunked'][55, 55] = 1": {("changed", "/g/chunked"): ["data"]},
    "f['log'][2] = 'another'": {("changed", "/log"): ["data"]},
    "f['log'].resize((24,)); f['log'][20:] = 'new'": {("changed", "/log"): ["shape", "data"]},
    "f['g'].attrs['units'] = 'C'": {("changed", "/g"): ["attribute"]},
    "f['g'].attrs['n'] = 1; f['g/temp'].attrs['n'] = 1": {("changed", "/g"): ["attribute"], ("changed", "/g/temp"): ["attribute"]},
    "f['more/117'].attrs['i'] = -1": {("changed", "/more/117"): ["attribute"]},
    "f.create_group('new/below')": {("added", "/new"): None, ("added", "/new/below"): None},
    "f['new/x'] = np.arange(9)": {("added", "/new/x"): None},
    "f.move('new/x', 'g/y')": {("moved", "/g/y"): None},
    "del f['g/y']": {("removed", "/g/y"): None},
    "f['soft'] = h5py.SoftLink('/g')": {("added", "/soft"): None},
}


# The rest of a line of a machine that stood still for two seconds.
LATE = "it takes too long"


def editor(site, libver):
    process = site.start(site.script(EDITOR.format(libver=libver)), config=site.config(ack="applied"), talks=True)
    assert process.line() == "ready"
    return process


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_line_names_the_objects_that_its_cut_changed(site, libver):
    process = editor(site, libver)
    lines = watch(site, "--json", "--until-done")
    first = json.loads(lines.line())
    assert first["changes"] is None, "there is nothing to compare it with"
    before = first["cut"]
    for edit, expected in EDITS.items():
        assert process.ask(edit) == "done"
        row = json.loads(lines.line())
        changes = row["changes"]
        found = {(each["change"], each["path"]): each.get("what") for each in changes["objects"]}
        assert found == expected or changes["note"] == LATE and found.items() <= expected.items(), (edit, changes)
        assert changes["complete"] == (changes["note"] is None) and changes["note"] in (None, LATE), (edit, changes)
        assert changes["since_cut"] == before and 0 < changes["changed_bytes"], (edit, changes)
        before = row["cut"]
    assert process.ask("close") == "closed"
    lines.wait().ok()


def test_the_line_for_people_is_short(site):
    process = editor(site, "latest")
    lines = watch(site)
    lines.line()

    def ends_with(end):
        line = lines.line()
        assert line.endswith(end) or LATE in line, lines.out()

    assert process.ask("for k in ('a', 'b', 'c'): f.create_group(k); f['more/00' + str(ord(k) - 97)].attrs['i'] = 5") == "done"
    ends_with("  +3 groups ~/more/000 ~/more/001 ~/more/002")
    assert process.ask("for i in range(200): f['more/%03d' % i].attrs['i'] = -7") == "done"
    ends_with(" (197 more)")
    assert process.ask("del f['b']") == "done"
    ends_with("  -/b")


def test_what_is_too_much_to_look_at_is_told_in_bytes(site):
    """Compact datasets are metadata: 400 of 50 KiB are 20 MB of it."""
    process = editor(site, "latest")
    lines = watch(site, "--json")
    lines.line()
    command = ("p = h5py.h5p.create(h5py.h5p.DATASET_CREATE); p.set_layout(h5py.h5d.COMPACT); "
               "s = h5py.h5s.create_simple((50_000,)); "
               "[h5py.h5d.create(f.id, b'c%d' % i, h5py.h5t.NATIVE_INT8, s, p) for i in range(400)]")
    assert process.ask(command) == "done"
    changes = json.loads(lines.line())["changes"]
    assert not changes["complete"] and "metadata" in changes["note"], changes
    assert changes["metadata_bytes"] > 15_000_000 and changes["changed_bytes"] > 15_000_000, changes
    assert process.ask("f['g'].attrs['units'] = 'F'") == "done"
    changes = json.loads(lines.line())["changes"]
    assert changes["note"] == LATE or [each["path"] for each in changes["objects"]] == ["/g"], changes


@pytest.mark.parametrize("tells", ["none", "bytes"])
def test_it_tells_less_if_asked(site, writer, tells):
    lines = watch(site, "--json", "--changes", tells)
    lines.line()
    assert writer.ask("1") == "done"
    row = json.loads(lines.line())
    assert row["changes"] is None and (row["written_bytes"] is None) == (tells == "none"), row


def test_it_goes_on_telling_objects_after_a_server_restart(site):
    process = editor(site, "latest")
    lines = watch(site, "--json")
    lines.line()
    site.server.stop()
    site.server.start()
    for n in range(20):  # The first lines after it cannot tell.
        assert process.ask(f"f['g'].attrs['units'] = str({n})") == "done"
        changes = json.loads(lines.line())["changes"]
        if changes and changes["complete"]:
            break
    assert [each["path"] for each in changes["objects"]] == ["/g"], changes


MEMORY_MAX_MIB = 128
# Compact datasets: 12 MB of metadata, all of which each line changes.
METADATA = """
    f = h5py.File("run.h5", "w", libver="latest")
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((60_000,))
    sets = [h5py.h5d.create(f.id, b"d%03d" % i, h5py.h5t.NATIVE_INT8, space, how) for i in range(200)]
    for line in sys.stdin:
        for d in sets: d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.full(60_000, int(line), "i1"))
        f.flush()
        print("done", flush=True)
"""
STEPS = 40


def unread_bytes(lines):
    """Bytes that have come to the program that looks at objects, and that it has not read."""
    helper = Path(f"/proc/{lines.pid}/task/{lines.pid}/children").read_text().strip()
    links = [os.readlink(each) for each in Path(f"/proc/{helper}/fd").iterdir()]
    rows = [row.split() for kind in ("tcp", "tcp6") for row in Path(f"/proc/{helper}/net/{kind}").read_text().splitlines()]
    return sum(int(row[4].partition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in links)


def last_cut(lines):
    return json.loads(lines.out().split("\n")[-2])["cut"]


@pytest.mark.limit(240)
@pytest.mark.site(options={"memory_max": f"{MEMORY_MAX_MIB}MiB"})
def test_who_is_stopped_costs_the_server_no_memory_and_then_tells_the_newest_cut(bare_site):
    """One in the middle of a cut, and an agent. A queue for each would be 480 MB; memory_max is what the server has for
    all that it does."""
    site = bare_site
    writer = site.start(site.script(METADATA), config=site.config(ack="applied"), talks=True)
    assert writer.ask("0") == "done"
    agent = Agent(site).start()
    reader = site.start(site.script("""
        for line in sys.stdin:
            with h5py.File("run.h5", "r") as f: print(f["d007"][5], f["d199"][-1], flush=True)
    """), config=site.config(mode="reader", agent=agent.socket), talks=True)
    assert reader.ask("look") == "0 0"
    goes_on = watch(site, "--json", "--changes", "bytes")
    goes_on.line()
    with Proxy(site.server.address) as proxy:
        site.proxy = proxy
        stopped = watch(site, "--json")
        stopped.line()
        proxy.tell("throttle 1000000")
        before = proxy.tell("totals")["to_client_bytes"]
        assert writer.ask("1") == "done"
        wait_until(lambda: proxy.tell("totals")["to_client_bytes"] > before + 100_000, "a part of the cut comes")
        stopped.signal(signal.SIGSTOP)
        agent.process.signal(signal.SIGSTOP)
        proxy.tell("throttle 0")
        wait_until(lambda: unread_bytes(stopped) > 64 << 10, "the rest is not taken")
        goes_on.line()
        most = 0
        for n in range(2, STEPS + 1):
            assert writer.ask(str(n)) == "done"
            goes_on.line()
            most = max(most, memory_kb(site.server.pid, "VmRSS") >> 10)
        if paths.TEST_ALL:
            time.sleep(75)
        print(f"the server took {most} MiB at most")
        assert most < MEMORY_MAX_MIB
        assert site.run([paths.hdf5_tool("h5dump"), "-d", "/d199", "-s", "9", "-c", "1", "run.h5"],
                        config=site.config(mode="reader", agent="off")).ok().out.count(f"(9): {STEPS}\n") == 1
        newest = int(site.status("run.h5")["last_cut"])
        for process in (stopped, agent.process):
            process.signal(signal.SIGCONT)
        for lines in (stopped, goes_on):
            wait_until(lambda: last_cut(lines) == newest, "it tells the newest cut", 60)
    assert reader.ask("look") == f"{STEPS} {STEPS}"
