"""Servers that go away and come back: the effect on the program, the changes that the mirror lacks, and the commands
that show the outage."""

import re
import signal
import time

import pytest

from harness.clock import JumpingClock
from harness.process import wait_until
from harness.scripts import BIG, CHANGE, TIMED, TIMER, TOUCH, felt, longest, took, waited
from harness.storm import SLACK_S

MIB = 1 << 20


def newest(site, name: str) -> dict:
    return site.log(name)[0]


def dirty(site, name: str):
    return site.local(f"{name}.h5m/dirty")


# The next open sends the changes that a close has left.


@pytest.mark.parametrize("away", ["stops while it hangs", "is killed and comes back"])
def test_a_flush_that_the_server_lost_needs_no_other(site, away):
    """The program flushes and does nothing more: the server still gets the changes that it lacks."""
    writer = site.start(site.script("""
        f = h5py.File("run.h5", "w")
        f["x"] = np.zeros(100_000)
        f.flush()
        print("flushed", flush=True)
        sys.stdin.readline()
        f["x"][...] = 7
        f.flush()
        print("again", flush=True)
        sys.stdin.readline()
        print("end", flush=True)
        f.close()
    """), talks=True)
    assert writer.line() == "flushed"
    site.wait_for_cut("run.h5")
    site.server.process.signal(signal.SIGSTOP)
    writer.ask("")
    if away == "stops while it hangs":
        time.sleep(0.5)
    site.server.kill9()
    site.server.start()

    site.wait_for_cut("run.h5")  # It may be the first one, which a slow machine has made durable before the kill.
    look = site.script("print(np.unique(h5py.File('run.h5', 'r')['x'][:]))")
    wait_until(lambda: site.run(look, config=site.config(mode="reader")).out == "[7.]\n", "the second flush does not come")
    writer.ask("")
    writer.wait().ok()
    site.assert_mirrored("run.h5")


def test_nor_does_one_of_a_program_that_began_before_its_server(site):
    site.server.kill9()
    writer = site.start(site.script("""
        f = h5py.File("run.h5", "w")
        f["x"] = np.zeros(100_000)
        f.flush()
        print("flushed", flush=True)
        sys.stdin.readline()
        print("end", flush=True)
        f.close()
    """), talks=True)
    assert writer.line() == "flushed"
    wait_until(lambda: "goes on locally" in writer.err(), "it was told nothing")
    site.server.start()

    site.wait_for_cut("run.h5")
    site.py("assert h5py.File('run.h5', 'r')['x'].shape == (100_000,)", config=site.config(mode="reader"))
    writer.ask("")
    writer.wait().ok()
    site.assert_mirrored("run.h5")


def test_the_next_open_brings_what_a_close_could_not(both):
    """1 MiB of 64 is changed and closed while the server is away; a later program's open sends just that."""
    both.py(BIG)
    both.assert_mirrored("big.h5")
    both.server.kill9()
    result = both.py(CHANGE.format(n=7))
    record = both.record("big.h5")
    assert record["state"] == "behind" and "dirty_map" in record, result.describe()
    assert dirty(both, "big.h5").stat().st_size < 4096
    both.server.start()
    before = both.versions("big.h5")
    result = both.py(TOUCH.format(n=1))
    assert "diverged" not in result.err and "behind" not in result.err, result.describe()
    assert both.record("big.h5")["state"] == "clean"
    both.assert_mirrored("big.h5")
    assert len(both.versions("big.h5")) == len(before) + 1
    assert MIB <= newest(both, "big.h5")["changed_bytes"] < 1.1 * MIB
    assert not dirty(both, "big.h5").exists()


def test_an_open_that_changes_nothing_leaves_it_to_the_next(site):
    site.py(BIG)
    site.server.kill9()
    site.py(CHANGE.format(n=7))
    noted = dirty(site, "big.h5").read_bytes()
    site.server.start()
    site.py("h5py.File('big.h5', 'r+').close()\nh5py.File('big.h5', 'r')['big'][:10]")
    assert dirty(site, "big.h5").read_bytes() == noted
    site.py(TOUCH.format(n=1))
    site.assert_mirrored("big.h5")
    assert newest(site, "big.h5")["changed_bytes"] < 1.1 * MIB


