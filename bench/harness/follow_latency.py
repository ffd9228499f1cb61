"""Part 2 of bench/follow.py: from the writer's flush to the new value in a reading process."""

import bisect
from contextlib import ExitStack
from pathlib import Path

from harness import followers, paths
from harness.drivers import Site
from harness.follow_tables import MIRROR
from harness.workload import Timed

FILE = "pulse.h5"
START_S = 120  # A hundred interpreters start on two cores.


def measure(readers: int, ticks: int, tick_ms: float, directory: Path) -> dict:
    """All latencies in seconds, of each tick in each reader, sorted; and how many ticks were passed over."""
    timeout_s = START_S + 60 + 4 * ticks * tick_ms / 1000
    with Site(MIRROR, directory / "site") as site, ExitStack() as stack:
        writer = stack.enter_context(Timed(
            [paths.BIN / "bench_ticks", "pulse", site.local / FILE, "--ticks", ticks, "--tick-ms", tick_ms,
             "--driver", "h5mirror", "--config", site.config(), "--start-on-stdin"],
            scratch=site.directory, timeout_s=timeout_s))
        all_readers = [followers.latency_reader(site.address(), FILE, site.directory, timeout_s)
                       for _ in range(readers)]
        for reader in all_readers:
            stack.push(reader.__exit__)
        for reader in all_readers:
            reader.__enter__()
        writer.go()
        flushed_s = writer.said()["flushed_s"]
        latencies, passed_over = [], 0
        for reader in all_readers:
            seen = reader.said()
            times, passed = _latencies(seen, flushed_s)
            latencies += times
            passed_over += passed
    return {"readers": readers, "ticks": ticks, "tick_ms": tick_ms, "passed_over": passed_over,
            "latencies_s": [round(each, 6) for each in sorted(latencies)]}


def _latencies(seen: list, flushed_s: list[float]) -> tuple[list[float], int]:
    """Of each tick: until its value, or a newer one, was read."""
    values = [value for value, _ in seen]
    if values[-1] < len(flushed_s):
        raise RuntimeError(f"a reader saw value {values[-1]} last, and {len(flushed_s)} was written")
    times, own = [], set(values)
    for tick, flushed in enumerate(flushed_s, 1):
        times.append(seen[bisect.bisect_left(values, tick)][1] - flushed)
    return times, sum(tick not in own for tick in range(1, len(flushed_s) + 1))


def percentile(sorted_values: list[float], percent: float) -> float:
    """The smallest value that so many percent of all do not exceed."""
    rank = -(-len(sorted_values) * percent // 100)
    return sorted_values[max(0, int(rank) - 1)]
