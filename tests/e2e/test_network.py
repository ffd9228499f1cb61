"""Across two machines: TLS, tokens, a pulled cable; and a Unix socket."""

import random
import shutil
import time
from pathlib import Path

import pytest

from harness import hdf5, paths, storm
from harness.network import two_machines
from harness.process import run
from harness.site import Site

PORT = 7447


class FarSite(Site):
    """A site whose programs run on one machine and whose server on another, with TLS and a token."""

    def __init__(self, directory: Path, machines):
        secrets = directory / "secrets"
        done = run([*machines.server, paths.BIN / "h5mirrord", "init", "--dir", secrets, "--host",
                    machines.server_address], directory, timeout=30, name="init").ok()
        self.advice = done.out
        super().__init__(directory, options={"tls_cert": secrets / "server.pem", "tls_key": secrets / "server.key",
                                             "tokens_file": secrets / "tokens"},
                         listen=f"0.0.0.0:{PORT}", prefix=machines.server)
        self.machines, self.secrets = machines, secrets
        # As the advice of `h5mirrord init` says.
        settings = self.home / ".config" / "h5mirror"
        settings.mkdir(parents=True, mode=0o700)
        shutil.copy(secrets / "ca.pem", settings / "ca.pem")
        shutil.copy(secrets / "token", settings / "token")
        (settings / "token").chmod(0o600)

    def config(self, **keys) -> str:
        return super().config(**{"server": f"{self.machines.server_address}:{PORT}", **keys})

    def run(self, command, **options):
        return super().run([*self.machines.client, *command], **options)

    def start(self, command, **options):
        return super().start([*self.machines.client, *command], **options)

    def cli(self, *arguments, timeout: float = 60, server: str | None = None, home: Path | None = None):
        env = hdf5.plain_env(HOME=str(home or self.home))
        return run([*self.machines.client, paths.BIN / "h5mirror", "--server",
                    server or f"{self.machines.server_address}:{PORT}", *arguments], self.logs, env=env,
                   cwd=self.directory, timeout=timeout, name="h5mirror")


@pytest.fixture
def far(tmp_path):
    with two_machines() as machines:
        site = FarSite(tmp_path, machines)
        try:
            site.server.start()
            yield site
        finally:
            site.close()


def test_program_is_mirrored_to_another_machine_under_tls(far):
    for version in ("3.12.1", "3.16.0"):
        far.python = paths.venv_python(version)
        far.run([far.python, paths.PROGRAMS / "measure.py", f"far-{version}.h5"]).ok()
        far.assert_mirrored(f"far-{version}.h5")
        assert far.versions(f"far-{version}.h5") == [1, 2, 3]
    newest = far.log("far-3.12.1.h5")[0]
    assert newest["user_verified"] and newest["user"] == "admin", newest
    assert newest["claimed_user"], "the claimed and the verified user are kept apart"


def test_secrets_are_for_their_owner_only(far):
    for name in ("ca.key", "server.key", "tokens", "token"):
        assert (far.secrets / name).stat().st_mode & 0o777 == 0o600, name


@pytest.mark.parametrize("fault", ["no token", "wrong token", "no TLS", "wrong CA", "token others can read"])
def test_caller_without_the_right_is_refused(far, fault):
    """Wrong credentials: the command says why, the program goes on locally, nothing appears on the server."""
    settings = far.home / ".config" / "h5mirror"
    if fault == "no token":
        (settings / "token").unlink()
    elif fault == "wrong token":
        (settings / "token").write_text("not-the-token\n")
    elif fault == "no TLS":
        (settings / "ca.pem").unlink()
        (settings / "token").unlink()
    elif fault == "wrong CA":
        other = far.directory / "other"
        run([paths.BIN / "h5mirrord", "init", "--dir", other], far.logs, timeout=30).ok()
        shutil.copy(other / "ca.pem", settings / "ca.pem")
    else:
        (settings / "token").chmod(0o644)
    listed = far.cli("ls")
    assert listed.code != 0 and listed.err.strip(), listed.describe()
    started = time.monotonic()
    result = far.run(far.script("h5py.File('x.h5', 'w')['x'] = np.arange(1000)"), config=far.config(timeout="3s"))
    assert time.monotonic() - started < 15, result.describe()
    assert result.err.strip(), "one line says that it is not mirrored"
    hdf5.assert_opens(far.local("x.h5"))
    assert not far.head("x.h5").exists()
    assert far.server.running()


