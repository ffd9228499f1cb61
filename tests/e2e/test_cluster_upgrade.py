"""A rolling upgrade: three servers are drained, ended and started again, one after the other, under a writer."""

import pytest

from harness.process import wait_until

import test_cluster_operations
from test_cluster_operations import Trio


@pytest.fixture
def trio(tmp_path):
    servers = Trio(tmp_path)
    yield servers
    servers.close()


def _await_whole(trio, asked: str) -> None:
    """As `h5mirror cluster status` tells an operator that the next server may go."""
    wait_until(lambda: trio.cli("cluster", "status", at=asked).code == 0, "the cluster is not whole again", 60)
    wait_until(lambda: trio.up() == {"a", "b", "c"}, "a server does not come back", 60)


def test_a_rolling_upgrade_hurts_no_writer(trio):
    """Each server has the writer's cell when its turn comes. Nothing that was acked is lost, and the writer is clean."""
    trio.site.server = trio.servers["a"]
    trio.site.local("x").mkdir()
    servers = "|".join(trio.servers[node].address for node in "abc")
    writer = trio.site.start(trio.site.script(test_cluster_operations.WRITER),
                             config=trio.site.config(server=servers, ack="durable", timeout="60s"))
    writer.wait_for_line("cut 5")
    for node in "abc":
        if trio.owner("x", at=node) != node:
            trio.cli("cluster", "move", "x", node, at=node).ok()
        done = writer.out().count("cut ")
        writer.wait_for_line(f"cut {done + 3}")
        asked = trio.other_than(node)
        trio.cli("commit", "x/r.h5", at=asked).ok()
        trio.site.keep("x/r.h5")
        trio.cli("cluster", "drain", node, "--exit", at=asked).ok()
        assert trio.servers[node].process.wait(60).code == 0
        assert trio.owner("x", at=asked) != node
        done = writer.out().count("cut ")
        writer.wait_for_line(f"cut {done + 3}")
        trio.servers[node].start()
        _await_whole(trio, asked)
    trio.site.local("enough").touch()
    writer.wait().ok()
    assert trio.site.record("x/r.h5")["state"] == "clean"
    trio.site.server = trio.servers["a"]
    trio.site.settle("x/r.h5")
    trio.site.assert_mirrored("x/r.h5")
    trio.site.check_kept()
    trio.cli("verify", "x/r.h5").ok()
    for server in trio.servers.values():
        assert "given up" not in server.log()
