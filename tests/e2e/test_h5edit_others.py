"""Other programs act on a file that h5edit edits, or died in: they put it back, replace it, or take away the rights to
it."""

import os
import shutil
import signal
import stat
import subprocess
import time

import h5py
import pytest

from harness import hdf5, paths
from harness.h5edit import NINE, bound, bound_h5edit, command, content, h5edit, nothing_beside
from harness.h5edit_kills import h5ls, kills, tear

PAGE = 4096
SHOWS = (["-c", "SHOW /attr1;"], ["-c", "LIST /;"])
LOOKS = (*SHOWS, ["--dryrun", "-c", "DELETE /attr1;"])
LEVELS = ([], ["--atomic=inc"], ["--atomic=no"], ["--backup=copy"], ["--keep-history"])


@pytest.fixture
def f(f):
    (f.parent / "script").write_text(NINE)
    return f


def put_back(f, original) -> None:
    """As `cp backup f.h5` does, and later than the journal by the disk's clock."""
    journal = f.parent / "f.h5.h5m/journal"
    while True:
        f.write_bytes(original)
        if f.stat().st_ctime_ns > journal.stat().st_mtime_ns:
            return
        time.sleep(0.001)


def open_driver(f):
    return h5ls(f, "mode=off")


def open_recover(f):
    return h5edit(f.parent, "--recover", "f.h5").ok().out


def open_edit(f):
    return h5edit(f.parent, "-c", "DELETE /nope;", "f.h5").err


@pytest.mark.limit(200)
@pytest.mark.parametrize("opens", [open_driver, open_recover, open_edit])
def test_a_file_that_was_put_back_stays_so(f, original, opens):
    tear(f, original)
    put_back(f, original)
    assert "f.h5 was put back to what it was before an edit" in opens(f)
    assert f.read_bytes() == original and nothing_beside(f)


@pytest.mark.limit(200)
def test_a_page_that_was_changed_back_is_left_to_a_person(f, original):
    final = tear(f, original)
    page = next(n for n in range(0, len(original), PAGE) if original[n:n + PAGE] != final[n:n + PAGE])
    mixed = final[:page] + original[page:page + PAGE] + final[page + PAGE:]
    # It is not the only one that differs.
    assert mixed != original[:len(mixed)]
    f.write_bytes(mixed)
    assert "not in the order of its writes" in open_driver(f)
    result = h5edit(f.parent, "-c", "DELETE /attr1;", "f.h5")
    assert result.code == 1 and "not in the order of its writes" in result.err, result.describe()
    assert "--recover f.h5 finishes" in result.err and "--discard f.h5 takes it back" in result.err
    assert f.read_bytes() == mixed
    journal = (f.parent / "f.h5.h5m/journal").read_bytes()
    h5edit(f.parent, "--recover", "f.h5").ok()
    assert f.read_bytes() == final and nothing_beside(f)
    f.write_bytes(mixed)
    (f.parent / "f.h5.h5m").mkdir()
    (f.parent / "f.h5.h5m/journal").write_bytes(journal)
    h5edit(f.parent, "--recover", "--discard", "f.h5").ok()
    assert f.read_bytes() == original and nothing_beside(f)


@pytest.mark.limit(200)
def test_who_cannot_look_beside_the_file_is_told_so(f, original):
    tear(f, original)
    torn, beside = f.read_bytes(), f.parent / "f.h5.h5m"
    beside.chmod(0)
    edits = [[*words, "-c", "DELETE /attr1;"] for words in LEVELS]
    recovers = (["--recover"], ["--recover", "--check"], ["--recover", "--discard"])
    for mode in (0, 0o400, 0o100):
        beside.chmod(mode)
        for words in (*edits, *LOOKS, *recovers):
            result = bound_h5edit(f.parent, *words, "f.h5")
            # The right to search without the right to list is enough to look for the journal.
            says = "a change is on its way" if mode == 0o100 and words in SHOWS else "f.h5.h5m cannot be looked into"
            assert result.code == 1 and says in result.err, result.describe()
            assert "--atomic no" not in result.err and not result.out, result.describe()
        assert f.read_bytes() == torn
    beside.chmod(0)
    assert "whether a change of it was broken off cannot be told" in h5ls(f, "mode=off", bound(f.parent))
    beside.chmod(0o700)
    assert f.read_bytes() == torn
    bound_h5edit(f.parent, "--recover", "f.h5").ok()
    assert nothing_beside(f)


def test_others_than_its_owner_look_at_a_file_that_is_mirrored(f, original):
    beside = f.parent / "f.h5.h5m"
    h5edit(f.parent, "--keep-history", "-c", "DELETE /attr2;", "f.h5").ok()
    assert stat.S_IMODE(beside.stat().st_mode) == 0o711
    for part in beside.iterdir():
        part.chmod(0)
    beside.chmod(0o100)   # The rights of others to it.
    for words in SHOWS:
        bound_h5edit(f.parent, *words, "f.h5").ok()
    assert "f.h5" not in h5ls(f, "mode=off", bound(f.parent))
    mine = f.parent / "mine.h5"
    mine.write_bytes(original)
    h5edit(f.parent, "-c", "LINK EXTERNAL f.h5 / /theirs;", "mine.h5").ok()
    bound_h5edit(f.parent, "-c", "COPY /theirs attr1 / copied;", "mine.h5").ok()
    for level in LEVELS:
        result = bound_h5edit(f.parent, *level, "-c", "DELETE /attr1;", "f.h5")
        assert result.code == 1 and "f.h5.h5m cannot be looked into" in result.err, result.describe()
    beside.chmod(0o711)


