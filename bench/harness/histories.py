"""Ways to keep the versions of one file, each on a directory of its own: what bench/versions.py
sets side by side. Versions count from 1, which is the file as it was made."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from harness import paths
from harness.daemons import Server
from harness.workload import WorkloadFailed, environment

PAGE_BYTES = 4096
FILE = "data.h5"


def history_tool(verb: str, file: Path, *, scratch: Path, timeout_s: float = 1800, **options) -> dict:
    """Runs bench_history. True: a flag; a list: an option given several times."""
    command = [paths.BIN / "bench_history", verb, file]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            command += [f"--{name}"] if one is True else [f"--{name}", one]
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True,
                          timeout=timeout_s, env=environment(scratch))
    if done.returncode != 0:
        raise WorkloadFailed(f"{' '.join(map(str, command))}: {done.stderr[-3000:]}")
    return json.loads(done.stdout)


def disk_bytes(*tops: Path) -> int:
    """The bytes of files on the disk, without holes."""
    total = 0
    for top in tops:
        for path in [top, *top.rglob("*")] if top.exists() else []:
            total += path.lstat().st_blocks * 512
    return total


class History:
    """A context manager. `commit`: SAFE survives power loss when it returns, the other may not."""

    label = ""
    driver = "sec2"

    def __init__(self, directory: Path, pages: int):
        self.directory = directory
        self.pages = pages  # that each version overwrites
        self.versions = 0
        self.file = directory / "local" / FILE
        self._seed = 0

    def __enter__(self):
        self.file.parent.mkdir(parents=True)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory)

    def tool(self, verb: str, **options) -> dict:
        return history_tool(verb, self.file, scratch=self.directory, **options)

    def create(self, mib: int, **options) -> None:
        self.tool("create", mib=mib, **options)
        self.versions = 1

    def commit(self, count: int, *, safe: bool, **options) -> list[float]:
        """Makes `count` versions; the seconds that each took."""
        self._seed += 1
        times = self._commit(count, safe, **options)
        self.versions += count
        return times

    def _commit(self, count: int, safe: bool, **options) -> list[float]:
        sync = {"sync": [str(path) for path in self.synced_files()]} if safe else {}
        return self.tool("commit", count=count, pages=self.pages, seed=self._seed,
                         driver=self.driver, **sync, **options)["commits_s"]

    def synced_files(self) -> list[Path]:
        return [self.file]

    def open(self, versions: list[int]) -> list[float] | None:
        """Seconds to open each; None: it has no versions."""
        return self._each("open", versions)["opens_s"]

    def read(self, versions: list[int]) -> list[float] | None:
        return self._each("read", versions)["reads_s"]

    def _each(self, verb: str, versions: list[int]) -> dict:
        return self.tool(verb, driver=self.driver, config=self.config(),
                         versions=",".join(self.name_of(version) for version in versions))

    def config(self) -> str:
        return ""

    def name_of(self, version: int) -> str:
        return str(version)

    def history_bytes(self) -> int:
        """The bytes on the disk beside the file."""
        return 0


class Plain(History):
    """No versions at all."""

    label = "no versions"


class Ours(History):
    label = "h5mirror"
    driver = "h5mirror"

    def __init__(self, directory: Path, pages: int, flags: tuple[str, ...] = ()):
        super().__init__(directory, pages)
        self.server = Server(directory / "remote", directory / "server.log", flags=flags)

    def __enter__(self):
        super().__enter__()
        self.server.start()
        return self

    def __exit__(self, *exc):
        self.server.stop()
        super().__exit__(*exc)

    def _keys(self, **more: str) -> str:
        keys = {"server": f"127.0.0.1:{self.server.port}", "root": str(self.file.parent),
                "timeout": "60s", **more}
        return ";".join(f"{key}={value}" for key, value in keys.items())

    def create(self, mib: int, **options) -> None:
        super().create(mib, driver=self.driver, config=self._keys(ack="durable"), **options)

    def _commit(self, count: int, safe: bool, **options) -> list[float]:
        config = self._keys(ack="durable" if safe else "applied")
        return self.tool("commit", count=count, pages=self.pages, seed=self._seed,
                         driver=self.driver, config=config, **options)["commits_s"]

    def config(self) -> str:
        return self._keys(mode="reader", version="{version}")

    def cli(self, *arguments) -> str:
        done = subprocess.run([str(part) for part in (paths.BIN / "h5mirror", "--server",
                                                      f"127.0.0.1:{self.server.port}", *arguments)],
                              text=True, capture_output=True, timeout=1800,
                              env=environment(self.directory))
        if done.returncode != 0:
            raise WorkloadFailed(f"h5mirror {arguments}: {done.stdout[-500:]}{done.stderr[-2000:]}")
        return done.stdout

    def settle(self) -> None:
        """Waits until the head holds the newest version."""
        self.cli("status", FILE, "--wait=600")

    def history_bytes(self) -> int:
        self.settle()
        return disk_bytes(self.server.root / f"{FILE}.h5m")


class Onion(History):
    """HDF5's own. A revision has the differences to the version before, and nothing is ever synced."""

    label = "onion driver"
    driver = "onion"

    def _onion(self) -> Path:
        return self.file.with_name(FILE + ".onion")

    def synced_files(self) -> list[Path]:
        return [self._onion()]

    def config(self) -> str:
        return "{version}"

    def name_of(self, version: int) -> str:
        return str(version - 1)  # Revision 0 is the file as it was.

    def history_bytes(self) -> int:
        return disk_bytes(self._onion())


class Copies(History):
    """A copy of the whole file by cp(1), for each version. Only the newest ones are left."""

    LEFT = 2

    def __init__(self, directory: Path, pages: int, reflink: str):
        super().__init__(directory, pages)
        self.reflink = reflink
        self.label = f"cp --reflink={reflink}"
        self._version_bytes = 0

    def _copy(self, version: int) -> Path:
        return self.file.with_name(f"{FILE}.{version}")

    def _commit(self, count: int, safe: bool, **options) -> list[float]:
        times = []
        for version in range(self.versions + 1, self.versions + count + 1):
            changed_s = self.tool("commit", count=1, pages=self.pages, driver=self.driver,
                                  seed=1000 * self._seed + version, **options)["commits_s"][0]
            copy = self._copy(version)
            start_s = time.monotonic()
            subprocess.run(["cp", f"--reflink={self.reflink}", self.file, copy], check=True)
            if safe:
                with open(copy, "rb") as file:
                    os.fsync(file.fileno())
            times.append(changed_s + time.monotonic() - start_s)
            self._version_bytes = disk_bytes(copy)
            self._copy(version - self.LEFT).unlink(missing_ok=True)
        return times

    def open(self, versions: list[int]) -> None:
        return None  # A copy is a plain file.

    def read(self, versions: list[int]) -> None:
        return None

    def history_bytes(self) -> int:
        return self._version_bytes * (self.versions - 1)
