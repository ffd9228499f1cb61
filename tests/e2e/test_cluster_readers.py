"""Readers of a cluster: each knows one server or a list, is sent to the server that has the file, and goes on at its
successor. The registry lies in a file, as in test_cluster.py."""

import contextlib
import re
import signal
import socket

import pytest

from harness import hdf5, paths
from harness.package import Package
from harness.process import run, wait_until
from harness.server import Server, close_together
from harness.site import Site
from test_agent import Agent
from test_cluster import Pair

# A cut of the writer is whole if each row is there, as it was written; the rows are of all ages.
STATE = """
    import errno
    def row(n): return np.random.default_rng(n).random(1000).astype("f4")
    def state(f, first=0):
        d = f["d"]
        for n in range(first, len(d)):
            assert (d[n] == row(n)).all(), f"row {n} of {len(d)}"
        return len(d)
    def newest(f, seen):
        # A live cut that was not durable goes with its server.
        try:
            return state(f, max(0, seen - 3))
        except OSError as error:
            assert error.errno == errno.ESTALE, error
            return seen
"""
# Opens the newest cut again and again.
READER = STATE + """
    seen = 0
    while not os.path.exists("seen"):
        with h5py.File("r.h5", "r") as f:
            seen = newest(f, seen)
        print("rows", seen, flush=True)
        time.sleep(0.05)
"""
# A file at rest, of 16 MiB.
BIG = """
    with h5py.File("big.h5", "w") as f: f["d"] = np.random.default_rng(1).random((16, 1 << 17))
"""
# Has one version open for all of the time. It is far larger than the cache, so that a look asks the server.
HOLDER = """
    with h5py.File("big.h5", "r") as f:
        print("open", f["d"].shape, flush=True)
        for line in sys.stdin:
            assert (f["d"][:] == np.random.default_rng(1).random((16, 1 << 17))).all()
            print("whole", flush=True)
"""
FOLLOWER = STATE + """
    seen = 0
    for f in h5mirror.follow(URL, timeout="60s"):
        seen = newest(f, seen)
        print("rows", seen, flush=True)
        if os.path.exists("seen"): break
"""


class CountedAgent(Agent):
    """An agent that reports its totals each second, as it does to systemd."""

    def start(self):
        path = self.site.directory / "notify"
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.told.bind(str(path))
        self.told.setblocking(False)
        self.env = {**self.site.plain_env(), "NOTIFY_SOCKET": str(path)}
        self._cuts = 0
        return super().start()

    def cuts(self) -> int:
        """The cuts that have come, as it has told last."""
        with contextlib.suppress(BlockingIOError):
            while told := self.told.recv(4096).decode():
                if found := re.search(r"(\d+) cuts came", told):
                    self._cuts = int(found[1])
        return self._cuts

    def await_cuts(self, count: int) -> None:
        wait_until(lambda: self.cuts() >= count, f"the agent follows no more: {self.process.err()[-2000:]}", 60)

    def stop(self):
        self.told.close()  # Its reports go nowhere then.
        return super().stop()


class Readers:
    """One of each kind, beside a writer of r.h5. All know the server that does not serve it."""

    def __init__(self, pair):
        self.pair, site = pair, pair.site
        self.writer = pair.start_writer()
        site.cli("commit", "r.h5").ok()
        site.keep("r.h5")
        site.py(BIG, config=site.config(ack="durable", timeout="60s"))
        site.server = pair.other
        package = Package(site)
        package.url = f"h5mirror://{site.address}/r.h5"
        self.agent = CountedAgent(site).start()
        self.all = {
            "reader": self._reader(mode="reader"),
            "remote": self._reader(mode="remote"),
            "agent": self._reader(mode="reader", agent=self.agent.socket),
            "follower": package.start(FOLLOWER),
        }
        self.holder = site.start(site.script(HOLDER), talks=True,
                                 config=self._config(mode="reader", version=1, cache="1MiB"))
        assert self.holder.line().startswith("open")
        site.server = pair.owner
        self.await_rows(5)

    def _config(self, **keys) -> str:
        return self.pair.site.config(**{"agent": "off", "timeout": "60s", **keys})

    def _reader(self, **keys):
        return self.pair.site.start(self.pair.site.script(READER), config=self._config(**keys))

    def await_rows(self, count: int) -> None:
        """Until each has seen so many rows."""
        for name, process in self.all.items():
            wait_until(lambda: self._rows(process) >= count, f"the {name} is behind {count}: {process.out()[-200:]}"
                       f" {process.err()[-2000:]}", 90)

    @staticmethod
    def _rows(process) -> int:
        assert process.running(), process.out()[-500:] + process.err()
        found = re.findall(r"^rows (\d+)$", process.out(), re.MULTILINE)
        return int(found[-1]) if found else 0

    def finish(self) -> None:
        """After the takeover all of them go on with the writer's later writes."""
        self.pair.await_more(self.writer)
        self.await_rows(self.writer.out().count("cut "))
        # The agent's readers would do without it. It is seconds since the former server told of a cut.
        self.agent.await_cuts(self.agent.cuts() + 3)
        assert self.holder.ask("look") == "whole"
        self.pair.site.local("seen").touch()
        for process in self.all.values():
            process.wait().ok()
        files, _ = self.agent.stop()
        assert files == 1
        self.pair.finish(self.writer)


