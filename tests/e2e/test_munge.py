"""Users by credentials of munge: the access that they give, which credentials are valid, and a munged that hangs."""

import json
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from harness import hdf5, paths
from harness.munged import Munged
from harness.process import run, wait_until
from harness.scripts import GROWING
from harness.site import Site
from harness.users import ANNA, BOB, needs_root
from test_agent import Agent

pytestmark = [needs_root, pytest.mark.skipif(shutil.which("munge") is None, reason="takes munge and munged")]

HIDDEN, AWAY, DENIED = 3, 4, 8

TABLES = f"""
[[access]]
files = "home/${{user}}/**"
allow = ["read", "write", "restore", "delete"]

[[access]]
files = "annas/**"
users = ["munge:{ANNA}"]
allow = ["read", "write"]
"""


class Cluster:
    """A server on TCP, whose callers are known by munge alone or by the token of a robot."""

    def __init__(self, directory: Path, logs: Path):
        self.directory = directory
        directory.chmod(0o755)
        self.tool = directory / "h5mirror"
        shutil.copy(paths.BIN / "h5mirror", self.tool)
        self.munged = Munged(directory / "munged", logs)
        self.site = Site(logs, tables=TABLES,
                         options={"munge_socket": self.munged.socket, "tokens_file": directory / "tokens"})
        made = run([paths.BIN / "h5mirrord", "token", "add", "robot", "--tokens-file", directory / "tokens"], logs,
                   timeout=30, name="token").ok()
        self.robot = self.secret(made.out)
        self.site.py("h5py.File('plain.h5', 'w')['x'] = np.arange(1000)", env=self.site.plain_env())
        for user in (ANNA, BOB):
            home = directory / user
            home.mkdir()
            shutil.copy(self.site.work / "plain.h5", home / "a.h5")
            for each in (home, home / "a.h5"):
                shutil.chown(each, user, user)

    @property
    def source(self) -> str:
        """The token of clients that make their own credentials."""
        return f"munge:{self.munged.socket}"

    def secret(self, text: str) -> str:
        """A file with a token, as a client's."""
        path = self.directory / f"secret-{time.monotonic_ns()}"
        path.touch(mode=0o600)
        path.write_text(text)
        return f"@{path}"

    def run_with(self, token: str, *arguments, user="root"):
        command = ["setpriv", f"--reuid={user}", "--clear-groups", self.tool, "--server", self.site.address, "--token", token]
        return run([*command, *arguments], self.site.logs, timeout=60, name="h5mirror", cwd=self.directory,
                   env=hdf5.plain_env(HOME=str(self.directory)))

    def run(self, user: str, *arguments):
        return self.run_with(self.source, *arguments, user=user)

    def refusal(self, credential: str) -> str:
        result = self.run_with(self.secret(credential), "ls")
        assert result.code == DENIED and credential not in result.said, result.describe()
        assert credential not in self.site.server.log()
        return result.err

    def close(self) -> None:
        self.site.close()
        self.munged.close()


@pytest.fixture
def cluster(tmp_path):
    with tempfile.TemporaryDirectory(prefix="h5m-munge-") as directory:
        cluster = Cluster(Path(directory), tmp_path)
        try:
            cluster.munged.start()
            cluster.site.server.start()
            yield cluster
        finally:
            cluster.close()


def test_users_have_what_the_tables_say(cluster):
    cluster.run(ANNA, "push", f"{ANNA}/a.h5", "--name", f"home/{ANNA}/a.h5").ok()
    cluster.run(ANNA, "push", f"{ANNA}/a.h5", "--name", "annas/a.h5").ok()
    shown = cluster.run(ANNA, "log", f"home/{ANNA}/a.h5", "--json").ok().out
    assert f'"user": "{ANNA}"' in shown and '"user_verified": true' in shown, shown
    for name in (f"home/{ANNA}/a.h5", "annas/a.h5"):
        assert cluster.run(BOB, "log", name).code == HIDDEN, name
    assert cluster.run(BOB, "push", f"{BOB}/a.h5", "--name", "annas/b.h5").code == HIDDEN
    config = ("--config", cluster.site.logs / "h5mirrord.toml", "--root", cluster.site.root)
    check = run([paths.BIN / "h5mirrord", *config, "access", "check", f"munge:{ANNA}", "annas/a.h5"], cluster.site.logs).ok()
    assert f'user "{ANNA}"' in check.out and "rights: read,write" in check.out, check.out


def test_a_credential_counts_for_many_calls_at_one_server(cluster):
    own = cluster.secret(cluster.munged.credential(ANNA))
    for _ in range(3):
        cluster.run_with(own, "ls").ok()
    stolen = cluster.munged.credential(ANNA)
    cluster.munged.decode(stolen)
    assert "used before" in cluster.refusal(stolen)
    assert "used before" in cluster.refusal(stolen)


def test_other_credentials_are_refused(cluster):
    assert "another program" in cluster.refusal(cluster.munged.credential(ANNA, payload="slurm"))
    short = cluster.munged.credential(ANNA, "--ttl=1")
    made = time.time()
    wait_until(lambda: time.time() > made + 3, "the time does not pass", 30)
    assert "expired" in cluster.refusal(short)
    other = Munged(cluster.directory / "other", cluster.site.logs)
    try:
        other.start()
        assert "another key" in cluster.refusal(other.credential(ANNA))
    finally:
        other.close()
    assert "does not count" in cluster.refusal("MUNGE:AwQDAAC:")
    nameless = cluster.run("54321", "ls")
    assert nameless.code == DENIED and "54321" in nameless.err, nameless.describe()


