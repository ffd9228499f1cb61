"""./dev bench neighbour: the cost for a caller of another caller that calls, opens and writes as fast as it can.

One caller commits 64 KiB again and again: alone, beside the other one, and beside it once [[limits]] hold it back.
See bench/README.md for what the table means.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from harness import daemons, machine, paths
from harness.stats import Sample

LANES = ("alone", "without limits", "with limits")
LIMITS = """
[[limits]]
users = ["greedy"]
sessions = 4
streams = 4
calls = 20
bandwidth = "2MiB"
"""


class Bench:
    def __init__(self, args, directory: Path):
        self.args, self.directory = args, directory
        self.keys = daemons.make_certificates(directory / "keys")
        for name in ("greedy", "honest"):
            done = subprocess.run([paths.BIN / "h5mirrord", "token", "add", name, "--tokens-file", self.keys / "tokens"],
                                  check=True, capture_output=True, text=True)
            secret = self.keys / name
            secret.touch(mode=0o600)
            secret.write_text(done.stdout.split()[-1])
        self.rounds: dict[str, list[list[float]]] = {lane: [] for lane in LANES}
        self.floods: dict[str, list[dict]] = {lane: [] for lane in LANES}

    def run(self) -> None:
        for number in range(self.args.rounds):
            order = LANES[number % 3:] + LANES[:number % 3]
            for lane in order:
                say(f"round {number + 1} of {self.args.rounds}: {lane}")
                self.one(lane, self.directory / f"{number}-{LANES.index(lane)}")

    def one(self, lane: str, place: Path) -> None:
        """One round of one lane, on a server of its own."""
        place.mkdir()
        config = place / "h5mirrord.toml"
        config.write_text(LIMITS if lane == "with limits" else "")
        flags = ("--tokens-file", self.keys / "tokens", "--config", config)
        with daemons.Server(place / "root", place / "log", flags=flags) as server:
            flood = None if lane == "alone" else self.flood(server)
            try:
                self.rounds[lane].append(sorted(self.commits(server)))
            finally:
                if flood is not None:
                    self.floods[lane].append(json.loads(flood.communicate("", timeout=120)[0].splitlines()[-1]))

    def command(self, server, caller: str, *words) -> list:
        return [str(word) for word in (paths.BIN / "bench_neighbour", *words, "--server", f"127.0.0.1:{server.port}",
                                       "--token", f"@{self.keys / caller}")]

    def flood(self, server) -> subprocess.Popen:
        flood = subprocess.Popen(self.command(server, "greedy", "flood", "--threads", self.args.threads), text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert flood.stdout.readline().strip() == "floods"
        return flood

    def commits(self, server) -> list[float]:
        """Seconds of each commit."""
        done = subprocess.run(self.command(server, "honest", "commit", "--count", self.args.count), check=True,
                              capture_output=True, text=True, timeout=600)
        return json.loads(done.stdout)


def quantile(ordered: list[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def table(bench: Bench) -> str:
    rows = [f"{'':16}{'p50 ms':>10}{'p99 ms':>10}{'p50 ratio':>12}{'p99 ratio':>12}{'refused':>10}{'done':>10}"]
    for lane in LANES:
        p50, p99 = (Sample(quantile(each, part) for each in bench.rounds[lane]) for part in (0.5, 0.99))
        alone50, alone99 = (Sample(quantile(each, part) for each in bench.rounds["alone"]) for part in (0.5, 0.99))
        count = {what: Sample([sum(kind[what] for kind in flood.values()) for flood in bench.floods[lane]] or [0])
                 for what in ("refused", "done")}
        rows.append(f"{lane:16}{p50.median * 1000:10.2f}{p99.median * 1000:10.2f}{p50.over(alone50).median:12.2f}"
                    f"{p99.over(alone99).median:12.2f}{count['refused'].median:10.0f}{count['done'].median:10.0f}")
    return "\n".join(rows)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench neighbour", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--count", type=int, default=400, help="commits of each round")
    parser.add_argument("--threads", type=int, default=16, help="of the other caller")
    parser.add_argument("--quick", action="store_true",
                        help="one short round: does it work at all? Its figures mean nothing")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where the files go; %(default)s, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.count, args.threads = 1, 20, 4
    return args


def main() -> int:
    args, facts = parse(), {}
    with machine.workplace(args.dir, facts) as directory:
        bench = Bench(args, directory)
        bench.run()
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    print(f"\n{args.rounds} rounds of {args.count} commits, medians of the rounds; the other caller has "
          f"{args.threads} threads\n\n{table(bench)}")
    if args.json:
        args.json.write_text(json.dumps({"facts": facts, "seconds": bench.rounds, "floods": bench.floods}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
