"""Three servers on one root with two cells: `h5mirror cluster` shows, moves, drains and evicts.

The registry is in a file, so nothing but the stores' locks fences: an evicted server has to end before its cells are
opened elsewhere.
"""

import json
import signal
import urllib.request

from harness.metrics import free_port
from harness.process import wait_until
from harness.server import Server, close_together
from harness.site import Site

import pytest

import test_cluster

WRITER = test_cluster.WRITER.replace("r.h5", "x/r.h5")
OPTIONS = {"durable_every": "200ms"}


class Trio:
    """Servers `a`, `b` and `c`; cells `x` and `y`."""

    def __init__(self, directory, *, lease: str = "4s"):
        self.lease = lease
        self.tell = directory / "tell"
        self.tell.write_text(f'#!/bin/sh\necho "$H5MIRROR_EVENT|$H5MIRROR_FILE" >> {directory}/told-$1\n')
        self.tell.chmod(0o755)
        self.metrics_ports = {node: free_port() for node in "abc"}
        (directory / "registry").mkdir()
        self.directory = directory
        self.site = Site(directory, options=self._options("a"), tables=self._table("a"))
        for cell in ("x", "y"):
            (self.site.root / cell).mkdir()
        self.servers = {"a": self.site.server}
        for node in ("b", "c"):
            logs = directory / f"logs-{node}"
            logs.mkdir()
            self.servers[node] = Server(
                self.site.root, logs, options=self._options(node), tables=self._table(node))
        for server in self.servers.values():
            server.start()
        wait_until(lambda: self.status()["degraded"] is False and self.up() == {"a", "b", "c"}, "no whole cluster", 60)

    def _options(self, node) -> dict:
        metrics = f"127.0.0.1:{self.metrics_ports[node]}"
        return {**OPTIONS, "audit_log": self.directory / f"audit-{node}.jsonl", "metrics_listen": metrics}

    def metric(self, node: str, name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_ports[node]}/metrics", timeout=10) as page:
            lines = page.read().decode().splitlines()
        return float(next(line.split()[-1] for line in lines if line.startswith(f"h5mirror_server_cluster_{name} ")))

    def await_metric(self, node: str, name: str, value: float) -> None:
        wait_until(lambda: self.metric(node, name) == value, f"{name} of {node} is not {value}", 30)

    def await_event(self, node: str, event: str, file: str = "") -> None:
        told = self.directory / f"told-{node}"
        line = f"{event}|{file}\n"
        wait_until(lambda: told.exists() and line in told.read_text(), f"{node} does not tell of {event}", 30)

    def audited(self, node: str, method: str) -> list:
        """The files that the audit log of a server names for calls that succeeded."""
        lines = [json.loads(line) for line in (self.directory / f"audit-{node}.jsonl").read_text().splitlines()]
        return [line["files"][0]["name"] for line in lines if line["method"] == method and line["status"] == "OK"]

    def _table(self, node) -> str:
        registry = f'registry = "file:{self.directory / "registry"}"'
        cluster = f'[cluster]\n{registry}\nnode = "{node}"\ncells = ["x", "y"]\nlease = "{self.lease}"\n'
        return f'{cluster}[[notify]]\ncommand = ["{self.tell}", "{node}"]\n'

    def cli(self, *arguments, at: str = "a"):
        self.site.server = self.servers[at]
        return self.site.cli(*arguments)

    def status(self, at: str = "a") -> dict:
        result = self.cli("cluster", "status", "--json", at=at)
        return json.loads(result.out) if result.code in (0, 9) else {"degraded": None, "servers": [], "cells": []}

    def up(self) -> set:
        return {each["id"] for each in self.status()["servers"] if each["state"] == "up"}

    def owner(self, cell: str, at: str = "a") -> str:
        return next(each["server"] for each in self.status(at)["cells"] if each["cell"] == cell)

    def other_than(self, *nodes: str) -> str:
        return next(node for node in self.servers if node not in nodes)

    def close(self) -> None:
        self.site.kill_programs()
        close_together(self.servers.values())
        self.site.server = self.servers["a"]
        self.site.close()


@pytest.fixture
def trio(tmp_path):
    servers = Trio(tmp_path)
    yield servers
    servers.close()


