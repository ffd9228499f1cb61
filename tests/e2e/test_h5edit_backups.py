"""The classic back-up of h5edit: when it must not be made, the effect of --recover and --discard, and what is lost."""

import os
import signal
import subprocess

import h5py
import numpy as np
import pytest

from harness import hdf5, mounts, paths
from harness.h5edit import D1, NINE, backup, command, content, h5edit, make_fixture, nothing_beside

BAD = "DELETE /attr1; DELETE /attr_no_such;"


def fail(f, *words):
    """A run that leaves a back-up."""
    result = h5edit(f.parent, "--backup=copy", *words, "-c", BAD, f.name)
    assert result.code == 1 and f"h5edit --recover {f.name} brings it back" in result.err, result.describe()
    return f.read_bytes()


def kept(f) -> list:
    """The replaced bytes that --recover has kept."""
    return sorted(f.parent.glob(f".{f.name}.replaced-*"))


def preloaded(f, library: str, *words, **env) -> subprocess.CompletedProcess:
    env = hdf5.plain_env(LD_PRELOAD=str(paths.TEST_BIN / f"libe2e_{library}.so"), **env)
    return subprocess.run([str(w) for w in command(*words, f.name)], cwd=f.parent, env=env, capture_output=True, text=True,
                          timeout=60)


def tear(f, original):
    """Kills a run between two writes of the file, and changes a byte that the cut would replace: no open can settle
    that."""
    for number in range(1, 200):
        f.write_bytes(original)
        preloaded(f, "kill_at", "-c", NINE, KILL_AT=str(number))
        if (f.parent / "f.h5.h5m/journal").exists() and f.read_bytes() != original:
            break
        h5edit(f.parent, "--recover", "--discard", f.name).ok()
    with open(f, "r+b") as other:
        other.write(original[:100].swapcase().ljust(100) + b"something else" * 400)
    return f.read_bytes()


@pytest.mark.limit(200)
def test_a_file_that_is_put_in_its_place_meanwhile_is_not_overwritten(f, original):
    """`mv another f.h5` in the middle of an edit that fails, or fails because of that."""
    another = original[:-8] + b"another!"
    for number in range(1, 200):
        f.write_bytes(original)
        (f.parent / "another").write_bytes(another)
        env = hdf5.plain_env(LD_PRELOAD=str(paths.TEST_BIN / "libe2e_kill_at.so"), STOP_AT=str(number))
        words = [str(w) for w in command("--backup=copy", "--restore", "-c", BAD, f.name)]
        process = subprocess.Popen(words, cwd=f.parent, env=env, stderr=subprocess.PIPE, text=True)
        state = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        is_stopped = state.si_code == os.CLD_STOPPED
        if is_stopped:
            os.rename(f.parent / "another", f)
            process.send_signal(signal.SIGCONT)
        err = process.communicate(timeout=60)[1]
        assert process.returncode == 1 and f.read_bytes() == (another if is_stopped else original), (number, err)
        if not is_stopped:
            return
        if backup(f).exists():
            assert "was replaced while it was edited" in err and backup(f).read_bytes() == original, (number, err)
            backup(f).unlink()
    raise AssertionError("no end")


def test_a_backup_is_no_file_that_others_have_put_there(f, original):
    """The right to write the directory must not let a user read a protected file, nor write its back-up later."""
    theirs = f.parent / ".f.h5.bck.new"
    theirs.touch(0o666)
    with open(theirs, "r+b") as opened:
        f.chmod(0o600)
        fail(f)
        assert opened.read() == b""
    assert backup(f).read_bytes() == original and not theirs.exists()


@pytest.mark.parametrize("words", [[], ["--atomic=inc"], ["--restore"]], ids=str)
def test_a_file_with_a_history_gets_no_backup(f, original, words):
    h5edit(f.parent, "--keep-history", "-c", "DELETE /attr2;", "f.h5").ok()
    before = f.read_bytes()
    result = h5edit(f.parent, "--backup=copy", *words, "-c", BAD, "f.h5")
    assert result.code == 1 and "h5mirror rollback f.h5@" in result.err, result.describe()
    assert f.read_bytes() == before and not backup(f).exists()


