"""./dev bench h5perf: our h5perf beside the one that comes with parallel HDF5: the same parameters, in turns.

See bench/README.md for what the table means and how to read it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from harness import machine, paths
from harness.stats import Sample, format_ratio, format_table
from harness.tuning_runs import ONE_HEAP, average_rates
from harness.workload import environment

PARALLEL = paths.CACHE / "hdf5-1.14.5-openmpi"
SOURCE = Path(os.environ.get("H5MIRROR_HDF5_SOURCE") or paths.CACHE / "hdf5-1.14.5-src")
STOCK = paths.CACHE / "h5perf-1.14.5-openmpi" / "h5perf"
PROGRAMS = {"stock": STOCK, "ours": paths.BIN / "h5perf"}
TOOLS = ("h5tools", "h5tools_dump", "h5tools_filters", "h5tools_ref", "h5tools_str", "h5tools_type", "h5tools_utils", "h5trav",
         "io_timer")
TIMEOUT_S = 600
# Of the medians, ours to stock's.
LEAST, MOST = 0.95, 1.05
# Stock's buffers are memory that nothing was ever written to, which the kernel reads from one page of zeros; ours are filled.
MEMORY = ONE_HEAP + ":glibc.malloc.perturb=85"

LINE, SQUARE = ("-e", "64M", "-B", "64K", "-x", "1M", "-X", "1M"), ("-g", "-e", "4K", "-B", "256", "-x", "4K", "-X", "4K")
ROWS = {
    "posix": ("posix", *LINE),
    "posix, interleaved": ("posix", *LINE, "-I"),
    "mpiio": ("mpiio", *LINE),
    "mpiio, interleaved": ("mpiio", *LINE, "-I"),
    "mpiio, interleaved, collective": ("mpiio", *LINE, "-I", "-C"),
    "mpiio, square, collective": ("mpiio", *SQUARE, "-C"),
    "phdf5": ("phdf5", *LINE),
    "phdf5, interleaved": ("phdf5", *LINE, "-I"),
    "phdf5, interleaved, collective": ("phdf5", *LINE, "-I", "-C"),
    "phdf5, chunked, collective": ("phdf5", *LINE, "-c", "-C"),
    "phdf5, square, collective": ("phdf5", *SQUARE, "-C"),
    "phdf5, 50 datasets, collective": ("phdf5", "-e", "256K", "-B", "256K", "-x", "256K", "-X", "256K", "-d", "50", "-C"),
}
QUICK = {"posix": ("posix", "-e", "64K"), "phdf5, collective": ("phdf5", "-e", "64K", "-C")}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def build_stock() -> None:
    """Once, into the cache directory: from the source and over the library that ours is built on."""
    if STOCK.exists():
        return
    say(f"building HDF5's h5perf once, in {STOCK.parent}")
    STOCK.parent.mkdir(parents=True, exist_ok=True)
    half = STOCK.with_suffix(f".{os.getpid()}")
    sources = [SOURCE / "tools/src/h5perf" / f"{name}.c" for name in ("pio_perf", "pio_engine")]
    sources += [SOURCE / "tools/lib" / f"{name}.c" for name in TOOLS]
    includes = [SOURCE / "src", SOURCE / "src/H5FDsubfiling", SOURCE / "tools/lib", PARALLEL / "include"]
    try:
        subprocess.run(["mpicc.openmpi", "-O3", "-DNDEBUG", "-DH5_BUILT_AS_DYNAMIC_LIB", "-w", *(f"-I{each}" for each in includes),
                        *sources, f"-L{PARALLEL / 'lib'}", f"-Wl,-rpath,{PARALLEL / 'lib'}", "-lhdf5", "-ldl", "-lm", "-o", half],
                       check=True)
        half.rename(STOCK)
    finally:
        half.unlink(missing_ok=True)


def rates_of(program: Path, processes: int, api: str, options: tuple, iterations: int, directory: Path) -> dict[str, float]:
    """Block -> MB/s, the mean of the iterations, of one run."""
    command = ["mpirun.openmpi", "--oversubscribe", "-n", processes, program, "-A", api, "-p", processes, "-i", iterations, *options]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run([str(word) for word in command], cwd=directory, check=True, text=True, capture_output=True,
                          env=environment(directory, GLIBC_TUNABLES=MEMORY, **root), timeout=TIMEOUT_S)
    return {name.split(" ", 1)[1]: rate for name, rate in average_rates(done.stdout).items()}


def measure(args, directory: Path) -> dict:
    """row -> block -> program -> MB/s of each round."""
    figures = {row: defaultdict(lambda: defaultdict(list)) for row in args.rows}
    for row, (api, *options) in args.rows.items():
        for number in range(args.rounds):
            for name in list(PROGRAMS)[::1 if number % 2 else -1]:
                with tempfile.TemporaryDirectory(prefix="run-", dir=directory) as scratch:
                    os.sync()  # Writes left by the run before must not count for this one.
                    rates = rates_of(PROGRAMS[name], args.processes, api, tuple(options), args.iterations, Path(scratch))
                for block, rate in rates.items():
                    figures[row][block][name].append(rate)
        say(f"{row}: {args.rounds} rounds")
    return figures


def ratio(block: dict) -> Sample:
    """Ours to stock's, round by round."""
    return Sample(block["ours"]).over(Sample(block["stock"]))


