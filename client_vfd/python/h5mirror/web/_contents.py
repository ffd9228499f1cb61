"""Answers h5web's requests about a file, by h5grove, from files that stay open. Runs in a
worker."""

import errno
import itertools
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import h5grove.content
import h5grove.encoders
import h5grove.utils
import h5py
import numpy as np
from h5grove.models import LinkResolution

from .._control import status
from .._open import open as open_file
from .._url import Url
from ._compare import Block, CannotCompare, compare
from ._frames import BODY_MAX
from ._refused import Refused

_FILES_KEPT = 8
_PATHS_MAX = 1_000_000
# Of a group: each takes 0.4 ms here, and a browser cannot show more at once.
_CHILDREN_MAX = 1000
_FORMATS = {"json": "json", "bin": "bin", "csv": "csv", "npy": "npy", "tiff": "tiff"}
# As the server writes it: "0" would be another way to say "the newest".
_VERSION = re.compile(r"[1-9][0-9]{0,17}")
# Of the driver's words where a cut is not held any more, or the name has got another file.
_GONE = re.compile(r"snapshot expired|reopen|pruned|errno = 116|stale", re.IGNORECASE)


@dataclass(frozen=True)
class Opened:
    """A file, and which bytes of it the driver says that it reads."""

    file: h5py.File
    version: int
    """0: a cut that is no version."""
    cut: int


@dataclass(frozen=True)
class Answer:
    body: bytes
    kind: str = "json"
    """One of _FORMATS."""
    left_out: int = 0
    """Of a group's children."""


@dataclass(frozen=True)
class _State:
    """Which bytes of a file are meant, for ever: a version, or the first cut that was opened for `cut`."""

    name: str
    version: str | None
    """Its number; None: the cut is meant."""
    cut: int | None


class Contents:
    """The files of one server, for one caller. Used by one thread."""

    def __init__(self, server: str, ca: str | None, token: str | None, is_fenced: bool) -> None:
        self._server, self._ca, self._token, self._is_fenced = server, ca, token, is_fenced
        self._files: OrderedDict[_State, Opened] = OrderedDict()

    def answer(self, request: dict[str, Any]) -> tuple[Answer, Opened]:
        """Errors: Refused."""
        call = _CALLS.get(str(request.get("call")))
        if call is None:
            raise Refused(404, f"there is no call {request.get('call')!r}")
        state = _state_of(request)
        try:
            opened = self._open(state)
            return call(self, opened.file, _Query(request.get("query"))), opened
        except Refused:
            raise
        except Exception as error:
            refused = _in_words(error, state.name)
            if refused.status in (410, 503):
                self._forget(state)
            raise refused from None

    def _open(self, state: _State) -> Opened:
        known = self._files.get(state)
        if known is not None:
            self._files.move_to_end(state)
            return known
        url = Url(None, state.name, state.version).url()
        more = {key: value for key, value in (("ca", self._ca), ("token", self._token)) if value is not None}
        file = open_file(url, server=self._server, timeout="10s", **more)
        now = status(file)
        opened = Opened(file, now.version or 0, now.cut or 0)
        if state.cut is not None and opened.cut < state.cut:
            file.close()  # A server that was killed has gone back.
            raise Refused(410, f"{state.name}: cut {state.cut} is not there any more; its newest is shown instead")
        self._files[state] = opened
        if len(self._files) > _FILES_KEPT:
            self._files.popitem(last=False)[1].file.close()
        return opened

    def _forget(self, state: _State) -> None:
        known = self._files.pop(state, None)
        if known is not None:
            known.file.close()

    # The calls.

    def meta(self, file: h5py.File, query: "_Query") -> Answer:
        content = self._content(file, query)
        if not isinstance(content, h5grove.content.GroupContent):
            return _json(content.metadata())
        group = file[content.path]
        # As GroupContent.metadata() has them; the rest is found by paths().
        children = [h5grove.content.create_content(file, f"{content.path.rstrip('/')}/{name}").metadata(0)
                    for name in itertools.islice(group, _CHILDREN_MAX)]
        answer = _json({**content.metadata(0), "children": children})
        return replace(answer, left_out=len(group) - len(children))

    def attr(self, file: h5py.File, query: "_Query") -> Answer:
        content = self._content(file, query)
        if not isinstance(content, h5grove.content.ResolvedEntityContent):
            raise Refused(422, f"{content.path} is a link that leads to nothing")
        return _json(content.attributes(query.all("attr_keys") or None))

    def data(self, file: h5py.File, query: "_Query") -> Answer:
        content = self._dataset(file, query)
        kind = _FORMATS.get(query.one("format") or "json")
        if kind is None:
            known = ", ".join(_FORMATS)
            raise Refused(422, f"format {query.one('format')!r} is not one of {known}")
        is_flat = (query.one("flatten") or "false").lower() != "false"
        data = content.data(query.one("selection"), is_flat, query.one("dtype") or "origin")
        return _bounded(h5grove.encoders.encode(data, kind).content, kind)

    def stats(self, file: h5py.File, query: "_Query") -> Answer:
        return _json(self._dataset(file, query).data_stats(query.one("selection")))

    def compare(self, file: h5py.File, query: "_Query") -> Answer:
        """The elements of a dataset that differ from those of another version."""
        other = self._open(_state_of({"name": query.one("file"), "version": query.one("other")})).file
        datasets = [self._readable(each, query) for each in (other, file)]
        try:
            return _json(compare(datasets[0], datasets[1], _block(query)))
        except CannotCompare as why:
            raise Refused(422, f"{query.one('path')}: {why}") from None

    def paths(self, file: h5py.File, query: "_Query") -> Answer:
        content = self._content(file, query)
        if not isinstance(content, h5grove.content.GroupContent):
            raise Refused(422, f"{content.path} is no group")
        found = [content.path]
        prefix = content.path.rstrip("/")

        def note(name: bytes) -> bool | None:
            found.append(f"{prefix}/{name.decode(errors='replace')}")
            return True if len(found) > _PATHS_MAX else None

        group = file[content.path]  # Which its links do not keep open.
        group.id.links.visit(note)
        return _json(found)

    def _content(self, file: h5py.File, query: "_Query") -> Any:
        links = (query.one("resolve_links") or "only_valid").lower()
        resolution = {"true": LinkResolution.ALL, "all": LinkResolution.ALL, "false": LinkResolution.NONE,
                      "none": LinkResolution.NONE, "only_valid": LinkResolution.ONLY_VALID}.get(links)
        if resolution is None:
            raise Refused(422, f"resolve_links {links!r} is not one of all, none and only_valid")
        return h5grove.content.create_content(file, query.one("path") or "/", resolution)

    def _readable(self, file: h5py.File, query: "_Query") -> h5py.Dataset:
        content = self._content(file, query)
        if not isinstance(content, h5grove.content.DatasetContent):
            raise Refused(422, f"{content.path} is no dataset")
        dataset = file[content.path]
        if not self._is_fenced and (dataset.external or dataset.is_virtual):
            raise Refused(403, f"{content.path} has its data in other files, which are not read on a host without Landlock")
        return dataset

    def _dataset(self, file: h5py.File, query: "_Query") -> Any:
        dataset = self._readable(file, query)
        content = self._content(file, query)
        size = _selected_bytes(dataset, query.one("selection"))
        if size > BODY_MAX:
            raise Refused(413, f"{content.path}: the selection has {size >> 20} MiB, and at most {BODY_MAX >> 20} MiB are "
                          "shown at once; choose a smaller part, or download the file")
        return content


