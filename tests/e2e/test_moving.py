"""A server's root moves to another address, and the local files' records follow it: no bytes are sent again."""

import json
import os
import shutil

import pytest

from harness import hdf5, paths
from harness.process import run
from harness.server import Server

MAKE = 'h5py.File("run.h5", "w")["d"] = np.random.rand(200_000)'
CHANGE = 'h5py.File("run.h5", "r+").attrs["n"] = {}'


def move(site, how=shutil.move):
    """The server stops; its root goes elsewhere, and is served there under another address."""
    site.server.stop()
    there = site.directory / "moved"
    how(site.root, there)
    site.root = there
    site.server = Server(there, site.home).start()


def tool(site, *arguments):
    """With the new address in the configuration, not on the command line."""
    env = hdf5.plain_env(HOME=str(site.home), H5MIRROR_SERVER=site.address)
    return run([paths.BIN / "h5mirror", *arguments], site.logs, env=env, cwd=site.work, timeout=60, name="h5mirror")


@pytest.fixture
def site(bare_site):
    bare_site.py(MAKE)
    bare_site.settle("run.h5")
    yield bare_site
    bare_site.server.close()


def test_the_driver_goes_on_there(site):
    generation = site.status("run.h5")["generation"]
    move(site)
    assert "diverged" not in site.py(CHANGE.format(1)).err
    site.assert_mirrored("run.h5")
    assert site.versions("run.h5") == [1, 2] and site.status("run.h5")["generation"] == generation
    assert site.record("run.h5")["server"] == site.address and site.record("run.h5")["state"] == "clean"
    site.py(CHANGE.format(2))
    assert site.versions("run.h5") == [1, 2, 3]


def test_an_empty_server_gets_it_as_a_new_file(site):
    move(site, how=lambda old, new: new.mkdir())
    assert "diverged" not in site.py(CHANGE.format(1)).err
    site.assert_mirrored("run.h5")
    assert site.versions("run.h5") == [1]


def fork(site):
    """A copy of the root goes on by itself, and the first one too. Both get the same address in the configuration."""
    shutil.copytree(site.root, site.directory / "moved")
    site.py(CHANGE.format(1))
    site.settle("run.h5")
    site.server.stop()
    site.root = site.directory / "moved"
    site.server = Server(site.root, site.home).start()
    site.cli("rollback", "run.h5@1").ok()


def test_two_copies_of_a_root_are_told_apart(site):
    fork(site)
    status = json.loads(tool(site, "status", "run.h5", "--json").ok().out)
    assert status["local"]["standing"] == "unknown", status
    refused = tool(site, "rehome", "run.h5")
    assert refused.code == 5 and "resync --from local" in refused.err, refused.describe()
    refused = tool(site, "resync", "run.h5")
    assert refused.code == 5 and "not certain which is right" in refused.err, refused.describe()
    result = site.py(CHANGE.format(2))
    assert "diverged" in result.err and "rehome" in result.err, result.describe()
    assert site.versions("run.h5") == [1, 2]


def test_verbs_follow_it(site):
    old = site.address
    move(site)
    status = tool(site, "status", "run.h5").ok()
    assert "in sync" in status.out and old in status.err and "rehome" in status.err, status.describe()
    tool(site, "log", "run.h5").ok()
    site.local("run.h5").write_bytes(b"not what it was")
    tool(site, "recover", "run.h5").ok()
    site.assert_mirrored("run.h5")
    assert site.record("run.h5")["server"] == site.address


def test_rehome_of_a_file_without_a_record_says_so(site):
    shutil.copy(site.local("run.h5"), site.local("copy.h5"))
    refused = tool(site, "rehome", "copy.h5")
    assert refused.code == 3 and "no record" in refused.err and "push copy.h5" in refused.err, refused.describe()
    (site.work / "empty").mkdir()
    tool(site, "rehome", "empty").ok()


def test_rehome_takes_a_tree(site):
    for name in ("same", "touched", "changed", "removed"):
        (site.work / name).mkdir()
        site.py(MAKE.replace("run.h5", f"{name}/run.h5"))
        site.settle(f"{name}/run.h5")
    site.cli("rm", "removed/run.h5").ok()
    old = site.address
    move(site)
    os.utime(site.local("touched/run.h5"))
    with open(site.local("changed/run.h5"), "r+b") as f:
        f.seek(-1, os.SEEK_END)
        f.write(b"x")
    names = ["run.h5", *(f"{name}/run.h5" for name in ("same", "touched", "changed", "removed"))]
    records = {name: site.record(name) for name in names}
    planned = json.loads(tool(site, "rehome", "--dry-run", "--json", site.work).out)
    assert planned["rehomed"] == 3 and planned["failed"] == 2, planned
    assert {name: site.record(name) for name in names} == records
    done = tool(site, "rehome", "--json", site.work)
    told = json.loads(done.out)
    assert done.code != 0 and told["rehomed"] == 3 and told["failed"] == 2, done.describe()
    compared = {row["file"]: row["compared"] for row in told["files"] if row["action"] == "rehomed"}
    assert compared == {"run.h5": False, "same/run.h5": False, "touched/run.h5": True}
    assert "changed/run.h5 differs" in done.err and "no file removed/run.h5" in done.err
    for name in names:
        wanted = site.address if name in compared else old
        assert site.record(name)["server"] == wanted, name
    again = json.loads(tool(site, "rehome", "--json", site.work).out)
    assert again["already"] == 3 and again["rehomed"] == 0, again
    for name in compared:
        site.py(CHANGE.format(1).replace("run.h5", name))
        assert site.versions(name) == [1, 2]


def test_rehome_of_one_of_two_mirrors(site):
    far_root, far_logs = site.directory / "far", site.directory / "far-logs"
    far_root.mkdir()
    far_logs.mkdir()
    far = Server(far_root, far_logs).start()
    try:
        both = site.config(server=f"{site.address},{far.address}")
        site.py(CHANGE.format(1), config=both)
        site.settle("run.h5")
        old = site.address
        move(site)
        done = json.loads(tool(site, "rehome", "--from", old, "--json", "run.h5").ok().out)
        assert done["rehomed"] == 1, (old, str(done))
        records = [json.loads(path.read_text()) for path in (site.work / "run.h5.h5m").glob("client*.json")]
        assert sorted(record["server"] for record in records) == sorted([site.address, far.address]), records
        both = site.config(server=f"{site.address},{far.address}")
        assert "diverged" not in site.py(CHANGE.format(2), config=both).err
        assert site.versions("run.h5") == [1, 2, 3]
    finally:
        far.close()
