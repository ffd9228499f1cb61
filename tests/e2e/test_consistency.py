"""One open shows one cut: a writer writes the number of the cut into every dataset, attribute and string, and readers
that open its file all the time never see two numbers, nor an error but that a cut has expired. Some of them read
through h5mirror-agent.

Three planted faults, a page that is served as it was a cut ago, an extent that a cut misses, and a raw extent that the
change from one cut to the next does not name, are each found."""

import json
import os
import random
import time

import pytest

from harness import paths
from harness.fixtures import H5PY_VERSIONS
from harness.process import wait_until
from test_agent import Agent

# Of all parts together.
SECONDS = int(os.environ.get("H5M_CHECKER_SECONDS") or (300 if paths.TEST_ALL else 60))
# In each part 8 readers; in both together each kind of file, h5py and way to the server with each other.
PARTS = range(2)
CUTS_MIN = 10
KEEP_S = 2
KINDS = ("earliest", "latest", "swmr")


class Checker:
    """Writers of stamped files, and their readers."""

    def __init__(self, site):
        self.site = site
        self.stop_readers, self.stop_writers = (site.directory / name for name in ("stop-readers", "stop-writers"))
        self.writers, self.readers = [], []
        self.seed = random.randrange(1 << 30)

    def write(self, kind, pace, **more):
        command = [self.site.python, paths.PROGRAMS / "stamp.py", f"{kind}.h5", kind, pace, self.stop_writers]
        self.writers.append(self.site.start(command, **more))

    def read(self, kind, h5py_version, keep=KEEP_S, **keys):
        number = len(self.readers)
        command = [paths.venv_python(h5py_version), paths.PROGRAMS / "stamp_reader.py", f"{kind}.h5", keep,
                   self.seed + number, self.stop_readers]
        self.readers.append(self.site.start(command, config=self.site.config(mode="reader", **keys)))

    def watch(self, seconds, cuts=0):
        """Returns when that is over and each reader has seen so many cuts, or when a reader or writer has ended."""
        until = time.monotonic() + seconds
        while all(each.running() for each in self.writers + self.readers):
            if time.monotonic() > until and all(each.err().count(".") > cuts for each in self.readers):
                break
            time.sleep(0.1)

    def finish(self):
        """What each reader says in the end; the writers close their files."""
        self.stop_readers.touch()
        results = [reader.wait(60) for reader in self.readers]
        self.stop_writers.touch()
        for writer in self.writers:
            writer.wait(60).ok()
        return results


@pytest.fixture
def checker(bare_site):
    checker = Checker(bare_site)
    print("seed", checker.seed)
    return checker


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.limit(SECONDS // len(PARTS) + 150)
@pytest.mark.site(options={"snapshot_keep": f"{KEEP_S}s"})
def test_no_open_shows_two_cuts_nor_an_error_but_expiry(checker, part):
    agent = Agent(checker.site, "--cache", "16MiB").start()
    for kind in KINDS:
        checker.write(kind, 0.05)
    for number in range(8):
        checker.read(KINDS[(number + 2 * part) % 3], H5PY_VERSIONS[number % 2], cache="1MiB" if number < 4 else "64MiB",
                     agent=agent.socket if number % 4 >= 2 else "off")
    checker.watch(SECONDS // len(PARTS), CUTS_MIN)
    results = checker.finish()
    seen = [json.loads(each.ok().out) for each in results]
    print(*seen, sep="\n")
    assert all(each["cuts"] > CUTS_MIN for each in seen), seen
    assert any(each["expired"] for each in seen), "no reader held a cut for too long"
    files, cuts = agent.stop()
    assert files == len(KINDS) and cuts > CUTS_MIN, "the agent took no part"
    for kind in KINDS:
        checker.site.assert_mirrored(f"{kind}.h5")


def fault(thread, file):
    """The environment that plants a stale page into what `thread` reads, once when `file` is there."""
    return {"LD_PRELOAD": str(paths.TEST_BIN / "libe2e_stale_page.so"), "H5MIRROR_TEST_THREAD": thread,
            "H5MIRROR_TEST_STALE": str(file)}


def is_found(checker, plan, agent="off"):
    """The fault is planted as soon as there is a cut to get wrong, and a reader tells of two numbers."""
    for version in H5PY_VERSIONS:  # None holds a cut so long that it misses the next one.
        checker.read("latest", version, keep=0.2, agent=agent)
    checker.site.wait_for_cut("latest.h5")
    time.sleep(2)
    assert all(reader.running() for reader in checker.readers), "what is right is not found"
    plan.touch()
    wait_until(lambda: not plan.exists(), "the fault happens", 30)
    checker.watch(30)
    codes = [(result.code, result.err) for result in checker.finish()]
    assert any(code == 1 and "one open shows" in err and "'fixed'" in err for code, err in codes), codes


def test_a_stale_page_that_is_served_once_is_found(checker):
    plan = checker.site.directory / "plan"
    checker.site.server.stop()
    checker.site.server.env = fault("read snapshot", plan)
    checker.site.server.start()
    checker.write("latest", 2.5)
    is_found(checker, plan)


def test_an_extent_that_a_cut_misses_is_found(checker):
    plan = checker.site.directory / "plan"
    checker.write("latest", 2.5, **fault("h5m-sender", plan))
    is_found(checker, plan)


def test_a_raw_extent_that_the_change_between_two_cuts_misses_is_found(checker):
    """The agent then takes over from the cut before what it read of that one."""
    plan = checker.site.directory / "plan"
    env = {"LD_PRELOAD": str(paths.TEST_BIN / "libe2e_missed_extent.so"), "H5MIRROR_TEST_MISSED": str(plan)}
    agent = Agent(checker.site, env={**checker.site.plain_env(), **env}).start()
    checker.write("latest", 2.5)
    is_found(checker, plan, agent.socket)
