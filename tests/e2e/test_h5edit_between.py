"""Other programs change a mirrored file between two edits, and in the middle of one: the two sides never differ without
a report."""

import fcntl
import os
import shutil
import signal
import subprocess
import time

import pytest

from harness import hdf5
from harness.h5edit import command
from test_h5edit_server import (comments, edit, is_level, killed, stopped, world,  # noqa: F401
                                write_by_driver)

# In a page of its own, away from what the edits change.
THEIRS = b"theirs"
FILLED = ("CREATE DATASET /big {H5T_STD_I8LE SIMPLE {(60000) / (60000)} LAYOUT CONTIGUOUS FILLVALUE 7};"
          "MODIFY DATASET /big [59999:1] {1};")


@pytest.fixture
def f(world):
    """Mirrored, and long enough for others to write where no edit does."""
    path = world.local("f.h5")
    edit(world, "-c", FILLED, "f.h5").ok()
    edit(world, "--server", world.address, *modify(0), "f.h5").ok()
    return path


def write_around(f):
    """Writes like a program without the driver, without a change of size, and later by the disk's clock."""
    before = f.stat().st_mtime_ns
    while f.stat().st_mtime_ns == before:
        with open(f, "r+b") as opened:
            opened.seek(-20000, os.SEEK_END)
            opened.write(THEIRS)


def journal(f):
    return f.parent / f"{f.name}.h5m/journal"


def modify(number: int) -> list:
    return ["-c", f"MODIFY /attr2 {{{', '.join([str(number)] * 4)}}};"]


def tear(world, f):
    """Kills an edit when it has changed the file, but has not reported it."""
    for number in range(1, 100):
        edit(world, *modify(0), f.name).ok()
        before = f.read_bytes()
        code = killed(world, number, *modify(1), name=f.name)
        if f.read_bytes() != before and journal(f).exists() and journal(f).stat().st_size:
            return
        assert code, "no kill met a file on its way"
    raise AssertionError("no end")


def test_an_outage_in_which_others_write_too(world, f):
    world.server.stop()
    first = edit(world, *modify(1), "f.h5").ok()
    write_around(f)
    second = edit(world, *modify(2), "f.h5").ok()
    world.server.start()
    before = f.read_bytes()
    third = edit(world, *modify(3), "f.h5")
    assert third.code == 1 and "resync --from local" in third.err, third.describe()
    assert f.read_bytes() == before
    world.cli("resync", "--from", "local", f).ok()
    is_level(world)
    assert THEIRS in world.head("f.h5").read_bytes()
    assert "the next edit" in first.err and "nor is it known" not in first.err
    assert "nor is it known what it lacks" in second.err and "the next edit" not in second.err


@pytest.mark.limit(200)
@pytest.mark.parametrize("settles", ["edit", "recover", "discard", "driver"])
def test_others_write_into_a_file_that_an_edit_was_broken_off_in(world, f, settles):
    tear(world, f)
    write_around(f)
    if settles == "edit":
        edit(world, "-c", "DELETE /attr1;", "f.h5").ok()
    elif settles == "driver":
        assert "diverged" not in write_by_driver(world)
    else:
        edit(world, "--recover", *(["--discard"] if settles == "discard" else []), "f.h5").ok()
        edit(world, "-c", "DELETE /attr1;", "f.h5").ok()
    is_level(world)
    assert THEIRS in world.head("f.h5").read_bytes()


@pytest.mark.limit(200)
def test_no_verb_takes_a_file_that_an_edit_was_broken_off_in(world, f):
    tear(world, f)
    torn, versions = f.read_bytes(), comments(world)
    for verb in (["push", "--replace"], ["resync"], ["resync", "--from", "local"], ["resync", "--from", "remote"],
                 ["adopt"], ["recover"]):
        result = world.cli(*verb, f)
        assert result.code and f"h5edit --recover {f}" in result.err, result.describe()
        assert f.read_bytes() == torn and comments(world) == versions
    edit(world, "--recover", "f.h5").ok()
    world.cli("resync", f).ok()
    is_level(world)


@pytest.mark.limit(200)
def test_nor_does_the_driver_where_it_cannot_finish_that(world):
    """A file that no server has yet."""
    f = world.local("f.h5")
    edit(world, "-c", FILLED, "f.h5").ok()
    tear(world, f)
    with open(f, "ab") as opened:
        opened.write(THEIRS)  # Then the journal is not that of this file.
    torn = f.read_bytes()
    result = world.run(world.script('h5py.File("f.h5", "r+").attrs["by_driver"] = 1'))
    assert result.code and f"h5edit --recover {f}" in result.err, result.describe()
    assert f.read_bytes() == torn and not world.exists("f.h5")
    edit(world, "--recover", "--discard", "f.h5").ok()
    write_by_driver(world)
    is_level(world)


