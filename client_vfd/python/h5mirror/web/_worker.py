"""A worker: `python -m h5mirror.web._worker DESCRIPTOR PARENT PORTS READABLE...`, a process that reads HDF5 files for one session.

It gets frames by a socket: first its session's user, then one request at a time. Nothing else of
the web process comes in.
"""

import os
import socket
import sys
from typing import Any

from . import _fence, _frames
from ._refused import Refused


def main() -> None:
    descriptor, parent, ports, *readable = sys.argv[1:]
    link = socket.socket(fileno=int(descriptor))
    _fence.limit(int(parent))
    is_fenced = _fence.close(readable, _fence.ports_of(ports))
    from ._contents import Contents  # Behind the fence, as h5grove may start threads.
    _send(link, {"ready": True, "is_fenced": is_fenced})
    started = _receive(link)
    if started is None:
        return
    contents = Contents(str(started["server"]), started["ca"], started["token"], is_fenced)
    while (request := _receive(link)) is not None:
        # Says what it answers: the web process takes no answer for that to another request.
        about = {key: request.get(key) for key in _frames.ECHOED} | {"badge": started["badge"]}
        try:
            answer, opened = contents.answer(request)
        except Refused as refused:
            _send(link, {**about, "status": refused.status, "message": str(refused)[:2000]})
        else:
            _send(link, {**about, "status": 200, "kind": answer.kind, "opened_version": opened.version,
                         "opened_cut": opened.cut, "left_out": answer.left_out}, answer.body)


def _send(link: socket.socket, message: dict[str, Any], body: bytes = b"") -> None:
    link.sendall(_frames.encode(message, body))
    link.sendall(body)


def _receive(link: socket.socket) -> dict[str, Any] | None:
    """None: the web process has ended, or wants no more."""
    header = _exactly(link, _frames.HEADER.size)
    if header is None:
        return None
    text, _body = _frames.lengths(header)
    read = _exactly(link, text)
    return None if read is None else _frames.decode(read)


def _exactly(link: socket.socket, count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        part = link.recv(count - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, ConnectionResetError):
        os._exit(0)
    os._exit(0)  # What HDF5 still has open is of no use to anybody.
