"""h5edit is killed at every call that changes a file, and told to stop: the file is one of its cuts, byte for byte."""

import fcntl
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import h5py
import pytest

from harness import hdf5, paths
from harness.h5edit import NINE, backup, command, content, h5edit, nothing_beside
from harness.h5edit_kills import driver, h5ls, kills, tear
from harness.process import Process, wait_until

STATEMENTS = NINE.splitlines()


@pytest.fixture
def f(f):
    (f.parent / "script").write_text(NINE)
    return f


def holds(f) -> int:
    """How many of the nine statements the file holds; they are its first ones."""
    names = {name for owner, name in content(f) if owner == "/"}
    there = [f"i{n}" in names for n in range(8)] + ["f" in names]
    count = there.index(False) if False in there else 9
    assert not any(there[count:]), there
    return count


@pytest.mark.limit(400)
@pytest.mark.parametrize("durable", [[], ["--durable"]], ids=["process", "durable"])
def test_yes_is_all_or_nothing(f, original, durable):
    states, torn = [], 0
    h5edit(f.parent, "--command-file", "script", "f.h5").ok()
    final = f.read_bytes()
    for _ in kills(f, original, *durable):
        torn += f.read_bytes() not in (original, final)
        h5edit(f.parent, "--recover", "f.h5").ok()
        states.append(f.read_bytes())
        assert states[-1] in (original, final) and nothing_beside(f)
    assert states == sorted(states, key=lambda state: state == final), "went back"
    assert original in states and final in states and torn, "the kills met no half-written file"


@pytest.mark.limit(400)
def test_a_version_is_all_or_nothing(f, original):
    h5edit(f.parent, "--command-file", "script", "f.h5").ok()
    final, states = f.read_bytes(), []
    for _ in kills(f, original, "--keep-history"):
        h5edit(f.parent, "--recover", "f.h5").ok()
        states.append(f.read_bytes())
        assert states[-1] in (original, final)
        shutil.rmtree(f"{f}.h5m", ignore_errors=True)
    assert original in states and final in states


@pytest.mark.limit(400)
@pytest.mark.parametrize("durable", [[], ["--durable"]], ids=["process", "durable"])
def test_inc_is_a_cut_for_each_statement(f, original, durable):
    images, counts = {}, []
    for _ in kills(f, original, "--atomic=inc", *durable):
        h5edit(f.parent, "--recover", "f.h5").ok()
        assert nothing_beside(f)
        image = f.read_bytes()
        if image not in images:
            images[image] = holds(f)
            hdf5.dump(f)
        counts.append(images[image])
    assert counts == sorted(counts) and set(counts) == set(range(10))
    # One image for each cut; the close adds at most one.
    assert len(images) <= 11 and images[original] == 0


@pytest.mark.limit(400)
def test_no_is_as_it_was_until_the_first_write(f, original):
    written = []
    for _ in kills(f, original, "--atomic=no"):
        left = f.read_bytes()
        written.append(left != original)
        assert nothing_beside(f)
        if written[-1]:   # It may be unreadable now. A program that looks at it is told so, and harms nothing.
            looked = h5edit(f.parent, "-c", "LIST /;", "f.h5")
            assert looked.code in (0, 1) and (looked.code == 0 or "h5edit: " in looked.err), looked.describe()
        else:
            assert "in order" in h5edit(f.parent, "--recover", "f.h5").ok().out
        assert f.read_bytes() == left and nothing_beside(f)
    assert not written[0] and written[-1] and written == sorted(written)


@pytest.mark.limit(400)
@pytest.mark.parametrize("level", ["yes", "inc"])
def test_a_killed_run_leaves_a_backup_that_opens(f, original, level):
    counts = []
    for _ in kills(f, original, "--backup=copy", f"--atomic={level}"):
        had_copy = backup(f).exists()
        h5edit(f.parent, "--recover", "--check", "f.h5").ok()
        h5edit(f.parent, "--recover", "f.h5").ok()
        counts.append(holds(f))
        if level == "yes":
            assert f.read_bytes() == original if had_copy else counts[-1] in (0, 9)
        assert nothing_beside(f) and not list(f.parent.glob(".f.h5.bck*"))
    assert counts == sorted(counts) and set(counts) == ({0} if level == "yes" else set(range(10)))


