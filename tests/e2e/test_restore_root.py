"""A server is killed, its root is lost, and the root is rebuilt from the archive alone."""

import json
import shutil
import signal
import stat

import pytest
from harness import hdf5, paths
from harness.process import Process, run, wait_until
from harness.site import Site
from test_archive import s3  # noqa: F401  the fixture

# Archives only on request, with copies of heads.
OPTIONS = {"archive_every": "1h", "archive_after": "0s", "archive_heads": "true"}


def write(site, name, first, end):
    site.py(f"""
        for n in range({first}, {end}):
            with h5py.File("{name}", "a") as f:
                f.attrs["n"] = n
                f.require_dataset("d", (20_000,), "f8")[n * 100:] = np.random.rand(20_000 - n * 100)
    """)
    site.settle(name)


def restore(site, url, *more, root=None, env=None):
    command = [paths.BIN / "h5mirrord", "restore-root", "--archive", url, "--root", root or site.root, "--json", *more]
    return run(command, site.logs, env={**site.plain_env(), **(env or {})}, name="restore-root")


def lose_root(site):
    site.server.kill9()
    shutil.rmtree(site.root)
    site.root.mkdir()


def check(site, *names):
    """All versions that were noted are there, and the checksums of all bytes are right."""
    site.check_kept()
    for name in names:
        assert site.cli("verify", name).ok()


@pytest.fixture
def archive(tmp_path):
    directory = tmp_path / "archive"
    directory.mkdir()
    return directory


@pytest.fixture
def site(tmp_path, archive):
    """Two files with history, of which all is archived."""
    site = Site(tmp_path, options={"archive": f"dir:{archive}", **OPTIONS})
    try:
        site.server.start()
        for name in ("run.h5", "other.h5"):
            write(site, name, 0, 6)
        site.cli("tag", "run.h5@3", "good").ok()
        site.keep("run.h5", "other.h5")
        site.cli("archive", "--all").ok()
        yield site
    finally:
        site.close()


def test_a_lost_root_comes_back_with_all_history(site, archive, tmp_path):
    heads = {name: hdf5.digest(site.head(name)) for name in ("run.h5", "other.h5")}
    write(site, "run.h5", 6, 8)  # No copy has these.
    lose_root(site)
    before = sorted((each, each.stat().st_mtime_ns) for each in archive.rglob("*"))
    shown = json.loads(restore(site, f"dir:{archive}", "--dry-run").ok().out)
    assert not shown["done"] and not list(site.root.iterdir())
    assert [(each["name"], each["version"], each["state"]) for each in shown["files"]] == [
        ("other.h5", 6, "listed"), ("run.h5", 6, "listed")]
    done = json.loads(restore(site, f"dir:{archive}").ok().out)
    assert done["done"] and {each["state"] for each in done["files"]} == {"restored"}
    assert sorted((each, each.stat().st_mtime_ns) for each in archive.rglob("*")) == before
    for name, digest in heads.items():
        assert hdf5.digest(site.head(name)) == digest
    again = restore(site, f"dir:{archive}")
    assert again.code == 5 and "not empty" in again.err, again.describe()
    own = tmp_path / "own"  # The archive is the lost root's.
    own.mkdir()
    site.server.options["archive"] = f"dir:{own}"
    site.server.start()
    check(site, "run.h5", "other.h5")
    assert "good" in site.cli("log", "run.h5").ok().out
    write(site, "other.h5", 6, 8)
    site.keep("other.h5")
    site.cli("archive", "--all").ok()
    lose_root(site)
    restore(site, f"dir:{own}", "--files", "o*").ok()
    assert site.head("other.h5").exists() and not site.head("run.h5").exists()


def test_the_new_root_takes_the_archive_over(site, archive):
    lose_root(site)
    taken = restore(site, f"dir:{archive}", "--take-over").ok()
    assert "archive_heads = true" in taken.err, taken.describe()
    assert not list(site.root.rglob("pages-*"))
    site.server.start()
    check(site, "run.h5", "other.h5")
    write(site, "other.h5", 6, 9)
    site.keep("other.h5")
    site.cli("archive", "--all").ok()
    lose_root(site)
    restore(site, f"dir:{archive}", "--take-over").ok()
    site.server.start()
    check(site, "run.h5", "other.h5")


def test_local_files_that_are_ahead_are_sent_once_told(site, archive):
    write(site, "run.h5", 6, 8)  # No copy has these.
    lose_root(site)
    restore(site, f"dir:{archive}", "--take-over").ok()
    site.server.start()
    refused = site.cli("resync", site.local("run.h5"))
    assert refused.code == 5 and "--from local" in refused.err, refused.describe()
    site.cli("resync", "--from", "local", site.local("run.h5")).ok()
    site.assert_mirrored("run.h5")
    for name, n in (("run.h5", 8), ("other.h5", 6)):
        write(site, name, n, n + 1)
        site.assert_mirrored(name)


def test_a_former_server_stops_using_an_archive_that_was_taken_over(site, archive, tmp_path):
    new = tmp_path / "new"
    new.mkdir()
    restore(site, f"dir:{archive}", "--take-over", root=new).ok()
    write(site, "run.h5", 6, 8)
    refused = site.cli("archive", "run.h5")
    assert refused.code == 5 and "another root" in refused.err, refused.describe()


