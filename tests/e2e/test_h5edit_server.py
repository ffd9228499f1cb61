"""h5edit of files that are mirrored: each cut is a version on the server, and a kill between the two loses neither."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from harness import hdf5, paths
from harness.h5edit import command, content, h5edit
from harness.process import run, wait_until
from harness.server import Server

SCRIPT = "DELETE /attr1;\nCREATE /a {H5T_STD_I32LE (2) {1, 2}};\nCOPY /attr2 /a2;\n"
STATEMENTS = SCRIPT.splitlines()


@pytest.fixture
def world(bare_site, original):
    """A site whose files are named below its directory for tools without the driver, too."""
    (bare_site.home / ".config/h5mirror").mkdir(parents=True)
    configure(bare_site, bare_site.address)
    (bare_site.work / "f.h5").write_bytes(original)
    (bare_site.work / "script").write_text(SCRIPT)
    return bare_site


def configure(world, *servers) -> None:
    """The user's configuration."""
    (world.home / ".config/h5mirror/client.toml").write_text(
        f'server = "{",".join(servers)}"\nroot = "{world.work}"\n')


def edit(world, *words, **env):
    return h5edit(world.work, *words, HOME=str(world.home), **env)


def comments(world, name="f.h5"):
    """Of the versions, oldest first."""
    return [row.get("comment", "") for row in reversed(world.log(name))]


def is_level(world, name="f.h5"):
    world.settle(name)
    assert world.head(name).read_bytes() == world.local(name).read_bytes()
    assert world.record(name)["state"] == "clean"


def write_by_driver(world, name="f.h5"):
    """A program that knows nothing of h5edit; what it was told."""
    return world.py(f'h5py.File("{name}", "r+").attrs["by_driver"] = 1').err


def killed(world, number: int, *words, name="f.h5", **env) -> int:
    everything = hdf5.plain_env(HOME=str(world.home), LD_PRELOAD=str(paths.TEST_BIN / "libe2e_kill_at.so"),
                                KILL_AT=str(number), **env)
    done = subprocess.run([str(w) for w in command(*words, name)], cwd=world.work, env=everything, capture_output=True,
                          timeout=60)
    assert done.returncode in (0, -signal.SIGKILL), done
    return done.returncode


