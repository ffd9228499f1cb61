"""./dev bench mirror: the cost of mirroring for a program, stock drivers beside ours in one run.

See bench/README.md for what the rows mean and how to read them.
"""

import argparse
import json
import shutil
import sys
import time
from collections import defaultdict
from pathlib import Path

from harness import drivers, machine, mirror_plan, mirror_report, mirror_starts, paths
from harness.daemons import make_certificates
from harness.drivers import Site
from harness.mirror_plan import PREMADE, Lane, Options, Workload
from harness.workload import WorkloadFailed, make_premade


class Bench:
    """Runs the plan; a failed cell is reported and does not stop the others."""

    def __init__(self, options: Options, directory: Path):
        self.options = options
        self.directory = directory
        self.runs = defaultdict(list)   # Cell -> one Run or None for each round
        self.failures = []
        self.starts = {}
        tls = any(driver.tls for driver in options.drivers)
        self.certificates = make_certificates(directory / "tls") if tls else None

    def run(self) -> None:
        for number in range(self.options.rounds):
            for workload in self.options.workloads:
                self._round(number, workload)
        if self.options.with_starts:
            say("starts and round trips")
            self.starts = mirror_starts.measure(self.options, self.directory, self.failures)

    def _round(self, number: int, workload: Workload) -> None:
        start_s = time.monotonic()
        lanes = mirror_plan.lanes(self.options, workload)
        turn = number % len(lanes)  # So that no driver always follows the same other one.
        for lane in lanes[turn:] + lanes[:turn]:
            self._lane(workload, lane)
        say(f"round {number + 1}/{self.options.rounds} {workload.name}: "
            f"{time.monotonic() - start_s:.0f} s")

    def _lane(self, workload: Workload, lane: Lane) -> None:
        states = lane.states(workload)
        done = 0
        try:
            with Site(lane.driver, self.directory / "site", certificates=self.certificates,
                      round_trip_ms=lane.round_trip_ms) as site:
                self._prepare(workload, lane, site)
                for state in states:
                    run = self._time(workload, lane, state, site)
                    self.runs[lane.cell(workload, state)].append(run)
                    done += 1
        except (WorkloadFailed, drivers.WrongBytes, RuntimeError) as error:
            for state in states[done:]:
                self.runs[lane.cell(workload, state)].append(None)
            self.failures.append(f"{workload.name}, {lane.driver.label}, {lane.link}: {error}")
            say("FAILED " + self.failures[-1].splitlines()[0])

    def _prepare(self, workload: Workload, lane: Lane, site: Site) -> None:
        if not workload.premade:
            return
        premade = self.directory / PREMADE
        if not premade.exists():
            make_premade(premade, self.options.premade_mib)
        shutil.copy(premade, site.local / PREMADE)
        if lane.driver.kind in ("mirror", "splitter"):
            shutil.copy(premade, site.remote / PREMADE)

    def _time(self, workload: Workload, lane: Lane, state: str, site: Site):
        scale = self.options.scale * (workload.stock_delay_scale if lane.scaled else 1)
        # The first open of a premade file uploads it: once.
        repeats = 1 if state == mirror_plan.NEW else min(workload.repeats, self.options.repeats_max)
        name = PREMADE if workload.premade else "data.h5"
        return site.run(workload.name, name, scale=scale, repeats=repeats).per_repeat(repeats)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def pick(wanted: str | None, known: dict, what: str) -> list:
    names = wanted.split(",") if wanted else list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no {what} '{unknown[0]}'; there are: {', '.join(known)}")
    return [known[name] for name in names]


def parse() -> tuple[Options, argparse.Namespace]:
    parser = argparse.ArgumentParser(prog="./dev bench mirror", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes, one round: does it work at all? Its figures mean nothing")
    parser.add_argument("--only", help="workloads, comma-separated; all unless given")
    parser.add_argument("--drivers", help="drivers, comma-separated by key; all unless given")
    parser.add_argument("--scale", type=float, default=1.0, help="share of each workload to run")
    parser.add_argument("--round-trip-ms", type=float, default=1.0, help="what the proxy adds")
    parser.add_argument("--no-delay", action="store_true", help="leave out what goes by the proxy")
    parser.add_argument("--no-starts", action="store_true",
                        help="leave out first opens, unused plugin and round trips")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where the files go; %(default)s, about 3 GB, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    args = parser.parse_args()
    options = Options(
        rounds=args.rounds, scale=args.scale, round_trip_ms=args.round_trip_ms,
        workloads=pick(args.only, {w.name: w for w in mirror_plan.WORKLOADS}, "workload"),
        drivers=pick(args.drivers, {driver.key: driver for driver in drivers.ALL}, "driver"),
        with_delay=not args.no_delay, with_starts=not args.no_starts)
    if args.quick:
        options.rounds, options.scale, options.premade_mib = 1, 0.005, 8
        options.repeats_max, options.starts, options.with_control = 2, 2, False
        if not args.only:  # One of each kind: large writes, cuts in between, a file with content.
            quick = ("contiguous", "small_chunks_flush", "attributes")
            options.workloads = [w for w in mirror_plan.WORKLOADS if w.name in quick]
    if not paths.STOCK_MIRROR_SERVER.exists():
        say(f"no stock mirror: {paths.STOCK_MIRROR_SERVER} is missing (./dev bench builds it)")
        options.drivers = [driver for driver in options.drivers if driver.kind != "mirror"]
    if drivers.SEC2 not in options.drivers:
        options.drivers.insert(0, drivers.SEC2)  # All ratios are to it.
    return options, args


def main() -> int:
    options, args = parse()
    facts = {}
    with machine.workplace(args.dir, facts) as directory:
        bench = Bench(options, directory)
        bench.run()
    report = mirror_report.Report(options, facts, bench.runs, bench.starts, bench.failures)
    print(report.text())
    if args.json:
        args.json.write_text(json.dumps(report.as_dict(), indent=1) + "\n")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
