"""The ways in which a server of a cluster is lost, or gives its cells away, and comes back."""

import random
import signal
import time

from .crowd import Crowd, Takeover
from .process import wait_until


class Losses:
    """Under `crowd`. `done` has a Takeover for each loss of a server, `others` for what is no loss of one."""

    def __init__(self, crowd: Crowd, seed: int, machines=None):
        self.crowd, self.cluster, self.machines = crowd, crowd.cluster, machines
        self.chance = random.Random(seed)
        self.done: list[Takeover] = []
        self.others: list[Takeover] = []

    def one(self, loss: str) -> None:
        """The owner of a cell is lost. It comes back once its successors have acked all its files."""
        cluster = self.cluster
        victim = cluster.owner(self.chance.choice(cluster.cells))
        if loss == "drain":
            return self.drain(victim)
        cells = cluster.owned_by(victim)
        epochs = {cell: cluster.epoch(cell) for cell in cells}
        lost_at = time.monotonic()
        cluster.front.mark(victim, down=True)
        getattr(self, loss)(victim)
        at = time.time()
        takeover = self.crowd.await_takeover(cells, lost_at, loss, epochs)
        takeover.at, takeover.server = at, cluster.nodes[victim]
        self.done.append(takeover)
        if loss in ("stop", "cut"):
            self.wake(victim, cells, loss)
        elif loss == "power":
            self.machines.link(victim, "up")
        elif loss == "freeze":
            self.cluster.relays[victim].thaw()
        cluster.restart(victim)

    def kill(self, victim: int) -> None:
        self.cluster.servers[victim].kill9()

    def stop(self, victim: int) -> None:
        self.cluster.servers[victim].process.signal(signal.SIGSTOP)

    def cut(self, victim: int) -> None:
        self.machines.link(victim, "down")

    # With a registry in a file a server that lives keeps its cells, by the store's lock. So it ends, and its clients do
    # not learn of that.

    def power(self, victim: int) -> None:
        """Like a machine without power: packets to it are lost."""
        self.machines.link(victim, "down")
        self.cluster.servers[victim].kill9()

    def freeze(self, victim: int) -> None:
        """Like a server that stands still: clients are connected, but get no answer."""
        self.cluster.relays[victim].freeze()
        self.cluster.servers[victim].kill9()

    def wake(self, victim: int, cells: list[str], loss: str) -> None:
        """The server was in the middle of its work, and its successors have written since: none of its bytes may
        land."""
        self.keep(cells)
        if loss == "cut":
            self.machines.link(victim, "up")
        else:
            self.cluster.servers[victim].process.signal(signal.SIGCONT)
        self.cluster.assert_fenced(victim)
        for name in self.cluster.site.kept:
            self.cluster.tools.check_versions_kept(name)

    def keep(self, cells: list[str]) -> None:
        """Makes a version that must outlive all later losses."""
        name = self.chance.choice(self.crowd.files_of(cells))
        site = self.cluster.tools
        site.cli("commit", name).ok()
        site.keep(name)

    # Faults that cost no server.

    def drain(self, victim: int) -> None:
        """The server gives its cells away in order, and ends."""
        cluster = self.cluster
        cells = cluster.owned_by(victim)
        epochs = {cell: cluster.epoch(cell) for cell in cells}
        began = time.monotonic()
        cluster.front.mark(victim, down=True)  # An operator asks another one.
        cluster.tools.cli("cluster", "drain", "--exit", "--wait", "0", cluster.nodes[victim]).ok()
        for cell, epoch in epochs.items():
            cluster.wait_for_owner(cell, epoch)
        owned_s = time.monotonic() - began
        acks = self.crowd.await_acks(self.crowd.files_of(cells), began + owned_s)
        self.others.append(Takeover("drain", owned_s, owned_s + acks[0], owned_s + acks[-1]))
        code = cluster.servers[victim].process.wait(90).code
        assert code == 0, f"a drained server ends with {code}:\n{cluster.servers[victim].log_tail()}"
        cluster.restart(victim)

    def of_ceph(self, kind: str) -> None:
        """An OSD or the active MDS is killed, and all files have acks again. No server is given up. The MDS comes back; an
        OSD in memory has nothing to come back with."""
        ceph = self.cluster.ceph
        daemon = f"osd.{self.chance.randrange(3)}" if kind == "osd" else f"mds.{ceph.active_mds()}"
        given_up = [server.log().count("given up") for server in self.cluster.servers]
        lost_at = time.monotonic()
        ceph.kill(daemon)
        acks = self.crowd.await_acks(self.crowd.names, lost_at + 1, 200)
        self.others.append(Takeover(kind, 0, 1 + acks[0], 1 + acks[-1]))
        if kind == "mds":
            ceph.launch(daemon)
            wait_until(ceph.has_standby, f"{daemon} does not come back", 120, every=0.5)
        assert given_up == [server.log().count("given up") for server in self.cluster.servers], self.cluster.logs()
