"""Two servers on one root: one serves it, the other one takes over.

With a registry in a file the root is a local directory. Nothing but the store's lock keeps the servers apart there, and
the kernel gives that back when a process ends. With --all the same runs on a Ceph of its own, which fences.
"""

import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from harness import hdf5, paths

from harness.process import Process, wait_until
from harness.server import Server, close_together
from harness.site import Site

import pytest

WRITER = """
    with h5py.File("r.h5", "w") as f:
        d = f.create_dataset("d", (0, 1000), maxshape=(None, 1000), chunks=(1, 1000))
        n = 0
        while not os.path.exists("enough"):
            d.resize(n + 1, axis=0)
            d[n] = np.random.default_rng(n).random(1000)
            f.flush()
            print("cut", n, flush=True)
            n += 1
            time.sleep(0.05)
"""


class Pair:
    """Servers `a` and `b` of one cluster; `owner` serves the root, `other` does not."""

    def __init__(self, directory, *, registry: str = "", root: str = ""):
        if not registry:
            registry = f"file:{directory / 'registry'}"
            (directory / "registry").mkdir()
        options = {"durable_every": "200ms"}
        self.site = Site(directory, options=options, tables=self._table(registry, "a"))
        logs = directory / "logs-b"
        logs.mkdir()
        second = Server(self.site.root, logs, options=options, tables=self._table(registry, "b"))
        self.servers = [self.site.server, second]
        self.is_here = not root
        for server in self.servers:
            server.root = root or server.root
        for server in self.servers:
            server.start()
        wait_until(lambda: any(self._owns(each) for each in self.servers), "nobody serves the root")
        self.owner, self.other = sorted(self.servers, key=self._owns, reverse=True)
        # It looks at the registry once a second, and then sends callers to the owner.
        wait_until(lambda: self._answers(self.other), "it does not know the owner")

    @staticmethod
    def _table(registry, node) -> str:
        return f'[cluster]\nregistry = "{registry}"\nnode = "{node}"\n'

    @staticmethod
    def _owns(server) -> bool:
        """Whether this life of the server has opened the cell. The tools follow redirects, so their answers do not
        tell."""
        return "cluster: owns the cell" in server.log()

    def _answers(self, server) -> bool:
        self.site.server = server
        return self.site.cli("--timeout", "1", "status", "none.h5").code == 3

    def await_takeover(self) -> None:
        """Waits until the other server serves the root; then it is the site's server."""
        wait_until(lambda: self._owns(self.other), f"nobody takes over:\n{self.other.log_tail()}", 90)
        wait_until(lambda: self._answers(self.other), f"it does not answer:\n{self.other.log_tail()}", 90)

    def start_writer(self):
        """A writer that knows the other server only, and is sent to the owner."""
        self.site.server = self.other
        writer = self.site.start(self.site.script(WRITER), config=self.site.config(ack="durable", timeout="60s"))
        writer.wait_for_line("cut 5")
        self.site.server = self.owner
        self.site.wait_for_cut("r.h5")
        return writer

    def await_more(self, writer, count: int = 5) -> None:
        """Waits for so many cuts that are acked as durable from now on."""
        done = writer.out().count("cut ")
        writer.wait_for_line(f"cut {done + count}")

    def finish(self, writer) -> None:
        self.site.local("enough").touch()
        writer.wait().ok()
        assert self.site.record("r.h5")["state"] == "clean"
        if self.is_here:
            self.site.assert_mirrored("r.h5")
            self.site.check_kept()
            return
        self.site.settle("r.h5")
        self.site.check_versions_kept("r.h5")
        newest = self.site.export("r.h5", self.site.versions("r.h5")[-1])
        hdf5.assert_same(self.site.local("r.h5"), newest)
        self.site.cli("verify", "r.h5").ok()

    def close(self) -> None:
        self.site.kill_programs()
        close_together(self.servers)
        self.site.server = self.servers[0]
        self.site.close()


@pytest.fixture
def pair(tmp_path):
    servers = Pair(tmp_path)
    yield servers
    servers.close()


@pytest.fixture
def ceph_pair(tmp_path):
    """The same with a root in CephFS, on a Ceph that lives as long as the test."""
    if not paths.TEST_ALL:
        pytest.skip("a Ceph is started with --all only")
    modules = [paths.LIB / "h5mirror" / f"libh5mirror_{each}.so" for each in ("ceph", "cluster")]
    if not all(each.exists() for each in modules) or not all(map(shutil.which, ("ceph-mon", "ceph-osd", "ceph-mds"))):
        pytest.skip("there is no Ceph")
    cluster = paths.SOURCE / "tests" / "ceph" / "cluster"
    directory = Path(tempfile.mkdtemp(prefix="h5m-ceph."))
    servers = None
    try:
        subprocess.run([cluster, "start", directory], check=True, timeout=120)
        servers = Pair(tmp_path, registry="rados://data/registry", root=f"cephfs:/?conf={directory / 'ceph.conf'}")
        yield servers
    finally:
        if servers is not None:
            servers.close()
        subprocess.run([cluster, "stop", directory], check=True, timeout=120)
        shutil.rmtree(directory)


