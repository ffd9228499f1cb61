"""Versions as plain files: bytes that the head has come from the head, and each byte is checked."""

import hashlib
import random
from pathlib import Path

from harness import paths

PAGE = 4096

GROW = """
    with h5py.File("run.h5", "w") as f:
        f["d"] = np.random.default_rng(1).integers(0, 1 << 62, 4_000_000)
    for n in range({versions}):
        with h5py.File("run.h5", "r+") as f:
            f["d"][n * 100_000:n * 100_000 + 5_000] = n
"""


def sha(path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def read_by(pid: int) -> int:
    """Bytes that a process has read from files and sockets."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def over_the_wire(site, version) -> str:
    """The same version as the server sends it."""
    out = site.directory / f"piped-{version}"
    command = f"{paths.BIN}/h5mirror --server {site.server.address} export run.h5@{version} - > {out}"
    site.run(["sh", "-c", command], env=site.plain_env()).ok()
    return sha(out)


def test_what_the_head_holds_is_not_read_through_the_server(site):
    site.py(GROW.format(versions=3))
    site.settle("run.h5")
    before = read_by(site.server.pid)
    newest = site.export("run.h5", 4)
    by_server = read_by(site.server.pid) - before
    assert sha(newest) == sha(site.local("run.h5"))
    assert by_server < newest.stat().st_size / 20, f"the server read {by_server} bytes"


def test_every_version_is_the_same_either_way(site):
    site.py(GROW.format(versions=4))
    site.settle("run.h5")
    for version in site.versions("run.h5"):
        assert sha(site.export("run.h5", version)) == over_the_wire(site, version), version


def test_pages_that_changed_all_over_come_without_what_lies_between(site):
    """One page in eight has changed since; the server neither sends nor reads the others."""
    site.py("""
        with h5py.File("run.h5", "w") as f:
            f["d"] = np.random.default_rng(1).integers(0, 1 << 62, 4_000_000)
        with h5py.File("run.h5", "r+") as f:
            for n in range(0, 4_000_000, 4096):
                f["d"][n] = n
    """)
    site.settle("run.h5")
    before = read_by(site.server.pid)
    old = site.export("run.h5", 1)
    by_server = read_by(site.server.pid) - before
    assert sha(old) == over_the_wire(site, 1)
    assert by_server < old.stat().st_size / 4, f"the server read {by_server} bytes"


def test_export_beside_a_writer_is_of_one_version(site):
    site.py(GROW.format(versions=1))
    site.settle("run.h5")
    wanted = {version: over_the_wire(site, version) for version in (1, 2)}
    writer = site.start(site.script("""
        chance = np.random.default_rng(2)
        print("begun", flush=True)
        while True:
            with h5py.File("run.h5", "r+") as f:
                at = int(chance.integers(0, 3_900_000))
                f["d"][at:at + 50_000] = at
    """), config=site.config(ack="applied"))
    writer.wait_for_line("begun")
    for round_number in range(8):
        version = 1 + round_number % 2
        assert sha(site.export("run.h5", version)) == wanted[version], f"round {round_number}"
    assert len(site.versions("run.h5")) > 4, "the writer wrote nothing meanwhile"
    writer.kill()


def test_holes_stay_holes(site):
    site.py("""
        with h5py.File("run.h5", "w") as f:
            d = f.create_dataset("d", (1 << 30,), "i1")
            d[0], d[-1] = 1, 2
        with h5py.File("run.h5", "r+") as f:
            f["d"][5_000_000:5_000_100] = 7
    """)
    site.settle("run.h5")
    for version in (1, 2):
        exported = site.export("run.h5", version)
        assert exported.stat().st_size > 1 << 30
        assert exported.stat().st_blocks * 512 < 1 << 20
    assert sha(exported) == sha(site.local("run.h5"))


def test_a_flipped_bit_in_the_head_is_never_exported(site):
    site.py(GROW.format(versions=1))
    site.settle("run.h5")
    # While a writer is active the server has the head open, and does not check it again.
    writer = site.start(site.script("""
        with h5py.File("run.h5", "r+") as f:
            f.attrs["n"] = 1
            f.flush()
            print("open", flush=True)
            time.sleep(60)
    """))
    writer.wait_for_line("open")
    site.wait_for_cut("run.h5")
    with open(site.head("run.h5"), "r+b") as head:
        at = random.Random(3).randrange(1000 * PAGE, 5000 * PAGE)
        head.seek(at)
        byte = head.read(1)[0]
        head.seek(at)
        head.write(bytes([byte ^ 4]))
    out = site.directory / "damaged.h5"
    refused = site.cli("export", "run.h5@2", out)
    writer.kill()
    assert refused.code == 6 and "checksum" in refused.err and "h5mirror verify" in refused.err, refused.describe()
    assert not out.exists()


def test_what_is_not_in_the_head_comes_from_the_server(site):
    site.py(GROW.format(versions=1))
    wanted = sha(site.local("run.h5"))
    site.py(GROW.format(versions=0))
    site.settle("run.h5")
    before = read_by(site.server.pid)
    exported = site.export("run.h5", 2)
    assert sha(exported) == wanted
    assert read_by(site.server.pid) - before > exported.stat().st_size
