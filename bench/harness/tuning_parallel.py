"""./dev bench tuning --parallel: the recipes of the talk of 2002 for parallel HDF5, by our h5perf.

Each setting is one run of h5perf, which takes MPI-IO, parallel HDF5 and parallel HDF5 with a mirror in turns in each of
its iterations.
"""

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from harness import paths
from harness.drivers import Driver, Site
from harness.workload import environment

TIMEOUT_S = 600
# As in tuning_runs.py: nothing waits for a flush, the close waits until the version is safe.
MIRRORED = Driver("mirrored", "mirrored", "h5mirror", ack="none", more=(("ack_commit", "durable"), ("under", "mpio")))
LANES = ("mpiio", "phdf5", "mirrored")
# Open MPI's own MPI-IO has no hints for two-phase I/O, its ROMIO has.
ROMIO = ("--mca", "io", "^ompio")


@dataclass(frozen=True)
class Row:
    recipe: str
    label: str
    processes: int
    arguments: tuple[str, ...]  # h5perf's
    mpirun: tuple[str, ...] = ()
    hints: str = ""
    talk: str = "-"  # what it found, MB/s


@dataclass
class Figures:
    """MB/s of each iteration: of a lane, its writes, its writes with open and close, and its reads."""
    write: dict[str, list[float]] = field(default_factory=dict)
    write_open_close: dict[str, list[float]] = field(default_factory=dict)
    read: dict[str, list[float]] = field(default_factory=dict)


def _sized(size: str, *more: str) -> tuple[str, ...]:
    return ("-e", size, "-B", size, "-x", size, "-X", size, *more)


def _alignment() -> list[Row]:
    return [Row("4.12 Alignment, 50 datasets", f"alignment {text}", 2, _sized("256K", "-d", "50", "-C", "-a", text, "-T", "1"))
            for text in ("1", "4K", "64K", "1M")]


def _two_phase() -> list[Row]:
    recipe = "4.15 Two-phase I/O, blocks of 4 KiB in turns"
    words = ("-e", "16M", "-B", "4K", "-x", "1M", "-X", "1M", "-I")
    collective = [Row(recipe, f"collective, romio_cb_write={value}", 4, (*words, "-C"), ROMIO,
                      f"romio_cb_write={value};romio_cb_read={value}") for value in ("automatic", "enable", "disable")]
    return [Row(recipe, "independent", 4, words, ROMIO), *collective, Row(recipe, "collective, OMPIO", 4, (*words, "-C"))]


def _buffers() -> list[Row]:
    return [Row("4.16 Transfer buffer, 256 KiB of each of 4 processes", size, 4, ("-e", "256K", "-B", "4K", "-x", size, "-X", size))
            for size in ("4K", "16K", "64K", "256K")]


# Parallel HDF5's writes, and MPI-IO's best, on 16 nodes with so many tasks each, MB/s.
_TALK = {("-C", "50"): ("20-30", "50-60", "68 (3)"), ("-C", "100"): ("40-60", "50-60", "66 (3)"),
         ("-C", "200"): ("40-60", "25-45", "53 (2)"), ("", "50"): ("20-35", "20-35", "32 (2)"),
         ("", "100"): ("20-35", "20-35", "31 (4)"), ("", "200"): ("20-35", "35-60", "61 (3)")}


def _tasks() -> list[Row]:
    rows = []
    for mode in ("-C", ""):
        name = "collective" if mode else "independent"
        for datasets in ("50", "100", "200"):
            few, many, best = _TALK[(mode, datasets)]
            for tasks in (1, 2, 3, 4):
                found = f"{few if tasks < 3 else many}; MPI-IO at best {best}"
                rows.append(Row(f"4.17 Tasks of a node, 256 KiB of each, {name}", f"{datasets} datasets, {tasks} tasks", tasks,
                                _sized("256K", "-d", datasets, *([mode] if mode else [])), talk=found))
    return rows


def rows(is_quick: bool) -> list[Row]:
    """Of --quick the first and the last of each recipe."""
    every = [*_alignment(), *_two_phase(), *_buffers(), *_tasks()]
    if not is_quick:
        return every
    recipes = {}
    for row in every:
        recipes.setdefault(row.recipe, []).append(row)
    return [row for of_one in recipes.values() for row in (of_one[0], of_one[-1])]


def run(row: Row, iterations: int, directory: Path) -> Figures:
    """On an empty directory and a fresh server. RuntimeError: h5perf failed, or the mirror is not level."""
    with Site(MIRRORED, directory / "site") as site:
        command = [paths.mpiexec(), "--oversubscribe", *row.mpirun, "-n", row.processes, paths.BIN / "h5perf", "-A", "mpiio,phdf5",
                   "-p", row.processes, "-i", iterations, *row.arguments, "--json", "--compare", "-v", "mpio", "-v",
                   f"h5mirror:{site.config()}"]
        more = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if row.hints:
            more["HDF5_MPI_INFO"] = row.hints
        done = subprocess.run([str(word) for word in command], cwd=site.local, text=True, capture_output=True,
                              env=environment(site.directory, **more), timeout=TIMEOUT_S)
        if done.returncode != 0:
            raise RuntimeError(f"h5perf, {row.recipe}, {row.label}: {done.stderr[-2000:]}")
        return _figures_of(row, json.loads(done.stdout)["results"])


def _figures_of(row: Row, lanes: list[dict]) -> Figures:
    if len(lanes) != len(LANES):
        raise RuntimeError(f"h5perf, {row.label}: {len(lanes)} results, not {len(LANES)}")
    if complaint := lanes[-1]["mirror_complaint"]:
        raise RuntimeError(f"h5perf, {row.label}: {complaint}")
    figures = Figures()
    for name, lane in zip(LANES, lanes):
        for phase, rates in vars(figures).items():
            rates[name] = [lane["bytes"] / 1e6 / seconds for seconds in lane["phases"][phase]["seconds"]]
    return figures
