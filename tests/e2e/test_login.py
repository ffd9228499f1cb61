"""Users of the site's single sign-on: logins, their renewal and end, and the access that their tokens give."""

import json
import os
import signal
import stat
import threading
import time

import pytest

from harness import paths
from harness.issuer import CLIENT, Issuer
from harness.process import Process, run, wait_until
from harness.scripts import GROWING
from harness.site import Site

LIFE_S = 30  # of a token that is to expire: enough for a login and an open

TABLES = """
[[access]]
files = "${user}/**"
allow = ["read", "write", "restore", "delete"]

[[access]]
files = "shared/**"
groups = ["bl7"]
allow = ["read", "write"]

[[access]]
files = "annas/**"
users = ["jwt:anna"]
allow = ["read", "write"]
"""


class Lab:
    def __init__(self, directory):
        self.issuer = Issuer(directory / "issuer")
        self.site = Site(directory, tables=TABLES, options=self.issuer.options())
        self.pushed = 0
        self.environment = {**os.environ, "HOME": str(self.site.home), "http_proxy": "", "no_proxy": "127.0.0.1"}

    def command(self, *arguments):
        return [paths.BIN / "h5mirror", "--server", self.site.address, *arguments]

    def run(self, *arguments, timeout=60):
        return run(self.command(*arguments), self.site.logs, timeout=timeout, name="h5mirror", cwd=self.site.work,
                   env=self.environment)

    def device_login(self, *more):
        return self.run("login", "--issuer", self.issuer.url, "--client-id", CLIENT, *more)

    def file_login(self, **claims):
        """A login by a file, which `login --refresh` reads again."""
        self.put_token(**claims)
        self.run("login", "--token-file", self.site.directory / "given").ok()

    def put_token(self, **claims):
        given = self.site.directory / "given.new"
        given.write_text(self.issuer.token(**claims))
        os.chmod(given, 0o600)
        os.replace(given, self.site.directory / "given")

    @property
    def tokens(self):
        return self.site.home / ".config" / "h5mirror" / "tokens"

    @property
    def token_file(self):
        return self.tokens / self.site.address.replace(":", "%3A")

    def push(self, name: str):
        """Sends a small file under a name."""
        self.pushed += 1
        local = self.site.work / f"push-{self.pushed}.h5"
        self.site.run(self.site.script(f'h5py.File("{local}", "w")["x"] = np.arange(10)'), env=self.site.plain_env()).ok()
        return self.run("push", local, "--name", name)

    def close(self):
        self.site.close()
        self.issuer.close()


class Expiring:
    """A server, and a program with a token that expires LIFE_S after its login."""

    def __init__(self, directory, options):
        self.lab = Lab(directory)
        try:
            self.lab.site.server.options.update(options)
            self.lab.site.server.start()
            self.writer, self.expires = _start_writer(self.lab)
        except BaseException:
            self.lab.close()
            raise


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    try:
        lab.site.server.start()
        yield lab
    finally:
        lab.close()


def test_a_login_from_a_file_is_kept_from_others(lab):
    refused = lab.run("ls")
    assert refused.code == 8 and "h5mirror login" in refused.err, refused.describe()
    lab.file_login()
    lab.run("ls").ok()
    for path, mode in ((lab.tokens, 0o700), (lab.token_file, 0o600), (lab.tokens / f"{lab.token_file.name}.login", 0o600)):
        assert stat.S_IMODE(path.stat().st_mode) == mode, path
    lab.run("logout").ok()
    assert not lab.token_file.exists() and lab.run("ls").code == 8


def test_a_login_from_a_command_knows_no_shell(lab):
    lab.put_token()
    given = lab.site.directory / "given"
    lab.run("login", "--token-command", f"cat '{given}'").ok()
    lab.run("ls").ok()
    before = lab.token_file.read_text()
    failed = lab.run("login", "--token-command", "cat /nowhere; echo x")
    assert failed.code != 0 and lab.token_file.read_text() == before, failed.describe()
    (lab.tokens.parent / "login.toml").write_text(f'token_command = ["cat", "{given}"]\n')
    lab.put_token()
    lab.run("login").ok()
    assert lab.token_file.read_text() != before


