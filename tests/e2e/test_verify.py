"""Single bits that rot on the server's disk are found, named, and never served."""

import pytest


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


def test_a_bit_of_the_head(five):
    flip(five.root / "run.h5", (five.root / "run.h5").stat().st_size - 1000)
    five.server.start()
    # Its times give it away: the server has taken the change in, and version 5 is known to lack the page.
    found = five.cli("verify", "run.h5")
    assert found.code == 0, found.describe()
    newest = five.log("run.h5")[0]
    assert newest["version"] == 6 and newest["comment"] == "outside change"
    assert five.cli("export", "run.h5@5", "-").code == 6


def test_every_version_is_opened_with_hdf5(five):
    five.server.start()
    opened = five.json("verify", "run.h5", "--open-versions")
    assert opened["opened_versions"] == 5 and opened["damage"] == []


def test_a_version_that_is_no_hdf5_file_is_found(five):
    (five.root / "plain.h5").write_bytes(b"not HDF5 " * 1000)
    five.server.start()
    # Somebody wants to write a file of that name: the server takes in what is there, as version 1.
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
