"""Servers and proxies as context managers, each in a process session of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from harness import paths

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def session_cpu_seconds(session_id: int) -> float:
    """User and system time of all processes of a session, with their children that have ended."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # It ended meanwhile.
        if int(fields[3]) == session_id:
            total += sum(int(field) for field in fields[11:15])
    return total / _TICKS_PER_SECOND


class Daemon:
    """Runs `command` between __enter__ and __exit__; its output goes to `log`."""

    def __init__(self, log: Path):
        self.log = log
        self.port = 0
        self._process = None

    def _start(self, command, **options) -> None:
        self._out = open(self.log, "ab")
        pipes = {"stdin": subprocess.DEVNULL, "stdout": self._out, "stderr": subprocess.STDOUT, **options}
        self._process = subprocess.Popen([str(part) for part in command], start_new_session=True, **pipes)

    def _wait_for_port(self, port_file: Path, timeout_s: float = 20) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if port_file.exists() and port_file.read_text().strip():
                self.port = int(port_file.read_text().split()[0])
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.01)
        self._kill()
        raise RuntimeError(f"{self._process.args[0]} does not serve: {self.log.read_text()}")

    def cpu_seconds(self) -> float:
        return session_cpu_seconds(self._process.pid)

    def reset_peak_mib(self) -> float:
        """From now on peak_mib() is the most memory that the process has taken since this call. Returns its memory
        now."""
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")
        return self.peak_mib()

    def peak_mib(self) -> float:
        return self._status_mib("VmHWM")

    def resident_mib(self) -> float:
        return self._status_mib("VmRSS")

    def _status_mib(self, line: str) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(rf"^{line}:\s*(\d+) kB", status, re.MULTILINE).group(1)) / 1024

    @property
    def pid(self) -> int:
        return self._process.pid

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                pass
        self._kill()
        self._out.close()

    def _kill(self) -> None:
        try:  # The writers that a stock mirror server forked belong to its group.
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()


class Server(Daemon):
    """h5mirrord on a root of its own; with `certificates`, a directory of `h5mirrord init`, TLS.

    `far`: its writers come through a delay. As behind an `ssh -L`, its listener cannot tell.
    """

    def __init__(self, root: Path, log: Path, certificates: Path | None = None, *,
                 far: bool = False, flags: tuple[str, ...] = ()):
        super().__init__(log)
        self.root = root
        self.certificates = certificates
        self.far = far
        self.flags = flags  # more settings

    def start(self) -> None:
        """May be called again after stop(): uses the same port, so that clients find it."""
        self.root.mkdir(parents=True, exist_ok=True)
        port_file = self.log.with_suffix(".port")
        port_file.unlink(missing_ok=True)
        tls = []
        if self.certificates:
            tls = ["--tls-cert", self.certificates / "server.pem",
                   "--tls-key", self.certificates / "server.key",
                   "--tokens-file", self.certificates / "tokens"]
        self._start([paths.BIN / "h5mirrord", "--root", self.root, "--listen", f"127.0.0.1:{self.port}",
                     "--port-file", port_file, "--log-level", "warn",
                     *(["--window-probe", "on"] if self.far else []), *tls, *self.flags])
        self._wait_for_port(port_file)

    def client_keys(self) -> dict[str, str]:
        """Keys of the driver's config, and flags of the tool, that this server wants."""
        if not self.certificates:
            return {}
        return {"ca": str(self.certificates / "ca.pem"), "token": f"@{self.certificates}/token"}


class ReadersAgent(Daemon):
    """h5mirror-agent for the readers of one server; its socket lies in `directory`."""

    def __init__(self, server: str, directory: Path, *, cache_mib: int):
        super().__init__(directory / "agent.log")
        self.socket = directory / "agent.sock"
        self.server = server
        self.cache_mib = cache_mib

    def start(self) -> None:
        self._start([paths.BIN / "h5mirror-agent", "--server", self.server, "--socket", self.socket,
                     "--cache", f"{self.cache_mib}MiB", "--log-level", "warn"])
        deadline = time.monotonic() + 20
        while not self.socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._kill()
                raise RuntimeError(f"h5mirror-agent does not serve: {self.log.read_text()}")
            time.sleep(0.01)


def make_certificates(directory: Path) -> Path:
    subprocess.run([paths.BIN / "h5mirrord", "init", "--dir", directory], check=True,
                   capture_output=True, text=True)
    return directory


class StockMirror(Daemon):
    """HDF5's mirror_server. It does not accept port 0, so a free port is searched."""

    def start(self) -> None:
        for _ in range(20):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
            self._start([paths.STOCK_MIRROR_SERVER, f"--port={self.port}", "--verbosity=0"])
            if self._listens():
                return
            self._kill()
        raise RuntimeError("mirror_server does not listen")

    def _listens(self) -> bool:
        """Asks the kernel: a trial connection would be taken for a client."""
        wanted = re.compile(rf"^\s*\d+: [0-9A-F]{{8}}:{self.port:04X} \S+ 0A ", re.MULTILINE)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and self._process.poll() is None:
            if wanted.search(Path("/proc/net/tcp").read_text()):
                return True
            time.sleep(0.005)
        return False


class DelayProxy(Daemon):
    """fault_proxy in front of a port; adds `round_trip_ms` to each round trip."""

    def __init__(self, to_port: int, round_trip_ms: float, log: Path):
        super().__init__(log)
        self.to_port = to_port
        self.round_trip_ms = round_trip_ms

    def start(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            port_file = Path(directory) / "port"
            self._start([paths.TEST_BIN / "fault_proxy", "--to", f"127.0.0.1:{self.to_port}",
                         "--port-file", port_file, "--control",
                         "--delay-us", round(self.round_trip_ms * 500)],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self._wait_for_port(port_file)

    def tell(self, words: str) -> dict:
        """Sends it a command (tests/fault_proxy/control.h); returns its totals so far."""
        self._process.stdin.write(words.encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())
