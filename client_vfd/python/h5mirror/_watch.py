"""The cuts of a file as they are made, told by `h5mirror watch`."""

import contextlib
import json
import logging
import os
import select
import subprocess
import time
import weakref
from typing import Any

from . import _program
from ._url import Url

_log = logging.getLogger("h5mirror")
_PART = 1 << 16


class Watch:
    """A program that runs beside this one until close(), or until this one ends in any way.

    A thread that waits for it reads a pipe: neither the interpreter's lock nor h5py's is held. Its messages
    meanwhile, such as that the server is away, go to the logger "h5mirror".
    """

    def __init__(self, target: Url, options: list[str], ca: str | os.PathLike[str] | None, token: str | None) -> None:
        self._url = target.text
        self._lines = b""
        self._saying = b""
        self._said = ""  # its last line
        context = contextlib.ExitStack()
        try:
            command, more = context.enter_context(_program.command(target.server, ca, token))
            # In a group of its own: the Ctrl-C of a terminal is for this program, which may go on after it.
            self._process = subprocess.Popen([*command, "watch", *options, "--", target.name], stdout=subprocess.PIPE,
                                             stderr=subprocess.PIPE, bufsize=0, process_group=0, **more)
        except BaseException:
            context.close()
            raise
        # Runs at the end of the interpreter too.
        self._end = weakref.finalize(self, _end, self._process, context)

    def next_cut(self, until: float | None) -> int | None:
        """The number of the next newer cut; None: the program has ended, as it was told to.

        `until` is a time.monotonic(), after which it is a TimeoutError. Other errors are those of follow().
        """
        while b"\n" not in self._lines:
            if not self._take(until):
                self._check_end()
                return None
        line, _, self._lines = self._lines.partition(b"\n")
        return int(json.loads(line)["cut"])

    def close(self) -> None:
        """Ends the program. Idempotent."""
        self._end()

    def _take(self, until: float | None) -> bool:
        """Waits for some output. False: there will be no more."""
        out, err = self._pipes()
        poll = select.poll()
        for pipe in (out, err):
            if not pipe.closed:
                poll.register(pipe, select.POLLIN)
        left = None if until is None else max(0.0, until - time.monotonic())
        ready = {number for number, _ in poll.poll(None if left is None else left * 1000)}
        if not ready:
            raise TimeoutError(f"no new cut of {self._url} came in time")
        if not err.closed and err.fileno() in ready:
            self._hear(err)
            return True
        part = out.read(_PART)
        self._lines += part
        return bool(part)

    def _hear(self, err: Any) -> None:
        part = err.read(_PART)
        if not part:
            err.close()
        *lines, self._saying = (self._saying + part).split(b"\n")
        for line in lines:
            self._said = line.decode(errors="replace")
            _log.info("%s", self._said)

    def _check_end(self) -> None:
        code = self._process.wait()
        _, err = self._pipes()
        while not err.closed:
            self._hear(err)
        if code != 0:
            raise _program.error("watch", code, self._said, self._url)

    def _pipes(self) -> tuple[Any, Any]:
        return self._process.stdout, self._process.stderr


def _end(process: subprocess.Popen[bytes], context: contextlib.ExitStack) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    context.close()
