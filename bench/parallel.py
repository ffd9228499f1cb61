"""./dev bench parallel: the cost of mirroring for a program of several ranks.

See bench/README.md for what the tables mean and how to read them.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from harness import machine, paths
from harness.drivers import APPLIED, NONE, SEC2, Site, WrongBytes
from harness.stats import Sample, format_ratio, format_seconds, format_table
from harness.workload import WorkloadFailed, environment, settle_disk

PATTERNS = {
    "blocks": "each rank writes rows of its own, independently",
    "columns": "each rank writes its part of every row, collectively",
    "chunks": "each rank writes chunks of its own, collectively",
    "objects": "all ranks make small datasets, each is written by one rank",
}
MPIO = replace(SEC2, key="mpio", label="mpio")
DRIVERS = (MPIO, *(replace(driver, more=(("under", "mpio"),)) for driver in (NONE, APPLIED)))


@dataclass
class Options:
    rounds: int
    mib: int
    ranks: list[int]
    patterns: list[str]


def run_one(site: Site, pattern: str, ranks: int, mib: int) -> dict:
    """Seconds of one run of all ranks, on a new file; the mirror's bytes are checked afterwards."""
    name = f"{pattern}-{ranks}.h5"
    mirrored = site.driver is not MPIO
    command = [paths.mpiexec(), "--oversubscribe", "--allow-run-as-root", "-n", ranks, paths.BIN / "bench_parallel",
               pattern, site.local / name, mib, *([site.config()] if mirrored else [])]
    settle_disk()
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, timeout=600,
                          env=environment(site.directory))
    if done.returncode != 0:
        raise WorkloadFailed(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr[-4000:]}")
    site.check(name)
    return json.loads(done.stdout.splitlines()[-1])


class Bench:
    """All drivers in turns within each round; a failure is reported and does not stop the others."""

    def __init__(self, options: Options, directory: Path):
        self.options = options
        self.directory = directory
        self.figures = defaultdict(list)  # (pattern, ranks, driver's key) -> seconds of each round, or None
        self.failures = []

    def run(self) -> None:
        for number in range(self.options.rounds):
            turn = number % len(DRIVERS)  # So that none always follows the same other one.
            for pattern in self.options.patterns:
                for ranks in self.options.ranks:
                    for driver in DRIVERS[turn:] + DRIVERS[:turn]:
                        self.figures[pattern, ranks, driver.key].append(self._one(driver, pattern, ranks))
            say(f"round {number + 1}/{self.options.rounds}")

    def _one(self, driver, pattern: str, ranks: int) -> dict | None:
        try:
            with Site(driver, self.directory / "site") as site:
                return run_one(site, pattern, ranks, self.options.mib)
        except (WorkloadFailed, WrongBytes, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            self.failures.append(f"{pattern}, {ranks} ranks, {driver.label}: {error}")
            say("FAILED " + self.failures[-1].splitlines()[0])
            return None


def table(options: Options, figures: dict) -> str:
    def sample(pattern, ranks, driver, what):
        return Sample(each and each[what] for each in figures[pattern, ranks, driver.key])

    rows = []
    for pattern in options.patterns:
        for ranks in options.ranks:
            row = [pattern, str(ranks), format_seconds(sample(pattern, ranks, MPIO, "total_s"))]
            for driver in DRIVERS[1:]:
                row += [format_ratio(sample(pattern, ranks, driver, what).over(sample(pattern, ranks, MPIO, what)))
                        for what in ("felt_s", "total_s")]
            rows.append(row)
    return format_table(["pattern", "ranks", "mpio, total", "none: felt", "none: total", "applied: felt",
                         "applied: total"], rows)


def text(options: Options, facts: dict, bench: Bench) -> str:
    parts = [f"# bench parallel, {facts['time']}, commit {facts['commit']} ({facts['build_type']})\n\n"
             f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, "
             f"{facts['filesystem']}; HDF5 {facts['hdf5']}, gRPC {facts['grpc']}.\n"
             f"{options.rounds} rounds in {facts['elapsed_s']} s; load average at the start "
             f"{facts['load_average']:.1f}, {facts['steal_percent']} % of the time stolen by the hypervisor.\n"
             f"{options.mib} MiB a file, a flush after each quarter. Ratios to mpio alone; medians with [min-max].\n",
             table(options, bench.figures), "",
             *(f"- {name}: {PATTERNS[name]}" for name in options.patterns)]
    if bench.failures:
        parts.append("\n## Failed\n\n" + "\n".join(f"- {failure}" for failure in bench.failures))
    return "\n".join(parts)


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def numbers(words: str) -> list[int]:
    values = [int(word) for word in words.split(",")]
    if min(values) < 1:
        raise argparse.ArgumentTypeError(f"'{words}': numbers of 1 or more, with commas between")
    return values


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench parallel", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=256, help="of a file; %(default)s")
    parser.add_argument("--ranks", type=numbers, default=[1, 2, 4], help="numbers of ranks, comma-separated; 1,2,4")
    parser.add_argument("--only", default=",".join(PATTERNS), help="patterns, comma-separated; all unless given")
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes, one round: does it work at all? Its figures mean nothing")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where the files go; %(default)s, about 1 GB, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    args = parser.parse_args()
    if unknown := [name for name in args.only.split(",") if name not in PATTERNS]:
        parser.error(f"no pattern '{unknown[0]}'; there are: {', '.join(PATTERNS)}")
    return args


def main() -> int:
    args = parse()
    options = Options(rounds=args.rounds, mib=args.mib, ranks=args.ranks, patterns=args.only.split(","))
    if args.quick:
        options = replace(options, rounds=1, mib=4, ranks=[2])
    facts = {}
    with machine.workplace(args.dir, facts) as directory:
        bench = Bench(options, directory)
        bench.run()
    print(text(options, facts, bench))
    if args.json:
        report = {"facts": facts, "options": asdict(options), "failures": bench.failures,
                  "figures": [{"pattern": pattern, "ranks": ranks, "driver": driver, "rounds": rounds}
                              for (pattern, ranks, driver), rounds in bench.figures.items()]}
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
