"""Part 3 of bench/follow.py too: one large dataset read from its beginning to its end over the network, beside a plain
gRPC stream of the same bytes."""

from collections import defaultdict
from pathlib import Path

from harness import paths
from harness.drivers import Site
from harness.follow_reading import TIMEOUT_S, TINY, link_of, make, read_tool, reader_config
from harness.follow_tables import MIRROR
from harness.stats import Sample, format_ratio, format_table
from harness.workload import Timed

FILE = "scan.h5"
STREAM = "plain gRPC stream"
MODES = ("reader", "remote")
SPEED_MIN = 0.7  # times the stream


def measure(options, directory: Path) -> dict:
    """{link: {way: [bytes a second of each round]}}, the server's file in its page cache."""
    speeds = defaultdict(lambda: defaultdict(list))
    with Site(MIRROR, directory / "site") as site:
        make(site, "write", TINY, "--count", 1)
        make(site, "write", FILE, "--count", 1, "--block-kib", options.scan_mib * 1024)
        with link_of(site, options.round_trip_ms) as ports:
            for number in range(options.rounds):
                for link, port in ports.items():
                    ways = _commands(site, f"127.0.0.1:{port}", options.scan_kib)
                    turn = number % len(ways)
                    for way, command in ways[turn:] + ways[:turn]:
                        speeds[link][way].append(_speed(site, command))
    return speeds


def _commands(site: Site, address: str, all_kib: list[int]) -> list:
    ways = [(STREAM, [paths.BIN / "bench_stream", "--server", address, "--name", FILE])]
    for mode in MODES:
        for kib in all_kib:
            config = reader_config(address, site.local, mode=mode)
            ways.append((f"mode={mode}, {kib / 1024:g} MiB reads", read_tool(
                "scan", [site.local / FILE], site.local / TINY, config, "--read-kib", kib)))
    return ways


def _speed(site: Site, command: list) -> float:
    with Timed(command, scratch=site.directory, timeout_s=TIMEOUT_S) as timed:
        timed.go()
        run = timed.result()[0]
        return run.bytes / run.total_s


def ratios(scans: dict):
    """(link, way, its speed, its ratio to the stream), each a Sample, without the stream's own."""
    for link, ways in scans.items():
        for way, speeds in ways.items():
            if way != STREAM:
                yield link, way, Sample(speeds), Sample(speeds).over(Sample(ways[STREAM]))


def text(scans: dict, scan_mib: int) -> str:
    lines = [[link, STREAM, _mib(Sample(ways[STREAM])), "1"] for link, ways in scans.items()]
    lines += [[link, way, _mib(speed), format_ratio(ratio)] for link, way, speed, ratio in ratios(scans)]
    return (f"\n### One dataset of {scan_mib} MiB from beginning to end\n\n"
            + format_table(["link", "way", "MiB/s", "speed, x stream"], lines))


def _mib(speed: Sample) -> str:
    return f"{speed.median / 2**20:.0f}"
