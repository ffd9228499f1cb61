"""xarray.open_dataset("h5mirror://node7:7447/run7.nc@tag:published"): the engine "h5mirror", which reads through h5netcdf.

A dataset stays what it was when it was opened, also its lazy arrays, and where they are unpickled. `storage_options` are
those of h5mirror.fsspec.H5MirrorFileSystem; all others are h5netcdf's.

Where netCDF4 is installed too, xarray asks it first, and it claims every URL: say engine="h5mirror" then.
"""

import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

from xarray.backends import BackendEntrypoint, H5netcdfBackendEntrypoint

from ._url import is_url
from .fsspec import H5MirrorFile, H5MirrorFileSystem

_T = TypeVar("_T")


class H5MirrorBackendEntrypoint(BackendEntrypoint):  # type: ignore[misc,unused-ignore]
    """Opens files on servers, and versions of them."""

    description = "Open HDF5 and netCDF4 files and their versions on h5mirror servers"
    open_dataset_parameters = tuple(
        each for each in inspect.signature(H5netcdfBackendEntrypoint.open_dataset).parameters if each != "self")
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        return isinstance(filename_or_obj, (str, os.PathLike)) and is_url(os.fspath(filename_or_obj))

    def open_dataset(self, filename_or_obj: Any, *, storage_options: dict[str, Any] | None = None, **keys: Any) -> Any:
        return _opened(filename_or_obj, storage_options, H5netcdfBackendEntrypoint().open_dataset, keys)

    def open_datatree(self, filename_or_obj: Any, *, storage_options: dict[str, Any] | None = None, **keys: Any) -> Any:
        return _opened(filename_or_obj, storage_options, H5netcdfBackendEntrypoint().open_datatree, keys)

    def open_groups_as_dict(self, filename_or_obj: Any, *, storage_options: dict[str, Any] | None = None,
                            **keys: Any) -> Any:
        file = H5MirrorFileSystem(**storage_options or {}).open(os.fspath(filename_or_obj))
        try:
            return H5netcdfBackendEntrypoint().open_groups_as_dict(file, **keys)
        except BaseException:
            file.close()
            raise


def _opened(url: Any, options: dict[str, Any] | None, opener: Callable[..., _T], keys: dict[str, Any]) -> _T:
    file: H5MirrorFile = H5MirrorFileSystem(**options or {}).open(os.fspath(url))
    try:
        data: Any = opener(file, **keys)
    except BaseException:
        file.close()
        raise
    data.encoding["source"] = file.path
    data.set_close(functools.partial(_close, data._close, file))
    return data  # type: ignore[no-any-return]


def _close(close_data: Callable[[], None] | None, file: H5MirrorFile) -> None:
    if close_data is not None:
        close_data()
    file.close()
