"""A Ceph of one machine, on the disk that is measured: a monitor, an OSD in a file (bluestore), an MDS."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from harness import paths

_SCRIPT = paths.SOURCE / "tests" / "ceph" / "cluster"


class Ceph:
    """Between __enter__ and __exit__; `directory` is a short path, for sockets are in it."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.root = f"cephfs:/?conf={directory / 'ceph.conf'}"

    def __enter__(self) -> "Ceph":
        if missing := [name for name in ("ceph", "ceph-mon", "ceph-osd", "ceph-mds") if shutil.which(name) is None]:
            raise SystemExit(f"there is no {missing[0]}: apt install ceph-mon ceph-osd ceph-mds ceph-common")
        self.directory.mkdir()
        self._do("start")
        return self

    def __exit__(self, *_) -> None:
        self._do("stop")

    def _do(self, verb: str) -> None:
        # The daemons live on, with no pipe of ours.
        with open(f"{self.directory}-{verb}", "w") as log:
            subprocess.run([_SCRIPT, verb, self.directory], env={**os.environ, "H5M_CEPH_STORE": "bluestore"},
                           check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, timeout=120)

    def raw_mib_per_s(self, gib: int) -> float:
        """The speed of RADOS alone for so many GiB: objects of 4 MiB, 16 at a time, as a file in CephFS is written.

        Removes them again. With a limit by time alone a fast disk would fill the OSD."""
        done = subprocess.run(["rados", "-c", self.directory / "ceph.conf", "-p", "data", "bench", "600", "write",
                               "--max-objects", str(256 * gib)],
                              check=True, capture_output=True, text=True, timeout=720)
        return float(re.search(r"^Bandwidth \(MB/sec\):\s+([\d.]+)", done.stdout, re.MULTILINE)[1])

    def counters(self) -> dict[str, tuple[int, float]]:
        """Since the start: how often, and seconds of all of them together."""
        osd, mds = self._perf("osd.0"), self._perf("mds.a")
        return {"write of a client or the MDS to the OSD": _both(osd["osd"]["op_w_latency"]),
                "sync of the OSD's own journal": _both(osd["bluestore"]["kv_sync_lat"]),
                "dirty capability flushed to the MDS": (mds["mds"]["handle_client_caps_dirty"], 0.0),
                "event in the MDS's journal": _both(mds["mds_log"]["jlat"]),
                "request to the MDS": _both(mds["mds"]["reply_latency"])}

    def _perf(self, daemon: str) -> dict:
        done = subprocess.run(["ceph", "--admin-daemon", self.directory / "run" / f"{daemon}.asok", "perf", "dump"],
                              check=True, capture_output=True, text=True, timeout=60)
        return json.loads(done.stdout)


def _both(counter: dict) -> tuple[int, float]:
    return counter["avgcount"], counter["sum"]
