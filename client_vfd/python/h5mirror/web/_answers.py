"""The findings of `h5mirror` in a file, as the page takes them. A process that a malicious file has
taken over may have sent them, so each value is checked for its type and length."""

import json
from collections.abc import Iterable
from typing import Any

from ._tools import Said

CHANGES_MAX = 2000
EVENTS_MAX = 200
_REGIONS_MAX = 1000
_LISTED_MAX = 100
_TEXT_MAX = 2000
_RANK_MAX = 32


def diff_of(said: Said) -> dict[str, Any]:
    """Of `h5mirror diff`, whole or as far as it came."""
    document = said.document
    if document is None:
        found = _lines(said.lines)
        return {"changes": [change_of(each) for each in found[:CHANGES_MAX]], "equal": False, "all_compared": False,
                "is_whole": False}
    changes = _objects(document.get("changes"))
    is_whole = len(changes) <= CHANGES_MAX and document.get("stopped_after_s") is None
    return {"changes": [change_of(each) for each in changes[:CHANGES_MAX]], "equal": document.get("equal") is True,
            "all_compared": document.get("all_compared") is True, "is_whole": is_whole}


def change_of(change: dict[str, Any]) -> dict[str, Any]:
    chunks, runs = _objects(change.get("chunks")), _objects(change.get("runs"))
    return {
        **{key: _text(change.get(key)) for key in ("change", "path", "object", "what", "name", "old_path", "note")},
        "old": _text_or_none(change.get("old")), "new": _text_or_none(change.get("new")),
        "elements": _number(change.get("elements")), "is_chunked": "chunks" in change,
        "region_count": _number(change.get("chunk_count", change.get("run_count"))),
        "regions": [{"offset": _numbers(each.get("offset")), "shape": _numbers(each.get("shape")),
                     "elements": _number(each.get("elements"))} for each in (chunks or runs)[:_REGIONS_MAX]]}


def history_of(said: Said) -> dict[str, Any]:
    """Of `h5mirror log FILE:/PATH`."""
    document = said.document or {}
    events = [{"event": _text(each.get("event")), "version": version_of(each.get("version")),
               "before": _number(each.get("before")), "object": _text(each.get("object")), "note": _text(each.get("note")),
               "changes": [change_of(change) | {"regions": []} for change in _objects(each.get("changes"))[:_LISTED_MAX]]}
              for each in _objects(document.get("events"))[:EVENTS_MAX]]
    return {"events": events, "versions_seen": _number(document.get("versions_seen")),
            "is_complete": document.get("complete") is True}


def blame_of(said: Said) -> dict[str, Any]:
    """Of `h5mirror blame`."""
    attributes = _objects((said.document or {}).get("attributes"))
    return {"attributes": [{"name": _text(each.get("name")), "value": _text(each.get("value")),
                            "version": version_of(each.get("version")), "or_earlier": each.get("or_earlier") is True}
                           for each in attributes[:CHANGES_MAX]]}


def restore_of(said: Said) -> dict[str, Any]:
    """Of `h5mirror restore`."""
    document = said.document or {}
    lost = _objects(document.get("lost_references"))
    return {**{key: _text(document.get(key)) for key in ("action", "kind", "old_kind", "path", "into")},
            **{key: _number(document.get(key)) for key in ("objects", "attributes", "bytes", "old_objects", "old_bytes",
                                                           "from_version", "version")},
            "lost_references": sum(_number(each.get("count")) for each in lost), "notes": [_text(each) for each in said.notes]}


def version_of(version: Any) -> dict[str, Any] | None:
    """The facts of a version that the page shows beside a finding; None: no version."""
    if not isinstance(version, dict):
        return None
    user = _text(version.get("user"))
    return {"version": str(_number(version.get("version"))), "time": _text(version.get("time")),
            "user": user if version.get("user_verified") is True or not user else f"{user} (not verified)",
            "comment": _text(version.get("comment")),
            "tags": [_text(each) for each in _list(version.get("tags"))[:_LISTED_MAX]]}


def _lines(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Of a document that was cut off: `diff` writes one change a line."""
    found = []
    for line in lines:
        if not line.startswith("    {"):
            continue
        try:
            change = json.loads(line.strip().removesuffix(","))
        except (ValueError, RecursionError):
            continue
        if isinstance(change, dict) and "change" in change:
            found.append(change)
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in _list(value) if isinstance(each, dict)]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    return value if len(value) <= _TEXT_MAX else value[:_TEXT_MAX] + "…"


def _text_or_none(value: Any) -> str | None:
    return _text(value) if isinstance(value, str) else None


def _number(value: Any) -> int:
    return value if type(value) is int else 0


def _numbers(value: Any) -> list[int]:
    return [_number(each) for each in _list(value)[:_RANK_MAX]]
