"""The versions of a file, as `h5mirror log --json` tells them."""

import json
import os
import subprocess
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from . import _program
from ._url import Url, is_url


@dataclass(frozen=True)
class Version:
    """One version of a file."""

    number: int
    time: datetime
    """The server's clock when it became durable, in UTC. Rounded up to a microsecond: open() at that time opens this one."""
    user: str
    user_verified: bool
    """The server authenticated the user; else the name is the writer's own claim."""
    host: str
    program: str
    comment: str
    tags: tuple[str, ...]
    size: int
    """Of the file, in bytes."""
    changed_bytes: int
    """That were written for it."""
    cut: int
    generation: int
    """How often the file's name had been re-created by then."""


def versions(url: str, *, server: str | None = None, ca: str | os.PathLike[str] | None = None,
             token: str | None = None, timeout: float | None = None) -> list[Version]:
    """The versions of a file, oldest first: [-1] is the newest.

    `url` as for open(), without a version; or the path of a local file that is mirrored. Parts that
    the url lacks come from the arguments, then from the client's own configuration. `token` is the
    token, or "@FILE"; `timeout` is how many seconds to wait for a connection, 10 unless given.

    Errors: ValueError         a bad url, or one with a version.
            FileNotFoundError  the server has no such file.
            PermissionError    no token, or one without the right.
            ConnectionError    no answer from the server.
            OSError            as the text says.
    """
    file, wanted = _named(url, server)
    with _program.command(wanted, ca, token, timeout) as (command, more):
        done = subprocess.run([*command, "log", "--", file], capture_output=True, check=False, **more)
    if done.returncode != 0:
        raise _program.error("log", done.returncode, done.stderr.decode(errors="replace"), url)
    rows = json.loads(done.stdout)["versions"]
    return [_version(row) for row in reversed(rows)]


def _named(url: str, server: str | None) -> tuple[str, str | None]:
    """The file, and its server as far as they tell."""
    if not is_url(url):
        return os.path.abspath(url), server
    target = Url.parse(url).without_version()
    return target.name, target.with_server(server).server


def _version(row: dict[str, Any]) -> Version:
    return Version(number=row["version"], time=_time(row["time"]), user=row["user"],
                   user_verified=row["user_verified"], host=row["host"], program=row["program"],
                   comment=row["comment"], tags=tuple(row["tags"]), size=row["size_bytes"],
                   changed_bytes=row["changed_bytes"], cut=row["cut"], generation=row["generation"])


def _time(text: str) -> datetime:
    """Of a text with up to nine digits of a second's fraction; a datetime has six."""
    time = datetime.fromisoformat(text)
    digits = text.partition(".")[2].rstrip("Z")
    return time + timedelta(microseconds=1) if digits[6:].strip("0") else time
