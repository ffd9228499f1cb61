"""Cuts of a file as updates of tiled, for clients that subscribe to a node.

tiled's server asks any adapter for make_ws_handler() (tiled 0.2.20, server/router.py, websocket_endpoint), also one that is
not of its catalog. Sequence numbers of tiled are numbers of cuts here.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import Any

from ._events import Event, _Watch
from ._reader import Access
from ._url import Url
from .aio import events_of

_log = logging.getLogger("h5mirror")
_MIMETYPE = "application/x-hdf5"
# Codes of RFC 6455 and its registry at IANA. tiled's client comes again after 1013, and not after 1000.
_NORMAL, _TRY_AGAIN = 1000, 1013
# Seconds to wait after an error before the client is told to try again, because tiled's clients
# come back at once.
_AGAIN = 1.0


class Stream:
    """The updates of one client."""

    def __init__(self, target: Url, how: Access, after: int, messages: Callable[[Event], list[dict[str, Any]]],
                 repeats: bool = False) -> None:
        """`messages`  of an event; it may read, and runs in a thread. `repeats`: also of a cut that becomes a version."""
        self.messages, self.repeats = messages, repeats
        self.events = events_of(_Watch(replace(target, version=None).url(), after, True, None, None, how))
        self.sent = after


def ws_handler(websocket: Any, formatter: Any, schema: dict[str, Any], begin: Callable[[int | None], Stream] | None) -> Any:
    """For tiled's server. `begin` None: the node does not change."""
    async def handler(sequence: int | None = None, already_accepted: bool = False) -> None:
        # Before the client is connected: it believes that it is told of all that comes from then on.
        stream, error = await _begun(begin, sequence)
        # Also after an error: tiled's client waits without end for a connection that is refused (client/stream.py,
        # Subscription.start_in_thread).
        if not already_accepted:
            await websocket.accept()
        await formatter(websocket, schema, None)
        if stream is not None:
            error = await _sent(stream, websocket, formatter)
        elif error is None:
            await websocket.close(code=_NORMAL, reason="a version does not change")
        if error is not None:
            _log.warning("tiled: updates of %s: %s: %s", websocket.url.path, type(error).__name__, error)
            await asyncio.sleep(_AGAIN)
            with contextlib.suppress(RuntimeError):  # The client has gone.
                await websocket.close(code=_TRY_AGAIN, reason="the file cannot be read now")
    return handler


async def _begun(begin: Callable[[int | None], Stream] | None, sequence: int | None) -> tuple[Stream | None, Exception | None]:
    try:
        return (None if begin is None else await asyncio.to_thread(begin, sequence)), None
    except Exception as error:
        return None, error


async def _sent(stream: Stream, websocket: Any, formatter: Any) -> Exception | None:
    """Sends updates until the client goes, or until there is an error."""
    gone = asyncio.create_task(_disconnected(websocket))
    sending = asyncio.create_task(_send(stream, websocket, formatter))
    try:
        await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
        if gone.done() or sending.cancelled():
            return None
        error = sending.exception()
        return error if isinstance(error, Exception) else None
    finally:
        for task in (gone, sending):
            task.cancel()
        await asyncio.gather(gone, sending, return_exceptions=True)
        await stream.events.aclose()


async def _disconnected(websocket: Any) -> None:
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass


async def _send(stream: Stream, websocket: Any, formatter: Any) -> None:
    async for event in stream.events:
        if event.cut == stream.sent and not stream.repeats:  # It has become a version: the bytes are the same.
            continue
        for message in await asyncio.to_thread(stream.messages, event):
            await formatter(websocket, message, None)
        stream.sent = event.cut


# Messages, as of tiled.stream_messages.


def child_created(event: Event, key: str, child: Any) -> dict[str, Any]:
    return {"type": "container-child-created", **_stamp(event), "key": key, "specs": [], "access_tags": [],
            "structure_family": child.structure_family, "metadata": child.metadata(), "data_sources": [data_source(child)]}


def child_changed(event: Event, key: str, child: Any) -> dict[str, Any]:
    return {"type": "container-child-metadata-updated", **_stamp(event), "key": key, "specs": [], "metadata": child.metadata()}


def array_changed(event: Event, uri: str, array: Any) -> dict[str, Any]:
    """`uri` is where the newest cut of it is read."""
    shape = array.structure().shape
    whole = ",".join(f":{size}" for size in shape)
    return {"type": "array-ref", **_stamp(event), "shape": list(shape), "patch": None, "data_source": data_source(array),
            "uri": f"{uri}?slice={whole}" if whole else uri}


def data_source(adapter: Any) -> dict[str, Any]:
    return {"id": None, "structure_family": adapter.structure_family, "structure": asdict(adapter.structure()),
            "mimetype": _MIMETYPE, "parameters": {}, "properties": {}, "assets": [], "management": "external"}


def _stamp(event: Event) -> dict[str, Any]:
    return {"sequence": event.cut, "timestamp": datetime.now(timezone.utc).isoformat()}
