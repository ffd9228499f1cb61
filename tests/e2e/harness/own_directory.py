"""A temporary directory for each run of pytest.

pytest numbers the directories of runs and removes all but the last ones. A run that ends can so take the directory of
one that begins at the same moment, before that has its lock.
"""

import shutil
import tempfile
from pathlib import Path

import pytest


def choose(config):
    """Call it from a pytest_configure() that comes first, before pytest makes its own directory."""
    config.own_directory = None
    if config.option.basetemp is None:
        # Short: paths of sockets have 107 bytes.
        config.own_directory = Path(tempfile.mkdtemp(prefix="h5m-"))
        config.option.basetemp = str(config.own_directory / "t")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """The directories of failed tests stay."""
    own = session.config.own_directory
    if own is not None and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        shutil.rmtree(own, ignore_errors=True)
