"""The server that the user has configured, as the program `h5mirror` takes it (rpc/client_options.cc)."""

import os
import tomllib
from pathlib import Path

_VARIABLE = "H5MIRROR_SERVER"
_DEFAULT = "127.0.0.1:7447"


def configured_server() -> str:
    """Of H5MIRROR_SERVER, else of the user's client.toml, else of the system's: the first of a
    list. ValueError, OSError: a client.toml does not parse, or cannot be read; or no server is
    named, but a history beside each file."""
    server, origin = _found()
    if server == "embedded":
        raise ValueError(f"{origin} is `embedded`, which is no server: give one with --server HOST[:PORT]")
    return server


def _found() -> tuple[str, str]:
    """The server, and what names it."""
    named = os.environ.get(_VARIABLE, "")
    if named:
        return _first(named), _VARIABLE
    for path in _files():
        server = _server_in(path)
        if server:
            return server, f"server in {path}"
    return _DEFAULT, "the default"


def _files() -> list[Path]:
    """The more important one first."""
    home = os.environ.get("HOME", "")
    own = [Path(home) / ".config/h5mirror/client.toml"] if home else []
    return [*own, Path("/etc/h5mirror/client.toml")]


def _server_in(path: Path) -> str:
    """"": it names none, or is not there."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8")).get("server", "")
    except FileNotFoundError:
        return ""
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if isinstance(given, list):
        given = given[0] if given else ""
    return _first(given) if isinstance(given, str) else ""


def _first(servers: str) -> str:
    return servers.partition(",")[0].strip()
