"""h5mirror as `cmake --install` puts it, and an ordinary user of it: no build directory, no cache, an empty home."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from . import paths
from .process import Process, run, wait_until

NOBODY = 65534

# Empty directories hide the files that the user must not see.
HIDE = 'for each in $H5M_HIDDEN; do mount -t tmpfs -o mode=0755 hidden "$each"; done; unset H5M_HIDDEN; exec "$@"'


def install(prefix: Path, destdir: Path | None = None) -> None:
    """Installs the build below `prefix`, in `destdir`."""
    env = {**os.environ, **({"DESTDIR": str(destdir)} if destdir else {})}
    done = subprocess.run(["cmake", "--install", paths.BUILD, "--prefix", prefix], env=env, capture_output=True, text=True,
                          timeout=200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def _may_hide() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], capture_output=True, timeout=20).returncode == 0


class User:
    """A user without rights that runs the programs below `prefix`, with `home` as home and working directory.

    Where the tests run as root this is another user, without access to the build and its sources.
    """

    def __init__(self, prefix: Path, home: Path, logs: Path):
        self.prefix, self.home, self.logs = prefix, home, logs
        home.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(home, NOBODY, NOBODY)
        self._hides = _may_hide()

    @property
    def is_another(self) -> bool:
        return os.geteuid() == 0

    def env(self, **more: str) -> dict[str, str]:
        return {"PATH": f"{self.prefix}/bin:/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8", **more}

    def command(self, command) -> list:
        become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if self.is_another else []
        hide = ["unshare", "--mount", "env", f"H5M_HIDDEN={paths.CACHE} {paths.BUILD}", "sh", "-ec", HIDE, "sh"] if self._hides else []
        return [*hide, *become, *command]

    def run(self, command, *, timeout: float = 120, **more: str):
        return run(self.command(command), self.logs, cwd=self.home, env=self.env(**more), timeout=timeout)

    def start(self, command, **more: str) -> Process:
        return Process(self.command(command), self.logs, cwd=self.home, env=self.env(**more))

    def serve(self) -> tuple[Process, str]:
        """The user's own server, and its address."""
        root, port_file = self.home / "root", self.home / "port"
        self.run(["mkdir", root]).ok()
        server = self.start(["h5mirrord", "--root", root, "--listen", "127.0.0.1:0", "--port-file", port_file])

        def listens() -> bool:
            assert server.running(), server.err()
            return port_file.exists() and port_file.read_text().endswith("\n")

        wait_until(listens, "h5mirrord does not listen")
        return server, "127.0.0.1:" + re.findall(r"\d+", port_file.read_text())[-1]


def copy_h5py(directory: Path) -> Path:
    """The h5py of the tests where an ordinary user may read it: a directory for PYTHONPATH, of /usr/bin/python3."""
    source, = (paths.venv_python("3.12.1").parents[1] / "lib").glob("python3*/site-packages")
    directory.mkdir()
    for name in ("h5py", "h5py.libs", "numpy", "numpy.libs"):
        if (source / name).exists():
            shutil.copytree(source / name, directory / name, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    return directory