def killed_within_a_file(site, archive, tmp_path):
    """A root in which a run was killed between the beginning and the end of a file."""
    for n in range(50):
        new = tmp_path / f"new-{n}"
        new.mkdir()
        command = [paths.BIN / "h5mirrord", "restore-root", "--archive", f"dir:{archive}", "--root", new]
        process = Process(command, site.logs, env=site.plain_env(), name="killed")
        try:
            wait_until(lambda: (new / "big.h5").exists() or not process.running(), "it does not begin", every=0.001)
            process.signal(signal.SIGKILL)
            process.wait(60)
        finally:
            process.kill()
        if (new / "big.h5").exists() and not (new / "big.h5.h5m" / "index").exists():
            return new
    raise AssertionError("no run was killed within the file")


def test_a_restore_that_is_killed_goes_on(site, archive, tmp_path):
    site.py("""
        with h5py.File("big.h5", "w") as f:
            f["d"] = np.random.rand(4_000_000)
    """)
    site.settle("big.h5")
    site.cli("archive", "big.h5").ok()
    new = killed_within_a_file(site, archive, tmp_path)
    served = run([paths.BIN / "h5mirrord", "--root", new, "--listen", "127.0.0.1:0"], site.logs, name="early")
    assert served.code == 5 and "restore-root again" in served.err, served.describe()
    shutil.copytree(new, tmp_path / "others")
    assert json.loads(restore(site, f"dir:{archive}", root=new).ok().out)["done"]
    for name in ("big.h5", "run.h5", "other.h5"):
        assert (new / name).read_bytes() == site.head(name).read_bytes()
    # Half of a file that the next run leaves out is not served as a file.
    restore(site, f"dir:{archive}", "--files", "run.h5", root=tmp_path / "others").ok()
    assert not list((tmp_path / "others").glob("big.h5*"))
    assert not (tmp_path / "others" / ".h5mirror" / "restore").exists()


def test_files_without_a_copy_are_told_of(site, archive, tmp_path):
    new = tmp_path / "new"
    new.mkdir()
    owner = (archive / "root").read_bytes()
    for more in (["--files", "no*"], ["--files", "no*", "--dry-run"]):
        none = restore(site, f"dir:{archive}", *more, root=new)
        assert none.code == 1 and "--files names" in none.err, none.describe()
    ids = {each["name"]: each["file_id"] for each in
           json.loads(restore(site, f"dir:{archive}", "--dry-run", root=new).ok().out)["files"]}

    def forget_copies(name):
        for each in (archive / "files" / ids[name]).glob("copy-*"):
            each.unlink()

    forget_copies("run.h5")
    left = restore(site, f"dir:{archive}", root=new)
    states = {each["file_id"]: each["state"] for each in json.loads(left.out)["files"]}
    assert left.code == 1 and states == {ids["run.h5"]: "no copy", ids["other.h5"]: "restored"}, left.describe()
    assert not json.loads(left.out)["done"]
    restore(site, f"dir:{archive}", "--skip-damaged", root=new).ok()
    some = restore(site, f"dir:{archive}", "--files", "o*", "--dry-run", root=new)
    assert some.code == 0 and "no whole copy: 1" in some.err, some.describe()
    forget_copies("other.h5")
    empty = tmp_path / "empty"
    empty.mkdir()
    for more in ([], ["--take-over"], ["--skip-damaged"], ["--dry-run"]):
        none = restore(site, f"dir:{archive}", *more, root=empty)
        assert none.code == 1 and "archive_heads" in none.err, none.describe()
        assert not list(empty.iterdir())
    assert (archive / "root").read_bytes() == owner


def test_the_operators_umask_does_not_count(site, archive, tmp_path):
    new = tmp_path / "new"
    new.mkdir()
    command = ["sh", "-c", 'umask 077; exec "$0" "$@"', paths.BIN / "h5mirrord", "restore-root", "--archive",
               f"dir:{archive}", "--root", new]
    run(command, site.logs, env=site.plain_env(), name="restore-root").ok()
    assert (new / "run.h5").stat().st_mode == site.head("run.h5").stat().st_mode