def test_a_killed_owner_is_followed_by_the_other_server(pair):
    """The writer is sent to the owner, loses it, and goes on with its successor. A watch that begins while no server
    has the file waits for the successor."""
    writer = pair.start_writer()
    assert "r.h5" in pair.owner.log() and "session begin" not in pair.other.log()
    pair.site.cli("commit", "r.h5").ok()
    pair.site.keep("r.h5")
    pair.owner.kill9()
    wait_until(lambda: "is silent, and is given up" in pair.other.log(), "nobody takes over", 60)
    watch = Process([paths.BIN / "h5mirror", "--server", pair.other.address, "watch", "-n", "1", "r.h5"], pair.site.logs,
                    cwd=pair.site.directory, env=pair.site.plain_env())
    pair.await_takeover()
    assert "  cut " in watch.wait(60).ok().out
    pair.await_more(writer)
    pair.finish(writer)


def test_an_owner_that_is_stopped_hands_its_cells_over(pair):
    """SIGTERM: the successor need not give a server up, and has nothing to recover."""
    writer = pair.start_writer()
    pair.site.cli("commit", "r.h5").ok()
    pair.site.keep("r.h5")
    pair.owner.stop()
    pair.await_takeover()
    assert "given up" not in pair.other.log()
    pair.await_more(writer)
    pair.finish(writer)


def test_an_owner_that_stood_still_ends_when_it_wakes_up(pair):
    """While the owner stands still, the lock of its store keeps its successor off. It wakes up, learns that it was
    given up, and ends with code 9; only then the other server opens the root."""
    writer = pair.start_writer()
    pair.site.cli("commit", "r.h5").ok()
    pair.site.keep("r.h5")
    pair.owner.process.signal(signal.SIGSTOP)
    wait_until(lambda: "is silent, and is given up" in pair.other.log(), "nobody gives it up", 60)
    wait_until(lambda: "cannot be opened" in pair.other.log(), "nobody tries to open the cell", 60)
    pair.site.server = pair.other
    pair.owner.process.signal(signal.SIGCONT)
    assert pair.owner.process.wait(60).code == 9, pair.owner.log_tail()
    assert "given up: the cluster has gone on without this server" in pair.owner.log()
    pair.await_takeover()
    pair.await_more(writer)
    pair.finish(writer)


def test_an_owner_comes_back_under_its_name(pair):
    """Its former life is given up and fenced first, by itself or by the other server."""
    pair.owner.kill9()
    pair.await_takeover()
    pair.owner.start()
    wait_until(lambda: pair.owner.log().count("joined the cluster") > 0, "it does not join", 60)
    pair.other.stop()
    pair.other, pair.owner = pair.owner, pair.other
    pair.await_takeover()


def test_on_ceph_a_server_that_stood_still_writes_nothing(ceph_pair):
    """While the owner stands still, its successor serves the root and acks cuts. The owner wakes up in the middle of
    its work, and none of its bytes land: each version and the head are whole, and equal the writer's."""
    pair = ceph_pair
    writer = pair.start_writer()
    pair.site.cli("commit", "r.h5").ok()
    pair.site.keep("r.h5")
    pair.owner.process.signal(signal.SIGSTOP)
    pair.await_takeover()
    pair.await_more(writer)
    pair.site.cli("commit", "r.h5").ok()
    pair.site.keep("r.h5")
    pair.owner.process.signal(signal.SIGCONT)
    # It learns first either that its session has ended, or from its record that it was given up.
    assert pair.owner.process.wait(60).code in (8, 9), pair.owner.log_tail()
    pair.await_more(writer)
    pair.finish(writer)


def test_on_ceph_a_killed_owner_is_followed_by_the_other_server(ceph_pair):
    pair = ceph_pair
    writer = pair.start_writer()
    pair.site.cli("commit", "r.h5").ok()
    pair.site.keep("r.h5")
    pair.owner.kill9()
    pair.await_takeover()
    pair.await_more(writer)
    pair.owner.start()
    wait_until(lambda: pair.owner.log().count("joined the cluster") > 0, "it does not join", 60)
    pair.other.stop()
    pair.other, pair.owner = pair.owner, pair.other
    pair.owner.start()  # The one server that the writer knows.
    pair.await_takeover()
    pair.await_more(writer)
    pair.finish(writer)


def test_a_wrong_table_is_refused(tmp_path):
    site = Site(tmp_path, tables='[cluster]\nregistry = "rados://pool/registry"\nnode = "a"\n')
    result = site.server.launch().wait()
    assert result.code == 2 and "in CephFS only" in result.err, result.describe()
