"""Users of one host in one directory: each may change and remove what it made itself, as in /tmp."""

import json

import pytest

from harness.process import wait_until
from harness.users import ANNA, BOB, CAROL, TABLES, needs_root, running_host

pytestmark = needs_root

OK, HIDDEN, DENIED = 0, 3, 8

OWN = """
[[access]]
files = "shared/**"
owner = "${user}"
allow = ["read", "write", "restore", "delete"]
"""
OPERATOR = f"""
[[access]]
files = "shared/**"
users = ["unix:{CAROL}"]
allow = ["read", "operate"]
"""
READ = """
[[access]]
files = "shared/**"
allow = ["read"]
"""


@pytest.fixture
def host(tmp_path):
    with running_host(tmp_path) as host:
        host.reload(OPERATOR + OWN + READ + TABLES)
        yield host


def owner_of(host, name: str, user: str = CAROL) -> str | None:
    return json.loads(host.run(user, "status", name, "--json").ok().out)["owner"]


ATTEMPTS = [
    (ANNA, OK, "push", "a.h5", "--name", "shared/a.h5"),
    (ANNA, OK, "tag", "shared/a.h5@1", "first"),
    (ANNA, OK, "commit", "-m", "mine", "shared/a.h5"),
    # Another may read it, and no more.
    (BOB, OK, "log", "shared/a.h5"),
    (BOB, OK, "export", "shared/a.h5@1", "out.h5"),
    (BOB, DENIED, "tag", "shared/a.h5@1", "his"),
    (BOB, DENIED, "untag", "shared/a.h5", "first"),
    (BOB, DENIED, "commit", "shared/a.h5"),
    (BOB, DENIED, "rollback", "shared/a.h5@1"),
    (BOB, DENIED, "prune", "shared/a.h5", "--keep-last", "1"),
    (BOB, DENIED, "push", "--replace", "a.h5", "--name", "shared/a.h5"),
    (BOB, DENIED, "rm", "shared/a.h5"),
    (BOB, DENIED, "mv", "shared/a.h5", "shared/b.h5"),
    (BOB, OK, "push", "a.h5", "--name", "shared/b.h5"),
    (BOB, DENIED, "mv", "shared/b.h5", "shared/a.h5"),
    ("robot", OK, "push", "a.h5", "--name", "shared/r.h5"),
    ("robot", DENIED, "rm", "shared/b.h5"),
    (ANNA, DENIED, "rm", "shared/r.h5"),
    # It stays hers when it is moved, removed and brought back.
    (ANNA, OK, "mv", "shared/a.h5", "shared/c.h5"),
    (BOB, DENIED, "rm", "shared/c.h5"),
    (ANNA, OK, "rm", "shared/c.h5"),
    (BOB, DENIED, "undelete", "shared/c.h5"),
    (BOB, OK, "push", "a.h5", "--name", "shared/c.h5"),
    (ANNA, DENIED, "rm", "shared/c.h5"),
    (ANNA, OK, "undelete", "shared/c.h5", "--as", "shared/d.h5"),
    (BOB, DENIED, "rm", "shared/d.h5"),
    (ANNA, OK, "rollback", "shared/d.h5@1", "-m", "mine"),
    # A user with the right "operate" gives the file away.
    (ANNA, DENIED, "chown", "shared/d.h5", f"unix:{BOB}"),
    (CAROL, OK, "chown", "shared/d.h5", f"unix:{BOB}"),
    (ANNA, DENIED, "rm", "shared/d.h5"),
    (BOB, OK, "rm", "shared/d.h5"),
    (CAROL, OK, "chown", "shared/r.h5", "nobody"),
    ("robot", DENIED, "rm", "shared/r.h5"),
]


def test_each_attempt_gives_what_the_owner_says(host):
    host.attempt(ATTEMPTS)
    assert [owner_of(host, f"shared/{name}.h5") for name in "bcr"] == [f"unix:{BOB}", f"unix:{BOB}", None]
    # From the disk.
    host.site.server.stop()
    host.site.server.start()
    assert host.run(ANNA, "rm", "shared/b.h5").code == DENIED
    host.run(BOB, "rm", "shared/b.h5").ok()


