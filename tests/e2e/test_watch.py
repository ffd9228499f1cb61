"""h5mirror watch: a line for each new cut."""

import json

import pytest

from harness import paths
from harness.process import Process, wait_until

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
