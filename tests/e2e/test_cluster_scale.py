"""Servers of a cluster are lost again and again, under writers that want each flush durable and readers that read live.

After each loss its successors have acked each file again. In the end all files are whole, no reader has seen a mixed
cut, and no writer has met an error. Two losses of each kind run by default, with a registry in a file;
H5MIRROR_TEST_LOSSES is another number. With --all, 30 run on a Ceph, and Ceph itself loses an OSD or an MDS, or is
full.

H5MIRROR_TEST_TAKEOVERS is the number of the nightly form, in which losses of all kinds follow each other, and a failure
does not end it: with a registry in a file, or with --all on a Ceph (tests/README.md).
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from harness import paths
from harness.ceph import Ceph, missing_packages
from harness.clock import JumpingClock
from harness.cluster import Cluster
from harness.crowd import TIMEOUT_S, Crowd, Takeover, describe_kinds, quantile, report
from harness.crowd_followers import Followers
from harness.long_run import BARREN_LIVES, DAY_S, LOSSES_OF_A_LIFE, Closing, Done, Life, plan, run_lives
from harness.losses import Losses
from harness.network import machines_around
from harness.process import run, wait_until

LOSSES = int(os.environ.get("H5MIRROR_TEST_LOSSES", "2"))
TAKEOVERS_ON_CEPH, TAKEOVERS_ON_CEPH_MAX_S = 30, 900
# Of the nightly form; see tests/README.md.
NIGHTLY = int(os.environ.get("H5MIRROR_TEST_TAKEOVERS", "0"))
NIGHTLY_MAX_S = int(os.environ.get("H5MIRROR_TEST_TAKEOVERS_SECONDS", str(4 * 3600)))
NIGHTLY_SEED = int(os.environ.get("H5MIRROR_TEST_TAKEOVERS_SEED", "1"))
NIGHTLY_AT_ONCE = int(os.environ.get("H5MIRROR_TEST_TAKEOVERS_AT_ONCE", "1"))
WRITERS, FILES_EACH = map(int, os.environ.get("H5MIRROR_TEST_TAKEOVERS_CROWD", "20x10").split("x"))
PAUSE_S = float(os.environ.get("H5MIRROR_TEST_TAKEOVERS_PAUSE", "0.05"))
# Slower is no slow machine: the targets are reported only.
NIGHTLY_P50_MAX_S = 20
PORT = 7447


@pytest.fixture
def closing():
    with Closing() as stack:
        yield stack


def start_ceph(closing, **options) -> Ceph:
    if not paths.TEST_ALL:
        pytest.skip("a Ceph is started with --all only")
    if missing := missing_packages():
        pytest.skip(f"there is no Ceph: apt install {' '.join(missing)}")
    return closing(Ceph(**options)).start()


def on_machines(machines, tmp_path, closing, **of_ceph) -> Cluster:
    """Three servers on machines of their own, the programs on this one; TLS, as the network asks for it."""
    secrets = tmp_path / "secrets"
    hosts = [word for host in ["127.0.0.1", *machines.addresses] for word in ("--host", host)]
    run([paths.BIN / "h5mirrord", "init", "--dir", secrets, *hosts], tmp_path, timeout=30).ok()
    options = {"tls_cert": secrets / "server.pem", "tls_key": secrets / "server.key", "tokens_file": secrets / "tokens"}
    cluster = closing(Cluster(tmp_path, options=options, **of_ceph, prefixes=machines.prefixes,
                              listens=[f"{address}:{PORT}" for address in machines.addresses]))
    settings = cluster.site.home / ".config" / "h5mirror"
    settings.mkdir(parents=True, mode=0o700)
    for name in ("ca.pem", "token"):
        shutil.copy(secrets / name, settings / name)
    (settings / "token").chmod(0o600)
    return cluster.start()


def lose_in_turn(losses: Losses, loss: str) -> None:
    for _ in range(LOSSES):
        losses.keep(losses.cluster.cells)
        losses.one(loss)
        losses.crowd.await_reads(losses.crowd.read_names())
    report(losses.done, f"takeovers-file-{loss}")
    losses.crowd.finish()


@pytest.mark.limit(120 + 60 * LOSSES)
def test_killed_owners_are_followed_by_others(tmp_path, closing):
    cluster = closing(Cluster(tmp_path)).start()
    lose_in_turn(Losses(Crowd(cluster, writers=3, files_each=2), seed=1), "kill")


@pytest.mark.limit(120 + 60 * LOSSES)
def test_owners_that_give_no_answer_are_left_for_their_successors(tmp_path, closing):
    """Nothing tells a writer that its server is lost, until gRPC gives the connection up after 15 s. It asks others of its
    list earlier, and leaves when one of them serves its file. On a machine under load a takeover may last longer than
    those 15 s, so the acks of the successors count here; session_search_test.cc has the move itself."""
    cluster = closing(Cluster(tmp_path, relays=True)).start()
    losses = Losses(Crowd(cluster, writers=3, files_each=2), seed=4)
    lose_in_turn(losses, "freeze")


@pytest.mark.limit(120 + 60 * LOSSES)
def test_owners_without_power_are_left_for_their_successors(tmp_path, closing):
    machines = closing.enter_context(machines_around(3))
    cluster = on_machines(machines, tmp_path, closing)
    lose_in_turn(Losses(Crowd(cluster, writers=3, files_each=2), seed=5, machines=machines), "power")


@pytest.mark.limit(300)
def test_clocks_apart_change_nothing(tmp_path, closing):
    """The days of three servers differ, and two of them jump: only monotonic clocks count. Each server has a time of day
    of its own by a library that is preloaded (programs/clock_shift.c); Ceph and faketime are not needed."""
    clocks = [JumpingClock(tmp_path / f"clock-{node}") for node in "abc"]
    clocks[1].jump(DAY_S)
    clocks[2].jump(-DAY_S)
    cluster = closing(Cluster(tmp_path, envs=[clock.env for clock in clocks])).start()
    losses = Losses(Crowd(cluster, writers=3, files_each=1), seed=2)
    jumped_at = time.monotonic()
    clocks[0].jump(400 * DAY_S)
    clocks[1].jump(-400 * DAY_S)
    # Longer than it takes to give up a server whose beat is not seen.
    losses.crowd.await_acks(losses.crowd.names, jumped_at + 10)
    for node, server in zip("abc", cluster.servers):
        assert "given up" not in server.log(), f"server {node}:\n{server.log_tail()}"
    losses.one("kill")
    losses.crowd.finish()


@pytest.fixture
def around(tmp_path, closing):
    """Three servers on machines of their own; a Ceph is on this one."""
    if not paths.TEST_ALL:
        pytest.skip("a Ceph is started with --all only")
    machines = closing.enter_context(machines_around(3))
    ceph = start_ceph(closing, address=machines.here)
    return on_machines(machines, tmp_path, closing, ceph=ceph), machines


@pytest.mark.skipif(NIGHTLY > 0, reason="the nightly form has these losses")
@pytest.mark.limit(TAKEOVERS_ON_CEPH_MAX_S + 300)
def test_on_ceph_servers_are_killed_stopped_and_cut_off(around):
    cluster, machines = around
    crowd = Crowd(cluster, writers=3, files_each=3)
    followers = Followers(crowd, 1)
    losses = Losses(crowd, seed=3, machines=machines)
    began = time.monotonic()
    for number in range(TAKEOVERS_ON_CEPH):
        if time.monotonic() - began > TAKEOVERS_ON_CEPH_MAX_S:
            print(f"no more than {number} takeovers in {TAKEOVERS_ON_CEPH_MAX_S} s")
            break
        losses.one(("kill", "stop", "cut")[number % 3])
        crowd.await_reads(crowd.read_names())
        followers.await_cuts()
    report(losses.done, "takeovers-ceph")
    crowd.finish()
    followers.finish()


def begin(cluster: Cluster, machines, seed: int, jump=None) -> Life:
    """A crowd of the nightly form on a new cluster."""
    crowd = Crowd(cluster, writers=WRITERS, files_each=FILES_EACH, pause_s=PAUSE_S,
                  timeout_s=180 if cluster.ceph else TIMEOUT_S)
    followers = Followers(crowd, min(5, WRITERS))

    def look() -> None:
        crowd.await_reads(crowd.read_names())
        followers.await_cuts()

    def finish() -> None:
        crowd.finish()
        followers.finish()

    return Life(Losses(crowd, seed=seed, machines=machines), look, finish, jump)


def has_machines(seed: int) -> bool:
    """Clients reach servers of every other life over a network, and the rest through relays that can be frozen."""
    return seed % 2 == 0


def begin_with_file(directory, stack, seed: int) -> Life:
    """Three servers whose days differ, and jump."""
    clocks = [JumpingClock(directory / f"clock-{node}") for node in "abc"]
    envs = [clock.env for clock in clocks]

    def jump(chance: random.Random) -> None:
        chance.choice(clocks).jump(chance.randrange(-400, 400) * DAY_S)

    if not has_machines(seed):
        return begin(stack(Cluster(directory, relays=True, envs=envs)).start(), None, seed, jump)
    machines = stack.enter_context(machines_around(3))
    return begin(on_machines(machines, directory, stack, envs=envs), machines, seed, jump)


def begin_on_ceph(directory, stack, seed: int) -> Life:
    machines = stack.enter_context(machines_around(3))
    ceph = start_ceph(stack, address=machines.here, osds=3, copies=2, mdss=2, mds_grace_s=15)
    return begin(on_machines(machines, directory, stack, ceph=ceph), machines, seed)


def kinds_of(seed: int) -> tuple[str, ...]:
    if paths.TEST_ALL:
        return ("kill", "stop", "cut", "drain", "osd", "mds")
    return ("kill", "power" if has_machines(seed) else "freeze", "drain")


NIGHTLY_ON_CEPH = ("kill", "stop", "cut", "drain", "osd", "mds")


class PlayedLosses:
    """Of no cluster. The life fails at the `fails_at`-th loss."""

    def __init__(self, fails_at: int):
        self.fails_at, self.told = fails_at, []
        self.done, self.others = [], []

    def one(self, loss: str) -> None:
        self.told.append(loss)
        assert len(self.told) != self.fails_at, "planted"
        (self.others if loss in ("drain", "osd", "mds") else self.done).append(Takeover(loss, 1, 1, 1))

    of_ceph = one


class Ends(BaseException):
    """As pytest's, where a test is skipped."""


