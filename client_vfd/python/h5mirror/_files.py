"""The files of a server, as `h5mirror ls --json` tells them."""

import errno
import json
import subprocess
from dataclasses import dataclass
from datetime import datetime

from . import _program
from ._reader import Access
from ._url import Url

# Seconds for a whole list; one of 100,000 files takes a few.
_LIST_MAX_S = 120.0


@dataclass(frozen=True)
class File:
    """A file under a server's root."""

    name: str
    size: int
    modified: datetime


def list_files(directory: Url, how: Access) -> list[File]:
    """All files below a directory, sorted by name.

    Errors: FileNotFoundError  there is no such directory; ConnectionError, PermissionError, TimeoutError.
    """
    where = ["--", directory.name] if directory.name else []
    with _program.command(directory.server, how.ca, how.token, how.timeout) as (command, more):
        try:
            done = subprocess.run([*command, "ls", *where], capture_output=True, check=False, timeout=_LIST_MAX_S, **more)
        except subprocess.TimeoutExpired:
            raise TimeoutError(errno.ETIMEDOUT, f"no list of the files came within {_LIST_MAX_S:.0f} s", directory.text) from None
    if done.returncode != 0:
        raise _program.error("ls", done.returncode, done.stderr.decode(errors="replace"), directory.text)
    return [File(row["name"], row["size_bytes"], datetime.fromisoformat(row["modify_time"]))
            for row in json.loads(done.stdout)["files"]]