def test_status_tells_all_from_any_server(trio):
    for node in trio.servers:
        status = trio.status(at=node)
        assert status["node"] == node and status["degraded"] is False and status["problems"] == []
        assert [each["id"] for each in status["servers"]] == ["a", "b", "c"]
        assert all(each["version"] and each["address"] for each in status["servers"])
        assert all(each["http"] is None for each in status["servers"]), "none of them answers HTTP"
        assert {each["cell"]: each["state"] for each in status["cells"]} == {"x": "served", "y": "served"}
        assert sum(each["cells"] for each in status["servers"]) == 2
    # A server that has not looked for a while knows no age.
    wait_until(
        lambda: all((each["beat_age_seconds"] or 0) < 5 for each in trio.status()["servers"]), "a beat is missing", 30
    )
    text = trio.cli("cluster", "status").ok().out
    assert text.startswith("SERVER") and "CELL" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_cell_moves_under_its_writer(trio):
    owner = trio.owner("x")
    to = trio.other_than(owner)
    asked = trio.other_than(owner, to)
    trio.site.server = trio.servers[asked]
    trio.site.local("x").mkdir()
    writer = trio.site.start(trio.site.script(WRITER), config=trio.site.config(ack="durable", timeout="60s"))
    writer.wait_for_line("cut 5")
    result = trio.cli("cluster", "move", "x", to, at=asked).ok()
    assert f"x is served by {to} now" in result.out
    assert trio.owner("x") == to
    trio.await_event(owner, "cell_moved", "x")
    trio.await_metric(owner, "handovers_total", 1)
    trio.await_metric(to, "takeovers_total", 0)
    # The registry has it first; then its store is opened.
    wait_until(lambda: trio.metric(to, "cells") >= 1, f"{to} serves no cell", 30)
    done = writer.out().count("cut ")
    writer.wait_for_line(f"cut {done + 5}")
    trio.site.local("enough").touch()
    writer.wait().ok()
    trio.site.server = trio.servers[to]
    assert trio.site.record("x/r.h5")["state"] == "clean"
    trio.site.cli("verify", "x/r.h5").ok()
    for server in trio.servers.values():
        assert "given up" not in server.log()


def test_a_drained_server_has_no_cell_until_it_is_wanted_again(trio):
    server = trio.owner("x")
    asked = trio.other_than(server)
    trio.cli("cluster", "drain", server, at=asked).ok()
    status = trio.status(at=asked)
    assert status["degraded"] is False
    states = {each["id"]: (each["state"], each["cells"]) for each in status["servers"]}
    assert states[server] == ("draining", 0)
    trio.await_event(server, "server_drained")
    trio.await_metric(server, "drains_total", 1)
    trio.await_metric(server, "cells", 0)
    refused = trio.cli("cluster", "move", "x", server, at=asked)
    assert refused.code == 5 and "is draining" in refused.err
    trio.cli("cluster", "drain", server, "--undo", at=asked).ok()
    trio.cli("cluster", "move", "x/", server, at=asked).ok()  # as a shell completes it
    assert trio.owner("x") == server


def test_a_server_drains_and_ends(trio):
    server = trio.owner("x")
    asked = trio.other_than(server)
    trio.cli("cluster", "drain", server, "--exit", at=asked).ok()
    assert trio.servers[server].process.wait(60).code == 0
    wait_until(lambda: trio.status(at=asked)["degraded"] is False, "a cell is lost", 60)
    assert "given up" not in trio.servers[asked].log()
    trio.servers[server].start()
    wait_until(lambda: trio.up() == {"a", "b", "c"}, "it does not come back", 60)
    # The server that was asked ends itself, so it cannot report its end.
    itself = trio.cli("cluster", "drain", server, "--exit", at=server).ok()
    assert f"{server} is ending" in itself.out
    assert trio.servers[server].process.wait(60).code == 0
    trio.servers[server].start()


def test_an_eviction_takes_a_living_server_only_by_force(trio):
    server = trio.owner("x")
    asked = trio.other_than(server)
    unasked = trio.cli("cluster", "evict", server, at=asked)
    assert unasked.code == 2 and "--yes" in unasked.err
    wait_until(
        lambda: "is alive" in trio.cli("cluster", "evict", server, "--yes", at=asked).err, "it is not alive", 30
    )
    itself = trio.cli("cluster", "evict", server, "--yes", "--force", at=server)
    others = [f"--server {trio.servers[node].address} cluster evict --yes --force {server}"
              for node in "abc" if node != server]
    assert itself.code == 5 and any(each in itself.err for each in others), itself.describe()
    trio.cli("cluster", "evict", server, "--yes", "--force", at=asked).ok()
    assert trio.servers[server].process.wait(60).code == 9
    assert "without this server: its record in the registry is " in trio.servers[server].log()
    wait_until(lambda: trio.status(at=asked)["degraded"] is False, "its cells are lost", 60)
    assert trio.owner("x", at=asked) != server
    assert server in trio.audited(asked, "EvictServer")
    owner = trio.owner("x", at=asked)
    trio.await_event(asked, "server_evicted")
    trio.await_event(asked, "server_fenced")
    trio.await_event(owner, "cell_taken_over", "x")
    trio.await_metric(asked, "fenced_total", 1)
    trio.await_metric(asked, "evictions_total", 1)
    wait_until(lambda: trio.metric(owner, "takeovers_total") >= 1, "no takeover is counted", 30)
    assert 0 < trio.metric(owner, "takeover_seconds_total") < 120
    trio.servers[server].start()