def play_lives(directory, takeovers: int) -> tuple[Done, list[list[str]]]:
    """Lives from seed 1 on, of which the first one fails at its 12th loss. And the losses of each."""
    directory.mkdir()
    lives = []

    def begin_played(_directory, _stack, seed: int) -> Life:
        losses = PlayedLosses(fails_at=12 if seed == 1 else 0)
        lives.append(losses.told)
        return Life(losses, lambda: None, lambda: None)

    done = run_lives(begin_played, directory, kinds=lambda seed: NIGHTLY_ON_CEPH, takeovers=takeovers, seconds=60, seed=1)
    return done, lives


def test_a_life_that_failed_is_repeated_by_its_seed_and_its_losses(tmp_path):
    done, lives = play_lives(tmp_path / "first", 60)
    assert [len(failure.losses) for failure in done.failures] == [12] and len(done.takeovers) >= 60
    again, repeated = play_lives(tmp_path / "again", len(done.failures[0].losses))
    assert repeated[0] == lives[0] == again.failures[0].losses
    assert [lives[1].count(kind) for kind in ("osd", "mds")] == [1, 1]
    assert len(lives[1]) == LOSSES_OF_A_LIFE + 2


def test_the_losses_of_a_life_are_the_same_in_each_process():
    """The order of a set of words is not."""
    code = f"from harness.long_run import plan; print(plan(1, {NIGHTLY_ON_CEPH}))"
    told = {subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True, timeout=60, text=True,
                           stdout=subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": str(number)}).stdout
            for number in range(1, 7)}
    assert len(told) == 1, told


