"""Users of one host with real uids, a robot with a token, and logins: the rights of each to the files of each."""

import json
import os
import re
import socket
import stat
import time
from pathlib import Path

import pytest

from harness.hdf5 import plain_env
from harness.mounts import private_file
from harness.process import run, wait_until
from harness.users import ANNA, BOB, CAROL, DORA, FORGED, STALE, TABLES, needs_root, running_host

pytestmark = needs_root

OK, HIDDEN, DENIED = 0, 3, 8


@pytest.fixture
def host(tmp_path):
    with running_host(tmp_path) as host:
        yield host


def test_a_socket_without_permission_is_no_dead_server(host):
    Path(host.site.address.removeprefix("unix:")).chmod(0o600)
    refused = host.run(ANNA, "ls")
    assert refused.code == DENIED, refused.describe()
    assert "you may not open this socket (srw------- " in refused.err, refused.describe()
    host.run("robot", "ls").ok()


ATTEMPTS = [
    # Each one's own.
    (ANNA, OK, "log", f"home/{ANNA}/a.h5"),
    (ANNA, OK, "status", f"home/{ANNA}/a.h5"),
    (ANNA, OK, "tag", f"home/{ANNA}/a.h5@1", "first"),
    (ANNA, OK, "untag", f"home/{ANNA}/a.h5", "first"),
    (ANNA, OK, "commit", "-m", "mine", f"home/{ANNA}/a.h5"),
    (ANNA, OK, "rollback", f"home/{ANNA}/a.h5@1", "-m", "mine"),
    (ANNA, OK, "prune", f"home/{ANNA}/a.h5", "--keep-last", "5"),
    (ANNA, OK, "mv", f"home/{ANNA}/a.h5", f"home/{ANNA}/b.h5"),
    (ANNA, OK, "mv", f"home/{ANNA}/b.h5", f"home/{ANNA}/a.h5"),
    (ANNA, OK, "rm", f"home/{ANNA}/a.h5"),
    (ANNA, OK, "undelete", f"home/{ANNA}/a.h5"),
    # Another user's: each verb; a file without a right looks like a missing one.
    (BOB, HIDDEN, "log", f"home/{ANNA}/a.h5"),
    (BOB, HIDDEN, "log", f"home/{ANNA}/none.h5"),
    (BOB, HIDDEN, "status", f"home/{ANNA}/a.h5"),
    (BOB, HIDDEN, "show", f"home/{ANNA}/a.h5@1"),
    (BOB, HIDDEN, "diff", "--pages", f"home/{ANNA}/a.h5@1", f"home/{ANNA}/a.h5@1"),
    (BOB, HIDDEN, "export", f"home/{ANNA}/a.h5@1", "out.h5"),
    (BOB, HIDDEN, "tag", f"home/{ANNA}/a.h5@1", "his"),
    (BOB, HIDDEN, "untag", f"home/{ANNA}/a.h5", "his"),
    (BOB, HIDDEN, "commit", f"home/{ANNA}/a.h5"),
    (BOB, HIDDEN, "rollback", f"home/{ANNA}/a.h5@1"),
    (BOB, HIDDEN, "prune", f"home/{ANNA}/a.h5", "--keep-last", "1"),
    (BOB, HIDDEN, "stats", f"home/{ANNA}/a.h5"),
    (BOB, HIDDEN, "verify", f"home/{ANNA}/a.h5"),
    (BOB, HIDDEN, "rm", f"home/{ANNA}/a.h5"),
    (BOB, HIDDEN, "undelete", f"home/{ANNA}/a.h5"),
    (BOB, HIDDEN, "watch", "-n", "1", f"home/{ANNA}/a.h5"),
    (BOB, HIDDEN, "push", "a.h5", "--name", f"home/{ANNA}/his.h5"),
    (BOB, HIDDEN, "push", "--replace", "a.h5", "--name", f"home/{ANNA}/a.h5"),
    (BOB, HIDDEN, "mv", f"home/{ANNA}/a.h5", f"home/{BOB}/b.h5"),
    (BOB, HIDDEN, "mv", f"home/{BOB}/a.h5", f"home/{ANNA}/b.h5"),
    (BOB, HIDDEN, "ls", f"home/{ANNA}"),
    (BOB, HIDDEN, "ls", "home/nobody"),
    (BOB, HIDDEN, "log", "beamline/a.h5"),
    # A part of the rights.
    (CAROL, OK, "commit", "beamline/a.h5"),
    (CAROL, OK, "tag", "beamline/a.h5@1", "published"),
    (CAROL, DENIED, "rollback", "beamline/a.h5@1"),
    (CAROL, DENIED, "rm", "beamline/a.h5"),
    (ANNA, OK, "log", "beamline/a.h5"),
    (ANNA, OK, "verify", "beamline/a.h5"),
    (ANNA, DENIED, "commit", "beamline/a.h5"),
    (ANNA, DENIED, "push", "--replace", "a.h5", "--name", "beamline/a.h5"),
    (ANNA, DENIED, "mv", f"home/{ANNA}/a.h5", "beamline/b.h5"),
    # A robot, whose token could do all.
    ("robot", OK, "log", "beamline/a.h5"),
    ("robot", OK, "export", f"home/{ANNA}/a.h5@1", "out.h5"),
    ("robot", DENIED, "rm", f"home/{ANNA}/a.h5"),
    ("robot", HIDDEN, "log", f"home/{BOB}/a.h5"),
    # A login of the site, with a group of its own.
    (DORA, OK, "push", "a.h5", "--name", f"home/{DORA}/a.h5"),
    (DORA, OK, "mv", f"home/{DORA}/a.h5", f"home/{DORA}/b.h5"),
    (DORA, OK, "commit", "beamline/a.h5"),
    (DORA, OK, "tag", "beamline/a.h5@1", "seen"),
    (DORA, DENIED, "untag", "beamline/a.h5", "published"),
    (CAROL, OK, "untag", "beamline/a.h5", "published"),
    (DORA, DENIED, "rollback", "beamline/a.h5@1"),
    (DORA, HIDDEN, "log", f"home/{ANNA}/a.h5"),
    (DORA, HIDDEN, "mv", f"home/{BOB}/a.h5", f"home/{DORA}/his.h5"),
    (ANNA, HIDDEN, "log", f"home/{DORA}/b.h5"),
    (STALE, DENIED, "log", "beamline/a.h5"),
    (FORGED, DENIED, "log", "beamline/a.h5"),
    (FORGED, DENIED, "push", "a.h5", "--name", f"home/{DORA}/forged.h5"),
    # A user who is in no table.
    ("list", HIDDEN, "log", "beamline/a.h5"),
    ("list", HIDDEN, "watch", "-n", "1", "beamline/a.h5"),
]


