"""The runs of bench/mirror.py: the cells of its tables, each one workload, state and driver."""

from dataclasses import dataclass, field

from harness import drivers
from harness.drivers import Driver

PREMADE = "premade.h5"  # the file that `attributes` starts from


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    repeats: int = 1            # in one process; times are divided by it
    premade: bool = False       # opened r+, not created
    stock_delay_scale: float = 1.0  # of the stock mirror behind the proxy: it would take minutes


WORKLOADS = (
    Workload("contiguous", "contiguous 256 MiB in 1 MiB writes"),
    Workload("chunked", "64 chunked datasets, 512 MiB"),
    Workload("groups", "100,000 groups", stock_delay_scale=0.01),
    Workload("small_chunks", "2,000 datasets x 50 small chunks", stock_delay_scale=0.01),
    Workload("small_chunks_flush", "the same, H5Fflush each cycle", stock_delay_scale=0.01),
    Workload("attributes", "9 attributes on a 500 MB file", repeats=20, premade=True),
)

# States of the mirror when the timed open comes.
NEW = "new name"
EXISTING = "existing"  # re-created there, or for a premade file reopened
SCALED = "scaled"      # a new name, with stock_delay_scale

LOOPBACK = "loopback"


def link_name(round_trip_ms: float) -> str:
    return f"+{round_trip_ms:g} ms"


@dataclass(frozen=True)
class Cell:
    """The key of one measurement; each round adds one value to it."""

    workload: str
    state: str
    driver: str
    link: str = LOOPBACK


@dataclass
class Lane:
    """One driver over one link: the runs in one Site, one after the other."""

    driver: Driver
    link: str = LOOPBACK
    round_trip_ms: float | None = None
    scaled: bool = False  # a reduced workload, if the full one would take minutes

    def states(self, workload: Workload) -> list[str]:
        if self.scaled:
            return [SCALED]
        if workload.premade and self.driver.kind != "h5mirror":
            return [EXISTING]  # The stock mirror cannot begin with a file that has content.
        return [NEW, EXISTING]

    def cell(self, workload: Workload, state: str) -> Cell:
        return Cell(workload.name, state, self.driver.label, self.link)


@dataclass
class Options:
    rounds: int = 5
    scale: float = 1.0
    premade_mib: int = 477  # 500 MB
    repeats_max: int = 20
    starts: int = 15        # processes for the rows about starting
    round_trip_ms: float = 1.0
    workloads: list[Workload] = field(default_factory=lambda: list(WORKLOADS))
    drivers: list[Driver] = field(default_factory=lambda: list(drivers.ALL))
    with_delay: bool = True
    with_control: bool = True  # the proxy without delay too
    with_starts: bool = True


def lanes(options: Options, workload: Workload) -> list[Lane]:
    """All that one round runs of one workload, interleaved."""
    wanted = [Lane(driver) for driver in options.drivers]
    if not options.with_delay:
        return wanted
    delayed = {"link": link_name(options.round_trip_ms), "round_trip_ms": options.round_trip_ms}
    no_delay = {"link": link_name(0), "round_trip_ms": 0}
    for driver in options.drivers:
        if driver.kind == "h5mirror":
            # The same proxy without delay shows which part of the change is the proxy's own work.
            wanted += [Lane(driver, **no_delay)] if options.with_control else []
            wanted.append(Lane(driver, **delayed))
        elif driver.kind == "mirror":
            scaled = workload.stock_delay_scale < 1
            wanted.append(Lane(driver, scaled=scaled, **delayed))
            if scaled:
                wanted.append(Lane(drivers.SEC2, scaled=True))
    return wanted
