"""One run of a row of bench/tuning.py, and of the h5perf_serials."""

import json
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

from harness import drivers, paths
from harness.drivers import Driver, Site
from harness.tuning_rows import Row
from harness.workload import environment, run_timed

FILE = "data.h5"
TIMEOUT_S = 900
STOCK_H5PERF = paths.HDF5_ROOT / "bin" / "h5perf_serial"
OUR_H5PERF = paths.BIN / "h5perf_serial"
H5PERFS = {"stock": STOCK_H5PERF, "ours": OUR_H5PERF}

# As users have it: nothing waits for a flush, the close waits until the version is safe.
MIRRORED = Driver("mirrored", "mirrored", "h5mirror", ack="none", more=(("ack_commit", "durable"),))


def variants(row: Row) -> tuple[Driver, ...]:
    """The command of the row."""
    more = MIRRORED.more + row.config
    return (drivers.SEC2, Driver(MIRRORED.key, MIRRORED.label, MIRRORED.kind, MIRRORED.ack, more=more))


def run_row(row: Row, driver: Driver, directory: Path) -> dict:
    """On an empty directory and a fresh server; the mirror's bytes are compared afterwards. Seconds."""
    with ExitStack() as stack:
        os.sync()  # Writes left by the run before must not count for this one.
        site = stack.enter_context(Site(driver, directory / "site"))
        kind, config = driver.kind, site.config()
        if row.config and not config:  # Our driver without a server, beside itself with one.
            kind, config = "h5mirror", ";".join(f"{key}={value}" for key, value in (("mode", "off"), *row.config))
        command = [paths.BIN / "bench_tuning", row.program, site.local / FILE, "--count", row.count, *row.flags,
                   "--driver", kind, "--warm-up", site.local / "warm-up.h5", "--start-on-stdin"]
        if config:
            command += ["--config", config]
        said = {}

        def start(before):
            run, figures = run_timed(command, scratch=site.directory, timeout_s=TIMEOUT_S, before=before)
            said.update(figures["figures"])
            return run

        run = site.timed(FILE, start)
        return {"felt_s": run.felt_s, "total_s": run.total_s, "exit_s": run.exit_s,
                "cpu_s": run.client_cpu_s + run.server_cpu_s, **said}


# Parameters of both h5perf_serials: a file of 16 MB as in the paper of 2008, and larger ones, as 16 MB in buffers of 1 MiB are
# read in two milliseconds.
H5PERF = {"16 MB, buffer 512 x 256, chunk 4K x 256": ("-e", "4K,4K", "-x", "512,256", "-c", "4K,256"),
          "256 MB, buffer 64K": ("-e", "256M", "-x", "64K"),
          "256 MB, buffer 1M": ("-e", "256M", "-x", "1M")}
H5PERF_QUICK = {"1 MB, buffer 64K": ("-e", "1M", "-x", "64K")}


def average_rates(report: str) -> dict[str, float]:
    """`posix Write` and so on -> MB/s, in the report's order, of a text report of either."""
    rates, api, block = {}, "", ""
    for line in report.splitlines():
        words = line.strip()
        if words.startswith("IO API = "):
            api = words.split()[-1].lower()
        elif "iteration(s)):" in words or words.endswith("iteration(s)):"):
            block = words.split(" (")[0]
        elif words.startswith("Average Throughput:"):
            rates[f"{api} {block}"] = float(words.split()[2])
    return rates


# Of malloc(), for both h5perf_serials. As it is by default it maps large blocks, which begin 16 bytes into a page, or takes them
# from its heap, by what was freed before: reading into the former takes 2.5 times as long where the processor copies so.
# From the heap, which keeps what it has, all do as well.
ONE_HEAP = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=4294967296"


def run_h5perf(program: Path, arguments: tuple, directory: Path) -> dict[str, float]:
    """One iteration: the mean of several that the reports name goes with the one in which the disk was busy."""
    done = subprocess.run([program, *arguments, "-i", "1"], cwd=directory, check=True, text=True, capture_output=True,
                          env=environment(directory, GLIBC_TUNABLES=ONE_HEAP), timeout=TIMEOUT_S)
    return average_rates(done.stdout)


def run_sweep(sizes: list[str], dataset: str, iterations: int, directory: Path) -> dict[str, dict]:
    """Transfer buffers of h5perf_serial: {size: {phase: times of sec2 and mirrored}}; drivers take turns within each."""
    with Site(MIRRORED, directory / "site") as site:
        done = {}
        for size in sizes:
            said = subprocess.run(
                [OUR_H5PERF, "-A", "hdf5", "-e", dataset, "-x", size, "-i", str(iterations), "--json", "--compare", "-v", "sec2",
                 "-v", f"h5mirror:{site.config()}"], cwd=site.local, check=True, text=True, capture_output=True,
                env=environment(site.directory), timeout=TIMEOUT_S)
            lanes = json.loads(said.stdout)["results"]
            if complaint := lanes[1]["mirror_complaint"]:
                raise RuntimeError(f"h5perf_serial, buffer {size}: {complaint}")
            done[size] = {phase: [lane["phases"][phase]["seconds"] for lane in lanes]
                          for phase in ("write", "write_open_close")}
        return done
