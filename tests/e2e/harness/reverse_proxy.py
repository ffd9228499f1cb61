"""A reverse proxy that has signed its visitor in, and names that user to the page behind it."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USER, PROOF = "X-Forwarded-User", "X-Proxy-Secret"
# Of one connection, or set by the proxy itself.
_NOT_PASSED_ON = ("connection", "transfer-encoding", USER.lower(), PROOF.lower())


class ReverseProxy:
    """On loopback, before the page at `port`. All visitors that come through it are `user`, which may change."""

    def __init__(self, port: int, secret: str, user: str):
        self.user = user
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 100

            def log_message(self, *_):
                pass

            def _pass_on(self):
                size = int(self.headers.get("Content-Length", 0))
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_PASSED_ON}
                link = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
                try:
                    link.request(self.command, self.path, self.rfile.read(size) if size else None,
                                 {**headers, USER: proxy.user, PROOF: secret})
                    self._answer(link.getresponse())
                except (ConnectionError, TimeoutError, http.client.HTTPException):
                    pass  # One side has left, and the other side sees the end of the connection.
                finally:
                    link.close()

            def _answer(self, answer: http.client.HTTPResponse):
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in _NOT_PASSED_ON:
                        self.send_header(name, value)
                self.end_headers()
                while part := answer.read1(65536):
                    self.wfile.write(part)
                    self.wfile.flush()

            do_GET = do_POST = do_DELETE = _pass_on

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
