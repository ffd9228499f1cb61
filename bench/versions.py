"""./dev bench versions: the cost of versions, HDF5's onion driver and cp(1) beside ours in one run.

See bench/README.md for what the tables mean and how to read them.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from harness import machine, versions_report
from harness.histories import Copies, History, Onion, Ours, Plain
from harness.versions_single import SINGLES, flat, prune
from harness.workload import WorkloadFailed, settle_disk


@dataclass
class Options:
    rounds: int            # of the ladder
    repeats: int           # of each figure of the other sections
    mib: int
    pages: int
    rungs: list[int]       # the numbers of versions at which it measures
    rungs_ours: list[int]  # the same, of ours alone, in the last round
    commits: int           # timed at each rung, for each of the two ways to commit
    opens: int
    export_mib: int
    huge_mib: int
    rollback_mib: int
    prune: int             # versions to drop after the last rung of ours
    compression_mib: int
    with_targets: bool = True


FULL = dict(rounds=2, repeats=3, mib=64, pages=20, rungs=[1, 10, 100, 500], rungs_ours=[10_000], commits=8,
            opens=20, export_mib=1024, huge_mib=20 << 10, rollback_mib=1 << 20, prune=9_000,
            compression_mib=64)
QUICK = dict(rounds=1, repeats=1, mib=4, pages=4, rungs=[1, 10], rungs_ours=[], commits=2, opens=4, export_mib=8,
             huge_mib=64, rollback_mib=64, prune=9, compression_mib=4,
             with_targets=False)


class Bench:
    def __init__(self, options: Options, sections: list[str], directory: Path):
        self.options = options
        self.sections = sections
        self.directory = directory
        self.samples = defaultdict(list)  # (label, figure, rung) -> one for each round
        self.singles = {}                 # section -> its figures
        self.failures = []

    def run(self) -> None:
        if "ladder" in self.sections:
            for number in range(self.options.rounds):
                start_s = time.monotonic()
                self._guarded("ladder", lambda: self._ladder(number))
                say(f"ladder, round {number + 1}/{self.options.rounds}: {time.monotonic() - start_s:.0f} s")
        for name, section in SINGLES.items():
            if name in self.sections:
                start_s = time.monotonic()
                self._guarded(name, lambda: self._single(name, section))
                say(f"{name}: {time.monotonic() - start_s:.0f} s")

    def _guarded(self, name: str, body) -> None:
        try:
            body()
        except (WorkloadFailed, RuntimeError, OSError) as error:
            self.failures.append(f"{name}: {error}")
            say("FAILED " + self.failures[-1].splitlines()[0])

    def _single(self, name: str, section) -> None:
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=self.directory) as directory:
            self.singles[name] = section(self.options, Path(directory))

    def _ladder(self, number: int) -> None:
        """All histories from one version to the last rung, measured at each."""
        make = [lambda d: Plain(d, self.options.pages), lambda d: Ours(d, self.options.pages),
                lambda d: Onion(d, self.options.pages),
                lambda d: Copies(d, self.options.pages, "auto"),
                lambda d: Copies(d, self.options.pages, "never")]
        with ExitStack() as stack:
            histories = []
            for index, one in enumerate(make):
                histories.append(stack.enter_context(one(self.directory / f"history-{number}-{index}")))
                histories[-1].create(self.options.mib)
            turn = number % len(histories)
            order = histories[turn:] + histories[:turn]
            bytes_before = {}
            for rung in self.options.rungs:
                for history in order:
                    if rung == self.options.rungs[-1]:
                        bytes_before[history] = history.versions, history.history_bytes()
                    self._climb(history, rung)
                self._measure(order, rung)
            for history in order:
                self._measure_bytes(history, *bytes_before[history])
                self._measure_reads(history)
            if number == self.options.rounds - 1:
                for rung in self.options.rungs_ours:
                    alone = [history for history in order if isinstance(history, (Plain, Ours))]
                    for history in alone:
                        self._climb(history, rung)
                    self._measure(alone, rung)
                    for history in alone:
                        self._measure_reads(history, rung)
                old = next(history for history in histories if isinstance(history, Ours))
                young = stack.enter_context(Ours(self.directory / "young", self.options.pages))
                young.create(self.options.mib)
                young.commit(4, safe=True)
                self.singles["flat"] = flat(self.options, young, old)
                self.singles["prune"] = prune(old, min(self.options.prune, old.versions * 9 // 10))

    def _climb(self, history: History, rung: int) -> None:
        missing = rung - history.versions
        if missing <= 0:
            return
        if isinstance(history, (Plain, Copies)):
            history.versions = rung  # The number changes no figure of the others.
        else:
            history.commit(missing, safe=False)
        if isinstance(history, Ours):
            history.settle()

    def _measure(self, histories: list[History], rung: int) -> None:
        for safe in (False, True):
            count = self.options.commits if rung >= 100 else min(self.options.commits, 4)
            what = "safe" if safe else "commit"
            for history in histories:
                settle_disk()
                times = history.commit(count, safe=safe)
                # A process's first one connects, and meets cold caches.
                self._keep(history, what, rung, times[1:])
        for what, pick in (("newest", lambda n: n), ("oldest", lambda n: 2), ("any", None)):
            for history in histories:
                last = history.versions
                versions = [pick(last)] * self.options.opens if pick else [
                    2 + i * (last - 2) // self.options.opens for i in range(self.options.opens)]
                if isinstance(history, Ours):
                    history.settle()
                times = history.open(versions)
                if times:
                    self._keep(history, f"open {what}", rung, times)

    def _measure_bytes(self, history: History, versions: int, bytes_before: int) -> None:
        grown = history.history_bytes() - bytes_before
        overwritten = (history.versions - versions) * self.options.pages * 4096
        if history.label != Plain.label:
            self._keep(history, "bytes", self.options.rungs[-1], [grown / overwritten])

    def _measure_reads(self, history: History, rung: int | None = None) -> None:
        rung = rung or self.options.rungs[-1]
        for what, version in (("read newest", history.versions), ("read old", 2)):
            times = history.read([version])
            if times:
                self._keep(history, what, rung, history.read([version] * 3))

    def _keep(self, history: History, figure: str, rung: int, values: list[float]) -> None:
        values = sorted(values)
        self.samples[history.label, figure, rung].append(values[len(values) // 2])


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench versions", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = ["ladder", *SINGLES]
    parser.add_argument("--only", help=f"sections, comma-separated: {', '.join(sections)}")
    parser.add_argument("--rounds", type=int, help="of the ladder")
    parser.add_argument("--repeats", type=int, help="of each figure of the other sections")
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes, one round: does it work at all? Its figures mean nothing")
    parser.add_argument("--rungs", help="numbers of versions at which all are measured, comma-separated")
    parser.add_argument("--rungs-ours", help="the same, of ours alone, in the last round; 0: none")
    parser.add_argument("--export-mib", type=int, help="size of the file that is exported")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where the files go; %(default)s, four times the export, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    args = parser.parse_args()
    args.sections = args.only.split(",") if args.only else sections
    unknown = [name for name in args.sections if name not in sections]
    if unknown:
        parser.error(f"no section '{unknown[0]}'; there are: {', '.join(sections)}")
    return args


def options_of(args: argparse.Namespace) -> Options:
    options = Options(**(QUICK if args.quick else FULL))
    options.rounds = args.rounds or options.rounds
    options.repeats = args.repeats or options.repeats
    options.export_mib = args.export_mib or options.export_mib
    if args.rungs:
        options.rungs = [int(rung) for rung in args.rungs.split(",")]
    if args.rungs_ours:
        options.rungs_ours = [int(rung) for rung in args.rungs_ours.split(",") if int(rung)]
    return options


def main() -> int:
    args = parse()
    options = options_of(args)
    facts = {}
    with machine.workplace(args.dir, facts) as directory:
        bench = Bench(options, args.sections, directory)
        bench.run()
    report = versions_report.Report(options, facts, bench.samples, bench.singles, bench.failures)
    print(report.text())
    if args.json:
        args.json.write_text(json.dumps(report.as_dict(), indent=1) + "\n")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
