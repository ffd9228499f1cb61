"""Part 3 of bench/follow.py too: processes that read a set of files larger than their memory, as TeraVAP does."""

from contextlib import ExitStack
from pathlib import Path

from harness.caches import MemoryGroup, drop_caches
from harness.drivers import Site
from harness.follow_reading import TIMEOUT_S, TINY, make, read_tool, reader_config
from harness.follow_tables import MIRROR
from harness.workload import Timed

MIB = 1 << 20
THEIRS = 2.4  # times the speed without, on 16 to 256 processors
LOCAL, REMOTE = "sec2", "reader, loopback"


def measure(options, directory: Path) -> dict:
    """{way: {processes: [seconds of each round]}} to read the whole set, cold. Raises NotPermitted.

    The readers share one memory group; the server, which stands for another machine, has one of the same size.
    """
    figures = {LOCAL: {}, REMOTE: {}}
    limit = options.set_limit_mib * MIB
    with Site(MIRROR, directory / "site") as site, MemoryGroup("server", limit) as server_group:
        server_group.add(site.server.pid)
        make(site, "write", TINY, "--count", 1)
        names = [f"set{number}.h5" for number in range(options.set_files)]
        blocks = options.set_mib * 1024 // options.set_block_kib // options.set_files
        for number, name in enumerate(names):
            make(site, "write", name, "--count", blocks, "--block-kib", options.set_block_kib, "--seed", number)
        for number in range(options.rounds):
            for processes in options.set_processes:
                for way in (LOCAL, REMOTE)[::1 if number % 2 else -1]:
                    elapsed_s = _read_set(way, processes, names, site, limit)
                    figures[way].setdefault(processes, []).append(elapsed_s)
    return figures


def _read_set(way: str, processes: int, names: list[str], site: Site, limit: int) -> float:
    """Each process reads its files whole, their blocks in random order. Seconds from first to last."""
    cache_mib = max(1, limit // MIB // 2 // processes)
    config = reader_config(site.address(), site.local, cache=f"{cache_mib}MiB") if way == REMOTE else None
    with MemoryGroup("readers", limit) as group, ExitStack() as stack:
        readers = []
        for number in range(processes):
            files = [site.local / name for name in names[number::processes]]
            command = read_tool("read", files, site.local / TINY, config, "--seed", number)
            reader = stack.enter_context(Timed(command, scratch=site.directory, timeout_s=TIMEOUT_S))
            group.add(reader.pid)
            readers.append(reader)
        drop_caches(site.local, site.remote)
        for reader in readers:
            reader.go()
        said = [reader.said() for reader in readers]
        return max(each["end_s"] for each in said) - min(each["start_s"] for each in said)
