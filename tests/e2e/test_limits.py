"""Limits per caller: calls over a limit are refused or wait; other callers' work and the user's program go on."""

import json
import os
import pwd
import re
import shutil
import signal
import tempfile
import time

import pytest

from harness import paths
from harness.process import run, wait_until
from harness.site import Site
from harness.users import ANNA, BOB, needs_root
from harness.wire import Wire

KIB = 1024
FAILED, DENIED = 1, 8

HOLD = """
    with h5py.File("{name}", "w") as f:
        f["x"] = np.arange(50_000)
        f.flush()
        print("open", flush=True)
        while not os.path.exists("release-{name}"):
            time.sleep(0.02)
        f["y"] = np.arange(50_000)
"""


@pytest.fixture
def site(bare_site):
    """Without the history of another program, whose session would count."""
    return bare_site


def hold(site, name: str):
    """A program that has a file open until it is released."""
    program = site.start(site.script(HOLD.format(name=name)))
    program.wait_for_line("open")
    return program


def release(site, name: str) -> None:
    site.local(f"release-{name}").touch()


def usage(site, what: str) -> dict:
    """One's own use of one limit."""
    amounts = site.json("usage")["usages"][0]["amounts"]
    return next(amount for amount in amounts if amount["what"] == what)


def wait_for_refusal(site, what: str) -> None:
    wait_until(lambda: usage(site, what)["refused"] > 0, f"nothing was refused for its {what}")


def reload(site, tables: str) -> None:
    """New tables for the running server."""
    config = site.logs / "h5mirrord.toml"
    config.write_text(config.read_text().removesuffix(site.server.tables) + tables)
    site.server.tables = tables
    before = site.server.log().count("reload")
    site.server.process.signal(signal.SIGHUP)
    wait_until(lambda: site.server.log().count("reload") > before, "no reload is logged")


@pytest.mark.site(tables="[[limits]]\nsessions = 1\n")
def test_a_program_over_the_limit_goes_on_and_is_mirrored_when_there_is_room(site):
    first = hold(site, "a.h5")
    site.wait_for_cut("a.h5")
    second = hold(site, "b.h5")
    wait_for_refusal(site, "sessions")
    assert not site.exists("b.h5")
    now = usage(site, "sessions")
    assert (now["used"], now["limit"]) == (1, 1), now
    assert "sessions 1 of 1" in site.cli("status").ok().out
    release(site, "a.h5")
    first.wait().ok()
    # It does nothing meanwhile: its driver comes back by itself.
    site.wait_for_cut("b.h5", timeout=120)
    release(site, "b.h5")
    done = second.wait().ok()
    assert "1 sessions and has 1, by the [[limits]] table at" in done.err, done.describe()
    for name in ("a.h5", "b.h5"):
        site.assert_mirrored(name)
    wait_until(lambda: usage(site, "sessions")["used"] == 0, "a session that has ended is counted")


@pytest.mark.site(tables="[[limits]]\nstreams = 1\n")
def test_streams_over_the_limit_are_refused(site):
    site.py("h5py.File('a.h5', 'w')['x'] = np.arange(1000)")
    site.settle("a.h5")
    first = site.start([paths.BIN / "h5mirror", "--server", site.address, "watch", "a.h5"], env=site.plain_env())
    wait_until(lambda: usage(site, "streams")["used"] == 1, "the follower is not counted")
    second = site.cli("watch", "-n", "1", "a.h5")
    assert second.code == FAILED, second.describe()
    assert "may have 1 streams and has 1, by the [[limits]] table at" in second.err, second.describe()
    assert site.versions("a.h5"), "calls of another kind are served"
    first.kill()
    wait_until(lambda: usage(site, "streams")["used"] == 0, "a follower that has gone is counted")
    site.cli("watch", "-n", "1", "a.h5").ok()


def test_tools_that_call_too_often_wait(site):
    """Several at once are more than one a second; none of them fails."""
    site.py("h5py.File('a.h5', 'w')['x'] = np.arange(1000)")
    site.settle("a.h5")
    reload(site, "[[limits]]\ncalls = 1\n")

    def ask_at_once() -> bool:
        asking = [site.start([paths.BIN / "h5mirror", "--server", site.address, "log", "a.h5"], env=site.plain_env())
                  for _ in range(6)]
        for each in asking:
            each.wait().ok()
        return usage(site, "calls")["refused"] > 0

    wait_until(ask_at_once, "the limit was never reached", 120)


@pytest.mark.site(tables='[[limits]]\nbandwidth = "64KiB"\n', options={"lease_ttl": "2s"})
def test_a_writer_over_its_bandwidth_is_slow_and_not_dead(site):
    """Bytes arrive no faster, and a stream that waits for longer than lease_ttl keeps its file."""
    with Wire(site) as wire:
        wire.open("a.h5")
        wire.read_until("opened")
        start = time.monotonic()
        frames, frame = 4, 256 * KIB
        for n in range(frames):
            wire.fill(n * frame, frame, n)
        wire.commit(frames * frame)
        signs = 0
        while "cut_durable" not in (answer := wire.read()):
            assert "end" not in answer, answer
            signs += answer == {}
        took = time.monotonic() - start
        # The first second's worth is free.
        assert frames * frame <= 64 * KIB * (took + 1.5), f"{frames * frame} bytes within {took} s"
        assert signs > 0
        assert wire.finish()["code"] == "OK"
    assert site.head("a.h5").stat().st_size == frames * frame
    assert usage(site, "bandwidth")["refused"] > 0


