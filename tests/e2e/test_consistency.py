"""One open shows one cut: writers write the number of the cut into every dataset, attribute and string, and readers
that open their files all the time never see two numbers, nor an error but that a cut has expired; with a server that is
stopped, or killed, and comes back they see no two numbers either. They come directly, through h5mirror-agent, with
mode=remote and with h5mirror.follow().

Planted faults are each found: a page of data, or of metadata, that is served as it was a cut ago; one that a cut
misses; and a raw extent that the change from one cut to the next does not name."""

import json
import os
import random
import time

import pytest

from harness import paths
from harness.fixtures import H5PY_VERSIONS
from harness.package import Package
from harness.process import wait_until
from test_agent import Agent

# In which 8 readers are there.
SECONDS = int(os.environ.get("H5M_CHECKER_SECONDS") or (300 if paths.TEST_ALL else 60))
CUTS_MIN = 10
KEEP_S = 2
# The mode of each file for stamp.py, and its writer's configuration. With `alone` each dataset is flushed alone.
FILES = {"earliest": ("earliest", {}), "latest": ("latest", {}), "swmr": ("swmr", {}), "alone": ("alone", {}),
         "memory": ("earliest", {"metadata": "memory"})}
WAYS = ("directly", "agent", "remote", "follow")


class Checker:
    """Writers of stamped files, and their readers."""

    def __init__(self, site):
        self.site = site
        self.stop_readers, self.stop_writers, self.away = (
            site.directory / name for name in ("stop-readers", "stop-writers", "away"))
        self.agent = None
        self.writers, self.readers = [], []
        self.seed = random.randrange(1 << 30)

    def write(self, name, pace, **more):
        kind, keys = FILES[name]
        command = [self.site.python, paths.PROGRAMS / "stamp.py", f"{name}.h5", kind, pace, self.stop_writers]
        self.writers.append(self.site.start(command, config=self.site.config(**keys), **more))

    def read(self, h5py_version, way="directly", names=tuple(FILES), keep=KEEP_S, cache="64MiB"):
        """One reader of all of these files."""
        if way == "follow":
            files, options = [f"h5mirror://{self.site.address}/{name}.h5" for name in names], {"env": Package(self.site).env()}
        else:
            keys = {"mode": "remote" if way == "remote" else "reader", "agent": self.agent.socket if way == "agent" else "off"}
            files, options = [f"{name}.h5" for name in names], {"config": self.site.config(cache=cache, **keys)}
        command = [paths.venv_python(h5py_version), paths.PROGRAMS / "stamp_reader.py", ",".join(files), keep,
                   self.seed + len(self.readers), self.stop_readers, self.away]
        self.readers.append(self.site.start(command, **options))

    def start_agent(self, **options):
        self.agent = Agent(self.site, "--cache", "16MiB", **options).start()
        return self.agent

    def cuts(self):
        """How many each reader has seen."""
        return [reader.err().count(".") for reader in self.readers]

    def watch(self, seconds, further=0):
        """Returns when that is over and each reader has seen so many more cuts, or when a reader or writer has ended."""
        until, before = time.monotonic() + seconds, self.cuts()
        while all(each.running() for each in self.writers + self.readers):
            if time.monotonic() > until and all(now >= then + further for now, then in zip(self.cuts(), before)):
                break
            time.sleep(0.1)

    def finish(self):
        """The final output of each reader; the writers close their files."""
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


@pytest.mark.limit(SECONDS + 150)
@pytest.mark.site(options={"snapshot_keep": f"{KEEP_S}s"})
def test_no_open_shows_two_cuts_nor_an_error_but_expiry(checker):
    agent = checker.start_agent()
    for name in FILES:
        checker.write(name, 0.05)
    for number, (way, version) in enumerate((way, version) for version in H5PY_VERSIONS for way in WAYS):
        checker.read(version, way, cache="1MiB" if number in (0, 2, 5, 7) else "64MiB")
    checker.watch(SECONDS, CUTS_MIN)
    seen = [json.loads(each.ok().out) for each in checker.finish()]
    print(*seen, sep="\n")
    assert all(each["cuts"] >= CUTS_MIN for each in seen)
    assert all(sum(each["of"][name] for each in seen) >= CUTS_MIN for name in FILES)
    assert any(each["expired"] for each in seen), "no reader held a cut for too long"
    files, cuts = agent.stop()
    assert files == len(FILES) and cuts > CUTS_MIN, "the agent took no part"
    for name in FILES:
        checker.site.assert_mirrored(f"{name}.h5")


