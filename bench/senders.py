"""./dev bench senders: does a copy flow faster where each node sends its part?

Two nodes, each with one slow link to the storage host, are network namespaces
of this machine. Wants root.
See bench/README.md for what the tables mean and how to read them.
"""

import argparse
import filecmp
import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from harness import machine, paths
from harness.daemons import Server
from harness.nodes import PORT, NoNamespaces, nodes
from harness.stats import Sample, format_ratio, format_seconds, format_table
from harness.workload import WorkloadFailed, environment, settle_disk

SENDERS = ("rank0", "node")
PLACES = ((1, 1), (1, 2), (1, 4), (2, 2), (2, 4))  # nodes, ranks
CUTS = 4  # of bench_parallel


class StorageHost(Server):
    """A server on the storage host, by TLS, as one listens to other hosts."""

    def __init__(self, root: Path, log: Path, where, certificates: Path):
        super().__init__(root, log, certificates)
        self.where = where

    def start(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        port_file = self.log.with_suffix(".port")
        port_file.unlink(missing_ok=True)
        self._start([*self.where.storage, paths.BIN / "h5mirrord", "--root", self.root, "--listen", f"0.0.0.0:{PORT}",
                     "--port-file", port_file, "--log-level", "warn", "--tls-cert", self.certificates / "server.pem",
                     "--tls-key", self.certificates / "server.key", "--tokens-file", self.certificates / "tokens"])
        self._wait_for_port(port_file)


@dataclass
class Options:
    rounds: int
    mib: int
    mbit: int
    places: list[tuple[int, int]]
    window: str
    ack_tick: str


class Bench:
    """Both ways in turns within each round; a failure is reported and does not stop the others."""

    def __init__(self, options: Options, directory: Path, where, certificates: Path):
        self.options, self.directory, self.where, self.certificates = options, directory, where, certificates
        self.figures = defaultdict(list)  # (nodes, ranks, sender) -> seconds of each round, or None
        self.failures = []

    def run(self) -> None:
        for number in range(self.options.rounds):
            order = SENDERS if number % 2 == 0 else SENDERS[::-1]
            for place in self.options.places:
                for sender in order:
                    self.figures[*place, sender].append(self._try(*place, sender))
            say(f"round {number + 1}/{self.options.rounds}")

    def _try(self, node_count: int, ranks: int, sender: str) -> dict | None:
        try:
            return self._one(node_count, ranks, sender)
        except (WorkloadFailed, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            self.failures.append(f"{node_count} nodes, {ranks} ranks, {sender}: {error}")
            say("FAILED " + self.failures[-1].splitlines()[0])
            return None

    def _one(self, node_count: int, ranks: int, sender: str) -> dict:
        place = self.directory / "site"
        local, root = place / "local", place / "remote"
        local.mkdir(parents=True)
        try:
            with StorageHost(root, place / "server.log", self.where, self.certificates) as server:
                keys = {"under": "mpio", "server": f"{self.where.address}:{PORT}", "root": local,
                        "ack_tick": self.options.ack_tick, "timeout": "60s", "window": self.options.window, "parallel_senders": sender,
                        **server.client_keys()}
                config = ";".join(f"{key}={value}" for key, value in keys.items())
                done = self._program(node_count, ranks, local / "run.h5", config)
                self._check(local / "run.h5", root / "run.h5")
                return done
        finally:
            shutil.rmtree(place)

    def _program(self, node_count: int, ranks: int, file: Path, config: str) -> dict:
        command = [*self.where.mpirun(paths.mpiexec(), node_count, ranks), paths.BIN / "bench_parallel", "blocks", file,
                   self.options.mib, config]
        env = environment(self.directory)
        env["LD_LIBRARY_PATH"] = str(paths.CACHE / "hdf5-1.14.5-openmpi" / "lib")
        settle_disk()
        done = subprocess.run([str(part) for part in command], text=True, capture_output=True, timeout=300, env=env)
        if done.returncode != 0:
            raise WorkloadFailed(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr[-4000:]}")
        return json.loads(done.stdout.splitlines()[-1])

    @staticmethod
    def _check(local: Path, head: Path) -> None:
        """The head gets the last cut's bytes a moment after the close."""
        deadline = time.monotonic() + 30
        while not (head.exists() and filecmp.cmp(local, head, shallow=False)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{head} does not become what {local} is")
            time.sleep(0.05)


def table(options: Options, figures: dict) -> str:
    rows = []
    for node_count, ranks in options.places:
        total = {sender: Sample(each and each["total_s"] for each in figures[node_count, ranks, sender])
                 for sender in SENDERS}
        felt = {sender: Sample(each and each["felt_s"] for each in figures[node_count, ranks, sender])
                for sender in SENDERS}
        rate = [f"{options.mib / total[sender].median:.1f}" if total[sender] else "-" for sender in SENDERS]
        rows.append([str(node_count), str(ranks), *(format_seconds(total[sender]) for sender in SENDERS), *rate,
                     format_ratio(felt["node"].over(felt["rank0"])), format_ratio(total["node"].over(total["rank0"]))])
    return format_table(["nodes", "ranks", "rank0, total", "node, total", "rank0, MiB/s", "node, MiB/s", "felt, ratio",
                         "total, ratio"], rows)


def text(options: Options, facts: dict, bench: Bench) -> str:
    parts = [f"# bench senders, {facts['time']}, commit {facts['commit']} ({facts['build_type']})\n\n"
             f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, "
             f"{facts['filesystem']}; HDF5 {facts['hdf5']}, gRPC {facts['grpc']}.\n"
             f"{options.rounds} rounds in {facts['elapsed_s']} s; load average at the start "
             f"{facts['load_average']:.1f}, {facts['steal_percent']} % of the time stolen by the hypervisor.\n"
             f"{options.mib} MiB a file in {CUTS} cuts, window={options.window}, ack_tick={options.ack_tick}, {options.mbit} Mbit/s from each node. "
             "Medians with [min-max].\n", table(options, bench.figures)]
    if bench.failures:
        parts.append("\n## Failed\n\n" + "\n".join(f"- {failure}" for failure in bench.failures))
    return "\n".join(parts)


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench senders", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=64, help="of a file; %(default)s")
    parser.add_argument("--mbit", type=int, default=100, help="of each node's link, in Mbit/s; %(default)s")
    parser.add_argument("--window", default="64MiB", help="the driver's window; %(default)s")
    parser.add_argument("--ack-tick", default="none", choices=("none", "applied", "durable"),
                        help="the answer that a flush waits for; %(default)s")
    parser.add_argument("--nodes", type=int, choices=(1, 2), help="this number only")
    parser.add_argument("--quick", action="store_true",
                        help="tiny sizes, one round: does it work at all? Its figures mean nothing")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where the files go; %(default)s, about 1 GB, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    return parser.parse_args()


def main() -> int:
    args = parse()
    options = Options(rounds=args.rounds, mib=args.mib, mbit=args.mbit, window=args.window, ack_tick=args.ack_tick,
                      places=[place for place in PLACES if args.nodes in (None, place[0])])
    if args.quick:
        options = replace(options, rounds=1, mib=16, mbit=800, places=[(1, 1), (2, 2)])
    if os.geteuid() != 0:
        say("network namespaces want root")
        return 77
    facts = {}
    with machine.workplace(args.dir, facts) as directory:
        try:
            with nodes(directory, options.mbit) as where:
                certificates = directory / "certificates"
                subprocess.run([paths.BIN / "h5mirrord", "init", "--dir", certificates, "--host", where.address],
                               check=True, capture_output=True, text=True)
                bench = Bench(options, directory, where, certificates)
                bench.run()
        except NoNamespaces as error:
            say(str(error))
            return 77
    print(text(options, facts, bench))
    if args.json:
        report = {"facts": facts, "options": asdict(options), "failures": bench.failures,
                  "figures": [{"nodes": node_count, "ranks": ranks, "senders": sender, "rounds": rounds}
                              for (node_count, ranks, sender), rounds in bench.figures.items()]}
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if bench.failures else 0


if __name__ == "__main__":
    sys.exit(main())