def test_a_backup_is_not_put_back_beneath_a_history(f, original):
    h5edit(f.parent, "--keep-history", "-c", "DELETE /attr2;", "f.h5").ok()
    before = f.read_bytes()
    backup(f).write_bytes(original)
    result = h5edit(f.parent, "--recover", "f.h5")
    assert result.code == 1 and "h5mirror rollback f.h5@" in result.err and "--discard f.h5" in result.err, result.describe()
    assert f.read_bytes() == before and backup(f).read_bytes() == original
    h5edit(f.parent, "--recover", "--discard", "f.h5").ok()
    assert f.read_bytes() == before and not backup(f).exists()


def test_what_was_replaced_is_kept(f, original):
    names = set()
    for _ in range(2):
        left = fail(f)
        said = h5edit(f.parent, "--recover", "f.h5").ok().out
        new = {path.name for path in kept(f)} - names
        assert len(new) == 1 and next(iter(new)) in said and "was changed at" not in said, said
        names |= new
        assert f.read_bytes() == original and (f.parent / new.pop()).read_bytes() == left and nothing_beside(f)


def test_who_changed_the_file_since_is_told(f, original):
    fail(f)
    with h5py.File(f, "r+") as other:
        other.attrs["mine"] = 1
    os.utime(backup(f), ns=(0, f.stat().st_ctime_ns - 1))   # However coarse the disk's clock is.
    assert "was changed at" in h5edit(f.parent, "--recover", "--check", "f.h5").ok().out
    said = h5edit(f.parent, "--recover", "f.h5").ok().out
    assert "the kept file was changed at" in said and f.read_bytes() == original
    with h5py.File(kept(f)[0]) as saved:
        assert saved.attrs["mine"] == 1


def test_a_kill_on_the_way_back_leaves_either_whole(f, original):
    met = 0
    for number in range(1, 200):
        f.write_bytes(original)
        left = fail(f)
        done = preloaded(f, "kill_at", "--recover", KILL_AT=str(number))
        assert f.read_bytes() in (original, left)
        h5edit(f.parent, "--recover", "f.h5").ok()
        assert f.read_bytes() == original and nothing_beside(f) and f.stat().st_nlink == 1
        assert left in [path.read_bytes() for path in kept(f)]
        met += 1
        for path in kept(f):
            path.unlink()
        if done.returncode == 0:
            break
    assert met > 3


def test_it_has_the_owner_the_mode_and_the_attributes_of_the_file(f, original):
    f.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(f, 12345, 23456)
    try:
        os.setxattr(f, "user.note", b"kept")
    except OSError:
        pass   # A file system without any.
    was, names = f.stat(), os.listxattr(f)
    fail(f)
    is_now = backup(f).stat()
    assert (is_now.st_uid, is_now.st_gid, is_now.st_mode) == (was.st_uid, was.st_gid, was.st_mode)
    h5edit(f.parent, "--recover", "f.h5").ok()
    is_now = f.stat()
    assert (is_now.st_uid, is_now.st_gid, is_now.st_mode) == (was.st_uid, was.st_gid, was.st_mode)
    assert os.listxattr(f) == names and ("user.note" not in names or os.getxattr(f, "user.note") == b"kept")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other groups")
def test_where_its_group_cannot_be_given_it_has_no_more_rights_than_others(f):
    os.chown(f, -1, 23456)
    f.chmod(0o664)
    bound = ["setpriv", "--bounding-set=-chown"]
    if subprocess.run([*bound, "true"]).returncode != 0:
        pytest.skip("root cannot give up its rights here (setpriv --bounding-set)")
    done = subprocess.run([*bound, *map(str, command("--backup=copy", "-c", BAD, f.name))], cwd=f.parent, timeout=60,
                          env=hdf5.plain_env())
    is_now = backup(f).stat()
    assert done.returncode == 1 and is_now.st_gid != 23456 and is_now.st_mode & 0o777 == 0o644


