"""Two machines on one: network namespaces joined by a veth pair."""

import contextlib
import os
import subprocess

import pytest


def _ip(*arguments) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        pytest.skip(f"ip {' '.join(arguments)} is not permitted here: {done.stderr.strip()}")


class TwoMachines:
    """`server` and `client` are command prefixes that run a program on either machine."""

    def __init__(self, tag: str):
        self.namespaces = [f"h5m-s-{tag}", f"h5m-c-{tag}"]
        self.links = [f"h5ms{tag}", f"h5mc{tag}"]
        octet = int(tag, 16) % 250 + 1
        self.addresses = [f"10.231.{octet}.1", f"10.231.{octet}.2"]
        self.server, self.client = (("ip", "netns", "exec", name) for name in self.namespaces)

    @property
    def server_address(self) -> str:
        return self.addresses[0]

    def set_up(self) -> None:
        for name in self.namespaces:
            _ip("netns", "add", name)
        _ip("link", "add", self.links[0], "netns", self.namespaces[0], "type", "veth", "peer", "name", self.links[1],
            "netns", self.namespaces[1])
        for name, link, address in zip(self.namespaces, self.links, self.addresses):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", link)
            _ip("-n", name, "link", "set", link, "up")
            _ip("-n", name, "link", "set", "lo", "up")

    def link(self, state: str) -> None:
        """Pulls the cable ("down") and plugs it in again ("up")."""
        _ip("-n", self.namespaces[1], "link", "set", self.links[1], state)

    def tear_down(self) -> None:
        for name in self.namespaces:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)


class MachinesAround:
    """Machines around this one, each at the end of a cable of its own. `here` is an address of this machine that no
    cut takes away."""

    def __init__(self, tag: str, count: int):
        net = f"10.232.{int(tag, 16) % 250 + 1}"
        self.here = f"{net}.254"
        self.addresses = [f"{net}.{4 * i + 2}" for i in range(count)]
        self._gateways = [f"{net}.{4 * i + 1}" for i in range(count)]
        self._names = [f"h5m-{i}-{tag}" for i in range(count)]
        self._links = [f"h5m{i}{tag}" for i in range(count)]
        self._net, self._nowhere = f"{net}.0/24", f"h5mn{tag}"
        self.prefixes = [("ip", "netns", "exec", name) for name in self._names]

    def is_free(self) -> bool:
        """Whether this machine has no address in that net: others run such tests too."""
        return subprocess.run(["ip", "-o", "-4", "addr", "show", "to", self._net], capture_output=True,
                              timeout=20).stdout.strip() == b""

    def set_up(self) -> None:
        _ip("addr", "add", f"{self.here}/32", "dev", "lo")
        # Without its cable a machine has no route. Packets to it would follow the default one, and may find an answer.
        _ip("link", "add", self._nowhere, "type", "veth", "peer", "name", f"{self._nowhere}x")
        for each in (f"{self._nowhere}x", self._nowhere):
            _ip("link", "set", each, "arp", "off")
            _ip("link", "set", each, "up")
        _ip("route", "add", self._net, "dev", self._nowhere)
        for name, link, address, gateway in zip(self._names, self._links, self.addresses, self._gateways):
            _ip("netns", "add", name)
            _ip("link", "add", link, "type", "veth", "peer", "name", "far", "netns", name)
            _ip("addr", "add", f"{gateway}/30", "dev", link)
            _ip("link", "set", link, "up")
            _ip("-n", name, "addr", "add", f"{address}/30", "dev", "far")
            for each in ("lo", "far"):
                _ip("-n", name, "link", "set", each, "up")
            _ip("-n", name, "route", "add", "default", "via", gateway)

    def link(self, index: int, state: str) -> None:
        """Pulls the cable of a machine ("down") and plugs it in again ("up")."""
        _ip("link", "set", self._links[index], state)

    def tear_down(self) -> None:
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20)
        subprocess.run(["ip", "link", "del", self._nowhere], capture_output=True, timeout=20)
        subprocess.run(["ip", "addr", "del", f"{self.here}/32", "dev", "lo"], capture_output=True, timeout=20)


@contextlib.contextmanager
def _set_up(machines):
    if os.geteuid() != 0:
        pytest.skip("network namespaces want root")
    try:
        machines.set_up()
        yield machines
    finally:
        machines.tear_down()


def two_machines():
    return _set_up(TwoMachines(os.urandom(2).hex()))


def machines_around(count: int):
    machines = MachinesAround(os.urandom(2).hex(), count)
    while os.geteuid() == 0 and not machines.is_free():
        machines = MachinesAround(os.urandom(2).hex(), count)
    return _set_up(machines)
