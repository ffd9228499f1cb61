"""The functions of h5mirror that wait, for asyncio: they run in threads.

    async for event in h5mirror.aio.events("h5mirror://node7:7447/run7.h5"):
        print(event.cut)

A task that is cancelled ends at once. Its thread ends its call, which takes a second or so, beside.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ._events import Event, _Watch
from ._forks import fork as _fork
from ._forks import promote as _promote
from ._reader import access
from ._restore import Restored
from ._restore import restore as _restore
from ._versions import Version
from ._versions import versions as _versions

__all__ = ["Event", "Restored", "Version", "events", "fork", "promote", "restore", "versions"]


async def events(url: str, *, after: int = 0, wait: bool = False, idle_timeout: float | None = None,
                 server: str | None = None, ca: str | os.PathLike[str] | None = None, token: str | None = None,
                 timeout: float = 5.0) -> AsyncGenerator[Event, None]:
    """As h5mirror.events(). It has a thread of its own: those of the loop's executor are few."""
    told = events_of(_Watch(url, after, wait, idle_timeout, server, access(ca, token, timeout)))
    try:
        async for event in told:
            yield event
    finally:
        await told.aclose()


async def events_of(watch: _Watch) -> AsyncGenerator[Event, None]:
    """Of the package's own use."""
    loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, thread_name_prefix="h5mirror-events")
    try:
        while True:
            watch.begin()
            while (event := await loop.run_in_executor(thread, watch.step)) is None:
                pass
            yield event
    finally:
        thread.shutdown(wait=False)


async def versions(url: str, **keys: Any) -> list[Version]:
    """As h5mirror.versions()."""
    return await asyncio.to_thread(_versions, url, **keys)


async def restore(url: str, path: str, **keys: Any) -> Restored:
    """As h5mirror.restore(). A task that is cancelled does not stop it half-way."""
    return await asyncio.to_thread(_restore, url, path, **keys)


async def fork(url: str, new: str, **keys: Any) -> Version:
    """As h5mirror.fork()."""
    return await asyncio.to_thread(_fork, url, new, **keys)


async def promote(fork: str, into: str, **keys: Any) -> Version:
    """As h5mirror.promote()."""
    return await asyncio.to_thread(_promote, fork, into, **keys)