def test_lives_that_never_begin_end_the_run(tmp_path):
    def no_cluster(_directory, _stack, _seed):
        raise RuntimeError("no cluster here")

    done = run_lives(no_cluster, tmp_path, kinds=lambda seed: ("kill",), takeovers=1000, seconds=60, seed=1)
    assert done.lives == len(done.failures) == BARREN_LIVES


def begin_side_by_side(directory, _stack, seed: int) -> Life:
    """A life that goes on when three have begun: in one process they would wait for ever."""
    def look() -> None:
        (directory.parent / f"began-{seed}").touch()
        wait_until(lambda: len(list(directory.parent.glob("began-*"))) >= 3, "no other lives begin")

    return Life(PlayedLosses(fails_at=5 if seed == 2 else 0), look, lambda: None)


def test_lives_side_by_side_have_one_report(tmp_path):
    done = run_lives(begin_side_by_side, tmp_path, kinds=lambda seed: ("kill", "drain"), takeovers=40,
                     seconds=60, seed=1, at_once=3)
    assert [(failure.seed, failure.step) for failure in done.failures] == [(2, 5)]
    assert len(done.takeovers) >= 40
    lives = {each.life for each in done.takeovers}  # Not one that the end of the run met before its first loss.
    assert len(lives) > 1 and lives <= set(range(1, done.lives + 1)) and len(done.loads) == done.lives
    for life in lives:
        told = [each.loss for each in done.takeovers if each.life == life]
        assert told == [loss for loss in plan(life, ("kill", "drain")) if loss == "kill"][:len(told)]


