"""Part 3 of bench/follow.py too: processes that read a set of files, as TeraVAP does: each its share of a set that is
larger than their memory, or each all of a set that is not."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from harness.caches import MemoryGroup, drop_caches
from harness.daemons import ReadersAgent
from harness.drivers import Site
from harness.follow_reading import TIMEOUT_S, TINY, make, read_tool, reader_config
from harness.follow_tables import MIRROR
from harness.workload import Timed

MIB = 1 << 20
THEIRS = 2.4  # times the speed without, on 16 to 256 processors
LOCAL, REMOTE, AGENT = "sec2", "reader, loopback", "reader, h5mirror-agent"
WAYS = (LOCAL, REMOTE, AGENT)


@dataclass(frozen=True)
class FileSet:
    mib: int
    limit_mib: int     # memory of all readers together
    each_reads_all: bool
    files: int
    block_kib: int

    @property
    def names(self) -> list[str]:
        return [f"set{number}.h5" for number in range(self.files)]

    def of(self, number: int, processes: int) -> list[str]:
        """The files that this process reads."""
        return self.names if self.each_reads_all else self.names[number::processes]


def shares(options) -> FileSet:
    return FileSet(options.set_mib, options.set_limit_mib, False, options.set_files, options.set_block_kib)


def whole(options) -> FileSet:
    return FileSet(options.shared_mib, options.shared_limit_mib, True, options.set_files, options.set_block_kib)


def measure(options, files: FileSet, directory: Path) -> dict:
    """{way: {processes: [seconds of each round]}} to read the set, cold. Raises NotPermitted.

    The readers, with their agent, share one memory group; the server, which stands for another machine, has one of the
    same size.
    """
    figures = {way: {} for way in WAYS}
    with Site(MIRROR, directory / "site") as site, MemoryGroup("server", files.limit_mib * MIB) as server_group:
        server_group.add(site.server.pid)
        make(site, "write", TINY, "--count", 1)
        blocks = files.mib * 1024 // files.block_kib // files.files
        for number, name in enumerate(files.names):
            make(site, "write", name, "--count", blocks, "--block-kib", files.block_kib, "--seed", number)
        for number in range(options.rounds):
            for processes in options.set_processes:
                turn = number % len(WAYS)
                for way in WAYS[turn:] + WAYS[:turn]:
                    elapsed_s = _read_set(way, processes, files, site)
                    figures[way].setdefault(processes, []).append(elapsed_s)
    return figures


def _read_set(way: str, processes: int, files: FileSet, site: Site) -> float:
    """Each process reads its files whole, their blocks in random order. Seconds from first to last."""
    with MemoryGroup("readers", files.limit_mib * MIB) as group, ExitStack() as stack:
        config = _config(way, processes, files, site, group, stack)
        readers = []
        for number in range(processes):
            paths = [site.local / name for name in files.of(number, processes)]
            command = read_tool("read", paths, site.local / TINY, config, "--seed", number)
            reader = stack.enter_context(Timed(command, scratch=site.directory, timeout_s=TIMEOUT_S))
            group.add(reader.pid)
            readers.append(reader)
        drop_caches(site.local, site.remote)
        for reader in readers:
            reader.go()
        said = [reader.said() for reader in readers]
        return max(each["end_s"] for each in said) - min(each["start_s"] for each in said)


def _config(way: str, processes: int, files: FileSet, site: Site, group: MemoryGroup, stack: ExitStack) -> str | None:
    """Half of the memory is for caches: the readers' own, or half of that and the agent's."""
    if way == LOCAL:
        return None
    if way == REMOTE:
        cache_mib = max(1, files.limit_mib // 2 // processes)
        return reader_config(site.address(), site.local, cache=f"{cache_mib}MiB", agent="off")
    # What is shared takes half of an agent's cache.
    agent = stack.enter_context(ReadersAgent(site.address(), site.directory, cache_mib=max(16, files.limit_mib // 2)))
    group.add(agent.pid)
    cache_mib = max(1, files.limit_mib // 4 // processes)
    return reader_config(site.address(), site.local, cache=f"{cache_mib}MiB", agent=agent.socket)