def test_each_attempt_gives_what_the_tables_say(host):
    host.fill()
    host.attempt(ATTEMPTS)
    assert host.listed(ANNA) == ["beamline/a.h5", f"home/{ANNA}/a.h5"]
    assert host.listed("robot") == ["beamline/a.h5", f"home/{ANNA}/a.h5"]
    assert host.listed("list") == []
    assert host.listed(DORA) == ["beamline/a.h5", f"home/{DORA}/b.h5"]
    # The verified name stands with the version.
    versions = host.run(BOB, "log", f"home/{BOB}/a.h5", "--json").ok().out
    assert f'"user": "{BOB}"' in versions and '"user_verified": true' in versions, versions


def test_a_user_in_no_table_sees_nothing_of_the_machine(host):
    host.reload(f'[[access]]\nfiles = "home/{ANNA}/**"\nusers = ["unix:{ANNA}"]\nallow = ["read"]\n')
    seen = host.run(ANNA, "status").ok().out
    assert str(host.site.root) in seen and "memory:" in seen, seen
    hidden = host.run("list", "status").ok().out
    assert "you are:      list" in hidden and "rights at most: none, to any file" in hidden, hidden
    for told in (str(host.site.root), "root:", "free:", "started:", "memory:", "open:"):
        assert told not in hidden, hidden
    told = json.loads(host.run("list", "status", "--json").ok().out)
    for key in ("start_time", "root", "memory_max_bytes", "memory_used_bytes", "open_files", "open_sessions", "free_bytes"):
        assert told[key] is None, told
    assert told["server_version"] and told["verified_user"] == "list", told


def test_reloaded_tables_end_what_they_do_not_allow(host):
    host.fill()
    anna = host.start(ANNA, "watch", f"home/{ANNA}/a.h5")
    robot = host.start("robot", "watch", f"home/{ANNA}/a.h5")
    for watcher in (anna, robot):
        wait_until(lambda w=watcher: w.out(), "the follower hears of no cut", 60)
    host.reload(TABLES.replace('"token:robot", ', ""))
    result = robot.wait(60)
    assert result.code == HIDDEN, result.describe()
    assert anna.running()
    host.run(ANNA, "log", f"home/{ANNA}/a.h5").ok()


def test_without_its_last_table_a_running_server_opens_nothing(host):
    host.fill()
    host.reload("")
    assert "the [[access]] tables stay as they were" in host.site.server.log()
    assert host.run(BOB, "log", f"home/{ANNA}/a.h5").code == HIDDEN
    host.reload("[[access]]\nfiles = \"**\"\nallow = [\"reed\"]\n")
    assert 'right "reed"' in host.site.server.log()
    assert host.run(BOB, "log", f"home/{ANNA}/a.h5").code == HIDDEN


