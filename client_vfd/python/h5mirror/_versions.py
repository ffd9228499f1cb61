"""The versions of a file, as `h5mirror log --json` tells them."""

import contextlib
import errno
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ._places import program
from ._url import Url, is_url

# Of tools/exit_code.h.
_ERRORS: dict[int, int] = {3: errno.ENOENT, 5: errno.EBUSY, 6: errno.EIO, 8: errno.EACCES}
_USAGE = 2
_UNREACHABLE = 4


@dataclass(frozen=True)
class Version:
    """One version of a file."""

    number: int
    time: datetime
    """The server's clock when it became durable, in UTC. Rounded up to a microsecond: open() at that time opens this one."""
    user: str
    user_verified: bool
    """The server authenticated the user; else it is what the writer said."""
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

    `url` as for open(), without a version; or the path of a local file that is mirrored. What the url leaves out
    comes from the arguments, then from the client's own configuration. `token` is the token, or "@FILE"; `timeout`
    is how many seconds to wait for a connection, 10 unless given.

    Errors: ValueError         a bad url, or one with a version.
            FileNotFoundError  the server has no such file.
            PermissionError    no token, or one without the right.
            ConnectionError    no answer from the server.
            OSError            as the text says.
    """
    file, options = _named(url, server)
    if ca is not None:
        options += ["--ca", os.path.abspath(ca)]
    if timeout is not None:
        options += ["--timeout", str(timeout)]
    # Where no file lies, as the program takes a name for that of a local file first.
    with _token_options(token) as (more, descriptors), tempfile.TemporaryDirectory(prefix="h5mirror-") as nowhere:
        done = subprocess.run([program(), *options, *more, "--json", "log", "--", file], stdin=subprocess.DEVNULL,
                              capture_output=True, pass_fds=descriptors, cwd=nowhere, check=False)
    if done.returncode != 0:
        raise _error(done.returncode, done.stderr.decode(errors="replace").strip(), url)
    rows = json.loads(done.stdout)["versions"]
    return [_version(row) for row in reversed(rows)]


def _named(url: str, server: str | None) -> tuple[str, list[str]]:
    if not is_url(url):
        return os.path.abspath(url), ["--server", server] if server else []
    target = Url.parse(url)
    if target.version is not None:
        raise ValueError(f"{url} names one version, {target.version}: leave '@{target.version}' out")
    if server is not None and target.server is not None:
        raise ValueError(f"server={server!r}, and {url} names the server {target.server} already: give one of them")
    wanted = server or target.server
    return target.name, ["--server", wanted] if wanted else []


@contextlib.contextmanager
def _token_options(token: str | None) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    if token is None:
        yield [], ()
        return
    if token.startswith("@"):
        yield ["--token", "@" + os.path.abspath(token[1:])], ()
        return
    # Everybody can read a command line: the program gets a file that nobody else can open.
    descriptor = os.memfd_create("token", 0)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, token.encode())
        yield ["--token", f"@/proc/self/fd/{descriptor}"], (descriptor,)
    finally:
        os.close(descriptor)


def _error(code: int, said: str, url: str) -> Exception:
    reason = said.removeprefix("h5mirror: ") or f"h5mirror log ended with {code}"
    if code == _USAGE:
        return ValueError(reason)
    if code == _UNREACHABLE:
        return ConnectionError(errno.EHOSTUNREACH, reason, url)
    number = _ERRORS.get(code)
    return OSError(reason) if number is None else OSError(number, reason, url)


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
