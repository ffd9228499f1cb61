"""A history decoded with nothing but docs/reference/format.md, sqlite3 and a hex dump; and the onion driver's worked
example."""

import shutil
import struct
import subprocess

import pytest

from harness.records import unpacked
from harness.wire import Wire

PAGE = 4096


@pytest.fixture(params=[pytest.param(how, marks=pytest.mark.site(options={"page_compression": how}))
                        for how in ("none", "zstd")])
def compression(request):
    """The setting page_compression of the server."""
    return request.param


@pytest.fixture
def example(compression, site):
    """The example that HDF5's onion driver was explained by: version 1 has the pages P0 to P3, version 2 changes
    P0 and adds P4, version 3 changes P0 and P2. (There the versions count from 0.)"""
    with Wire(site) as writer:
        writer.open("example.h5")
        writer.read_until("opened")
        for pages, size in (({0: "a", 1: "b", 2: "c", 3: "d"}, 4), ({0: "A", 4: "e"}, 5), ({0: "X", 2: "C"}, 5)):
            for page, text in pages.items():
                writer.write(page * PAGE, text.encode() * PAGE)
            writer.commit(size * PAGE)
            writer.read_until("cut_durable")
        assert writer.finish()["code"] == "OK"
    site.settle("example.h5")
    return site


CONTENTS = {1: "abcd", 2: "Abcde", 3: "XbCde"}


def test_the_example_of_2021(example, compression):
    """Logical to physical pages of each version. The newest is in the head, as a plain file. Replaced pages were saved
    once, by the version that had them: version 2 shares P2's old content with version 1."""
    maps = {}
    for version in CONTENTS:
        shown = example.json("show", f"example.h5@{version}", "--map")
        assert shown["page_size_bytes"] == PAGE
        maps[version] = {run["page"] + n: (run["place"], run["file"], run["offset"] + n * PAGE)
                         for run in shown["map"] for n in range(run["page_count"])}
    in_head = {page: ("head", "example.h5", page * PAGE) for page in range(5)}
    assert maps[3] == in_head
    assert {page for page in maps[2] if maps[2][page] != in_head[page]} == {0, 2}
    assert {page for page in maps[1] if maps[1][page] != in_head[page]} == {0, 2}
    assert set(maps[1]) == set(range(4))
    assert maps[1][2] == maps[2][2], "one copy for both"
    assert maps[1][0] != maps[2][0]
    saved = {maps[version][page] for version in (1, 2) for page in (0, 2)}
    place = "packed" if compression == "zstd" else "pages"
    assert {each for each, _, _ in saved} == {place} and len(saved) == 3, "three pages were overwritten, three saved"


def sql(site, name, query):
    """Rows of the index of a file at rest, as the sqlite3 shell prints them. Of a copy: the shell would move the
    content of index-wal into the index."""
    copy = site.directory / "copy"
    if not copy.exists():
        shutil.copytree(site.root, copy)
    out = subprocess.run(["sqlite3", "-separator", " ", f"{copy / name}.h5m/index", query], check=True,
                         capture_output=True, text=True).stdout
    return [line.split(" ") for line in out.splitlines()]


def hex_bytes(path, offset, length):
    """`length` bytes of a file, through od(1)."""
    dump = subprocess.run(["od", "-An", "-v", "-tx1", f"-j{offset}", f"-N{length}", path], check=True,
                          capture_output=True, text=True).stdout
    return bytes.fromhex("".join(dump.split()))


def by_hand(site, name, version):
    """The bytes of a version, by docs/design/036-reading-a-version.md."""
    (page_size,), = sql(site, name, "SELECT page_size_bytes FROM file")
    (size, generation), = sql(site, name, f"SELECT size_bytes, generation FROM version WHERE version = {version}")
    page_size, size = int(page_size), int(size)
    head = (site.root / name).read_bytes()
    content = bytearray()
    for page in range((size + page_size - 1) // page_size):
        rows = sql(site, name, f"""
            SELECT version, level, page, segment, offset FROM pages
            WHERE generation = {generation} AND version >= {version}
              AND page <= {page} AND {page} < page + (1 << level) ORDER BY version LIMIT 1""")
        if not rows:
            content += head[page * page_size:(page + 1) * page_size].ljust(page_size, b"\0")
            continue
        _, level, first, segment, place = map(int, rows[0])
        offset = place & ((1 << 36) - 1)
        if segment == 0:
            content += bytes(page_size)
            continue
        path = f"{site.root / name}.h5m/pages-{segment:06d}"
        header = hex_bytes(path, offset, 64)
        magic, _, encoding, record_level = struct.unpack_from("<IIII", header)
        record_page, record_page_size, packed_bytes = struct.unpack_from("<QII", header, 48)
        assert (magic, record_level, record_page, record_page_size) == (0x504D3548, level, first, page_size)
        body = offset + 64 + 4 * (1 << level)
        if encoding == 0:
            assert packed_bytes == 0
            content += hex_bytes(path, body + (page - first) * page_size, page_size)
            continue
        assert (encoding, packed_bytes) == (1, place >> 36)
        pages = unpacked(hex_bytes(path, body, packed_bytes), page_size << level)
        content += pages[(page - first) * page_size:][:page_size]
    return bytes(content[:size])


def test_a_history_is_decoded_by_hand(example):
    example.py("""
        for n in range(3):
            with h5py.File("run.h5", "a") as f:
                f.attrs["n"] = n
                f.require_dataset("d", (30_000,), "f8")[n * 7000:] = n if n < 2 else np.random.rand(16_000)
    """)
    example.settle("run.h5")
    for version, pages in CONTENTS.items():
        expected = b"".join(page.encode() * PAGE for page in pages)
        assert example.export("example.h5", version).read_bytes() == expected
    example.server.stop()  # Its index is held exclusively while it runs.
    for version, pages in CONTENTS.items():
        expected = b"".join(page.encode() * PAGE for page in pages)
        assert by_hand(example, "example.h5", version) == expected, f"version {version}"
    decoded = {version: by_hand(example, "run.h5", version) for version in (1, 2, 3)}
    example.server.start()
    for version, content in decoded.items():
        assert example.export("run.h5", version).read_bytes() == content, f"version {version}"