def test_outages_of_several_programs_add_up(site):
    """Three programs change three places while the server is away, one after the other, and one shrinks the file."""
    site.py("""
        with h5py.File("big.h5", "w") as f:
            f.create_dataset("big", (64 << 20,), "u1", maxshape=(None,), chunks=(1 << 20,))[:] = 1
            f["keep"] = np.arange(10_000)
    """)
    site.assert_mirrored("big.h5")
    site.server.kill9()
    for place in (3, 30, 40):
        site.py(f"h5py.File('big.h5', 'r+')['big'][{place} << 20:{place + 1} << 20] = {place}")
    site.py("h5py.File('big.h5', 'r+')['big'].resize((45 << 20,))")
    site.server.start()
    site.py(TOUCH.format(n=1))
    site.assert_mirrored("big.h5")
    assert 3 * MIB <= newest(site, "big.h5")["changed_bytes"] < 5 * MIB


@pytest.mark.site(options={"durable_every": "1s"})  # It waits for a durable tick.
def test_a_tick_that_reached_the_server_is_on_the_way(site):
    """The session's flush became the newest cut, its close did not: the next open goes on from there."""
    site.py(BIG)
    writer = site.start(site.script("""
        f = h5py.File("big.h5", "r+")
        f["big"][:1 << 20] = 3
        f.flush()
        print("flushed", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
        f["big"][8 << 20:9 << 20] = 4
        f.close()
    """))
    writer.wait_for_line("flushed")
    wait_until(lambda: site.status("big.h5")["mirror"]["pending_cuts"] == 0 and len(site.versions("big.h5")) == 1
               and site.status("big.h5")["last_cut"] > newest(site, "big.h5")["cut"], "the tick never came")
    site.server.stop()
    site.local("go").touch()
    writer.wait().ok()
    assert site.record("big.h5")["state"] == "behind"
    site.server.start()
    site.py(TOUCH.format(n=1))
    assert site.record("big.h5")["state"] == "clean"
    site.assert_mirrored("big.h5")


def test_a_file_created_while_the_server_is_away(site):
    """The server never had any of it: the next open sends all of it, as a new file."""
    site.server.kill9()
    site.py("h5py.File('new.h5', 'w')['x'] = np.arange(100_000)")
    site.server.start()
    result = site.py("h5py.File('new.h5', 'r+').attrs['n'] = 1")
    assert "diverged" not in result.err, result.describe()
    site.assert_mirrored("new.h5")
    assert site.record("new.h5")["state"] == "clean"


def test_a_file_created_anew_while_the_server_is_away(site):
    """The old generation stays in the history."""
    site.py("h5py.File('again.h5', 'w')['old'] = np.arange(200_000)")
    site.keep("again.h5")
    site.server.kill9()
    site.py("h5py.File('again.h5', 'w')['new'] = np.arange(100)")
    site.server.start()
    site.py("h5py.File('again.h5', 'r+').attrs['n'] = 1")
    site.assert_mirrored("again.h5")
    assert newest(site, "again.h5")["generation"] == 2


def test_a_file_changed_behind_the_plugins_back_is_not_spliced(site):
    """The map is about another state of the file: the user decides, as usual."""
    site.py(BIG)
    site.keep("big.h5")
    site.server.kill9()
    site.py(CHANGE.format(n=7))
    with open(site.local("big.h5"), "r+b") as file:
        file.seek(30 * MIB)
        file.write(b"x" * 100)
    site.server.start()
    result = site.py(TOUCH.format(n=1), config=site.config(on_outside_change="ask"))
    assert "diverged" in result.err, result.describe()
    assert not dirty(site, "big.h5").exists()
    site.check_kept()


@pytest.mark.parametrize("harm", ["torn", "flipped", "gone", "another"])
def test_a_map_that_is_not_the_records_counts_for_nothing(site, harm):
    site.py(BIG)
    site.server.kill9()
    site.py(CHANGE.format(n=7))
    path = dirty(site, "big.h5")
    noted = path.read_bytes()
    if harm == "torn":
        path.write_bytes(noted[:-8])
    elif harm == "flipped":
        path.write_bytes(noted[:140] + bytes([noted[140] ^ 1]) + noted[141:])
    elif harm == "gone":
        path.unlink()
    else:
        site.py(CHANGE.format(n=8))
        path.write_bytes(noted)
    site.server.start()
    result = site.py(TOUCH.format(n=1))
    assert "diverged" in result.err and "h5mirror resync" in result.err, result.describe()
    site.cli("push", site.local("big.h5")).ok()
    site.assert_mirrored("big.h5")


