"""Part 3 of bench/follow.py: many objects in one file, read over the network and from the local disk; the test of the
Mig-drive work (write 5,000 blocks, read 1,250 of them at random)."""

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import paths
from harness.caches import drop_caches
from harness.daemons import DelayProxy
from harness.drivers import SEC2, Driver, Site
from harness.follow_tables import MIRROR
from harness.workload import Timed, run_timed, settle_disk

TIMEOUT_S = 900
OBJECTS = "objects.h5"
TINY = "tiny.h5"
MEMORY = Driver("memory", "metadata=memory", "h5mirror", ack="none", more=(("mode", "off"), ("metadata", "memory")))


@dataclass(frozen=True)
class Way:
    """How a reader gets at a file."""

    label: str
    remote: bool
    cold: bool
    round_trip_ms: float = 0
    mode: str = "reader"


def ways(round_trip_ms: float) -> list[Way]:
    link = f"+{round_trip_ms:g} ms"
    return [Way("sec2, cold", False, True), Way("sec2, warm", False, False),
            Way("reader, loopback, server cold", True, True), Way("reader, loopback, server warm", True, False),
            Way("remote, loopback, server warm", True, False, mode="remote"),
            Way(f"reader, {link}, server cold", True, True, round_trip_ms),
            Way(f"reader, {link}, server warm", True, False, round_trip_ms)]


def read_tool(verb: str, files: list[Path], warm_up: Path, remote_config: str | None, *arguments) -> list:
    """The command of a reader: with a config by the server, else by sec2."""
    driver = ["--driver", "h5mirror", "--config", remote_config] if remote_config else ["--driver", "sec2"]
    return [paths.BIN / "bench_blocks", verb, *files, *driver, "--warm-up", warm_up, *arguments, "--start-on-stdin"]


def reader_config(address: str, root: Path, **more) -> str:
    keys = {"server": address, "root": root, "mode": "reader", "timeout": "60s", **more}
    return ";".join(f"{key}={value}" for key, value in keys.items())


def make(site: Site, verb: str, name: str, *arguments) -> None:
    """A file on both sides, by the mirror driver."""
    run_tool(site, [paths.BIN / "bench_blocks", verb, site.local / name, *arguments,
                    "--driver", "h5mirror", "--config", site.config(), "--start-on-stdin"])
    site.check(name)


def run_tool(site: Site, command: list) -> dict:
    with Timed(command, scratch=site.directory, timeout_s=TIMEOUT_S) as timed:
        timed.go()
        return timed.said()


def measure(options, directory: Path, facts: dict) -> dict:
    """{section: {row: {column: [figure of each round]}}}, seconds. `facts` gets how the caches were emptied."""
    figures = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for number in range(options.rounds):
        for kib in options.block_kib:
            _writes(figures[f"write, {kib} KiB"], number, kib, options, directory)
        with Site(MIRROR, directory / "site") as site:
            make(site, "write", TINY, "--count", 1)
            make(site, "objects", OBJECTS, "--count", options.objects)
            for kib in options.block_kib:
                make(site, "write", f"blocks{kib}.h5", "--count", options.blocks, "--block-kib", kib)
            with link_of(site, options.round_trip_ms) as ports:
                all_ways = ways(options.round_trip_ms)
                turn = number % len(all_ways)
                for way in all_ways[turn:] + all_ways[:turn]:
                    _reads(figures, way, number, site, f"127.0.0.1:{ports[link_name(way.round_trip_ms)]}", options,
                           facts)
    return figures


def link_name(round_trip_ms: float) -> str:
    return f"+{round_trip_ms:g} ms" if round_trip_ms else "loopback"


@contextmanager
def link_of(site: Site, round_trip_ms: float):
    """{name of the link: the server's port over it}."""
    with DelayProxy(site.server.port, round_trip_ms, site.directory / "proxy.log") as proxy:
        yield {link_name(0): site.server.port, link_name(round_trip_ms): proxy.port}


def _writes(rows: dict, number: int, kib: int, options, directory: Path) -> None:
    all_ways = [(SEC2.label, SEC2, None), (MEMORY.label, MEMORY, None), ("mirrored, loopback", MIRROR, None),
                (f"mirrored, +{options.round_trip_ms:g} ms", MIRROR, options.round_trip_ms)]
    turn = number % len(all_ways)
    for label, driver, round_trip_ms in all_ways[turn:] + all_ways[:turn]:
        with Site(driver, directory / "site", round_trip_ms=round_trip_ms) as site:
            command = [paths.BIN / "bench_blocks", "write", site.local / "blocks.h5", "--count", options.blocks,
                       "--block-kib", kib, "--driver", driver.kind, "--warm-up", site.local / TINY, "--start-on-stdin"]
            if site.config():
                command += ["--config", site.config()]

            def start(before, command=command, site=site):
                return run_timed(command, scratch=site.directory, timeout_s=TIMEOUT_S, before=before)[0]

            run = start(settle_disk) if driver == MEMORY else site.timed("blocks.h5", start)
            rows[label]["felt"].append(run.felt_s)
            rows[label]["close"].append(run.total_s - run.felt_s)
            rows[label]["total"].append(run.total_s)


def _reads(figures: dict, way: Way, seed: int, site: Site, address: str, options, facts: dict) -> None:
    config = reader_config(address, site.local, mode=way.mode) if way.remote else None

    def read(verb: str, name: str, *arguments) -> dict:
        command = read_tool(verb, [site.local / name], site.local / TINY, config, *arguments)
        if not way.cold:
            run_tool(site, command)
        with Timed(command, scratch=site.directory, timeout_s=TIMEOUT_S) as timed:
            if way.cold:
                facts["caches emptied by"] = drop_caches(site.local, site.remote)
            timed.go()
            return timed.result()[1]

    said = read("walk", OBJECTS)
    if said["objects"] != options.objects:
        raise RuntimeError(f"{way.label}: {said['objects']} objects of {options.objects} are seen")
    row = figures[f"{options.objects:,} objects"][way.label]
    row["open"].append(said["open_s"])
    row["total"].append(said["total_s"])
    for kib in options.block_kib:
        said = read("read", f"blocks{kib}.h5", "--count", options.blocks // 4, "--seed", 20130422 + seed)
        row = figures[f"read, {kib} KiB"][way.label]
        row["open"].append(said["open_s"])
        row["total"].append(said["total_s"])
