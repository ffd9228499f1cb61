"""mode=reader without a version: the newest cut of a file while it is written, pinned."""

import pytest

from harness.process import wait_until

# Goes on at each line that comes in, and says when that is done.
WRITER = """
    f = h5py.File("run.h5", "w", libver="latest")
    f.attrs["n"] = 0
    d = f.create_dataset("d", (0, 1000), maxshape=(None, 1000), chunks=(1, 1000), dtype="i4")
    s = f.create_dataset("s", (0,), maxshape=(None,), dtype=h5py.string_dtype())
    def step(n):
        d.resize(n + 1, axis=0)
        d[n] = n
        s.resize(n + 1, axis=0)
        s[n] = "string %d" % n
        f.attrs["n"] = n
        f.create_group("group %d" % n)
        if n > 2: del f["group %d" % (n - 3)]
        f.flush()
    step(0)
    print("ready", flush=True)
    for n, line in enumerate(sys.stdin, 1):
        if line.strip() == "close": break
        step(n)
        print("done", flush=True)
    f.close()
    print("closed", flush=True)
"""
# Opens once, and reads again at each line that comes in.
READER = """
    def state(f):
        n = int(f.attrs["n"])
        assert f["d"].shape[0] == n + 1 and (f["d"][n] == n).all(), "data"
        assert f["s"][n].decode() == "string %d" % n, "string"
        assert [k for k in f if k.startswith("group")] == ["group %d" % i for i in range(max(0, n - 2), n + 1)], "groups"
        return n
    f = h5py.File("run.h5", "r")
    print(state(f), flush=True)
    for line in sys.stdin:
        try:
            if line.strip() == "again":
                f.close()
                f = h5py.File("run.h5", "r")
            print(state(f), flush=True)
        except (OSError, RuntimeError, KeyError) as error:
            print("error", str(error).replace("\\n", " "), flush=True)
"""


class Live:
    """A writer that goes on step by step, and readers of its file."""

    def __init__(self, site, **keys):
        self.site = site
        self.writer = site.start(site.script(WRITER), config=site.config(ack="applied", **keys), talks=True)
        assert self.writer.line() == "ready"

    def step(self, count=1):
        for _ in range(count):
            assert self.writer.ask("step") == "done"

    def reader(self, **keys):
        """A reader, and what it saw first."""
        process = self.site.start(self.site.script(READER), talks=True, config=self.site.config(mode="reader", **keys))
        return process, process.line()


@pytest.fixture
def live(both):
    live = Live(both)
    yield live
    if live.writer.running():
        live.writer.ask("close")
    both.wait_for_no_lease("run.h5")
    both.keep("run.h5")


def test_an_open_stays_at_its_cut_and_the_next_one_is_newer(live):
    reader, first = live.reader()
    assert first == "0"
    live.step(3)
    assert reader.ask("read") == "0"
    assert reader.ask("again") == "3"
    live.step(2)
    other, newest = live.reader()
    assert newest == "5" and reader.ask("read") == "3" and other.ask("read") == "5"


def test_it_stays_while_newer_cuts_become_durable_and_the_head_moves_on(both):
    live = Live(both, flush="sync")
    reader, _ = live.reader()
    for _ in range(3):
        live.step(4)
        status = both.settle("run.h5")
        assert status["applied_cut"] == status["last_cut"]
        assert reader.ask("read") == "0"
    assert reader.ask("again") == "12"


def test_at_rest_it_is_the_newest_version_and_lasts(live):
    live.step(2)
    assert live.writer.ask("close") == "closed"
    live.site.settle("run.h5")
    log = live.site.directory / "reader.log"
    reader, first = live.reader(log=log)
    assert first == "2" and "version 1 of run.h5" in log.read_text()
    live.site.server.kill9()
    live.site.server.start()
    assert reader.ask("read") == "2"


def test_a_server_that_starts_again_does_not_know_the_cut(live):
    reader, _ = live.reader(cache="1MiB")
    live.step(600)  # more than fits into the cache
    assert reader.ask("again") == "600"
    live.site.server.kill9()
    live.site.server.start()
    answer = reader.ask("read")
    assert answer == "600" or "snapshot expired, reopen" in answer, answer
    live.step()
    wait_until(lambda: reader.ask("again") == "601", "what the server lost was not sent again")