def test_by_a_link_and_by_its_own_name_it_is_the_same_file(f, original):
    elsewhere = f.parent / "elsewhere"
    elsewhere.mkdir()
    link = elsewhere / "link.h5"
    link.symlink_to(f)
    left = fail(link)
    assert backup(link).read_bytes() == original
    for words in (["-c", "DELETE /attr2;"], ["--backup=copy", "-c", "DELETE /attr2;"], ["--recover"], ["--recover", "--discard"]):
        result = h5edit(f.parent, *words, "f.h5")
        assert result.code == 1 and f"h5edit --recover {link}" in result.err, result.describe()
        assert f.read_bytes() == left and backup(link).read_bytes() == original
    h5edit(elsewhere, "--recover", "link.h5").ok()
    assert f.read_bytes() == original and link.is_symlink() and nothing_beside(link)
    assert not backup(f).is_symlink() and kept(f)[0].read_bytes() == left
    h5edit(elsewhere, "--backup=copy", "-c", "DELETE /attr2;", "link.h5").ok()
    assert not backup(f).is_symlink() and nothing_beside(f) and nothing_beside(link)
    fail(f)
    h5edit(elsewhere, "--recover", "link.h5").ok()   # The other way round.
    assert ("/", "attr1") in content(f) and nothing_beside(f)


def test_a_backup_beside_a_link_on_another_file_system(f, original):
    with mounts.tmpfs(f.parent / "elsewhere", "8M"):
        link = f.parent / "elsewhere/link.h5"
        link.symlink_to(f)
        f.chmod(0o604)
        left = fail(link)
        h5edit(link.parent, "--recover", "link.h5").ok()
        assert f.read_bytes() == original and f.stat().st_mode & 0o777 == 0o604 and kept(f)[0].read_bytes() == left
        assert nothing_beside(f) and nothing_beside(link) and not backup(f).is_symlink()
        assert not list(f.parent.glob(".f.h5.bck*"))


def test_a_mark_of_a_backup_that_is_gone_is_nothing(f):
    link = f.parent / "link.h5"
    link.symlink_to(f)
    for name, other in ((link, f), (link, link), (f, link)):
        f.write_bytes(make_fixture(f.parent / "again.h5").read_bytes())
        fail(link)
        backup(link).unlink()
        assert backup(f).is_symlink()
        h5edit(f.parent, "--backup=copy", "-c", "DELETE /attr2;", name.name).ok()
        h5edit(f.parent, "--backup=copy", "-c", "CREATE /attr2 {{1}};", other.name).ok()
        assert not backup(f).is_symlink() and nothing_beside(f)


@pytest.mark.parametrize("words", [["--recover"], ["--recover", "--discard"]], ids=str)
def test_a_backup_outlives_a_journal_that_cannot_be_settled(f, original, words):
    torn = tear(f, original)
    backup(f).write_bytes(original)
    said = h5edit(f.parent, *words, "f.h5").ok().out
    assert "journal-given-up" in said and (f.parent / "f.h5.h5m/journal-given-up").exists(), said
    if "--discard" in words:
        assert backup(f).read_bytes() == original and f.read_bytes() == torn
        assert ".f.h5.bck" in said and "is kept" in said and "h5edit --recover f.h5" in said
        h5edit(f.parent, *words, "f.h5").ok()
        assert not backup(f).exists() and f.read_bytes() == torn
    else:
        assert f.read_bytes() == original and kept(f)[0].read_bytes() == torn and not backup(f).exists()


@pytest.mark.parametrize("script, code", [("DELETE /attr1;", 0), (BAD, 1)], ids=["done", "put_back"])
def test_a_removed_backup_stays_removed_after_a_power_loss(f, script, code):
    log = f.parent / "log"
    done = preloaded(f, "kill_at", "--durable", "--backup=copy", "--restore", "-c", script, CALL_LOG=str(log))
    assert done.returncode == code and nothing_beside(f), done
    calls = log.read_text().splitlines()
    at = len(calls) - 1 - calls[::-1].index("unlinkat .f.h5.bck")
    assert "fsync " in calls[at:], calls


