"""Events reach their receivers: a real HTTP server, a real command, a sendmail."""

import json
import re
import signal
import time
from contextlib import contextmanager

import pytest

from harness import hdf5, paths
from harness.metrics import free_port, Metrics
from harness.process import run, wait_until
from harness.site import Site
from harness.web_hook import HANG, WebHook

SECRET = "0123456789abcdef0123456789abcdef"

WRITER = """
    f = h5py.File("{name}", "w")
    f["d"] = np.arange(1000)
    f.flush()
    print("flushed", flush=True)
    time.sleep(1000)
"""

CLEAN = 'h5py.File("{name}", "a").attrs["n"] = {n}'


def is_genuine(secret: bytes, header: str, body: bytes) -> bool:
    """By the program of the documentation."""
    page = (paths.SOURCE / "docs/how-to/be-told.md").read_text()
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", page, re.S)[1], names)
    return names["is_genuine"](secret, header, body)


@pytest.fixture
def hook():
    hook = WebHook()
    yield hook
    hook.close()


@pytest.fixture
def other():
    hook = WebHook()
    yield hook
    hook.close()


@contextmanager
def running(tmp_path, tables: str, **arguments):
    site = Site(tmp_path, tables=tables, **arguments)
    try:
        site.server.start()
        yield site
    finally:
        site.close()


def table(*lines: str) -> str:
    return "\n[[notify]]\n" + "\n".join(lines) + "\n"


def to(hook: WebHook, *lines: str) -> str:
    return table(f'url = "{hook.url}"', *lines)


def kill_a_writer(site, name: str) -> None:
    writer = site.start(site.script(WRITER.format(name=name)))
    writer.wait_for_line("flushed")
    site.wait_for_cut(name)
    writer.kill()


def script(tmp_path, name: str, text: str):
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\nd='{tmp_path}'\n{text}\n")
    path.chmod(0o755)
    return path


def wait_for_log(site, text: str) -> None:
    wait_until(lambda: text in site.server.log(), f"the log has no '{text}'", 120)


def test_a_killed_writer_reaches_a_signed_web_hook_at_the_third_try(tmp_path, hook):
    hook.codes = [500, 503]
    key = tmp_path / "hook.key"
    key.write_text(SECRET + "\n")
    key.chmod(0o600)
    with running(tmp_path, to(hook, f'secret_file = "{key}"')) as site:
        kill_a_writer(site, "run.h5")
        events = hook.wait_for(3)
        wait_for_log(site, "after 3 tries")
        assert len(hook.requests) == 3 and len({event["id"] for event in events}) == 1, events
        assert events[0]["event"] == "writer_lost" and events[0]["file"] == "run.h5", events[0]
        assert events[0]["numbers"]["last_cut"] >= 1 and events[0]["repeated"] == 0, events[0]
        site.wait_for_no_lease("run.h5")
        assert site.log("run.h5")[0]["comment"] == "writer lost"
        for headers, body in hook.requests:
            assert headers["Content-Type"] == "application/json" and headers["H5mirror-Event"] == "writer_lost"
            signature = headers["H5mirror-Signature"]
            assert is_genuine(SECRET.encode(), signature, body)
            assert not is_genuine(SECRET.encode(), signature, body + b" ")
            assert not is_genuine(b"x" * 32, signature, body)
            old = re.sub(r"t=\d+", f"t={int(time.time()) - 1000}", signature)
            assert not is_genuine(SECRET.encode(), old, body)
        assert "s3cret" not in site.server.log() and SECRET not in site.server.log()


def test_clean_closes_and_other_files_tell_nobody(tmp_path, hook):
    with running(tmp_path, to(hook, 'files = "runs/**"')) as site:
        (site.work / "runs").mkdir()
        for n in range(3):
            site.py(CLEAN.format(name="runs/clean.h5", n=n))
        kill_a_writer(site, "other.h5")
        site.wait_for_no_lease("other.h5")
        kill_a_writer(site, "runs/run.h5")
        assert [event["file"] for event in hook.wait_for(1)] == ["runs/run.h5"]


def test_the_same_file_again_and_again_is_folded(tmp_path, hook):
    hook.always = 503
    with running(tmp_path, to(hook)) as site:
        for _ in range(3):
            kill_a_writer(site, "run.h5")
            site.wait_for_no_lease("run.h5")
        hook.always = None
        wait_for_log(site, "told of writer_lost")
        kill_a_writer(site, "another.h5")
        wait_until(lambda: hook.events()[-1]["file"] == "another.h5", "another.h5 has not come")
        assert len({event["id"] for event in hook.events()}) == 2, hook.events()


