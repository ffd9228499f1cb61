"""Writers and readers of a cluster. It measures how long they were without a server after a loss."""

import json
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from . import paths
from .cluster import Cluster
from .process import Process, wait_until

# The longest that a flush may wait for a successor. After it the program would go on without an ack.
TIMEOUT_S = 60
# A watcher waits for five beats before it gives a server up. An earlier ack was already under way.
IN_FLIGHT_S = 2.0
# Issue: from the loss of a server to the first durable ack of its successor.
TARGET_P50_S, TARGET_P99_S = 7.0, 10.0


class Lines:
    """The output of a program, line by line, each line once."""

    def __init__(self, process: Process):
        self.process = process
        self._read = 0

    def next(self) -> list[str]:
        whole, _, _ = self.process.out_since(self._read).rpartition(b"\n")
        self._read += len(whole) + 1 if whole else 0
        return whole.decode().split("\n") if whole else []


@dataclass
class Takeover:
    """From the loss on: until each of its cells has a successor, until that has acked a file, until it has acked all of
    them, and until another server has given it up (0: none has). And where its logs are: the time of day in seconds since
    1970 (0: not noted), the server, the life of a long run."""
    loss: str
    owned_s: float
    first_ack_s: float
    all_acked_s: float
    given_up_s: float = 0
    at: float = 0
    server: str = ""
    life: int = 0


class Crowd:
    """Each writer has `files_each` files of its own, spread over the cells, and a reader of its first `reads` files. The
    first writer knows the common name of the servers, the others and the readers know the list of them. Writers have the
    drivers of `builds` in turn. Readers have this one's: those of the first releases end with an error where a server stops
    in the middle of a call."""

    def __init__(self, cluster: Cluster, *, writers: int, files_each: int, pause_s: float = 0.05, reads: int = 1,
                 timeout_s: int = TIMEOUT_S, builds: tuple[Path, ...] = (paths.BUILD,)):
        self.cluster, self._timeout_s, self._builds = cluster, timeout_s, builds
        self.acked: dict[str, tuple[int, float]] = {}  # by file: the last flush that was acked, and when
        self.seen: dict[str, int] = {}
        self.away = 0  # opens for which no server answered, or not the owner
        self.slowest_s = 0.0
        self.log = cluster.site.directory / "writers.log"  # of the driver
        names = [f"{cluster.cells[i % len(cluster.cells)]}/f{i}.h5" for i in range(writers * files_each)]
        for cell in cluster.cells:
            cluster.site.local(cell).mkdir(exist_ok=True)
        self.names = names
        self.readers: list[Lines] = []
        self._list = "|".join(cluster.addresses)
        self.writers = [self._start_writer(names[i::writers], pause_s, self._list if i else cluster.front.address, i)
                        for i in range(writers)]
        wait_until(self._all_have_acks, "a writer has no ack", 120)
        self.readers = [self._start_reader(names[i::writers][:reads]) for i in range(writers)]

    def _start_writer(self, names: list[str], pause_s: float, servers: str, turn: int) -> Lines:
        # Without on_outage a flush goes on at once if the server is known to be away.
        config = self.cluster.site.config(server=servers, ack="durable", timeout=f"{self._timeout_s}s",
                                          on_outage=f"wait={self._timeout_s}s", log=self.log)
        build = self._builds[turn % len(self._builds)]
        return self._start("cluster_writer.py", pause_s, *names, config=config, build=build)

    def _start_reader(self, names: list[str]) -> Lines:
        config = self.cluster.site.config(server=self._list, mode="reader", ack=None, timeout="2s", linger=None)
        return self._start("cluster_reader.py", *names, config=config, build=paths.BUILD)

    def _start(self, program: str, *arguments, config: str, build: Path) -> Lines:
        site = self.cluster.site
        env = {**site.env(config), "HDF5_PLUGIN_PATH": str(build / "lib")}
        return Lines(site.start([site.python, paths.PROGRAMS / program, *arguments], env=env))

    def _all_have_acks(self) -> bool:
        self.look()
        return len(self.acked) == len(self.names)

    def look(self) -> None:
        """Takes in all output of the programs. Fails if a program met an error, or saw a mixed cut."""
        for writer in self.writers:
            for line in writer.next():
                word, *rest = line.split()
                if word == "ack":
                    name, n, began, ended = rest
                    self.acked[name] = (int(n), float(ended))
                    self.slowest_s = max(self.slowest_s, float(ended) - float(began))
                    assert self.slowest_s < self._timeout_s, f"a flush went on without an ack: {line}"
            code = writer.process.popen.poll()
            assert code in (None, 0), f"a writer ended with {code}:\n{writer.process.err()[-3000:]}"
        for reader in self.readers:
            self._look_at_reader(reader)

    def _look_at_reader(self, reader: Lines) -> None:
        for line in reader.next():
            word, name, *n = line.split()
            if word == "seen":
                self.seen[name] = max(self.seen.get(name, 0), int(n[0]))
            else:
                self.away += 1
        code = reader.process.popen.poll()
        assert code in (None, 0), f"a reader ended with {code}:\n{reader.process.err()[-3000:]}"

    def files_of(self, cells: list[str]) -> list[str]:
        return [name for name in self.names if name.split("/")[0] in cells]

    def await_acks(self, names: list[str], since: float, timeout: float = 120) -> list[float]:
        """Waits until each file has an ack that came after `since`. Returns how much later the first one of each came,
        sorted."""
        first: dict[str, float] = {}
        wait_until(lambda: self._note_first(first, names, since), "files have no ack", timeout)
        return sorted(first.values())

    def _note_first(self, first: dict[str, float], names: list[str], since: float) -> bool:
        self.look()
        for name in names:
            if self.acked[name][1] > since:
                first.setdefault(name, self.acked[name][1] - since)
        return len(first) == len(names)

    def await_takeover(self, cells: list[str], lost_at: float, loss: str, epochs: dict[str, int]) -> Takeover:
        """From the loss of the server of `cells` to the acks of its successors."""
        names, since = self.files_of(cells), lost_at + IN_FLIGHT_S
        first: dict[str, float] = {}
        owned_s, given_up_s, judged = None, 0.0, self.cluster.judgements()

        def all_came() -> bool:
            nonlocal owned_s, given_up_s
            if not given_up_s and self.cluster.judgements() > judged:
                given_up_s = time.monotonic() - lost_at
            came = self._note_first(first, names, since)
            served = {cell for cell in cells if self.cluster.epoch(cell) > epochs[cell]}
            if owned_s is None and len(served) == len(cells):
                owned_s = time.monotonic() - lost_at
            early = [name for name in first if name.split("/")[0] not in served]
            assert not early, f"{early} have acks, and no successor"
            return came

        wait_until(all_came, f"files have no ack, {first} have:\n{self.cluster.logs()}", 120, every=0.05)
        acks = sorted(first.values())
        return Takeover(loss, owned_s, acks[0] + IN_FLIGHT_S, acks[-1] + IN_FLIGHT_S, given_up_s)

    def await_reads(self, names: list[str], timeout: float = 60) -> None:
        """Waits until a reader has seen each of these files at its present last ack, or later."""
        wanted = {name: self.acked[name][0] for name in names}

        def all_seen() -> bool:
            self.look()
            return all(self.seen.get(name, -1) >= n for name, n in wanted.items())

        wait_until(all_seen, f"readers do not see {wanted}, but {self.seen}", timeout)

    def read_names(self) -> list[str]:
        """The files that have readers."""
        return sorted({name for reader in self.readers for name in reader.process.command[2:]})

    def finish(self) -> None:
        """All programs end in order. Checks that each file is whole, on the server as here."""
        self.cluster.site.local("enough").touch()
        for each in [*self.writers, *self.readers]:
            each.process.wait(120).ok()
        self.look()
        for name in self.names:
            self.cluster.assert_whole(name)


