"""The followers of a file while it is written. Each kind is a function that starts one as a process."""

from pathlib import Path

from harness import paths
from harness.workload import Timed

URL_PREFIX = "h5mirror://"


def reopening(address: str, name: str, scratch: Path, timeout_s: float) -> Timed:
    """`h5mirror.follow()`: waits for the next cut, and opens the file again."""
    return Timed([paths.python(), paths.PROGRAMS / "follower.py", f"{URL_PREFIX}{address}/{name}"],
                 scratch=scratch, timeout_s=timeout_s, python=True)


def latency_reader(address: str, name: str, scratch: Path, timeout_s: float) -> Timed:
    """The same, but notes each value with the time at which it was read."""
    return Timed([paths.python(), paths.PROGRAMS / "latency_reader.py", f"{URL_PREFIX}{address}/{name}"],
                 scratch=scratch, timeout_s=timeout_s, python=True)
