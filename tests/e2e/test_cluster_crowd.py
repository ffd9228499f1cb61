"""Many open files, and many followers, over three servers of a cluster, with a registry in a file: the memory,
descriptors and threads of each server. Followers go on at the successor of a lost server.

90 files and 30 followers by default; 10,000 and 1,000 with --all. H5MIRROR_TEST_FILES and H5MIRROR_TEST_FOLLOWERS are
other numbers. The figures are printed, and stored in figures/cluster-*.json of the build directory.
"""

import contextlib
import json
import os
import time

import pytest

from harness import paths
from harness.cluster import Cluster
from harness.crowd import Crowd
from harness.crowd_followers import Followers
from harness.process import memory_kb, run, wait_until
from harness.site import count_open_files
from test_cluster_scale import Losses

FILES = int(os.environ.get("H5MIRROR_TEST_FILES", "10000" if paths.TEST_ALL else "90"))
FOLLOWERS = int(os.environ.get("H5MIRROR_TEST_FOLLOWERS", "1000" if paths.TEST_ALL else "30"))
PROGRAMS = 3  # for each server
FOLLOWERS_AT_ONCE = 50 if FOLLOWERS > 300 else 10  # in a program
CUTS = 20
# The descriptors of a server for a file that is open for writing, and those that it has anyway.
FDS_OF_FILE_MAX, FDS_OF_SERVER_MAX = 5, 400
# Room for all of them, of one caller: there are no tokens.
OPTIONS = {"max_sessions": FILES, "caller_share": "100%"}
THREADS_MAX = 150  # of a server, for any number of files and followers
TIMEOUT_S = 1500 if paths.TEST_ALL else 200

WRITER = """
    names = sys.argv[1:]
    files = {name: h5py.File(name, "w") for name in names}
    def step(value):
        for f in files.values():
            f.require_dataset("x", (1000,), "f8")[:] = value
            f.flush()
    step(0)
    print("open", flush=True)
    for line in sys.stdin:
        step(int(line))
        print("flushed", flush=True)
    for f in files.values():
        f.close()
    print("closed", flush=True)
"""


class Load:
    """Of each server: memory in MiB, descriptors and threads."""

    def __init__(self, cluster: Cluster):
        self.pids = [server.pid for server in cluster.servers]
        self.before = [self._now(pid) for pid in self.pids]

    @staticmethod
    def _now(pid: int) -> dict:
        return {"memory_mib": memory_kb(pid, "VmRSS") / 1024, "descriptors": count_open_files(pid),
                "threads": memory_kb(pid, "Threads")}

    def more(self) -> list[dict]:
        """The memory and descriptors that each has taken since, and its threads."""
        found = []
        for pid, before in zip(self.pids, self.before):
            now = self._now(pid)
            found.append({"memory_mib": round(now["memory_mib"] - before["memory_mib"], 1),
                          "descriptors": now["descriptors"] - before["descriptors"], "threads": now["threads"]})
        return found


def store(name: str, figures: dict) -> None:
    place = paths.BUILD / "figures"
    place.mkdir(exist_ok=True)
    (place / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures))


@pytest.fixture
def cluster(tmp_path):
    with contextlib.closing(Cluster(tmp_path, options=OPTIONS)) as servers:
        servers.start()
        for index, cell in enumerate(servers.cells):
            servers.site.local(cell).mkdir()
            give(servers, cell, index)
        yield servers


def give(cluster: Cluster, cell: str, index: int) -> None:
    """To the server `index`, which serves it in the end: as cells were claimed, one may have none of them."""
    before = cluster.epoch(cell)

    def is_asked() -> bool:
        # A cell that opens has an owner by the log, and cannot be moved yet.
        return cluster.tools.cli("cluster", "move", cell, cluster.nodes[index]).code == 0

    if cluster.owner(cell) != index:
        wait_until(is_asked, f"the cell {cell} cannot be moved", 60)
        assert cluster.wait_for_owner(cell, before) == index
    wait_until(lambda: cluster.tools.cli("ls", cell).code == 0, f"nobody serves the cell {cell}", 60)


def start_writer(cluster: Cluster, names: list[str], **keys):
    site = cluster.site
    server = cluster.servers[cluster.owner(names[0].split("/")[0])]
    return site.start([*site.script(WRITER), *names], talks=True,
                      config=site.config(server=server.address, timeout="120s", **keys))


