"""./dev bench cluster: the cost of a root in CephFS for a server's store, beside a local root on the same disk.

A Ceph of this machine has one OSD, in a file of that disk. Both roots are measured in turns. See bench/README.md for what
the tables mean.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from harness import machine, paths
from harness.ceph import Ceph
from harness.stats import Sample, format_ratio

LANES = ("local", "cephfs")
# Name, unit, the part of the output of a run, and whether more is better.
FIGURES = [
    ("a flush that is durable, 1 writer", "ms", "one", lambda out: out["flush"]["median_ms"], False),
    ("flushes a second, 16 writers", "1/s", "many", lambda out: out["flushes_per_s"], True),
    ("first open of a file", "ms", "opens", lambda out: out["open"]["median_ms"], False),
    ("files opened a second, a commit each", "1/s", "opens", lambda out: out["per_s"], True),
    ("the same, 16 at a time", "1/s", "crowd", lambda out: out["per_s"], True),
    ("bulk: written and durable", "MiB/s", "bulk", lambda out: out["mib"] / (out["write_s"] + out["durable_s"]), True),
    ("bulk: until it is in the head", "MiB/s", "bulk",
     lambda out: out["mib"] / (out["write_s"] + out["durable_s"] + out["applied_s"]), True),
]
BULK_TARGET = 1.5
RUNS = ("one", "many", "opens", "crowd", "bulk")
# Runs whose work Ceph's counters show, and how much of it there was.
COUNTED = {
    "one": ("of each flush of one writer in CephFS", lambda out: out["flush"]["count"]),
    "opens": ("of each file opened there, with its commit", lambda out: out["open"]["count"]),
    "crowd": ("the same, 16 at a time", lambda out: out["open"]["count"]),
}


class Bench:
    def __init__(self, args, directory: Path, ceph: Ceph):
        self.args, self.ceph = args, ceph
        (directory / "local").mkdir()
        self.roots = {"local": directory / "local", "cephfs": ceph.root}
        # lane -> run -> one output for each round
        self.rounds = {lane: {run: [] for run in RUNS} for lane in LANES}
        self.raw_mib_per_s: list[float] = []
        # run -> one for each round: name -> how often for one piece of work, and seconds each
        self.counted: dict[str, list[dict[str, tuple[float, float]]]] = {run: [] for run in COUNTED}

    def run(self) -> None:
        for number in range(self.args.rounds):
            for lane in LANES if number % 2 == 0 else LANES[::-1]:
                say(f"round {number + 1} of {self.args.rounds}: {lane}")
                self.one(lane)
            self.raw_mib_per_s.append(self.ceph.raw_mib_per_s(self.args.gib))

    def one(self, lane: str) -> None:
        args = self.args
        self.run_of(lane, "one", "flushes", "--keep", "--writers", 1, "--seconds", args.seconds)
        self.run_of(lane, "many", "flushes", "--keep", "--writers", 16, "--seconds", args.seconds)
        # Of files: nothing but their opens and commits, and what these leave to be done.
        files = ("open-files", "--keep", "--flushes", 0, "--count", args.files)
        self.run_of(lane, "opens", *files)
        self.run_of(lane, "crowd", *files, "--at-once", 16)
        # Removed at once: a small OSD has room for a few of them.
        self.run_of(lane, "bulk", "first-commit", "--gib", args.gib)
        self.rounds[lane]["bulk"][-1]["mib"] = 1024 * args.gib

    def run_of(self, lane: str, run: str, *command) -> None:
        is_counted = lane == "cephfs" and run in COUNTED
        before = self.ceph.counters() if is_counted else {}
        out = self.store(lane, *command)
        self.rounds[lane][run].append(out)
        if is_counted:
            self.note_counters(run, before, COUNTED[run][1](out))

    def note_counters(self, run: str, before: dict, pieces: int) -> None:
        noted = {}
        for name, (count, seconds) in self.ceph.counters().items():
            more = count - before[name][0]
            noted[name] = (more / pieces, (seconds - before[name][1]) / more if more else 0.0)
        self.counted[run].append(noted)

    def store(self, lane: str, verb: str, *arguments) -> dict:
        command = [paths.BIN / "bench_roots", verb, "--dir", self.roots[lane], *arguments]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1800)
        if done.returncode != 0:
            raise SystemExit(f"bench_roots {verb}: {done.stderr}")
        return json.loads(done.stdout)

    def sample(self, lane: str, run: str, figure) -> Sample:
        return Sample(figure(out) for out in self.rounds[lane][run])


def table(bench: Bench) -> str:
    rows = [f"{'':40}{'local':>10}{'cephfs':>10}{'unit':>8}   times as slow"]
    for name, unit, run, figure, is_rate in FIGURES:
        local, ceph = (bench.sample(lane, run, figure) for lane in LANES)
        slower = local.over(ceph) if is_rate else ceph.over(local)
        target = f" (target {BULK_TARGET})" if "durable" in name and run == "bulk" else ""
        rows.append(f"{name:40}{local.median:10.4g}{ceph.median:10.4g}{unit:>8}   {format_ratio(slower)}{target}")
    raw = Sample(bench.raw_mib_per_s)
    rows.append(f"{'bulk: objects of 4 MiB, RADOS alone':40}{'':10}{raw.median:10.4g}{'MiB/s':>8}")
    return "\n".join(rows)


def counted_table(title: str, rounds: list[dict[str, tuple[float, float]]]) -> str:
    rows = [f"{title:42}{'count':>8}{'ms each':>10}"]
    for name in rounds[0]:
        count = Sample(noted[name][0] for noted in rounds).median
        each_ms = 1000 * Sample(noted[name][1] for noted in rounds).median
        rows.append(f"{name:42}{count:8.1f}" + (f"{each_ms:10.2f}" if each_ms else f"{'-':>10}"))
    return "\n".join(rows)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench cluster", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5, help="of flushes; %(default)s")
    parser.add_argument("--files", type=int, default=300, help="that are opened; %(default)s")
    parser.add_argument("--gib", type=int, default=1, help="of the bulk; %(default)s")
    parser.add_argument("--quick", action="store_true",
                        help="one short round: does it work at all? Its figures mean nothing")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where both roots go, a short path; %(default)s, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds, args.files = 1, 1, 10
    return args


def main() -> int:
    args, facts = parse(), {}
    with machine.workplace(args.dir, facts) as directory, Ceph(directory / "c") as ceph:
        bench = Bench(args, directory, ceph)
        bench.run()
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    print(f"\n{args.rounds} rounds, medians\n\n{table(bench)}")
    for run, (title, _) in COUNTED.items():
        print(f"\n{counted_table(title, bench.counted[run])}")
    if args.json:
        args.json.write_text(json.dumps({"facts": facts, "rounds": bench.rounds, "counted": bench.counted,
                                         "raw_mib_per_s": bench.raw_mib_per_s}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
