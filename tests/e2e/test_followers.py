"""FollowFile through crashes of the server, and with followers that read nothing."""

import pytest

from harness import paths
from harness.follow import Follow
from harness.metrics import Metrics
from harness.process import memory_kb, wait_until
from harness.wire import Wire
from test_agent import Agent

# No cut becomes durable by itself.
NEVER = {"durable_every": "1h"}


def values(site, agent):
    """All of the newest cut, as a reader sees it."""
    return site.run([paths.hdf5_tool("h5dump"), "run.h5"], config=site.config(mode="reader", agent=agent)).ok().out


def until(follow, held, cut):
    """The message that brings `held` to that cut, the newest: followers get one in a tick."""
    taken = []
    wait_until(lambda: taken.append(follow.take(held)) or taken[-1]["cut"] >= cut, "the newest cut is sent")
    return taken[-1]


MAKE = """
    with h5py.File("run.h5", "w", libver="latest") as f:
        f["d"] = np.zeros(100_000, "i1")
        f.flush()
        print(f["d"].id.get_offset())
"""


@pytest.mark.site(options=NEVER)
def test_a_cut_that_a_kill_discarded_is_followed_by_all_of_the_file(bare_site):
    """Followers, directly and by an agent: the cuts that they had are lost, and their numbers are not given again."""
    site = bare_site
    data = int(site.py(MAKE).out)
    size = int(site.settle("run.h5")["size_bytes"])
    agent = Agent(site).start()
    start, at_rest = Follow(site, "run.h5").take(), values(site, "off")
    lost = []
    for life in range(3):
        follow = Follow(site, "run.h5")
        assert values(site, agent.socket) == at_rest
        with Wire(site) as writer:
            writer.open("run.h5", "RESYNC", base_cut=start["cut"])
            seen = []
            for n in range(3):
                # Each cut in another place than those of the lives before.
                writer.write(data + 1000 * (3 * life + n), bytes([3 * life + n + 1]) * 100)
                writer.barrier("TICK", size)
                cut = int(writer.read_until("cut_visible")["cut"])
                seen.append(until(follow, start, cut))
                assert not seen[-1]["whole"] and cut not in [each["cut"] for each in lost], "no number is given again"
                assert all(follow.take(each)["whole"] for each in lost), "a follower from before the kill begins anew"
                assert values(site, agent.socket) == values(site, "off") != at_rest
            site.server.kill9()
        lost += seen
        site.server.start()
        follow = Follow(site, "run.h5")
        after = [follow.take(each) for each in (start, *lost)]
        assert {each["cut"] for each in after} == {start["cut"]}, "none of them was durable"
        assert [each["whole"] for each in after] == [False] + [True] * len(lost), after
        assert after[0]["changed"] == []
        assert values(site, "off") == values(site, agent.socket) == at_rest
    files, cuts = agent.stop()
    assert files == 1 and cuts >= 3, "the agent has followed it"


# Of 3.6 MiB of metadata, which a follower that has nothing yet gets whole.
OBJECTS = """
    f = h5py.File("run.h5", "w", libver="latest")
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple((60 << 7,))
    for i in range(60):
        d = h5py.h5d.create(f.id, b"d%02d" % i, h5py.h5t.NATIVE_INT64, space, how)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(60 << 7))
    f.flush()
    print("ready", flush=True)
    for n, line in enumerate(sys.stdin, 1):
        if line.strip() == "close": break
        f.attrs["n"] = n
        f.flush()
        print("done", flush=True)
    f.close()
    print("closed", flush=True)
"""
ROUNDS, STALLED, LIMITS = 40, 5, 4
# Each call may have a message of 256 KiB on its way, and as much is what its connection takes. If the server kept
# the messages of each one's cut, these would be LIMITS * 3.6 MiB for each round, 570 MiB.
MORE_KB = ROUNDS * STALLED * 512 + (64 << 10)


@pytest.mark.limit(240)
@pytest.mark.site(options={"tick_len": "10ms", "snapshot_keep": "2s"})
def test_followers_that_read_nothing_cost_no_more_than_what_is_on_its_way_to_them(bare_site):
    """200 of them, five for each cut. Others make the server keep all of it. The file goes on."""
    site = bare_site
    metrics = Metrics(site)
    writer = site.start(site.script(OBJECTS), config=site.config(ack="applied"), talks=True)
    assert writer.line() == "ready"
    follow, stuck = Follow(site, "run.h5"), Follow(site, "run.h5")
    held = follow.take()
    assert held["data_bytes"] > 3 << 20, held
    for n in range(LIMITS):
        follow.take(metadata_max=(1 << 30) - n * 4096)
    before = memory_kb(site.server.pid, "VmRSS")
    for n in range(1, ROUNDS + 1):
        assert writer.ask("step") == "done"
        held = until(follow, held, int(site.status("run.h5")["last_cut"]))
        assert not held["whole"] and held["data_bytes"] < 1 << 20, "a follower that keeps up gets only the changes"
        for less in range(LIMITS):
            assert follow.take(metadata_max=(1 << 30) - less * 4096)["data_bytes"] > 3 << 20
        assert stuck.stall(STALLED, holds=n % 2 == 0) == n * STALLED
    more = memory_kb(site.server.pid, "VmRSS") - before
    print(f"{more >> 10} MiB more, of {MORE_KB >> 10} MiB")
    assert more < MORE_KB
    ended = metrics.calls("FollowFile")
    stuck.process.kill()
    wait_until(lambda: metrics.calls("FollowFile") >= ended + ROUNDS * STALLED, "their calls end with them", 60)
    assert writer.ask("close") == "closed"
    site.assert_mirrored("run.h5")