def test_a_map_from_before_the_server_went_on_is_refused(site):
    """A rollback happened meanwhile: the base of the map is no longer the newest cut."""
    site.py(BIG)
    site.py(TOUCH.format(n=1))
    site.server.kill9()
    site.py(CHANGE.format(n=7))
    site.server.start()
    site.cli("rollback", "big.h5@1").ok()
    site.keep("big.h5")
    result = site.py(TOUCH.format(n=2))
    assert "diverged" in result.err, result.describe()
    site.check_kept()


# The effect on the program.


def test_no_call_waits_longer_than_the_deadline(both):
    """With the defaults, while the server is stopped: 1 s at the close."""
    both.local("hold 3").touch()
    writer = both.start(both.script(TIMED.format(times=30, mib=1, pause=0.05)), config=both.config(timeout=None))
    writer.wait_for_line("cut 3")
    both.server.process.signal(signal.SIGSTOP)
    both.local("hold 3").unlink()
    result = writer.wait().ok()
    both.server.process.signal(signal.SIGCONT)
    assert felt(result) < 1 + SLACK_S, result.describe()
    assert both.record("t.h5")["state"] == "behind", result.describe()
    both.wait_for_no_lease("t.h5")
    both.py("h5py.File('t.h5', 'a').attrs['n'] = 1")
    both.assert_mirrored("t.h5")


def test_no_call_waits_longer_for_a_server_that_is_gone(both):
    """Attempts to reach the server are no progress: the close does not wait for each of them."""
    both.local("hold 25").touch()
    writer = both.start(both.script(TIMED.format(times=30, mib=1, pause=0.05)), config=both.config(timeout=None))
    writer.wait_for_line("cut 25")
    both.server.kill9()
    both.local("hold 25").unlink()
    result = writer.wait().ok()
    assert felt(result) < 1 + SLACK_S, result.describe()
    assert "dirty_map" in both.record("t.h5"), result.describe()
    both.server.start()
    both.py("h5py.File('t.h5', 'a').attrs['n'] = 1")
    both.assert_mirrored("t.h5")


def test_a_process_that_ends_at_once_leaves_the_map(site):
    """No exit handler runs after the close, which had no answer: the bytes that the server lacks are noted all the
    same."""
    site.py(BIG)
    writer = site.start(site.script("""
        f = h5py.File("big.h5", "r+")
        f["big"][:1000] = 3
        f.flush()
        print("flushed", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
        f["big"][20 << 20:21 << 20] = 7
        f.close()
        os._exit(0)
    """), config=site.config(timeout=None))
    writer.wait_for_line("flushed")
    wait_until(lambda: mirror(site, "big.h5")["state"] == "connected", "never connected")
    site.server.process.signal(signal.SIGSTOP)
    site.local("go").touch()
    writer.wait().ok()
    assert "dirty_map" in site.record("big.h5")
    site.server.kill9()
    site.server.start()
    site.py(TOUCH.format(n=1))
    assert site.record("big.h5")["state"] == "clean"
    site.assert_mirrored("big.h5")


def test_an_overwrite_of_what_waits_waits_no_longer_than_the_deadline(both):
    """While the server is stopped, bytes that do not fit into the window are merged; the program does not wait."""
    script = TIMED.format(times=30, mib=8, pause=0)
    both.local("hold 0").touch()
    writer = both.start(both.script(script), config=both.config(timeout=None, window="1MiB", flush="sync"))
    writer.wait_for_line("cut 0")
    both.server.process.signal(signal.SIGSTOP)
    both.local("hold 0").unlink()
    result = writer.wait().ok()
    both.server.process.signal(signal.SIGCONT)
    assert felt(result) < 1 + SLACK_S, result.describe()


def test_wait_rides_over_a_restart(both):
    """The server is away for 2 s while the program flushes: the program waits, and is level."""
    both.py("h5py.File('w.h5', 'w')['x'] = np.arange(1000)")
    both.server.kill9()
    writer = both.start(both.script("""
        with h5py.File("w.h5", "r+") as f:
            f["x"][:] = 1
            began = time.monotonic()
            print("flushes", flush=True)
            f.flush()
            print("flushed after", time.monotonic() - began, flush=True)
            f["y"] = 1
    """), config=both.config(on_outage="wait=30s", timeout=None))
    writer.wait_for_line("flushes")
    time.sleep(2)
    both.server.start()
    result = writer.wait(40).ok()
    assert float(re.search(r"after ([\d.]+)", result.out).group(1)) > 1, result.describe()
    assert both.record("w.h5")["state"] == "clean", result.describe()
    both.assert_mirrored("w.h5")


