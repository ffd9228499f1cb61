"""xarray.open_dataset("h5mirror://node7:7447/run7.nc@tag:published"): the engine "h5mirror", which reads through h5netcdf.

A dataset stays what it was when it was opened, also its lazy arrays, those of dask too, and where they are unpickled. A
file that H5MirrorFileSystem has opened is taken as well. `storage_options` are
those of h5mirror.fsspec.H5MirrorFileSystem; all others are h5netcdf's.

Where netCDF4 is installed too, xarray asks it first, and it claims every URL: say engine="h5mirror" then.
"""

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

from xarray import Dataset, Variable
from xarray.backends import BackendEntrypoint, H5netcdfBackendEntrypoint

from ._url import is_url
from .fsspec import H5MirrorFile, H5MirrorFileSystem

_T = TypeVar("_T")
# In a variable's encoding: of which bytes it is.
_BYTES = "h5mirror"


class _Variable(Variable):  # type: ignore[misc,unused-ignore]
    """Tells dask which bytes it is of. xarray's own name of a chunked array has the URL alone, and dask takes two arrays of one
    name for one: that of an earlier version too."""

    __slots__ = ()

    def chunk(self, chunks: Any = {}, *args: Any, **keys: Any) -> Any:  # noqa: B006 - as xarray's
        more = dict(keys.get("from_array_kwargs") or {})
        if more.get("name") and _BYTES in self.encoding:
            keys["from_array_kwargs"] = {**more, "name": f"{more['name']}-{self.encoding[_BYTES]}"}
        return super().chunk(chunks, *args, **keys)


class H5MirrorBackendEntrypoint(BackendEntrypoint):  # type: ignore[misc,unused-ignore]
    """Opens files on servers, and versions of them."""

    description = "Open HDF5 and netCDF4 files and their versions on h5mirror servers"
    open_dataset_parameters = tuple(
        each for each in inspect.signature(H5netcdfBackendEntrypoint.open_dataset).parameters if each != "self")
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        return isinstance(filename_or_obj, H5MirrorFile) or (isinstance(filename_or_obj, (str, os.PathLike)) and
                                                             is_url(os.fspath(filename_or_obj)))

    def open_dataset(self, filename_or_obj: Any, *, storage_options: dict[str, Any] | None = None, **keys: Any) -> Any:
        return _opened(filename_or_obj, storage_options, H5netcdfBackendEntrypoint().open_dataset, keys, _told)

    def open_datatree(self, filename_or_obj: Any, *, storage_options: dict[str, Any] | None = None, **keys: Any) -> Any:
        return _opened(filename_or_obj, storage_options, H5netcdfBackendEntrypoint().open_datatree, keys, _told_tree)

    def open_groups_as_dict(self, filename_or_obj: Any, *, storage_options: dict[str, Any] | None = None,
                            **keys: Any) -> Any:
        file = _file(filename_or_obj, storage_options)
        try:
            groups = H5netcdfBackendEntrypoint().open_groups_as_dict(file, **_with_dimensions(keys))
            return {path: _told(group, file) for path, group in groups.items()}
        except BaseException:
            file.close()
            raise


def _with_dimensions(keys: dict[str, Any]) -> dict[str, Any]:
    """With names for dimensions that have none, as HDF5's own datasets: h5netcdf's default, of which it warns unless it is given."""
    return keys if keys.get("phony_dims") is not None else {**keys, "phony_dims": "access"}


def _file(opened: Any, options: dict[str, Any] | None) -> H5MirrorFile:
    if isinstance(opened, H5MirrorFile):
        return opened
    file: H5MirrorFile = H5MirrorFileSystem(**options or {}).open(os.fspath(opened))
    return file


def _opened(url: Any, options: dict[str, Any] | None, opener: Callable[..., _T], keys: dict[str, Any],
            told: Callable[[Any, H5MirrorFile], Any]) -> _T:
    file = _file(url, options)
    try:
        opened: Any = opener(file, **_with_dimensions(keys))
        data = told(opened, file)
    except BaseException:
        file.close()
        raise
    data.encoding["source"] = file.url
    data.set_close(functools.partial(_close, opened._close, file))
    return data  # type: ignore[no-any-return]


def _told(data: Dataset, file: H5MirrorFile) -> Dataset:
    """The same, whose lazy variables know of which bytes they are."""
    def told(variable: Any) -> Any:
        if variable._in_memory:
            return variable
        encoding = {**variable.encoding, _BYTES: file.details["ukey"][:16]}
        return _Variable(variable.dims, variable._data, variable.attrs, encoding, fastpath=True)

    close = data._close
    data = data._replace(variables={name: told(each) for name, each in data._variables.items()})
    data.set_close(close)
    return data


def _told_tree(tree: Any, file: H5MirrorFile) -> Any:
    for node in tree.subtree:
        close = node._close
        node.dataset = _told(node.to_dataset(inherit=False), file)
        node.set_close(close)
    return tree


def _close(close_data: Callable[[], None] | None, file: H5MirrorFile) -> None:
    if close_data is not None:
        close_data()
    file.close()
