"""./dev bench follow: files that are followed while they are written, and read over the network, beside the published
figures of VFD SWMR, Mig-drive and TeraVAP.

See bench/README.md for what the tables mean and how to read them.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from harness import (follow_crowd, follow_figures, follow_latency, follow_reading, follow_report, follow_scans,
                     follow_subscribers, follow_tables, machine, paths)
from harness.caches import NotPermitted
from harness.workload import WorkloadFailed


@dataclass
class Options:
    table_rounds: int          # part 1
    rows: tuple
    tick_ms: float
    readers: list[int]         # part 2
    ticks: int
    rounds: int                # part 3
    objects: int
    blocks: int
    block_kib: list[int]
    round_trip_ms: float
    scan_mib: int
    scan_kib: list[int]
    set_files: int
    set_mib: int
    set_block_kib: int
    set_limit_mib: int
    set_processes: list[int]
    shared_mib: int
    shared_limit_mib: int
    meta_block_kib: int
    disk_mib: int
    sets: list[str]            # of part 3; empty: all of the part
    subscribers: list[int]     # part 4
    subscriber_ticks: int
    subscriber_kib: int
    with_targets: bool = True
    touch_mib: int = 0         # part 3


FULL = dict(table_rounds=11, rows=follow_tables.FULL, tick_ms=100, readers=[1, 10, 100], ticks=1000, rounds=3,
            objects=100_000, blocks=5_000, block_kib=[4, 64], round_trip_ms=1, scan_mib=512,
            scan_kib=[64, 1024, 16384], set_files=16, set_mib=2048, set_block_kib=64,
            set_limit_mib=512, set_processes=[1, 2, 4, 8, 16], shared_mib=192, shared_limit_mib=1024,
            meta_block_kib=1024, disk_mib=200, sets=[],
            subscribers=[0, 1, 10, 100, 300, 1000], subscriber_ticks=100, subscriber_kib=64)
QUICK = dict(table_rounds=1, rows=follow_tables.QUICK, tick_ms=20, readers=[1, 2], ticks=10, rounds=1, objects=2_000,
             blocks=40, block_kib=[4], round_trip_ms=1, scan_mib=4, scan_kib=[1024],
             set_files=4, set_mib=8, set_block_kib=64, set_limit_mib=64, set_processes=[1, 4], shared_mib=8, shared_limit_mib=128,
             meta_block_kib=64, disk_mib=100, sets=[],
             subscribers=[0, 1, 20], subscriber_ticks=10, subscriber_kib=16, with_targets=False)


class Bench:
    """Runs the parts; a failure is reported and does not stop the others."""

    def __init__(self, options: Options, directory: Path, facts: dict):
        self.options = options
        self.directory = directory
        self.facts = facts
        self.results = {}
        self.notes = []
        self.failures = []

    def run(self, parts: list[int]) -> None:
        for number in parts:
            start_s = time.monotonic()
            {1: self._tables, 2: self._latency, 3: self._reading, 4: self._subscribers}[number]()
            say(f"part {number}: {time.monotonic() - start_s:.0f} s")

    def _guarded(self, name: str, body):
        """The result of `body` on an empty directory, or None."""
        with tempfile.TemporaryDirectory(prefix="part-", dir=self.directory) as directory:
            try:
                return body(Path(directory))
            except NotPermitted as error:
                self.notes.append(f"{name} is left out: {error}")
            except (WorkloadFailed, RuntimeError, OSError) as error:
                self.failures.append(f"{name}: {error}")
                say("FAILED " + self.failures[-1].splitlines()[0])
        return None

    def _tables(self) -> None:
        samples = self.results["tables"] = {row.key: defaultdict(list) for row in self.options.rows}
        variants = follow_tables.VARIANTS
        for number in range(self.options.table_rounds):
            for row in self.options.rows:
                start_s = time.monotonic()
                turn = number % len(variants)  # So that none always follows the same other one.
                flushed_at = None  # by the first of the mirrored ones; the second does the same work
                for variant in variants[turn:] + variants[:turn]:
                    mirrored = variant.driver == follow_tables.MIRROR
                    figures = self._guarded(f"{row.key}, {variant.label}", lambda d, r=row, v=variant, at=flushed_at:
                                            follow_tables.run_one(r, v, self.options.tick_ms, d,
                                                                  at if mirrored else None))
                    samples[row.key][variant.key].append(figures)
                    if figures:
                        places = figures.pop("flushed_at")
                        flushed_at = places if mirrored else flushed_at
                say(f"round {number + 1}/{self.options.table_rounds} {row.key}: {time.monotonic() - start_s:.0f} s")

    def _latency(self) -> None:
        self.results["latency"] = self._each("latency", self.options.readers, lambda readers, directory:
                                             follow_latency.measure(readers, self.options.ticks, 100, directory))

    def _reading(self) -> None:
        if self.options.sets:
            self._crowds()
            return
        self.results["reading"] = self._guarded(
            "reading", lambda d: follow_reading.measure(self.options, d, self.facts)) or {}
        self.results["scans"] = self._guarded(
            "reading in order", lambda d: follow_scans.measure(self.options, d)) or {}
        self._crowds()

    def _crowds(self) -> None:
        for name, files in follow_crowd.sets(self.options).items():
            if self.options.sets and name not in self.options.sets:
                continue
            start_s = time.monotonic()
            self.results[name] = self._guarded(files.title, lambda d, f=files: follow_crowd.measure(self.options, f, d)) or {}
            say(f"{name}: {time.monotonic() - start_s:.0f} s")

    def _subscribers(self) -> None:
        o = self.options
        self.results["subscribers"] = [
            row for reads in follow_subscribers.FLAGS
            for row in self._each(f"subscribers that read {reads}", o.subscribers, lambda count, directory, r=reads:
                                  follow_subscribers.measure(r, count, o.subscriber_ticks, 100, o.subscriber_kib,
                                                             directory))]

    def _each(self, name: str, counts: list[int], measure) -> list[dict]:
        results = []
        for count in counts:
            start_s = time.monotonic()
            results.append(self._guarded(f"{name}, {count}", lambda d, n=count: measure(n, d)))
            say(f"{name}, {count}: {time.monotonic() - start_s:.0f} s")
        return [each for each in results if each]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench follow", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=numbers, default=[1, 2, 3, 4], metavar="N,...",
                        help="1: tables of VFD SWMR, 2: latency, 3: reading, 4: subscribers; all unless given")
    parser.add_argument("--rounds", type=int, help="of parts 1 and 3")
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes, one round: does it work at all? Its figures mean nothing")
    parser.add_argument("--rows", action="append", metavar="NAME",
                        help="part 1: only the row of this name, as in `16x16 frames, 10,000`, or where none has it "
                             "those with this in their names; may be given again")
    parser.add_argument("--tick-ms", type=float, help=f"part 1: time between flushes; {FULL['tick_ms']}")
    parser.add_argument("--ticks", type=int, help="part 2")
    parser.add_argument("--readers", type=numbers, help="part 2: how many, comma-separated")
    parser.add_argument("--block-kib", type=numbers, help="part 3: sizes of the 5,000 blocks, comma-separated; 4,64")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=[], metavar="NAME,...",
                        help="part 3: only these sets of files that processes read: " + ", ".join(follow_crowd.NAMES))
    parser.add_argument("--processes", type=numbers, help="part 3: how many read such a set, comma-separated; 1,2,4,8,16")
    parser.add_argument("--disk-mib", type=int,
                        help="part 3: what the disk of the sets named crowd_disk brings in a second; 200")
    parser.add_argument("--touch-mib", type=int, default=0,
                        help="part 3: memory that is taken and given back before processes read such a set, so that a "
                             "virtual machine has it; %(default)s")
    parser.add_argument("--subscribers", type=numbers, help="part 4: how many, comma-separated")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where the files go; %(default)s, about 25 GB, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    parser.add_argument("--figures", type=Path, default=paths.BUILD / "figures",
                        help="the directory for follow-*.png; %(default)s")
    args = parser.parse_args()
    if wrong := [number for number in args.part if number not in (1, 2, 3, 4)]:
        parser.error(f"no part {wrong[0]}; there are 1 to 4")
    if wrong := [name for name in args.sets if name not in follow_crowd.NAMES]:
        parser.error(f"no set {wrong[0]}; there are {', '.join(follow_crowd.NAMES)}")
    return args


def options_of(args: argparse.Namespace) -> Options:
    options = Options(**(QUICK if args.quick else FULL))
    if args.rounds:
        options.table_rounds = options.rounds = args.rounds
    if args.rows:
        options.rows = tuple(row for name in args.rows for row in rows_named(name, options.rows))
    options.tick_ms = args.tick_ms or options.tick_ms
    options.ticks = args.ticks or options.ticks
    options.readers = args.readers or options.readers
    options.set_processes = args.processes or options.set_processes
    options.block_kib = args.block_kib or options.block_kib
    options.sets = args.sets
    options.disk_mib = args.disk_mib or options.disk_mib
    options.touch_mib = args.touch_mib
    options.subscribers = args.subscribers or options.subscribers
    return options


def rows_named(name: str, rows: tuple) -> list:
    found = [row for row in rows if row.key == name] or [row for row in rows if name in row.key]
    if not found:
        raise SystemExit(f"no row has '{name}' in its name; there are: {'; '.join(row.key for row in rows)}")
    return found


def main() -> int:
    args = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # So that servers end with it, and files go.
    options, facts = options_of(args), {}
    with machine.workplace(args.dir, facts) as directory:
        bench = Bench(options, directory, facts)
        bench.run(args.part)
    report = follow_report.Report(options, facts, bench.results, bench.notes, bench.failures)
    report.notes += follow_figures.draw(report, args.figures)
    print(report.text())
    if args.json:
        args.json.write_text(json.dumps(report.as_dict(), indent=1) + "\n")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