@pytest.mark.site(tables='[[limits]]\nbandwidth = "512KiB"\n', options={"lease_ttl": "2s"})
def test_a_program_over_its_bandwidth_is_mirrored_whole(site):
    done = site.py("""
        with h5py.File("a.h5", "w") as f:
            f["x"] = np.random.default_rng(1).integers(0, 256, 3 << 20, dtype=np.uint8)
            f.flush()
            f["y"] = np.arange(1000)
    """)
    assert "no answer" not in done.err, done.describe()
    site.assert_mirrored("a.h5")
    assert usage(site, "bandwidth")["refused"] > 0


@pytest.mark.site(tables="[[limits]]\nsessions = 1\n")
def test_new_limits_count_at_once_and_end_nothing(site):
    first = hold(site, "a.h5")
    site.wait_for_cut("a.h5")
    second = hold(site, "b.h5")
    wait_for_refusal(site, "sessions")
    reload(site, "[[limits]]\nsessions = 2\n")
    site.wait_for_cut("b.h5", timeout=120)
    reload(site, "[[limits]]\nsessions = 0\n")
    assert usage(site, "sessions")["used"] == 2
    refused = usage(site, "sessions")["refused"]
    third = hold(site, "c.h5")
    wait_until(lambda: usage(site, "sessions")["refused"] > refused, "a third session is not refused")
    for name, program in (("a.h5", first), ("b.h5", second)):
        release(site, name)
        program.wait().ok()
        site.assert_mirrored(name)
    reload(site, "[[limits]]\nsession = 0\n")
    assert 'did you mean "sessions"' in site.server.log()
    assert usage(site, "sessions")["limit"] == 0
    reload(site, "")
    assert not site.json("usage")["usages"][0]["amounts"]
    site.wait_for_cut("c.h5", timeout=120)
    release(site, "c.h5")
    third.wait().ok()
    site.assert_mirrored("c.h5")


@pytest.mark.site()
def test_sessions_from_before_the_first_table_count(site):
    first = hold(site, "a.h5")
    site.wait_for_cut("a.h5")
    reload(site, "[[limits]]\nsessions = 1\n")
    assert usage(site, "sessions")["used"] == 1
    release(site, "a.h5")
    first.wait().ok()
    wait_until(lambda: usage(site, "sessions")["used"] == 0, "a session that has ended is counted")


def test_each_caller_sees_its_own_use_and_the_operator_all(site):
    tokens = site.directory / "tokens"
    secrets = {}
    for name, rights in (("anna", "read,write"), ("boss", "read,operate")):
        done = run([paths.BIN / "h5mirrord", "token", "add", name, "--rights", rights, "--tokens-file", tokens],
                   site.logs).ok()
        secrets[name] = site.directory / f"{name}.token"
        secrets[name].touch(mode=0o600)
        secrets[name].write_text(done.out)
    site.server.stop()
    site.server.options["tokens_file"] = tokens
    site.server.tables = '[[limits]]\nusers = ["token:anna"]\ncalls = 50\n'
    site.server.start()

    def asked(name: str, *arguments):
        return site.cli("--token", f"@{secrets[name]}", *arguments)

    shown = json.loads(asked("anna", "usage", "--json").ok().out)["usages"]
    assert [(each["issuer"], each["name"]) for each in shown] == [("token", "anna")]
    assert re.search(r"h5mirrord\.toml:\d+$", shown[0]["table"])
    assert [(each["what"], each["limit"]) for each in shown[0]["amounts"]] == [
        ("sessions", None), ("streams", None), ("calls", 50), ("bandwidth", None)]
    assert asked("anna", "usage", "--all").code == DENIED
    everyone = json.loads(asked("boss", "usage", "--all", "--json").ok().out)["usages"]
    assert [each["name"] for each in everyone] == ["anna", "boss"]
    assert everyone[1]["table"] == ""
    assert re.search(r"token anna +- +calls +\d+/s +50/s", asked("boss", "usage", "--all").ok().out)


@needs_root
def test_a_user_of_a_unix_socket_leaves_others_a_share(tmp_path):
    """No tokens and no tables: users are told apart by their uids, however many connections each makes."""
    with tempfile.TemporaryDirectory(prefix="h5m-share-") as directory:
        os.chmod(directory, 0o755)
        client = shutil.copy(paths.TEST_BIN / "e2e_wire_client", directory)
        site = Site(tmp_path, listen=f"unix:{directory}/sock", options={"max_sessions": 8, "socket_mode": "0666"})
        writers = []

        def ask(user: str, name: str) -> dict:
            writers.append(Wire(site, program=("setpriv", f"--reuid={user}", "--clear-groups", client)))
            writers[-1].open(name)
            return writers[-1].read()

        try:
            site.server.start()
            answers = [ask(ANNA, f"a{n}.h5") for n in range(8)]
            assert ["opened" in answer for answer in answers] == [True] * 4 + [False] * 4, answers
            assert f"uid {pwd.getpwnam(ANNA).pw_uid} has its share of the server's 8 sessions" in str(answers[-1]), answers
            assert "opened" in ask(BOB, "b.h5")
        finally:
            for each in writers:
                each.die()
            site.close()
