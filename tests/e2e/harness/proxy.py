"""A TCP proxy that breaks connections where the test says."""

import socket
import struct
import threading


class Proxy:
    """Forwards connections to `target` (HOST:PORT). With `cut_after`, each connection is reset once the
    client has sent so many bytes: in the middle of a frame, as when a machine vanishes."""

    def __init__(self, target: str, cut_after: int | None = None):
        self.target = (target.rsplit(":", 1)[0], int(target.rsplit(":", 1)[1]))
        self.cut_after = cut_after
        self.cuts = 0
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self.target, timeout=10)
            except OSError:
                return
            server.settimeout(None)
            self.connections += 1
            limit = self.cut_after
            threading.Thread(target=self._forward, args=(client, server, limit), daemon=True).start()
            threading.Thread(target=self._forward, args=(server, client, None), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, limit: int | None) -> None:
        sent = 0
        try:
            while data := source.recv(1 << 16):
                if limit is not None and sent + len(data) > limit:
                    sink.sendall(data[:limit - sent])
                    self.cuts += 1
                    break
                sink.sendall(data)
                sent += len(data)
        except OSError:
            pass
        for each in (source, sink):
            try:  # A reset, not an orderly end.
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()