@pytest.mark.limit(240)
@pytest.mark.site(options={"snapshot_keep": f"{KEEP_S}s", "durable_every": "2s"})
def test_a_server_that_stops_or_is_killed_and_comes_back(checker):
    """While it is away there are errors, and after a kill older cuts."""
    server = checker.site.server
    checker.start_agent()
    for name in FILES:
        checker.write(name, 0.05)
    for number, way in enumerate(WAYS):
        checker.read(H5PY_VERSIONS[number % 2], way, keep=0.2)
    checker.watch(0, 3)
    for end, how in ((server.stop, "stopped"), (server.kill9, "killed")):
        checker.away.write_text(how)
        end()
        time.sleep(1)
        server.start()
        # A file that a reader had open before the server came back is closed by the second new cut that it sees.
        checker.watch(0, 2)
        checker.away.unlink()
        checker.watch(2)
    for result in checker.finish():
        result.ok()
    for name in FILES:
        checker.site.assert_mirrored(f"{name}.h5")


def fault(what, thread, file):
    """The environment that plants a stale page into what `thread` reads, once when `file` is there."""
    return {"LD_PRELOAD": str(paths.TEST_BIN / "libe2e_stale_page.so"), "H5MIRROR_TEST_THREAD": thread,
            "H5MIRROR_TEST_STALE": str(file), "H5MIRROR_TEST_STALE_WHAT": what}


STALE = pytest.mark.parametrize("what, where", [("raw", "'fixed'"), ("header", "'rows'")], ids=["data", "metadata"])


def is_found(checker, plan, where="'fixed'", way="directly"):
    """Faults are planted as soon as there is a cut to get wrong, until a reader tells of two numbers."""
    for version in H5PY_VERSIONS:  # None holds a cut so long that it misses the next one.
        checker.read(version, way, ["latest"], keep=0.2)
    checker.site.wait_for_cut("latest.h5")
    checker.watch(2, 2)
    assert all(reader.running() for reader in checker.readers), "what is right is not found"
    # Nobody may have read the page when it was wrong: on a loaded machine readers miss cuts, and do without the agent.
    for tried in range(5):
        if not all(reader.running() for reader in checker.readers):
            break
        plan.touch()
        wait_until(lambda: not plan.exists(), "the fault happens", 30)
        checker.watch(6)
    print("found after", tried, "faults")
    codes = [(result.code, result.err) for result in checker.finish()]
    assert any(code == 1 and "one open shows" in err and where in err for code, err in codes), codes


@STALE
def test_a_stale_page_that_is_served_is_found(checker, what, where):
    plan = checker.site.directory / "plan"
    checker.site.server.stop()
    checker.site.server.env = fault(what, "send stream", plan)
    checker.site.server.start()
    checker.write("latest", 2.5)
    is_found(checker, plan, where)


@STALE
def test_an_extent_that_a_cut_misses_is_found(checker, what, where):
    """By the other ways to read."""
    plan = checker.site.directory / "plan"
    checker.write("latest", 2.5, **fault(what, "h5m-sender", plan))
    is_found(checker, plan, where, "remote" if what == "raw" else "follow")


def test_a_raw_extent_that_the_change_between_two_cuts_misses_is_found(checker):
    """The agent then takes over the bytes that it read of the cut before."""
    plan = checker.site.directory / "plan"
    env = {"LD_PRELOAD": str(paths.TEST_BIN / "libe2e_missed_extent.so"), "H5MIRROR_TEST_MISSED": str(plan)}
    checker.start_agent(env={**checker.site.plain_env(), **env})
    checker.write("latest", 2.5)
    is_found(checker, plan, way="agent")
