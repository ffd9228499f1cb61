"""The messages of a service to systemd."""

import os
import socket
import time


class NotifySocket:
    """systemd's end of NOTIFY_SOCKET."""

    def __init__(self):
        # In the abstract namespace: a path of a test's directory may be too long for a socket.
        self.name = f"h5mirror-notify-{os.getpid()}-{time.monotonic_ns()}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + self.name)
        self._socket.setblocking(False)
        self.lines: list[str] = []

    def read(self) -> list[str]:
        """All lines that were sent so far."""
        while True:
            try:
                self.lines += self._socket.recv(65536).decode().splitlines()
            except BlockingIOError:
                return self.lines

    def close(self) -> None:
        self._socket.close()
