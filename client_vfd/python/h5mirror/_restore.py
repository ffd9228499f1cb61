"""One object of an old version, brought back: what `h5mirror restore` does."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ._forks import _comment, _run, _target


@dataclass(frozen=True)
class LostReference:
    """References in the copy that lead nowhere any more."""

    object: str
    """That has them."""
    leads_to: str
    count: int
    why: str
    """"missing", "other_kind", "other_file", "too_small", "no_region", "no_name" or "removed"."""


@dataclass(frozen=True)
class Restored:
    """The result of a restore, or of its dry run."""

    kind: str
    """"group", "dataset", "datatype", "soft link", "external link" or "link"."""
    path: str
    """Where it is now."""
    into: str
    """The file that has it now."""
    from_version: int
    version: int | None
    """The new one; None: none was made, as of a dry run, or of a local file without a mirror."""
    objects: int
    attributes: int
    data_bytes: int
    """As stored."""
    replaced_kind: str | None
    """Of what was there before; None: nothing was."""
    lost_references: tuple[LostReference, ...]
    is_dry_run: bool


def restore(url: str, path: str, *, into: str | os.PathLike[str] | None = None, to: str | None = None,
            attributes: Sequence[str] = (), replace: bool = False, dry_run: bool = False, comment: str = "",
            server: str | None = None, ca: str | os.PathLike[str] | None = None, token: str | None = None,
            timeout: float | None = None) -> Restored:
    """Brings the object at `path` of a version of `url` back into the file: a group with all below it, a dataset, a committed
    type or a link. The file gets a new version.

    `url` as for open(); without a version the newest one is taken. It may be the path of a local file that is mirrored: then
    the object comes back into that one, else into the server's file. `into` is another local file. `to` is another path for the
    object, `attributes` are names of its attributes that come back alone. `replace` allows to replace what is there. A
    `dry_run` changes nothing. The other arguments are those of versions().

    Errors: ValueError         a bad url or path.
            FileNotFoundError  there is no such file, version or object.
            PermissionError    no token, or one without the right.
            ConnectionError    no answer from the server.
            OSError            EBUSY: something is there and `replace` is not given, or the file is open, leased or diverged; EIO:
                               the version is damaged; else as the text says.
    """
    if not path.startswith("/"):
        raise ValueError(f"path={path!r}: must begin with '/'")
    source = _target(url, server)
    words = _comment(comment)
    if into is not None:
        words += ["--into", os.path.abspath(into)]
    if to is not None:
        words += ["--as", to]
    for name in attributes:
        words.append(f"--attribute={name}")
    words += [flag for flag, is_given in (("--replace", replace), ("--dry-run", dry_run)) if is_given]
    words += ["--", f"{source.name}@{source.version or 'latest'}:{path}"]
    return _restored(_run("restore", words, source, url, ca, token, timeout))


def _restored(said: dict[str, Any]) -> Restored:
    lost = tuple(LostReference(each["object"], each["leads_to"], each["count"], each["why"]) for each in said["lost_references"])
    return Restored(kind=said["kind"], path=said["as"], into=said["into"], from_version=said["from_version"],
                    version=said["version"], objects=said["objects"], attributes=said["attributes"], data_bytes=said["bytes"],
                    replaced_kind=said["old_kind"], lost_references=lost, is_dry_run=said["dry_run"])
