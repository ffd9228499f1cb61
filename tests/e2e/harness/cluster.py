"""Several servers on one root, each directory of which, a cell, has one server at a time.

Clients and tools ask any server, and follow a file to its server. The owner of a cell is the server whose log says that
it serves it at the highest epoch.
"""

import re
import selectors
import socket
import threading
import time
from pathlib import Path

from . import hdf5, paths
from .ceph import Ceph
from .process import wait_until
from .server import Server, close_together
from .site import Site

_SERVES = re.compile(r'serves the cell "([^"]*)", epoch (\d+)')
_OWNS = re.compile(r'owns the cell "([^"]*)", epoch (\d+)')


class Front:
    """The common name of servers: a forwarder that leads each connection to a living server, like a load balancer.
    `down` is the result of its health check."""

    def __init__(self, addresses: list[str]):
        self._addresses = [address.rsplit(":", 1) for address in addresses]
        self._down: set[int] = set()
        self._pairs: dict[socket.socket, tuple[socket.socket, int]] = {}
        self._changed = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._ends = self._is_frozen = False
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def mark(self, index: int, *, down: bool) -> None:
        """A server that is down gets no connection, and its connections are cut."""
        with self._changed:
            (self._down.add if down else self._down.discard)(index)

    def is_down(self, index: int) -> bool:
        return index in self._down

    def freeze(self) -> None:
        """Acts like a server that stands still: its kernel accepts connections and bytes until its buffers are full."""
        self._is_frozen = True

    def thaw(self) -> None:
        """Ends all connections, and goes on."""
        for index in range(len(self._addresses)):
            self.mark(index, down=True)
        self._is_frozen = False
        wait_until(lambda: not self._pairs, "connections do not end")
        for index in range(len(self._addresses)):
            self.mark(index, down=False)

    def close(self) -> None:
        self._ends = True
        self._thread.join(10)
        for each in [*self._pairs, self._listener]:
            each.close()

    def _run(self) -> None:
        while not self._ends:
            if self._is_frozen:
                time.sleep(0.02)
                continue
            for key, _ in self._selector.select(0.1):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj in self._pairs:
                    self._forward(key.fileobj)
            with self._changed:
                down = set(self._down)
            for each in [one for one, (_, index) in self._pairs.items() if index in down]:
                self._drop(each)

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        for index, (host, port) in enumerate(self._addresses):
            with self._changed:
                if index in self._down:
                    continue
            try:
                far = socket.create_connection((host, int(port)), 1)
            except OSError:
                continue
            for one, other in ((near, far), (far, near)):
                one.settimeout(10)
                self._pairs[one] = (other, index)
                self._selector.register(one, selectors.EVENT_READ)
            return
        near.close()

    def _forward(self, one: socket.socket) -> None:
        try:
            data = one.recv(1 << 16)
            if data:
                self._pairs[one][0].sendall(data)
                return
        except OSError:
            pass
        self._drop(one)

    def _drop(self, one: socket.socket) -> None:
        other, _ = self._pairs.get(one, (None, 0))
        for each in (one, other):
            if each is not None and self._pairs.pop(each, None) is not None:
                self._selector.unregister(each)
                each.close()


