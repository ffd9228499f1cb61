"""What waits, for asyncio: the same functions as those of h5mirror, in threads of the loop's executor.

    async for event in h5mirror.aio.events("h5mirror://node7:7447/run7.h5"):
        print(event.cut)

A task that is cancelled ends at once. Its thread ends its call, which takes a second or so, beside.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from typing import Any

from ._events import Event, _Watch
from ._reader import access
from ._versions import Version
from ._versions import versions as _versions

__all__ = ["Event", "Version", "events", "versions"]


async def events(url: str, *, after: int = 0, wait: bool = False, idle_timeout: float | None = None,
                 server: str | None = None, ca: str | os.PathLike[str] | None = None, token: str | None = None,
                 timeout: float = 5.0) -> AsyncGenerator[Event, None]:
    """As h5mirror.events(). One thread is taken while it waits."""
    watch = _Watch(url, after, wait, idle_timeout, server, access(ca, token, timeout))
    while True:
        watch.begin()
        while (event := await asyncio.to_thread(watch.step)) is None:
            pass
        yield event


async def versions(url: str, **keys: Any) -> list[Version]:
    """As h5mirror.versions()."""
    return await asyncio.to_thread(_versions, url, **keys)
