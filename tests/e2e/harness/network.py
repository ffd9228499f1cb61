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


@contextlib.contextmanager
def two_machines():
    if os.geteuid() != 0:
        pytest.skip("network namespaces want root")
    machines = TwoMachines(os.urandom(2).hex())
    try:
        machines.set_up()
        yield machines
    finally:
        machines.tear_down()
