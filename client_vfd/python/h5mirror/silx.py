"""silx.io.h5py_utils.File, which also takes the URL of a file on a server, live or as of a version.

    from h5mirror.silx import File
    with File("h5mirror://node7:7447/run7.h5@latest") as f: ...

Local paths are opened as silx opens them.
"""

import os
from collections.abc import Sequence
from typing import Any

import silx.io.h5py_utils as silx_utils

from ._open import url_config
from ._url import is_url


class File(silx_utils.File):  # type: ignore[misc,unused-ignore]
    """As silx's. Of a URL: an h5py.File of the newest cut or of a version, as of h5mirror.open(), whose errors it has."""

    def __init__(self, filename: str | os.PathLike[str], mode: str | None = None, locking: bool | str | None = None,
                 swmr: bool | None = None, libver: str | Sequence[str] | None = None, **kwargs: Any) -> None:
        """`kwargs` of a URL are those of h5mirror.open(). `locking` and `swmr` are about local files: a server's file
        stays as it is while it is read, and needs neither."""
        name = os.fspath(filename)
        if is_url(name):
            kwargs = url_config(name, mode or "r", kwargs)
            locking, swmr = False, False
        super().__init__(name, mode=mode, locking=locking, swmr=swmr, libver=libver, **kwargs)
