"""Runs of programs/stream.py during which something goes wrong again and again, and how such a run ends."""

import random
import re
import signal
import time
from dataclasses import dataclass

from . import hdf5, paths
from .process import Process, Result
from .site import Site

RATE_MIB_PER_S = 30
UNPACED = 1e9
# The time that a loaded machine adds to a deadline.
SLACK_S = 1.5


@dataclass
class Felt:
    """The delays that a run of stream.py saw, in seconds."""
    took: float
    write: float
    flush: float
    close: float

    @classmethod
    def of(cls, result: Result) -> "Felt":
        result.ok()
        longest = {kind: float(text) for kind, text in re.findall(r"longest (\w+) ([\d.]+)", result.out)}
        return cls(took=float(re.search(r"took ([\d.]+)", result.out).group(1)), **longest)


def start_stream(site: Site, name: str, mib: int, rate: float = RATE_MIB_PER_S, **options) -> Process:
    return site.start([site.python, paths.PROGRAMS / "stream.py", name, mib, rate], **options)


def unmirrored(site: Site, mib: int) -> Felt:
    """The same run without a driver."""
    felt = Felt.of(start_stream(site, "alone.h5", mib, env=site.plain_env()).wait(mib))
    site.local("alone.h5").unlink()
    return felt


def rage(writer: Process, faults: list, count: int, seconds: float, chance: random.Random) -> list[str]:
    """Has `count` of `faults`, functions, happen at random moments of the next `seconds`; names those that did
    before the writer ended."""
    end = time.monotonic() + seconds
    done = []
    while len(done) < count and writer.running():
        left = (end - time.monotonic()) / (count - len(done))
        time.sleep(chance.uniform(0, max(0.02, left)))
        if writer.running():
            fault = chance.choice(faults)
            fault()
            done.append(fault.__name__)
    return done


class ServerFaults:
    """Faults of a server; each leaves it running."""

    def __init__(self, site: Site, chance: random.Random):
        self._server, self._chance = site.server, chance

    def killed(self) -> None:
        self._server.kill9()
        time.sleep(self._chance.uniform(0, 0.5))
        self._server.start()

    def restarted(self) -> None:
        self._server.stop()
        self._server.start()

    def stopped(self) -> None:
        """Its kernel still accepts bytes, but the server does not answer."""
        self._server.process.signal(signal.SIGSTOP)
        time.sleep(self._chance.uniform(0.1, 1.2))
        self._server.process.signal(signal.SIGCONT)

    def all(self) -> list:
        return [self.killed, self.restarted, self.stopped]


def assert_felt_nothing(felt: Felt, alone: Felt, deadline_s: float = 1, beside: str = "unmirrored") -> None:
    """No call waited past its deadline. How late the run ended is told; machines differ too much to demand it."""
    print(f"took {felt.took:.1f} s, {felt.took / alone.took:.3f} times as long as {beside}; longest write "
          f"{felt.write:.2f} s ({beside} {alone.write:.2f}), flush {felt.flush:.2f} ({alone.flush:.2f}), "
          f"close {felt.close:.2f} ({alone.close:.2f})")
    for kind in ("write", "flush", "close"):
        limit = deadline_s + SLACK_S + getattr(alone, kind)
        assert getattr(felt, kind) < limit, f"a {kind} took {getattr(felt, kind):.2f} s"


def bring_level(site: Site, name: str) -> str:
    """Does what a user does after an outage: opens the file again, if the mirror is not level yet. Returns how it went.

    No other program wrote, and the writer closed: nothing has diverged.
    """
    site.wait_for_no_lease(name)
    if site.record(name)["state"] == "clean":
        return "level"
    result = site.py(f"h5py.File({name!r}, 'r+').attrs['again'] = 1", config=site.config(timeout="60s", linger="100s"),
                     timeout=200)
    assert site.record(name)["state"] == "clean", result.describe()
    return "reopened"


def assert_diverged_is_told(site: Site, name: str) -> None:
    """By the server, and by the local side's record."""
    shown = site.cli("status", site.local(name)).out
    assert shown.count("diverged since") == 2, f"the server's line and the local one:\n{shown}"


def assert_all_identical(site: Site, name: str) -> None:
    """Head, newest version and local file are one; every version opens; a comparison by digests agrees."""
    site.assert_mirrored(name)
    versions = site.versions(name)
    for version in versions[:-1]:
        exported = site.export(name, version)
        hdf5.assert_opens(exported)
        exported.unlink()
    newest = site.export(name, versions[-1])
    assert hdf5.digest(newest) == hdf5.digest(site.local(name)), f"{name}@{versions[-1]} is not the local file"
    newest.unlink()
    site.cli("verify", name, timeout=120).ok()
    site.cli("verify", "--against", site.local(name), timeout=120).ok()
