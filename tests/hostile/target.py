"""A server that is attacked, and an honest client beside."""

import os
import socket
import threading
import time
import urllib.request
from pathlib import Path

import grpc

from harness import paths
from harness.metrics import free_port
from harness.process import run, wait_until
from harness.server import Server

MIB = 1 << 20
PATIENCE_S = 15
PAGE = os.sysconf("SC_PAGESIZE")
# So that channels of one process do not share their connections.
OWN_CONNECTION = [("grpc.use_local_subchannel_pool", 1)]


class Target:
    """One h5mirrord, with or without TLS and tokens, on loopback or a Unix socket.

    `descriptors`: "SOFT:HARD", its limits; `tables`: what follows the other keywords, which are keys
    of its configuration.
    """

    def __init__(self, directory: Path, stubs, *, tls: bool = False, tokens: bool = False, unix: bool = False,
                 memory_max: str = "256MiB", listen: str | None = None, descriptors: str | None = None,
                 tables: str = "", **options):
        self.stubs, self.directory = stubs, directory
        root, self.keys = directory / "root", directory / "keys"
        root.mkdir()
        run([paths.BIN / "h5mirrord", "init", "--dir", self.keys, "--host", "localhost"], directory).ok()
        self.token = (self.keys / "token").read_text().strip() if tokens else None
        self.ca = self.keys / "ca.pem" if tls else None
        self._metrics_port = free_port()
        all_options = {"memory_max": memory_max, "metrics_listen": f"127.0.0.1:{self._metrics_port}", **options}
        if tls:
            all_options |= {"tls_cert": self.keys / "server.pem", "tls_key": self.keys / "server.key"}
        if tokens:
            all_options["tokens_file"] = self.keys / "tokens"
        listen = listen or (f"unix:{directory}/door" if unix else "localhost:0")
        prefix = ("prlimit", f"--nofile={descriptors}") if descriptors else ()
        self.server = Server(root, directory, options=all_options, listen=listen, prefix=prefix, tables=tables)

    @property
    def address(self) -> str:
        return self.server.address

    @property
    def pid(self) -> int:
        return self.server.pid

    def close(self) -> None:
        self.server.close()

    def channel(self, fixed_window: bool = False) -> grpc.Channel:
        """A connection of its own, with gRPC for Python. `fixed_window`: it accepts at most 64 KiB of unread bytes."""
        options = OWN_CONNECTION + ([("grpc.http2.bdp_probe", 0)] if fixed_window else [])
        if self.ca is None:
            return grpc.insecure_channel(self.address, options=options)
        credentials = grpc.ssl_channel_credentials(self.ca.read_bytes())
        return grpc.secure_channel(self.address, credentials, options=options)

    def metadata(self, token: str | None = None):
        token = token or self.token
        return [("authorization", f"Bearer {token}")] if token else []

    def get_server(self, channel: grpc.Channel, timeout: float = PATIENCE_S, metadata=None):
        """A small call that every client may make. `metadata` None: with the token."""
        stub = self.stubs.server_grpc.ServerStub(channel)
        return stub.GetServer(self.stubs.server.GetServerRequest(), timeout=timeout,
                              metadata=self.metadata() if metadata is None else metadata)

    def assert_serves(self, timeout: float = PATIENCE_S) -> None:
        """Checks that a new client is served."""
        with self.channel() as channel:
            self.get_server(channel, timeout)

    def assert_serves_again(self) -> None:
        """Checks that a new client is served within PATIENCE_S, maybe not at its first call."""
        def served() -> bool:
            try:
                self.assert_serves(PATIENCE_S / 3)
                return True
            except grpc.RpcError:
                return False

        wait_until(served, "the server serves again", PATIENCE_S)

    def resident(self) -> int:
        """Bytes."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def descriptors(self) -> set[int]:
        """The numbers of those that are open."""
        return set(map(int, os.listdir(f"/proc/{self.pid}/fd")))

    def connect_to_metrics(self) -> socket.socket:
        """A connection that asks for nothing. There are no metrics until it is closed."""
        return socket.create_connection(("127.0.0.1", self._metrics_port), timeout=PATIENCE_S)

    def holds(self, client: tuple[str, int]) -> bool:
        """Whether the server has the other end of a TCP connection from this port of 127.0.0.1 open."""
        there = f"0100007F:{client[1]:04X}"
        table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        sockets = {f"socket:[{fields[9]}]" for fields in table if fields[2] == there}
        return any(self._opened(number) in sockets for number in self.descriptors())

    def _opened(self, number: int) -> str:
        try:
            return os.readlink(f"/proc/{self.pid}/fd/{number}")
        except FileNotFoundError:
            return ""  # Closed meanwhile.

    def metric(self, line: str) -> float:
        """A value that Prometheus is told, by its name and labels as they stand there."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=PATIENCE_S) as page:
            lines = page.read().decode().splitlines()
        return float(next(each.split()[-1] for each in lines if each.startswith(line + " ")))

    def turned(self, reason: str) -> float:
        """Connections that were refused or cut for a reason."""
        return self.metric(f'h5mirror_server_connections_turned_total{{reason="{reason}"}}')

    def log(self) -> str:
        return self.server.log()

    def wait_for_log(self, text: str) -> None:
        wait_until(lambda: text in self.log(), f"no '{text}' in the log:\n{self.server.log_tail()}", PATIENCE_S)


class Peak:
    """The largest resident set while it is open, in bytes."""

    def __init__(self, target: Target):
        self.target, self.bytes = target, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while not self._stop.wait(0.02):
            self.bytes = max(self.bytes, self.target.resident())

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join()


class Honest:
    """A client with a valid token that makes a call after the other while it is open, each on a connection of its own."""

    def __init__(self, target: Target):
        self.target, self.served, self.errors = target, 0, []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            try:
                self.target.assert_serves()
                self.served += 1
            except grpc.RpcError as error:
                self.errors.append(f"{error.code()}: {error.details()}")

    def __enter__(self) -> "Honest":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join()


def for_seconds(seconds: float):
    """Goes round until the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