def test_a_damaged_object_is_named_and_its_file_left_out(site, archive, tmp_path):
    new = tmp_path / "new"
    new.mkdir()
    wrong = sorted(archive.rglob("*data-000000"))[0]
    name = next(each for each in json.loads(restore(site, f"dir:{archive}", "--dry-run", root=new).ok().out)["files"]
                if each["file_id"] in str(wrong))["name"]
    data = bytearray(wrong.read_bytes())
    data[len(data) // 2] ^= 1
    wrong.write_bytes(data)
    failed = restore(site, f"dir:{archive}", root=new)
    assert failed.code == 1 and str(wrong.relative_to(archive)) in failed.err, failed.describe()
    states = {each["name"]: each["state"] for each in json.loads(failed.out)["files"]}
    assert states.pop(name) == "damaged" and set(states.values()) == {"restored"}
    assert not (new / name).exists()
    restore(site, f"dir:{archive}", "--skip-damaged", root=new).ok()
    assert not (new / ".h5mirror" / "restoring").exists()


def test_parts_of_a_cluster_that_are_odd(site, archive, tmp_path):
    """Directories like those of a cluster, one of which is not of a cell; and names that an attacker chose."""
    cells = tmp_path / "all" / "cells"
    cells.mkdir(parents=True)
    url = f"dir:{cells.parent}"
    for name in ("p", "q", "_2e_2e_2fout", "_2ftmp_2fout"):
        shutil.copytree(archive, cells / name)
    (cells / "odd" / "files").mkdir(parents=True)
    (cells / "odd" / "files" / "x").write_text("of nobody")
    new = tmp_path / "new"
    assert restore(site, url, "--skip-damaged", root=new).code == 3 and not new.exists(), "as without its disk"
    new.mkdir()
    partly = restore(site, url, root=new)
    assert partly.code == 1 and "odd" in partly.err and "lacks the object" in partly.err, partly.describe()
    done = json.loads(restore(site, url, "--skip-damaged", root=new).ok().out)
    assert sorted((each["name"], each["state"]) for each in done["files"]) == [
        ("", "no root"), ("p/other.h5", "there"), ("p/run.h5", "there"), ("q/other.h5", "there"), ("q/run.h5", "there")]
    assert sorted(each.name for each in new.iterdir()) == ["p", "q"] and not (tmp_path / "out").exists()
    # A run that was killed after it had ended one cell.
    shutil.rmtree(new / "q")
    id_of = (archive / "root").read_text().split("\n")[1]
    assert restore(site, url, "--skip-damaged", root=new).code == 5
    (new / "p" / ".h5mirror" / "restored").write_text(id_of)
    done = json.loads(restore(site, url, "--skip-damaged", root=new).ok().out)
    assert {each["name"]: each["state"] for each in done["files"] if each["name"]} == {
        "p/other.h5": "there", "p/run.h5": "there", "q/other.h5": "restored", "q/run.h5": "restored"}
    assert not list(new.rglob("restored")) and not list(new.rglob("restoring"))
    # A cell within another one; and another root's archive in the same place.
    shutil.copytree(archive, cells / "p_2fdeep")
    inner = restore(site, url, "--skip-damaged", "--dry-run", root=new)
    assert inner.code == 1 and "lie in each other" in inner.err, inner.describe()
    shutil.rmtree(cells / "p_2fdeep")
    shutil.copy(archive / "root", cells.parent / "root")
    both = restore(site, url, "--skip-damaged", "--dry-run", root=new)
    assert both.code == 1 and "as that of a cluster" in both.err, both.describe()
    assert json.loads(restore(site, url, "--cell", "q", "--dry-run", root=new).ok().out)["files"]


def test_command_lines_that_are_wrong(site, archive, tmp_path):
    assert restore(site, "somewhere", root=tmp_path).code == 2
    assert restore(site, f"dir:{archive}", "--take-over", "--files", "a*").code == 2
    assert restore(site, f"dir:{archive}", root=tmp_path / "no").code == 3
    assert restore(site, f"dir:{archive}", root=site.root).code == 5
    empty = tmp_path / "empty"
    empty.mkdir()
    none = restore(site, f"dir:{empty}", root=empty)
    assert none.code == 1 and "no archive of a root" in none.err, none.describe()


def check_that_each_run_waits(site, url, tmp_path):
    """Waits until a former server has noticed; even if the run before was killed meanwhile."""
    new = tmp_path / "taken"
    new.mkdir()
    command = [paths.BIN / "h5mirrord", "restore-root", "--archive", url, "--root", new, "--take-over"]
    for _ in range(2):
        process = Process(command, site.logs, env=site.plain_env(), name="waits")
        try:
            wait_until(lambda: "waits" in process.err() or not process.running(), "it does not wait")
            assert process.running(), process.wait().describe()
            assert (new / ".h5mirror" / "archive").read_text().endswith(" new\n")
        finally:
            process.kill()


def test_a_root_comes_back_from_s3(tmp_path, s3):  # noqa: F811
    url, env, _ = s3
    keys = tmp_path / "keys"
    keys.write_text(f"[default]\naws_access_key_id = {env['AWS_ACCESS_KEY_ID']}\n"
                    f"aws_secret_access_key = {env['AWS_SECRET_ACCESS_KEY']}\n")
    keys.chmod(stat.S_IRUSR | stat.S_IWUSR)
    url = f"{url}&credentials={keys}"
    site = Site(tmp_path, options={"archive": url, **OPTIONS})
    try:
        site.server.start()
        write(site, "run.h5", 0, 6)
        site.keep("run.h5")
        site.cli("archive", "run.h5").ok()
        write(site, "run.h5", 6, 8)
        site.keep("run.h5")
        site.cli("archive", "run.h5").ok()
        lose_root(site)
        restore(site, url).ok()
        del site.server.options["archive"]
        site.server.start()
        check(site, "run.h5")
        check_that_each_run_waits(site, url, tmp_path)
    finally:
        site.close()
