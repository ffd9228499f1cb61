"""h5py's own suite: under the plugin the same tests pass and fail as in a plain run, also with metadata=memory."""

import xml.etree.ElementTree as xml
from collections import Counter

import pytest

from harness import hdf5, paths
from harness.fixtures import H5PY_VERSIONS
from harness.process import run
from harness.site import Site

# test_h5pl wants HDF5_PLUGIN_PATH to be unset: what it says is about the variable, not the plugin.
ABOUT_THE_PLUGIN_PATH = "test_h5pl"


def outcomes(report) -> dict[str, str]:
    """Test id -> passed, failed or skipped, from a JUnit report."""
    found = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        found[f"{case.get('classname')}::{case.get('name')}"] = outcome
    return found


def run_suite(site, env, label) -> dict[str, str]:
    """Runs the suite in a directory of its own."""
    directory = site.directory / label
    (directory / "tmp").mkdir(parents=True)
    report = directory / "report.xml"
    result = run([site.python, "-m", "pytest", "--pyargs", "h5py", "-q", "-p", "no:cacheprovider", "--tb=line",
                  f"--junitxml={report}"], site.logs, cwd=directory, timeout=420,
                 env={**env, "TMPDIR": str(directory / "tmp")}, name=label)
    assert report.exists(), result.describe()
    found = outcomes(report)
    counts = Counter(found.values())
    print(f"{label}: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped "
          f"in {result.seconds:.0f} s")
    return found


def assert_as_plainly(plain, other, label) -> None:
    differ = {test: (outcome, other.get(test, "missing")) for test, outcome in plain.items()
              if other.get(test) != outcome and ABOUT_THE_PLUGIN_PATH not in test}
    assert not differ, "\n".join(f"{test}: {a} plainly, {b} {label}" for test, (a, b) in sorted(differ.items()))
    assert set(other) == set(plain)


@pytest.mark.limit(1300)
@pytest.mark.parametrize("version", H5PY_VERSIONS)
def test_same_tests_pass_and_fail_as_in_a_plain_run(tmp_path, version):
    site = Site(tmp_path, h5py=version)
    if not site.python.exists():
        pytest.skip(f"no environment with h5py {version}; ./dev setup makes it")
    try:
        site.server.start()
        plain = run_suite(site, site.plain_env(), "plain")
        # Names by host and path: the suite writes to directories of its own choice.
        mirrored = run_suite(site, site.env(site.config(root=None)), "mirrored")
        assert_as_plainly(plain, mirrored, "mirrored")
        held = run_suite(site, site.env("mode=off;metadata=memory"), "held")
        assert_as_plainly(plain, held, "with metadata in memory")
        heads = [path for path in site.root.rglob("*") if path.is_file()
                 and ".h5m" not in str(path.relative_to(site.root)) and ".h5mirror" not in str(path)]
        listed = site.json("ls")["files"]
        print(f"{len(listed)} files were mirrored")
        assert len(listed) > 200, "the suite was not mirrored"
        assert {str(head.relative_to(site.root)) for head in heads} == {row["name"] for row in listed}
        for head in heads[::25]:
            site.settle(str(head.relative_to(site.root)))
            assert hdf5.digest(head) == hdf5.digest(
                site.export(str(head.relative_to(site.root)), site.versions(str(head.relative_to(site.root)))[-1]))
    finally:
        site.close()


def test_environments_are_there():
    """Without them the test above would say nothing."""
    assert paths.venv_python(H5PY_VERSIONS[0]).exists()