def test_wait_ends_when_its_time_has_passed(both):
    """Then the program goes on, and later barriers of the same outage wait no more."""
    both.server.kill9()
    result = both.py(TIMED.format(times=30, mib=1, pause=0), config=both.config(on_outage="wait=2s", timeout=None))
    assert waited(result) > 1 and longest(result) < 3.5, result.describe()
    assert took(result) < 12, result.describe()
    assert both.record("t.h5")["state"] == "behind"
    both.server.start()


@pytest.mark.parametrize("policy", ["wait=2s", "fail"])
def test_a_server_that_hangs_is_away_too(site, policy):
    """Its kernel accepts the connection. Not every barrier of the outage waits by itself."""
    site.server.process.signal(signal.SIGSTOP)
    result = site.py("""
        f = h5py.File("hang.h5", "w")
        began, failed = time.monotonic(), 0
        for n in range(8):
            f[f"x{n}"] = n
            try:
                f.flush()
            except Exception as error:
                failed += 1
        print("flushed after", time.monotonic() - began, "failed", failed)
        f.close()
    """, config=site.config(on_outage=policy, timeout=None))
    site.server.process.signal(signal.SIGCONT)
    took, failed = re.search(r"after ([\d.]+) failed (\d)", result.out).groups()
    assert float(took) < 6.5, result.describe()
    assert (int(failed) > 0) == (policy == "fail"), result.describe()


FAIL = """
    f = h5py.File("f.h5", "a")
    f.attrs["n"] = 1
    failed = []
    for n in range(60):
        try:
            f.require_dataset("d", (1 << 20,), "u1"{layout})[...] = n
            f.flush()
        except Exception as error:
            failed.append(str(error))
            if len(failed) == 3:
                break
        time.sleep(0.1)
    print("failed", len(failed), failed[:1])
    f.close()
    print("closed", h5py.File("f.h5", "r")["d"][0], n)
"""


@pytest.mark.parametrize("layout", ["", ", chunks=(4096,)", ", chunks=(1 << 20,)"])
def test_fail_tells_the_program_and_leaves_a_sound_file(both, layout):
    """Each flush fails; closing does not, and HDF5 survives it."""
    both.server.kill9()
    result = both.py(FAIL.format(layout=layout), config=both.config(on_outage="fail", timeout=None))
    assert "failed 3" in result.out, result.describe()
    for word in ("on_outage=fail", both.server.address, "f.h5", "h5mirror resync"):
        assert word in result.out, result.describe()
    shown, wrote = re.search(r"closed (\d+) (\d+)", result.out).groups()
    assert shown == wrote, result.describe()
    both.server.start()
    both.py("h5py.File('f.h5', 'a').attrs['n'] = 2")
    both.assert_mirrored("f.h5")


def test_fail_does_not_fail_while_the_server_is_there(both):
    # With the default of 1 s a server that a loaded machine keeps from answering for so long is away.
    result = both.py(FAIL.format(layout="").replace("range(60)", "range(5)"), config=both.config(on_outage="fail"))
    assert "failed 0" in result.out, result.describe()
    both.assert_mirrored("f.h5")


@pytest.mark.parametrize("jump_s", [-3600, 3600])
def test_fail_goes_by_how_long_and_not_by_the_time_of_day(site, jump_s):
    """H5Dflush is no barrier and waits for nothing. The mirror is lost after the timeout, whatever the clock shows."""
    clock = JumpingClock(site.directory / "clock")
    writer = site.start(site.script("""
        f = h5py.File("clock.h5", "w")
        d = f.create_dataset("d", (1000,), "i8")
        f.flush()
        def flush():
            try:
                d[:] = time.monotonic_ns()
                d.flush()
                print("passed", flush=True)
            except Exception as error:
                print("failed", error, flush=True)
        flush()
        while not os.path.exists("go"):
            time.sleep(0.01)
        flush()
        time.sleep(5)
        flush()
        f.close()
    """), config=site.config(on_outage="fail", timeout="4s"), **clock.env)
    writer.wait_for_line("passed")
    site.wait_for_cut("clock.h5")
    site.server.kill9()
    time.sleep(0.5)  # The stream has ended.
    clock.jump(jump_s)
    site.local("go").touch()
    told = [line.split()[0] for line in writer.wait(40).ok().out.splitlines()]
    assert told == ["passed", "passed", "failed"], (told, writer.out())
    site.server.start()


