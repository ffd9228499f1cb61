"""The files of servers as an fsspec file system: h5mirror://HOST[:PORT]/NAME[@VERSION] and h5mirror+unix://...

    fsspec.open("h5mirror://node7:7447/run7.h5@latest")
    fsspec.filesystem("h5mirror").info("h5mirror://node7:7447/run7.h5@tag:published")

Paths are whole URLs, as of fsspec's http. A file is the bytes of one moment: what an open finds is read until its close, also
by what unpickles it. Without a version it is the newest cut.
"""

import atexit
import contextlib
import errno
import functools
import os
import posixpath
from collections.abc import Iterable
from dataclasses import replace
from glob import has_magic
from typing import Any

import h5py
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
from fsspec.utils import stringify_path

from ._files import list_files
from ._reader import Access, Pin, Reader, Readers, access
from ._url import Url

_UNIX = "h5mirror+unix"
# Options of fsspec itself.
_FSSPEC_OPTIONS = {"asynchronous", "batch_size", "dircache", "listings_expiry_time", "loop", "max_paths", "skip_instance_cache",
                   "use_listings_cache"}


class H5MirrorFileSystem(AbstractFileSystem):  # type: ignore[misc,unused-ignore]
    """The files of all servers, for reading. Thread-safe, and usable in a forked child.

    `server`     HOST[:PORT] or unix:PATH, for URLs that name none.
    `ca`, `token`, `timeout`, `cache_bytes`, `agent`  as of h5mirror.open(); what is not given comes from the client's own
                 configuration. `token` is better "@FILE": fsspec writes its options to where its file systems are
                 pickled.

    Errors: FileNotFoundError, PermissionError, ConnectionError, TimeoutError; ValueError: a URL that is none.
            OSError (ESTALE): what was opened cannot be read any more; open it again.
    """

    protocol = ("h5mirror", _UNIX)
    root_marker = ""

    def __init__(self, server: str | None = None, ca: str | os.PathLike[str] | None = None, token: str | None = None,
                 timeout: float = 5.0, cache_bytes: int = 64 << 20, agent: str = "auto", **storage_options: Any) -> None:
        unknown = storage_options.keys() - _FSSPEC_OPTIONS
        if unknown:
            raise TypeError(f"h5mirror knows no option {', '.join(map(repr, sorted(unknown)))}")
        super().__init__(**storage_options)
        self._server = server
        self._how: Access = access(ca, token, timeout, cache_bytes=cache_bytes, agent=agent)
        self._readers = Readers(self._how)

    @property
    def storage_options(self) -> dict[str, Any]:
        """The options that are pickled, and written as JSON: with absolute paths."""
        given: dict[str, Any] = self._given
        return {**given, **{key: getattr(self._how, key) for key in ("ca", "token") if given.get(key) is not None}}

    @storage_options.setter
    def storage_options(self, options: dict[str, Any]) -> None:  # fsspec sets it.
        self._given = options

    def to_dict(self, *, include_password: bool = True) -> dict[str, Any]:
        """As fsspec's; `include_password=False` leaves the token out."""
        options: dict[str, Any] = super().to_dict(include_password=include_password)
        if not include_password:
            options.pop("token", None)
        return options

    # Paths.

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """Whole URLs stay; a path without a scheme gets it."""
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        text = stringify_path(path)
        scheme, separator, rest = text.partition("://")
        if not separator:
            scheme, rest = "h5mirror", text
        return f"{scheme}://{rest.rstrip('/')}"

    def unstrip_protocol(self, name: str) -> str:
        return str(self._strip_protocol(name))

    @classmethod
    def _parent(cls, path: str) -> str:
        directory = Url.parse_directory(cls._strip_protocol(path))
        return replace(directory, name=posixpath.dirname(directory.name)).url()

    def _target(self, path: str) -> Url:
        target = Url.parse(self._strip_protocol(path))
        return replace(target, server=target.server or self._server)

    def _directory(self, path: str) -> Url:
        directory = Url.parse_directory(self._strip_protocol(path))
        return replace(directory, server=directory.server or self._server)

    # Lists of files and versions.

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Of a file: size, version (None: a cut that is no version), cut, and ukey, which differs
        for different bytes."""
        url = self._strip_protocol(path)
        if self._directory(path).name:
            target = self._target(path)
            try:
                with contextlib.closing(Reader(target, self._how)) as reader:
                    return _info(url, reader)
            except FileNotFoundError:
                if target.version is not None or not self._is_directory(path):
                    raise
        else:
            self._is_directory(path)  # The server must answer.
        return {"name": url, "size": 0, "type": "directory"}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """The entries of a directory, made from one list of all files below it."""
        directory = self._directory(path)
        try:
            files = list_files(directory, self._how)
        except FileNotFoundError:
            found = [self.info(path)]
            return found if detail else [each["name"] for each in found]
        prefix = directory.name + "/" if directory.name else ""
        entries: dict[str, dict[str, Any]] = {}
        for file in files:
            child, slash, _rest = file.name.removeprefix(prefix).partition("/")
            url = self._named(path, directory, prefix + child)
            entries[url] = ({"name": url, "size": 0, "type": "directory"} if slash else
                            {"name": url, "size": file.size, "type": "file", "mtime": file.modified})
        return list(entries.values()) if detail else list(entries)

    def find(self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False,
             **more: Any) -> Any:
        """The files below a directory, by one call."""
        if maxdepth is not None or withdirs:
            return super().find(path, maxdepth=maxdepth, withdirs=withdirs, detail=detail, **more)
        directory = self._directory(path)
        try:
            files = list_files(directory, self._how)
        except FileNotFoundError:
            return super().find(path, detail=detail, **more)
        found = {url: {"name": url, "size": each.size, "type": "file", "mtime": each.modified}
                 for each in files for url in (self._named(path, directory, each.name),)}
        return found if detail else list(found)

    def glob(self, path: str, maxdepth: int | None = None, **more: Any) -> Any:
        """By a pattern. ValueError: in a URL of a socket, whose '?' would be part of it."""
        url = self._strip_protocol(path)
        if url.startswith(_UNIX):
            if not has_magic(Url.parse_directory(url).name):
                found = {url: self.info(url)} if self.exists(url) else {}
                return found if more.get("detail") else list(found)
            raise ValueError(f"{path!r}: a URL of a socket takes no pattern; ls() and find() list its directories")
        return super().glob(path, maxdepth=maxdepth, **more)

    def exists(self, path: str, **_: Any) -> bool:
        """Errors but FileNotFoundError are raised: a server that is away has not lost its files."""
        return self._type(path) is not None

    def isfile(self, path: str) -> bool:
        return self._type(path) == "file"

    def isdir(self, path: str) -> bool:
        return self._type(path) == "directory"

    def ukey(self, path: str) -> str:
        return str(self.info(path)["ukey"])

    def pinned(self, path: str) -> str:
        """The URL with the number of the version that it means now. References that name it stay true.

        ValueError: it is a cut that is no version.
        """
        version = self.info(path).get("version")
        if version is None:
            raise ValueError(f"{path}: no version, but a cut that its writer goes on from: name one, as in {path}@latest")
        return replace(Url.parse(self._strip_protocol(path)), version=str(version)).url()

    # Bytes.

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """The bytes [start, end); negative ones count from the end."""
        return self._readers.use(self._target(path), functools.partial(_slice, start, end))  # type: ignore[no-any-return]

    def cat_ranges(self, paths: list[str], starts: Any, ends: Any, max_gap: int | None = None, on_error: str = "return",
                   **_: Any) -> list[Any]:
        """All ranges of one path are of one version. `max_gap` has no effect: ranges that are near come together anyway."""
        if not isinstance(paths, list):
            raise TypeError("paths: a list")
        starts = list(starts) if isinstance(starts, Iterable) else [starts] * len(paths)
        ends = list(ends) if isinstance(ends, Iterable) else [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            raise ValueError("paths, starts and ends: as many of each")
        places: dict[str, list[int]] = {}
        for place, path in enumerate(paths):
            places.setdefault(path, []).append(place)
        out: list[Any] = [None] * len(paths)
        for path, mine in places.items():
            try:
                parts = self._readers.use(self._target(path), functools.partial(_slices, [(starts[i], ends[i]) for i in mine]))
            except Exception as error:
                if on_error != "return":
                    raise
                parts = [error] * len(mine)
            for place, part in zip(mine, parts):
                out[place] = part
        return out

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, autocommit: bool = True, cache_options: Any = None,
              cache_type: str = "none", size: int | None = None, pin: Pin | None = None, **_: Any) -> "H5MirrorFile":
        if mode != "rb":
            raise OSError(errno.EROFS, "a server's file is opened for reading only; to write, open the local file with "
                          "h5py.File(path, driver='h5mirror', server=...)", path)
        return H5MirrorFile(self, path, Reader(self._target(path), self._how, pin), block_size, cache_type, cache_options)

    def invalidate_cache(self, path: str | None = None) -> None:
        """Closes the files that cat_file() keeps open."""
        self._readers.clear()
        super().invalidate_cache(path)

    def _named(self, path: str, directory: Url, name: str) -> str:
        """As the path names the server."""
        shown = directory if Url.parse_directory(self._strip_protocol(path)).server else replace(directory, server=None)
        return replace(shown, name=name).url()

    def _is_directory(self, path: str) -> bool:
        try:
            list_files(self._directory(path), self._how)
        except FileNotFoundError:
            return False
        return True

    def _type(self, path: str) -> str | None:
        try:
            return str(self.info(path)["type"])
        except FileNotFoundError:
            return None


class H5MirrorFile(AbstractBufferedFile):  # type: ignore[misc,unused-ignore]
    """One version or cut, open for reading. `path` is the URL that was asked for, and `url` that of the version.

    Nothing is buffered here, unless fsspec's cache_type says so: what was read lies in the memory of all readers.
    """

    def __init__(self, fs: H5MirrorFileSystem, path: str, reader: Reader, block_size: Any, cache_type: str,
                 cache_options: Any) -> None:
        self._reader = reader
        self._opened = path
        asked = fs._strip_protocol(path)
        self.url = asked if reader.version is None else replace(Url.parse(asked), version=str(reader.version)).url()
        super().__init__(fs, asked, "rb", block_size, cache_type=cache_type, cache_options=cache_options, size=reader.size)
        self.details = _info(self.url, reader)

    @property
    def version(self) -> int | None:
        """None: it is a cut that is no version."""
        return self._reader.version

    @property
    def cut(self) -> int:
        return self._reader.cut

    def readinto(self, b: Any) -> int:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        if self.cache.name != "none":
            return int(super().readinto(b))
        read = self._reader.read_into(self.loc, memoryview(b).cast("B"))
        self.loc += read
        return read

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._reader.read(start, end)

    def __dask_tokenize__(self) -> Any:
        return type(self).__name__, self._reader.pin

    def close(self) -> None:
        super().close()
        self._reader.close()

    def __reduce__(self) -> Any:
        cache = self.cache.name if self.cache else "none"
        return _reopen, (self.fs, self._opened, self._reader.pin, self.blocksize, cache, self.loc)


def _close_hdf5_files() -> None:
    """At the end of the interpreter: h5py (3.16) crashes behind it where a thread still holds an h5py.File of a Python file."""
    for number in h5py.h5f.get_obj_ids(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE):
        if number.valid and h5py.h5f.get_name(number).startswith(_SHOWN):
            h5py.File(number).close()


# The name that h5py takes for a file object: its repr().
_SHOWN = b"<File-like object H5MirrorFileSystem, "
atexit.register(_close_hdf5_files)


def _reopen(fs: H5MirrorFileSystem, path: str, pin: Pin, block_size: int, cache_type: str, loc: int) -> H5MirrorFile:
    file: H5MirrorFile = fs._open(path, block_size=block_size, cache_type=cache_type, pin=pin)
    file.seek(loc)
    return file


def _info(url: str, reader: Reader) -> dict[str, Any]:
    return {"name": url, "size": reader.size, "type": "file", "version": reader.version, "cut": reader.cut,
            "ukey": reader.ukey, "ETag": f'"{reader.ukey}"'}


def _slice(start: int | None, end: int | None, reader: Reader) -> bytes:
    begin, stop, _ = slice(start, end).indices(reader.size)
    return reader.read(begin, stop, raw=True)


def _slices(ranges: list[tuple[int | None, int | None]], reader: Reader) -> list[bytes]:
    return [_slice(start, end, reader) for start, end in ranges]