def test_a_disk_that_is_low_reaches_a_command_and_a_mail(tmp_path):
    tell = script(tmp_path, "tell", 'cat >> $d/told; echo >> $d/told; echo "$1|$H5MIRROR_EVENT|$H5MIRROR_FILE" >> $d/env')
    sendmail = script(tmp_path, "sendmail", 'echo "$*" >> $d/arguments; cat >> $d/mail')
    tables = (table(f'command = ["{tell}", "$(id); two words"]')
              + table('events = "history_stopped"', 'mail = "ops@example.org"', f'sendmail = "{sendmail}"'))
    with running(tmp_path, tables, options={"min_free": "1000TiB"}) as site:
        mail = tmp_path / "mail"
        wait_until(lambda: mail.exists() and "\nid: " in mail.read_text(), "no mail has come")
        env = tmp_path / "env"
        wait_until(lambda: env.exists() and env.read_text().count("\n") == 2, "the command was not run twice")
        events = [json.loads(line) for line in (tmp_path / "told").read_text().split("\n") if line]
        assert [event["event"] for event in events] == ["disk_low", "history_stopped"], events
        assert events[0]["file"] is None and events[0]["numbers"]["min_free_bytes"] == 1000 << 40, events
        assert env.read_text() == "$(id); two words|disk_low|\n$(id); two words|history_stopped|\n"
        assert (tmp_path / "arguments").read_text() == "-t -i\n"
        assert mail.read_text().startswith("To: ops@example.org\nSubject: ") and "history_stopped" in mail.read_text()
        assert site.server.running()


def test_a_command_that_fails_is_run_again_even_where_sigchld_was_ignored(tmp_path):
    tell = script(tmp_path, "tell", 'echo run >> $d/runs; echo "no such channel" >&2; [ $(wc -l < $d/runs) -ge 3 ]')
    with running(tmp_path, table(f'command = "{tell}"', 'events = "disk_low"'), options={"min_free": "1000TiB"},
                 prefix=("env", "--ignore-signal=CHLD")) as site:
        wait_for_log(site, "after 3 tries")
        assert (tmp_path / "runs").read_text() == "run\n" * 3
        assert "exit code 1: no such channel" in site.server.log()


def test_a_command_that_hangs_is_killed_and_holds_up_no_stop(tmp_path):
    tell = script(tmp_path, "tell", 'trap "" TERM; echo $$ > $d/pid; while :; do sleep 1; done')
    with running(tmp_path, table(f'command = "{tell}"'), options={"min_free": "1000TiB"}) as site:
        pid = tmp_path / "pid"
        wait_until(lambda: pid.exists() and pid.read_text().strip() != "", "the command was not run")
        site.server.stop(timeout=30)
        assert run(["kill", "-0", pid.read_text().strip()], site.logs).code != 0, "the command still runs"


def test_a_diverged_file_and_damage_are_told(tmp_path, hook):
    with running(tmp_path, to(hook)) as site:
        site.py('h5py.File("run.h5", "w")["d"] = np.random.default_rng(1).random(100_000)')
        site.settle("run.h5")
        site.server.stop()
        plain = site.script('h5py.File("run.h5", "r+")["d"][:1000] = 7')
        run(plain, site.logs, cwd=site.work, env=site.plain_env()).ok()
        site.server.start()
        ask = site.config(on_outside_change="ask")
        assert "diverged" in site.py('h5py.File("run.h5", "r+").attrs["n"] = 1', config=ask).err
        assert hook.wait_for_event("diverged")["file"] == "run.h5"
        assert len(hook.requests) == 1, hook.events()
        head = site.head("run.h5")
        site.server.stop()
        with open(head, "r+b") as file:
            file.seek(head.stat().st_size - 1000)
            file.write(b"rot")
        site.server.start()
        assert site.cli("verify", "run.h5").code == 6
        event = hook.wait_for_event("verify_failed")
        assert event["file"] == "run.h5" and event["text"], event


def test_a_local_file_that_differs_is_told(tmp_path, hook):
    with running(tmp_path, to(hook, 'events = ["verify_failed"]')) as site:
        site.py('h5py.File("run.h5", "w")["d"] = np.arange(100_000)')
        site.settle("run.h5")
        with open(site.local("run.h5"), "r+b") as file:
            file.seek(site.local("run.h5").stat().st_size - 100)
            file.write(b"rot")
        assert site.cli("verify", "--against", site.local("run.h5")).code == 6
        assert hook.wait_for(1)[0]["numbers"]["differing_bytes"] > 0


@pytest.mark.parametrize("events", [1, 3])
def test_a_receiver_that_hangs_holds_up_nothing_and_nobody(tmp_path, hook, other, events):
    hook.always = HANG
    with running(tmp_path, to(hook) + to(other)) as site:
        for n in range(events):
            kill_a_writer(site, f"run{n}.h5")
        assert len(other.wait_for(events)) == events
        # One at a time, which a slow machine may see tried again.
        assert len({event["id"] for event in hook.wait_for(1)}) == 1
        site.py(CLEAN.format(name="clean.h5", n=1))
        site.assert_mirrored("clean.h5")
        began = time.monotonic()
        site.server.stop(timeout=60)
        assert time.monotonic() - began < 25, "the stop waited for the receiver"
        assert f"{events} events were not delivered" in site.server.log()


