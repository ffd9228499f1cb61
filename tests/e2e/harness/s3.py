"""An S3 service in this process, which has troubles on demand.

It checks no signature: tests with --all have moto for that (tests/archive/with_s3.py).
"""

import contextlib
import email.utils
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.sax.saxutils import escape

from .metrics import free_port

BUCKET = "lab-history"


class Trouble:
    """The trouble in place of an answer: an error, no answer, or clocks that differ."""

    def __init__(self, http: int = 0, code: str = "", *, hangs: bool = False, clock_seconds: float = 0):
        self.http, self.code, self.hangs, self.clock_seconds = http, code, hangs, clock_seconds


class S3:
    """One bucket. `trouble` counts for calls of the methods `troubled`; None: all is well."""

    def __init__(self, directory: Path, *, tls: bool = False):
        self.objects: dict[str, bytes] = {}
        self.trouble: Trouble | None = None
        self.troubled = ("GET", "HEAD", "PUT", "DELETE")
        self.keys = directory / "s3-keys"
        self.keys.write_text("[default]\naws_access_key_id = A\naws_secret_access_key = S\n")
        self.keys.chmod(0o600)
        self.hanging = 0
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self.authority = directory / "s3-ca.pem" if tls else None
        if tls:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                            "-days", "2", "-subj", "/CN=lab", "-addext", "subjectAltName=IP:127.0.0.1",
                            "-keyout", directory / "s3.key", "-out", self.authority],
                           check=True, capture_output=True, timeout=60)
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(self.authority, directory / "s3.key")
        self._port = free_port()  # Nobody else gets it while the service is down.
        self._connections: set[socket.socket] = set()
        self._server: ThreadingHTTPServer | None = None
        self.up()

    def up(self) -> None:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def date_time_string(self, timestamp=None):
                ahead = service.trouble.clock_seconds if service.trouble else 0
                return email.utils.formatdate(time.time() + ahead, usegmt=True)

            def handle_call(self):
                service._answer(self)

            do_GET = do_HEAD = do_PUT = do_DELETE = handle_call

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def process_request(self, request, client_address):
                service._connections.add(request)
                super().process_request(request, client_address)

            def shutdown_request(self, request):
                service._connections.discard(request)
                super().shutdown_request(request)

            def handle_error(self, *_):  # A client that breaks off.
                pass

        self._server = Quiet(("127.0.0.1", self._port), Handler)
        if self.authority is not None:
            self._server.socket = self._context.wrap_socket(self._server.socket, server_side=True,
                                                            do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def down(self) -> None:
        """The service no longer listens, and kept connections end."""
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server = None

    def close(self) -> None:
        self._ends.set()
        if self._server is not None:
            self.down()

    def url(self, prefix: str = "node7", bucket: str = BUCKET, **more) -> str:
        scheme = "http" if self.authority is None else "https"
        keys = {"endpoint": f"{scheme}://127.0.0.1:{self._port}", "credentials": self.keys, **more}
        return f"s3://{bucket}/{prefix}?" + "&".join(f"{key}={value}" for key, value in keys.items())

    def _answer(self, request) -> None:
        path, _, query = request.path.partition("?")
        bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        trouble = self.trouble if request.command in self.troubled else None
        if trouble is not None and trouble.hangs:
            with self._lock:
                self.hanging += 1
            self._ends.wait()
        if trouble is not None:
            return self._refuse(request, trouble.http, trouble.code)
        if bucket != BUCKET:
            return self._refuse(request, 404, "NoSuchBucket")
        with self._lock:
            answer = getattr(self, f"_{request.command.lower()}")(request, key, body, urllib.parse.parse_qs(query))
        return self._send(request, *answer)

    def _get(self, request, key, _, query):
        if not key:
            return self._list(query)
        if key not in self.objects:
            return 404, b"<Error><Code>NoSuchKey</Code></Error>"
        data = self.objects[key]
        first, last = map(int, request.headers["Range"].removeprefix("bytes=").split("-"))
        if first >= len(data):
            return 416, b"<Error><Code>InvalidRange</Code></Error>"
        part = data[first:last + 1]
        return 206, part, {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(data)}"}

    def _list(self, query):
        prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
        limit = int(query["max-keys"][0])
        names = sorted(name for name in self.objects if name.startswith(prefix) and name > after)
        more = len(names) > limit
        names = names[:limit]
        shown = "".join(f"<Contents><Key>{escape(name)}</Key><Size>{len(self.objects[name])}</Size></Contents>"
                        for name in names)
        token = f"<NextContinuationToken>{escape(names[-1])}</NextContinuationToken>" if more else ""
        text = f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{shown}</ListBucketResult>"
        return 200, text.encode()

    def _head(self, _, key, *__):
        return (200, self.objects[key]) if key in self.objects else (404, b"")

    def _put(self, request, key, body, _):
        if request.headers.get("If-None-Match") == "*" and key in self.objects:
            return 412, b"<Error><Code>PreconditionFailed</Code></Error>"
        self.objects[key] = body
        return 200, b""

    def _delete(self, _, key, *__):
        self.objects.pop(key, None)
        return 204, b""

    def _refuse(self, request, http: int, code: str) -> None:
        self._send(request, http, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())

    @staticmethod
    def _send(request, http: int, body: bytes, headers: dict | None = None) -> None:
        request.send_response(http)
        for name, value in (headers or {}).items():
            request.send_header(name, value)
        if http != 204:
            request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(body)