def test_the_device_flow_waits_for_the_user(lab):
    lab.issuer.answers = ["authorization_pending", "slow_down", "ok"]
    result = lab.device_login("--json").ok()
    assert "ABCD-EFGH" in result.err and f"{lab.issuer.url}/activate" in result.err, result.describe()
    told = json.loads(result.out)
    assert told["renewable"] and told["token_file"] == str(lab.token_file), told
    first, second, third = lab.issuer.asked
    assert second - first >= 1 and third - second >= 6, lab.issuer.asked
    assert lab.push("anna/a.h5").code == 0
    shown = lab.run("log", "anna/a.h5", "--json").ok().out
    assert '"user": "anna"' in shown and '"user_verified": true' in shown, shown


def test_a_user_who_says_no_has_no_login(lab):
    lab.issuer.answers = ["access_denied"]
    result = lab.device_login()
    assert result.code == 8 and "access_denied" in result.err, result.describe()
    assert not lab.token_file.exists()
    other = lab.run("login", "--issuer", lab.issuer.url, "--client-id", "stranger")
    assert "invalid_client" in other.err, other.describe()
    plain = lab.run("login", "--issuer", "http://sso.example", "--client-id", CLIENT)
    assert plain.code == 2 and "https only" in plain.err, plain.describe()


def test_refresh_tokens_are_used_once_even_by_many(lab):
    lab.issuer.lifetime = 2  # So that a half is over soon.
    lab.device_login().ok()
    before = lab.token_file.read_text()
    lab.issuer.lifetime = 600
    wait_until(lambda: json.loads(lab.run("login", "--refresh", "--json").ok().out)["renewed"], "it is still fresh")
    assert lab.token_file.read_text() != before and lab.issuer.refreshes == 1
    kept = json.loads((lab.tokens / f"{lab.token_file.name}.login").read_text())
    _age(lab, kept)
    many = [Process(lab.command("login", "--refresh"), lab.site.logs, env=lab.environment) for _ in range(5)]
    for process in many:
        process.wait().ok()
    assert lab.issuer.refreshes == 2 and lab.issuer.reuses == 0
    lab.run("ls").ok()


def test_a_signal_loses_no_refresh_token(lab):
    lab.device_login().ok()
    path = lab.tokens / f"{lab.token_file.name}.login"
    before = json.loads(path.read_text())
    _age(lab, before)
    asked, may_answer, refresh = threading.Event(), threading.Event(), lab.issuer._refresh

    def refresh_late(*arguments):
        asked.set()
        may_answer.wait(60)
        refresh(*arguments)

    lab.issuer._refresh = refresh_late
    process = Process(lab.command("login", "--refresh"), lab.site.logs, env=lab.environment)
    try:
        assert asked.wait(60), "the issuer is not asked"
        process.signal(signal.SIGTERM)
    finally:
        may_answer.set()
    process.wait()
    assert json.loads(path.read_text())["refresh_token"] not in ("", before["refresh_token"])
    _age(lab, json.loads(path.read_text()))
    lab.run("login", "--refresh").ok()
    assert lab.issuer.refreshes == 2 and lab.issuer.reuses == 0


def test_an_issuer_that_is_away_takes_no_login(lab):
    lab.device_login().ok()
    path = lab.tokens / f"{lab.token_file.name}.login"
    _age(lab, json.loads(path.read_text()))
    before = lab.token_file.read_text(), path.read_text()
    lab.issuer.is_down = True
    away = lab.run("login", "--refresh")
    assert away.code == 4, away.describe()
    assert lab.token_file.read_text() == before[0] and json.loads(path.read_text()) == json.loads(before[1])
    lab.run("ls").ok()
    lab.issuer.is_down = False
    lab.run("login", "--refresh").ok()
    assert lab.issuer.refreshes == 1 and lab.issuer.reuses == 0


def _age(lab, kept: dict) -> None:
    """Makes a login one of long ago, as far as its owner knows."""
    kept["obtained"], kept["expires"] = int(time.time()) - 1000, int(time.time()) + 10
    (lab.tokens / f"{lab.token_file.name}.login").write_text(json.dumps(kept))


def test_tables_take_users_and_groups(lab):
    lab.file_login()
    for name in ("anna/a.h5", "shared/a.h5", "annas/a.h5"):
        assert lab.push(name).code == 0, name
    lab.file_login(sub="bob", groups=["other"])
    for name in ("anna/a.h5", "shared/a.h5", "annas/a.h5"):
        assert lab.run("log", name).code == 3, name
    config = ("--config", lab.site.logs / "h5mirrord.toml", "--root", lab.site.root)
    check = run([paths.BIN / "h5mirrord", *config, "access", "check", "jwt:anna", "annas/a.h5"], lab.site.logs).ok()
    assert 'login "anna"' in check.out and "rights: read,write" in check.out, check.out