def test_without_a_credential_the_error_names_the_way(cluster):
    result = cluster.run_with("", "ls")
    assert result.code == DENIED and 'token = "munge"' in result.err, result.describe()


def test_a_munged_that_hangs_holds_up_nobody_else(cluster):
    credentials = [cluster.secret(cluster.munged.credential(ANNA)) for _ in range(3)]
    known = cluster.secret(cluster.munged.credential(BOB))
    cluster.run_with(known, "ls").ok()
    cluster.munged.pause()
    for credential in credentials:
        waits = cluster.run_with(credential, "ls")
        assert waits.code == AWAY and "munged" in waits.err, waits.describe()
        for token in (known, cluster.robot):
            cluster.run_with(token, "ls").ok()  # munged never answers: this does not wait for it.
    own = cluster.run(ANNA, "ls")
    assert own.code != 0 and "munged" in own.err, own.describe()
    cluster.munged.go_on()
    wait_until(lambda: cluster.run(ANNA, "ls").code == 0, "munged is not asked again", 60)


def test_the_server_stops_while_munged_hangs(cluster):
    credential = cluster.secret(cluster.munged.credential(ANNA))
    cluster.munged.pause()
    assert cluster.run_with(credential, "ls").code != 0
    started = time.monotonic()
    cluster.site.server.stop()
    assert time.monotonic() - started < 30


def test_a_session_goes_on_with_a_new_credential(cluster):
    cluster.run("root", "ls").ok()
    script = cluster.site.script(GROWING.format(name="home/root/w.h5"))
    writer = cluster.site.start(script, config=cluster.site.config(token=cluster.source), talks=True)
    assert writer.line() == "open"
    assert writer.ask("") == "flushed"
    # The next server knows no credential, and munged has decoded the one of the session before.
    cluster.site.server.stop()
    cluster.site.server.start()
    assert writer.ask("") == "flushed"
    assert writer.ask("end") == "closed"
    writer.wait().ok()
    wait_until(lambda: _is_mirrored(cluster), "the session does not go on")
    versions = json.loads(cluster.run("root", "log", "home/root/w.h5", "--json").ok().out)["versions"]
    assert all(version["user"] == "root" for version in versions), versions


def test_a_program_that_opens_while_munged_hangs_is_mirrored_later(cluster):
    cluster.munged.pause()
    script = cluster.site.script(GROWING.format(name="home/root/w.h5"))
    writer = cluster.site.start(script, config=cluster.site.config(token=cluster.source), talks=True)
    assert writer.line() == "open"
    assert writer.ask("") == "flushed"
    cluster.munged.go_on()
    wait_until(lambda: "session start" in cluster.site.server.log(), "the session gets no credential")
    assert writer.ask("") == "flushed"
    assert writer.ask("end") == "closed"
    writer.wait().ok()
    wait_until(lambda: _is_mirrored(cluster), "the session does not go on")


# Opens the file for each line that it reads, and prints a value.
READS = """
    for line in sys.stdin:
        try:
            with h5py.File("home/root/r.h5", "r") as f:
                print(int(f["x"][41]), flush=True)
        except OSError as error:
            print(str(error).replace("\\n", " "), flush=True)
"""


def write_value(cluster, value: int) -> None:
    cluster.site.py(f"""
        os.makedirs("home/root", exist_ok=True)
        with h5py.File("home/root/r.h5", "a") as f:
            f.require_dataset("x", (1000,), "i8")[:] = {value}
    """, config=cluster.site.config(token=cluster.source))


def test_a_reader_goes_on_with_a_new_credential(cluster):
    write_value(cluster, 1)
    reader = cluster.site.start(cluster.site.script(READS), config=cluster.site.config(mode="reader", token=cluster.source),
                                talks=True)
    assert reader.ask("") == "1"
    for _ in range(2):
        cluster.site.server.stop()
        cluster.site.server.start()
        assert reader.ask("") == "1"


def test_the_agent_goes_on_with_a_new_credential(cluster):
    write_value(cluster, 1)
    agent = Agent(cluster.site, "--token", cluster.source).start()
    # Without a token of its own, so that what it reads comes through the agent.
    reader = cluster.site.start(cluster.site.script(READS), config=cluster.site.config(mode="reader", agent=agent.socket),
                                talks=True)
    assert reader.ask("") == "1"
    cluster.site.server.stop()
    cluster.site.server.start()
    write_value(cluster, 2)
    wait_until(lambda: reader.ask("") == "2", "the agent does not go on", 60)
    said = agent.process.err() + agent.process.out()
    assert "not followed any more" not in said, said
    files, cuts = agent.stop()
    assert files == 1 and cuts >= 2, (files, cuts)


def _is_mirrored(cluster) -> bool:
    name = "home/root/w.h5"
    return cluster.site.local(name).read_bytes() == cluster.site.head(name).read_bytes()
