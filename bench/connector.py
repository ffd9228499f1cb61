"""./dev bench connector: the cost of the VOL connector for a mirrored program, with ticks and without.

See bench/README.md for what the rows mean and how to read them.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import connector_report, drivers, machine, paths
from harness.drivers import Site
from harness.workload import Run, Timed, WorkloadFailed


@dataclass(frozen=True)
class Lane:
    key: str          # in JSON
    label: str        # in tables
    connector: str    # HDF5_VOL_CONNECTOR; empty: none
    ticks: bool = False


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    repeats: int = 1    # in one process, so that it lasts for several ticks
    attributes: int = 0  # of bench/programs/attributes.py; 0: it is one of bench_workload's


@dataclass
class Timing:
    """Seconds; the CPU time is that of the program."""

    total_s: float
    cpu_s: float
    cuts: int

    def as_dict(self) -> dict:
        return asdict(self)


LANES = (
    Lane("driver", "driver alone", ""),
    Lane("idle", "connector, no ticks", "h5mirror"),
    Lane("ticks", "connector, tick=100ms", "h5mirror tick=100ms", ticks=True),
)
WORKLOADS = (
    Workload("contiguous", "contiguous 256 MiB in 1 MiB writes", repeats=4),
    Workload("chunked", "64 chunked datasets, 512 MiB", repeats=2),
    Workload("groups", "100,000 groups"),
    Workload("small_chunks", "2,000 datasets x 50 small chunks"),
    Workload("h5py_attributes", "h5py: 30,000 attributes, written and read", attributes=30000),
)
FILE = "data.h5"


class Bench:
    """Runs all; a failed cell is reported and does not stop the others."""

    def __init__(self, args: argparse.Namespace, directory: Path):
        self.args = args
        self.directory = directory
        self.runs = defaultdict(list)  # (workload name, lane key) -> one Timing or None for each round
        self.failures = []

    def run(self) -> None:
        for number in range(self.args.rounds):
            for workload in self.args.workloads:
                start_s = time.monotonic()
                turn = number % len(LANES)  # So that no lane always follows the same other one.
                for lane in LANES[turn:] + LANES[:turn]:
                    self.runs[workload.name, lane.key].append(self._guarded(workload, lane))
                say(f"round {number + 1}/{self.args.rounds} {workload.name}: {time.monotonic() - start_s:.0f} s")

    def _guarded(self, workload: Workload, lane: Lane) -> Timing | None:
        try:
            with Site(drivers.NONE, self.directory / "site") as site:
                return self._time(workload, lane, site)
        except (WorkloadFailed, drivers.WrongBytes, RuntimeError, OSError, ValueError) as error:
            self.failures.append(f"{workload.name}, {lane.label}: {error}")
            say("FAILED " + self.failures[-1].splitlines()[0])
            return None

    def _time(self, workload: Workload, lane: Lane, site: Site) -> Timing:
        more = {"HDF5_VOL_CONNECTOR": lane.connector} if lane.connector else {}
        command = self._command(workload, site)

        def start(before) -> Run:
            with Timed(command, scratch=site.directory, python=workload.attributes > 0, **more) as timed:
                before()
                timed.go()
                return timed.result()[0]

        run = site.timed(FILE, start).per_repeat(self._repeats(workload))
        return Timing(run.total_s, run.client_cpu_s, site.cuts(FILE))

    def _repeats(self, workload: Workload) -> int:
        return min(workload.repeats, self.args.repeats_max)

    def _command(self, workload: Workload, site: Site) -> list:
        file = site.local / FILE
        if workload.attributes:
            count = max(1, round(workload.attributes * self.args.scale))
            return [paths.python(), paths.PROGRAMS / "attributes.py", file, site.config(), count]
        return [paths.BIN / "bench_workload", workload.name, file, "--driver", "h5mirror", "--config", site.config(),
                "--scale", self.args.scale, "--repeats", self._repeats(workload), "--start-on-stdin",
                "--warm-up", site.local / "warm-up.h5"]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench connector", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes, one round: does it work at all? Its figures mean nothing")
    parser.add_argument("--only", help="workloads, comma-separated; all unless given")
    parser.add_argument("--scale", type=float, default=1.0, help="share of each workload to run")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where the files go; %(default)s, about 2 GB, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    args = parser.parse_args()
    known = {workload.name: workload for workload in WORKLOADS}
    names = args.only.split(",") if args.only else list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no workload '{unknown[0]}'; there are: {', '.join(known)}")
    args.workloads = tuple(known[name] for name in names)
    args.repeats_max = 100
    if args.quick:
        args.rounds, args.scale, args.repeats_max = 1, 0.005, 1
    return args


def main() -> int:
    args, facts = parse(), {}
    with machine.workplace(args.dir, facts) as directory:
        bench = Bench(args, directory)
        bench.run()
    report = connector_report.Report(LANES, args.workloads, args.rounds, facts, bench.runs, bench.failures)
    print(report.text())
    if args.json:
        args.json.write_text(json.dumps(report.as_dict(), indent=1) + "\n")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
