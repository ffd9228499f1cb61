"""Legacy SWMR writers, unmodified: each flush of theirs, of the file or of a dataset alone, is a cut that readers open.

A named test for each idiom. In each one reader is started before there is a file, and one while it is written. Two of
them, of h5py and of C, are followed from flush to flush too."""

import json

import pytest

from harness import paths
from harness.package import Package
from harness.process import wait_until
from test_agent import Agent

MAKE = """
    NAME = sys.argv[1]
    def make(f):
        f.create_dataset("d", (0, 500), maxshape=(None, 500), chunks=(4, 500), dtype="i4")
        f.create_dataset("total", (1000,), dtype="i8")
"""
# Goes on at each line that comes in, and says when that is done.
STEPS = """
    d, total = f["d"], f["total"]
    print("ready", flush=True)
    for n, line in enumerate(sys.stdin):
        if line.strip() == "close": break
        d.resize(n + 1, axis=0)
        d[n] = n
        total[...] = n
        {flush}
        print("done", flush=True)
    f.close()
    print("closed", flush=True)
"""
FLUSH_DATASETS = STEPS.format(flush="total.flush(); d.flush()")
FLUSH_ONE_DATASET = STEPS.format(flush="d.flush()")
FLUSH_FILE = STEPS.format(flush="f.flush()")
MAKE_AND_CLOSE = """
    with h5py.File(NAME, "w", libver="latest") as f: make(f)
"""
CREATE = """
    f = h5py.File(NAME, "w", libver="latest")
    make(f)
    f.swmr_mode = True
"""
# Waits for the file; then opens it again at each "again", and reads what it has open at any other line.
READER = """
    NAME, swmr = sys.argv[1], len(sys.argv) > 2
    def opened():
        said = False
        while True:
            try:
                return h5py.File(NAME, "r", swmr=swmr)
            except FileNotFoundError as error:
                if not said: print("no file", flush=True)
                said = True
                time.sleep(0.02)
    def rows(f):
        d = f["d"]
        assert (d[:] == np.arange(d.shape[0])[:, None]).all(), d[:]
        assert (f["total"][:] == max(d.shape[0] - 1, 0)).all(), "total is of another cut"
        return d.shape[0]
    f = opened()
    print(rows(f), flush=True)
    for line in sys.stdin:
        if line.strip() == "again":
            f.close()
            f = opened()
        if line.strip() == "refresh":
            for each in f.values(): each.refresh()
        print(rows(f), flush=True)
"""
# Rows of the dataset that is flushed, which is all that a program can rely on where it flushes no other.
ROWS = """
    def rows(f):
        d = f["d"]
        assert (d[:] == np.arange(len(d))[:, None]).all(), d[:]
        return len(d)
"""
ROWS_OF_EACH_OPEN = ROWS + """
    for line in sys.stdin:
        with h5py.File(sys.argv[1], "r") as f: print(rows(f), flush=True)
"""
ROWS_OF_EACH_CUT = ROWS + """
    for f in h5mirror.follow(URL, until_done=True): print(rows(f), flush=True)
"""


