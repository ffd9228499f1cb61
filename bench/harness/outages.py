"""The sections of bench/outage.py: each yields ((row, round trip in ms), a function that measures it once)."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from harness import drivers, paths
from harness.drivers import Driver, Site
from harness.histories import history_tool
from harness.workload import WorkloadFailed, environment, run_workload, settle_disk

WORKLOAD = "contiguous_flush"


def ours(key: str, **more: str) -> Driver:
    """The plugin with its defaults, except for the given settings."""
    keys = {"ack": "none", "ack_commit": "durable", "timeout": "1s", **more}
    return Driver(key, key, "h5mirror", ack="none", more=tuple(keys.items()))


POLICIES = (ours("degrade"), ours("wait=2s", on_outage="wait=2s"), ours("fail", on_outage="fail"))


def _drivers(options) -> list[Driver]:
    return [*POLICIES, *([drivers.STOCK] if options.with_stock else [])]


def there(options, directory: Path):
    """The server is up: the cost of each policy."""
    yield (drivers.SEC2.label, 0.0), lambda: _one_run(drivers.SEC2, None, options, directory)
    for round_trip_ms in options.round_trips_ms:
        for driver in _drivers(options):
            yield (driver.label, round_trip_ms), lambda d=driver, ms=round_trip_ms: _one_run(d, ms, options, directory)


def _one_run(driver: Driver, round_trip_ms, options, directory: Path) -> dict:
    with Site(driver, directory / "site", round_trip_ms=round_trip_ms) as site:
        return {"outcome": "mirrored", **_figures(site.run(WORKLOAD, "data.h5", scale=options.scale))}


def _figures(run) -> dict:
    return {"felt_s": run.felt_s, "close_s": run.total_s - run.felt_s, "total_s": run.total_s,
            "exit_s": run.exit_s, "bytes": run.bytes}


def away(options, directory: Path):
    """The server goes away when the program is about to begin: it is killed, or stopped so that it does not answer."""
    for how in (signal.SIGKILL, signal.SIGSTOP):
        name = "killed" if how == signal.SIGKILL else "stopped"
        for driver in _drivers(options):
            yield (f"{driver.label}, {name}", 0.0), lambda d=driver, h=how: _outage(d, h, options, directory)


def _outage(driver: Driver, how: signal.Signals, options, directory: Path) -> dict:
    with Site(driver, directory / "site") as site:
        def begin() -> None:
            settle_disk()
            os.killpg(site.server_pid, how)

        start_s = time.monotonic()
        try:
            run = run_workload(WORKLOAD, site.local / "data.h5", driver=driver.kind, config=site.config(),
                               scratch=site.directory, warm_up=site.local / "warm-up.h5", scale=options.scale,
                               before=begin, timeout_s=options.hang_s)
            return {"outcome": "goes on", **_figures(run)}
        except WorkloadFailed as error:
            waited_s = time.monotonic() - start_s
            return {"outcome": _how_it_failed(str(error), waited_s, options.hang_s), "exit_s": waited_s}
        finally:
            if how == signal.SIGSTOP:
                os.killpg(site.server_pid, signal.SIGCONT)


def _how_it_failed(error: str, waited_s: float, hang_s: float) -> str:
    if waited_s >= hang_s:
        return f"hangs for {hang_s:g} s and more"
    for number in (signal.SIGPIPE, signal.SIGSEGV, signal.SIGABRT):
        if f"exit status {-number}" in error:
            return f"killed by {number.name}"
    return "H5Fflush fails" if "H5Fflush" in error else "a call fails"


def resync(options, directory: Path):
    """Bytes and time to bring a mirror level that missed some pages."""
    for round_trip_ms in options.round_trips_ms:
        for pages in options.changed_pages:
            for way in WAYS:
                yield (f"{way}, {pages} of {options.mib * 256} pages", round_trip_ms), (
                    lambda w=way, p=pages, ms=round_trip_ms: _level(w, p, ms, options, directory))


# By the next open, which knows the missing bytes; by digests, if they are unknown; and by a copy of the whole file.
WAYS = ("next open", "h5mirror resync", "h5mirror push")


def _level(way: str, pages: int, round_trip_ms: float, options, directory: Path) -> dict:
    site = Site(ours("degrade"), directory / "site", round_trip_ms=round_trip_ms)
    with site:
        file = site.local / "data.h5"
        mirrored = {"driver": "h5mirror", "config": site.config()}
        history_tool("create", file, scratch=site.directory, mib=options.mib, **mirrored)
        site.check(file.name)
        # The plugin cannot note changes that it does not see.
        seen = mirrored if way == "next open" else {}
        with site.server_away():
            history_tool("commit", file, scratch=site.directory, count=1, pages=pages, seed=7, **seen)
        settle_disk()
        before = site.carried_bytes()
        start_s = time.monotonic()
        said = _bring_level(way, site, file, mirrored)
        took_s = time.monotonic() - start_s
        carried = site.carried_bytes() - before
        site.check(file.name)
    return {"outcome": "level", "took_s": took_s, "changed_bytes": pages * 4096, "carried_bytes": carried, **said}


def _bring_level(way: str, site: Site, file: Path, mirrored: dict) -> dict:
    if way == "next open":
        history_tool("commit", file, scratch=site.directory, count=1, pages=1, seed=8, **mirrored)
        return {}
    verb = ["resync", "--from", "local"] if way == "h5mirror resync" else ["push", "--replace", "--root", site.local]
    command = [paths.BIN / "h5mirror", "--server", site.address(), "--json", *verb, file]
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, timeout=600,
                          env=environment(site.directory))
    if done.returncode != 0:
        raise WorkloadFailed(f"{way}: {done.stdout}{done.stderr}")
    if way != "h5mirror resync":
        return {}
    report = json.loads(done.stdout)["files"][0]
    return {key: report[key] for key in ("sent_bytes", "digest_bytes")}
