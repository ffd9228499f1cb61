"""A file on a server as a tree of tiled: its versions, and the newest cut with updates for subscribers.

    trees:                                     # of `tiled serve config`
      - path: /run7.h5
        tree: h5mirror.tiled:tree
        args: {url: "h5mirror://node7:7447/run7.h5"}

`run7.h5/12`, `run7.h5/latest` and `run7.h5/live` are the root groups of a version, of the newest version and of the newest
cut. Groups are containers, datasets arrays, attributes metadata. Nothing can be written.

Each request of a client reads one version or cut. tiled lists containers in its event loop, and reads arrays in threads.
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import h5py
from tiled.adapters.array import ArrayAdapter
from tiled.adapters.mapping import MapAdapter
from tiled.server.core import NoEntry
from tiled.structures.array import ArrayStructure
from tiled.structures.container import ContainerStructure

from ._tiled_hdf5 import attributes, keys_of, member, read, structure_of, walk
from ._tiled_stream import Stream, array_changed, child_changed, child_created, data_source, ws_handler
from ._url import Url
from ._versions import versions
from .fsspec import H5MirrorFile, H5MirrorFileSystem

_LIVE = "live"
_LATEST = "latest"
# Versions and cuts that are kept open.
_KEPT = 8


def tree(url: str, **storage_options: Any) -> "FileAdapter | GroupAdapter":
    """The tree of a file; of a URL with a version its root group. `storage_options` are those of
    h5mirror.fsspec.H5MirrorFileSystem.

    Errors: those of h5mirror.open(). A file that does not exist yet has an empty tree.
    """
    source = _Source(url, H5MirrorFileSystem(**storage_options))
    if source.target.version is not None:
        return GroupAdapter.of(_Place(source, source.moment(source.target.version), (), False))
    return FileAdapter.of(source)


class _Moment:
    """One version or cut, open as long as anything reads it."""

    def __init__(self, file: H5MirrorFile) -> None:
        self.cut, self.version, self.size = file.cut, file.version, int(file.size)
        self._file = file  # h5py keeps none.
        self.h5 = h5py.File(file, "r")
        self._keys: dict[tuple[str, ...], list[str]] = {}

    def keys(self, path: tuple[str, ...]) -> list[str]:
        """Of a group, those that are served; sorted. It is asked once: a moment does not change."""
        if path not in self._keys:
            self._keys[path] = keys_of(self.h5, path)
        return self._keys[path]


class _Source:
    """A file on a server. Thread-safe."""

    def __init__(self, url: str, fs: H5MirrorFileSystem) -> None:
        self.fs = fs
        self.target: Url = fs._target(url)
        self._lock = threading.Lock()
        self._kept: dict[str, _Moment] = {}  # by ukey; the last is the newest used

    def moment(self, version: str | None) -> _Moment:
        """Of a version, or None: the newest cut. The server is asked which bytes these are now."""
        file = self.fs._open(replace(self.target, version=version).url())
        ukey = file.details["ukey"]
        with self._lock:
            found = self._kept.pop(ukey, None)
            if found is not None:
                self._kept[ukey] = found
        if found is not None:
            file.close()
            return found
        opened = _Moment(file)  # Not under the lock: h5py has one of its own, and the server may be slow.
        with self._lock:
            found = self._kept.setdefault(ukey, opened)
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return found

    def numbers(self) -> list[str]:
        """Of all versions, oldest first."""
        how = self.fs._how
        return [str(each.number) for each in versions(replace(self.target, version=None).url(), ca=how.ca, token=how.token,
                                                      timeout=how.timeout)]


class _Place:
    """A group or dataset of a moment. `is_live`: its key was "live", so later cuts are updates of it."""

    def __init__(self, source: _Source, moment: _Moment, path: tuple[str, ...], is_live: bool) -> None:
        self.source, self.moment, self.path, self.is_live = source, moment, path, is_live

    def child(self, key: str) -> Any:
        """The child's adapter. KeyError: no served object is there."""
        found = member(self.moment.h5, self.path, key)
        place = _Place(self.source, self.moment, (*self.path, key), self.is_live)
        return GroupAdapter.of(place) if isinstance(found, h5py.Group) else DatasetAdapter.of(place, found)

    def now(self) -> Any:
        """The adapter of that path in the newest cut. KeyError: there is none."""
        here: Any = GroupAdapter.of(_Place(self.source, self.source.moment(None), (), True))
        for key in self.path:
            here = here[key]
        return here


class _Children(Mapping[str, Any]):
    """The members of a group."""

    def __init__(self, place: _Place) -> None:
        self._place = place

    def __getitem__(self, key: str) -> Any:
        return self._place.child(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._place.moment.keys(self._place.path))

    def __len__(self) -> int:
        return len(self._place.moment.keys(self._place.path))


