"""owner_of_heads: which users of a storage host may read the server's copy of a file, tested with their real uids."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import mounts, paths
from harness.process import run, wait_until
from harness.users import ANNA, BOB, CAROL, TABLES, needs_root, running_host
from harness.wire import Wire

pytestmark = needs_root


def run_as(host, user: str, *command, groups=()):
    more = ["--groups=" + ",".join(groups)] if groups else ["--clear-groups"]
    return run(["setpriv", f"--reuid={user}", f"--regid={user}", *more, *command], host.site.logs, timeout=30)


def reads(host, user: str, name: str, groups=()) -> bool:
    """Whether a user of the storage host can read the head itself, and not by the server."""
    done = run_as(host, user, "cat", host.site.root / name, groups=groups)
    assert done.code == 0 or "Permission denied" in done.err, done.describe()
    return done.code == 0


def changes(host, user: str, name: str) -> bool:
    return run_as(host, user, "sh", "-c", f"printf x >> '{host.site.root / name}'").code == 0


def shown_mode(host, name: str) -> int:
    return (host.site.root / name).stat().st_mode & 0o777


def push(host, user: str, mode: int, name: str, *more) -> None:
    local = host.directory / user / "a.h5"
    local.chmod(mode)
    host.run(user, "push", *more, "a.h5", "--name", name).ok()


@contextmanager
def open_host(**options):
    """A host whose root other users may come to, as with the unit's StateDirectoryMode=."""
    with tempfile.TemporaryDirectory(prefix="h5m-heads-") as name:
        logs = Path(name)
        logs.chmod(0o755)
        (logs / "root").mkdir(mode=0o751)
        # The members of this group have the rights of the file's group.
        with running_host(logs, owner_of_heads="acl", group=CAROL, **options) as host:
            yield host


@pytest.fixture
def host():
    with open_host() as host:
        yield host


def test_a_private_file_is_for_its_user_and_the_server(host):
    name = f"home/{ANNA}/a.h5"
    push(host, ANNA, 0o600, name)
    assert reads(host, ANNA, name)
    assert not changes(host, ANNA, name), "a user could change what older versions need"
    assert not reads(host, BOB, name) and not reads(host, CAROL, name, groups=[CAROL])
    # The mask, which looks like the group's right to read.
    assert shown_mode(host, name) == 0o640
    # Histories stay the server's own.
    history = run_as(host, ANNA, "ls", host.site.root / f"{name}.h5m")
    assert history.code != 0 and "Permission denied" in history.err


def test_the_group_reads_what_the_local_file_gives_it_and_no_more(host):
    name = f"home/{ANNA}/a.h5"
    push(host, ANNA, 0o644, name)
    assert reads(host, CAROL, name, groups=[CAROL]) and not reads(host, BOB, name)
    # The file becomes private, and so does its head with the next session.
    with open(host.directory / ANNA / "a.h5", "ab") as local:
        local.write(b"\0")
    push(host, ANNA, 0o600, name)
    assert reads(host, ANNA, name) and not reads(host, CAROL, name, groups=[CAROL])


def test_moves_rollbacks_and_undeletes_keep_it(host):
    name, other = f"home/{ANNA}/a.h5", f"home/{ANNA}/deep/er/b.h5"
    push(host, ANNA, 0o600, name)

    def only_anna_reads(where):
        assert reads(host, ANNA, where)
        assert not reads(host, BOB, where) and not reads(host, CAROL, where, groups=[CAROL])

    host.run(ANNA, "mv", name, other).ok()
    only_anna_reads(other)
    host.run(ANNA, "rm", other).ok()
    host.run(ANNA, "undelete", other).ok()
    only_anna_reads(other)
    # Made anew, and back into a head of its own.
    inode = (host.site.root / other).stat().st_ino
    shutil.copy(host.directory / "robot" / "a.h5", host.directory / ANNA / "a.h5")
    with open(host.directory / ANNA / "a.h5", "ab") as local:
        local.write(b"\0" * 4096)
    push(host, ANNA, 0o600, other, "--replace")
    host.run(ANNA, "rollback", f"{other}@1").ok()
    wait_until(lambda: (host.site.root / other).stat().st_ino != inode or None, "no new head", 30)
    only_anna_reads(other)


def test_a_token_with_a_users_name_is_not_that_user(host):
    """Its name is one that the server's operator chose."""
    host.token("add", BOB, "--rights", "read,write")
    os.rename(host.directory / f"{BOB}.token", host.directory / "robot.token")
    host.reload(f'[[access]]\nfiles = "**"\nallow = ["read", "write"]\n' + TABLES)
    push(host, "robot", 0o600, "all/a.h5")
    assert shown_mode(host, "all/a.h5") == 0o600
    assert not reads(host, BOB, "all/a.h5")


def test_who_may_not_read_through_the_server_may_not_read_the_head(host):
    host.reload(f'[[access]]\nfiles = "drop/**"\nusers = ["unix:{BOB}"]\nallow = ["write"]\n' + TABLES)
    # push compares first, and so takes the right to read.
    client = host.directory / "wire_client"
    shutil.copy(paths.TEST_BIN / "e2e_wire_client", client)
    as_bob = ("setpriv", f"--reuid={BOB}", f"--regid={BOB}", "--clear-groups", client)
    for name, may_read in ((f"home/{BOB}/a.h5", True), ("drop/a.h5", False)):
        with Wire(host.site, path=f"/data/{name}", program=as_bob) as writer:
            writer.open(name)
            writer.write(0, b"x" * 4096)
            writer.commit(4096)
            writer.read_until("cut_durable")
        assert reads(host, BOB, name) is may_read, name


def test_a_file_system_without_lists_makes_heads_for_the_server_alone():
    with tempfile.TemporaryDirectory(prefix="h5m-heads-") as name:
        logs = Path(name)
        (logs / "root").mkdir()
        with running_host(logs, prefix=mounts.private_mount(f"-t ramfs ramfs {logs}/root"), owner_of_heads="acl") as host:
            push(host, ANNA, 0o644, f"home/{ANNA}/a.h5")
            push(host, ANNA, 0o644, f"home/{ANNA}/b.h5")
            seen = Path(f"/proc/{host.site.server.pid}/root{host.site.root}/home/{ANNA}")
            assert [(seen / file).stat().st_mode & 0o777 for file in ("a.h5", "b.h5")] == [0o600, 0o600]
            told = 'owner_of_heads = "acl": set the access list of'
            wait_until(lambda: told in host.site.server.log() or None, "no warning is logged", 30)
            assert host.site.server.log().count(told) == 1


def test_check_config_says_what_is_wrong(tmp_path):
    (tmp_path / "root").mkdir()

    def check(*arguments):
        return run([paths.BIN / "h5mirrord", "--check-config", "--root", tmp_path / "root", *arguments], tmp_path,
                   timeout=30)

    wrong = check("--owner-of-heads", "anna")
    assert wrong.code == 2 and "must be server or acl" in wrong.err, wrong.describe()
    user = check("--owner-of-heads", "user")
    assert user.code == 2 and "its older versions" in user.err, user.describe()
    unknown = check("--owner-of-heads", "acl")
    assert unknown.code == 0 and "no writer is known as a user of this host" in unknown.out + unknown.err, unknown.describe()
    assert 'owner_of_heads = acl' in unknown.out
