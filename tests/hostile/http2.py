"""HTTP/2 without a library's manners: frames that no client library sends, on TLS, TCP or a Unix socket."""

import socket
import ssl
import threading

import hpack
from hyperframe.frame import DataFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CANCEL = 8
STREAM_ID_MAX = (1 << 31) - 1


class Cut(Exception):
    """The server has ended the connection."""


def connect(address: str, *, ca=None, timeout: float = 15) -> socket.socket:
    """A connected socket. `address`: HOST:PORT or unix:PATH; `ca`: TLS, as gRPC wants it."""
    if address.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout)
        connection.connect(address[len("unix:"):])
        return connection
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=timeout)
    if ca is None:
        return connection
    context = ssl.create_default_context(cafile=str(ca))
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(connection, server_hostname=host)


class RawClient:
    """One connection. Each call is three bytes of stream number and a header block that is encoded once."""

    def __init__(self, address: str, path: str, *, ca=None, token: str | None = None, acks_settings: bool = True,
                 reads: bool = True):
        self.socket = connect(address, ca=ca)
        self._encoder = hpack.Encoder()
        self._headers = [(":method", "POST"), (":scheme", "http" if ca is None else "https"), (":path", path),
                         (":authority", "localhost"), ("te", "trailers"), ("content-type", "application/grpc"),
                         *([("authorization", f"Bearer {token}")] if token else [])]
        self._first = self._encoder.encode(self._headers)
        self._later = self._encoder.encode(self._headers)  # Out of the table that the first one has filled.
        self._next_stream = 1
        self._acks = acks_settings
        self._ended = threading.Event()
        self.received = b""
        self._send(PREFACE + SettingsFrame(0, settings={SettingsFrame.INITIAL_WINDOW_SIZE: 65535}).serialize())
        if acks_settings:
            self._send(SettingsFrame(0, flags=["ACK"]).serialize())
        if reads:
            threading.Thread(target=self._drain, daemon=True).start()

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self._ended.set()
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()

    def cut(self) -> bool:
        """Whether the server has ended the connection; only told to a client that reads."""
        return self._ended.is_set()

    def _drain(self) -> None:
        while not self._ended.is_set():
            try:
                data = self.socket.recv(1 << 16)
            except TimeoutError:
                continue
            except (OSError, ValueError):
                break
            if not data:
                break
            self.received = (self.received + data)[-4096:]
        self._ended.set()

    def _send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except TimeoutError:
            raise
        except OSError as error:
            self._ended.set()
            raise Cut(str(error)) from error

    def _begin(self) -> tuple[int, bytes]:
        stream = self._next_stream
        assert stream < STREAM_ID_MAX, "no stream numbers are left"
        block = self._first if stream == 1 else self._later
        self._next_stream += 2
        frame = HeadersFrame(stream, data=block, flags=["END_HEADERS"])
        return stream, frame.serialize()

    def half_open(self, count: int) -> None:
        """Begins calls and sends no message."""
        self._send(b"".join(self._begin()[1] for _ in range(count)))

    def call(self, message: bytes = b"") -> int:
        """One whole unary call; returns its stream."""
        stream, headers = self._begin()
        framed = b"\0" + len(message).to_bytes(4, "big") + message
        self._send(headers + DataFrame(stream, data=framed, flags=["END_STREAM"]).serialize())
        return stream

    def reset(self, count: int, message: bytes | None = None) -> None:
        """Begins calls, with a whole message where one is given, and resets each at once."""
        parts = []
        for _ in range(count):
            stream, headers = self._begin()
            parts.append(headers)
            if message is not None:
                framed = b"\0" + len(message).to_bytes(4, "big") + message
                parts.append(DataFrame(stream, data=framed, flags=["END_STREAM"]).serialize())
            parts.append(RstStreamFrame(stream, error_code=CANCEL).serialize())
        self._send(b"".join(parts))

    def ping(self, count: int) -> None:
        self._send(PingFrame(0, opaque_data=b"hostile!").serialize() * count)

    def settings(self, count: int) -> None:
        self._send(SettingsFrame(0, settings={SettingsFrame.HEADER_TABLE_SIZE: 4096}).serialize() * count)
