"""Part 3 of bench/follow.py too: processes that read a set of files, as TeraVAP does: each its share of a set that is
larger than their memory, or each all of a set that is not. Of the latter with empty and full page caches, from a disk
of a known bandwidth, and with the files' metadata in few places."""

from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from harness.caches import DiskGroup, MemoryGroup, drop_caches, touch_memory
from harness.daemons import ReadersAgent
from harness.drivers import Site
from harness.follow_reading import TIMEOUT_S, TINY, make, read_tool, reader_config
from harness.follow_tables import MIRROR
from harness.workload import Timed, settle_disk

MIB = 1 << 20
THEIRS = 2.4  # times the speed without, on 16 to 256 processors
LOCAL, REMOTE, AGENT = "sec2", "reader, loopback", "reader, h5mirror-agent"
WAYS = (LOCAL, REMOTE, AGENT)
NAMES = ("crowd", "crowd_disk_share", "crowd_whole", "crowd_bulk", "crowd_warm", "crowd_disk", "crowd_disk_bulk")


@dataclass(frozen=True)
class FileSet:
    mib: int
    limit_mib: int     # memory of all readers together
    each_reads_all: bool
    files: int
    block_kib: int
    disk_mib: int = 0        # the disk's bandwidth in a second; 0: no limit
    is_cold: bool = True
    meta_block_kib: int = 0  # H5Pset_meta_block_size; 0: HDF5's own
    touch_mib: int = 0       # memory that is touched before each run

    @property
    def best(self) -> str:
        """The way that is meant for it: an agent saves transfers only where files are read more than once."""
        return AGENT if self.each_reads_all else REMOTE

    @property
    def names(self) -> list[str]:
        return [f"set{number}.h5" for number in range(self.files)]

    def of(self, number: int, processes: int) -> list[str]:
        """The files that this process reads."""
        return self.names if self.each_reads_all else self.names[number::processes]

    @property
    def title(self) -> str:
        each = "each all of" if self.each_reads_all else "each its share of"
        place = "in page caches" if not self.is_cold else f"cold, from a disk of {self.disk_mib} MiB/s" if self.disk_mib else "cold"
        bulk = f", metadata in blocks of {self.meta_block_kib} KiB" if self.meta_block_kib else ""
        return (f"Processes that read {each} {self.mib} MiB in {self.files} files of {self.block_kib} KiB blocks{bulk}, "
                f"{place}, with {self.limit_mib} MiB of memory")


def sets(options) -> dict[str, FileSet]:
    """By the name of their results."""
    o = options
    whole = FileSet(o.shared_mib, o.shared_limit_mib, True, o.set_files, o.set_block_kib, touch_mib=o.touch_mib)
    share = FileSet(o.set_mib, o.set_limit_mib, False, o.set_files, o.set_block_kib, touch_mib=o.touch_mib)
    return {"crowd": share,
            "crowd_disk_share": replace(share, disk_mib=o.disk_mib),
            "crowd_whole": whole,
            "crowd_bulk": replace(whole, meta_block_kib=o.meta_block_kib),
            "crowd_warm": replace(whole, is_cold=False),
            "crowd_disk": replace(whole, disk_mib=o.disk_mib),
            "crowd_disk_bulk": replace(whole, disk_mib=o.disk_mib, meta_block_kib=o.meta_block_kib)}


def measure(options, files: FileSet, directory: Path) -> dict:
    """{way: {processes: [seconds of each round]}} to read the set. Raises NotPermitted.

    The readers, with their agent, share one memory group; the server, which stands for another machine, has one of the
    same size. The disk's bandwidth is that of the processes which read it: of all readers with sec2, or of the server.
    """
    figures = {way: {} for way in WAYS}
    with (Site(MIRROR, directory / "site") as site, MemoryGroup("server", files.limit_mib * MIB) as server_group,
          _disk("server-disk", files, directory) as server_disk):
        server_group.add(site.server.pid)
        make(site, "write", TINY, "--count", 1)
        blocks = files.mib * 1024 // files.block_kib // files.files
        for number, name in enumerate(files.names):
            make(site, "write", name, "--count", blocks, "--block-kib", files.block_kib, "--seed", number,
                 "--meta-block-kib", files.meta_block_kib)
        if server_disk:
            server_disk.add(site.server.pid)
        for number in range(options.rounds):
            for processes in options.set_processes:
                turn = number % len(WAYS)
                for way in WAYS[turn:] + WAYS[:turn]:
                    elapsed_s = _read_set(way, processes, files, site)
                    figures[way].setdefault(processes, []).append(elapsed_s)
    return figures


def _disk(name: str, files: FileSet, directory: Path):
    return DiskGroup(name, directory, files.disk_mib * MIB) if files.disk_mib else nullcontext()


def _read_set(way: str, processes: int, files: FileSet, site: Site) -> float:
    """Each process reads its files whole, their blocks in random order. Seconds from first to last."""
    with (MemoryGroup("readers", files.limit_mib * MIB) as group, _disk("readers-disk", files, site.directory) as disk,
          ExitStack() as stack):
        config = _config(way, processes, files, site, group, stack)
        readers = []
        for number in range(processes):
            paths = [site.local / name for name in files.of(number, processes)]
            command = read_tool("read", paths, site.local / TINY, config, "--seed", number)
            reader = stack.enter_context(Timed(command, scratch=site.directory, timeout_s=TIMEOUT_S))
            group.add(reader.pid)
            if disk and way == LOCAL:
                disk.add(reader.pid)
            readers.append(reader)
        if files.is_cold:
            drop_caches(site.local, site.remote)
        else:
            _fill_caches(way, files, site)
        touch_memory(files.touch_mib)
        for reader in readers:
            reader.go()
        said = [reader.said() for reader in readers]
        return max(each["end_s"] for each in said) - min(each["start_s"] for each in said)


def _fill_caches(way: str, files: FileSet, site: Site) -> None:
    """Of the side that is read."""
    settle_disk()
    for name in files.names:
        for path in ([site.local / name] if way == LOCAL else site.remote.rglob(f"*{name}*")):
            if path.is_file():
                path.read_bytes()


def _config(way: str, processes: int, files: FileSet, site: Site, group: MemoryGroup, stack: ExitStack) -> str | None:
    """Half of the memory is for caches: the readers' own; with an agent half of that each for the readers and the
    agent."""
    if way == LOCAL:
        return None
    if way == REMOTE:
        cache_mib = max(1, files.limit_mib // 2 // processes)
        return reader_config(site.address(), site.local, cache=f"{cache_mib}MiB", agent="off")
    # Shared blocks take half of an agent's cache.
    agent = stack.enter_context(ReadersAgent(site.address(), site.directory, cache_mib=max(16, files.limit_mib // 2)))
    group.add(agent.pid)
    cache_mib = max(1, files.limit_mib // 4 // processes)
    return reader_config(site.address(), site.local, cache=f"{cache_mib}MiB", agent=agent.socket)
