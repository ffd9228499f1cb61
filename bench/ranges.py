"""./dev bench ranges: how fast does a version come over HTTP, beside the same bytes as a plain file from nginx?

curl reads both in turns within each round, whole and in ranges, over one connection and over four.
See bench/README.md for what the table means.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from harness import machine, paths
from harness.daemons import Daemon, Server
from harness.promise import Promise
from harness.stats import Sample, format_ratio, format_table
from harness.workload import environment

MIB = 1 << 20
LEAST_OF_NGINX = 0.7
SITES = ("nginx", "h5mirrord")
NGINX = """
daemon off; worker_processes 2; pid {place}/nginx.pid; error_log {place}/nginx-errors.log;
events {{ worker_connections 256; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000;
  client_body_temp_path {place}/t1; proxy_temp_path {place}/t2; fastcgi_temp_path {place}/t3;
  uwsgi_temp_path {place}/t4; scgi_temp_path {place}/t5;
  server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


@dataclass(frozen=True)
class Reading:
    """The request of one run of curl."""

    label: str
    range_bytes: int  # 0: the whole file
    connections: int

    def ranges(self, size: int, most_bytes: int) -> list[tuple[int, int] | None]:
        """(first, last) of each request, in an order of chance that is the same for both servers."""
        if self.range_bytes == 0:
            return [None] * self.connections
        firsts = list(range(0, size - self.range_bytes + 1, self.range_bytes))
        random.Random(1).shuffle(firsts)
        return [(first, first + self.range_bytes - 1) for first in firsts[:max(1, most_bytes // self.range_bytes)]]


READINGS = (Reading("whole", 0, 1), Reading("ranges of 1 MiB", MIB, 1), Reading("ranges of 64 KiB", 64 << 10, 1),
            Reading("ranges of 4 KiB", 4 << 10, 1), Reading("ranges of 1 MiB, 4 at once", MIB, 4))


class Nginx(Daemon):
    def __init__(self, place: Path, root: Path, port: int):
        super().__init__(place / "nginx.log")
        self.place, self.root, self.port = place, root, port

    def start(self) -> None:
        found = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
        if found is None:
            raise SystemExit("no nginx: ./dev bench ranges installs it")
        config = self.place / "nginx.conf"
        config.write_text(NGINX.format(place=self.place, root=self.root, port=self.port))
        self._start([found, "-p", self.place, "-e", self.place / "nginx-errors.log", "-c", config])
        deadline = time.monotonic() + 20
        while subprocess.run(["curl", "-sfI", "-o", "/dev/null", f"http://127.0.0.1:{self.port}/big.h5"]).returncode:
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"nginx does not serve: {(self.place / 'nginx-errors.log').read_text()}")
            time.sleep(0.02)


class Bench:
    def __init__(self, args, directory: Path):
        self.args, self.directory = args, directory
        self.size = args.mib * MIB
        self.plain = directory / "plain"
        self.plain.mkdir()
        self.file = self.plain / "big.h5"
        with open(self.file, "wb") as out:
            for _ in range(args.mib):
                out.write(os.urandom(MIB))
        os.chmod(directory, 0o755)  # nginx reads as another user.
        self.seconds: dict[str, dict[str, list[float]]] = {
            each.label: {site: [] for site in SITES} for each in READINGS}
        self.cpu: dict[str, dict[str, list[float]]] = {
            each.label: {site: [] for site in SITES} for each in READINGS}

    def run(self) -> None:
        port_file = self.directory / "server.port"
        with Server(self.directory / "root", self.directory / "server.log",
                    flags=("--http-listen", "127.0.0.1:0")) as server:
            self.push(server)
            http_port = int(port_file.read_text().split("http:")[1].split()[0])
            with Nginx(self.directory, self.plain, free_port()) as nginx:
                self.sites = {"nginx": (nginx, f"http://127.0.0.1:{nginx.port}/big.h5"),
                              "h5mirrord": (server, f"http://127.0.0.1:{http_port}/f/big.h5@1")}
                self.compare_bytes()
                for number in range(self.args.rounds):
                    say(f"round {number + 1} of {self.args.rounds}")
                    for reading in READINGS:
                        for site in SITES[number % 2:] + SITES[:number % 2]:
                            self.one(reading, site)

    def push(self, server) -> None:
        subprocess.run([paths.BIN / "h5mirror", "--server", f"127.0.0.1:{server.port}", "push", "--any", "--root",
                        self.plain, self.file], check=True, capture_output=True, text=True,
                       env=environment(self.directory), timeout=600)

    def compare_bytes(self) -> None:
        """Also warms both up."""
        digests = set()
        for site in SITES:
            got = subprocess.run(["curl", "-sf", self.sites[site][1]], check=True, capture_output=True, timeout=600)
            digests.add(hashlib.sha256(got.stdout).hexdigest())
        if len(digests) != 1:
            raise RuntimeError("the two servers sent other bytes")

    def one(self, reading: Reading, site: str) -> None:
        daemon, url = self.sites[site]
        requests = reading.ranges(self.size, self.args.most_mib * MIB)
        config = self.directory / "curl.config"
        config.write_text("".join(f'url = "{url}"\noutput = "/dev/null"\n'
                                  + (f"range = {each[0]}-{each[1]}\n" if each else "")
                                  + ("next\nsilent\nfail\n" if number + 1 < len(requests) else "")
                                  for number, each in enumerate(requests)))
        commands = [["curl", "-sf", "-K", each] for each in self.shares(config, reading.connections)]
        cpu_before, start = daemon.cpu_seconds(), time.monotonic()
        running = [subprocess.Popen(command) for command in commands]
        if any(each.wait(timeout=600) for each in running):
            raise RuntimeError(f"curl failed at {url}")
        self.seconds[reading.label][site].append(time.monotonic() - start)
        self.cpu[reading.label][site].append(daemon.cpu_seconds() - cpu_before)

    def shares(self, config: Path, count: int) -> list[Path]:
        """The requests of `config` in as many files, one for each connection."""
        if count == 1:
            return [config]
        requests = config.read_text().split("next\nsilent\nfail\n")
        shares = []
        for number in range(count):
            share = config.with_name(f"curl-{number}.config")
            share.write_text("next\nsilent\nfail\n".join(requests[number::count]))
            shares.append(share)
        return shares

    def mib_read(self, reading: Reading) -> float:
        requests = reading.ranges(self.size, self.args.most_mib * MIB)
        return sum(each[1] - each[0] + 1 if each else self.size for each in requests) / MIB


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def table(bench: Bench) -> str:
    rows = []
    for reading in READINGS:
        mib = bench.mib_read(reading)
        rates = {site: Sample(mib / each for each in bench.seconds[reading.label][site]) for site in SITES}
        cpu = {site: Sample(bench.cpu[reading.label][site]).median / mib * 1024 for site in SITES}
        rows.append([reading.label, *(f"{rates[site].median:.0f}" for site in SITES),
                     format_ratio(rates["h5mirrord"].over(rates["nginx"])), *(f"{cpu[site]:.2f}" for site in SITES)])
    return format_table(["", "nginx, MiB/s", "h5mirrord, MiB/s", "ratio", "nginx, CPU s/GiB", "h5mirrord, CPU s/GiB"],
                        rows)


def promises(bench: Bench) -> list[Promise]:
    label = "ranges of 1 MiB"
    seconds = {site: Sample(bench.seconds[label][site]) for site in SITES}
    return [Promise("time beside nginx", label, seconds["h5mirrord"].over(seconds["nginx"]).median,
                    1 / LEAST_OF_NGINX)]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench ranges", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--mib", type=int, default=256, help="size of the version")
    parser.add_argument("--most-mib", type=int, default=256, help="what the ranges of a run add up to")
    parser.add_argument("--quick", action="store_true",
                        help="one short round: does it work at all? Its figures mean nothing")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"),
                        help="where the files go; %(default)s, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.mib, args.most_mib = 1, 8, 4
    return args


def main() -> int:
    args, facts = parse(), {}
    with machine.workplace(args.dir, facts) as directory:
        bench = Bench(args, directory)
        bench.run()
    print("\n".join(f"{name}: {value}" for name, value in facts.items()))
    print(f"\na version of {args.mib} MiB, warm; {args.rounds} rounds\n\n{table(bench)}\n")
    promised = promises(bench)
    for each in promised:
        print(f"{each.what}, {each.where}: {each.measured:.2f}, promised at most {each.limit:.2f}: "
              f"{'met' if each.met else 'not met'}")
    if args.json:
        args.json.write_text(json.dumps({"facts": facts, "seconds": bench.seconds, "cpu_seconds": bench.cpu,
                                         "promises": [each.as_dict() for each in promised]}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