def test_files_of_others_are_hidden_where_only_owners_have_rights(host):
    host.reload(OWN + TABLES)
    host.run(ANNA, "push", "a.h5", "--name", "shared/a.h5").ok()
    host.run(BOB, "push", "a.h5", "--name", "shared/b.h5").ok()
    for arguments in (("log", "shared/a.h5"), ("export", "shared/a.h5@1", "out.h5"), ("rm", "shared/a.h5"),
                      ("watch", "-n", "1", "shared/a.h5"), ("verify", "shared/a.h5"),
                      ("mv", "shared/a.h5", "shared/c.h5"), ("mv", "shared/b.h5", "shared/a.h5"),
                      ("push", "--replace", "a.h5", "--name", "shared/a.h5")):
        result = host.run(BOB, *arguments)
        assert result.code == HIDDEN, result.describe()
    assert "shared/a.h5" in host.listed(ANNA) and "shared/b.h5" not in host.listed(ANNA)
    assert "shared/b.h5" in host.listed(BOB) and "shared/a.h5" not in host.listed(BOB)


def test_of_two_that_make_a_file_at_once_one_is_its_owner(host):
    writers = {user: host.start(user, "push", str(host.directory / user / "a.h5"), "--name", "shared/x.h5")
               for user in (ANNA, BOB)}
    codes = {user: writer.wait(60).code for user, writer in writers.items()}
    winners = [user for user, code in codes.items() if code == OK]
    assert len(winners) == 1, codes
    assert owner_of(host, "shared/x.h5") == f"unix:{winners[0]}"
    loser = BOB if winners == [ANNA] else ANNA
    assert host.run(loser, "rm", "shared/x.h5").code == DENIED
    host.run(winners[0], "rm", "shared/x.h5").ok()


def test_a_reload_and_another_owner_end_what_runs(host):
    host.reload(OPERATOR + OWN + TABLES)
    host.run(ANNA, "push", "a.h5", "--name", "shared/a.h5").ok()
    host.run(BOB, "push", "a.h5", "--name", "shared/b.h5").ok()
    anna = host.start(ANNA, "watch", "shared/a.h5")
    bob = host.start(BOB, "watch", "shared/b.h5")
    for watcher in (anna, bob):
        wait_until(lambda w=watcher: w.out(), "the follower hears of no cut", 60)
    host.run(CAROL, "chown", "shared/a.h5", f"unix:{BOB}").ok()
    result = anna.wait(60)
    assert result.code == HIDDEN, result.describe()
    assert bob.running()
    host.reload(OPERATOR + OWN.replace("${user}", f"token:{BOB}") + TABLES)
    result = bob.wait(60)
    assert result.code == HIDDEN, result.describe()


def test_access_check_looks_at_the_owner(host):
    host.run(ANNA, "push", "a.h5", "--name", "shared/a.h5").ok()
    config = ("--config", host.site.logs / "h5mirrord.toml", "--root", host.site.root)

    def check(user: str, *arguments) -> str:
        return host.daemon(*config, "access", "check", f"unix:{user}", *arguments).ok().out

    shown = check(ANNA, "shared/a.h5")
    assert f"owner: unix:{ANNA}" in shown and "rights: read,write,restore,delete" in shown, shown
    shown = check(BOB, "shared/a.h5")
    assert f"owner: unix:{ANNA}" in shown and "rights: read\n" in shown, shown
    shown = check(BOB, "shared/none.h5")
    assert "no such file yet" in shown and "rights: write,delete\n" in shown, shown
    shown = check(BOB, "shared/a.h5", "--owner", f"unix:{BOB}")
    assert "rights: read,write,restore,delete" in shown, shown
    assert "rights: read\n" in check(ANNA, "shared/a.h5", "--owner", "nobody")
    wrong = host.daemon(*config, "access", "check", ANNA, "shared/a.h5", "--owner", "somebody")
    assert wrong.code == 2 and "unix:NAME" in wrong.err, wrong.describe()
    # The table with an owner hides no later one.
    checked = host.daemon(*config, "--check-config").ok()
    assert "never decides" not in checked.err, checked.err
    assert 'owner = ["${user}"]' in checked.out, checked.out
