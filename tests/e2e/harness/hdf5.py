"""HDF5 files seen from outside: no plugin takes part here."""

import filecmp
import hashlib
import os
import re
import subprocess
from pathlib import Path

from . import paths


def plain_env(**more: str) -> dict[str, str]:
    """This process's environment without any driver."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("HDF5_", "H5MIRROR_"))}
    return {**env, **more}


def dump(file: Path, *options: str) -> bytes:
    """The output of h5dump, without the file's own name in the first line."""
    done = subprocess.run([paths.hdf5_tool("h5dump"), *options, str(file)], env=plain_env(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 0, f"h5dump {file}: {done.stderr.decode(errors='replace')[-2000:]}"
    return done.stdout.split(b"\n", 1)[1]


def comparable_dump(file: Path, *options: str) -> bytes:
    """The same, without the parts that differ between two files of equal bytes, or from one h5dump to the next."""
    said = dump(file, *options).replace(os.fsencode(file), b"FILE")  # with each reference
    # Of references within compounds h5dump prints an address, and at times bytes of its own memory for the path.
    # A line break may be among them.
    return re.sub(rb'\b(DATASET|GROUP) \d+ "(.*?)"(?=[,)\s])', without_memory, said, flags=re.DOTALL)


def without_memory(reference: re.Match) -> bytes:
    """A reference as h5dump prints it, without its address, and without a path that is none."""
    path = reference[2] if re.fullmatch(rb"/[ -~]+", reference[2]) else b""
    return reference[1] + b' @"' + path + b'"'


def assert_opens(file: Path) -> None:
    """The file opens and its whole tree can be walked."""
    dump(file, "-H", "-A")


def assert_same(local: Path, head: Path) -> None:
    """Two files are equal byte for byte, and h5dump says the same of both."""
    assert local.exists(), f"no local file {local}"
    assert head.exists(), f"no head {head}"
    assert filecmp.cmp(local, head, shallow=False), (
        f"{local} ({local.stat().st_size} bytes) and {head} ({head.stat().st_size} bytes) differ at "
        f"{first_difference(local, head)}")
    if local.stat().st_size < 8 << 20:
        assert comparable_dump(local) == comparable_dump(head)
    else:
        assert comparable_dump(local, "-H") == comparable_dump(head, "-H")


def first_difference(one: Path, other: Path) -> int:
    """Offset of the first byte that differs; the shorter size where one is a prefix; -1 if equal."""
    offset = 0
    with open(one, "rb") as a, open(other, "rb") as b:
        while True:
            x, y = a.read(1 << 20), b.read(1 << 20)
            if x != y:
                return offset + next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
            if not x:
                return -1
            offset += len(x)


def digest(file: Path) -> str:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
