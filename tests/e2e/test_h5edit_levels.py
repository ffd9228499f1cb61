"""The file and the files beside it after h5edit, at each level: after errors, with back-ups, where it may not write."""

import fcntl
import os
import shutil
import signal
import subprocess

import h5py
import pytest

from harness import hdf5, paths
from harness.h5edit import D1, NINE, backup, bound_h5edit, command, content, h5edit, nothing_beside
from harness.process import run


@pytest.mark.parametrize("words", [[], ["--atomic=inc"], ["--atomic=no"], ["--backup=copy"], ["--keep-history"]], ids=str)
def test_16_a_file_that_may_only_be_read(f, original, words):
    f.chmod(0o444)
    result = bound_h5edit(f.parent, *words, "-c", "DELETE /attr1;", "f.h5")
    assert result.code == 1 and "cannot open" in result.err and "f.h5" in result.err, result.describe()
    assert f.read_bytes() == original and nothing_beside(f)
    assert "attr1" in bound_h5edit(f.parent, "-c", "SHOW /attr1;", "f.h5").ok().out
    bound_h5edit(f.parent, "--dryrun", "-c", "DELETE /attr1;", "f.h5").ok()


@pytest.mark.parametrize("words", [[], ["--atomic=inc"], ["--backup=copy"], ["--keep-history"]], ids=str)
def test_90_a_directory_that_nothing_can_be_made_in(f, original, words):
    more = f.parent / "more"
    more.mkdir()
    f = f.rename(more / "f.h5")
    more.chmod(0o555)
    result = bound_h5edit(more.parent, *words, "-c", "DELETE /attr1;", "more/f.h5")
    assert result.code == 1 and "more" in result.err and "--atomic no" in result.err, result.describe()
    assert f.read_bytes() == original and nothing_beside(f)
    bound_h5edit(more.parent, "--atomic=no", "-c", "DELETE /attr1;", "more/f.h5").ok()
    assert ("/", "attr1") not in content(f) and nothing_beside(f)
    more.chmod(0o755)


BAD = "DELETE /attr1; DELETE /attr_no_such;"


@pytest.mark.parametrize("number, words", [("83", []), ("84", ["--atomic", "yes"]), ("85", ["--atomic", "inc"]),
                                           ("86", ["--atomic", "no"])])
def test_an_error_and_what_the_file_is_then(f, original, number, words):
    result = h5edit(f.parent, *words, "-c", BAD, "f.h5")
    assert result.code == 1 and "h5edit: the command DELETE failed; f.h5" in result.err, result.describe()
    if number in ("83", "84"):
        assert f.read_bytes() == original and "is as it was before" in result.err
    else:
        assert ("/", "attr1") not in content(f) and "holds the changes of the commands before it" in result.err
    assert nothing_beside(f)


@pytest.mark.parametrize("number, words, back", [("83", [], True), ("84", ["--atomic=yes"], True),
                                                 ("85", ["--atomic=inc"], False), ("86", ["--atomic=no"], None)])
def test_an_error_with_a_classic_backup(f, original, number, words, back):
    before = hdf5.dump(f)
    result = h5edit(f.parent, "--backup=copy", *words, "-c", BAD, "f.h5")
    assert result.code == 1, result.describe()
    assert ("/", "attr1") not in content(f)
    assert backup(f).exists() == (back is not None)
    if back is None:
        return
    assert "h5edit --recover f.h5 brings it back" in result.err and (("/", "attr1") in content(backup(f))) == back
    again = h5edit(f.parent, "--backup=copy", "-c", "DELETE /attr2;", "f.h5")   # 89
    assert again.code == 1 and "exists already" in again.err, again.describe()
    backup(f).rename(f)                                                         # 88
    if back:
        assert hdf5.dump(f) == before and f.read_bytes() == original


def test_87_no_leaves_nothing(f):
    h5edit(f.parent, "--atomic", "no", "-c", "DELETE /attr1;", "f.h5").ok()
    assert nothing_beside(f)


def test_89_a_backup_of_before_is_not_touched(f, original):
    backup(f).write_text("anything")
    result = h5edit(f.parent, "--backup=copy", "-c", "DELETE /attr1;", "f.h5")
    assert result.code == 1 and "exists already" in result.err, result.describe()
    assert f.read_bytes() == original and backup(f).read_text() == "anything"


