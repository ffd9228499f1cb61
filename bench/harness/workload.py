"""One timed run of bench_workload."""

import json
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from harness import paths


@dataclass
class Run:
    """Seconds. CPU times are of both sides until the server has nothing left to do."""

    open_s: float
    felt_s: float
    total_s: float
    exit_s: float  # from the start of the workload to the end of the process
    bytes: int
    client_cpu_s: float
    server_cpu_s: float = 0.0

    def as_dict(self) -> dict:
        return asdict(self)

    def per_repeat(self, repeats: int) -> "Run":
        return self if repeats == 1 else Run(**{k: v / repeats for k, v in self.as_dict().items()})


class WorkloadFailed(RuntimeError):
    pass


def environment(scratch: Path, **more: str) -> dict[str, str]:
    """No settings of the user may leak in."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("HDF5_", "H5MIRROR_", "XDG_", "GRPC_"))}
    env.update(HOME=str(scratch), HDF5_PLUGIN_PATH=str(paths.PLUGIN_DIR), **more)
    return env


def run_workload(name: str, file: Path, *, driver: str, config: str, scratch: Path,
                 warm_up: Path | None = None, scale: float = 1.0, repeats: int = 1,
                 fsync: bool = False, timeout_s: float = 600, before=lambda: None) -> Run:
    """Starts the process, lets it warm up, calls `before`, and then times the workload."""
    command = [paths.BIN / "bench_workload", name, file, "--driver", driver,
               "--scale", scale, "--repeats", repeats, "--start-on-stdin"]
    if config:
        command += ["--config", config]
    if warm_up:
        command += ["--warm-up", warm_up]
    if fsync:
        command += ["--fsync"]
    return run_timed(command, scratch=scratch, timeout_s=timeout_s, before=before)[0]


def run_timed(command: list, *, scratch: Path, timeout_s: float = 600,
              before=lambda: None) -> tuple[Run, dict]:
    """The same with any program of the bench, which gets --start-on-stdin; also returns all that it prints in the
    end."""
    with Timed(command, scratch=scratch, timeout_s=timeout_s) as timed:
        before()
        timed.go()
        return timed.result()


class Timed:
    """One of the bench's programs as a context manager: ready at the beginning of the body, gone after it."""

    def __init__(self, command: list, *, scratch: Path, timeout_s: float = 600, python: bool = False, **more: str):
        """`python`: it may use the package h5mirror; `more` is for its environment."""
        self.command = [str(part) for part in command]
        self._errors = tempfile.NamedTemporaryFile(dir=scratch, prefix="program-", suffix=".err")
        env = environment(scratch, **(_package_environment() if python else {}), **more)
        self._process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._errors, text=True, env=env)
        self._killer = threading.Timer(timeout_s, self._process.kill)
        self._killer.start()
        self._start_s = 0.0
        self.usage = None  # of the process and of its children, once it has ended

    def __enter__(self):
        try:
            self.await_line("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._killer.cancel()
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        try:
            self._process.stdin.close()
        except OSError:
            pass  # It was gone before it read all.
        self._errors.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def await_line(self, word: str) -> None:
        """Waits until the program prints `word` alone in a line."""
        line = self._process.stdout.readline()
        if line != word + "\n":
            raise self._failed(f"it did not say {word!r} but {line!r}")

    def go(self) -> None:
        self._start_s = time.monotonic()
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._failed(str(error)) from error

    def said(self) -> dict | list:
        """Waits for its end; the line of JSON that it prints last."""
        line = self._process.stdout.readline()
        _, status, self.usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        if self._process.returncode != 0:
            raise self._failed(f"exit status {self._process.returncode}")
        try:
            return json.loads(line)
        except ValueError as error:
            raise self._failed(f"it said {line!r}") from error

    def result(self) -> tuple[Run, dict]:
        said = self.said()
        exit_s = time.monotonic() - self._start_s
        run = Run(open_s=said["open_s"], felt_s=said["felt_s"], total_s=said["total_s"], exit_s=exit_s,
                  bytes=said["bytes"],
                  client_cpu_s=self.usage.ru_utime + self.usage.ru_stime - said["cpu_before_s"])
        return run, said

    def _failed(self, why: str) -> WorkloadFailed:
        text = Path(self._errors.name).read_text(errors="replace")[-4000:]
        return WorkloadFailed(f"{' '.join(self.command)}: {why}\n{text}")


def _package_environment() -> dict[str, str]:
    return {"PYTHONPATH": str(paths.SOURCE / "client_vfd" / "python"), "PYTHONDONTWRITEBYTECODE": "1",
            "H5MIRROR_PLUGIN_DIR": str(paths.PLUGIN_DIR), "PATH": f"{paths.BIN}:/usr/bin:/bin"}


def settle_disk() -> None:
    """So that one driver's write-back does not hit the next one's run."""
    os.sync()


def make_premade(file: Path, size_mib: int) -> None:
    subprocess.run([paths.BIN / "bench_workload", "premade", file, "--premade-mib", str(size_mib)],
                   check=True, env=environment(file.parent))
