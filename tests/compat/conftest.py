"""Fixtures of the tests of other people's test suites: those of ../e2e/harness."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from harness.fixtures import *  # noqa: E402, F401, F403
