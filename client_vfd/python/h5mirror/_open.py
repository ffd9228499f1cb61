"""Files on a server, live or as of a version, as h5py.File."""

from datetime import datetime
from typing import Any

import h5py

from ._driver import NAME, config_string
from ._url import Url


def open(url: str, mode: str = "r", *, version: int | str | datetime | None = None, server: str | None = None,
         config: str = "", **keys: Any) -> h5py.File:
    """Opens a file on a server for reading: its newest cut, or the version that url or `version` say.

    The file needs no writer, and a writer is not disturbed. The file that it gives stays as it is until it is closed,
    whatever is written meanwhile. A version can be read as long as it exists; a cut that is none, because the file is
    being written, until a minute after the next one (the server's snapshot_keep). Then reads fail with "snapshot
    expired, reopen"; follow() opens each one anew.

    `version` is what may follow the '@' in the url: a number, "latest" (the newest version), "latest-K", "tag:NAME", or
    a time, which may be a datetime (a naive one is local). `keys` are h5py.File's own (`rdcc_nbytes`, ...), and the
    driver's (docs/reference/driver-keys.md: `timeout`, `cache`, `token`, ...).

    Errors: ValueError         a bad url, a mode other than "r", two versions or two servers.
            FileNotFoundError  the server has no such file or version.
            ConnectionError    no connection to the server; TimeoutError: it does not answer.
            PermissionError    no token, or a wrong one.
            OSError            an unknown key, ...; the text says which.
    """
    return h5py.File(url, "r", **url_config(url, mode, {"version": version, "server": server, "config": config, **keys}))


def url_config(url: str, mode: str, keys: dict[str, Any]) -> dict[str, Any]:
    """The arguments of h5py.File for those of open(), beside the url as name and mode "r". ValueError: as open()."""
    keys = dict(keys)
    version, server, config = keys.pop("version", None), keys.pop("server", None), keys.pop("config", "")
    target = Url.parse(url)
    if mode != "r":
        raise ValueError(f"mode {mode!r}: {url} is opened for reading only, with mode 'r'. To write, open the local "
                         f"file: h5py.File(path, {mode!r}, driver='h5mirror', server=...)")
    if version is not None and target.version is not None:
        raise ValueError(f"version={version!r}, and {url} names the version {target.version} already: give one of them")
    target = target.with_server(server)
    # The rules of a client.toml are about local paths. Links lead to names that lie to this one as paths would.
    ours = {"mode": "reader", "name": target.name, "root": "/", "include": "", "exclude": "",
            "server": target.server, "version": target.version if version is None else version}
    return {"driver": NAME, "config": config_string(config, ours), **keys}
