"""Page caches: emptied, and bounded by a memory cgroup."""

import mmap
import os
from pathlib import Path

from harness.workload import settle_disk

DROP = Path("/proc/sys/vm/drop_caches")


def drop_caches(*tops: Path) -> str:
    """Drops the files below `tops` from the page cache. Returns the way: `drop_caches`, or `fadvise` of each file."""
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


def touch_memory(mib: int) -> None:
    """Touches so much memory, and frees it. A virtual machine may have to get it from its host first; else the next
    program that needs it would pay for that."""
    if mib == 0:
        return
    with mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        with memoryview(memory) as view, view[::mmap.PAGESIZE] as pages:
            pages[:] = bytes(len(pages))


class NotPermitted(RuntimeError):
    """This machine lets us make no memory cgroup; the text says why."""


class _Group:
    """A cgroup, of v2 or of a hierarchy of v1. A context manager."""

    def __init__(self, name: str, v2_controller: str, v1_hierarchy: str):
        v2, v1 = Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup") / v1_hierarchy
        controllers = v2 / "cgroup.controllers"
        self._controller = v2_controller
        self._is_v2 = controllers.exists() and v2_controller in controllers.read_text().split()
        self._parent = v2 if self._is_v2 else v1
        self.path = self._parent / f"h5mirror-bench-{os.getpid()}-{name}"

    def _limit(self) -> tuple[str, str]:
        """The file of the limit, and the text for it."""
        raise NotImplementedError

    def __enter__(self):
        try:
            if self._is_v2:
                (self._parent / "cgroup.subtree_control").write_text(f"+{self._controller}")
            self.path.mkdir()
            file, text = self._limit()
            try:
                (self.path / file).write_text(text)
            except OSError:
                self.path.rmdir()
                raise
        except OSError as error:
            raise NotPermitted(f"no cgroup ({self._controller}): {error}") from error
        return self

    def add(self, pid: int) -> None:
        """From now on the process's new memory is counted here."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def __exit__(self, *_):
        for pid in (self.path / "cgroup.procs").read_text().split():
            (self._parent / "cgroup.procs").write_text(pid)
        self.path.rmdir()


class MemoryGroup(_Group):
    """Bounds the memory of processes and their page cache."""

    def __init__(self, name: str, limit_bytes: int):
        super().__init__(name, "memory", "memory")
        self.limit_bytes = limit_bytes

    def _limit(self) -> tuple[str, str]:
        return "memory.max" if self._is_v2 else "memory.limit_in_bytes", str(self.limit_bytes)


class DiskGroup(_Group):
    """Bounds the bytes that processes read from the disk of `directory` in a second, all together. A process cannot be
    in this group of v2 and in a MemoryGroup of v2 at once."""

    def __init__(self, name: str, directory: Path, bytes_a_second: int):
        super().__init__(name, "io", "blkio")
        self.bytes_a_second = bytes_a_second
        self._disk = _disk_of(directory)

    def _limit(self) -> tuple[str, str]:
        if self._is_v2:
            return "io.max", f"{self._disk} rbps={self.bytes_a_second}"
        return "blkio.throttle.read_bps_device", f"{self._disk} {self.bytes_a_second}"


def _disk_of(directory: Path) -> str:
    """MAJOR:MINOR of the whole disk: the kernel bounds no partition of it."""
    device = directory.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not block.exists():
        raise NotPermitted(f"{directory} is on no disk of this machine")
    disk = block.resolve()
    if (disk / "partition").exists():
        disk = disk.parent
    return (disk / "dev").read_text().strip()