class Idiom:
    """A writer of a file of its own, and its readers."""

    def __init__(self, site, name):
        self.site, self.name = site, name + ".h5"
        self.writer = None

    def reader(self, *arguments, **keys):
        return self.site.start([*self.site.script(READER), self.name, *arguments], talks=True,
                               config=self.site.config(mode="reader", **keys))

    def start(self, script):
        self.run(self.site.script(MAKE + script))

    def run(self, command):
        self.writer = self.site.start([*command, self.name], talks=True, config=self.site.config(ack="applied"))
        assert self.writer.line() == "ready"

    def step(self, count=1):
        for _ in range(count):
            assert self.writer.ask("step") == "done"

    def is_followed_live(self, script):
        """A reader that was there first and one that comes later open every step, and keep what they have open."""
        first = self.reader()
        assert first.line() == "no file"
        self.start(script)
        assert first.line() == "0"
        self.step()
        second = self.reader()
        assert second.line() == "1"
        for n in range(2, 5):
            self.step()
            assert first.ask("read") == ("0" if n == 2 else str(n - 1)), "an open stays at its cut"
            assert first.ask("again") == second.ask("again") == str(n)
        assert self.writer.ask("close") == "closed"
        assert first.ask("read") == "4" and first.ask("again") == "4"
        self.site.assert_mirrored(self.name)

    def is_followed_from_cut_to_cut(self):
        """By follow(), by `h5mirror watch`, through an agent and as the file that it publishes: each flush is one cut."""
        site, package = self.site, Package(self.site)
        package.url = f"h5mirror://{site.address}/{self.name}"
        follower = package.start(ROWS_OF_EACH_CUT)
        lines = site.start([paths.BIN / "h5mirror", "--server", site.address, "watch", self.name, "--json",
                            "--until-done"], env=site.plain_env())
        published = site.directory / "live" / self.name
        agent = Agent(site, "--publish", published.parent, self.name).start()
        shared = site.start([*site.script(ROWS_OF_EACH_OPEN), self.name], talks=True,
                            config=site.config(mode="reader", agent=agent.socket))
        wait_until(published.exists, "it is published")
        plain = site.start([*site.script(ROWS_OF_EACH_OPEN), published], talks=True, env=site.plain_env())
        cut = json.loads(lines.line())["cut"]
        assert follower.line() == shared.ask("read") == "0"
        for n in range(1, 6):
            self.step()
            assert follower.line() == str(n)
            assert json.loads(lines.line())["cut"] == cut + n
            assert shared.ask("read") == str(n)
            wait_until(lambda: plain.ask("read") == str(n), "the cut is published")
        shared.kill()
        assert agent.stop()[0] == 1
        assert self.writer.ask("close") == "closed"
        for follows in (follower, lines):
            assert follows.wait().ok().out.count("\n") in (6, 7), "the close may make a cut of its own"
        assert follower.out().split()[5:] in (["5"], ["5", "5"])
        site.assert_mirrored(self.name)


@pytest.fixture
def idiom(request, shared_site, h5py_version):
    shared_site.python = paths.venv_python(h5py_version)
    idiom = Idiom(shared_site, request.node.name.split("[")[0] + h5py_version)
    yield idiom
    for process in shared_site.beside:
        process.kill()
    shared_site.beside.clear()


def test_swmr_mode_and_dataset_flush(idiom):
    idiom.is_followed_live(CREATE + FLUSH_DATASETS)


def test_swmr_mode_and_file_flush(idiom):
    idiom.is_followed_live(CREATE + FLUSH_FILE)


def test_an_existing_file_opened_for_writing_and_then_swmr_mode(idiom):
    idiom.is_followed_live(MAKE_AND_CLOSE + """
    f = h5py.File(NAME, "r+", libver="latest")
    f.swmr_mode = True
    """ + FLUSH_DATASETS)


def test_an_existing_file_opened_with_acc_swmr_write(idiom):
    idiom.is_followed_live(MAKE_AND_CLOSE + """
    fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    flags = h5py.h5f.ACC_RDWR | h5py.h5f.ACC_SWMR_WRITE
    f = h5py.File(h5py.h5f.open(NAME.encode(), flags, fapl=fapl))
    assert f.swmr_mode
    """ + FLUSH_DATASETS)


def test_swmr_mode_and_flushes_of_one_dataset_are_followed_from_cut_to_cut(idiom):
    idiom.start(CREATE + FLUSH_ONE_DATASET)
    idiom.is_followed_from_cut_to_cut()


@pytest.mark.parametrize("h5py_version", ["3.12.1"])  # The followers' h5py.
def test_start_swmr_write_and_dataset_flush_of_a_c_program_too(idiom):
    idiom.run([paths.TEST_BIN / "e2e_swmr"])
    idiom.is_followed_from_cut_to_cut()


def test_a_reader_that_refreshes_moves_to_the_newest_cut_then_only(idiom):
    idiom.start(CREATE + FLUSH_DATASETS)
    idiom.step(2)
    reader = idiom.reader("swmr")
    assert reader.line() == "2"
    idiom.step(2)
    assert reader.ask("read") == "2" and reader.ask("refresh") == "4" and reader.ask("refresh") == "4"
    for n in range(5, 25):  # It gets long enough for new blocks of its index of chunks.
        idiom.step()
        assert reader.ask("refresh") == str(n)
    assert idiom.writer.ask("close") == "closed"
    assert reader.ask("refresh") == "24", "the file is closed, and as it was"
    assert reader.ask("again") == "24" and reader.ask("refresh") == "24"


