"""Fixtures of the tests of whole programs: see harness/fixtures.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.fixtures import *  # noqa: E402, F401, F403
from harness.h5edit_fixtures import *  # noqa: E402, F401, F403