def test_a_shared_backup_makes_the_file_as_short_as_it_was(f, original):
    grow = f"CREATE /big {{H5T_STD_I64LE (5000) {{{','.join(['7'] * 5000)}}}}}; DELETE /attr_no_such;"
    done = preloaded(f, "share_blocks", "--backup=copy", "--restore", "-c", grow)
    assert done.returncode == 1 and "was put back" in done.stderr, done
    assert f.read_bytes() == original and nothing_beside(f)


def test_who_looks_is_told_of_a_backup(f):
    fail(f)
    for words in (["-c", "SHOW /attr2;"], ["-c", "LIST /;"], ["--dryrun", "-c", "SHOW /attr2;"]):
        result = h5edit(f.parent, *words, "f.h5").ok()
        assert "attr2" in result.out and "h5edit: note: the back-up" in result.err and "--recover f.h5" in result.err
    result = h5edit(f.parent, "--dryrun", "-c", "DELETE /attr2;", "f.h5")
    assert result.code == 1 and "exists already" in result.err, result.describe()


def test_references_are_not_copied_out_of_another_file(f):
    with h5py.File(f.parent / "other.h5", "w") as other:
        other.create_group("there").attrs["reference"] = other["/"].ref
        other["there"].attrs["lists"] = "as it is"
        other["there"].attrs.create("many", [(1, other["/"].ref)], dtype=[("a", "i4"), ("r", h5py.ref_dtype)])
        region = other.create_dataset("d", data=range(4)).regionref[1:3]
        other["there"].attrs["region"] = region
        inner = np.dtype([("r", h5py.regionref_dtype)])
        other["there"].attrs.create("regions", np.array([(1, (region,))], [("a", "i4"), ("in", inner)]))
        other["there"].attrs.create("array", np.array([([other["/"].ref] * 2,)], [("r", h5py.ref_dtype, 2)]))
        lists = np.empty(1, object)
        lists[0] = np.array([other["/"].ref], h5py.ref_dtype)
        other["there"].attrs.create("list", lists, dtype=h5py.vlen_dtype(h5py.ref_dtype))
    with h5py.File(f, "r+") as opened:
        opened["out"] = h5py.ExternalLink("other.h5", "/there")
        opened.attrs["own"] = opened[D1].ref
    before = f.read_bytes()
    for name in ("reference", "many", "region", "regions", "array", "list"):
        result = h5edit(f.parent, "-c", f"COPY /out/{name} /copied;", "f.h5")
        assert result.code == 1 and "holds references" in result.err and ":1:6:" in result.err, result.describe()
        assert f.read_bytes() == before
    h5edit(f.parent, "-c", "COPY /out/lists /copied; COPY /own /own2;", "f.h5").ok()
    with h5py.File(f) as opened:
        assert opened[opened.attrs["own2"]].name == D1


def test_output_that_cannot_be_written_is_an_error(f):
    for words in (["-c", "SHOW /attr1;"], ["--json", "-c", "LIST /;"], ["--recover", "--check"], ["--help"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([str(w) for w in command(*words, "f.h5")], cwd=f.parent, stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=60, env=hdf5.plain_env())
        assert done.returncode == 1 and "standard output could not be written" in done.stderr, (words, done)


def test_an_attribute_that_becomes_longer_keeps_its_maximum(f):
    most = {"endless": (h5py.h5s.UNLIMITED, 2), "fixed": (3, 2), "roomy": (9, 2)}
    with h5py.File(f, "r+") as opened:
        for name, dims in most.items():
            h5py.h5a.create(opened.id, name.encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple((3, 2), dims))
    h5edit(f.parent, "-c", "".join(f"APPEND /{name} {{1,2}};" for name in most), "f.h5").ok()
    with h5py.File(f) as opened:
        spaces = {name: opened.attrs.get_id(name).get_space() for name in most}
        assert {space.shape for space in spaces.values()} == {(4, 2)}
        limits = {name: space.get_simple_extent_dims(True) for name, space in spaces.items()}
    assert limits == {"endless": (h5py.h5s.UNLIMITED, 2), "fixed": (4, 2), "roomy": (9, 2)}
