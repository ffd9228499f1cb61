"""The machine of a figure: without it the figure says nothing."""

import contextlib
import os
import platform
import re
import subprocess
import tempfile
import time
from pathlib import Path

from harness import paths


def _first_match(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1).strip() if found else "unknown"


def _output(*command) -> str:
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def _commit() -> str:
    commit = _output("git", "-C", paths.SOURCE, "rev-parse", "--short=12", "HEAD") or "unknown"
    changed = _output("git", "-C", paths.SOURCE, "status", "--porcelain", "--untracked-files=no")
    return commit + ("+changes" if changed else "")


def _package(name: str) -> str:
    return _output("dpkg-query", "-W", "-f", "${Version}", name) or "unknown"


def describe(directory: Path) -> dict:
    """Machine, versions and commit; `directory` is where the files of the run lie."""
    header = (paths.HDF5_ROOT / "include" / "H5public.h").read_text()
    return {
        "time": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "cpu": _first_match(r"^model name\s*:(.*)$", Path("/proc/cpuinfo").read_text()),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "kernel": platform.release(),
        "filesystem": _output("stat", "-f", "-c", "%T", directory),
        "load_average": os.getloadavg()[0],
        "commit": _commit(),
        "hdf5": _first_match(r'H5_VERS_INFO\s+"HDF5 library version:? ([^"]*)"', header),
        "grpc": _package("libgrpc++-dev"),
        "build_type": _first_match(r"^CMAKE_BUILD_TYPE:\w+=(.*)$",
                                   (paths.BUILD / "CMakeCache.txt").read_text()),
    }


def steal_seconds() -> float:
    """CPU time that the hypervisor gave to others since boot, all cores together."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def workplace(below: Path, facts: dict):
    """A directory for a benchmark, gone after it. `facts` gets the machine's, and in the end how long it took
    and what part of the time was the hypervisor's."""
    paths.require_disk(below)
    facts.update(describe(below))
    steal_before_s, start_s = steal_seconds(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="h5mirror-bench-", dir=below) as directory:
        yield Path(directory)
    elapsed_s = time.monotonic() - start_s
    facts["elapsed_s"] = round(elapsed_s)
    facts["steal_percent"] = round(100 * (steal_seconds() - steal_before_s) / elapsed_s / os.cpu_count(), 1)
