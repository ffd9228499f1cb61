"""A receiver of web hooks: a real HTTP server on loopback."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from .process import wait_until

HANG = "hang"


class WebHook:
    """Answers each POST with the next code of `codes`, then with 200. HANG: it never answers."""

    def __init__(self, *codes):
        self.codes = list(codes)
        self.always = None  # an answer that goes before all others, until it is None again
        self.requests: list[tuple[dict, bytes]] = []  # headers, body
        self._lock = threading.Lock()
        self._end = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code = hook._take(dict(self.headers), body)
                if code == HANG:
                    hook._end.wait()
                    return
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook/s3cret"

    def _take(self, headers: dict, body: bytes):
        with self._lock:
            self.requests.append((headers, body))
            if self.always is not None:
                return self.always
            return self.codes.pop(0) if self.codes else 200

    def events(self) -> list[dict]:
        return [json.loads(body) for _, body in list(self.requests)]

    def wait_for(self, count: int, timeout: float = 90) -> list[dict]:
        wait_until(lambda: len(self.requests) >= count, f"{count} requests have not come", timeout)
        return self.events()

    def wait_for_event(self, kind: str, timeout: float = 90) -> dict:
        wait_until(lambda: any(event["event"] == kind for event in self.events()), f"{kind} has not come", timeout)
        return next(event for event in self.events() if event["event"] == kind)

    def close(self) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()