def test_a_backup_that_cannot_follow(f, original):
    (f.parent / ".f.h5.bck.h5m").write_text("in the way of the back-up's journal")
    words = ["--backup=copy", "--atomic=inc", "-c", "DELETE /attr1; DELETE /attr2;", "f.h5"]
    result = h5edit(f.parent, *words)
    assert result.code == 1 and "holds the change of that command, too, and only its back-up does not" in result.err, result.describe()
    assert {("/", "attr1"), ("/", "attr2")} & content(f).keys() == {("/", "attr2")}
    assert backup(f).read_bytes() == original
    backup(f).rename(f)
    result = h5edit(f.parent, "--restore", *words)
    assert result.code == 1 and "was put back from the back-up" in result.err, result.describe()
    assert f.read_bytes() == original and nothing_beside(f)


def test_nothing_is_done_to_a_file_whose_backup_waits_to_be_put_back(f, original):
    h5edit(f.parent, "--backup=copy", "-c", BAD, "f.h5")
    left = f.read_bytes()
    assert left != original and backup(f).read_bytes() == original
    for words in ([], ["--atomic=inc"], ["--atomic=no"], ["--keep-history"], ["--backup=copy"]):
        result = h5edit(f.parent, *words, "-c", "DELETE /attr2;", "f.h5")
        assert result.code == 1 and "exists already" in result.err and "--recover f.h5" in result.err, result.describe()
        assert f.read_bytes() == left and backup(f).read_bytes() == original
    h5edit(f.parent, "--dryrun", "-c", "SHOW /attr2;", "f.h5").ok()
    with open(f, "rb") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        result = h5edit(f.parent, "--recover", "f.h5")
        assert result.code == 1 and "another program has it open" in result.err, result.describe()
        assert f.read_bytes() == left and backup(f).read_bytes() == original
    h5edit(f.parent, "--recover", "f.h5").ok()
    assert f.read_bytes() == original and nothing_beside(f)


def test_a_file_of_two_names_is_only_written_straight_through(f, original):
    other = f.parent / "other.h5"
    os.link(f, other)
    for words in ([], ["--atomic=inc"], ["--keep-history"], ["--backup=copy"]):
        result = h5edit(f.parent, *words, "-c", "DELETE /attr1;", "f.h5")
        assert result.code == 1 and "has 2 names" in result.err and "--atomic no" in result.err, result.describe()
        assert f.read_bytes() == original and nothing_beside(f)
    assert "attr1" in h5edit(f.parent, "-c", "SHOW /attr1;", "f.h5").ok().out
    h5edit(f.parent, "--atomic=no", "-c", "DELETE /attr1;", "f.h5").ok()
    assert ("/", "attr1") not in content(other)


def test_96_the_levels_give_equal_files(f, original):
    dumps = set()
    for words in ([], ["--atomic=inc"], ["--atomic=no"], ["--backup=copy"], ["--backup=copy", "--atomic=inc"], ["--durable"],
                  ["--durable", "--atomic=inc"], ["--durable", "--atomic=no"]):
        f.write_bytes(original)
        h5edit(f.parent, *words, "-c", NINE, "f.h5").ok()
        dumps.add(hdf5.dump(f))
        assert nothing_beside(f)
    assert len(dumps) == 1


def test_97_a_dry_run_changes_nothing_and_knows_what_came_before(f, original):
    stat = f.stat()
    first = ",".join(str(n) for n in range(1, 28))   # Row 76.
    h5edit(f.parent, "--dryrun", "-c", f"MODIFY {D1} attr1 {{{first}}}; MODIFY /attr2 {{11,13,17,19}}; MODIFY {D1}/attr2 {{{first}}};",
           "f.h5").ok()
    good = "CREATE /n {H5T_STD_I32LE (2) {1,2}}; MODIFY /n {3,4}; RENAME /n m; DELETE /m; DELETE /attr1;"
    h5edit(f.parent, "--dryrun", "-c", good, "f.h5").ok()
    result = h5edit(f.parent, "--dryrun", "-c", BAD, "f.h5")
    assert result.code == 1 and "no attribute attr_no_such" in result.err and "was not touched" in result.err
    again = f.stat()
    assert f.read_bytes() == original and nothing_beside(f)
    assert (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns) == (again.st_ino, again.st_mtime_ns, again.st_ctime_ns)


def test_a_file_that_another_program_has_open(f, original):
    holder = subprocess.Popen([paths.venv_python("3.12.1"), "-c", "import h5py,sys; f=h5py.File(sys.argv[1]); print(1, flush=True); input()", f],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=hdf5.plain_env())
    holder.stdout.readline()
    try:
        for level in ("yes", "inc", "no"):
            result = h5edit(f.parent, "--atomic", level, "-c", "DELETE /attr1;", "f.h5")
            assert result.code == 1 and "cannot open" in result.err, result.describe()
        assert "attr2" in h5edit(f.parent, "-c", "SHOW /attr2;", "f.h5").ok().out
    finally:
        holder.communicate(b"\n", timeout=30)
    assert f.read_bytes() == original and nothing_beside(f)