@pytest.mark.limit(TIMEOUT_S)
def test_many_files_are_open_at_once(cluster):
    of_cell = {cell: [f"{cell}/f{n:05}.h5" for n in range(FILES // len(cluster.cells))] for cell in cluster.cells}
    load = Load(cluster)
    began = time.monotonic()
    writers = [start_writer(cluster, names[i::PROGRAMS], ack="durable")
               for names in of_cell.values() for i in range(PROGRAMS)]
    for writer in writers:
        assert writer.line(TIMEOUT_S) == "open", writer.err()[-2000:]
    opened_s = time.monotonic() - began
    began = time.monotonic()
    for writer in writers:
        writer.popen.stdin.write(b"7\n")
        writer.popen.stdin.flush()
    for writer in writers:
        assert writer.line(TIMEOUT_S) == "flushed", writer.err()[-2000:]
    flushed_s = time.monotonic() - began
    more = load.more()
    each = FILES // len(cluster.cells)
    for cell in cluster.cells:
        connected = cluster.tools.json("ls", cell, "--state", "connected")["files"]
        assert len(connected) == each, f"{len(connected)} of {each} files of {cell} are mirrored"
    store("cluster-files", {"files_of_a_server": each, "opened_per_s": round(FILES / opened_s),
                            "flushes_per_s": round(FILES / flushed_s), "servers": more})
    for taken in more:
        assert taken["descriptors"] <= FDS_OF_FILE_MAX * each + FDS_OF_SERVER_MAX, more
        assert taken["threads"] <= THREADS_MAX, more
    for writer in writers:
        writer.popen.stdin.close()
        assert writer.wait(TIMEOUT_S).ok().out.endswith("closed\n")
    for cell, names in of_cell.items():
        for name in (names[0], names[-1]):
            cluster.assert_whole(name)
        listed = cluster.tools.json("ls", cell)
        assert len(listed["files"]) == each and listed["complete"], len(listed["files"])


def start_followers(cluster: Cluster, name: str, count: int):
    """`count` in one program; returns when each holds the newest cut. A server takes some newcomers at a time only."""
    server = cluster.servers[cluster.owner(name.split("/")[0])]
    started = cluster.site.start([paths.BIN / "bench_subscribers", "--server", server.address, "--name", name,
                                  "--channels", count], env=cluster.site.plain_env(), talks=True)
    assert started.line(TIMEOUT_S) == "ready", started.err()[-2000:]
    return started


@pytest.mark.limit(TIMEOUT_S)
def test_many_followers_hold_each_newest_cut(cluster):
    """Each has a connection of its own, to the server of its file."""
    names = [f"{cell}/live.h5" for cell in cluster.cells]
    writers = [start_writer(cluster, [name], ack="durable") for name in names]
    for writer in writers:
        assert writer.line() == "open"
    load = Load(cluster)
    followers = []
    for number in range(0, FOLLOWERS, FOLLOWERS_AT_ONCE):
        name = names[number // FOLLOWERS_AT_ONCE % len(names)]
        followers.append((name, start_followers(cluster, name, min(FOLLOWERS_AT_ONCE, FOLLOWERS - number))))
    connected = load.more()
    began = time.monotonic()
    for cut in range(1, CUTS + 1):
        for writer in writers:
            assert writer.ask(str(cut), TIMEOUT_S) == "flushed"
    for writer in writers:
        writer.popen.stdin.close()
        writer.wait(TIMEOUT_S).ok()
    for _, follower in followers:
        assert follower.line(TIMEOUT_S) == "followed", follower.err()[-2000:]
    followed_s = time.monotonic() - began
    more = load.more()
    store("cluster-followers", {"followers": FOLLOWERS, "cuts": CUTS, "followed_s": round(followed_s, 1),
                                "connected": connected, "servers": more})
    for name, follower in followers:
        digest = run([paths.BIN / "bench_subscribers", "--digest", cluster.site.head(name)], cluster.site.directory).ok().out
        held = json.loads(follower.ask("", TIMEOUT_S))
        assert {each["digest"] for each in held} == {digest.strip()}, name
    for taken in more:
        assert taken["threads"] <= THREADS_MAX, more


@pytest.mark.limit(300)
def test_followers_go_on_at_the_successors(tmp_path):
    with contextlib.closing(Cluster(tmp_path)) as servers:
        crowd = Crowd(servers.start(), writers=3, files_each=1)
        followers = Followers(crowd, 3)
        losses = Losses(crowd, seed=6)
        for _ in range(2):
            followers.await_cuts()
            losses.one("kill")
        followers.await_cuts()
        crowd.finish()
        followers.finish()
