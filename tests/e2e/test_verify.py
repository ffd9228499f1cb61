"""Single bits that rot on the server's disk are found, named, and never served."""

import json
import os

import pytest

from harness.metrics import Metrics
from harness.process import wait_until


@pytest.fixture
def five(site):
    """A site whose run.h5 has five versions; the server is stopped."""
    site.py("""
        for n in range(5):
            with h5py.File("run.h5", "a") as f:
                f.attrs["n"] = n
                f.require_dataset("d", (20_000,), "f8")[:] = np.random.rand(20_000)
    """)
    site.settle("run.h5")
    assert site.json("verify", "run.h5")["damage"] == []
    site.server.stop()
    return site


def flip(file, offset):
    with open(file, "r+b") as f:
        f.seek(offset)
        byte = f.read(1)[0]
        f.seek(offset)
        f.write(bytes([byte ^ 1]))


def test_a_bit_of_a_saved_page(five):
    segment = five.root / "run.h5.h5m" / "pages-000001"
    flip(segment, segment.stat().st_size // 2)
    five.server.start()
    found = five.cli("verify", "run.h5", "--json")
    assert found.code == 6, found.describe()
    assert '"place": "pages"' in found.out and "pages-000001" in found.out, found.out
    codes = [five.cli("export", "--force", f"run.h5@{version}", five.directory / "out").code for version in range(1, 6)]
    assert 6 in codes and set(codes) <= {0, 6}, codes


def lost(site):
    """The pages that a verification names, by their place in the head, and the newest versions that lack them."""
    found = site.cli("verify", "run.h5", "--json")
    assert found.code == 6, found.describe()
    return [(damage["offset"], damage["newest_version"]) for damage in json.loads(found.out)["damage"]]


def test_a_file_whose_index_is_lost_is_listed_beside_the_others(five):
    history = five.root / "run.h5.h5m"
    names = ["index", "index-wal"]
    kept = {each: (history / each).read_bytes() for each in names}
    for each in names:
        (history / each).unlink()
    five.server.start()
    five.py("h5py.File('whole.h5', 'w').attrs['n'] = 1")
    assert {"run.h5", "whole.h5"} <= {each["name"] for each in five.json("ls")["files"]}
    table, as_json = five.cli("ls", "-l"), five.cli("ls", "-l", "--json")
    assert table.code == as_json.code == 6, table.describe() + as_json.describe()
    assert "damaged" in table.out and "whole.h5" in table.out and "run.h5: " in table.err, table.describe()
    damage = {each["name"]: each.get("damage", "") for each in json.loads(as_json.out)["files"]}
    assert "no index" in damage["run.h5"] and damage["whole.h5"] == "", as_json.out
    assert five.cli("log", "run.h5").code == 6
    five.server.stop()
    for each in names:
        (history / each).write_bytes(kept[each])
    five.server.start()
    assert five.cli("ls", "-l").code == 0
    assert len(five.json("log", "run.h5")["versions"]) == 5


@pytest.mark.parametrize("mtime", ["new", "as it was"])
def test_a_bit_of_the_head(five, mtime):
    head = five.root / "run.h5"
    offset, before = head.stat().st_size - 1000, head.stat()
    flip(head, offset)
    if mtime == "as it was":
        os.utime(head, ns=(before.st_atime_ns, before.st_mtime_ns))
    five.server.start()
    # Its times give it away: the server has taken the change in, and version 5 is known to lack the page.
    assert lost(five) == [(offset // 4096 * 4096, 5)]
    assert lost(five) == [(offset // 4096 * 4096, 5)], "nor is it less of a loss the second time"
    newest = five.log("run.h5")[0]
    assert newest["version"] == 6 and newest["comment"] == "outside change"
    assert five.cli("export", "run.h5@5", "-").code == 6


def test_pages_that_are_lost_under_the_running_server(five):
    """Another program writes the head without the server; the next write of the page finds that."""
    five.server.start()
    metrics = Metrics(five)
    head = five.root / "run.h5"
    offset = head.stat().st_size - 1000
    writer = five.start(five.script("""
        f = h5py.File("run.h5", "a")
        f.attrs["n"] = 7
        f.flush()
        print("flushed", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
        f["d"][:] = np.random.rand(20_000)
        f.close()
    """), config=five.config(flush="sync"))
    writer.wait_for_line("flushed")
    five.settle("run.h5")
    flip(head, offset)
    five.local("go").touch()
    writer.wait().ok()
    five.settle("run.h5")
    for _ in range(2):
        assert lost(five) == [(offset // 4096 * 4096, 5)]

    def said_lost():
        log = five.server.log().splitlines()
        return [line for line in log if "store: file=\"run.h5\"" in line and " lost: " in line]

    wait_until(said_lost, "a line in the log")
    said = said_lost()
    assert len(said) == 1 and "version 5" in said[0] and f"page {offset // 4096} " in said[0], said
    wait_until(lambda: metrics.value("h5mirror_store_lost_pages_total") == 1, "the metric")
    assert five.cli("export", "run.h5@5", "-").code == 6
    five.cli("export", "--force", "run.h5@6", five.directory / "out").ok()
    five.cli("prune", "run.h5", "--keep-last", "1").ok()
    assert five.json("verify", "run.h5")["damage"] == []


def test_every_version_is_opened_with_hdf5(five):
    five.server.start()
    opened = five.json("verify", "run.h5", "--open-versions")
    assert opened["opened_versions"] == 5 and opened["damage"] == []


def test_a_version_that_is_no_hdf5_file_is_found(five):
    (five.root / "plain.h5").write_bytes(b"not HDF5 " * 1000)
    five.server.start()
    # A client begins a file of that name: the server takes in the existing bytes, as version 1.
    assert "diverged" in five.py('h5py.File("plain.h5", "w").attrs["n"] = 1').err
    found = five.cli("verify", "plain.h5", "--open-versions", "--json")
    assert found.code == 6, found.describe()
    assert '"place": "version"' in found.out and "plain.h5@1" in found.out, found.out
    assert five.cli("verify", "plain.h5").code == 0


def test_a_bad_subset_is_refused(five):
    five.server.start()
    for bad in ("0/3", "4/3", "x%", "half"):
        refused = five.cli("verify", "run.h5", "--read-data-subset", bad)
        assert refused.code == 2 and "n/t" in refused.err, refused.describe()
    for good in ("1/3", "50%"):
        five.cli("verify", "run.h5", "--read-data-subset", good).ok()