def test_a_reload_takes_new_tables_and_keeps_what_waits(tmp_path, hook, other):
    hook.always = 503
    with running(tmp_path, to(hook)) as site:
        kill_a_writer(site, "first.h5")
        hook.wait_for(1)
        config = site.logs / "h5mirrord.toml"
        before = config.read_text()
        config.write_text(before + to(other, 'events = ["writer"]'))
        site.server.process.signal(signal.SIGHUP)
        wait_for_log(site, "the tables of the configuration stay as they were")
        config.write_text(before.replace("[[notify]]", '[[notify]]\nevents = "disk_low"') + to(other))
        site.server.process.signal(signal.SIGHUP)
        wait_for_log(site, "reloaded log, tables")
        kill_a_writer(site, "second.h5")
        assert [event["file"] for event in other.wait_for(1)] == ["second.h5"]
        hook.always = None
        wait_for_log(site, "told of writer_lost")
        assert {event["file"] for event in hook.events()} == {"first.h5"}
        config.write_text(before.split("\n[[notify]]")[0])
        site.server.process.signal(signal.SIGHUP)
        wait_until(lambda: site.server.log().count("reloaded log") == 2, "no second reload")
        kill_a_writer(site, "third.h5")
        site.wait_for_no_lease("third.h5")
        site.server.stop()
        assert len(other.requests) == 1


def test_a_server_that_stops_loses_no_writer(tmp_path, hook):
    with running(tmp_path, to(hook)) as site:
        writer = site.start(site.script(WRITER.format(name="run.h5")))
        writer.wait_for_line("flushed")
        site.wait_for_cut("run.h5")
        site.server.stop()
        assert not hook.requests, hook.events()


def test_metrics_count_what_became_of_events(tmp_path, hook):
    hook.codes = [500, 200, 400]
    with running(tmp_path, to(hook)) as site:
        metrics = Metrics(site)

        def count(result: str) -> int:
            name = f'h5mirror_server_notify_events_total{{receiver="url",result="{result}"}} '
            return int(float(next(line for line in metrics.lines() if line.startswith(name)).split()[-1]))

        kill_a_writer(site, "a.h5")
        hook.wait_for(2)
        kill_a_writer(site, "b.h5")
        wait_until(lambda: [count(each) for each in ("delivered", "retried", "failed", "dropped")] == [1, 1, 1, 0],
                   "the counters do not get there")
        wait_until(lambda: metrics.value("h5mirror_server_notify_pending") == 0, "something is pending")


def daemon(tmp_path, tables: str, *arguments: str):
    """h5mirrord with a configuration, to its end."""
    (tmp_path / "root").mkdir(exist_ok=True)
    config = tmp_path / "h5mirrord.toml"
    config.write_text(f'root = "{tmp_path}/root"\n{tables}')
    return run([paths.BIN / "h5mirrord", *arguments, "--config", config], tmp_path, env=hdf5.plain_env(HOME=str(tmp_path)))


def test_notify_test_tries_every_receiver(tmp_path, hook):
    tell = script(tmp_path, "tell", "cat > $d/told")
    sendmail = script(tmp_path, "sendmail", "echo no route >&2; exit 75")
    good = to(hook) + table(f'command = "{tell}"', 'events = "disk_low"')
    done = daemon(tmp_path, good, "notify", "test").ok()
    assert [line.split()[:2] for line in done.out.splitlines()] == [["delivered", "url"], ["delivered", "command"]], done.out
    assert hook.events()[0]["event"] == json.loads((tmp_path / "told").read_text())["event"] == "test"
    gone = f"http://127.0.0.1:{free_port()}/s3cret"
    failed = daemon(tmp_path, good + table('mail = "a@b"', f'sendmail = "{sendmail}"') + table(f'url = "{gone}"'),
                    "notify", "test")
    assert failed.code == 1 and failed.out.count("delivered") == 2 and failed.out.count("failed") == 2, failed.describe()
    assert "exit code 75: no route" in failed.out and "s3cret" not in failed.said, failed.describe()
    none = daemon(tmp_path, "", "notify", "test")
    assert none.code == 2 and "no [[notify]] table" in none.err, none.describe()


def test_check_config_shows_the_tables_and_refuses_bad_ones(tmp_path, hook):
    key = tmp_path / "hook.key"
    key.write_text(SECRET)
    key.chmod(0o600)
    signed = to(hook, f'secret_file = "{key}"')
    good = daemon(tmp_path, signed, "--check-config").ok()
    assert f'[[notify]]\nurl = "{hook.url.split("/hook")[0]}/..."\nsecret_file = "{key}"' in good.out, good.out
    assert SECRET not in good.out and "s3cret" not in good.out
    for mode in (0o640, 0o602):
        key.chmod(mode)
        for arguments in (["--check-config"], ["notify", "test"], []):
            bad = daemon(tmp_path, signed, *arguments)
            assert bad.code == 2 and "can be read or written by others" in bad.said, bad.describe()
    for tables, said in [(table('url = "https://a/"', 'file = "x"'), 'did you mean "files"?'),
                         (table('command = "/nowhere/tell"'), "run /nowhere/tell: No such file"),
                         (table('events = "writer_los"', 'mail = "a@b"'), 'did you mean "writer_lost"?')]:
        bad = daemon(tmp_path, tables, "--check-config")
        assert bad.code == 2 and said in bad.err, bad.describe()
    assert not hook.requests