@pytest.fixture
def pair(tmp_path):
    servers = Pair(tmp_path)
    yield servers
    servers.close()


def test_readers_go_on_after_a_kill_of_the_owner(pair):
    readers = Readers(pair)
    pair.owner.kill9()
    pair.await_takeover()
    readers.finish()


def test_readers_go_on_after_an_owner_that_stood_still(pair):
    """Readers wait for it as long as it holds the cells, and go on at its successor."""
    readers = Readers(pair)
    pair.owner.process.signal(signal.SIGSTOP)
    wait_until(lambda: "cannot be opened" in pair.other.log(), "nobody tries to open the cell", 60)
    pair.site.server = pair.other
    pair.owner.process.signal(signal.SIGCONT)
    assert pair.owner.process.wait(60).code == 9, pair.owner.log_tail()
    pair.await_takeover()
    readers.finish()


@pytest.fixture
def dead():
    """An address where no server listens, and one where a server does not answer."""
    with socket.socket() as refuses, socket.socket() as silent:
        for each in (refuses, silent):
            each.bind(("127.0.0.1", 0))
        silent.listen(64)
        yield [f"127.0.0.1:{each.getsockname()[1]}" for each in (refuses, silent)]


def cli(site, servers, *arguments):
    """The CLI, with these servers and no others."""
    return run([paths.BIN / "h5mirror", "--server", servers, *arguments], site.logs, cwd=site.directory,
               env=hdf5.plain_env(HOME=str(site.home)), name="h5mirror")


def test_servers_of_a_list_that_do_not_answer_are_skipped(pair, dead):
    site, servers = pair.site, "|".join([*dead, pair.other.address])
    site.server = pair.owner
    site.py("""
    with h5py.File("x.h5", "w") as f: f["d"] = np.arange(1000)
    """, config=site.config(server=servers, ack="durable", timeout="60s"))
    assert site.record("x.h5")["state"] == "clean" and site.record("x.h5")["server"] == servers
    for mode in ("reader", "remote"):
        out = site.py("""
    with h5py.File("x.h5", "r") as f: print(f["d"][:].sum())
    """, config=site.config(server=servers, mode=mode, agent="off")).out
        assert out.strip() == "499500"
    out = Package(site).py(f"""
    with h5mirror.open("h5mirror://{servers}/x.h5") as f: print(f["d"][:].sum())
    """)
    assert out.strip() == "499500"
    cli(site, servers, "status", "x.h5").ok()


def test_all_servers_that_do_not_answer_are_named(tmp_path, dead):
    site = Site(tmp_path)
    said = site.run(site.script("""
    h5py.File("x.h5", "r")
    """), config=site.config(server="|".join(dead), mode="reader", agent="off", timeout="3s"))
    assert said.code != 0 and all(each in said.err for each in dead), said.describe()
    said = cli(site, "|".join(dead), "--timeout", "3", "ls")
    assert said.code == 4 and all(each in said.err for each in dead), said.describe()


def test_servers_that_send_callers_in_a_circle_are_told_of(tmp_path):
    """Each has the other one's address in its table, so whoever asks for the owner is sent to the other one."""
    registry = tmp_path / "registry"
    registry.mkdir()
    site = Site(tmp_path)
    logs = tmp_path / "logs-b"
    logs.mkdir()
    servers = [site.server, Server(site.root, logs)]
    for node, (server, other) in enumerate((servers, servers[::-1])):
        server.tables = f'[cluster]\nregistry = "file:{registry}"\nnode = "n{node}"\naddress = "{other.address}"\n'
        server.start()
    try:
        def told(server) -> str:
            site.server = server
            return site.cli("--timeout", "3", "status", "x.h5").err

        wait_until(lambda: any("in a circle" in told(server) for server in servers), "no server tells", 60)
        site.server = next(server for server in servers if "in a circle" in told(server))
        said = site.run(site.script("""
    h5py.File("x.h5", "r")
    """), config=site.config(mode="reader", agent="off", timeout="3s"))
        assert said.code != 0 and "send each other's callers in a circle" in said.err, said.describe()
        assert site.server.address in said.err
    finally:
        site.kill_programs()
        close_together(servers)
        site.server = servers[0]
        site.close()