def report(args, facts: dict, figures: dict) -> str:
    blocks = ("Write", "Write Open-Close", "Read", "Read Open-Close")
    rows = []
    for row, cells in figures.items():
        write = cells["Write"]
        rows.append([row, *(f"{Sample(write[name]).median:.0f}" for name in PROGRAMS), *(format_ratio(ratio(cells[b])) for b in blocks)])
    outside = [f"{row}, {block}: {ratio(cells[block]).median:.2f}" for row, cells in figures.items() for block in blocks
               if not LEAST <= ratio(cells[block]).median <= MOST]
    head = (f"# bench h5perf, {facts['time']}, commit {facts['commit']} ({facts['build_type']})\n\n"
            f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, Linux {facts['kernel']}, {facts['filesystem']}; "
            f"{args.processes} processes.\n{args.rounds} interleaved rounds of {args.iterations} iteration(s) in "
            f"{facts['elapsed_s']} s; load average at the start {facts['load_average']:.1f}, {facts['steal_percent']} % of the time "
            "stolen by the hypervisor.\nMB/s; ratios of ours to stock's round by round: median [min-max].\n")
    table = format_table(["", *(f"{name}, Write" for name in PROGRAMS), *blocks], rows)
    return f"{head}\n{table}\n\nOutside of {LEAST} to {MOST}: {'; '.join(outside) or 'none'}."


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench h5perf", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, help="11 unless given")
    parser.add_argument("--iterations", type=int, help="of each run; 5 unless given")
    parser.add_argument("--processes", type=int, default=2, help="%(default)s")
    parser.add_argument("--only", help="rows with this in their name")
    parser.add_argument("--quick", action="store_true", help="two rows, small: does it work at all?")
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"), help="where the files go; %(default)s, on a real filesystem")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    args = parser.parse_args()
    args.rounds = args.rounds or (1 if args.quick else 11)
    args.iterations = args.iterations or (1 if args.quick else 5)
    args.rows = {row: words for row, words in (QUICK if args.quick else ROWS).items() if (args.only or "") in row}
    if not args.rows:
        parser.error(f"no row has '{args.only}' in its name")
    return args


def main() -> int:
    args = parse()
    if not PARALLEL.exists() or not PROGRAMS["ours"].exists():
        print(f"h5perf is measured where there is a parallel HDF5, in {PARALLEL}; ./dev setup builds it")
        return 77
    build_stock()
    facts = {}
    with machine.workplace(args.dir, facts) as directory:
        figures = measure(args, directory)
    print(report(args, facts, figures))
    if args.json:
        args.json.write_text(json.dumps({"facts": facts, "figures": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
