"""A test's world: a server on an empty root, a working directory, programs that write through the plugin."""

import json
import os
import shutil
import textwrap
from pathlib import Path

from . import hdf5, paths
from .process import Process, Result, run, wait_until
from .proxy import Proxy
from .server import Server


class Site:
    """Everything that a test touches lies below `directory`.

    Files under `work` are mirrored by their name relative to it. `keep()` notes every version that a
    file has; `check_kept()` demands later that each is still there bit for bit.
    """

    def __init__(self, directory: Path, *, options: dict | None = None, h5py: str = "3.12.1", root: Path | None = None,
                 **server_arguments):
        self.directory = directory
        self.root = root or directory / "root"
        self.work, self.home, self.logs = directory / "work", directory / "home", directory / "logs"
        for each in (self.root, self.work, self.home, self.logs):
            each.mkdir(exist_ok=True)
        self.python = paths.venv_python(h5py)
        self.server = Server(self.root, self.logs, options=options, **server_arguments)
        self.proxy: Proxy | None = None  # through which programs and tools come
        self.kept: dict[str, dict[int, str]] = {}
        self.beside: list[Process] = []
        self._counter = 0

    @property
    def address(self) -> str:
        """Where programs and tools find the server."""
        return (self.proxy or self.server).address

    # Programs.

    def config(self, **keys) -> str:
        """A driver configuration for this server; a key given as None is left out."""
        # A loaded machine is no outage. test_outage.py tests the defaults, with timeout=None.
        patient = {} if "timeout" in keys else {"timeout": "15s", "linger": "100s"}
        all_keys = {"server": self.address, "root": self.work, **patient, **keys}
        return ";".join(f"{key}={value}" for key, value in all_keys.items() if value is not None)

    def env(self, config: str | None = None, **more: str) -> dict[str, str]:
        """The environment in which any HDF5 program is mirrored."""
        return hdf5.plain_env(HOME=str(self.home), HDF5_PLUGIN_PATH=str(paths.LIB), HDF5_DRIVER="h5mirror",
                              HDF5_DRIVER_CONFIG=self.config() if config is None else config,
                              LD_LIBRARY_PATH=str(paths.HDF5 / "lib"), **more)

    def plain_env(self) -> dict[str, str]:
        """The same with no driver."""
        return hdf5.plain_env(HOME=str(self.home), LD_LIBRARY_PATH=str(paths.HDF5 / "lib"))

    def start(self, command, *, config: str | None = None, env: dict | None = None, talks: bool = False,
              **more: str) -> Process:
        """Starts a program under the plugin and goes on; it is killed at the end of the test."""
        process = Process(command, self.logs, cwd=self.work, env=env or self.env(config, **more), talks=talks)
        self.beside.append(process)
        return process

    def run(self, command, *, config: str | None = None, env: dict | None = None, timeout: float = 120,
            **more: str) -> Result:
        """Runs a program under the plugin to its end."""
        return run(command, self.logs, cwd=self.work, env=env or self.env(config, **more), timeout=timeout)

    def script(self, text: str) -> list:
        """The command that runs a Python script with h5py; h5py and numpy are imported for it."""
        self._counter += 1
        path = self.directory / f"script-{self._counter}.py"
        path.write_text("import os, sys, time\nimport h5py\nimport numpy as np\n" + textwrap.dedent(text))
        return [self.python, path]

    def py(self, text: str, **options) -> Result:
        """Runs a Python script under the plugin; it must succeed."""
        return self.run(self.script(text), **options).ok()

    def edit(self, name: str, text: str) -> None:
        """One more version of a file, made or changed by a script under the plugin that has it open as f."""
        lines = "\n".join("        " + line for line in text.strip().splitlines())
        self.py(f"\n    with h5py.File('{name}', 'a') as f:\n" + lines)
        self.settle(name)

    # The admin CLI.

    def cli(self, *arguments, timeout: float = 120) -> Result:
        env = hdf5.plain_env(HOME=str(self.home), H5MIRROR_SERVER=self.address)
        return run([paths.BIN / "h5mirror", "--server", self.address, *arguments], self.logs,
                   env=env, cwd=self.directory, timeout=timeout, name="h5mirror")

    def json(self, *arguments, timeout: float = 120):
        return json.loads(self.cli(*arguments, "--json", timeout=timeout).ok().out)

    def status(self, name: str) -> dict:
        """The server's state of a file."""
        return self.json("status", name)

    def settle(self, name: str, timeout: int = 120) -> dict:
        """Waits until the head holds the newest cut of now."""
        cut = int(self.status(name)["last_cut"])

        def durable() -> bool:
            status = self.status(name)
            return int(status["durable_cut"]) >= min(cut, int(status["last_cut"]))

        wait_until(durable, f"cut {cut} of {name} is not durable", timeout)
        return self.json("status", name, f"--wait={timeout}", timeout=timeout + 10)

    def wait_for_cut(self, name: str, timeout: float = 60) -> None:
        """Waits until a file has a cut."""
        wait_until(lambda: self._field(name, "last_cut") not in (None, "0", 0), f"{name} has no cut", timeout)

    def wait_for_no_lease(self, name: str, timeout: float = 120) -> None:
        """Waits until no writer has a file open, as far as the server knows, and its last cut is durable."""
        def at_rest() -> bool:
            status = self._status_if_there(name)
            if status is None:
                return True
            return not status["lease"] and status["last_cut"] == status["durable_cut"]

        wait_until(at_rest, f"{name} is still leased, or its last cut is not durable", timeout)

    def _field(self, name: str, field: str):
        status = self._status_if_there(name)
        return None if status is None else status.get(field)

    def _status_if_there(self, name: str) -> dict | None:
        """In one call: a file that never had a cut goes with its session."""
        shown = self.cli("status", name, "--json")
        return None if shown.code == 3 else json.loads(shown.ok().out)

    def versions(self, name: str) -> list[int]:
        """The numbers of a file's versions, oldest first."""
        return sorted(int(row["version"]) for row in self.log(name))

    def log(self, name: str) -> list[dict]:
        """A file's versions, newest first."""
        return self.json("log", name)["versions"]

    def exists(self, name: str) -> bool:
        return self.cli("log", name).code == 0

    def export(self, name: str, version: int, timeout: float = 120) -> Path:
        """A version as a plain file."""
        out = self.directory / "export" / f"{name.replace('/', '_')}@{version}"
        out.parent.mkdir(exist_ok=True)
        out.unlink(missing_ok=True)
        self.cli("export", f"{name}@{version}", out, timeout=timeout).ok()
        return out

    def record(self, name: str) -> dict:
        """The client's record of a local file's mirror."""
        return json.loads((self.work / f"{name}.h5m" / "client.json").read_text())

    # Claims.

    def head(self, name: str) -> Path:
        return self.root / name

    def local(self, name: str) -> Path:
        return self.work / name

    def assert_mirrored(self, name: str) -> dict:
        """Local file and head are the same; returns the file's state."""
        status = self.settle(name)
        hdf5.assert_same(self.local(name), self.head(name))
        return status

    def keep(self, *names: str) -> None:
        """Notes all versions of files: from here on none may change."""
        for name in names:
            self.settle(name)
            noted = self.kept.setdefault(name, {})
            for version in self.versions(name):
                exported = self.export(name, version)
                noted.setdefault(version, hdf5.digest(exported))
                exported.unlink()

    def check_kept(self) -> None:
        """Every version that was noted is there bit for bit, and every head is its newest version and opens."""
        for name in self.kept:
            self.settle(name)
            self.check_versions_kept(name)
            last = self.versions(name)[-1]
            newest = self.export(name, last)
            assert hdf5.digest(newest) == hdf5.digest(self.head(name)), f"the head of {name} is not @{last}"
            hdf5.assert_opens(self.head(name))
            newest.unlink()

    def check_versions_kept(self, name: str) -> None:
        """The same of one file, whatever its head is: cuts may have followed its newest version."""
        versions = self.versions(name)
        for version, digest in self.kept[name].items():
            assert version in versions, f"{name}@{version} is gone; the server has {versions}"
            exported = self.export(name, version)
            assert hdf5.digest(exported) == digest, f"{name}@{version} has changed"
            exported.unlink()

    def kill_programs(self) -> None:
        """The programs that start() has started and that still run."""
        for process in self.beside:
            process.kill()

    def close(self) -> None:
        self.kill_programs()
        self.server.close()
        shutil.rmtree(self.directory / "export", ignore_errors=True)


def count_open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
