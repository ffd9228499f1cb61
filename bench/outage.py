"""./dev bench outage: the cost of outages and slow links for a program, and the cost of catching up.

See bench/README.md for what the tables mean and how to read them.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import machine, outage_report, outages, paths
from harness.workload import WorkloadFailed


@dataclass
class Options:
    rounds: int
    scale: float                  # of the workload
    round_trips_ms: list[float]
    mib: int                      # of the file that is brought level
    changed_pages: list[int]      # of 4 KiB
    hang_s: float                 # a program that has printed nothing for so long hangs
    with_stock: bool = True


FULL = dict(rounds=3, scale=0.25, mib=256, changed_pages=[25, 655, 6554], hang_s=20)
QUICK = dict(rounds=1, scale=0.04, mib=4, changed_pages=[3, 100], hang_s=5)
SECTIONS = {"there": outages.there, "away": outages.away, "resync": outages.resync}


class Bench:
    """Runs the sections in turns; a failure is reported and does not stop the others."""

    def __init__(self, options: Options, sections: list[str], directory: Path):
        self.options = options
        self.directory = directory
        self.sections = sections
        # section -> (row, round trip in ms) -> one dict of figures for each round
        self.figures = {name: defaultdict(list) for name in sections}
        self.failures = []

    def run(self) -> None:
        for number in range(self.options.rounds):
            for name in self.sections:
                start_s = time.monotonic()
                for key, measure in SECTIONS[name](self.options, self.directory):
                    self._one(name, key, measure)
                say(f"round {number + 1}/{self.options.rounds} {name}: {time.monotonic() - start_s:.0f} s")

    def _one(self, section: str, key: tuple, measure) -> None:
        try:
            self.figures[section][key].append(measure())
        except (WorkloadFailed, RuntimeError, OSError) as error:
            self.failures.append(f"{section}, {key[0]}, {key[1]:g} ms: {error}")
            say("FAILED " + self.failures[-1].splitlines()[0])


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench outage", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes, one round: does it work at all? Its figures mean nothing")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, comma-separated; all unless given")
    parser.add_argument("--round-trips-ms", default="0,1,10,100", help="what the proxy adds; %(default)s")
    parser.add_argument("--no-stock", action="store_true", help="leave out HDF5's own mirror driver")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where the files go; %(default)s, about 1 GB, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    args = parser.parse_args()
    args.only = args.only.split(",")
    if unknown := [name for name in args.only if name not in SECTIONS]:
        parser.error(f"no section '{unknown[0]}'; there are: {', '.join(SECTIONS)}")
    return args


def main() -> int:
    args = parse()
    round_trips_ms = [float(text) for text in args.round_trips_ms.split(",")]
    options = Options(**(QUICK if args.quick else FULL), round_trips_ms=round_trips_ms,
                      with_stock=not args.no_stock and paths.STOCK_MIRROR_SERVER.exists())
    if args.quick and len(round_trips_ms) > 2:
        options.round_trips_ms = [0, 10]
    if args.rounds:
        options.rounds = args.rounds
    if not options.with_stock:
        say("without the stock mirror (./dev bench builds it)")
    facts = {}
    with machine.workplace(args.dir, facts) as directory:
        bench = Bench(options, args.only, directory)
        bench.run()
    print(outage_report.text(options, facts, bench.figures, bench.failures))
    if args.json:
        report = {"facts": facts, "options": asdict(options), "failures": bench.failures,
                  "figures": {name: [{"row": row, "round_trip_ms": ms, "rounds": rounds}
                                     for (row, ms), rounds in cells.items()]
                              for name, cells in bench.figures.items()}}
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
