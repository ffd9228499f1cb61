"""Running programs: bounded in time, killed by process group, with readable failures."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Result:
    """The end of a program, and its output."""
    command: list[str]
    code: int
    out: str
    err: str
    seconds: float

    @property
    def said(self) -> str:
        return self.out + self.err

    def describe(self) -> str:
        return (f"$ {' '.join(self.command)}\nexit {self.code} after {self.seconds:.1f} s\n"
                f"--- stdout\n{self.out[-4000:]}\n--- stderr\n{self.err[-4000:]}")

    def ok(self) -> "Result":
        assert self.code == 0, self.describe()
        return self


class Process:
    """A program that runs beside the test. Its output goes to two files in `directory`; with `talks` it reads what
    ask() tells it."""

    def __init__(self, command, directory: Path, *, env=None, cwd=None, name="program", talks=False):
        self.command = [str(part) for part in command]
        stamp = f"{name}-{time.monotonic_ns()}"
        self._out_path = directory / f"{stamp}.out"
        self._err_path = directory / f"{stamp}.err"
        self.started = time.monotonic()
        with open(self._out_path, "wb") as out, open(self._err_path, "wb") as err:
            self.popen = subprocess.Popen(self.command, stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                                          stdout=out, stderr=err, env=env, cwd=cwd, start_new_session=True)
        self._lines_read = 0

    @property
    def pid(self) -> int:
        return self.popen.pid

    def running(self) -> bool:
        return self.popen.poll() is None

    def out(self) -> str:
        return self._out_path.read_text(errors="replace")

    def out_since(self, byte: int) -> bytes:
        """Its output from a byte on, for callers that look often."""
        with open(self._out_path, "rb") as opened:
            opened.seek(byte)
            return opened.read()

    def err(self) -> str:
        return self._err_path.read_text(errors="replace")

    def wait(self, timeout: float = 120) -> Result:
        """Waits for the end; a program that takes longer is killed and fails the test."""
        try:
            self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            result = self._result()
            raise AssertionError(f"still running after {timeout} s:\n{result.describe()}") from None
        return self._result()

    def wait_for_line(self, text: str, timeout: float = 120) -> None:
        """Waits until the program has printed `text`."""
        deadline = time.monotonic() + timeout
        while text not in self.out():
            assert self.running() or text in self.out(), f"ended early:\n{self._result().describe()}"
            assert time.monotonic() < deadline, f"no '{text}' in {timeout} s:\n{self._result().describe()}"
            time.sleep(0.01)

    def line(self, timeout: float = 120) -> str:
        """The next line that it prints."""
        wait_until(lambda: self.out().count("\n") > self._lines_read or not self.running(), "a line", timeout)
        lines = self.out().split("\n")[:-1]
        assert len(lines) > self._lines_read, f"ended early:\n{self._result().describe()}"
        self._lines_read += 1
        return lines[self._lines_read - 1]

    def ask(self, text: str, timeout: float = 120) -> str:
        """Writes a line to a program that talks, and returns the next one that it prints."""
        self.popen.stdin.write(text.encode() + b"\n")
        self.popen.stdin.flush()
        return self.line(timeout)

    def signal(self, number: int) -> None:
        """After SIGSTOP no thread of it runs any more: kill(2) returns while some still do."""
        if not self.running():
            return
        os.killpg(self.pid, number)
        if number == signal.SIGSTOP:
            wait_until(lambda: not self.running() or stands_still(self.pid), "it stops", every=0.001)

    def kill(self) -> None:
        """SIGKILL to the program and what it started; waits for it."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait(10)

    def _result(self) -> Result:
        code = self.popen.poll()
        return Result(self.command, -999 if code is None else code, self.out(), self.err(),
                      time.monotonic() - self.started)


def run(command, directory: Path, *, timeout=120.0, env=None, cwd=None, name="program") -> Result:
    """Runs a program to its end."""
    process = Process(command, directory, env=env, cwd=cwd, name=name)
    try:
        return process.wait(timeout)
    finally:
        process.kill()


def wait_until(true, what: str, timeout: float = 60, every: float | None = None) -> None:
    """Polls `true()`; fails with `what` after `timeout` seconds.

    Between two looks it pauses `every` seconds. By default that is 0.02, and as long as the look took where that is
    longer: looks that run a program would take a core from those that are waited for. Who waits for a state that does
    not last gives `every`.
    """
    begun = time.monotonic()
    deadline = begun + timeout
    while not true():
        looked = time.monotonic()
        assert looked < deadline, f"not within {timeout} s: {what}"
        time.sleep(max(0.02, looked - begun) if every is None else every)
        begun = time.monotonic()


def stands_still(pid: int) -> bool:
    """True: all threads of a process are stopped."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue  # It ended.
        if state not in "TtZX":
            return False
    return True


def memory_kb(pid: int, field: str = "VmHWM") -> int:
    """One figure of /proc/PID/status."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise AssertionError(f"no {field} for process {pid}")