def test_a_token_ends_when_it_expires_or_is_rotated(host):
    host.fill()
    host.token("add", "brief", "--files", f"home/{ANNA}/*", "--expires", "1d", "--rights", "read")
    host.reload(TABLES + "\n")
    watcher = host.start("brief", "watch", f"home/{ANNA}/a.h5")
    wait_until(watcher.out, "the follower hears of no cut", 60)
    # It ends by itself, some time after the reload that tells when.
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
    host.tokens.write_text(re.sub(r"expires=\S+", f"expires={soon}", host.tokens.read_text()))
    host.reload(TABLES + "\n\n")
    result = watcher.wait(60)
    assert result.code == DENIED and "has expired" in result.err, result.describe()
    old = (host.directory / "robot.token").read_text()
    host.token("rotate", "robot")
    assert host.run("robot", "log", "beamline/a.h5").code == DENIED  # not known yet
    host.reload(TABLES)
    host.run("robot", "log", "beamline/a.h5").ok()
    (host.directory / "robot.token").write_text(old)
    assert host.run("robot", "log", "beamline/a.h5").code == DENIED


def test_a_program_is_told_at_once_that_a_name_is_not_its_own(host):
    site = host.site
    for user in ("root", ANNA):
        (site.work / "home" / user).mkdir(parents=True)
    write = "h5py.File('home/{}/x.h5', 'w')['x'] = np.arange(1000)"
    # No outage, so nothing is tried again until the timeout has passed.
    config = site.config(timeout="100s")
    assert site.py(write.format("root"), config=config, timeout=60).err == ""
    result = site.py(write.format(ANNA), config=config, timeout=60)
    assert f"home/{ANNA}/x.h5: there is no such file, or user \"root\" has no right to it" in result.err, result.err
    assert (site.work / "home" / ANNA / "x.h5").stat().st_size > 1000


def test_access_check_names_the_table_that_decides(host):
    config = ("--config", host.site.logs / "h5mirrord.toml", "--root", host.site.root)
    shown = host.daemon(*config, "access", "check", CAROL, "beamline/a.h5").ok().out
    assert "groups: backup" in shown and "rights: read,write" in shown, shown
    assert "h5mirrord.toml:" in shown, shown
    assert host.daemon(*config, "access", "check", CAROL, "beamline/a.h5", "write").code == 0
    assert host.daemon(*config, "access", "check", CAROL, "beamline/a.h5", "delete").code == 1
    shown = host.daemon(*config, "access", "check", BOB, "beamline/a.h5").ok().out
    assert "no [[access]] table is for both" in shown and "rights: none" in shown, shown
    unknown = host.daemon(*config, "access", "check", "unix:nobody-here", "a.h5")
    assert unknown.code == 2 and '"unix:nobody-here"' in unknown.err, unknown.describe()
    checked = host.daemon(*config, "--check-config").ok()
    assert "never decides" not in checked.err, checked.err
    with open(config[1], "a") as file:
        file.write(f"[[access]]\nfiles = \"home/{ANNA}/x\"\nusers = [\"token:robot\"]\nallow = []\n")
    checked = host.daemon(*config, "--check-config").ok()
    assert "this [[access]] table never decides" in checked.err, checked.err


def test_a_user_who_leaves_a_group_loses_what_runs(tmp_path):
    groups = tmp_path / "group"
    with_bob = Path("/etc/group").read_text() + f"bl7:x:59999:{BOB}\n"
    groups.write_text(with_bob)
    with running_host(tmp_path, prefix=tuple(private_file(groups, "/etc/group"))) as host:
        host.fill()
        tables = '[[access]]\nfiles = "beamline/**"\ngroups = ["bl7"]\nallow = ["read"]\n' + TABLES
        host.reload(tables)
        bob = host.start(BOB, "watch", "beamline/a.h5")
        own = host.start(BOB, "watch", f"home/{BOB}/a.h5")
        for watcher in (bob, own):
            wait_until(lambda w=watcher: w.out(), "the follower hears of no cut", 60)
        groups.write_text(with_bob.replace(f"bl7:x:59999:{BOB}\n", ""))
        host.reload(tables + "\n")
        result = bob.wait(60)
        assert result.code == HIDDEN, result.describe()
        # By the reload itself, if the name service was that fast.
        assert re.search(f'(groups of users changed|reload): user "{BOB}": 1 sessions', host.site.server.log())
        assert own.running()


def test_users_without_a_name_keep_nobody_out(host):
    host.fill()
    connections = []
    try:
        for uid in range(300_000, 300_300):
            connection = socket.socket(socket.AF_UNIX)
            connections.append(connection)
            os.seteuid(uid)  # It is the effective one that the other end sees.
            try:
                connection.connect(str(host.directory / "socket"))
            finally:
                os.seteuid(0)
        host.run(ANNA, "log", f"home/{ANNA}/a.h5").ok()
        stranger = run(["setpriv", "--reuid=300500", "--regid=300500", "--clear-groups", host.tool, "--server",
                        host.site.address, "log", f"home/{ANNA}/a.h5"], host.site.logs, timeout=60, name="h5mirror",
                       env=plain_env(HOME="/nonexistent"), cwd=host.directory)
        assert stranger.code == DENIED and "has no name on the server's host" in stranger.err, stranger.describe()
    finally:
        for connection in connections:
            connection.close()


def test_the_socket_is_open_to_all_users(host):
    mode = stat.S_IMODE(os.stat(host.directory / "socket").st_mode)
    assert mode == 0o666, oct(mode)