def test_a_mirror_that_another_file_has_adopted(world, f):
    shutil.copyfile(f, world.local("g.h5"))
    world.cli("adopt", "--name", "f.h5", world.local("g.h5")).ok()
    before = f.read_bytes()
    result = edit(world, "-c", "DELETE /attr1;", "f.h5")
    assert result.code == 1 and f"{world.local('g.h5')} now, which has adopted it" in result.err, result.describe()
    assert f.read_bytes() == before and world.status("f.h5")["origin"]["path"] == str(world.local("g.h5"))
    world.cli("adopt", f).ok()
    edit(world, "-c", "DELETE /attr1;", "f.h5").ok()
    is_level(world)


def test_a_file_that_was_removed_on_the_server_is_not_made_there_again_unasked(world, f):
    world.cli("rm", "f.h5").ok()
    before = f.read_bytes()
    result = edit(world, "-c", "DELETE /attr1;", "f.h5")
    assert result.code == 1 and "h5mirror undelete f.h5" in result.err, result.describe()
    assert f.read_bytes() == before and not world.exists("f.h5")
    world.cli("undelete", "f.h5").ok()
    edit(world, "-c", "DELETE /attr1;", "f.h5").ok()
    is_level(world)
    world.cli("rm", "f.h5").ok()
    edit(world, "--server", world.address, *modify(1), "f.h5").ok()
    is_level(world)


def test_a_version_says_that_it_has_edits_of_an_outage_in_it(world, f):
    """The output waits for its reader: so the outage is from one command to another."""
    values = ", ".join(["1000000000"] * 4000)
    edit(world, "-c", f"CREATE GROUP / long {{H5T_STD_I32LE (4000) {{{values}}}}};", "f.h5").ok()
    script = "SHOW /long; MODIFY /attr2 {1, 1, 1, 1}; SHOW /long; MODIFY /attr2 {2, 2, 2, 2};"
    for patience in (1, 4, 16, 64):
        process = subprocess.Popen([str(w) for w in command("--atomic=inc", "-c", script, "f.h5")], cwd=world.work,
                                   env=hdf5.plain_env(HOME=str(world.home)), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, bufsize=0)
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
        shown = process.stdout.read(1)
        world.server.kill9()
        while shown.count(b"1000000000") <= 4000:  # The second one has begun.
            more = process.stdout.read(1024)
            assert more, process.communicate()
            shown += more
        world.server.start()
        time.sleep(patience)  # A client that was refused waits before it tries again.
        err = process.communicate(timeout=120)[1]
        assert process.returncode == 0, err
        if b"does not have it yet" not in err:
            break
        edit(world, *modify(3), "f.h5").ok()
    assert comments(world)[-1] == "MODIFY /attr2 {2, 2, 2, 2}; and edits that the server had missed"
    is_level(world)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_root_notes_beside_a_users_file_is_the_users(world):
    f = world.local("f.h5")
    os.chown(f, 12345, 12345)
    edit(world, "--server", world.address, *modify(0), "f.h5").ok()
    beside = f.parent / "f.h5.h5m"
    for path in (beside, beside / "client.json"):
        os.chown(path, 12345, 12345)
    world.server.stop()
    edit(world, *modify(1), "f.h5").ok()
    for path in (beside / "client.json", beside / "dirty"):
        assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (12345, 0o600), path


@pytest.mark.limit(200)
def test_a_file_that_is_put_in_its_place_in_the_middle_of_an_edit(world, f):
    """Another file of the same size: no program takes it for the edited one."""
    for number in range(1, 100):
        name = f"p{number}.h5"
        path = world.local(name)
        shutil.copyfile(f, path)
        edit(world, "--server", world.address, *modify(1), name).ok()
        shutil.copyfile(path, world.local("another"))
        write_around(world.local("another"))
        process, is_stopped = stopped(world, number, *modify(2), name)
        if is_stopped:
            os.rename(world.local("another"), path)
            process.send_signal(signal.SIGCONT)
        process.communicate(timeout=60)
        said = write_by_driver(world, name)
        world.settle(name)
        taken_in = "outside change" in said  # As a version of its own.
        assert is_stopped == ("diverged" in said or taken_in), (number, said)
        assert (is_stopped and not taken_in) or world.head(name).read_bytes() == path.read_bytes()
        if not is_stopped:
            return
    raise AssertionError("no end")
