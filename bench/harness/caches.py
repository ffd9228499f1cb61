"""Page caches: emptied, and bounded by a memory cgroup."""

import os
from pathlib import Path

from harness.workload import settle_disk

DROP = Path("/proc/sys/vm/drop_caches")


def drop_caches(*tops: Path) -> str:
    """Puts what lies below `tops` out of the page cache; says how: by `drop_caches`, or `fadvise` of each file."""
    settle_disk()
    try:
        DROP.write_text("3\n")
        return "drop_caches"
    except OSError:
        for top in tops:
            for path in top.rglob("*"):
                if path.is_file():
                    with open(path, "rb") as file:
                        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return "fadvise"


class NotPermitted(RuntimeError):
    """This machine lets us make no memory cgroup; the text says why."""


class MemoryGroup:
    """A cgroup of v2 or v1 that bounds what processes and their page cache take. A context manager."""

    def __init__(self, name: str, limit_bytes: int):
        self.limit_bytes = limit_bytes
        v2, v1 = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory")
        controllers = v2 / "cgroup.controllers"
        self._is_v2 = controllers.exists() and "memory" in controllers.read_text().split()
        self._parent = v2 if self._is_v2 else v1
        self.path = self._parent / f"h5mirror-bench-{os.getpid()}-{name}"

    def __enter__(self):
        try:
            if self._is_v2:
                (self._parent / "cgroup.subtree_control").write_text("+memory")
            self.path.mkdir()
            limit = "memory.max" if self._is_v2 else "memory.limit_in_bytes"
            try:
                (self.path / limit).write_text(str(self.limit_bytes))
            except OSError:
                self.path.rmdir()
                raise
        except OSError as error:
            raise NotPermitted(f"no memory cgroup: {error}") from error
        return self

    def add(self, pid: int) -> None:
        """From now on what it takes more is counted here."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def __exit__(self, *_):
        for pid in (self.path / "cgroup.procs").read_text().split():
            (self._parent / "cgroup.procs").write_text(pid)
        self.path.rmdir()
