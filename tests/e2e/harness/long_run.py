"""Takeovers by the hundred: lives of a cluster, one after the other or some at once, each from a seed of its own.

A life has a new cluster and a new crowd, and some losses of all kinds in an order that its seed gives. A failed life
ends there, and is reported with the command that repeats it. The others go on.

A takeover waits more than it computes, so lives may run side by side: each in a process, and with ports, directories and
network namespaces of its own.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import paths
from .crowd import TARGET_P99_S, Takeover
from .losses import Losses

# Losses of a life. The logs and histories of a life grow, and each loss reads the logs.
LOSSES_OF_A_LIFE = 25
DAY_S = 86_400
# If so many lives in a row did not begin, the run ends: the machine cannot hold a cluster.
BARREN_LIVES = 3
# Kinds of loss without a successor; they are measured apart.
OF_CEPH = ("osd", "mds")
NO_TAKEOVER = ("drain", *OF_CEPH)


class Closing(contextlib.ExitStack):
    """Closes things at the end, the last one first."""

    def __call__(self, thing):
        return self.enter_context(contextlib.closing(thing))


@dataclass
class Life:
    """The start of one life. `jump`, if any, sets the clock of a random server."""
    losses: Losses
    look: Callable[[], None]  # readers and followers have come as far as the writers
    finish: Callable[[], None]  # all end in order, all files are whole
    jump: Callable[[random.Random], None] | None = None


@dataclass
class Failure:
    seed: int
    step: int  # from 1 on; the losses of that life up to it repeat it
    losses: list[str]
    error: str


@dataclass
class Ended:
    """One life."""
    seed: int
    takeovers: list[Takeover] = field(default_factory=list)
    others: list[Takeover] = field(default_factory=list)
    failure: Failure | None = None
    load: float = 0.0  # at its end: how many processes wanted a core, over the last minute


@dataclass
class Done:
    takeovers: list[Takeover] = field(default_factory=list)
    others: list[Takeover] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    lives: int = 0  # that were begun
    seconds: float = 0.0

    def add(self, life: Ended) -> None:
        self.takeovers += life.takeovers
        self.others += life.others
        self.loads.append(life.load)
        if life.failure is not None:
            self.failures.append(life.failure)


def plan(seed: int, kinds: tuple[str, ...]) -> list[str]:
    """The kinds of a life's losses, by the seed alone. Each kind comes about as often; those of Ceph once each, as they last
    for long."""
    chance = random.Random(seed)
    servers = [kind for kind in kinds if kind not in OF_CEPH]
    losses = []
    while len(losses) < LOSSES_OF_A_LIFE:
        bag = list(servers)
        chance.shuffle(bag)
        losses += bag
    losses = losses[:LOSSES_OF_A_LIFE]
    for kind in OF_CEPH:
        if kind in kinds:
            losses.insert(chance.randrange(len(losses) + 1), kind)
    return losses


def live(life: Life, losses: list[str], seed: int, ends_at: float) -> None:
    """Makes all of `losses`, or as many as the time allows. Raises if a claim does not hold."""
    chance = random.Random(seed)
    for loss in losses:
        if time.monotonic() > ends_at:
            break
        if life.jump is not None and chance.random() < 0.5:
            life.jump(chance)
        if loss in OF_CEPH:
            life.losses.of_ceph(loss)
        else:
            life.losses.one(loss)
        life.look()
    life.finish()


Begin = Callable[[Path, Closing, int], Life]


def run_lives(begin: Begin, directory: Path, *, kinds: Callable[[int], tuple], takeovers: int, seconds: float, seed: int,
              at_once: int = 1) -> Done:
    """Lives with the seeds `seed`, `seed` + 1, ... until there were so many takeovers, or for so long, `at_once` at a time. The
    last life is cut short: with as many takeovers as a life had losses, its own seed repeats it."""
    done, began = Done(), time.monotonic()
    with (Here() if at_once == 1 else Beside(at_once)) as places:
        while True:
            while places.has_room() and time.monotonic() - began < seconds and not is_barren(done):
                losses = next_losses(seed + done.lives, kinds, takeovers - len(done.takeovers) - places.promised())
                if not losses:
                    break
                places.begin(begin, directory, losses, seed + done.lives, began + seconds)
                done.lives += 1
            if (life := places.next_ended()) is None:
                break
            done.add(life)
            print(f"life {life.seed}: {len(done.takeovers)} takeovers, {len(done.failures)} failures in "
                  f"{time.monotonic() - began:.0f} s", flush=True)
    done.seconds = time.monotonic() - began
    return done


def next_losses(seed: int, kinds: Callable[[int], tuple], wanted: int) -> list[str]:
    """Those of a life; none, where no more takeovers are wanted."""
    return plan(seed, kinds(seed))[:max(wanted, 0)]


def is_barren(done: Done) -> bool:
    """The last lives, several in a row, did not begin."""
    last = sorted(done.failures, key=lambda each: each.seed)[-BARREN_LIVES:]
    in_a_row = len(last) == BARREN_LIVES and last[-1].seed - last[0].seed == BARREN_LIVES - 1
    return in_a_row and all(each.step == 0 for each in last)


class Here(contextlib.AbstractContextManager):
    """One life at a time, in this process."""

    def __init__(self):
        self._ended: list[Ended] = []

    def __exit__(self, *_) -> None:
        pass

    def has_room(self) -> bool:
        return not self._ended

    def promised(self) -> int:
        """Takeovers of the lives that go on."""
        return 0

    def begin(self, *life) -> None:
        self._ended.append(one_life(*life))

    def next_ended(self) -> Ended | None:
        """Waits for a life to end; None: none goes on."""
        return self._ended.pop() if self._ended else None


class Beside(contextlib.AbstractContextManager):
    """Some lives at a time, each in a process of its own. The end of this ends them, and all that they have started."""

    def __init__(self, count: int):
        self._count = count
        self._context = multiprocessing.get_context("fork")  # It starts no thread, so a fork is safe.
        self._running: dict[multiprocessing.connection.Connection, tuple] = {}

    def __exit__(self, *_) -> None:
        for process, _, _ in self._running.values():
            process.terminate()
        for process, _, _ in self._running.values():
            process.join(120)
            process.kill()

    def has_room(self) -> bool:
        return len(self._running) < self._count

    def promised(self) -> int:
        return sum(takeovers_in(losses) for _, losses, _ in self._running.values())

    def begin(self, begin: Begin, directory: Path, losses: list[str], seed: int, ends_at: float) -> None:
        near, far = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_live_beside, args=(far, begin, directory, losses, seed, ends_at))
        process.start()
        far.close()
        self._running[near] = (process, losses, seed)

    def next_ended(self) -> Ended | None:
        if not self._running:
            return None
        near = multiprocessing.connection.wait(list(self._running))[0]
        process, _, seed = self._running[near]
        try:
            ended = near.recv()
        except EOFError:
            process.join(60)
            ended = Ended(seed, failure=Failure(seed, 0, [], f"the process of this life ended with {process.exitcode}"))
        process.join(60)
        del self._running[near]
        near.close()
        if isinstance(ended, BaseException):  # pytest's, of a test that is skipped
            raise ended
        return ended


def _live_beside(far: multiprocessing.connection.Connection, *life) -> None:
    """In a process of its own. SIGTERM closes what the life has begun."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("the run ends"))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        far.send(one_life(*life))
    except SystemExit:
        raise
    except BaseException as end:  # noqa: BLE001 - the process that has started this one raises it
        far.send(end)


