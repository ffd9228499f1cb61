"""Part 1 of bench/follow.py: the three tables of the VFD SWMR study (2021, an alpha that was never released), with ours."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from harness import drivers, followers, paths
from harness.drivers import Driver, Site
from harness.workload import run_timed

FILE = "data.h5"
TIMEOUT_S = 900

# As users have it: nothing waits for a flush, the close waits until the version is safe.
MIRROR = Driver("mirror", "mirror", "h5mirror", ack="none", more=(("ack_commit", "durable"),))


@dataclass(frozen=True)
class Variant:
    key: str
    label: str
    driver: Driver
    ticks: bool
    follower: object = None  # of harness/followers.py


PLAIN = Variant("plain", "sec2", drivers.SEC2, ticks=False)
TICKED = Variant("ticked", "sec2, flushed", drivers.SEC2, ticks=True)
MIRRORED = Variant("mirrored", "mirrored", MIRROR, ticks=True)
FOLLOWED = Variant("followed", "mirrored, followed", MIRROR, ticks=True, follower=followers.reopening)
VARIANTS = (PLAIN, TICKED, MIRRORED, FOLLOWED)


@dataclass(frozen=True)
class Row:
    table: str
    count: int
    arguments: tuple  # of bench_ticks
    theirs_s: tuple[float, float] | None = None  # plain and SWMR, as published; more cycles than ours
    how: str = ""  # other than theirs

    @property
    def title(self) -> str:
        return f"{self.count:,}" + (f", {self.how}" if self.how else "")

    @property
    def key(self) -> str:
        return f"{self.table}, {self.title}"


LARGE, SMALL, GROUPS = "1000x1000 frames", "16x16 frames", "groups"


def _frames(table: str, count: int, side: int, element_bytes: int, cycles: int, theirs_s=None, how="", more=()) -> Row:
    return Row(table, count, ("frames", "--datasets", count, "--side", side, "--element-bytes", element_bytes,
                              "--cycles", cycles, *more), theirs_s, how)


# Object counts are those of the study. Cycles: 500 there; here where a row is over in a second.
FULL = (
    _frames(LARGE, 10, 1000, 1, 100, (32.3, 29.4)), _frames(LARGE, 100, 1000, 1, 100, (284, 318)),
    _frames(SMALL, 100, 16, 4, 500, (0.87, 0.93)), _frames(SMALL, 1_000, 16, 4, 500, (11.5, 12.8)),
    _frames(SMALL, 2_000, 16, 4, 100, (23.0, 35.2)), _frames(SMALL, 5_000, 16, 4, 100, (70.7, 149.0)),
    _frames(SMALL, 10_000, 16, 4, 100, (160.9, 359.1)),
    # H5Fflush visits each chunk in the caches of all open datasets: with the default of 1 MiB all that were ever written.
    _frames(SMALL, 10_000, 16, 4, 100, how="chunk caches of 4 KiB", more=("--chunk-cache-kib", 4)),
    _frames(SMALL, 10_000, 16, 4, 100, how="no chunk caches", more=("--chunk-cache-kib", 0)),
    *(Row(GROUPS, count, ("groups", "--count", count), theirs) for count, theirs in (
        (1_000, (0.064, 0.069)), (10_000, (0.516, 0.500)), (100_000, (5.62, 6.05)), (1_000_000, (83.1, 97.8)))))
QUICK = (_frames(LARGE, 2, 100, 1, 20), _frames(SMALL, 50, 16, 4, 20),
         Row(GROUPS, 2_000, ("groups", "--count", 2_000)))


def run_one(row: Row, variant: Variant, tick_ms: float, directory: Path, flushed_at: list | None) -> dict:
    """One row with one variant, on an empty directory and a fresh server. Seconds; and `flushed_at`, for another run that
    is to flush where this one did."""
    with ExitStack() as stack:
        site = stack.enter_context(Site(variant.driver, directory / "site"))
        command = [paths.BIN / "bench_ticks", *row.arguments[:1], site.local / FILE, *row.arguments[1:],
                   "--tick-ms", tick_ms if variant.ticks and flushed_at != [] else 0, "--driver", variant.driver.kind,
                   "--warm-up", site.local / "warm-up.h5", "--start-on-stdin"]
        if site.config():
            command += ["--config", site.config()]
        if flushed_at:
            same = directory / "flush-at"
            same.write_text("\n".join(map(str, flushed_at)))
            command += ["--flush-at", same]
        follower, said = None, {}
        if variant.follower:
            follower = stack.enter_context(variant.follower(site.address(), FILE, site.directory, TIMEOUT_S))

        def start(before):
            def begin():
                before()
                if follower:
                    follower.go()

            run, figures = run_timed(command, scratch=site.directory, timeout_s=TIMEOUT_S, before=begin)
            said.update(figures)
            return run

        run = site.timed(FILE, start)
        figures = {"felt_s": run.felt_s, "close_s": run.total_s - run.felt_s, "total_s": run.total_s,
                   "client_cpu_s": run.client_cpu_s, "server_cpu_s": run.server_cpu_s,
                   "cpu_s": run.client_cpu_s + run.server_cpu_s, "bytes": run.bytes,
                   **{key: said[key] for key in ("ticks", "flush_s", "flush_max_s", "flushed_at")}}
        if follower:
            figures["follower_files"] = follower.said()["files"]
            if said["ticks"] >= 10 and figures["follower_files"] < 2:
                raise RuntimeError(f"{said['ticks']} flushes, and the follower saw {figures['follower_files']} of them")
            figures["follower_cpu_s"] = follower.usage.ru_utime + follower.usage.ru_stime
        return figures
