"""H5FDh5mirror_wait: a C program is told of each cut of a file on a server."""

import pytest

from harness import paths

WRITER = """
    f = h5py.File("run.h5", "w")
    for line in sys.stdin:
        f.attrs["n"] = int(line)
        f.flush()
        print("done", flush=True)
"""


def wait(site, name, after, timeout_ms, count=1, url=None):
    command = [paths.TEST_BIN / "e2e_wait", url or f"h5mirror://{site.address}/{name}", str(after), str(timeout_ms),
               str(count)]
    return site.start(command, config="")


@pytest.fixture
def writer(site):
    process = site.start(site.script(WRITER), config=site.config(ack="applied"), talks=True)
    assert process.ask("0") == "done"
    return process


def test_it_returns_with_each_new_cut(site, writer):
    first = wait(site, "run.h5", 0, 10_000).wait().ok().out.split()
    assert first[0] == "0" and int(first[1]) > 0
    waiting = wait(site, "run.h5", first[1], 20_000, count=3)
    seen = [int(first[1])]
    for n in (1, 2, 3):
        assert writer.ask(str(n)) == "done"
        result, cut = waiting.line().split()
        assert result == "0" and int(cut) > seen[-1]
        seen.append(int(cut))
    waiting.wait().ok()


def test_its_time_passes(site, writer):
    newest = wait(site, "run.h5", 0, 0).wait().ok().out.split()[1]
    assert wait(site, "run.h5", newest, 300).wait().ok().out.split() == ["1", newest]
    assert wait(site, "run.h5", newest, 0).wait().ok().out.split() == ["1", newest]


def test_what_is_wrong_is_on_the_error_stack(site):
    missing = wait(site, "none.h5", 0, 100).wait()
    assert missing.code == 1 and "none.h5" in missing.err and "errno = 2" in missing.err, missing.describe()
    assert "not an h5mirror URL" in wait(site, "", 0, 100, url="run.h5").wait().err
    nobody = wait(site, "", 0, 100, url="h5mirror://127.0.0.1:1/run.h5").wait()
    assert nobody.code == 1 and "127.0.0.1:1" in nobody.err, nobody.describe()


def test_a_thread_that_waits_does_not_spoil_forks(site, writer):
    after = wait(site, "run.h5", 0, 0).wait().ok().out.split()[1]
    forking = site.start([paths.TEST_BIN / "e2e_wait_forks", f"h5mirror://{site.address}/run.h5", after, "8"])
    assert forking.line() == "forked"
    assert writer.ask("1") == "done"
    result, cut = forking.line().split()
    assert result == "0" and int(cut) > int(after)
    told = forking.wait().ok()
    assert not told.err, told.describe()
    for n in range(9):
        site.assert_mirrored(f"child{n}.h5")