def quantile(values: list[float], part: float) -> float:
    """The smallest value that `part` of all values do not exceed."""
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


def report(takeovers: list[Takeover], name: str, **more) -> dict:
    """Prints the times and stores them, and `more`, in the build's `figures`. The targets are told of, not asserted: how
    long a takeover lasts depends on the machine."""
    firsts = [each.first_ack_s for each in takeovers]
    figures = {"count": len(takeovers), "p50_s": quantile(firsts, 0.5), "p99_s": quantile(firsts, 0.99),
               "longest_s": max(firsts), "target_p50_s": TARGET_P50_S, "target_p99_s": TARGET_P99_S,
               "takeovers": [asdict(each) for each in takeovers], **more}
    place: Path = paths.BUILD / "figures"
    place.mkdir(exist_ok=True)
    (place / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(f"{len(takeovers)} takeovers, from the loss to the first durable ack of the successor: "
          f"p50 {figures['p50_s']:.2f} s (target {TARGET_P50_S:g}, {verdict(figures['p50_s'], TARGET_P50_S)}), "
          f"p99 {figures['p99_s']:.2f} s (target {TARGET_P99_S:g}, {verdict(figures['p99_s'], TARGET_P99_S)}), "
          f"longest {figures['longest_s']:.2f} s")
    describe_kinds(takeovers)
    return figures


def verdict(seconds: float, target_s: float) -> str:
    return "reached" if seconds < target_s else "MISSED"


def describe_kinds(takeovers: list[Takeover]) -> None:
    for loss in sorted({each.loss for each in takeovers}):
        some = [each for each in takeovers if each.loss == loss]
        given_up = [each.given_up_s for each in some if each.given_up_s]
        owned = [each.owned_s for each in some if each.owned_s]
        print(f"  {loss}: {len(some)}, " + (f"given up after {quantile(given_up, 0.5):.2f} s, " if given_up else "") +
              (f"cells open after {quantile(owned, 0.5):.2f} s, " if owned else "") +
              f"first ack {quantile([each.first_ack_s for each in some], 0.5):.2f} s (medians), "
              f"longest {max(each.first_ack_s for each in some):.2f} s, "
              f"all files acked after {max(each.all_acked_s for each in some):.2f} s")
