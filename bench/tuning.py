"""./dev bench tuning: which settings of HDF5 make a program fast, with and without a mirror: the recipes of the talk on
HDF5's performance of 2002, and h5perf_serial beside HDF5's own.

See bench/README.md for what the tables mean and how to read them.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from harness import (machine, paths, tuning_figures, tuning_parallel, tuning_parallel_report, tuning_report, tuning_rows,
                     tuning_runs)
from harness.workload import WorkloadFailed


@dataclass
class Options:
    rounds: int
    rows: tuple
    h5perf: dict
    h5perf_rounds: int
    sweep_sizes: list[str]
    sweep_dataset: str
    sweep_iterations: int


FULL = dict(rounds=11, h5perf=tuning_runs.H5PERF, h5perf_rounds=61, sweep_sizes=["4K", "64K", "1M", "16M"],
            sweep_dataset="64M", sweep_iterations=7)
QUICK = dict(rounds=1, h5perf=tuning_runs.H5PERF_QUICK, h5perf_rounds=1, sweep_sizes=["64K"], sweep_dataset="1M",
             sweep_iterations=1)
PARTS = ("recipes", "sweep", "h5perf")


class Bench:
    """Runs the parts; a failure is reported and does not stop the others."""

    def __init__(self, options: Options, directory: Path):
        self.options = options
        self.directory = directory
        self.runs = {row: defaultdict(list) for row in options.rows}
        self.h5perf = {}
        self.sweep = {}
        self.failures = []

    def run(self, parts: list[str]) -> None:
        for part in parts:
            start_s = time.monotonic()
            {"recipes": self._recipes, "sweep": self._sweep, "h5perf": self._h5perf}[part]()
            say(f"{part}: {time.monotonic() - start_s:.0f} s")
        if "recipes" not in parts:
            self.runs = {}

    def _guarded(self, name: str, body):
        """The result of `body` on an empty directory, or None."""
        with tempfile.TemporaryDirectory(prefix="part-", dir=self.directory) as directory:
            try:
                return body(Path(directory))
            except (WorkloadFailed, RuntimeError, OSError, ValueError) as error:
                self.failures.append(f"{name}: {error}")
                say("FAILED " + self.failures[-1].splitlines()[0])
        return None

    def _recipes(self) -> None:
        for number in range(self.options.rounds):
            start_s = time.monotonic()
            for row in self.options.rows:
                if number >= row.rounds_max:
                    continue
                variants = tuning_runs.variants(row)
                for driver in variants[::-1] if number % 2 else variants:
                    self.runs[row][driver.key].append(self._guarded(
                        f"{row.recipe}, {row.label}, {driver.label}",
                        lambda directory, r=row, d=driver: tuning_runs.run_row(r, d, directory)))
            say(f"round {number + 1}/{self.options.rounds} of the recipes: {time.monotonic() - start_s:.0f} s")

    def _sweep(self) -> None:
        o = self.options
        self.sweep = self._guarded("h5perf_serial's transfer buffer", lambda directory: tuning_runs.run_sweep(
            o.sweep_sizes, o.sweep_dataset, o.sweep_iterations, directory)) or {}

    def _h5perf(self) -> None:
        for label, arguments in self.options.h5perf.items():
            rates = self.h5perf[label] = {}
            programs = list(tuning_runs.H5PERFS.items())
            for number in range(self.options.h5perf_rounds):
                for key, program in programs[::-1 if number % 2 else 1]:
                    done = self._guarded(f"{program}", lambda directory, p=program: tuning_runs.run_h5perf(
                        p, arguments, directory))
                    for name, rate in (done or {}).items():
                        rates.setdefault(name, {each: [] for each in tuning_runs.H5PERFS})[key].append(rate)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench tuning", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="of the recipes")
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes, one round: does it work at all? Its times mean nothing")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, comma-separated; %(default)s")
    parser.add_argument("--parallel", action="store_true",
                        help="the recipes for parallel HDF5 instead, on processes of this machine; --rounds are h5perf's iterations")
    parser.add_argument("--recipe", help="only recipes with this in their name, as in `4.3`, or with one of these: `4.3,4.5`")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where the files go; %(default)s, about 2 GB, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    parser.add_argument("--figures", type=Path, default=paths.BUILD / "figures",
                        help="the directory for tuning-*.png; %(default)s")
    args = parser.parse_args()
    args.only = args.only.split(",")
    if unknown := [part for part in args.only if part not in PARTS]:
        parser.error(f"no part '{unknown[0]}'; there are: {', '.join(PARTS)}")
    return args


def run_parallel(args: argparse.Namespace) -> int:
    iterations = args.rounds or (1 if args.quick else 9)
    wanted = args.recipe.split(",") if args.recipe else [""]
    rows = [row for row in tuning_parallel.rows(args.quick) if any(part in row.recipe for part in wanted)]
    facts, figures, failures = {}, {}, []
    with machine.workplace(args.dir, facts) as directory:
        for row in rows:
            try:
                figures[row] = tuning_parallel.run(row, iterations, directory)
            except (RuntimeError, OSError, ValueError, subprocess.TimeoutExpired) as error:
                failures.append(f"{row.recipe}, {row.label}: {error}")
                say("FAILED " + failures[-1].splitlines()[0])
    notes = failures + tuning_parallel_report.draw(facts, figures, args.figures)
    print(tuning_parallel_report.text(facts, iterations, figures, notes))
    if args.json:
        rows = [{"recipe": row.recipe, "setting": row.label, **vars(found)} for row, found in figures.items()]
        args.json.write_text(json.dumps({"facts": facts, "rows": rows}, indent=1) + "\n")
    return 1 if failures else 0


def main() -> int:
    args = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # So that servers end with it, and files go.
    if args.parallel:
        return run_parallel(args)
    rows = tuning_rows.rows(**(tuning_rows.QUICK if args.quick else tuning_rows.FULL))
    if args.quick:
        rows = tuning_rows.first_and_last(rows)
    if args.recipe:
        rows = tuple(row for row in rows if any(part in row.recipe for part in args.recipe.split(",")))
        if not rows:
            raise SystemExit(f"no recipe has '{args.recipe}' in its name")
    options, facts, notes = Options(**(QUICK if args.quick else FULL), rows=rows), {}, []
    if args.rounds:
        options.rounds = args.rounds
    if "h5perf" in args.only and not tuning_runs.STOCK_H5PERF.exists():
        args.only.remove("h5perf")
        notes.append(f"without HDF5's h5perf_serial: there is no {tuning_runs.STOCK_H5PERF}")
    with machine.workplace(args.dir, facts) as directory:
        bench = Bench(options, directory)
        bench.run(args.only)
    report = tuning_report.Report(options, facts, bench.runs, bench.h5perf, bench.sweep, notes, bench.failures)
    report.notes += tuning_figures.draw(report, args.figures)
    print(report.text())
    if args.json:
        args.json.write_text(json.dumps(report.as_dict(), indent=1) + "\n")
    broken = report.broken()
    for line in broken:
        say("NOT AS IT MUST BE: " + line)
    return 1 if bench.failures or broken else 0


if __name__ == "__main__":
    sys.exit(main())
