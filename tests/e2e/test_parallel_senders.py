"""Files that several ranks write: the first rank of each node sends the writes of that node's ranks.

Nodes are told apart by their host names. Where no network is needed between them, they are UTS namespaces.
"""

import os
import re

import h5py
import pytest

from harness import hdf5
from harness.network import two_machines
from harness.process import wait_until
from harness.proxy import Proxy
from harness.ranks import Hosts, Nodes, Ranks, check, needed
from harness.site import Site

pytestmark = [needed, pytest.mark.skipif(os.geteuid() != 0, reason="host names of their own want root")]


@pytest.fixture
def site(bare_site):
    return bare_site


def config_of(site, **keys) -> str:
    return site.config(under="mpio", parallel_senders="node", **keys)


def parts_of(site, name: str = "run.h5") -> list[str]:
    """How the parts of a file ended, as the server's log has it."""
    return re.findall(rf'part end: file="{re.escape(name)}" .* end: (.*)', site.server.log())


def await_parts(site, count: int) -> None:
    """So many parts have ended, each in order. The server may log an end after it has told the client."""
    wait_until(lambda: len(parts_of(site)) >= count, f"no {count} parts have ended")
    assert parts_of(site) == ["in order"] * count


def step_of(path, ranks: int = 4) -> int:
    """All of the file is of one step, the blocks too."""
    with h5py.File(path, "r") as file:
        step = check(file, ranks)
        assert (file["blocks"][:] == step).all(), f"blocks are not all of step {step}"
    return step


def steps(*numbers: int, then: str = "flush") -> list[str]:
    """Commands: each step changes all of the file, and `then` follows."""
    return [word for number in numbers for word in ("step", f"blocks {number}", then)]


def start(site, tmp_path, count: int = 4, **keys) -> Ranks:
    return Ranks(site, count, config=config_of(site, **keys), hosts=Nodes(tmp_path))


def test_each_nodes_first_rank_sends_its_part_and_each_flush_is_one_cut(site, tmp_path):
    program = start(site, tmp_path)
    program.do("new run.h5", "flush", *steps(1, 2), "own", "blocks 3", "zip packed", "close")
    program.do("open run.h5", *steps(4, then="close"))
    program.end()
    site.assert_mirrored("run.h5")
    assert site.versions("run.h5") == [1, 2]
    assert step_of(site.export("run.h5", 1)) == 3 and step_of(site.head("run.h5")) == 4
    await_parts(site, 4)


def test_a_reader_sees_each_cut_whole(site, tmp_path):
    program = start(site, tmp_path, ack_tick="applied", version_every="100ms")
    program.do("new run.h5", *steps(1, 2, 3), *steps(4, then="close"))
    program.end()
    site.assert_mirrored("run.h5")
    # Their number depends on timing.
    found = [step_of(site.export("run.h5", version)) for version in site.versions("run.h5")]
    assert found == sorted(set(found) & {1, 2, 3, 4}) and found[-1] == 4


def test_ranks_on_two_hosts_send_for_their_hosts(tmp_path):
    """The hosts are network namespaces with the same disk. The server is reached by a Unix socket."""
    site = Site(tmp_path, listen=f"unix:{tmp_path}/socket")
    try:
        site.server.start()
        with two_machines() as machines:
            program = Ranks(site, 4, config=config_of(site), hosts=Hosts(machines, tmp_path))
            program.do("new run.h5", "flush", *steps(1, 2), *steps(3, then="close"))
            program.end()
        site.assert_mirrored("run.h5")
        assert site.versions("run.h5") == [1]
        assert step_of(site.head("run.h5")) == 3
        await_parts(site, 3)
    finally:
        site.close()


def test_a_cut_that_rank_0_must_send_alone_has_no_parts(site, tmp_path):
    """On one node; and with writes of a rank that the driver could not see."""
    program = Ranks(site, 2, config=config_of(site))
    program.do("new run.h5", *steps(1, then="close"))
    program.end()
    site.assert_mirrored("run.h5")
    program = start(site, tmp_path)
    program.do("new unseen.h5", "blocks 1", "seen", "close")
    program.end()
    site.assert_mirrored("unseen.h5")
    assert parts_of(site) == parts_of(site, "unseen.h5") == []


