"""Programs that open files, and programs that end, at moments around a takeover of their files' cells.

If a file was opened then, its flushed bytes reach the next server, even if its program makes no more HDF5 calls. A file
that a program closes is durable when the program ends, if its `timeout` is longer than the takeover. With the defaults
no call waits for that, and the rest comes while the program lives. A registry in a file. With --all programs also end,
and cells move in order.
"""

import pytest

from harness import paths
from harness.cluster import Cluster
from harness.process import wait_until

# A file each 0.2 s, with one flush. After the last one it is left alone.
OPENS = """
    count, files = int(sys.argv[1]), []
    for n in range(count):
        files.append(h5py.File(f"{'pqr'[n % 3]}/open{n}.h5", "w"))
        files[-1]["n"] = n
        files[-1].flush()
        print("opened", n, flush=True)
        time.sleep(0.2)
    while not os.path.exists("enough"):
        time.sleep(0.05)
    os._exit(0)  # without a close
"""

# Has a file open, and ends with two closes, some time after the file `lost` appears.
ENDS = """
    n, delay_s = int(sys.argv[1]), float(sys.argv[2])
    with h5py.File(f"{'pqr'[n % 3]}/old{n}.h5", "w") as f:
        f["n"] = -1
        f.flush()
        print("ready", flush=True)
        while not os.path.exists("lost"):
            time.sleep(0.01)
        time.sleep(delay_s)
        f["n"][...] = n
    with h5py.File(f"{'pqr'[n % 3]}/new{n}.h5", "w") as f:
        f["n"] = n
"""

# Closes a file in the middle of a takeover, and lives on.
LIVES_ON = """
    for cell in "pqr":
        with h5py.File(f"{cell}/left.h5", "w") as f:
            f["n"] = 7
    print("left", flush=True)
    while not os.path.exists("enough"):
        time.sleep(0.05)
"""

with_all = pytest.mark.skipif(not paths.TEST_ALL, reason="with --all; session_takeover_test.cc has the rest")


@pytest.fixture
def cluster(tmp_path):
    servers = Cluster(tmp_path).start()
    for cell in servers.cells:
        servers.site.local(cell).mkdir()
    yield servers
    servers.close()


def lose(cluster: Cluster, loss: str) -> int:
    """The owner of the first cell is lost, or gives its cells away."""
    victim = cluster.owner(cluster.cells[0])
    if loss == "kill":
        cluster.kill(victim)
    else:
        cluster.tools.cli("cluster", "drain", "--wait", "0", cluster.nodes[victim]).ok()
    return victim


def config(cluster: Cluster, **keys) -> str:
    return cluster.site.config(server="|".join(cluster.addresses), linger=None, **keys)


def newest(cluster: Cluster, names: list[str]) -> list[int]:
    """`n` of the newest cut that the servers have of each file."""
    reads = cluster.site.script("""
        for name in sys.argv[1:]:
            with h5py.File(name, "r") as f:
                print(int(f["n"][()]))
    """)
    reader = config(cluster, mode="reader", ack=None, timeout="30s")
    return [int(line) for line in cluster.site.run([*reads, *names], config=reader).ok().out.split()]


@pytest.mark.limit(180)
@pytest.mark.parametrize("loss", ["kill", pytest.param("drain", marks=with_all)])
def test_files_that_are_opened_around_a_takeover_are_mirrored_without_another_call(cluster, loss):
    count = 24
    program = cluster.site.start([*cluster.site.script(OPENS), count], config=config(cluster, timeout="1s"))
    program.wait_for_line("opened 4")
    epochs = {cell: cluster.epoch(cell) for cell in cluster.owned_by(lose(cluster, loss))}
    program.wait_for_line(f"opened {count - 1}", timeout=120)
    for cell, epoch in epochs.items():
        cluster.wait_for_owner(cell, epoch)
    names = [f"{'pqr'[n % 3]}/open{n}.h5" for n in range(count)]
    for name in names:
        cluster.tools.wait_for_cut(name, timeout=30)
    assert newest(cluster, names) == list(range(count))
    assert program.running()
    cluster.site.local("enough").touch()
    program.wait().ok()


@with_all
@pytest.mark.limit(180)
@pytest.mark.parametrize("loss", ["kill", "drain"])
def test_what_is_closed_in_a_takeover_is_durable_when_the_program_ends(cluster, loss):
    delays_s = [0, 1.5, 3, 4.5, 5.5, 6.5]
    programs = [cluster.site.start([*cluster.site.script(ENDS), n, delay_s], config=config(cluster, timeout="60s"))
                for n, delay_s in enumerate(delays_s)]
    for program in programs:
        program.wait_for_line("ready")
    lose(cluster, loss)
    cluster.site.local("lost").touch()
    names = [f"{'pqr'[n % 3]}/{word}{n}.h5" for n in range(len(programs)) for word in ("old", "new")]
    for program in programs:
        program.wait(90).ok()
    assert {name: cluster.site.record(name)["state"] for name in names} == {name: "clean" for name in names}
    assert newest(cluster, names) == [n for n in range(len(programs)) for _ in "on"]


@with_all
@pytest.mark.limit(180)
def test_what_was_closed_in_a_takeover_comes_while_the_program_lives(cluster):
    """With a `timeout` that is shorter than a takeover."""
    cells = cluster.owned_by(lose(cluster, "kill"))
    program = cluster.site.start(cluster.site.script(LIVES_ON), config=config(cluster, timeout="1s"))
    program.wait_for_line("left")
    assert cells and program.running()

    def are_clean() -> bool:
        return all(cluster.site.record(f"{cell}/left.h5")["state"] == "clean" for cell in cluster.cells)

    wait_until(are_clean, "a file that was closed is not brought", 60)
    cluster.site.local("enough").touch()
    program.wait().ok()
    assert newest(cluster, [f"{cell}/left.h5" for cell in cluster.cells]) == [7, 7, 7]