def test_a_reader_in_c_refreshes_through_an_agent_too(idiom):
    site = idiom.site
    idiom.start(CREATE + FLUSH_DATASETS)
    idiom.step()
    agent = Agent(site).start()
    refresh = [paths.TEST_BIN / "e2e_refresh", idiom.name]
    near = site.start(refresh, talks=True, config=site.config(mode="reader"))
    far = site.start(refresh, talks=True, config=site.config(mode="reader", agent=agent.socket))
    assert near.line() == far.line() == "1"
    for n in range(2, 8):
        idiom.step()
        assert near.ask("refresh") == str(n)
        wait_until(lambda: far.ask("refresh") == str(n), "the agent has the newest cut")
    near.kill()
    far.kill()
    assert agent.stop()[0] == 1


@pytest.mark.site(options={"durable_every": "1s"})  # It waits for a durable cut.
def test_a_reader_refreshes_after_a_restart_of_the_server(bare_site):
    site, idiom = bare_site, Idiom(bare_site, "run")
    idiom.start(CREATE + FLUSH_DATASETS)
    idiom.step(2)
    reader = idiom.reader("swmr")
    assert reader.line() == "2"
    wait_until(lambda: site.status(idiom.name)["durable_cut"] == site.status(idiom.name)["last_cut"], "it is durable")
    site.server.kill9()
    assert reader.ask("refresh") == "2", "it has read all of it before"
    site.server.start()
    idiom.step()
    wait_until(lambda: reader.ask("refresh") == "3", "the writer is back")
    reader.kill()


def test_without_swmr_read_a_refresh_changes_nothing(idiom):
    idiom.start(CREATE + FLUSH_DATASETS)
    idiom.step(2)
    reader = idiom.reader()
    assert reader.line() == "2"
    idiom.step()
    assert reader.ask("refresh") == "2" and reader.ask("again") == "3"


def test_a_refresh_never_leads_to_the_cut_of_another_open(idiom):
    """Of another writer the bytes may lie anywhere: beside what HDF5 has cached they would be other data."""
    idiom.start(CREATE + FLUSH_DATASETS)
    idiom.step(2)
    reader, late = idiom.reader("swmr"), idiom.reader("swmr")
    assert reader.line() == late.line() == "2"
    assert idiom.writer.ask("close") == "closed"
    assert late.ask("refresh") == "2"
    idiom.site.py(f"""
        with h5py.File({idiom.name!r}, "r+", libver="latest") as f:
            del f["d"], f["total"]
            f["d"], f["total"] = np.full((3, 500), 7, "i4"), np.full(1000, 7)
    """, config=idiom.site.config(ack="applied"))
    for each in (reader, late):
        assert each.ask("refresh") == "2", "it stays"
    idiom.start("""
    f = h5py.File(NAME, "w", libver="latest")
    make(f)
    f.swmr_mode = True
    """ + FLUSH_DATASETS)
    idiom.step()
    for each in (reader, late):
        assert each.ask("refresh") == "2" and each.ask("again") == "1"
        assert each.ask("refresh") == "1"
    idiom.step()
    assert reader.ask("refresh") == "2"


def test_stock_tools_read_the_newest_cut(idiom):
    def tool(name, *arguments):
        return site.run([paths.hdf5_tool(name), *arguments], config=site.config(mode="reader")).ok().out

    site = idiom.site
    idiom.start(CREATE + FLUSH_DATASETS)
    for rows in (3, 4):
        idiom.step(3 if rows == 3 else 1)
        assert f"d                        Dataset {{{rows}/Inf, 500}}" in tool("h5ls", idiom.name)
        out = tool("h5dump", "-d", "/d", "-s", f"{rows - 1},0", "-c", "1,4", idiom.name)
        assert f"({rows - 1},0): {', '.join([str(rows - 1)] * 4)}\n" in out, out
