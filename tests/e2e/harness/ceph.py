"""A Ceph of one machine for a test: monitor, OSDs, MDSs; see tests/ceph/cluster."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from . import paths
from .process import wait_until

_PROGRAMS = {"ceph": "ceph-common", "ceph-mon": "ceph-mon", "ceph-osd": "ceph-osd", "ceph-mds": "ceph-mds",
             "monmaptool": "ceph-common"}
_MODULES = {"libh5mirror_ceph.so": "libcephfs-dev", "libh5mirror_cluster.so": "librados-dev"}


def missing_packages() -> list[str]:
    """Debian packages without which there is no Ceph here, or without which h5mirrord was built."""
    programs = [package for program, package in _PROGRAMS.items() if shutil.which(program) is None]
    modules = [package for module, package in _MODULES.items() if not (paths.LIB / "h5mirror" / module).exists()]
    return sorted({*programs, *modules})


class Ceph:
    """Lives from start() to close(). Its pool for objects is `data`, its filesystem is empty."""

    def __init__(self, *, osds: int = 1, copies: int = 1, mdss: int = 1, store: str = "memstore",
                 address: str = "127.0.0.1", mds_grace_s: int = 60):
        self._script = paths.SOURCE / "tests" / "ceph" / "cluster"
        self._env = {**os.environ, "H5M_CEPH_OSDS": str(osds), "H5M_CEPH_COPIES": str(copies),
                     "H5M_CEPH_MDSS": str(mdss), "H5M_CEPH_STORE": store, "H5M_CEPH_ADDRESS": address,
                     "H5M_CEPH_MDS_GRACE": str(mds_grace_s)}
        self.directory = Path(tempfile.mkdtemp(prefix="h5m-ceph."))  # short: sockets are in it
        self.conf = self.directory / "ceph.conf"
        self.root = f"cephfs:/?conf={self.conf}"
        self.registry = "rados://data/registry"

    def start(self) -> "Ceph":
        self._do("start")
        return self

    def kill(self, daemon: str) -> None:
        """SIGKILL to `mon.a`, `osd.N` or `mds.X`."""
        self._do("kill", daemon)

    def launch(self, daemon: str) -> None:
        """Starts a killed daemon again."""
        self._do("launch", daemon)

    def active_mds(self) -> str:
        """The name of an MDS that serves files."""
        return re.search(r"=(\w+)=up:active", self.ask("mds", "stat"))[1]

    def has_standby(self) -> bool:
        """An MDS serves files, and another one stands by."""
        mds = json.loads(self.ask("status", "--format", "json"))["fsmap"]
        return mds["up"] == mds["in"] and mds["up:standby"] > 0

    def ask(self, *command) -> str:
        """The output of `ceph COMMAND`."""
        done = subprocess.run(["ceph", "-c", self.conf, "--connect-timeout", "20", *command],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"ceph {command}: {done.stderr}"
        return done.stdout

    def fill(self) -> None:
        """Its OSDs are full from here on: their limit is set below their present content."""
        subprocess.run(["rados", "-c", self.conf, "-p", "data", "put", "filler", "-"], input=bytes(64 << 20), check=True,
                       timeout=60)
        self._set_ratios(nearfull="0.005", backfillfull="0.006", full="0.007")
        wait_until(lambda: "full osd" in self.ask("health"), "the OSDs are not full", 60, every=0.5)

    def make_room(self) -> None:
        self._set_ratios(full="0.95", backfillfull="0.9", nearfull="0.85")
        wait_until(lambda: "full osd" not in self.ask("health"), "the OSDs are full", 60, every=0.5)

    def _set_ratios(self, **ratios: str) -> None:
        for name, ratio in ratios.items():
            self.ask("osd", f"set-{name}-ratio", ratio)

    def make_directories(self, names) -> None:
        """Makes a directory in the root of its filesystem."""
        self._client("mkdir", *(f"/{name}" for name in names))

    def get(self, name: str, out: Path) -> Path:
        """A file as another client of the filesystem reads it."""
        self._client("get", f"/{name}", out)
        return out

    def leave_a_dead_client(self) -> None:
        """A client that dies with its session: the MDS waits for it."""
        dead = subprocess.Popen([sys.executable, paths.PROGRAMS / "cephfs.py", self.conf, "stay"],
                                stdout=subprocess.PIPE)
        dead.stdout.readline()
        dead.kill()
        dead.wait(20)
        dead.stdout.close()

    @contextlib.contextmanager
    def frozen_reader(self, name: str):
        """A client that stands still while it has a file open, until it is killed at the end."""
        reader = subprocess.Popen([sys.executable, paths.PROGRAMS / "cephfs.py", self.conf, "hold", f"/{name}"],
                                  stdout=subprocess.PIPE)
        try:
            reader.stdout.readline()
            reader.send_signal(signal.SIGSTOP)
            yield
        finally:
            reader.kill()
            reader.wait(20)
            reader.stdout.close()

    def _client(self, *arguments) -> None:
        done = subprocess.run([sys.executable, paths.PROGRAMS / "cephfs.py", self.conf, *arguments],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr

    def close(self) -> None:
        self._do("stop")
        shutil.rmtree(self.directory, ignore_errors=True)

    def _do(self, verb: str, *daemon: str) -> None:
        # Its daemons live on, with no pipe of ours. The name is this Ceph's own: others may run beside it.
        said_file = self.directory.with_name(f"{self.directory.name}.said")
        with open(said_file, "w+") as said:
            done = subprocess.run([self._script, verb, self.directory, *daemon], env=self._env, timeout=180,
                                  stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
            said.seek(0)
            assert done.returncode == 0, f"tests/ceph/cluster {verb}: {said.read()}"
        said_file.unlink()