class _Query:
    """The query of a request: lists of texts."""

    def __init__(self, query: Any) -> None:
        self._query: dict[str, Any] = query if isinstance(query, dict) else {}

    def one(self, key: str) -> str | None:
        values = self.all(key)
        return values[0] if values else None

    def all(self, key: str) -> list[str]:
        return [str(each) for each in self._query.get(key, ())]


_CALLS: dict[str, Callable[[Contents, h5py.File, _Query], Answer]] = {
    "meta": Contents.meta, "attr": Contents.attr, "data": Contents.data, "stats": Contents.stats, "paths": Contents.paths,
    "compare": Contents.compare}


def _state_of(request: dict[str, Any]) -> _State:
    name, version, cut = request.get("name"), request.get("version"), request.get("cut")
    if not isinstance(name, str) or not name:
        raise Refused(400, "the request names no file")
    if isinstance(version, str) and _VERSION.fullmatch(version):
        return _State(name, version, None)
    if version is None and isinstance(cut, int):
        return _State(name, None, cut)
    raise Refused(400, "the request names neither the number of a version nor a cut")


def _block(query: _Query) -> Block | None:
    """Refused: it is no list of numbers."""
    offset, extent = query.one("offset"), query.one("extent")
    if offset is None or extent is None:
        return None
    try:
        return Block(*(tuple(int(each) for each in text.split(",") if each) for text in (offset, extent)))
    except ValueError:
        raise Refused(400, f"offset {offset[:200]!r} and extent {extent[:200]!r} are no lists of numbers") from None


def _selected_bytes(dataset: h5py.Dataset, selection: str | None) -> int:
    """ValueError, IndexError: no selection of it."""
    if dataset.shape is None:
        return 0
    size = int(np.prod(dataset.shape, dtype=object)) if dataset.shape else 1
    if selection is not None:
        # The shape's dimensions as one byte that is repeated.
        size = int(np.broadcast_to(np.uint8(0), dataset.shape)[h5grove.utils.parse_slice(selection)].size)
    return size * int(dataset.dtype.itemsize)


def _json(content: Any) -> Answer:
    return _bounded(h5grove.encoders.encode(content, "json").content, "json")


def _bounded(body: bytes, kind: str) -> Answer:
    if len(body) > BODY_MAX:
        raise Refused(413, f"the answer has {len(body) >> 20} MiB, and at most {BODY_MAX >> 20} MiB are shown at once")
    return Answer(body, kind)


def _in_words(error: Exception, name: str) -> Refused:
    text = str(error) or type(error).__name__
    if isinstance(error, h5grove.utils.NotFoundError):
        return Refused(404, text)
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ESTALE or _GONE.search(text):
        return Refused(410, f"{name}: this state is not held any more: {text}")
    if isinstance(error, FileNotFoundError):
        return Refused(404, text)
    if isinstance(error, PermissionError):
        return Refused(403, text)
    if isinstance(error, (ConnectionError, TimeoutError)):
        return Refused(503, text)
    if isinstance(error, MemoryError):
        return Refused(413, f"{name}: there is not enough memory for this; choose a smaller part")
    return Refused(422, f"{name}: {text}")