@pytest.mark.parametrize("claims, why", [({"aud": "other"}, "jwt_audience"), ({"iss": "http://x"}, "jwt_issuer"),
                                         ({"exp": 1}, "run `h5mirror login`"), ({"sub": "a/b"}, "no name here")])
def test_tokens_that_do_not_count_say_why(lab, claims, why):
    lab.file_login(**claims)
    refused = lab.run("ls")
    assert refused.code == 8 and why in refused.err, refused.describe()


@pytest.fixture(scope="module")
def expiring(tmp_path_factory):
    """Writers whose tokens expire one soon after the other, each at a server of its own: three tests wait for that once."""
    started = {}
    try:
        for name, options in (("renewed", {}), ("late", {}), ("grace", {"jwt_grace": "1h"})):
            started[name] = Expiring(tmp_path_factory.mktemp(name), options)
            if name != "grace":
                started[name].writer.ask("")
            if name == "renewed":
                started[name].lab.file_login()
        yield started
    finally:
        for each in started.values():
            each.lab.close()


def test_a_session_goes_on_with_the_next_token(expiring):
    lab, writer = expiring["renewed"].lab, expiring["renewed"].writer
    _await_log(lab, "sessions and calls end")
    for _ in range(3):
        writer.ask("")
    assert writer.ask("end") == "closed"
    writer.wait().ok()
    assert _is_mirrored(lab)
    assert "refused" not in writer.err(), writer.err()


def test_a_session_resumes_when_the_user_logs_in_late(expiring):
    lab, writer = expiring["late"].lab, expiring["late"].writer
    _await_log(lab, "sessions and calls end")
    wait_until(lambda: "h5mirror login" in writer.err(), "the program's user hears nothing")
    writer.ask("")
    assert not _is_mirrored(lab)
    lab.file_login()
    wait_until(lambda: _is_mirrored(lab), "the session does not resume")
    writer.ask("")
    assert writer.ask("end") == "closed"
    writer.wait().ok()
    assert _is_mirrored(lab)


def test_the_grace_lets_what_runs_go_on(expiring):
    lab, writer, expires = expiring["grace"].lab, expiring["grace"].writer, expiring["grace"].expires
    wait_until(lambda: time.time() > expires + 1, "the time does not pass", LIFE_S + 30)
    assert lab.run("ls").code == 8
    writer.ask("")
    assert writer.ask("end") == "closed"
    writer.wait().ok()
    assert _is_mirrored(lab)
    assert "sessions and calls end" not in lab.site.server.log()


def test_a_key_that_is_taken_out_ends_what_runs(lab):
    lab.file_login()
    assert lab.push("shared/w.h5").code == 0
    watcher = lab.site.start(lab.command("watch", "shared/w.h5"), env=lab.environment)
    wait_until(watcher.out, "the follower hears of no cut")
    lab.issuer.change_key()
    result = watcher.wait(60)
    assert result.code == 8 and "taken out" in result.err, result.describe()
    assert lab.run("ls").code == 8
    lab.file_login()
    lab.run("ls").ok()


def test_all_rights_without_tables_are_warned_of(tmp_path):
    lab = Lab(tmp_path)
    try:
        lab.site.server.tables = ""
        lab.site.server.start()
        assert "may do everything" in lab.site.server.log()
        config = ("--config", lab.site.logs / "h5mirrord.toml", "--root", lab.site.root)
        check = run([paths.BIN / "h5mirrord", *config, "--check-config"], lab.site.logs).ok()
        assert "may do everything" in check.err, check.describe()
        lab.file_login()
        assert lab.push("anything.h5").code == 0
    finally:
        lab.close()


def _start_writer(lab):
    """A program that writes more, and flushes, for each line that it is told; and when its token expires."""
    await_start = """
    print("ready", flush=True)
    sys.stdin.readline()
"""
    script = lab.site.script(await_start + GROWING.format(name="shared/w.h5"))
    writer = lab.site.start(script, talks=True)
    assert writer.line() == "ready"
    # Only now, as a machine with much to do starts a program late.
    expires = int(time.time()) + LIFE_S
    lab.file_login(exp=expires)
    assert writer.ask("open") == "open"
    return writer, expires


def _await_log(lab, text: str) -> None:
    wait_until(lambda: text in lab.site.server.log(), f"the server's log has no '{text}'", LIFE_S + 60)


def _is_mirrored(lab) -> bool:
    return lab.site.local("shared/w.h5").read_bytes() == lab.site.head("shared/w.h5").read_bytes()