@pytest.mark.parametrize("words", [["-c", "SHOW /attr2;"], ["-c", "LIST /;"], ["--dryrun", "-c", "DELETE /attr1;"]], ids=str)
def test_who_only_looks_sees_no_file_that_is_being_written(f, original, words):
    """Like HDF5's own tools: the file's content then does not matter."""
    with open(f, "rb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        result = h5edit(f.parent, *words, "f.h5")
        assert result.code == 1 and "has it open for writing" in result.err and not result.out, result.describe()
        h5edit(f.parent, *words, "f.h5", HDF5_USE_FILE_LOCKING="FALSE").ok()
    h5edit(f.parent, *words, "f.h5").ok()
    assert f.read_bytes() == original and nothing_beside(f)


def test_a_rollback_gives_the_file_no_other_mode(f):
    def h5mirror(*words):
        return run([paths.BIN / "h5mirror", *words], f.parent, cwd=f.parent, name="h5mirror",
                   env=hdf5.plain_env(HOME=str(f.parent)))

    f.chmod(0o600)
    h5edit(f.parent, "--keep-history", "-c", "DELETE /attr1;", "f.h5").ok()
    # Another file of that name: what is before it comes back as a file of its own.
    subprocess.run([paths.venv_python("3.12.1"), "-c", "import h5py; h5py.File('f.h5', 'w').close()"], cwd=f.parent, check=True,
                   timeout=60, env=hdf5.plain_env(HDF5_PLUGIN_PATH=str(paths.LIB), HDF5_DRIVER="h5mirror",
                                                  HDF5_DRIVER_CONFIG="server=embedded", HOME=str(f.parent)))
    f.chmod(0o600)
    h5edit(f.parent, "-c", "CREATE /a {{1}};", "f.h5").ok()
    h5mirror("rollback", "f.h5@1").ok()
    assert f.stat().st_mode & 0o777 == 0o600 and ("/", "attr1") in content(f)


@pytest.mark.limit(300)
def test_a_file_with_a_history_that_is_replaced_meanwhile_is_not_mixed_with_another(f, original):
    """`mv another f.h5` at any moment of an edit: it is edited whole, where it came first, or not at all."""
    changed = ["-c", "MODIFY /attr2 {5, 5, 5, 5};"]
    f.write_bytes(another := original[:-8] + b"another!")
    h5edit(f.parent, *changed, "f.h5").ok()
    edited, failed = f.read_bytes(), 0
    for number in range(1, 400, 2):
        shutil.rmtree(f"{f}.h5m", ignore_errors=True)
        f.write_bytes(original)
        (f.parent / "another").write_bytes(another)
        env = hdf5.plain_env(LD_PRELOAD=str(paths.TEST_BIN / "libe2e_kill_at.so"), STOP_AT=str(number))
        process = subprocess.Popen([str(w) for w in command("--keep-history", *changed, "f.h5")], cwd=f.parent, env=env,
                                   stderr=subprocess.PIPE, text=True)
        state = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if state.si_code != os.CLD_STOPPED:
            assert process.communicate(timeout=60) and failed > 5
            return
        os.rename(f.parent / "another", f)
        process.send_signal(signal.SIGCONT)
        err = process.communicate(timeout=60)[1]
        # It may come when all is done.
        assert f.read_bytes() == another or process.returncode == 0 and f.read_bytes() == edited, (number, err)
        assert process.returncode == 0 or "was replaced while it was edited" in err, (number, err)
        failed += process.returncode
    raise AssertionError("no end")


def test_keep_history_makes_each_cut_a_version(f):
    h5edit(f.parent, "--keep-history", "--atomic=inc", "-c", "DELETE /attr1; CREATE /a {{1}};", "f.h5").ok()
    h5edit(f.parent, "-c", "DELETE /a;", "f.h5").ok()     # a file with a history is edited through it
    log = subprocess.run([paths.BIN / "h5mirror", "log", "f.h5"], cwd=f.parent, capture_output=True, text=True, timeout=60,
                         env=hdf5.plain_env(HOME=str(f.parent)))
    for text in ("DELETE /attr1;", "CREATE /a {{1}};", "DELETE /a;", "found"):
        assert text in log.stdout, log
    assert ("/", "a") not in content(f)


def test_a_file_whose_record_is_damaged_is_refused(f, original):
    (f.parent / "f.h5.h5m").mkdir()
    (f.parent / "f.h5.h5m/client.json").write_text("{}")
    result = h5edit(f.parent, "-c", "DELETE /attr1;", "f.h5")
    assert result.code == 1 and "the record is damaged" in result.err and f.read_bytes() == original
