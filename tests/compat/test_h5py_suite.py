"""h5py's own suite: under the plugin the same tests pass and fail as in a plain run, also with metadata=memory.

With mode=remote only those tests fail besides that touch the local path themselves. With `./dev test --all` the suite
runs with the connector too.
"""

import xml.etree.ElementTree as xml
from collections import Counter

import pytest

from harness import hdf5, paths
from harness.fixtures import H5PY_VERSIONS
from harness.process import run
from harness.site import Site

# test_h5pl wants HDF5_PLUGIN_PATH to be unset: it tests the variable, not the plugin.
ABOUT_THE_PLUGIN_PATH = "test_h5pl"

CONNECTORS = {"connector": "h5mirror", "ticks": "h5mirror tick=100ms;drivers=all"}

FILE = "test_file.{}::test_{}".format
# There is no local file with mode=remote. These look for one, rename, copy or remove it, write it by open() or by
# another driver, or read one that h5py brings along. By version: 15 each.
LOCAL_IN_ALL = {
    "test_base::test_is_hdf5", "test_big_endian_file::test_vlen_big_endian", "test_dataset::test_vlen_spacepad",
    "test_dataset::test_vlen_nullterm", FILE("TestFileOpen", "default"), FILE("TestDrivers", "backing"),
    FILE("TestDrivers", "readonly"), FILE("TestUserblock", "write_block"),
    FILE("TestUnicode", "unicode_hdf5_python_consistent"), "test_group.TestCopy::test_copy_external_links",
    "test_vds.test_highlevel_vds.RelativeLinkTestCase::test_relative_vds",
    "test_vds.test_highlevel_vds.RelativeLinkBuildVDSTestCase::test_relative_vds"}
LOCAL = {
    "3.12.1": LOCAL_IN_ALL | {
        "test_vds.test_lowlevel_vds.TestEigerLowLevel::test_eiger_low_level",
        "test_vds.test_lowlevel_vds.TestExcaliburLowLevel::test_excalibur_low_level",
        "test_vds.test_lowlevel_vds.TestPercivalLowLevel::test_percival_low_level"},
    "3.16.0": LOCAL_IN_ALL | {
        "test_file::test_reproducible_file", "test_native_complex::test_dtype_cmpnd_cmplx",
        "test_vds.test_highlevel_vds.VDSUnlimitedTestCase::test_unlimited_axis"}}


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


def touches_the_local_path(test, version) -> bool:
    return any(test.endswith(f".{name}") or test == name for name in LOCAL[version])


def assert_remote(plain, remote, version, label) -> None:
    """A test that fails in `remote` also fails plainly, or is one of the 15 that touch the local path."""
    failed = {test for test, outcome in remote.items()
              if outcome == "failed" and plain[test] != "failed" and ABOUT_THE_PLUGIN_PATH not in test}
    others = sorted(test for test in failed if not touches_the_local_path(test, version))
    assert not others, f"failed {label}:\n" + "\n".join(others)
    assert len(LOCAL[version]) == 15 and len(failed) <= 15
    assert {test for test, outcome in remote.items() if outcome != "failed"} | failed >= {
        test for test, outcome in plain.items() if outcome != "failed" and ABOUT_THE_PLUGIN_PATH not in test}
    assert set(remote) == set(plain)


def assert_as_plainly(plain, other, label) -> None:
    differ = {test: (outcome, other.get(test, "missing")) for test, outcome in plain.items()
              if other.get(test) != outcome and ABOUT_THE_PLUGIN_PATH not in test}
    assert not differ, "\n".join(f"{test}: {a} plainly, {b} {label}" for test, (a, b) in sorted(differ.items()))
    assert set(other) == set(plain)


@pytest.fixture(scope="module")
def plainly():
    """plainly(site, version) runs the suite without us, once for each version."""
    ran: dict[str, dict[str, str]] = {}

    def run_once(site, version) -> dict[str, str]:
        if version not in ran:
            ran[version] = run_suite(site, site.plain_env(), "plain")
        return ran[version]

    return run_once


@pytest.mark.limit(1300)
@pytest.mark.parametrize("version", H5PY_VERSIONS)
def test_same_tests_pass_and_fail_as_in_a_plain_run(tmp_path, plainly, version):
    site = Site(tmp_path, h5py=version)
    if not site.python.exists():
        pytest.skip(f"no environment with h5py {version}; ./dev setup makes it")
    try:
        site.server.start()
        plain = plainly(site, version)
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


@pytest.mark.limit(1300)
@pytest.mark.parametrize("version", H5PY_VERSIONS)
def test_with_no_local_files_only_those_fail_that_touch_them(tmp_path, plainly, version):
    site = Site(tmp_path, h5py=version)
    if not site.python.exists():
        pytest.skip(f"no environment with h5py {version}; ./dev setup makes it")
    try:
        site.server.start()
        plain = plainly(site, version)
        for label, keys in (("remote", {}), ("remote-held", {"metadata": "memory"})):
            remote = run_suite(site, site.env(site.config(root=None, mode="remote", **keys)), label)
            assert_remote(plain, remote, version, label)
            # The files that are left were written by other drivers and open().
            left = [path for path in (site.directory / label).rglob("*.h5*") if path.is_file()]
            assert len(left) < 20, left
        names = [row["name"] for row in site.json("ls")["files"]]
        print(f"{len(names)} files were on the server")
        assert len(names) > 200, "the suite was not remote"
        for name in names[::25]:
            site.cli("verify", name).ok()
    finally:
        site.close()


@pytest.mark.limit(1300)
@pytest.mark.parametrize("version", H5PY_VERSIONS)
def test_with_the_connector_the_same_tests_pass_and_fail(tmp_path, plainly, version):
    """Without ticks, and with them and all drivers mirrored."""
    if not paths.TEST_ALL:
        pytest.skip("one of the long tests: ./dev test --all")
    site = Site(tmp_path, h5py=version)
    assert site.python.exists(), f"no environment with h5py {version}; ./dev setup makes it"
    try:
        site.server.start()
        plain = plainly(site, version)
        for label, connector in CONNECTORS.items():
            before = len(site.json("ls")["files"])
            other = run_suite(site, site.env(site.config(root=None), HDF5_VOL_CONNECTOR=connector), label)
            assert_as_plainly(plain, other, f"with HDF5_VOL_CONNECTOR={connector}")
            names = [row["name"] for row in site.json("ls")["files"]]
            print(f"{len(names) - before} files were mirrored")
            assert len(names) > before + 200, f"{label}: the suite was not mirrored"
        for name in names[::25]:
            site.cli("verify", name).ok()
    finally:
        site.close()


def test_environments_are_there():
    """Without them the test above would prove nothing."""
    assert paths.venv_python(H5PY_VERSIONS[0]).exists()
