"""One h5mirrord under test."""

import os
import re
import signal
import socket
import time
from pathlib import Path

from . import paths
from .process import Process, memory_kb, wait_until


def hold_port() -> socket.socket:
    """A port of loopback that no other program gets, even while its server is away.

    A socket that is bound and does not listen keeps the kernel from giving its port to others that ask for
    any. The server, which sets SO_REUSEADDR as this does, can bind it.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


class Server:
    """Starts h5mirrord on `root`. Keeps its port over restarts, so that clients find it again."""

    def __init__(self, root: Path, directory: Path, *, options: dict | None = None,
                 listen: str = "127.0.0.1:0", prefix: tuple = (), arguments: tuple = (), tables: str = "",
                 env: dict | None = None):
        self.root, self.directory = root, directory
        self.options = dict(options or {})
        self.listen, self.prefix, self.arguments = listen, prefix, arguments
        self.env = env or {}
        self.build = self.runs = paths.BUILD  # of the next process, and of this one
        self.tables = tables  # what follows the options in the configuration file
        self.process: Process | None = None
        self.starts = 0
        self.held: socket.socket | None = None
        if listen == "127.0.0.1:0" and not prefix:
            self.held = hold_port()
            self.listen = f"127.0.0.1:{self.held.getsockname()[1]}"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def address(self) -> str:
        return self.listen

    @property
    def http_port(self) -> int:
        """The port of its first http_listen."""
        return int(re.search(r"^http:(\d+)$", self.port_file.read_text(), re.MULTILINE)[1])

    def launch(self) -> Process:
        """Starts the process and does not wait for it: for servers that should refuse to start."""
        self.starts += 1
        self.runs = self.build
        config = self.directory / "h5mirrord.toml"
        config.write_text("".join(f"{key} = {_toml(value)}\n" for key, value in self.options.items())
                          + self.tables)
        self.port_file = self.directory / f"port-{self.starts}"
        command = [*self.prefix, self.build / "bin" / "h5mirrord", "--root", self.root, "--listen", self.listen,
                   "--config", config, "--port-file", self.port_file, *self.arguments]
        env = {**os.environ, "HOME": str(self.directory), **self.env}
        for name in ("HDF5_DRIVER", "HDF5_DRIVER_CONFIG", "HDF5_PLUGIN_PATH", "NOTIFY_SOCKET"):
            env.pop(name, None)
        self.process = Process(command, self.directory, env=env, name=f"h5mirrord-{self.starts}")
        return self.process

    def start(self, timeout: float = 60) -> "Server":
        self.launch()
        wait_until(self._ready, f"h5mirrord does not listen:\n{self.log_tail()}", timeout)
        if self.listen.endswith(":0"):
            port = re.findall(r"^\d+$", self.port_file.read_text(), re.MULTILINE)[-1]
            self.listen = self.listen[:-1] + port
        return self

    def _ready(self) -> bool:
        assert self.process.running(), f"h5mirrord ended with {self.process.popen.poll()}:\n{self.log_tail()}"
        return self.port_file.exists() and self.port_file.read_text().strip() != ""

    def running(self) -> bool:
        return self.process is not None and self.process.running()

    def stop(self, timeout: float = 60) -> None:
        """SIGTERM, and a clean end."""
        self.process.signal(signal.SIGTERM)
        result = self.process.wait(timeout)
        assert result.code == 0, f"h5mirrord on SIGTERM:\n{result.describe()}"

    def kill9(self) -> None:
        self.process.kill()

    def ask_to_end(self) -> None:
        """SIGTERM, whatever its state; does not wait."""
        if self.process is not None:
            self.process.signal(signal.SIGCONT)
            self.process.signal(signal.SIGTERM)

    def close(self) -> None:
        """Ends it whatever its state."""
        self.ask_to_end()
        if self.process is not None:
            deadline = time.monotonic() + 20
            while self.process.running() and time.monotonic() < deadline:
                time.sleep(0.02)
            self.process.kill()
        if self.held is not None:
            self.held.close()

    def reset_peak(self) -> None:
        """Forgets the peak so far."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def peak_kb(self) -> int:
        """The peak of resident memory since reset_peak(), shared libraries included."""
        return memory_kb(self.pid)

    def log(self) -> str:
        return "" if self.process is None else self.process.out() + self.process.err()

    def log_tail(self, lines: int = 40) -> str:
        return "\n".join(self.log().splitlines()[-lines:])


def close_together(servers) -> None:
    """Ends the servers of one cluster at once. If they ended one after the other, each would first take the cells of
    the one before."""
    for server in servers:
        server.ask_to_end()
    for server in servers:
        server.close()


def _toml(value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
