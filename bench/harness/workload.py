"""One timed run of bench_workload."""

import json
import os
import subprocess
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
    """No settings of the user's may leak in."""
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
    errors = scratch / "workload.err"
    with open(errors, "wb") as stderr:
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=stderr, text=True,
                                   env=environment(scratch))
    killer = threading.Timer(timeout_s, process.kill)
    killer.start()
    try:
        return _drive(process, before)
    except (ValueError, OSError) as error:
        process.kill()
        raise WorkloadFailed(f"{name} with {driver} on {file}: {error}\n"
                             f"{errors.read_text(errors='replace')[-4000:]}") from error
    finally:
        killer.cancel()
        process.stdout.close()
        process.stdin.close()


def _drive(process, before) -> Run:
    ready = process.stdout.readline()
    if ready != "ready\n":
        os.waitpid(process.pid, 0)
        raise ValueError(f"it did not get ready, said {ready!r}")
    before()
    start_s = time.monotonic()
    process.stdin.write("\n")
    process.stdin.flush()
    line = process.stdout.readline()
    _, status, usage = os.wait4(process.pid, 0)
    exit_s = time.monotonic() - start_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise ValueError(f"exit status {process.returncode}")
    times = json.loads(line)
    return Run(open_s=times["open_s"], felt_s=times["felt_s"], total_s=times["total_s"],
               exit_s=exit_s, bytes=times["bytes"],
               client_cpu_s=usage.ru_utime + usage.ru_stime - times["cpu_before_s"])


def settle_disk() -> None:
    """So that one driver's write-back does not hit the next one's run."""
    os.sync()


def make_premade(file: Path, size_mib: int) -> None:
    subprocess.run([paths.BIN / "bench_workload", "premade", file, "--premade-mib", str(size_mib)],
                   check=True, env=environment(file.parent))
