"""Part 4 of bench/follow.py: the memory and CPU of a server with many subscribers of one file."""

import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from harness import paths
from harness.drivers import Site
from harness.follow_tables import MIRROR
from harness.workload import Timed, WorkloadFailed

FILE = "pulse.h5"
PROCESSES = 10
# The bytes that a subscriber reads of each cut, and the flags of bench_subscribers for that.
ALL, METADATA = "all", "metadata only"
FLAGS = {ALL: [], METADATA: ["--metadata"]}
COUNTS = ("refused", "expired", "passed_over", "received_bytes")


def measure(reads: str, subscribers: int, ticks: int, tick_ms: float, kib: int, directory: Path) -> dict:
    """The server's memory (MiB) and CPU while they follow, and the bytes of each subscriber in the end: checked to be
    the last cut's."""
    timeout_s = 180 + 4 * ticks * tick_ms / 1000
    with Site(MIRROR, directory / "site") as site, ExitStack() as stack:
        writer = stack.enter_context(Timed(
            [paths.BIN / "bench_ticks", "pulse", site.local / FILE, "--ticks", ticks, "--tick-ms", tick_ms,
             "--values", kib * 128, "--driver", "h5mirror", "--config", site.config(), "--start-on-stdin"],
            scratch=site.directory, timeout_s=timeout_s))
        before_mib = site.server.reset_peak_mib()
        loads = _start(reads, subscribers, site, stack, timeout_s)
        connected_mib = site.server.resident_mib()
        cpu_before_s, start_s = site.server.cpu_seconds(), time.monotonic()
        writer.go()
        writer.said()
        written_s = time.monotonic() - start_s
        for load in loads:
            load.await_line("followed")
        elapsed_s = time.monotonic() - start_s
        cpu_s = site.server.cpu_seconds() - cpu_before_s
        peak_mib = site.server.peak_mib()
        for load in loads:
            load.go()
        seen = [each for load in loads for each in load.said()]
        complete_s = time.monotonic() - start_s - elapsed_s
        site.check(FILE)
        _check_digests(seen, subscribers, site.remote / FILE)
        return {"reads": reads, "subscribers": subscribers, "processes": len(loads),
                "file_bytes": (site.remote / FILE).stat().st_size,
                "before_mib": before_mib, "connected_mib": connected_mib, "peak_mib": peak_mib,
                "end_peak_mib": site.server.peak_mib(), "server_cpu_s": cpu_s, "written_s": written_s,
                "elapsed_s": elapsed_s, "complete_s": complete_s, "server_cores": cpu_s / elapsed_s,
                "client_cpu_s": sum(load.usage.ru_utime + load.usage.ru_stime for load in loads),
                "ticks": ticks, "cuts": sorted(each["cuts"] for each in seen),
                **{count: sum(each[count] for each in seen) for count in COUNTS}}


def _start(reads: str, subscribers: int, site: Site, stack: ExitStack, timeout_s: float) -> list[Timed]:
    processes = min(PROCESSES, subscribers)
    loads = []
    for number in range(processes):
        channels = subscribers // processes + (number < subscribers % processes)
        loads.append(Timed([paths.BIN / "bench_subscribers", "--server", site.address(), "--name", FILE,
                            "--channels", channels, *FLAGS[reads]], scratch=site.directory, timeout_s=timeout_s))
        stack.push(loads[-1].__exit__)
    for load in loads:
        load.__enter__()
    return loads


def _check_digests(seen: list[dict], subscribers: int, head: Path) -> None:
    digest = subprocess.run([paths.BIN / "bench_subscribers", "--digest", head], check=True, text=True,
                            capture_output=True).stdout.strip()
    held = {each["digest"] for each in seen}
    if len(seen) != subscribers or held - {digest}:
        raise WorkloadFailed(f"{len(seen)} of {subscribers} subscribers hold {sorted(held)}, the last cut is {digest}")