def test_a_life_whose_process_dies_is_a_failure(tmp_path):
    def die(_directory, _stack, _seed):
        os.kill(os.getpid(), signal.SIGKILL)

    done = run_lives(die, tmp_path, kinds=lambda seed: ("kill",), takeovers=1, seconds=60, seed=7, at_once=2)
    assert len(done.failures) >= BARREN_LIVES and all("ended with -9" in failure.error for failure in done.failures)


def test_lives_end_with_the_run_and_close_what_they_began(tmp_path):
    def begin_endless(directory, stack, seed: int) -> Life:
        stack.callback((directory / "closed").touch)
        (directory / "began").touch()
        if seed == 2:
            wait_until((tmp_path / "life-1" / "began").exists, "the other life begins")
            raise Ends("of a life that is skipped")
        signal.pause()

    with pytest.raises(Ends):
        run_lives(begin_endless, tmp_path, kinds=lambda seed: ("kill",), takeovers=90, seconds=60, seed=1, at_once=2)
    assert (tmp_path / "life-1" / "closed").exists()


@pytest.mark.skipif(NIGHTLY == 0, reason="H5MIRROR_TEST_TAKEOVERS is not set")
@pytest.mark.limit(NIGHTLY_MAX_S + 600)
def test_takeovers_by_the_hundred(tmp_path):
    """Reports all of them, then fails if a claim did not hold in one."""
    done = run_lives(begin_on_ceph if paths.TEST_ALL else begin_with_file, tmp_path, kinds=kinds_of, takeovers=NIGHTLY,
                     seconds=NIGHTLY_MAX_S, seed=NIGHTLY_SEED, at_once=NIGHTLY_AT_ONCE)
    print(f"{len(done.takeovers)} of {NIGHTLY} takeovers in {done.lives} lives, {NIGHTLY_AT_ONCE} at once, and "
          f"{done.seconds:.0f} s, {len(done.failures)} failures; {WRITERS} writers of {FILES_EACH} files in each; "
          f"processes that wanted one of {os.cpu_count()} cores: {quantile(done.loads, 0.5):.1f} (median)")
    where = "ceph" if paths.TEST_ALL else "file"
    figures = None
    if done.takeovers:
        figures = report(done.takeovers, f"takeovers-nightly-{where}", seconds=done.seconds, at_once=NIGHTLY_AT_ONCE,
                         crowd=f"{WRITERS}x{FILES_EACH}", pause_s=PAUSE_S, cores=os.cpu_count(), loads=done.loads,
                         others=[asdict(each) for each in done.others],
                         failures=[asdict(each) for each in done.failures])
    describe_kinds(done.others)
    for failure in done.failures:
        print(f"FAILED at loss {failure.step} of life {failure.seed}; to repeat: "
              f"H5MIRROR_TEST_TAKEOVERS={max(len(failure.losses), 1)} "
              f"H5MIRROR_TEST_TAKEOVERS_SEED={failure.seed} H5MIRROR_TEST_TAKEOVERS_CROWD={WRITERS}x{FILES_EACH} "
              f"H5MIRROR_TEST_TAKEOVERS_PAUSE={PAUSE_S:g} (losses: {' '.join(failure.losses)})\n{failure.error}")
    assert not done.failures, f"{len(done.failures)} of {done.lives} lives failed"
    assert figures is not None, "the time was over before a takeover"
    assert figures["p50_s"] < NIGHTLY_P50_MAX_S


