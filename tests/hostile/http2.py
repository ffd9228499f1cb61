"""Raw HTTP/2: frames that no client library sends, on TLS, TCP or a Unix socket."""

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


class TlsConnection:
    """A TLS connection that one thread may read while another writes: an ssl.SSLSocket of Python 3.11 allows no such thing."""

    def __init__(self, connection: socket.socket, ca, host: str):
        context = ssl.create_default_context(cafile=str(ca))
        context.set_alpn_protocols(["h2"])
        self._socket, self._lock = connection, threading.Lock()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        while not self._shakes_hands():
            self._incoming.write(self._received())

    def _shakes_hands(self) -> bool:
        try:
            self._tls.do_handshake()
            return True
        except ssl.SSLWantReadError:
            return False
        finally:
            self._socket.sendall(self._outgoing.read())

    def _received(self) -> bytes:
        data = self._socket.recv(1 << 16)
        if not data:
            raise ConnectionResetError("the server has hung up")
        return data

    def sendall(self, data: bytes) -> None:
        with self._lock:
            self._tls.write(data)
            encrypted = self._outgoing.read()
        self._socket.sendall(encrypted)

    def recv(self, size: int) -> bytes:
        while True:
            with self._lock:
                try:
                    return self._tls.read(size)
                except ssl.SSLWantReadError:
                    pass
            data = self._socket.recv(size)
            if not data:
                return b""
            with self._lock:
                self._incoming.write(data)

    def settimeout(self, seconds: float) -> None:
        self._socket.settimeout(seconds)

    def shutdown(self, how: int) -> None:
        self._socket.shutdown(how)

    def close(self) -> None:
        self._socket.close()


def connect(address: str, *, ca=None, timeout: float = 15) -> socket.socket | TlsConnection:
    """A connection. `address`: HOST:PORT or unix:PATH; `ca`: TLS, as gRPC wants it."""
    if address.startswith("unix:"):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(timeout)
        connection.connect(address[len("unix:"):])
        return connection
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=timeout)
    return connection if ca is None else TlsConnection(connection, ca, host)


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
        self._reader = threading.Thread(target=self._drain, daemon=True) if reads else None
        if reads:
            self._reader.start()

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
        if self._reader is not None:
            self._reader.join()  # Else it would read from the next owner of the descriptor.
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
