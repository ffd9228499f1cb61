"""A server on a Unix socket: users of this machine with real uids, a robot with a token, and logins of an issuer."""

import json
import os
import shutil
import signal
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import hdf5, paths
from harness.issuer import Issuer, Key
from harness.process import Process, run, wait_until
from harness.site import Site

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to be other users")

# Users that each Debian has. They share no group.
ANNA, BOB, CAROL = "games", "news", "backup"
# Logins at the site's issuer: a valid one, an expired one, and one that another issuer has signed.
DORA, STALE, FORGED = "dora", "stale", "forged"

TABLES = f"""
[[access]]
files = "home/${{user}}/**"
allow = ["read", "write", "restore", "delete"]

[[access]]
files = "beamline/**"
groups = ["{CAROL}"]
allow = ["read", "write"]

[[access]]
files = "beamline/**"
users = ["unix:{ANNA}", "token:robot"]
allow = ["read"]

[[access]]
files = "home/{ANNA}/**"
users = ["token:robot", "token:brief"]
allow = ["read"]
"""


class Host:
    """A server on a Unix socket that all users of this machine reach, and their tools."""

    def __init__(self, directory: Path, logs: Path, **options):
        self.directory = directory
        directory.chmod(0o755)
        # The checkout may lie where other users cannot read.
        self.tool = directory / "h5mirror"
        shutil.copy(paths.BIN / "h5mirror", self.tool)
        self.tokens = directory / "tokens"
        self.token("add", "robot", "--rights", "read,write,admin")
        self.issuer, stranger = Issuer(directory / "issuer"), Key(directory, "stranger")
        self.login(DORA, groups=[CAROL])
        self.login(STALE, sub=DORA, exp=int(time.time()) - 3600)
        self.issuer.keys.insert(0, stranger)  # No file of the server has this key.
        self.login(FORGED, sub=DORA, groups=[CAROL])
        self.issuer.keys.remove(stranger)
        self.site = Site(logs, listen=f"unix:{directory}/socket", tables=TABLES,
                         options={"tokens_file": self.tokens, "socket_mode": "0666", **self.issuer.options(),
                                  **options})
        self.site.py("h5py.File('plain.h5', 'w')['x'] = np.arange(1000)", env=self.site.plain_env())
        for user in (ANNA, BOB, CAROL, "robot", DORA, FORGED):
            home = directory / user
            home.mkdir()
            shutil.copy(self.site.work / "plain.h5", home / "a.h5")
            if user not in ("robot", DORA, FORGED):
                for each in (home, home / "a.h5"):
                    shutil.chown(each, user, user)

    def daemon(self, *arguments):
        return run([paths.BIN / "h5mirrord", *arguments], self.site.logs, timeout=60, name="h5mirrord")

    def token(self, verb: str, name: str, *arguments) -> None:
        """`h5mirrord token`: what it prints goes to a file of that name."""
        done = run([paths.BIN / "h5mirrord", "token", verb, name, "--tokens-file", self.tokens, *arguments],
                   self.directory, timeout=30, name="token").ok()
        secret = self.directory / f"{name}.token"
        secret.touch(mode=0o600)
        secret.write_text(done.out)

    def login(self, name: str, **claims) -> None:
        """A token of the issuer, in a file of that name."""
        secret = self.directory / f"{name}.token"
        secret.touch(mode=0o600)
        secret.write_text(self.issuer.token(**{"sub": name, **claims}))

    def command(self, user: str, *arguments) -> list:
        tool = [self.tool, "--server", self.site.address]
        secret = self.directory / f"{user}.token"
        if secret.exists():
            return [*tool, "--token", f"@{secret}", *arguments]
        return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", *tool, *arguments]

    def run(self, user: str, *arguments):
        home = self.directory / user
        return run(self.command(user, *arguments), self.site.logs, timeout=60, name="h5mirror",
                   env=hdf5.plain_env(HOME=str(home)), cwd=home if home.exists() else self.directory)

    def attempt(self, attempts: list[tuple]) -> None:
        """Each entry is a user, the expected exit code, and the tool's arguments. Reports all that are wrong."""
        wrong = []
        for user, expected, *arguments in attempts:
            result = self.run(user, *arguments)
            if result.code != expected:
                wrong.append(f"{user} {' '.join(arguments)}: {expected} expected\n{result.describe()}")
        assert not wrong, "\n".join(wrong)

    def listed(self, user: str) -> list[str]:
        return [file["name"] for file in json.loads(self.run(user, "ls", "--json").ok().out)["files"]]

    def start(self, user: str, *arguments) -> Process:
        process = Process(self.command(user, *arguments), self.site.logs, name="h5mirror",
                          env=hdf5.plain_env(HOME=str(self.directory)), cwd=self.directory)
        self.site.beside.append(process)
        return process

    def reload(self, tables: str) -> None:
        """New [[access]] tables for the running server."""
        config = self.site.logs / "h5mirrord.toml"
        config.write_text(config.read_text().removesuffix(self.site.server.tables) + tables)
        self.site.server.tables = tables
        before = self.site.server.log().count("reload")
        self.site.server.process.signal(signal.SIGHUP)
        wait_until(lambda: self.site.server.log().count("reload") > before, "no reload is logged", 60)

    def fill(self) -> None:
        """A file of anna's, one of bob's and one of carol's group."""
        for user in (ANNA, BOB):
            self.run(user, "push", "a.h5", "--name", f"home/{user}/a.h5").ok()
        self.run(CAROL, "push", "a.h5", "--name", "beamline/a.h5").ok()


@contextmanager
def running_host(logs: Path, prefix: tuple = (), **options):
    """A Host with a running server. `prefix` begins its command; `options` are more keys of its configuration."""
    with tempfile.TemporaryDirectory(prefix="h5m-users-") as directory:
        host = Host(Path(directory), logs, **options)
        host.site.server.prefix = prefix
        try:
            host.site.server.start()
            yield host
        finally:
            host.site.close()
            host.issuer.close()