def stopped(world, number: int, *words):
    """h5edit before its call of that number, or at its end."""
    env = hdf5.plain_env(HOME=str(world.home), LD_PRELOAD=str(paths.TEST_BIN / "libe2e_kill_at.so"), STOP_AT=str(number))
    process = subprocess.Popen([str(w) for w in command(*words)], cwd=world.work, env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    state = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    return process, state.si_code == os.CLD_STOPPED


@pytest.mark.parametrize("level, says", [("yes", [STATEMENTS[0][:-1] + "; and 2 more"]), ("inc", STATEMENTS),
                                         ("no", STATEMENTS)])
def test_each_cut_is_a_version_with_its_statement(world, original, level, says):
    edit(world, "--server", world.address, "--atomic", level, "--command-file", "script", "f.h5").ok()
    assert comments(world) == ["as h5edit found it", *says]
    assert world.export("f.h5", 1).read_bytes() == original
    is_level(world)
    # From now on the file is mirrored without further words.
    edit(world, "-c", "DELETE /a;", "f.h5").ok()
    assert comments(world)[-1] == "DELETE /a;" and world.log("f.h5")[0]["program"] == "h5edit"
    is_level(world)


def test_a_comment_is_the_beginning_of_a_long_command(world):
    statement = f"CREATE /a {{H5T_STRING {{STRSIZE 2001; CSET H5T_CSET_UTF8}} SCALAR {{'{'é' * 1000}'}}}};"
    edit(world, "--server", world.address, "-c", statement, "f.h5").ok()
    said = comments(world)[-1]
    assert said.endswith(" ...") and statement.startswith(said[:-4]) and 900 < len(said.encode()) <= 1000
    is_level(world)


def test_a_file_of_the_drivers_is_edited_and_goes_on(world):
    world.py('f = h5py.File("d.h5", "w"); f.attrs["n"] = 1; f.close()')
    edit(world, "-c", "MODIFY /n {2}; DELETE IF EXISTS /m; CREATE GROUP /g;", "d.h5").ok()
    is_level(world, "d.h5")
    assert "diverged" not in write_by_driver(world, "d.h5")
    is_level(world, "d.h5")
    edit(world, "-c", "DELETE OBJECT /g; DELETE /by_driver;", "d.h5").ok()
    is_level(world, "d.h5")
    assert len(comments(world, "d.h5")) == 4


def test_what_makes_the_file_shorter_and_longer(world):
    edit(world, "--server", world.address, "--atomic=inc", "-c",
         "CREATE DATASET /big {H5T_STD_I8LE SIMPLE {(300000) / (300000)} LAYOUT CONTIGUOUS FILLVALUE 7};"
         "MODIFY DATASET /big [250000:3] {1, 2, 3};DELETE OBJECT /big;", "f.h5").ok()
    is_level(world)
    for version in world.versions("f.h5"):
        hdf5.dump(world.export("f.h5", version))


@pytest.mark.limit(500)
@pytest.mark.parametrize("level", ["yes", "inc"])
@pytest.mark.parametrize("next_open", ["h5edit", "driver"])
def test_a_kill_at_any_step_loses_nothing_on_either_side(world, original, level, next_open):
    """Each kill has a file of its own, which was mirrored before."""
    states = set()
    for number in range(1, 400):
        name = f"k{number}.h5"
        (world.work / name).write_bytes(original)
        edit(world, "--server", world.address, "-c", "CREATE /first {{1}};", name).ok()
        code = killed(world, number, "--atomic", level, "--command-file", "script", name=name)
        if next_open == "h5edit":
            edit(world, "-c", "CREATE /last {{1}};", name).ok()
        else:
            said = write_by_driver(world, name)
            assert "diverged" not in said and "crash" not in said, (number, said)
        is_level(world, name)
        held = {attribute for owner, attribute in content(world.local(name)) if owner == "/"}
        assert "first" in held
        done = ["attr1" not in held, "a" in held, "a2" in held]
        assert done == sorted(done, reverse=True) and (level == "inc" or len(set(done)) == 1), (number, done)
        states.add(sum(done))
        if code == 0:
            break
    assert states == ({0, 3} if level == "yes" else {0, 1, 2, 3})


@pytest.mark.limit(300)
def test_a_kill_and_then_h5edit_recover(world, original):
    for number in range(1, 400):
        name = f"r{number}.h5"
        (world.work / name).write_bytes(original)
        edit(world, "--server", world.address, "-c", "CREATE /first {{1}};", name).ok()
        code = killed(world, number, "--command-file", "script", name=name)
        how = ["--recover", "--discard"] if number % 2 else ["--recover"]
        edit(world, *how, name).ok()
        assert "diverged" not in write_by_driver(world, name)
        is_level(world, name)
        if code == 0:
            return
    raise AssertionError("no end")


@pytest.mark.limit(400)
def test_a_server_that_dies_in_the_middle(world, original):
    """The edit goes on locally, and reports the missing changes; the next edit sends them."""
    missed = 0
    for number in range(1, 400, 3):
        name = f"s{number}.h5"
        (world.work / name).write_bytes(original)
        edit(world, "--server", world.address, "-c", "CREATE /first {{1}};", name).ok()
        process, is_stopped = stopped(world, number, "--server", world.address, "--atomic=inc", "--command-file", "script",
                                      name)
        if is_stopped:
            world.server.kill9()
            process.send_signal(signal.SIGCONT)
        err = process.communicate(timeout=60)[1]
        if is_stopped:
            world.server.start()
        if process.returncode:
            assert process.returncode == 1 and ("does not have it yet" in err or "cannot edit" in err), err
            missed += "does not have it yet" in err
        assert "a2" in world_root(world, name) or "cannot edit" in err
        if number % 2:
            edit(world, "-c", "CREATE /last {{1}};", name).ok()
        else:
            assert "diverged" not in write_by_driver(world, name)
        is_level(world, name)
        if not is_stopped:
            break
    assert missed > 2


def world_root(world, name):
    return {attribute for owner, attribute in content(world.local(name)) if owner == "/"}


@pytest.mark.parametrize("address", ["127.0.0.1:1", "unix:/nowhere/socket"])
def test_a_server_that_is_not_there_is_told_before_anything_is_touched(world, original, address):
    result = edit(world, "--server", address, "-c", "DELETE /attr1;", "f.h5")
    assert result.code == 1 and address in result.err and "cannot edit f.h5" in result.err, result.describe()
    assert world.local("f.h5").read_bytes() == original and not (world.work / "f.h5.h5m").exists()


def test_a_mirrored_file_is_edited_while_its_server_is_away(world):
    edit(world, "--server", world.address, "-c", "DELETE /attr1;", "f.h5").ok()
    world.server.stop()
    before = world.local("f.h5").read_bytes()
    refused = edit(world, "-c", "CREATE /a {{1}};", "f.h5", HDF5_DRIVER="h5mirror", HDF5_DRIVER_CONFIG="on_outage=fail")
    assert refused.code == 1 and world.local("f.h5").read_bytes() == before, refused.describe()
    for statement in ("CREATE /a {{1}};", "DELETE OBJECT /g2;"):
        result = edit(world, "-c", statement, "f.h5")
        assert result.code == 0 and "does not have it yet" in result.err, result.describe()
    assert world.record("f.h5")["state"] == "behind"
    world.server.start()
    edit(world, "-c", "DELETE /a;", "f.h5").ok()
    is_level(world)
    assert comments(world)[-2:] == ["edits that the server had missed", "DELETE /a;"]


def test_both_of_two_mirrors_and_one_that_is_away_for_a_while(world):
    directory = world.directory / "far"
    (directory / "root").mkdir(parents=True)
    far = Server(directory / "root", directory).start()
    try:
        configure(world, world.address, far.address)
        both = world.config(server=f"{world.address},{far.address}")
        world.py('f = h5py.File("d.h5", "w"); f.attrs["n"] = 1; f.close()', config=both)
        edit(world, "-c", "MODIFY /n {2};", "d.h5").ok()
        far.stop()
        result = edit(world, "--atomic=inc", "-c", "MODIFY /n {3}; CREATE /a {{1}};", "d.h5")
        assert result.code == 0 and far.address in result.err and world.address not in result.err, result.describe()
        far.start()
        edit(world, "-c", "MODIFY /n {4};", "d.h5").ok()
        world.settle("d.h5")
        log = run([paths.BIN / "h5mirror", "--server", far.address, "log", "d.h5", "--json"], world.logs,
                  env=hdf5.plain_env(HOME=str(world.home)), cwd=world.directory)
        log = json.loads(log.ok().out)["versions"]
        assert [row["comment"] for row in log[:2]] == ["MODIFY /n {4};", "edits that the server had missed"]
        for root in (world.root, directory / "root"):
            wait_until(lambda: (root / "d.h5").read_bytes() == world.local("d.h5").read_bytes(), "it is not level")
        assert len(comments(world, "d.h5")) == 5
        # One that the configuration leaves out has had its time.
        far.stop()
        edit(world, "-c", "MODIFY /n {5};", "d.h5", HDF5_DRIVER="h5mirror", HDF5_DRIVER_CONFIG=world.config()).ok()
        assert len(comments(world, "d.h5")) == 6
    finally:
        far.close()


@pytest.mark.parametrize("next_open", ["h5edit", "driver"])
def test_a_second_server_does_not_make_the_first_one_forgotten(world, next_open):
    """It is named once, and the first one has no other name."""
    directory = world.directory / "far"
    (directory / "root").mkdir(parents=True)
    far = Server(directory / "root", directory).start()
    try:
        edit(world, "--server", world.address, "-c", "DELETE /attr1;", "f.h5").ok()
        edit(world, "--server", far.address, "-c", "CREATE /a {{1}};", "f.h5").ok()
        assert (directory / "root/f.h5").read_bytes() == world.local("f.h5").read_bytes()
        assert world.record("f.h5")["server"] == world.address and world.record("f.h5")["state"] == "behind"
        if next_open == "h5edit":
            configure(world, world.address, far.address)
            edit(world, "-c", "CREATE /b {{1}};", "f.h5").ok()
            assert comments(world)[-2:] == ["edits that the server had missed", "CREATE /b {{1}};"]
            wait_until(lambda: (directory / "root/f.h5").read_bytes() == world.local("f.h5").read_bytes(), "it is not level")
        else:
            assert "diverged" not in write_by_driver(world)
        is_level(world)
    finally:
        far.close()


def test_a_file_that_another_writer_has_open(world):
    world.py('f = h5py.File("d.h5", "w"); f.attrs["n"] = 1; f.close()')
    writer = world.start(world.script("""
        f = h5py.File("d.h5", "r+", locking=LOCKING); f.attrs["m"] = 1; f.flush()
        open("ready", "w").close(); sys.stdin.read()
    """.replace("LOCKING", "False")), talks=True)
    wait_until(lambda: (world.work / "ready").exists(), "the writer did not come so far")
    world.wait_for_cut("d.h5")
    before = world.local("d.h5").read_bytes()
    result = edit(world, "-c", "DELETE /n;", "d.h5")
    assert result.code == 1 and "holds the lease of d.h5" in result.err, result.describe()
    assert world.local("d.h5").read_bytes() == before
    writer.kill()


def test_a_file_that_diverged_is_not_edited(world):
    edit(world, "--server", world.address, "-c", "DELETE /attr1;", "f.h5").ok()
    with open(world.local("f.h5"), "r+b") as f:
        f.seek(-1, os.SEEK_END)
        f.write(b"x")
    before = world.local("f.h5").read_bytes()
    result = edit(world, "-c", "CREATE /a {{1}};", "f.h5")
    assert result.code == 1 and "resync --from local" in result.err, result.describe()
    assert world.local("f.h5").read_bytes() == before and len(comments(world)) == 2


def test_only_who_speaks_to_a_server_loads_grpc(world):
    def maps(*words):
        process, is_stopped = stopped(world, 3, *words)
        assert is_stopped
        loaded = open(f"/proc/{process.pid}/maps").read()
        process.send_signal(signal.SIGCONT)
        assert process.wait(60) == 0
        return loaded

    shutil.copyfile(world.local("f.h5"), world.local("plain.h5"))
    assert "grpc" not in maps("-c", "DELETE /attr1;", "plain.h5")
    assert "grpc" not in maps("--keep-history", "-c", "DELETE /attr2;", "plain.h5")
    edit(world, "--server", world.address, "-c", "DELETE /attr1;", "f.h5").ok()
    assert "grpc" in maps("-c", "DELETE /attr2;", "f.h5")


def test_what_does_not_go_with_a_file_that_is_mirrored(world):
    edit(world, "--server", world.address, "-c", "DELETE /attr1;", "f.h5").ok()
    before = world.local("f.h5").read_bytes()
    for word in ("--keep-history", "--backup=copy"):
        result = edit(world, word, "-c", "DELETE /attr2;", "f.h5")
        assert result.code == 1 and f"with {word}: it is mirrored to a server" in result.err, result.describe()
    assert world.local("f.h5").read_bytes() == before and len(comments(world)) == 2


def test_dryrun_and_show_ask_no_server(world, original):
    for words in (["--dryrun", "-c", "DELETE /attr1;"], ["-c", "SHOW /attr1;"]):
        edit(world, "--server", "127.0.0.1:1", *words, "f.h5").ok()
    assert world.local("f.h5").read_bytes() == original


@pytest.mark.parametrize("words, says", [
    (["--server"], "wants a word"), (["--server", "a,b"], "one server"), (["--server=embedded"], "--keep-history"),
    (["--server", "a", "--keep-history"], "one of the two"), (["--server", "a", "--backup=copy"], "one of the two")])
def test_words_that_do_not_go_with_server(world, original, words, says):
    rest = [] if words == ["--server"] else ["-c", "DELETE /attr1;", "f.h5"]
    result = edit(world, *words, *rest)
    assert result.code == 1 and says in result.err and "usage: h5edit" in result.err, result.describe()
    assert world.local("f.h5").read_bytes() == original
