"""The rows about starting: a process's first mirrored open, an unused plugin, round trips."""

import itertools
import subprocess
import time
from pathlib import Path

from harness import drivers, paths
from harness.drivers import Driver, Site, WrongBytes
from harness.mirror_plan import Options
from harness.stats import Sample
from harness.workload import WorkloadFailed, environment

# Long beside everything else in an open and a close, so that counting is exact.
COUNTING_DELAY_MS = 20.0
_COUNTING_ROUNDS = 3


def measure(options: Options, directory: Path, failures: list[str]) -> dict:
    """Samples by row. A part that fails is left out and named in `failures`."""
    results = {"first_open": {}, "unused_plugin": {}, "round_trips": {}}
    mirrors = [driver for driver in options.drivers
               if driver.kind in ("mirror", "h5mirror") and not driver.tls]
    parts = [("unused_plugin", lambda: _unused_plugin(options, directory))]
    parts += [("first_open", lambda d=driver: _first_open(d, options, directory))
              for driver in [drivers.SEC2, *mirrors]]
    parts += [("round_trips", lambda d=driver: _round_trips(d, directory)) for driver in mirrors]
    for name, part in parts:
        try:
            results[name].update(part())
        except (WorkloadFailed, WrongBytes, RuntimeError) as error:
            failures.append(f"{name}: {error}")
    return results


def _first_open(driver: Driver, options: Options, directory: Path) -> dict:
    """Each file the first of its process; the server has met the client's machine before."""
    with Site(driver, directory / "site") as site:
        runs = [site.run("tiny", f"first{number}.h5", warm=False)
                for number in range(options.starts + 1)][1:]
    return {driver.label: {"open_s": Sample(run.open_s for run in runs),
                           "felt_s": Sample(run.felt_s for run in runs),
                           "total_s": Sample(run.total_s for run in runs)}}


def _unused_plugin(options: Options, directory: Path) -> dict:
    """Whole lives of a small program that mirrors nothing, from its start to its end."""
    plugin = {"HDF5_DRIVER": "h5mirror"}
    cases = {
        "no HDF5_DRIVER": {},
        "HDF5_DRIVER=h5mirror, mode=off": {**plugin, "HDF5_DRIVER_CONFIG": "mode=off"},
        "HDF5_DRIVER=h5mirror, exclude=*": {**plugin, "HDF5_DRIVER_CONFIG": "exclude=*"},
    }
    scratch = directory / "unused"
    scratch.mkdir()
    command = [paths.BIN / "bench_workload", "tiny", scratch / "tiny.h5", "--driver", "default"]
    lives = {name: [] for name in cases}
    for _, name in itertools.product(range(4 * options.starts), cases):
        env = environment(scratch, **cases[name])
        start_s = time.perf_counter()
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        lives[name].append(time.perf_counter() - start_s)
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stderr}")
    return {name: Sample(values) for name, values in lives.items()}


def _round_trips(driver: Driver, directory: Path) -> dict:
    """Round trips that a program waits for: of an open, a write and a close, by the time they add."""
    totals = {}
    for delay_ms in (0.0, COUNTING_DELAY_MS):
        with Site(driver, directory / "site", round_trip_ms=delay_ms) as site:
            for number in range(_COUNTING_ROUNDS):
                name = f"trips{number}.h5"
                for state in ("new name", "re-created"):
                    total_s = site.run("tiny", name).total_s
                    totals.setdefault((state, delay_ms), []).append(total_s)
    trips = {}
    for state in ("new name", "re-created"):
        added = Sample(totals[state, COUNTING_DELAY_MS]).median - Sample(totals[state, 0.0]).median
        trips[f"{driver.label}, {state}"] = added * 1e3 / COUNTING_DELAY_MS
    return trips