@pytest.mark.limit(200)
def test_a_history_that_cannot_be_written_is_not_gone_around(f, original):
    h5edit(f.parent, "--keep-history", "-c", "DELETE /attr2;", "f.h5").ok()
    held, beside = f.read_bytes(), f.parent / "f.h5.h5m"
    for part in beside.iterdir():
        part.chmod(0o400)
    beside.chmod(0o500)
    for level in ("yes", "inc", "no"):
        result = bound_h5edit(f.parent, "--atomic", level, "-c", "DELETE /attr1;", "f.h5")
        assert result.code == 1 and "--atomic no" not in result.err, result.describe()
    beside.chmod(0o700)
    assert f.read_bytes() == held


@pytest.mark.limit(400)
def test_a_version_on_its_way_is_seen_by_who_only_looks(f, original):
    beside, met = f.parent / "f.h5.h5m", 0
    for _ in kills(f, original, "--keep-history"):
        if (beside / "index").exists() and (beside / "open").exists() and met < 5:
            met += 1
            held = f.read_bytes()
            for words in LOOKS:
                result = h5edit(f.parent, *words, "f.h5")
                assert result.code == 1 and "its history is open" in result.err and not result.out, result.describe()
                assert "h5edit --recover f.h5" in result.err
            assert "its history is open" in h5edit(f.parent, "--recover", "--check", "f.h5").ok().out
            assert f.read_bytes() == held
            h5edit(f.parent, "--recover", "f.h5").ok()
            assert "nothing to recover" in h5edit(f.parent, "--recover", "--check", "f.h5").ok().out
            for words in LOOKS:
                h5edit(f.parent, *words, "f.h5").ok()
        shutil.rmtree(beside, ignore_errors=True)
    assert met


@pytest.mark.limit(200)
@pytest.mark.parametrize("durable", [[], ["--durable"]], ids=["process", "durable"])
def test_a_file_that_is_replaced_while_it_is_edited(f, original, durable):
    words = [str(w) for w in command(*durable, "-c", "DELETE /attr1;", "f.h5")]
    h5edit(f.parent, "-c", "DELETE /attr2;", "f.h5").ok()
    theirs, met = f.read_bytes(), 0
    h5edit(f.parent, "-c", "DELETE /attr1;", "f.h5").ok()
    assert ("/", "attr1") not in content(f)
    for number in range(1, 2000):
        f.write_bytes(original)
        (f.parent / "theirs").write_bytes(theirs)
        env = hdf5.plain_env(LD_PRELOAD=str(paths.TEST_BIN / "libe2e_kill_at.so"), STOP_AT=str(number))
        process = subprocess.Popen(words, cwd=f.parent, env=env, stderr=subprocess.PIPE, text=True)
        # Returns at a stop and at the end, which it leaves to be asked for again.
        stopped = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED
        if stopped:
            os.replace(f.parent / "theirs", f)
            process.send_signal(signal.SIGCONT)
        err = process.communicate(timeout=60)[1]
        assert nothing_beside(f), err
        if not stopped:
            break
        if process.returncode != 0:
            met += 1
            assert "was replaced while it was edited" in err, err
            assert f.read_bytes() == theirs
    assert met > 1


@pytest.mark.parametrize("words", [[], ["--atomic=inc"], ["--keep-history"]], ids=str)
def test_what_a_program_without_locks_has_changed_meanwhile_is_not_lost(f, original, words):
    """In a page that the edit changes, too, and at the second command as at the first."""
    if words == ["--keep-history"]:
        h5edit(f.parent, *words, "-c", "DELETE /attr1;", "f.h5").ok()
    first = f.read_bytes()
    at = first.index(bytes([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]))  # attr2
    # The output waits for its reader, and with it the edit.
    values = ", ".join(["1000000000"] * 4000)
    long = f"CREATE /long {{H5T_STD_I32LE (4000) {{{values}}}}};" + " SHOW /long;" * 4
    script = f"MODIFY /attr2 [0, 0:2] {{7, 8}}; {long} MODIFY /attr2 [1, 0:2] {{9, 9}};"
    process = subprocess.Popen([str(w) for w in command(*words, "-c", script, "f.h5")], cwd=f.parent, env=hdf5.plain_env(),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    process.stdout.read(1)
    before = f.stat().st_mtime_ns
    while f.stat().st_mtime_ns == before:  # Later by the disk's clock.
        with open(f, "r+b") as other:
            other.seek(at + 15)
            other.write(b"\5")
    err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 1 and "was changed by another program while it was edited" in err, err
    theirs = f.read_bytes()
    assert theirs[at + 15] == 5 and (words == ["--atomic=inc"]) == (len(theirs) != len(first)), err


@pytest.mark.limit(200)
def test_nothing_is_copied_out_of_another_file_that_an_edit_was_broken_off_in(f, original):
    values = ", ".join(["1"] * 15)
    (f.parent / "script").write_text(f"MODIFY /attr2 {{9, 9, 9, 9}};\nMODIFY DATASET /g2/dset2.2 [] {{{values}}};\n")
    tear(f, original)
    with h5py.File(f, "r") as torn:  # It is no cut, and nobody sees that.
        assert (torn.attrs["attr2"] == 9).all() != (torn["/g2/dset2.2"][()] == 1).all()
    other = f.parent / "other.h5"
    with h5py.File(other, "w") as made:
        made["far"] = h5py.ExternalLink("f.h5", "/")
        made.create_group("here")
    before = other.read_bytes()
    result = h5edit(f.parent, "-c", "COPY /far attr2 /here attr2;", "other.h5")
    assert result.code == 1 and other.read_bytes() == before, result.describe()
    h5edit(f.parent, "--recover", "f.h5").ok()
    h5edit(f.parent, "-c", "COPY /far attr2 /here attr2;", "other.h5").ok()
    assert ("/here", "attr2") in content(other)