@pytest.mark.parametrize("victim", [0, 2])
def test_a_nodes_first_rank_that_is_killed_leaves_the_last_cut(site, tmp_path, victim):
    program = start(site, tmp_path, ack_tick="applied")
    program.do("new run.h5", *steps(1, then="close"), "open run.h5", *steps(2), "step", "blocks 3")
    program.kill(victim)
    site.wait_for_no_lease("run.h5")
    site.settle("run.h5")
    assert step_of(site.head("run.h5")) == 2, "the head is the last cut"
    recover = [hdf5.paths.BIN / "h5mirror", "--server", site.address, "recover", site.local("run.h5")]
    site.run(recover, env=site.plain_env()).ok()
    program = start(site, tmp_path)
    program.do("open run.h5", *steps(3, then="close"))
    program.end()
    site.assert_mirrored("run.h5")
    assert step_of(site.head("run.h5")) == 3


def test_a_server_that_goes_away_and_comes_back_has_all(site, tmp_path):
    program = start(site, tmp_path, timeout="500ms", linger="1s")
    program.do("new run.h5", *steps(1))
    site.server.kill9()
    program.do(*steps(2), "step", "blocks 3")
    site.server.start()
    program.do("flush", *steps(4, then="close"))
    program.end()
    assert step_of(site.local("run.h5")) == 4
    program = start(site, tmp_path)
    program.do("open run.h5", *steps(5, then="close"))
    program.end()
    site.assert_mirrored("run.h5")
    assert step_of(site.head("run.h5")) == 5


def test_a_part_whose_stream_breaks_is_sent_by_rank_0(site, tmp_path):
    with Proxy(site.address) as proxy:
        log = tmp_path / "driver.log"
        program = start(site, tmp_path, server=proxy.address, log=log, ack_tick="applied")
        program.do("new run.h5", "flush")
        proxy.cut_after = 1_000_000  # Of connections to come: rank 0 has its own.
        program.do(*steps(1))
        assert "could not send its node's part" in log.read_text()
        site.settle("run.h5")
        assert proxy.cuts > 0 and step_of(site.head("run.h5")) == 1
        proxy.cut_after = None
        program.do(*steps(2), *steps(3, then="close"))
        program.end()
    site.assert_mirrored("run.h5")
    assert step_of(site.head("run.h5")) == 3
    wait_until(lambda: "in order" in parts_of(site), "no part came whole")


@pytest.mark.site(tables='[[limits]]\nbandwidth = "2MiB"\n')
def test_a_part_that_is_held_back_for_its_bandwidth_is_awaited(site, tmp_path):
    """The server gives it signs of life meanwhile, and then its answer."""
    log = tmp_path / "driver.log"
    program = start(site, tmp_path, log=log, timeout="10s", linger="60s")
    program.do("new run.h5", *steps(1), *steps(2, then="close"))
    program.end()
    site.assert_mirrored("run.h5")
    assert step_of(site.head("run.h5")) == 2
    assert "could not send its node's part" not in (log.read_text() if log.exists() else "")
    await_parts(site, 2)


def test_a_stream_that_breaks_while_parts_come_is_begun_again_with_all(site, tmp_path):
    """Each connection is reset in the middle, rank 0's too: rank 0 then sends the bytes that came in parts before."""
    with Proxy(site.address, cut_after=6_000_000) as proxy:
        program = start(site, tmp_path, server=proxy.address, timeout="2s", linger="5s")
        program.do("new run.h5", *steps(1, 2, 3))
        assert proxy.cuts > 0
        proxy.cut_after = None
        program.do(*steps(4, then="close"))
        program.end()
    program = start(site, tmp_path)
    program.do("open run.h5", *steps(5, then="close"))
    program.end()
    site.assert_mirrored("run.h5")
    assert step_of(site.head("run.h5")) == 5
