"""Forks of versions, and their way back: what `h5mirror fork` and `h5mirror promote` do."""

import json
import os
import subprocess
from typing import Any

from . import _program
from ._url import Url, is_url
from ._versions import Version, _version


def fork(url: str, new: str, *, comment: str = "", server: str | None = None,
         ca: str | os.PathLike[str] | None = None, token: str | None = None, timeout: float | None = None) -> Version:
    """Makes the file `new` on the server, whose version 1 has the bytes of a version of `url`. Returns version 1.

    `url` as for open(); without a version the newest one is taken. It may be the path of a local file that is
    mirrored. `new` is a name under the server's root, or a url of the same server. The other arguments are those of
    versions().

    Errors: ValueError         a bad url or name.
            FileNotFoundError  the server has no such file or version.
            PermissionError    no token, or one without the right.
            ConnectionError    no answer from the server.
            OSError            EBUSY: `new` exists, or is being written; EIO: the version is damaged; else as the text
                               says.
    """
    source = _target(url, server)
    name = _on(new, source)
    words = [*_comment(comment), "--", f"{source.name}@{source.version or 'latest'}", name]
    said = _run("fork", words, source, url, ca, token, timeout)
    return _version(said["version"])


def promote(fork: str, into: str, *, comment: str = "", server: str | None = None,
            ca: str | os.PathLike[str] | None = None, token: str | None = None, timeout: float | None = None) -> Version:
    """Makes a version of a fork the newest one of the file that was forked. Returns that file's newest version.

    `fork` as `url` of fork(), `into` as `new`. If the file has the fork's bytes already, no version is made.

    Errors: as of fork(); OSError with EBUSY: the file has changed since it was forked or promoted to, is being
            written, or `fork` is no fork of it.
    """
    source = _target(fork, server)
    name = _on(into, source)
    words = [*_comment(comment), "--version", source.version or "latest", "--", source.name, name]
    said = _run("promote", words, source, fork, ca, token, timeout)
    return _version(said["version"])


def _target(text: str, server: str | None) -> Url:
    """A local path is a name that the program understands."""
    return Url.parse(text).with_server(server) if is_url(text) else Url(server, os.path.abspath(text))


def _on(text: str, source: Url) -> str:
    """The name of the other file, on the same server. ValueError: it is on another."""
    if not is_url(text):
        return text
    other = Url.parse(text).without_version()
    if other.server is not None and other.server != source.server:
        raise ValueError(f"{text} is on {other.server}, and the other file on "
                         f"{source.server or 'the server of the configuration'}: both must be on one server")
    return other.name


def _comment(comment: str) -> list[str]:
    return ["--comment", comment] if comment else []


def _run(verb: str, words: list[str], target: Url, url: str, ca: str | os.PathLike[str] | None, token: str | None,
         timeout: float | None) -> Any:
    with _program.command(target.server, ca, token, timeout) as (command, more):
        done = subprocess.run([*command, verb, *words], capture_output=True, check=False, **more)
    if done.returncode != 0:
        raise _program.error(verb, done.returncode, done.stderr.decode(errors="replace"), url)
    return json.loads(done.stdout)
