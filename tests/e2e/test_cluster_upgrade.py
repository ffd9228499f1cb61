"""A rolling upgrade: three servers are drained, ended and started again, one after the other, under a writer.

With H5MIRROR_TEST_OLD_BUILD they begin as those of an older release, and become those of it again, under writers of both
(tests/README.md).
"""

import json

import pytest

from harness import paths
from harness.cluster import Cluster
from harness.crowd import Crowd
from harness.crowd_followers import Followers
from harness.long_run import Closing
from harness.losses import Losses
from harness.process import run, wait_until

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
    """Each server has the writer's cell when its turn comes. No acked write is lost, and the writer ends without an
    error."""
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


def status_by(build, cluster) -> dict:
    """The output of a release's tool about the cluster, from any server."""
    site = cluster.tools
    result = run([build / "bin" / "h5mirror", "--server", site.address, "cluster", "status", "--json"], site.logs,
                 env=site.plain_env(), name="status")
    assert result.code in (0, 9), result.describe()
    return json.loads(result.out)


def give_a_cell(cluster, victim: int) -> None:
    """A server that has started takes no cells of others."""
    if not cluster.owned_by(victim):
        cell = cluster.cells[victim]
        epoch = cluster.epoch(cell)
        cluster.tools.cli("cluster", "move", cell, cluster.nodes[victim]).ok()
        assert cluster.wait_for_owner(cell, epoch) == victim


@pytest.mark.skipif(paths.OLD_BUILD is None, reason="H5MIRROR_TEST_OLD_BUILD is not set")
@pytest.mark.limit(580)
def test_from_an_older_release_and_back_under_load(tmp_path):
    """One server after the other becomes one of this release, and then one of the older one again. Half of the writers
    have the driver of each: all flushes are acked, no reader sees a mixed cut, and what was committed stays."""
    builds = (paths.OLD_BUILD, paths.BUILD)
    with Closing() as closing:
        cluster = closing(Cluster(tmp_path))
        for server in cluster.servers:
            server.build = paths.OLD_BUILD
        cluster.start()
        crowd = Crowd(cluster, writers=4, files_each=2, builds=builds)
        followers = Followers(crowd, 2)
        losses = Losses(crowd, seed=1)
        for build in (paths.BUILD, paths.OLD_BUILD):
            for victim in range(len(cluster.servers)):
                give_a_cell(cluster, victim)
                losses.keep(cluster.owned_by(victim))
                assert "given up" not in cluster.servers[victim].log()
                cluster.servers[victim].build = build
                losses.drain(victim)
                crowd.await_reads(crowd.read_names())
                followers.await_cuts()
                for tool in builds:
                    assert {each["id"] for each in status_by(tool, cluster)["servers"]} == set(cluster.nodes)
        assert all("given up" not in server.log() for server in cluster.servers), cluster.logs()
        crowd.finish()
        followers.finish()
        slowest = max(each.all_acked_s for each in losses.others)
        print(f"{len(losses.others)} servers were drained and replaced: all files had acks within {slowest:.1f} s, slowest "
              f"flush {crowd.slowest_s:.1f} s")
