"""Takeovers by the hundred: lives of a cluster, one after the other, each from a seed of its own.

A life has a new cluster and a new crowd, and some losses of all kinds in an order that its seed gives. One that fails ends
there, and is told of with what repeats it. The others go on.
"""

import contextlib
import random
import shutil
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .crowd import TARGET_P99_S, Takeover
from .losses import Losses

# Losses of a life. The logs and histories of a life grow, and each loss reads the logs.
LOSSES_OF_A_LIFE = 25
DAY_S = 86_400
# So many in a row that did not begin end the run: the machine cannot hold a cluster.
BARREN_LIVES = 3
# Kinds that no successor follows; they are measured apart.
OF_CEPH = ("osd", "mds")


class Closing(contextlib.ExitStack):
    """Closes things at the end, the last one first."""

    def __call__(self, thing):
        return self.enter_context(contextlib.closing(thing))


@dataclass
class Life:
    """What one life begins with. `jump`, if any, sets the clock of a random server."""
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
class Done:
    takeovers: list[Takeover] = field(default_factory=list)
    others: list[Takeover] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    lives: int = 0
    seconds: float = 0.0


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
    """All of `losses`, or as many as the time allows. Raises where a claim does not hold."""
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


def run_lives(begin: Callable[[Path, Closing, int], Life], directory: Path, *, kinds: Callable[[int], tuple],
              takeovers: int, seconds: float, seed: int) -> Done:
    """Lives with the seeds `seed`, `seed` + 1, ... until there were so many takeovers, or for so long. The last life is cut
    short: with as many takeovers as a life had losses, its own seed repeats it."""
    done, began = Done(), time.monotonic()
    while len(done.takeovers) < takeovers and time.monotonic() - began < seconds and not is_barren(done):
        number = seed + done.lives
        losses = plan(number, kinds(number))[:takeovers - len(done.takeovers)]
        done.lives += 1
        one_life(begin, directory / f"life-{number}", losses, number, done, began + seconds)
        print(f"life {number}: {len(done.takeovers)} takeovers, {len(done.failures)} failures in {time.monotonic() - began:.0f} s",
              flush=True)
    done.seconds = time.monotonic() - began
    return done


def is_barren(done: Done) -> bool:
    """The last lives, several in a row, did not begin."""
    last = done.failures[-BARREN_LIVES:]
    in_a_row = len(last) == BARREN_LIVES and last[-1].seed - last[0].seed == BARREN_LIVES - 1
    return in_a_row and all(each.step == 0 for each in last)


def one_life(begin, directory: Path, losses: list[str], seed: int, done: Done, ends_at: float) -> None:
    directory.mkdir()
    life = None
    try:
        with Closing() as stack:
            life = begin(directory, stack, seed)
            live(life, losses, seed, ends_at)
        slowest_s = max((each.first_ack_s for each in life.losses.done), default=0)
        if slowest_s < TARGET_P99_S:
            shutil.rmtree(directory)
        else:
            print(f"a takeover of life {seed} lasted for {slowest_s:.2f} s; its logs stay in {directory}", flush=True)
    except Exception as error:  # noqa: BLE001 - the next life goes on
        step = 0 if life is None else len(life.losses.done) + len(life.losses.others) + 1
        done.failures.append(Failure(seed, step, losses[:step], "".join(traceback.format_exception(error))[-6000:]))
        print(f"life {seed} failed at loss {step} ({' '.join(losses[:step])}); its directory stays:\n"
              f"{done.failures[-1].error}", flush=True)
    if life is not None:
        done.takeovers += life.losses.done
        done.others += life.losses.others
