"""Records of saved pages, as docs/reference/format.md, "Pages records", has them."""

import ctypes
import struct
from pathlib import Path


def unpacked(frame: bytes, size: int) -> bytes:
    """One zstd frame of `size` bytes. Python has no module for it before 3.14."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size)
    assert zstd.ZSTD_decompress(out, ctypes.c_size_t(size), frame, ctypes.c_size_t(len(frame))) == size
    return out.raw


def packed_pages(segment: Path, offset: int, page: int, page_count: int) -> bytes:
    """`page_count` pages from `page` on, of the compressed record at `offset`."""
    with segment.open("rb") as file:
        file.seek(offset)
        header = file.read(64)
        encoding, level = struct.unpack_from("<II", header, 8)
        first, page_size, packed_bytes = struct.unpack_from("<QII", header, 48)
        assert encoding == 1
        file.seek(offset + 64 + 4 * (1 << level))
        pages = unpacked(file.read(packed_bytes), page_size << level)
    return pages[(page - first) * page_size:][:page_count * page_size]
