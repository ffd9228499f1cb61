"""The drivers that are set side by side. A Site is one driver with its server, if it has one."""

import contextlib
import filecmp
import json
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from harness import paths
from harness.daemons import DelayProxy, Server, StockMirror
from harness.workload import Run, environment, run_workload, settle_disk


@dataclass(frozen=True)
class Driver:
    key: str              # in --drivers
    label: str            # in tables
    kind: str             # sec2, splitter, mirror, h5mirror
    ack: str = ""         # h5mirror: none, applied, durable
    fsync: bool = False   # sec2: fsync after the close
    tls: bool = False
    more: tuple[tuple[str, str], ...] = ()  # h5mirror: further keys of the config, over those of config()


SEC2 = Driver("sec2", "sec2", "sec2")
SEC2_FSYNC = Driver("sec2_fsync", "sec2+fsync", "sec2", fsync=True)
SPLITTER = Driver("splitter", "splitter", "splitter")
STOCK = Driver("stock", "stock mirror", "mirror")
NONE = Driver("none", "ack=none", "h5mirror", ack="none")
APPLIED = Driver("applied", "ack=applied", "h5mirror", ack="applied")
DURABLE = Driver("durable", "ack=durable", "h5mirror", ack="durable")
TLS = Driver("tls", "applied, TLS", "h5mirror", ack="applied", tls=True)
ALL = (SEC2, SEC2_FSYNC, SPLITTER, STOCK, NONE, APPLIED, DURABLE, TLS)


class WrongBytes(RuntimeError):
    """The mirror's bytes differ from the local file's: its time is worth nothing."""


class Site:
    """Directories and server of one driver, on an empty `directory`. A context manager."""

    def __init__(self, driver: Driver, directory: Path, *, certificates: Path | None = None,
                 round_trip_ms: float | None = None):
        self.driver = driver
        self.directory = directory
        self.local = directory / "local"
        self.remote = directory / "remote"
        self._certificates = certificates if driver.tls else None
        self._round_trip_ms = round_trip_ms
        self._server = None
        self._proxy = None

    def __enter__(self):
        self.local.mkdir(parents=True)
        if self.driver.kind == "h5mirror":
            self._server = Server(self.remote, self.directory / "server.log", self._certificates,
                                  far=self._round_trip_ms is not None)
        else:
            self.remote.mkdir()
        if self.driver.kind == "mirror":
            self._server = StockMirror(self.directory / "server.log")
        if self._server:
            self._server.start()
            self._start_proxy()
        return self

    def _start_proxy(self) -> None:
        if self._round_trip_ms is not None:
            self._proxy = DelayProxy(self._server.port, self._round_trip_ms,
                                     self.directory / "proxy.log")
            self._proxy.start()

    def __exit__(self, *_):
        for daemon in (self._proxy, self._server):
            if daemon:
                daemon.stop()
        shutil.rmtree(self.directory)

    @property
    def server(self) -> Server | StockMirror:
        return self._server

    @property
    def server_pid(self) -> int:
        """Also that of its process group."""
        return self._server.pid

    @contextlib.contextmanager
    def server_away(self):
        """h5mirrord ends, and is back on its port afterwards."""
        self._server.stop()
        yield
        self._server.start()

    def carried_bytes(self) -> int:
        """By the proxy so far, both ways."""
        totals = self._proxy.tell("totals")
        return totals["to_server_bytes"] + totals["to_client_bytes"]

    def address(self) -> str:
        return f"127.0.0.1:{(self._proxy or self._server).port}"

    def config(self) -> str:
        if self.driver.kind == "mirror":
            return f"{self.address()}:{self.remote}"
        if self.driver.kind == "splitter":
            return str(self.remote)
        if self.driver.kind == "h5mirror":
            keys = {"server": self.address(), "root": str(self.local), "ack": self.driver.ack,
                    "timeout": "60s", **self._server.client_keys(), **dict(self.driver.more)}
            return ";".join(f"{key}={value}" for key, value in keys.items())
        return ""

    def run(self, workload: str, name: str, *, warm: bool = True, **options) -> Run:
        """Times one run on the file `name` and checks the mirror's bytes afterwards."""
        return self.timed(name, lambda before: run_workload(
            workload, self.local / name, driver=self.driver.kind, config=self.config(), scratch=self.directory,
            warm_up=self.local / "warm-up.h5" if warm else None, fsync=self.driver.fsync, before=before, **options))

    def timed(self, name: str, start) -> Run:
        """The same with another way to time: `start` calls its argument when the program is ready."""
        cpu_before_s = 0.0

        def before():
            nonlocal cpu_before_s
            settle_disk()
            if self._server:
                cpu_before_s = self._server.cpu_seconds()

        run = start(before)
        self.check(name)
        if self._server:
            run.server_cpu_s = self._server.cpu_seconds() - cpu_before_s
        return run

    def check(self, name: str) -> None:
        """Waits until the server has done its work, and compares. Raises WrongBytes."""
        if self.driver.kind == "sec2":
            return
        if self.driver.kind == "h5mirror":
            self._settle(name)
        deadline = time.monotonic() + 10  # The stock server may still be closing the file.
        while not self._same(name):
            if self.driver.kind == "h5mirror" or time.monotonic() > deadline:
                raise WrongBytes(f"{self.driver.label}: {self.remote / name} differs from "
                                 f"{self.local / name}; server's log: {self._log_tail()}")
            time.sleep(0.02)

    def _same(self, name: str) -> bool:
        remote = self.remote / name
        return remote.exists() and filecmp.cmp(self.local / name, remote, shallow=False)

    def cuts(self, name: str) -> int:
        """How many cuts the server has made of a file. Only h5mirror's."""
        return int(json.loads(self._settle(name))["last_cut"])

    def _settle(self, name: str) -> str:
        keys = self._server.client_keys()
        flags = [part for key, value in keys.items() for part in (f"--{key}", value)]
        done = subprocess.run(
            [paths.BIN / "h5mirror", "--server", f"127.0.0.1:{self._server.port}", *flags,
             "status", name, "--wait", "--json"],
            text=True, capture_output=True, timeout=120, env=environment(self.directory))
        if done.returncode != 0:
            raise WrongBytes(f"{self.driver.label}: status {name} --wait: "
                             f"{done.stdout}{done.stderr}{self._log_tail()}")
        return done.stdout

    def _log_tail(self) -> str:
        return self._server.log.read_text(errors="replace")[-2000:] if self._server else ""
