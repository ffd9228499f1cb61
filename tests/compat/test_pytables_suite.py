"""PyTables' own suite, with `./dev test --all`: with the plugin and its connector the same tests pass and fail as in a plain run."""

import json
from collections import Counter

import pytest

from harness import paths
from harness.process import run
from harness.site import Site

PYTHON = paths.CACHE / "venv-tables" / "bin" / "python"

# The id and the outcome of each test, as JSON in the file that it is given. Some ids come more than once.
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
    def addExpectedFailure(self, test, error): self.note(test, "expected failure")
    def addUnexpectedSuccess(self, test): self.note(test, "unexpected success")

print(tables.__version__, tables.hdf5_version)
suite().run(Outcomes())
json.dump(sorted(Outcomes.found), open(sys.argv[1], "w"))
"""

CONNECTORS = {"mirrored": None, "connector": "h5mirror", "ticks": "h5mirror tick=100ms;drivers=all"}


def run_suite(site, env, label) -> list:
    """Runs the suite in a directory of its own."""
    directory = site.directory / label
    (directory / "tmp").mkdir(parents=True)
    report = directory / "report.json"
    result = run([PYTHON, "-c", RUNNER, report], site.logs, cwd=directory, timeout=600,
                 env={**env, "TMPDIR": str(directory / "tmp")}, name=label)
    assert report.exists(), result.describe()
    found = json.loads(report.read_text())
    print(f"{label}: {dict(Counter(outcome for _, outcome in found))} in {result.seconds:.0f} s; {result.out.strip()}")
    return found


@pytest.mark.limit(2500)
def test_same_tests_pass_and_fail_as_in_a_plain_run(tmp_path):
    if not paths.TEST_ALL:
        pytest.skip("one of the long tests: ./dev test --all")
    assert PYTHON.exists(), f"{PYTHON} is missing; ./dev test --all makes it"
    site = Site(tmp_path)
    try:
        site.server.start()
        plain = run_suite(site, site.plain_env(), "plain")
        assert Counter(outcome for _, outcome in plain)["passed"] > 5000, "so few tests"
        for label, connector in CONNECTORS.items():
            more = {"HDF5_VOL_CONNECTOR": connector} if connector else {}
            other = run_suite(site, site.env(site.config(root=None), **more), label)
            differ = sorted(set(map(tuple, plain)) ^ set(map(tuple, other)))
            assert plain == other, f"{label}: " + "\n".join(map(str, differ[:50]))
        assert len(site.json("ls")["files"]) > 100, "the suite was not mirrored"
    finally:
        site.close()
