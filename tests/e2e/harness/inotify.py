"""Catches the moment in which a file is made; polling would miss it."""

import contextlib
import ctypes
import os
import select
from pathlib import Path

_IN_CREATE = 0x100  # <sys/inotify.h>


@contextlib.contextmanager
def made_in(directory: Path):
    """Watches `directory`. Yields a function that waits `timeout` seconds for a new entry; False if none came."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    assert watch >= 0, os.strerror(ctypes.get_errno())
    try:
        added = libc.inotify_add_watch(watch, os.fsencode(directory), _IN_CREATE)
        assert added >= 0, f"{directory}: {os.strerror(ctypes.get_errno())}"
        yield lambda timeout: bool(select.select([watch], [], [], timeout)[0])
    finally:
        os.close(watch)
