"""A file on a server as a tree of tiled, live or as of a version.

    trees:                                     # of `tiled serve config`
      - path: /run7
        tree: h5mirror.tiled:tree
        args: {url: "h5mirror://node7:7447/run7.h5"}

Groups are containers, datasets arrays, attributes metadata. Without a version the tree is the newest cut at each request, and
each new cut is an update of its arrays and containers for who subscribes to them.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

import h5py
import numpy
from tiled.adapters.array import ArrayAdapter
from tiled.adapters.mapping import MapAdapter
from tiled.structures.array import ArrayStructure
from tiled.structures.container import ContainerStructure

from ._events import Event, _Watch
from ._reader import Reader
from .fsspec import H5MirrorFile, H5MirrorFileSystem

_MIMETYPE = "application/x-hdf5"


def tree(url: str, **storage_options: Any) -> "GroupAdapter":
    """The tree of a file. `storage_options` are those of h5mirror.fsspec.H5MirrorFileSystem.

    Errors: those of h5mirror.open().
    """
    return GroupAdapter.of(_Source(url, H5MirrorFileSystem(**storage_options)), "/", None)


class _Moment:
    """One version or cut, open as long as an adapter reads it."""

    def __init__(self, file: H5MirrorFile) -> None:
        self.ukey: str = file.details["ukey"]
        self._file = file  # h5py keeps none.
        self.h5 = h5py.File(file, "r")


class _Source:
    """A file, and what it is now. Thread-safe."""

    def __init__(self, url: str, fs: H5MirrorFileSystem) -> None:
        self.fs = fs
        self.target = fs._target(url)
        self._url = url
        self._lock = threading.Lock()
        self._moment: _Moment | None = None

    @property
    def is_live(self) -> bool:
        return self.target.version is None

    def now(self) -> _Moment:
        with self._lock:
            if self._moment is None or (self.is_live and self.fs.ukey(self._url) != self._moment.ukey):
                self._moment = _Moment(self.fs._open(self._url))
            return self._moment

    def watch(self, after: int) -> _Watch:
        return _Watch(self.target.url(), after, True, None, None, self.fs._how)

    def cut(self) -> int:
        with self.fs._open(self._url) as file:
            return int(file.cut)


class _Children(Mapping[str, Any]):
    """Of a group: as of a moment, or of now."""

    def __init__(self, source: _Source, path: str, moment: _Moment | None) -> None:
        self._source, self._path, self._moment = source, path, moment

    def __getitem__(self, key: str) -> Any:
        moment = self._moment or self._source.now()
        found = _member(moment, self._path, key)
        path = f"{self._path.rstrip('/')}/{key}"
        if isinstance(found, h5py.Group):
            return GroupAdapter.of(self._source, path, moment)
        if found is not None:
            return DatasetAdapter.of(self._source, path, moment, found)
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        moment = self._moment or self._source.now()
        return iter([key for key in moment.h5[self._path] if _member(moment, self._path, key) is not None])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Streams:
    """Updates of a node by new cuts."""

    _source: _Source
    _path: str

    def make_ws_handler(self, websocket: Any, formatter: Any, uri: str) -> Any:
        """What tiled's server runs for a client that subscribes."""
        async def handler(sequence: int | None = None, already_accepted: bool = False) -> None:
            # First: of what comes once a client is connected it is told.
            updates = await asyncio.to_thread(self._updates, uri)
            after = await asyncio.to_thread(self._source.cut) if sequence is None else max(0, sequence - 1)
            if not already_accepted:
                await websocket.accept()
            await formatter(websocket, self._schema(), None)
            if self._source.is_live:
                await self._send_updates(websocket, formatter, after, updates)
            else:
                await websocket.close(code=1000, reason="a version does not change")
        return handler

    async def _send_updates(self, websocket: Any, formatter: Any, after: int,
                            updates: Callable[[Event], list[dict[str, Any]]]) -> None:
        """Sends what each cut after a given one brings, until the client goes."""
        gone = asyncio.create_task(_disconnected(websocket))
        try:
            watch, sent = self._source.watch(after), after
            while not gone.done():
                event = await asyncio.to_thread(watch.step)
                if event is None or event.cut <= sent or gone.done():
                    continue
                for message in await asyncio.to_thread(updates, event):
                    await formatter(websocket, message, None)
                sent = event.cut
        finally:
            gone.cancel()

    def _schema(self) -> dict[str, Any]:
        raise NotImplementedError

    def _updates(self, uri: str) -> Callable[[Event], list[dict[str, Any]]]:
        """For one client: the messages of an event."""
        raise NotImplementedError


async def _disconnected(websocket: Any) -> None:
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass


class GroupAdapter(_Streams, MapAdapter):  # type: ignore[misc,unused-ignore]
    """A group. Subscribers are told of new members."""

    @classmethod
    def of(cls, source: _Source, path: str, moment: _Moment | None) -> "GroupAdapter":
        """`moment` None: as it is at each request."""
        adapter = cls(_Children(source, path, moment))
        adapter._source, adapter._path, adapter._moment = source, path, moment
        return adapter

    def structure(self) -> ContainerStructure:
        return ContainerStructure(keys=list(self._mapping))

    def metadata(self) -> dict[str, Any]:
        return _attributes((self._moment or self._source.now()).h5[self._path])

    def _schema(self) -> dict[str, Any]:
        return {"type": "container-schema", "version": 1}

    def _updates(self, uri: str) -> Callable[[Event], list[dict[str, Any]]]:
        told = set(_Children(self._source, self._path, self._source.now()))

        def messages(event: Event) -> list[dict[str, Any]]:
            children = _Children(self._source, self._path, self._source.now())
            new = [key for key in children if key not in told]
            told.update(new)
            return [{"type": "container-child-created", **_stamp(event), "key": key, "specs": [], "access_tags": [],
                     "structure_family": children[key].structure_family, "metadata": children[key].metadata(),
                     "data_sources": [_data_source(children[key])]} for key in new]
        return messages


class DatasetAdapter(_Streams, ArrayAdapter):  # type: ignore[misc,unused-ignore]
    """A dataset at one moment. Subscribers are told of each cut, and where to read the array."""

    @classmethod
    def of(cls, source: _Source, path: str, moment: _Moment, dataset: h5py.Dataset) -> "DatasetAdapter":
        adapter = cls(dataset, ArrayStructure.from_array(_Shape(dataset)), metadata=_attributes(dataset))
        adapter._source, adapter._path, adapter._moment = source, path, moment
        return adapter

    def read(self, slice: Any = ...) -> Any:
        return numpy.asarray(self._array[tuple(slice) if isinstance(slice, tuple) else slice])

    def read_block(self, block: Any, slice: Any = ...) -> Any:
        part = numpy.asarray(self._array[tuple(block.slice_from_chunks(self._structure.chunks))])
        return part[tuple(slice)] if isinstance(slice, tuple) and slice else part

    def _schema(self) -> dict[str, Any]:
        return {"type": "array-schema", "version": 1, "data_type": asdict(self.structure().data_type)}

    def _updates(self, uri: str) -> Callable[[Event], list[dict[str, Any]]]:
        group, _, key = self._path.rpartition("/")

        def messages(event: Event) -> list[dict[str, Any]]:
            children = _Children(self._source, group or "/", self._source.now())
            now = children.get(key)
            if not isinstance(now, DatasetAdapter):
                return []
            shape = now.structure().shape
            whole = ",".join(f":{size}" for size in shape)
            return [{"type": "array-ref", **_stamp(event), "shape": list(shape), "patch": None,
                     "data_source": _data_source(now), "uri": f"{uri}?slice={whole}" if whole else uri}]
        return messages


class _Shape:
    """What tiled wants to know of an array. Reads nothing."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        self.shape, self.dtype, self.chunks = dataset.shape, dataset.dtype, dataset.chunks

    def __array__(self) -> Any:
        raise TypeError("is not read")


def _member(moment: _Moment, path: str, key: str) -> Any:
    """A member of a group that is served; else None. It is nothing that lies in another file: that would be one of the
    machine where this runs."""
    found = moment.h5[path].get(key) if path in moment.h5 else None
    if found is None or h5py.h5o.get_info(found.id).fileno != h5py.h5o.get_info(moment.h5.id).fileno:
        return None
    if isinstance(found, h5py.Group):
        return found
    # Not text and arrays of any length, nor references, nor what has no space.
    is_plain = isinstance(found, h5py.Dataset) and found.shape is not None and not found.dtype.hasobject
    return found if is_plain and not found.is_virtual and found.external is None else None


def _stamp(event: Event) -> dict[str, Any]:
    return {"sequence": event.cut, "timestamp": datetime.now(timezone.utc).isoformat()}


def _data_source(adapter: Any) -> dict[str, Any]:
    return {"id": None, "structure_family": adapter.structure_family, "structure": asdict(adapter.structure()),
            "mimetype": _MIMETYPE, "parameters": {}, "properties": {}, "assets": [], "management": "external"}


def _attributes(item: Any) -> dict[str, Any]:
    """Those that JSON can hold."""
    plain = {key: _plain(value) for key, value in item.attrs.items()}
    return {key: value for key, value in plain.items() if value is not None}


def _plain(value: Any) -> Any:
    """None: JSON has no such value."""
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return None if value.dtype.fields is not None else _plain(value.tolist())
    if isinstance(value, list):
        values = [_plain(each) for each in value]
        return None if any(each is None for each in values) else values
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, (str, int, float, bool)) else None