def test_a_lost_server_makes_the_status_degraded(trio):
    server = trio.owner("x")
    asked = trio.other_than(server)
    trio.servers[server].process.signal(signal.SIGSTOP)
    wait_until(lambda: trio.cli("cluster", "status", at=asked).code == 9, "nobody misses it", 60)
    wait_until(lambda: trio.metric(asked, "cells_unserved") >= 1, "no metric tells of it", 30)
    trio.servers[server].process.signal(signal.SIGCONT)
    assert trio.servers[server].process.wait(60).code == 9
    wait_until(lambda: trio.cli("cluster", "status", at=asked).code == 0, "its cells are lost", 60)
    trio.await_metric(asked, "cells_unserved", 0)
    trio.servers[server].start()


def test_a_registry_is_of_one_root(tmp_path):
    (tmp_path / "registry").mkdir()
    table = f'[cluster]\nregistry = "file:{tmp_path / "registry"}"\n'
    servers = []
    for node in ("a", "b"):
        for place in (f"root-{node}", f"logs-{node}"):
            (tmp_path / place).mkdir()
        servers.append(Server(tmp_path / f"root-{node}", tmp_path / f"logs-{node}", tables=f'{table}node = "{node}"\n'))
    servers[0].start()
    wait_until(lambda: "serves the cell" in servers[0].log(), "it serves nothing", 60)
    servers[0].stop()
    stray = servers[1].launch().wait(60)
    assert stray.code == 2, stray.describe()
    for text in (f'servers with root = "{tmp_path / "root-a"}"', f'root = "{tmp_path / "root-b"}" here', "[cluster]"):
        assert text in servers[1].log()
    close_together(servers)


def test_lists_and_removals_span_the_cells(trio):
    owners = {cell: trio.owner(cell) for cell in ("x", "y")}
    if owners["x"] == owners["y"]:
        to = trio.other_than(owners["x"])
        trio.cli("cluster", "move", "y", to).ok()
        owners["y"] = to
    for cell, owner in owners.items():
        trio.site.server = trio.servers[owner]
        trio.site.local(cell).mkdir()
        trio.site.run(trio.site.script(f"""
            with h5py.File("{cell}/f.h5", "w") as f:
                f["d"] = np.arange(10)
        """)).ok()
    asked = trio.other_than(*owners.values())

    def names(*arguments) -> list:
        return [each["name"] for each in json.loads(trio.cli("ls", *arguments, "--json", at=asked).ok().out)["files"]]

    assert names() == ["x/f.h5", "y/f.h5"]
    assert names("y") == ["y/f.h5"]
    ids = {}
    for cell, owner in owners.items():
        ids[cell] = json.loads(trio.cli("rm", f"{cell}/f.h5", "--json", at=owner).ok().out)["removed"]["id"]
        assert ids[cell].startswith(f"{cell}:")
    removed = json.loads(trio.cli("ls", "--removed", "--json", at=asked).ok().out)["files"]
    assert {each["id"] for each in removed} == set(ids.values())
    elsewhere = trio.cli("undelete", "--id", "x:9999", at=owners["x"])
    assert elsewhere.code == 3 and "nothing was removed as x:9999" in elsewhere.err
    trio.cli("undelete", "--id", ids["x"], at=owners["x"]).ok()
    trio.cli("undelete", "--id", ids["y"].split(":")[1], at=owners["y"]).ok()
    assert names() == ["x/f.h5", "y/f.h5"]

    def is_complete(limit: int) -> bool:
        return json.loads(trio.cli("ls", "-n", str(limit), "--json", at=asked).ok().out)["complete"]

    assert [is_complete(limit) for limit in (1, 2)] == [False, True]
    trio.cli("rm", "y/f.h5", at=owners["y"]).ok()
    assert is_complete(1), "a cell without files is no more of them"


def test_a_list_says_what_is_missing(tmp_path):
    """Nobody gives the lost server up within the test."""
    trio = Trio(tmp_path, lease="60s")
    try:
        owner = trio.owner("y")
        asked = trio.other_than(owner)
        if trio.owner("x") == owner:
            trio.cli("cluster", "move", "x", asked).ok()
        trio.servers[owner].kill9()
        short = trio.cli("ls", "--json", at=asked)
        assert short.code == 4 and "y: its files are missing here" in short.err, short.describe()
        listed = json.loads(short.out)
        assert listed["missing"] == ["y"] and listed["complete"] is False
    finally:
        trio.close()