def lost_in_ceph(tmp_path, closing, writers=3, files_each=1, **options):
    """A cluster on a Ceph that can lose an OSD or an MDS, under a crowd."""
    ceph = start_ceph(closing, **options)
    cluster = closing(Cluster(tmp_path, ceph=ceph)).start()
    # Longer than an MDS may be away.
    return ceph, cluster, Crowd(cluster, writers=writers, files_each=files_each, timeout_s=180)


def assert_nobody_was_given_up(cluster: Cluster) -> None:
    for node, server in zip(cluster.nodes, cluster.servers):
        assert server.running() and "given up" not in server.log(), f"server {node}:\n{server.log_tail()}"


@pytest.mark.limit(300)
def test_on_ceph_an_osd_that_dies_costs_no_server(tmp_path, closing):
    ceph, cluster, crowd = lost_in_ceph(tmp_path, closing, osds=3, copies=2)
    lost_at = time.monotonic()
    ceph.kill("osd.0")
    acks = crowd.await_acks(crowd.names, lost_at + 1)
    print(f"an OSD was killed: all files have an ack {1 + acks[-1]:.1f} s later, slowest flush {crowd.slowest_s:.1f} s")
    crowd.await_reads(crowd.read_names())
    assert_nobody_was_given_up(cluster)
    crowd.finish()


@pytest.mark.limit(300)
@pytest.mark.parametrize("is_haunted", [False, True], ids=["alone", "with a dead client"])
def test_on_ceph_an_mds_that_dies_costs_no_server(tmp_path, closing, is_haunted):
    """Its standby waits for the former clients: for a client that has died too, and was not fenced, it waits long."""
    ceph, cluster, crowd = lost_in_ceph(tmp_path, closing, mdss=2, mds_grace_s=15)
    active = next(name for name in ("a", "b") if f"={name}=up:active" in ceph.ask("mds", "stat"))
    if is_haunted:
        ceph.leave_a_dead_client()
    lost_at = time.monotonic()
    ceph.kill(f"mds.{active}")
    acks = crowd.await_acks(crowd.names, lost_at + 1, 200)
    print(f"an MDS was killed: all files have an ack {1 + acks[-1]:.1f} s later, slowest flush {crowd.slowest_s:.1f} s")
    crowd.await_reads(crowd.read_names())
    assert_nobody_was_given_up(cluster)
    crowd.finish()


@pytest.mark.limit(300)
def test_on_ceph_a_full_pool_costs_no_server(tmp_path, closing):
    """Nothing can be written, beats neither: acks wait, and no server is given up. Then there is room again."""
    ceph, cluster, crowd = lost_in_ceph(tmp_path, closing)
    ceph.fill()
    time.sleep(10)  # Longer than it takes to give a server up.
    crowd.look()
    acked = dict(crowd.acked)
    assert_nobody_was_given_up(cluster)
    assert all(time.monotonic() - ended > 5 for _, ended in acked.values()), "flushes are acked on a full Ceph"
    ceph.make_room()
    crowd.await_acks(crowd.names, time.monotonic())
    crowd.await_reads(crowd.read_names())
    assert_nobody_was_given_up(cluster)
    crowd.finish()


@pytest.mark.limit(300)
@pytest.mark.parametrize("bound_s", [0, 10], ids=["as Ceph is set", "bounded"])
def test_on_ceph_a_frozen_reader_of_a_head_costs_no_server(tmp_path, closing, bound_s):
    """A client has the head open as a plain file, and does not give its locks back. The MDS ends its session after a
    minute, or after the bound that an operator sets. Until then flushes may wait, those of other files of that cell
    too."""
    ceph, cluster, crowd = lost_in_ceph(tmp_path, closing, writers=2, files_each=3)
    if bound_s:
        ceph.ask("config", "set", "mds", "mds_cap_revoke_eviction_timeout", str(bound_s))
    held, others = crowd.names[0], crowd.names[1::2]  # Those of the writer that does not write the held one.
    with ceph.frozen_reader(held):
        frozen_at = time.monotonic()
        acks = crowd.await_acks(others, frozen_at, 200)
        print(f"a reader of {held} is frozen: the first ack of each other file comes {acks[0]:.1f} to {acks[-1]:.1f} s later")
        print(f"all files have acks {crowd.await_acks(crowd.names, frozen_at + 5, 200)[-1] + 5:.1f} s later")
        assert_nobody_was_given_up(cluster)
    crowd.await_reads(crowd.read_names())
    crowd.finish()
