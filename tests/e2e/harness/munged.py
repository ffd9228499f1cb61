"""A munged with a key and a socket of its own, which all users of this machine reach."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from .process import Process, run, wait_until


class Munged:
    """`directory` must be one that other users may enter."""

    def __init__(self, directory: Path, logs: Path, *options):
        self.directory, self.logs = directory, logs
        directory.mkdir()
        directory.chmod(0o755)
        self.socket = directory / "socket"
        key = directory / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        self.command = [shutil.which("munged") or "/usr/sbin/munged", "--foreground", "--force", f"--socket={self.socket}",
                        f"--key-file={key}", f"--pid-file={directory}/pid", f"--log-file={directory}/log",
                        f"--seed-file={directory}/seed", *options]
        self.process: Process | None = None

    def start(self) -> None:
        self.process = Process(self.command, self.logs, name="munged")
        wait_until(lambda: self._munge("--no-input").returncode == 0, "munged does not answer", 60)

    def credential(self, user: str, *options, payload: str = "h5mirror") -> str:
        """A credential that munge(1) makes for a user."""
        made = self._munge("--string", payload, *options, user=user)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def decode(self, credential: str) -> None:
        """Decodes a credential, like another service of this host."""
        run(["bash", "-c", f"printf %s '{credential}' | unmunge --socket={self.socket}"], self.logs, timeout=30,
            name="unmunge").ok()

    def _munge(self, *options, user: str = "root"):
        return subprocess.run(["setpriv", f"--reuid={user}", "--clear-groups", "munge", f"--socket={self.socket}", *options],
                              capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)

    def pause(self) -> None:
        self.process.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.signal(signal.SIGCONT)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
