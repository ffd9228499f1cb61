"""A time of day that a test can set for one process; see programs/clock_shift.c."""

import os
import struct
from pathlib import Path

from . import paths


class JumpingClock:
    """`env` is for the process; it must not be the parent of others that need a clock."""

    def __init__(self, file: Path):
        self._file = file
        self._file.write_bytes(bytes(8))
        self.env = {"LD_PRELOAD": str(paths.TEST_BIN / "libe2e_clock_shift.so"), "H5MIRROR_TEST_CLOCK": str(file)}

    def jump(self, seconds: int) -> None:
        """From now on the clock shows so many seconds more than the machine's, or less."""
        with open(self._file, "r+b", buffering=0) as opened:
            os.pwrite(opened.fileno(), struct.pack("<q", seconds), 0)
