"""PyTables' own suite: with the plugin and its connector the same tests pass and fail as in a plain run.

With `./dev test --all` only, since it is run four times.
"""

import json
from collections import Counter

import pytest

from harness import paths
from harness.process import run
from harness.site import Site

PYTHON = paths.CACHE / "venv-tables" / "bin" / "python"

# Writes the id and the outcome of each test to the file that it is given, as JSON. Some ids come more than once.
RUNNER = """
import json, sys, unittest
import tables
from tables.tests.test_suite import suite

class Outcomes(unittest.TestResult):
    found = []
    def note(self, test, outcome): self.found.append((test.id(), outcome))
    def addSuccess(self, test): self.note(test, "passed")
    def addFailure(self, test, error): self.note(test, "failed")
    def addError(self, test, error): self.note(test, "failed")
    def addSkip(self, test, reason): self.note(test, "skipped")
    def addSubTest(self, test, part, error): self.note(part, "failed" if error else "passed")
    def addExpectedFailure(self, test, error): self.note(test, "expected failure")
    def addUnexpectedSuccess(self, test): self.note(test, "unexpected success")

print(tables.__version__, tables.hdf5_version)
suite().run(Outcomes())
json.dump(Outcomes.found, open(sys.argv[1], "w"))
"""

CONNECTORS = {"mirrored": {}, "connector": {"HDF5_VOL_CONNECTOR": "h5mirror"},
              "ticks": {"HDF5_VOL_CONNECTOR": "h5mirror tick=100ms;drivers=all"}}


def run_suite(site, env, label) -> Counter:
    """Runs the suite in a directory of its own; (test id, outcome) -> how often."""
    directory = site.directory / label
    (directory / "tmp").mkdir(parents=True)
    report = directory / "report.json"
    result = run([PYTHON, "-c", RUNNER, report], site.logs, cwd=directory, timeout=900,
                 env={**env, "TMPDIR": str(directory / "tmp")}, name=label)
    assert report.exists(), result.describe()
    found = Counter(map(tuple, json.loads(report.read_text())))
    counts = Counter(outcome for _, outcome in found.elements())
    print(f"{label}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped "
          f"in {result.seconds:.0f} s")
    return found


def describe_differences(plain, other) -> str:
    only = {"plainly": plain - other, "here": other - plain}
    return "\n".join(f"{test}: {outcome} {where}" for where, tests in only.items() for test, outcome in sorted(tests))


@pytest.mark.limit(3700)
def test_same_tests_pass_and_fail_as_in_a_plain_run(tmp_path):
    if not paths.TEST_ALL:
        pytest.skip("one of the long tests: ./dev test --all")
    assert PYTHON.exists(), f"{PYTHON} is missing; ./dev test --all makes it"
    site = Site(tmp_path)
    try:
        site.server.start()
        plain = run_suite(site, site.plain_env(), "plain")
        assert sum(outcome == "passed" for _, outcome in plain.elements()) > 6000, "so few tests"
        for label, more in CONNECTORS.items():
            before = len(site.json("ls")["files"])
            # Names by host and path: each run writes to a directory of its own.
            other = run_suite(site, site.env(site.config(root=None), **more), label)
            assert other == plain, f"{label}:\n{describe_differences(plain, other)}"
            names = [row["name"] for row in site.json("ls")["files"]]
            print(f"{len(names) - before} files were mirrored")
            assert len(names) > before + 100, f"{label}: the suite was not mirrored"
        for name in names[::25]:
            site.cli("verify", name).ok()
    finally:
        site.close()