def takeovers_in(losses: list[str]) -> int:
    return sum(loss not in NO_TAKEOVER for loss in losses)


def one_life(begin: Begin, directory: Path, losses: list[str], seed: int, ends_at: float) -> Ended:
    directory = directory / f"life-{seed}"
    directory.mkdir()
    ended, life = Ended(seed), None
    try:
        with Closing() as stack:
            life = begin(directory, stack, seed)
            live(life, losses, seed, ends_at)
        slowest_s = max((each.all_acked_s for each in life.losses.done), default=0)
        if slowest_s < TARGET_P99_S:
            shutil.rmtree(directory)
        else:
            # The directory of a run without a failure is removed.
            kept = paths.BUILD / "figures" / f"slow-life-{seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.move(directory, kept)
            print(f"a file of life {seed} had no ack for {slowest_s:.2f} s; its logs are in {kept}", flush=True)
    except Exception as error:  # noqa: BLE001 - the next life goes on
        step = 0 if life is None else len(life.losses.done) + len(life.losses.others) + 1
        ended.failure = Failure(seed, step, losses[:step], "".join(traceback.format_exception(error))[-6000:])
        print(f"life {seed} failed at loss {step} ({' '.join(losses[:step])}); its directory stays:\n"
              f"{ended.failure.error}", flush=True)
    if life is not None:
        ended.takeovers, ended.others = life.losses.done, life.losses.others
        for each in [*ended.takeovers, *ended.others]:
            each.life = seed
    ended.load = os.getloadavg()[0]
    return ended