class Cluster:
    """Servers `a`, `b`, ... of one cluster, on a root of their own or in CephFS.

    `cells` are directories of the root. `envs` and `prefixes` are of one server each. With `relays` clients reach each
    server through a forwarder of its own, which can be frozen.
    """

    def __init__(self, directory: Path, *, ceph: Ceph | None = None, nodes: str = "abc", cells: tuple = ("p", "q", "r"),
                 options: dict | None = None, envs: list | None = None, prefixes: list | None = None,
                 listens: list | None = None, relays: bool = False):
        self.ceph, self.cells, self.nodes = ceph, cells, list(nodes)
        self.is_local = ceph is None
        registry = ceph.registry if ceph else f"file:{directory / 'registry'}"
        (directory / "registry").mkdir()
        (directory / "root").mkdir()
        options = {"durable_every": "200ms", **(options or {})}
        self.site = Site(directory)
        self.site.server.close()  # It has servers of its own.
        self.servers: list[Server] = []
        for index, node in enumerate(self.nodes):
            home = directory / f"server-{node}"
            home.mkdir()
            listen = listens[index] if listens else "127.0.0.1:0"
            table = f'[cluster]\nregistry = "{registry}"\nnode = "{node}"\n' + (
                f'address = "{listen}"\n' if listens else "") + f"cells = [{', '.join(map(_quoted, cells))}]\n"
            self.servers.append(Server(ceph.root if ceph else self.site.root, home, options=options, tables=table,
                                       listen=listen, env=envs[index] if envs else None,
                                       prefix=prefixes[index] if prefixes else ()))
        self.site.server = self.servers[0]
        self.addresses = [server.address for server in self.servers]  # for clients
        self.relays = [Front([address]) for address in self.addresses] if relays else []
        if relays:
            self.addresses = [relay.address for relay in self.relays]
            for server, address in zip(self.servers, self.addresses):
                server.tables = server.tables.replace("node =", f'address = "{address}"\nnode =')
        self.front = Front(self.addresses)

    def start(self) -> "Cluster":
        """Waits until each cell has its server, and each server has had its share."""
        self._make_cells()
        for server in self.servers:
            server.start()
        wait_until(lambda: all(self.owner(cell) is not None for cell in self.cells), "a cell has no server", 60)
        for server in self.servers:
            wait_until(lambda each=server: "joined the cluster" in each.log(), "a server does not join", 60)
        return self

    def _make_cells(self) -> None:
        if self.is_local:
            for cell in self.cells:
                (self.site.root / cell).mkdir()
            return
        self.ceph.make_directories(self.cells)

    # Owners.

    def epochs(self, index: int) -> dict[str, int]:
        """The cells that a server has taken in this life, with their epochs."""
        server = self.servers[index]
        log = server.log()
        found = _SERVES.findall(log)
        if not found and server.runs != paths.BUILD:  # The first releases logged only the claim.
            found = _OWNS.findall(log)
        return {cell: int(epoch) for cell, epoch in found}

    def owner(self, cell: str) -> int | None:
        """The index of the server that took a cell last; None: no started server has taken it."""
        found = [(epochs[cell], index) for index in range(len(self.servers)) if cell in (epochs := self.epochs(index))]
        return max(found)[1] if found else None

    def epoch(self, cell: str) -> int:
        return max((self.epochs(index).get(cell, 0) for index in range(len(self.servers))), default=0)

    def judgements(self) -> int:
        """How often the servers, in their present lives, have given a server up."""
        return sum(server.log().count("is silent, and is given up") for server in self.servers)

    def owned_by(self, index: int) -> list[str]:
        return [cell for cell in self.cells if self.owner(cell) == index]

    @property
    def tools(self) -> Site:
        """The site. Its tools ask a server that answers, and that server sends them on to the file's server."""
        self.site.server = next(server for index, server in enumerate(self.servers)
                                if server.running() and not self.front.is_down(index))
        return self.site

    def wait_for_owner(self, cell: str, after: int, timeout: float = 90) -> int:
        """Waits until a cell has an owner of a later epoch than `after`. Returns its index."""
        wait_until(lambda: self.epoch(cell) > after, f"no server takes over the cell {cell}:\n{self.logs()}", timeout)
        return self.owner(cell)

    def logs(self, lines: int = 15) -> str:
        return "\n".join(f"-- {node}:\n{server.log_tail(lines)}" for node, server in zip(self.nodes, self.servers))

    # Loss and return.

    def kill(self, index: int) -> None:
        self.front.mark(index, down=True)
        self.servers[index].kill9()

    def restart(self, index: int) -> None:
        """A new life of a server that has ended."""
        self.servers[index].start()
        wait_until(lambda: "joined the cluster" in self.servers[index].log(), "it does not join the cluster", 90)
        self.front.mark(index, down=False)

    # Claims.

    def assert_fenced(self, index: int) -> None:
        """A server that lives on after it was given up ends by itself: it learns this from the end of its session (exit
        code 8), or from its record (9)."""
        code = self.servers[index].process.wait(90).code
        assert code in (8, 9), f"exit {code}:\n{self.servers[index].log_tail()}"

    def assert_whole(self, name: str) -> None:
        """Head and newest version equal the local file; all noted versions are there, and all versions verify."""
        site = self.tools
        site.settle(name)
        head = site.head(name)
        if self.ceph:
            head = self.ceph.get(name, site.directory / "head")
        hdf5.assert_same(site.local(name), head)
        newest = site.export(name, site.versions(name)[-1])
        assert hdf5.digest(newest) == hdf5.digest(head), f"the head of {name} is not its newest version"
        if name in site.kept:
            site.check_versions_kept(name)
        site.cli("verify", name).ok()

    def close(self) -> None:
        self.site.kill_programs()
        close_together(self.servers)
        for front in [self.front, *self.relays]:
            front.close()
        self.site.close()


def _quoted(text: str) -> str:
    return f'"{text}"'
