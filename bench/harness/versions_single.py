"""Parts of bench/versions.py that are measured by themselves: each gets an empty directory and
returns {row: {column: [figure of each repeat]}}, seconds unless the column says otherwise."""

import os
import subprocess
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from harness.histories import FILE, PAGE_BYTES, Onion, Ours, Plain
from harness.workload import settle_disk


def _timed(body) -> float:
    start_s = time.monotonic()
    body()
    return time.monotonic() - start_s


def export(options, directory: Path) -> dict:
    """A version as a file of its own, beside cp(1) of the head."""
    figures = defaultdict(lambda: defaultdict(list))
    changed = max(1, (options.export_mib << 20) // PAGE_BYTES // 20)
    with Ours(directory / "ours", changed) as ours:
        ours.create(options.export_mib)
        ours.commit(1, safe=True)
        ours.settle()
        ours.file.unlink()  # It would only take memory from the others.
        head, out = ours.server.root / FILE, directory / "out.h5"
        ways = {
            "cp --reflink=never": lambda: _cp("never", head, out),
            "cp --reflink=auto": lambda: _cp("auto", head, out),
            "h5mirror export, newest": lambda: ours.cli("export", "--force", f"{FILE}@2", out),
            "h5mirror export, old": lambda: ours.cli("export", "--force", f"{FILE}@1", out),
        }
        for repeat in range(options.repeats):
            names = list(ways)
            for name in names[repeat % len(names):] + names[:repeat % len(names)]:
                settle_disk()
                start_s = time.monotonic()
                ways[name]()
                figures[name]["until it returns"].append(time.monotonic() - start_s)
                _sync(out)
                figures[name]["on the disk"].append(time.monotonic() - start_s)
                out.unlink()
    return figures


def _cp(reflink: str, source: Path, target: Path) -> None:
    subprocess.run(["cp", f"--reflink={reflink}", source, target], check=True)


def _sync(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def sparse(options, directory: Path) -> dict:
    """The same commit in a file of 10 MB and in a huge one that is nearly all hole."""
    figures = defaultdict(lambda: defaultdict(list))
    sizes = {"in 10 MiB": 10, f"in {options.huge_mib:,} MiB": options.huge_mib}
    with ExitStack() as stack:
        histories = []
        for kind in (Plain, Ours, Onion):
            for column, mib in sizes.items():
                history = stack.enter_context(kind(directory / f"{kind.__name__}-{mib}", options.pages))
                history.create(mib, sparse=True)
                history.commit(2, safe=True)
                histories.append((column, history))
        for _ in range(options.repeats):
            for column, history in histories:
                settle_disk()
                figures[history.label][column] += history.commit(options.commits, safe=True)[1:]
    return figures


def rollback(options, directory: Path) -> dict:
    """100 pages back, in a file of 1 TB that is nearly all hole."""
    figures = defaultdict(lambda: defaultdict(list))
    with Ours(directory / "ours", 100) as ours:
        ours.create(options.rollback_mib, sparse=True)
        ours.commit(1, safe=True)
        for _ in range(options.repeats):
            ours.commit(1, safe=True)
            ours.settle()
            row = figures["h5mirror rollback"]
            row["until it returns"].append(_timed(
                lambda: ours.cli("rollback", f"{FILE}@latest-1")))
            row["head holds it"].append(row["until it returns"][-1] + _timed(ours.settle))
    return figures


def compression(options, directory: Path) -> dict:
    """The cost and the gain of page_compression: versions that overwrite an eighth of a file."""
    figures = defaultdict(lambda: defaultdict(list))
    for data in ("noise", "signal", "counts"):
        with ExitStack() as stack:
            histories = []
            for how in ("none", "zstd"):
                ours = stack.enter_context(Ours(directory / f"{data}-{how}", _eighth(options),
                                                ("--page-compression", how)))
                ours.create(options.compression_mib, data=data)
                histories.append((figures[f"{data}, {how}"], ours))
            for _ in range(options.repeats):
                for row, ours in histories:
                    _commit_and_read(row, ours, data)
    return figures


def _eighth(options) -> int:
    return (options.compression_mib << 20) // PAGE_BYTES // 8


def _commit_and_read(row: dict, ours: Ours, data: str, count: int = 4) -> None:
    settle_disk()
    bytes_before, cpu_before_s = ours.history_bytes(), ours.server.cpu_seconds()
    start_s = time.monotonic()
    ours.commit(count, safe=True, data=data)
    row[f"{count} commits"].append(time.monotonic() - start_s)
    ours.settle()
    row["head holds them"].append(time.monotonic() - start_s)
    row["server CPU"].append(ours.server.cpu_seconds() - cpu_before_s)
    row["history bytes per overwritten byte"].append(
        (ours.history_bytes() - bytes_before) / (count * ours.pages * PAGE_BYTES))
    row["read newest"] += ours.read([ours.versions])
    row["read version 1"] += ours.read([1])


class _Watch(threading.Thread):
    """The largest figure that `look` ever returned, as long as it is a context manager's body."""

    def __init__(self, look):
        super().__init__(daemon=True)
        self._look = look
        self._done = threading.Event()
        self.most = look()

    def run(self) -> None:
        while not self._done.wait(0.01):
            self.most = max(self.most, self._look())

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self.join()


def flat(options, young: Ours, old: Ours) -> dict:
    """Safe commits with few versions and with many, in turns."""
    figures = defaultdict(lambda: defaultdict(list))
    rows = [(f"{history.versions:,} versions", history) for history in (young, old)]
    for repeat in range(2 * options.repeats):
        for row, history in rows[::1 if repeat % 2 else -1]:
            history.settle()
            settle_disk()
            times = sorted(history.commit(options.commits, safe=True)[1:])
            figures[row]["a safe commit"].append(times[len(times) // 2])
            figures[row]["until the head holds all"].append(_timed(history.settle))
    return {row: figures[row] for row, _ in rows}


def _segment_bytes(ours: Ours) -> int:
    total = 0
    for segment in (ours.server.root / f"{FILE}.h5m").glob("pages-*"):
        try:
            total += segment.stat().st_size
        except FileNotFoundError:
            pass  # Just given back.
    return total


def prune(ours: Ours, drop: int) -> dict:
    """`drop` of all versions dropped: seconds, the bytes that it frees, and the most that it takes meanwhile."""
    ours.settle()
    before, segments, peak_mib = ours.history_bytes(), _segment_bytes(ours), ours.server.reset_peak_mib()
    start_s = time.monotonic()
    with _Watch(lambda: _segment_bytes(ours)) as watch:
        ours.cli("prune", FILE, "--keep-last", ours.versions - drop)
    return {f"prune of {drop} of {ours.versions} versions": {
        "seconds": [time.monotonic() - start_s],
        "history before, MiB": [before / 2**20],
        "after, MiB": [ours.history_bytes() / 2**20],
        "most segments beyond before, MiB": [(watch.most - segments) / 2**20],
        "server's peak memory beyond before, MiB": [ours.server.peak_mib() - peak_mib],
    }}


SINGLES = {"export": export, "sparse": sparse, "rollback": rollback, "compression": compression}