@pytest.mark.limit(200)
@pytest.mark.parametrize("config", ["server=embedded", "mode=off", "server=127.0.0.1:1;timeout=100ms"])
def test_the_next_edit_or_any_open_through_the_driver_recovers(f, original, config):
    h5edit(f.parent, "--command-file", "script", "f.h5").ok()
    final = f.read_bytes()
    met = 0
    for _ in kills(f, original):
        if f.read_bytes() in (original, final) or met == 3:
            for left in (f.parent / "f.h5.h5m").glob("*"):
                left.unlink()
            continue
        met += 1
        torn, beside = f.read_bytes(), {p.name: p.read_bytes() for p in (f.parent / "f.h5.h5m").iterdir()}
        subprocess.run([paths.hdf5_tool("h5ls"), "f.h5"], cwd=f.parent, env=driver(f, config), check=True,
                       capture_output=True, timeout=60)
        assert f.read_bytes() == final
        f.write_bytes(torn)
        (f.parent / "f.h5.h5m").mkdir(exist_ok=True)
        for name, content_of in beside.items():
            (f.parent / "f.h5.h5m" / name).write_bytes(content_of)
        check = h5edit(f.parent, "--recover", "--check", "f.h5").ok()
        assert "is on its way to it" in check.out and f.read_bytes() == torn
        h5edit(f.parent, "-c", "DELETE /f; DELETE /f;", "f.h5")
        assert f.read_bytes() == final and nothing_beside(f)
    assert met


@pytest.mark.limit(200)
@pytest.mark.parametrize("config", ["server=embedded", "mode=off"])
def test_what_another_program_appended_is_not_cut_off(f, original, config):
    tear(f, original)
    theirs = f.read_bytes() + b"theirs" * 5000
    f.write_bytes(theirs)
    h5ls(f, config)
    assert f.read_bytes() == theirs
    for words in (["-c", "DELETE /attr1;"], ["--recover"]):
        result = h5edit(f.parent, *words, "f.h5")
        assert result.code == 1 and "was changed by another program" in result.err, result.describe()
        assert f.read_bytes() == theirs
    h5edit(f.parent, "--recover", "--discard", "f.h5").ok()
    assert f.read_bytes() == theirs
    assert [p.name for p in (f.parent / "f.h5.h5m").iterdir()] == ["journal-given-up"]


@pytest.mark.limit(200)
def test_a_directory_that_was_copied_goes_back(f, original):
    tear(f, original)
    copy = f.parent / "copy" / "f.h5"
    shutil.copytree(f.parent, copy.parent)
    torn = copy.read_bytes()
    result = h5edit(copy.parent, "--recover", "f.h5")
    assert result.code == 1 and "is another file than the one" in result.err, result.describe()
    assert copy.read_bytes() == torn
    h5edit(copy.parent, "--recover", "--discard", "f.h5").ok()
    assert copy.read_bytes() == original and nothing_beside(copy)


@pytest.mark.limit(200)
@pytest.mark.parametrize("kind", ["huge", "foreign"])
def test_a_journal_that_cannot_be_trusted(f, original, kind):
    tear(f, original)
    torn = f.read_bytes()
    journal = f.parent / "f.h5.h5m/journal"
    if kind == "huge":
        os.truncate(journal, 1 << 40)
    elif os.geteuid() == 0:
        os.chown(journal, 12345, -1)
    else:
        pytest.skip("only root can give files away")
    h5ls(f, "mode=off")
    for words in (["-c", "DELETE /attr1;"], ["--recover"], ["--recover", "--check"]):
        result = h5edit(f.parent, *words, "f.h5")
        assert result.code == 1 and "f.h5.h5m/journal" in result.err and "sets it aside" in result.err, result.describe()
    h5edit(f.parent, "--recover", "--discard", "f.h5").ok()
    assert f.read_bytes() == torn and not journal.exists()


@pytest.mark.limit(200)
def test_who_only_looks_is_told_what_to_do(f, original):
    tear(f, original)
    torn = f.read_bytes()
    for words in (["-c", "SHOW /attr1;"], ["-c", "LIST /;"], ["--dryrun", "-c", "DELETE /attr1;"]):
        result = h5edit(f.parent, *words, "f.h5")
        assert result.code == 1 and "h5edit --recover f.h5" in result.err and not result.out, result.describe()
        assert f.read_bytes() == torn
    h5edit(f.parent, "--recover", "f.h5").ok()
    assert 'ATTRIBUTE "f"' in h5edit(f.parent, "-c", "SHOW / f;", "f.h5").ok().out