def test_a_refusal_forgets_nothing(far):
    """The changes of an outage survive an open with a wrong token: the next open with the right token sends both."""
    far.run(far.script("h5py.File('x.h5', 'w')['x'] = np.arange(1000)")).ok()
    far.server.stop()
    far.run(far.script("h5py.File('x.h5', 'r+')['away'] = np.arange(1000)")).ok()
    far.server.start()
    token = far.home / ".config" / "h5mirror" / "token"
    right = token.read_text()
    token.write_text("not-the-token\n")
    refused = far.run(far.script("h5py.File('x.h5', 'r+')['refused'] = np.arange(1000)")).ok()
    assert "dirty_map" in far.record("x.h5"), refused.describe()
    token.write_text(right)
    result = far.run(far.script("h5py.File('x.h5', 'r+')['last'] = 1")).ok()
    assert far.record("x.h5")["state"] == "clean", result.describe()
    far.assert_mirrored("x.h5")


def test_pulled_cable(far):
    """The link goes down under a writer and comes back: no program hangs, and push brings the file level."""
    writer = far.start(far.script("""
        with h5py.File("cable.h5", "w") as f:
            d = f.create_dataset("d", (0,), maxshape=(None,), chunks=(4096,))
            for n in range(3):
                d.resize(len(d) + 4096, axis=0)
                d[-4096:] = n
                f.flush()
                print("cut", n, flush=True)
                while not os.path.exists(f"go{n}"):
                    time.sleep(0.01)
    """), config=far.config(timeout="2s"))
    writer.wait_for_line("cut 0", 30)
    far.wait_for_cut("cable.h5")
    far.machines.link("down")
    far.local("go0").touch()
    writer.wait_for_line("cut 1", 30)
    far.machines.link("up")
    far.local("go1").touch()
    writer.wait_for_line("cut 2", 30)
    far.local("go2").touch()
    writer.wait(60).ok()
    if far.record("cable.h5")["state"] != "clean":
        far.wait_for_no_lease("cable.h5")
        far.cli("push", far.local("cable.h5")).ok()
    far.assert_mirrored("cable.h5")


@pytest.mark.limit(200)
def test_link_goes_down_and_up_under_a_writer(far):
    """Again and again, shorter and longer than the writer's deadline; TCP hears of none of it by itself."""
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    mib = 256 if paths.TEST_ALL else 128
    alone = storm.unmirrored(far, mib)
    writer = storm.start_stream(far, "link.h5", mib, config=far.config(timeout=None))
    writer.wait_for_line("open")

    def link_lost():
        far.machines.link("down")
        time.sleep(chance.uniform(0.05, 2))
        far.machines.link("up")

    count = 8 if paths.TEST_ALL else 4
    print(len(storm.rage(writer, [link_lost], count, 0.7 * mib / storm.RATE_MIB_PER_S, chance)), "faults")
    storm.assert_felt_nothing(storm.Felt.of(writer.wait(120)), alone)
    print("afterwards:", storm.bring_level(far, "link.h5"))
    storm.assert_all_identical(far, "link.h5")


def test_program_is_mirrored_over_a_unix_socket(tmp_path):
    site = Site(tmp_path, listen=f"unix:{tmp_path}/h5mirror.sock")
    try:
        site.server.start()
        site.run([site.python, paths.PROGRAMS / "measure.py", "u.h5"]).ok()
        site.assert_mirrored("u.h5")
        assert site.versions("u.h5") == [1, 2, 3]
    finally:
        site.close()
