"""Two nodes and a storage host on this machine: network namespaces, each node with a slow link of its own to the
storage host, and a fast one between the nodes."""

import contextlib
import os
import subprocess
from pathlib import Path

PORT = 7447


class NoNamespaces(RuntimeError):
    """Network namespaces or the traffic shaper are not to be had here."""


def _must(*command) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise NoNamespaces(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


class Nodes:
    """`storage` and `first` are command prefixes. What a node sends to the storage host goes at `mbit` at most."""

    def __init__(self, directory: Path, mbit: int):
        tag = os.urandom(2).hex()
        self.mbit = mbit
        self.spaces = [f"h5m-{each}-{tag}" for each in ("storage", "first", "second")]
        self.storage, self.first, self.second = (("ip", "netns", "exec", each) for each in self.spaces)
        self._tag, self._net = tag, f"10.{int(tag[:2], 16)}.{int(tag[2:], 16) % 200}"
        self.address = f"{self._net}.250"
        self._agent = directory / "agent"
        # As mpirun calls ssh: the first word is the host.
        self._agent.write_text(f"#!/bin/sh\nshift\nexec {' '.join(self.second)} unshare --uts "
                               'sh -c "hostname second; $*"\n')
        self._agent.chmod(0o755)

    def set_up(self) -> None:
        for space in self.spaces:
            _must("ip", "netns", "add", space)
            _must("ip", "-n", space, "link", "set", "lo", "up")
        _must("ip", "-n", self.spaces[0], "addr", "add", f"{self.address}/32", "dev", "lo")
        for number in (1, 2):
            self._link(0, number, f"{self._net}.{number * 8}", f"{self._net}.{number * 8 + 1}")
            device = f"h5m{self._tag}{number}0"
            _must("ip", "-n", self.spaces[number], "route", "add", self.address, "via", f"{self._net}.{number * 8}")
            _must("tc", "-n", self.spaces[number], "qdisc", "add", "dev", device, "root", "tbf", "rate",
                  f"{self.mbit}mbit", "burst", "64kb", "latency", "100ms")
        self._link(1, 2, f"{self._net}.100", f"{self._net}.101")

    def _link(self, a: int, b: int, address_a: str, address_b: str) -> None:
        device_a, device_b = f"h5m{self._tag}{a}{b}", f"h5m{self._tag}{b}{a}"
        _must("ip", "-n", self.spaces[a], "link", "add", device_a, "type", "veth", "peer", "name", device_b, "netns",
              self.spaces[b])
        for space, device, address in ((a, device_a, address_a), (b, device_b, address_b)):
            _must("ip", "-n", self.spaces[space], "addr", "add", f"{address}/31", "dev", device)
            _must("ip", "-n", self.spaces[space], "link", "set", device, "up")

    def mpirun(self, mpiexec: str, nodes: int, ranks: int) -> list:
        """The words before the program that run `ranks` on one node or on both, half of them on each."""
        between = f"{self._net}.100/31"
        where = [f"{self._net}.100:{ranks}"] if nodes == 1 else [f"{self._net}.100:{ranks - ranks // 2}",
                                                                 f"{self._net}.101:{ranks // 2}"]
        return [*self.first, "unshare", "--uts", "sh", "-c", 'hostname first; exec "$@"', "sh", mpiexec,
                "--oversubscribe", "--allow-run-as-root", "--mca", "plm_rsh_agent", self._agent, "--mca", "btl",
                "tcp,self", "--mca", "btl_tcp_if_include", between, "--mca", "oob_tcp_if_include", between, "--mca",
                "mpi_yield_when_idle", "1", "--host", ",".join(where), "-n", ranks]

    def tear_down(self) -> None:
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True, timeout=20)


@contextlib.contextmanager
def nodes(directory: Path, mbit: int):
    made = Nodes(directory, mbit)
    try:
        made.set_up()
        yield made
    finally:
        made.tear_down()
