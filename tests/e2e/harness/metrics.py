"""The metrics of a server, as Prometheus gets them."""

import socket
import urllib.request

from .server import hold_port

_held: list[socket.socket] = []


def free_port() -> int:
    """A port of loopback at which nobody listens yet. Other programs do not get it as long as this one runs."""
    _held.append(hold_port())
    return _held[-1].getsockname()[1]


class Metrics:
    """Of a site's server, which is started again for it."""

    def __init__(self, site):
        self.port = free_port()
        site.server.stop()
        site.server.options["metrics_listen"] = f"127.0.0.1:{self.port}"
        site.server.start()

    def lines(self) -> list[str]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as page:
            return page.read().decode().splitlines()

    def value(self, name: str) -> float:
        """Of one without labels."""
        return float(next(line.split()[-1] for line in self.lines() if line.startswith(name + " ")))

    def calls(self, *methods: str) -> int:
        """Calls of these methods, or of all, that have ended."""
        wanted = [f'method="{method}"' for method in methods] or [""]
        return sum(int(float(line.split()[-1])) for line in self.lines()
                   if line.startswith("h5mirror_server_request_seconds_count") and any(each in line for each in wanted))
