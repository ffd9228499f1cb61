"""The program `h5mirror`, run for this one: its server, and the meaning of its exit codes."""

import contextlib
import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

from ._places import program

# Of cli/context/exit_code.h.
_ERRORS: dict[int, int] = {3: errno.ENOENT, 5: errno.EBUSY, 6: errno.EIO, 8: errno.EACCES}
_USAGE = 2
_UNREACHABLE = 4


@contextlib.contextmanager
def command(server: str | None, ca: str | os.PathLike[str] | None, token: str | None,
            timeout: float | None = None) -> Iterator[tuple[list[str | os.PathLike[str]], dict[str, Any]]]:
    """The beginning of a command line that asks for JSON, and the arguments of subprocess.Popen for it.

    Both hold within the context. None is left to the client's own configuration.
    """
    options = ["--server", server] if server else []
    if ca is not None:
        options += ["--ca", os.path.abspath(ca)]
    if timeout is not None:
        options += ["--timeout", str(timeout)]
    # Where no file lies, as the program takes a name for that of a local file first.
    with _token_options(token) as (more, descriptors), tempfile.TemporaryDirectory(prefix="h5mirror-") as nowhere:
        yield ([program(), *options, *more, "--json"],
               {"stdin": subprocess.DEVNULL, "pass_fds": descriptors, "cwd": nowhere})


def error(verb: str, code: int, said: str, url: str) -> Exception:
    """The exception to raise after an exit code of the program other than 0."""
    reason = said.strip().removeprefix("h5mirror: ") or f"h5mirror {verb} ended with {code}"
    if code == _USAGE:
        return ValueError(reason)
    if code == _UNREACHABLE:
        return ConnectionError(errno.EHOSTUNREACH, reason, url)
    number = _ERRORS.get(code)
    return OSError(reason) if number is None else OSError(number, reason, url)


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