def test_bandwidth_is_kept_and_is_no_outage(site):
    """16 MiB at 4 MiB/s: with linger= the close waits for it, as long as it flows."""
    result = site.py("""
        began = time.monotonic()
        with h5py.File("slow.h5", "w") as f: f["x"] = np.ones(16 << 20, "u1")
        print("took", time.monotonic() - began)
    """, config=site.config(bandwidth="4MiB/s", timeout=None, linger="10s"))
    assert 3 < float(result.out.split()[1]) < 9, result.describe()
    assert site.record("slow.h5")["state"] == "clean", result.describe()
    site.assert_mirrored("slow.h5")


def test_a_close_waits_for_no_link_that_is_slower_than_the_program(site):
    """32 MiB at 8 MiB/s and at 1 MiB/s: the close leaves bytes that would take longer to the next open."""
    script = TIMER + """
    f = h5py.File("slow.h5", "{mode}")
    def change(): {change}
    timed(change)
    timed(f.close)
    print("longest %.6f closed at %.6f" % (longest, time.monotonic()), flush=True)
    """
    for speed, linger in (("8MiB/s", None), ("1MiB/s", "10s")):
        result = site.py(script.format(mode="w", change="f['x'] = np.ones(32 << 20, 'u1')"),
                         config=site.config(bandwidth=speed, timeout=None, linger=linger))
        # The deadline is 1 s; with more than that it takes two looks to see that it would not do.
        assert longest(result) < (2 if linger is None else 3), result.describe()
        closed_at = float(re.search(r"closed at ([\d.]+)", result.out).group(1))
        assert time.monotonic() - closed_at < 6, "the end of the program waited"
        record = site.record("slow.h5")
        assert record["state"] == "behind" and "dirty_map" in record, result.describe()
    site.wait_for_no_lease("slow.h5")
    site.py(script.format(mode="r+", change="f['y'] = 1"))
    assert site.record("slow.h5")["state"] == "clean"
    site.assert_mirrored("slow.h5")


# Which commands tell of an outage.


def mirror(site, name: str) -> dict:
    return site.status(name)["mirror"] or {"state": None}


def test_both_ends_say_how_it_stands(site):
    """In sync, connected, degraded, resyncing, diverged: in status, in the log, in the metrics."""
    site.py(BIG)
    assert mirror(site, "big.h5")["state"] == "in sync"
    writer = site.start(site.script("""
        f = h5py.File("big.h5", "r+")
        f["big"][:1000] = 3
        f.flush()
        print("flushed", flush=True)
        time.sleep(60)
    """))
    writer.wait_for_line("flushed")
    wait_until(lambda: mirror(site, "big.h5")["state"] == "connected", "never connected")
    writer.kill()
    wait_until(lambda: mirror(site, "big.h5")["state"] == "degraded", "never degraded")
    assert "degraded since" in site.cli("status", "big.h5").ok().out
    site.py(TOUCH.format(n=1))  # The writer died: the local file is another state.
    assert mirror(site, "big.h5")["state"] == "diverged"
    shown = site.cli("status", site.local("big.h5")).ok().out
    assert shown.count("diverged since") == 2, "the server's line and the local one:\n" + shown


def test_resync_says_how_far(site):
    """The changes of an outage come over a slow link: the server's status counts up, and ends in sync."""
    site.py(BIG)
    site.server.kill9()
    log = site.directory / "client.log"
    site.py(CHANGE.format(n=7).replace("21 << 20", "36 << 20"))
    shown = site.cli("status", site.local("big.h5"))
    assert "degraded since" in shown.out, shown.describe()
    site.server.start()
    writer = site.start(site.script(TOUCH.format(n=1)), config=site.config(bandwidth="4MiB/s", log=log))
    seen = []

    def finished():
        state = mirror(site, "big.h5")
        if state["state"] == "resyncing":
            assert 14 * MIB < state["resync_total_bytes"] < 17 * MIB, state
            seen.append(state["resync_sent_bytes"])
        return not writer.running()

    wait_until(finished, "the writer never ended", 120, 0.02)  # A look starts a program: few of them fit into the 4 s.
    assert len(set(seen)) >= 2 and seen == sorted(seen), seen
    assert mirror(site, "big.h5")["state"] == "in sync"
    assert "resyncing" in log.read_text() and "resynced" in log.read_text()
    site.assert_mirrored("big.h5")