@pytest.mark.limit(200)
def test_a_reader_keeps_it_from_being_finished_and_nobody_waits_for_him(f, original):
    final = tear(f, original)
    with open(f, "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        for _ in range(2):   # The second one, too, knows that something is to be done.
            # An open that waited for this reader would wait an hour.
            assert "another program has it open" in h5ls(f, "mode=off;timeout=1h")
    (f.parent / "f.h5.h5m/open").unlink(missing_ok=True)   # The journal itself is mark enough.
    h5ls(f, "mode=off")
    assert f.read_bytes() == final and nothing_beside(f)


@pytest.mark.limit(200)
def test_a_cut_on_its_way_can_be_given_up(f, original):
    met = 0
    for _ in kills(f, original):
        h5edit(f.parent, "--recover", "--discard", "f.h5").ok()
        met += f.read_bytes() == original
        assert nothing_beside(f)
    assert met > 3


def failures(f, original, count: int, *words):
    """The messages when `count` calls fail, from each call on in turn, until the run is through."""
    for number in range(1, 2000):
        f.write_bytes(original)
        env = hdf5.plain_env(LD_PRELOAD=str(paths.TEST_BIN / "libe2e_kill_at.so"), FAIL_AT=str(number), FAIL_COUNT=str(count),
                             KILL_COUNT=str(f.parent / "count"))
        done = subprocess.run([str(w) for w in command(*words, "-c", "".join(STATEMENTS[:3]), "f.h5")], cwd=f.parent, env=env,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1), done
        yield done
        if int((f.parent / "count").read_text()) < number:
            return
    raise AssertionError("no end")


COUNTS = pytest.mark.parametrize("count", [1, 2, 100_000], ids=["once", "twice", "from_then_on"])


@pytest.mark.limit(300)
@COUNTS
@pytest.mark.parametrize("words", [[], ["--durable"], ["--backup=copy"], ["--backup=copy", "--restore"],
                                   ["--backup=copy", "--durable"], ["--backup=copy", "--durable", "--restore"]], ids=str)
def test_a_call_that_fails_and_what_is_said_of_the_file(f, original, words, count):
    h5edit(f.parent, "-c", "".join(STATEMENTS[:3]), "f.h5").ok()
    final, seen = f.read_bytes(), set()
    for done in failures(f, original, count, *words):
        left, said, had_copy = f.read_bytes(), done.stderr, backup(f).exists()
        if done.returncode == 0 or "holds the changes of all commands" in said:
            assert left == final, said
            seen.add("all")
        elif "may hold a part" in said:
            seen.add("between")
        elif "the back-up is" in said:
            assert backup(f).read_bytes() == original, said
        else:
            assert left == original, said
            seen.add("before")
        h5edit(f.parent, "--recover", "f.h5").ok()
        assert f.read_bytes() in ((original,) if had_copy else (original, final)), said
        assert "is as it was before" not in said or f.read_bytes() == original, said
        assert nothing_beside(f), said
    assert {"all", "before"} <= seen and (count == 1 or "--backup=copy" in words or "between" in seen), seen


@pytest.mark.limit(300)
def test_a_call_that_fails_on_the_way_to_a_version(f, original):
    h5edit(f.parent, "-c", "".join(STATEMENTS[:3]), "f.h5").ok()
    final, settled = f.read_bytes(), set()
    begun = time.monotonic()
    for done in failures(f, original, 1, "--keep-history"):
        waited, said = time.monotonic() - begun > 2, done.stderr
        h5edit(f.parent, "--recover", "f.h5").ok()
        assert f.read_bytes() in (original, final), said
        assert done.returncode == 1 or f.read_bytes() == final
        assert "f.h5 is as it was before\n" not in said or f.read_bytes() == original, said
        if "settles which" in said:
            settled.add(f.read_bytes())
        shutil.rmtree(f"{f}.h5m", ignore_errors=True)
        if waited and settled:   # The store tries again what only changes the file, and that may well take long.
            break
        begun = time.monotonic()
    assert settled


@pytest.mark.limit(300)
@COUNTS
@pytest.mark.parametrize("words", [[], ["--durable"], ["--backup=copy"], ["--backup=copy", "--restore"]], ids=str)
def test_a_call_that_fails_and_the_commands_before_it(f, original, words, count):
    for done in failures(f, original, count, "--atomic=inc", "--verbose", *words):
        said = done.stderr
        done_count = said.count(": done\n")
        is_on_its_way = "may hold a part" in said or "only its back-up does not" in said
        h5edit(f.parent, "--recover", "f.h5").ok()
        assert holds(f) in ((done_count, done_count + 1) if is_on_its_way else (done_count,)), said
        assert nothing_beside(f), said
        assert done.returncode == 1 or done_count == 3


@pytest.mark.limit(200)
def test_nobody_opens_the_file_while_it_is_put_back(f, original):
    words = [str(w) for w in command("--backup=copy", "--restore", "-c", "DELETE /attr1; DELETE /nope;", "f.h5")]
    met = 0
    for number in range(1, 2000):
        env = hdf5.plain_env(LD_PRELOAD=str(paths.TEST_BIN / "libe2e_kill_at.so"), STOP_AT=str(number))
        process = subprocess.Popen(words, cwd=f.parent, env=env, stderr=subprocess.PIPE, text=True)
        # Returns at a stop and at the end, which it leaves to be asked for again.
        stopped = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED
        if stopped:
            if backup(f).exists():
                met += 1
                with open(f, "rb") as other, pytest.raises(BlockingIOError):
                    fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            process.send_signal(signal.SIGCONT)
        err = process.communicate(timeout=60)[1]
        assert process.returncode == 1 and "was put back" in err, err
        assert f.read_bytes() == original and nothing_beside(f)
        if not stopped:
            break
    assert met > 2


@pytest.mark.limit(200)
@pytest.mark.parametrize("level, number, copies", [("yes", signal.SIGTERM, []), ("inc", signal.SIGINT, []),
                                                   ("yes", signal.SIGTERM, ["--backup=copy"]), ("no", signal.SIGHUP, [])], ids=str)
def test_95_a_signal_ends_it_between_two_statements(f, original, level, number, copies):
    # Its output does not fit into the pipe: it is at work until that is read.
    (f.parent / "long").write_text("COPY /attr1 /c; DELETE /c;\n" * 20_000)
    process = subprocess.Popen([str(w) for w in command("--atomic", level, *copies, "--verbose", "--command-file", "long", "f.h5")],
                               cwd=f.parent, env=hdf5.plain_env(), stderr=subprocess.PIPE, text=True,
                               # The parent may ignore the signal, as nohup does; the child would inherit that.
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    process.stderr.readline()   # The first statement is done.
    process.send_signal(number)
    err = process.communicate(timeout=100)[1]
    assert process.returncode == 128 + number, err[-300:]
    assert "stopped by a signal" in err and nothing_beside(f) != bool(copies)
    if copies:
        assert backup(f).read_bytes() == original
        hdf5.dump(f)
    elif level == "yes":
        assert f.read_bytes() == original
    else:
        hdf5.dump(f)


def endless(path: Path) -> None:
    """Damages the heap of the values of variable length, so that HDF5 never ends reading them: its free space, object 0, says
    that it takes no room."""
    image = bytearray(path.read_bytes())
    at = image.index(b"GCOL") + 16
    while int.from_bytes(image[at:at + 2], "little") != 0:
        at += 16 + (int.from_bytes(image[at + 8:at + 16], "little") + 7) // 8 * 8
    image[at + 8:at + 16] = bytes(8)
    path.write_bytes(image)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.limit(200)
@pytest.mark.parametrize("level", ["yes", "no"])
def test_a_command_that_never_ends_is_broken_off_after_a_signal(tmp_path, level):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as opened:
        opened.attrs.create("texts", ["a", "b"], dtype=h5py.string_dtype())
        opened.attrs["n"] = 1
    endless(path)
    damaged = path.read_bytes()
    process = Process(command("--verbose", "--atomic", level, "-c", "MODIFY /n {2}; SHOW /texts;", "f.h5"), tmp_path,
                      env=hdf5.plain_env(), cwd=tmp_path, name="h5edit")
    try:
        wait_until(lambda: "MODIFY / n: done" in process.err(), "the first command", 60)
        spent = cpu_seconds(process.pid)
        wait_until(lambda: cpu_seconds(process.pid) > spent + 0.5, "the second command to be at work", 60)
        process.signal(signal.SIGTERM)
        if level == "no":   # Its writes are in the file at once: no store decides when it ends.
            spent = cpu_seconds(process.pid)
            wait_until(lambda: cpu_seconds(process.pid) > spent + 0.5, "it to go on", 60)
            process.signal(signal.SIGTERM)
        result = process.wait(100)
    finally:
        process.kill()
    assert result.code == -signal.SIGTERM, result.describe()
    assert ("was broken off: the file is without it" in result.err) == (level == "yes")
    if level == "yes":
        assert path.read_bytes() == damaged
        h5edit(tmp_path, "-c", "DELETE IF EXISTS /none;", "f.h5").ok()
        assert nothing_beside(path)
