"""The messages between the web process and a worker: frames of a JSON text and bytes.

    u32 length of the JSON, u64 length of the bytes, JSON, bytes; both lengths big-endian

A worker may be in the hands of the file that it reads, so the lengths are bounds before they are sizes.
"""

import json
import struct
from typing import Any

HEADER = struct.Struct(">IQ")
JSON_MAX = 256 << 10
BODY_MAX = 256 << 20
# Of a request, what its answer says again.
ECHOED = ("number", "call", "name", "version", "cut")


def encode(message: dict[str, Any], body: bytes | memoryview = b"") -> bytes:
    """The beginning of a frame; the body follows. ValueError: it is too large."""
    text = json.dumps(message).encode()
    if len(text) > JSON_MAX or len(body) > BODY_MAX:
        raise ValueError("a frame is too large")
    return HEADER.pack(len(text), len(body)) + text


def lengths(header: bytes) -> tuple[int, int]:
    """Of JSON and body. ValueError: one is too large."""
    text, body = HEADER.unpack(header)
    if text > JSON_MAX or body > BODY_MAX:
        raise ValueError("a frame is too large")
    return text, body


def decode(text: bytes) -> dict[str, Any]:
    """ValueError: it is no JSON object."""
    try:
        message = json.loads(text)
    except RecursionError:
        raise ValueError("a frame is too deep") from None
    if not isinstance(message, dict):
        raise ValueError("a frame is no object")
    return message
