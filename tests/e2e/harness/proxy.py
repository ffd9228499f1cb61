"""tests/fault_proxy between a program and its server."""

import json
import subprocess
import tempfile
from pathlib import Path

from . import hdf5, paths
from .process import wait_until


class Proxy:
    """Forwards connections to `target` (HOST:PORT). What else it does one says by tell(): the words of
    tests/fault_proxy/control.h. With `cut_after`, each connection is reset once the client has sent so
    many bytes: in the middle of a frame, as when a machine vanishes."""

    def __init__(self, target: str, cut_after: int | None = None, record: bool = False):
        with tempfile.TemporaryDirectory() as directory:
            port_file = Path(directory) / "port"
            self._popen = subprocess.Popen(
                [paths.TEST_BIN / "fault_proxy", "--to", target, "--port-file", port_file, "--control"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env=hdf5.plain_env(), start_new_session=True)
            wait_until(port_file.exists, f"{paths.TEST_BIN}/fault_proxy does not listen")
            self.address = f"127.0.0.1:{int(port_file.read_text())}"
        self.cut_after = cut_after
        if record:
            self.tell("record on")

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_) -> None:
        self._popen.kill()
        self._popen.wait(10)
        self._popen.stdin.close()
        self._popen.stdout.close()

    def tell(self, words: str) -> dict:
        """Sends it a command; returns its totals so far."""
        self._popen.stdin.write(words + "\n")
        self._popen.stdin.flush()
        answer = json.loads(self._popen.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer

    @property
    def cuts(self) -> int:
        """Connections that were reset at `cut_after`."""
        return self.tell("totals")["cuts"]

    @property
    def cut_after(self) -> int | None:
        return self._cut_after

    @cut_after.setter
    def cut_after(self, limit: int | None) -> None:
        """Of connections to come."""
        self._cut_after = limit
        self.tell(f"cut-after {'off' if limit is None else limit}")