class _Versions(Mapping[str, Any]):
    """The moments of a file. Other names of versions, as "latest-3", are found and not listed."""

    def __init__(self, source: _Source) -> None:
        self._source = source

    def __getitem__(self, key: str) -> Any:
        version = None if key == _LIVE else key
        if version is not None and Url.parse(Url(None, "x", version).url()).version != version:
            raise KeyError(key)
        try:
            return GroupAdapter.of(_Place(self._source, self._source.moment(version), (), version is None))
        except FileNotFoundError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        try:
            numbers = self._source.numbers()
        except FileNotFoundError:
            return iter(())
        return iter([_LIVE, *([_LATEST] if numbers else []), *numbers])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Container(MapAdapter):  # type: ignore[misc,unused-ignore]
    """A mapping whose members tiled's server finds in a thread, and not in its event loop."""

    def structure(self) -> ContainerStructure:
        return ContainerStructure(keys=list(self._mapping))

    async def lookup_adapter(self, segments: list[str]) -> Any:
        """NoEntry: there is none."""
        return await asyncio.to_thread(self._find, segments)

    def _find(self, segments: list[str]) -> Any:
        here: Any = self
        try:
            for segment in segments:
                here = here[segment]
        except (KeyError, TypeError):
            raise NoEntry(segments) from None
        return here


class FileAdapter(_Container):
    """The versions of a file. Subscribers are told of each new version, and of each cut as new metadata of "live"."""

    _source: _Source

    @classmethod
    def of(cls, source: _Source) -> "FileAdapter":
        adapter = cls(_Versions(source))
        adapter._source = source
        return adapter

    def make_ws_handler(self, websocket: Any, formatter: Any, _uri: str) -> Any:
        """tiled's server calls it for a client that subscribes."""
        def begin(start: int | None) -> Stream:
            told: set[int] = set()

            def messages(event: Any) -> list[dict[str, Any]]:
                live = self[_LIVE]
                out = [child_changed(event, _LIVE, live)]
                if event.version is not None and event.version not in told:
                    told.add(event.version)
                    out.append(child_created(event, str(event.version), self[str(event.version)]))
                return out

            after = _after(self._source, start)
            return Stream(self._source.target, self._source.fs._how, after, messages, repeats=True)

        return ws_handler(websocket, formatter, {"type": "container-schema", "version": 1}, begin)


class GroupAdapter(_Container):
    """A group of one moment. Subscribers of a live one are told of new members."""

    _place: _Place

    @classmethod
    def of(cls, place: _Place) -> "GroupAdapter":
        metadata = attributes(walk(place.moment.h5, place.path))
        if not place.path:
            metadata["h5mirror"] = {"cut": place.moment.cut, "version": place.moment.version, "size": place.moment.size}
        adapter = cls(_Children(place), metadata=metadata)
        adapter._place = place
        return adapter

    def make_ws_handler(self, websocket: Any, formatter: Any, _uri: str) -> Any:
        """As FileAdapter's."""
        def begin(start: int | None) -> Stream:
            place = self._place
            # A client that comes again has missed members: it is told of all.
            told = set(place.now()) if start is None else set()

            def messages(event: Any) -> list[dict[str, Any]]:
                group = place.now()
                new = [key for key in group if key not in told]
                told.update(new)
                return [child_created(event, key, group[key]) for key in new]

            return Stream(place.source.target, place.source.fs._how, _after(place.source, start), messages)

        return ws_handler(websocket, formatter, {"type": "container-schema", "version": 1},
                          begin if self._place.is_live else None)


class DatasetAdapter(ArrayAdapter):  # type: ignore[misc,unused-ignore]
    """A dataset of one moment. Subscribers of a live one are told of each cut, and where to read the array."""

    _place: _Place

    @classmethod
    def of(cls, place: _Place, dataset: h5py.Dataset) -> "DatasetAdapter":
        structure: ArrayStructure = structure_of(dataset)
        adapter = cls(dataset, structure, metadata=attributes(dataset))
        adapter._place = place
        return adapter

    def read(self, slice: Any = ...) -> Any:
        """The elements of a slice; no others are fetched."""
        return read(self._array, slice)

    def read_block(self, block: Any, slice: Any = ...) -> Any:
        part = read(self._array, block.slice_from_chunks(self._structure.chunks))
        return part[tuple(slice)] if isinstance(slice, tuple) and slice else part

    def make_ws_handler(self, websocket: Any, formatter: Any, uri: str) -> Any:
        """As FileAdapter's."""
        def begin(start: int | None) -> Stream:
            place = self._place

            def messages(event: Any) -> list[dict[str, Any]]:
                try:
                    now = place.now()
                except KeyError:
                    return []
                return [array_changed(event, uri, now)] if isinstance(now, DatasetAdapter) else []

            return Stream(place.source.target, place.source.fs._how, _after(place.source, start), messages)

        schema = {"type": "array-schema", "version": 1, "data_type": data_source(self)["structure"]["data_type"]}
        return ws_handler(websocket, formatter, schema, begin if self._place.is_live else None)


def _after(source: _Source, start: int | None) -> int:
    """The cut after which a client's updates begin."""
    return source.moment(None).cut if start is None else max(0, start - 1)
