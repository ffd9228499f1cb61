"""A raw client of the frame stream: it sends messages that no plugin would send."""

import json
import os
import subprocess
import threading

from . import hdf5, paths

KEEP_ALIVE = "2a00"  # MirrorFileRequest.keep_alive, the 5th field, with nothing in it


class Wire:
    """Drives the wire_client program: one line in for each request, JSON lines out for each answer."""

    def __init__(self, site, *, session: str | None = None, path: str = "/data/x.h5", machine: str = "wire-test",
                 address: str | None = None, program: tuple = ()):
        """`program`: what begins the command in place of the build's own wire_client."""
        self.session = session or os.urandom(16).hex()
        self.path, self.machine = path, machine
        self.seq = 0
        self.popen = subprocess.Popen([*(program or [paths.TEST_BIN / "e2e_wire_client"]), address or site.server.address],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env=hdf5.plain_env(HOME=str(site.home)), start_new_session=True)
        self._sending, self._ends = threading.Lock(), threading.Event()
        self._renewing: threading.Thread | None = None

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_) -> None:
        self.die()

    @property
    def pid(self) -> int:
        return self.popen.pid

    def send(self, *words) -> None:
        with self._sending:
            try:
                self.popen.stdin.write(" ".join(str(word) for word in words) + "\n")
                self.popen.stdin.flush()
            except BrokenPipeError:
                pass  # The stream has ended; finish() tells how.

    def stay(self) -> None:
        """From here on it renews its lease, as a client does that has nothing to say: the test may take longer than that."""
        def renew() -> None:
            while not self._ends.wait(0.5):
                self.send("raw", KEEP_ALIVE)

        self._renewing = threading.Thread(target=renew, daemon=True)
        self._renewing.start()

    def read(self) -> dict:
        """The next answer: {"opened": {...}}, {"cut_visible": ...}, {"cut_durable": ...} or the final {"end": ...}."""
        line = self.popen.stdout.readline()
        assert line, "the wire client died"
        return json.loads(line)

    def read_until(self, kind: str) -> dict:
        """Skips to an answer of a kind; the end of the stream before it fails the test."""
        while True:
            answer = self.read()
            if kind in answer:
                return answer[kind]
            assert "end" not in answer, f"the stream ended before {kind}: {answer}"

    def open(self, name: str, intent: str = "CREATE", **fields) -> None:
        """Sends OpenSession. `name` may hold \\0 and \\n as two characters each."""
        all_fields = {"name": name, "intent": f"INTENT_{intent}", "session": self.session, "path": self.path,
                      "machine": self.machine, **fields}
        self.send("open", json.dumps(all_fields))

    def write(self, offset: int, data: bytes) -> None:
        self.send("write", offset, data.hex() or "-")

    def fill(self, offset: int, length: int, byte: int = 0) -> None:
        """Writes `length` equal bytes, in frames of at most 1 MiB."""
        while length > 0:
            part = min(length, 1 << 20)
            self.send("fill", offset, part, byte)
            offset, length = offset + part, length - part

    def writes(self, extents: list[tuple[int, int]], data_bytes: int, crc: int | None = None) -> None:
        """A writes message whose extents need not fit its data."""
        self.send("writes", json.dumps({"extents": extents, "data_bytes": data_bytes, "crc": crc}))

    def truncate(self, size: int) -> None:
        self.send("truncate", size)

    def raw(self, message: bytes) -> None:
        """Any bytes as a message."""
        self.send("raw", message.hex() or "-")

    def barrier(self, kind: str, size: int, seq: int | None = None) -> int:
        self.seq = self.seq + 1 if seq is None else seq
        self.send("barrier", f"BARRIER_KIND_{kind}", self.seq, size)
        return self.seq

    def commit(self, size: int) -> int:
        return self.barrier("COMMIT", size)

    def finish(self) -> dict:
        """Half-closes, reads to the end and returns how the stream ended."""
        self.send("done")
        while True:
            answer = self.read()
            if "end" in answer:
                return answer["end"]

    def die(self) -> None:
        """SIGKILL: the stream breaks at once."""
        self._ends.set()
        self.popen.kill()
        self.popen.wait(10)
        if self._renewing is not None:
            self._renewing.join()
        try:
            self.popen.stdin.close()
        except BrokenPipeError:
            pass  # It still had commands for a stream that had ended.
        self.popen.stdout.close()
