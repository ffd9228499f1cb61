"""A version as a new file of its own, and the way back: fork and promote, of real files, beside writers, with rights."""

import itertools

import pytest

from harness import hdf5, paths
from harness.process import wait_until
from harness.users import ANNA, BOB, CAROL, needs_root, running_host

OK, HIDDEN, REFUSED, DENIED = 0, 3, 5, 8

# Acts as a file system that shares blocks; most file systems below tests do not.
SHARES_BLOCKS = {"LD_PRELOAD": str(paths.TEST_BIN / "libe2e_share_blocks.so")}

WRITER = """
    with h5py.File("run.h5", "a") as f:
        d = f.require_dataset("live", (100_000,), "f8")
        n = 0
        while not os.path.exists("stop"):
            n += 1
            d[:] = n
            f.attrs["n"] = n
            f.flush()
"""


@pytest.fixture
def two(site):
    """A site whose run.h5 has the versions 1 and 2."""
    for n in (1, 2):
        site.edit("run.h5", f"f.attrs['n'] = {n}\nf.require_dataset('d', (200_000,), 'f8')[:] = {n}")
    site.keep("run.h5")
    return site


def bring(site, name):
    """The server's file as a local one, which programs write from then on."""
    (site.work / name).parent.mkdir(exist_ok=True)
    site.cli("recover", site.work / name, "--name", name).ok()


def value_of(site, name, version="latest"):
    """Of the attribute n, in a version on the server; the first number of d must agree."""
    script = site.script(f"""
        f = h5py.File({str(site.export(name, version))!r})
        assert f["d"][0] == f.attrs["n"], (f["d"][0], f.attrs["n"])
        print(f.attrs["n"])
    """)
    return int(site.run(script, env=site.plain_env()).ok().out)


def verify(site, *names):
    for name in names:
        site.cli("verify", name).ok()


@pytest.mark.parametrize("version", [1, 2])
def test_a_fork_has_the_bytes_and_a_life_of_its_own(two, version):
    made = two.json("fork", f"run.h5@{version}", "new/trial.h5", "-m", "a try")
    assert made["version"]["version"] == 1 and made["version"]["comment"] == "a try"
    assert made["version"]["source"]["name"] == "run.h5" and made["version"]["source"]["version"] == version
    assert hdf5.digest(two.export("new/trial.h5", 1)) == hdf5.digest(two.export("run.h5", version))
    two.settle("new/trial.h5")
    hdf5.assert_opens(two.head("new/trial.h5"))
    two.keep("new/trial.h5")
    bring(two, "new/trial.h5")
    two.edit("new/trial.h5", "f.attrs['n'] = 7\nf['d'][:] = 7")
    two.edit("run.h5", "f.attrs['n'] = 3\nf['d'][:] = 3")
    assert value_of(two, "new/trial.h5") == 7 and value_of(two, "run.h5") == 3
    assert two.status("new/trial.h5")["file_id"] != two.status("run.h5")["file_id"]
    two.assert_mirrored("new/trial.h5")
    two.check_kept()
    verify(two, "run.h5", "new/trial.h5")


def test_what_a_fork_is_of_is_told_when_the_source_is_gone(two):
    two.cli("fork", "run.h5@1", "trial.h5").ok()
    bring(two, "trial.h5")
    two.edit("trial.h5", "f.attrs['n'] = 5\nf['d'][:] = 5")
    two.kept.pop("run.h5")
    two.cli("prune", "run.h5", "--keep-last", "1").ok()
    verify(two, "trial.h5")
    assert value_of(two, "trial.h5", 1) == 1
    two.cli("prune", "trial.h5", "--keep-last", "1").ok()
    two.cli("rm", "run.h5").ok()
    two.server.stop()
    two.server.start()
    source = two.status("trial.h5")["forked_from"]
    assert (source["kind"], source["name"], source["version"]) == ("fork", "run.h5", 1)
    assert "fork of:      run.h5@1, forked at " in two.cli("status", "trial.h5").ok().out
    verify(two, "trial.h5")


def test_a_fork_is_refused_in_a_line(two):
    two.cli("fork", "run.h5@2", "trial.h5").ok()
    for arguments, code, words in ((("run.h5@2", "trial.h5"), REFUSED, "trial.h5 exists"),
                                   (("run.h5@9", "b.h5"), HIDDEN, "no version 9"),
                                   (("none.h5@1", "b.h5"), HIDDEN, "none.h5"),
                                   (("run.h5@1", "/b.h5"), 2, "absolute"),
                                   (("run.h5@1", "b.h5.h5m"), 2, "the store's own")):
        result = two.cli("fork", *arguments)
        assert result.code == code and words in result.err, result.describe()
        assert result.err.count("\n") == 1, result.describe()
    assert not two.exists("b.h5") and not two.head("b.h5.h5m").exists()


@pytest.mark.parametrize("shares", [pytest.param(False, id="copies"), pytest.param(True, id="shares_blocks")])
def test_forks_beside_a_writer_are_whole(bare_site, shares):
    site = bare_site
    if shares:
        site.server.stop()
        site.server.env = SHARES_BLOCKS
        site.server.start()
    site.edit("run.h5", "f.attrs['n'] = 1\nf['d'] = np.full(400_000, 1.0)")
    writer = site.start(site.script(WRITER))
    forks = [f"fork-{n}.h5" for n in range(6)]
    for n, fork in enumerate(forks):
        cut = int(site.status("run.h5")["last_cut"])
        site.cli("commit", "run.h5").ok()
        wait_until(lambda c=cut: int(site.status("run.h5")["last_cut"]) > c, "the writer makes no cut")
        source = "run.h5@1" if n % 2 else "run.h5@latest"
        made = site.json("fork", source, fork)
        assert made["from_version"] == 1 or n % 2 == 0
    (site.work / "stop").touch()
    writer.wait(60).ok()
    site.assert_mirrored("run.h5")
    for fork in forks:
        site.settle(fork)
        source = site.json("show", f"{fork}@1")["version"]["source"]["version"]
        assert hdf5.digest(site.export(fork, 1)) == hdf5.digest(site.export("run.h5", source)), fork
        assert hdf5.digest(site.head(fork)) == hdf5.digest(site.export(fork, 1)), fork
    verify(site, "run.h5", *forks)


def test_a_correction_comes_back(two):
    two.cli("fork", "run.h5@2", "trial.h5").ok()
    bring(two, "trial.h5")
    two.edit("trial.h5", "f.attrs['n'] = 9\nf['d'][:] = 9\nf['note'] = 'corrected'")
    tried = two.json("promote", "trial.h5", "run.h5", "--dry-run")
    assert tried["dry_run"] and tried["differing_bytes"] > 1_600_000 and two.versions("run.h5") == [1, 2]
    made = two.json("promote", "trial.h5", "run.h5", "-m", "the correction")
    assert made["fork_version"] == 2 and made["version"]["version"] == 3 and not made["unchanged"]
    assert hdf5.digest(two.export("run.h5", 3)) == hdf5.digest(two.export("trial.h5", 2))
    shown = two.cli("show", "run.h5@3").ok().out
    assert "promoted:     trial.h5@2, taken over at " in shown and "the correction" in shown, shown
    # The local file follows when it is told to, and goes on.
    two.cli("recover", two.local("run.h5")).ok()
    two.assert_mirrored("run.h5")
    # Again from the same fork: only its later changes.
    two.edit("trial.h5", "f.attrs['n'] = 10\nf['d'][:] = 10")
    two.cli("promote", "trial.h5", "run.h5").ok()
    assert value_of(two, "run.h5") == 10
    assert two.json("promote", "trial.h5", "run.h5")["unchanged"]
    assert two.versions("run.h5") == [1, 2, 3, 4]
    two.check_kept()
    verify(two, "run.h5", "trial.h5")


def test_a_promotion_survives_a_killed_server(two):
    two.cli("fork", "run.h5@2", "trial.h5").ok()
    bring(two, "trial.h5")
    for n in (11, 12):
        two.edit("trial.h5", f"f.attrs['n'] = {n}\nf['d'][:] = {n}")
        two.cli("promote", "trial.h5", "run.h5").ok()
        two.server.kill9()
        two.server.start()
        assert value_of(two, "run.h5") == n
    assert two.versions("run.h5") == [1, 2, 3, 4]
    two.settle("run.h5")
    two.check_kept()
    verify(two, "run.h5")


def test_a_promotion_to_a_file_that_moved_on_is_refused(two):
    two.cli("fork", "run.h5@2", "trial.h5").ok()
    bring(two, "trial.h5")
    two.edit("trial.h5", "f.attrs['n'] = 9\nf['d'][:] = 9")
    two.edit("run.h5", "f.attrs['n'] = 3\nf['d'][:] = 3")
    refused = two.cli("promote", "trial.h5", "run.h5")
    assert refused.code == REFUSED and "h5mirror diff run.h5@2 run.h5@latest" in refused.err, refused.describe()
    assert two.cli("promote", "run.h5", "trial.h5").code == REFUSED
    assert two.versions("run.h5") == [1, 2, 3]
    two.check_kept()


def test_a_promotion_does_not_come_between_a_writer_and_its_file(two):
    two.cli("fork", "run.h5@2", "trial.h5").ok()
    bring(two, "trial.h5")
    two.edit("trial.h5", "f.attrs['n'] = 9\nf['d'][:] = 9")
    cut = int(two.status("run.h5")["last_cut"])
    writer = two.start(two.script(WRITER))
    wait_until(lambda: int(two.status("run.h5")["last_cut"]) > cut, "the writer makes no cut")
    for more in ((), ("--dry-run",)):
        refused = two.cli("promote", "trial.h5", "run.h5", *more)
        assert refused.code == REFUSED and "is being written by" in refused.err, refused.describe()
    (two.work / "stop").touch()
    writer.wait(60).ok()
    two.assert_mirrored("run.h5")
    assert two.cli("promote", "trial.h5", "run.h5").code == REFUSED, "it has moved on"
    two.check_kept()


QUOTA = '\n[[quota]]\ndirectory = "small"\nhead_bytes = "1MiB"\n'


@pytest.mark.site(tables=QUOTA)
def test_a_fork_takes_all_of_its_size_from_the_quota(bare_site):
    site = bare_site
    site.edit("run.h5", "f.attrs['n'] = 1\nf['d'] = np.full(200_000, 1.0)")
    names = (f"small/{n}.h5" for n in itertools.count())
    # Until the server has counted all files, no limit holds.
    wait_until(lambda: site.cli("fork", "run.h5@1", next(names)).code != OK, "the quota refuses nothing")
    refused = site.cli("fork", "run.h5@1", "small/one-more.h5")
    assert refused.code == 1 and "head_bytes" in refused.err, refused.describe()
    assert not site.exists("small/one-more.h5") and not site.head("small/one-more.h5.h5m").exists()
    site.cli("fork", "run.h5@1", "other/run.h5").ok()
    verify(site, "other/run.h5")


@needs_root
def test_rights_to_both_files_decide(tmp_path):
    with running_host(tmp_path) as host:
        host.fill()
        home, his = f"home/{ANNA}", f"home/{BOB}"
        host.attempt([
            (ANNA, OK, "fork", f"{home}/a.h5@1", f"{home}/trial.h5"),
            (ANNA, OK, "promote", f"{home}/trial.h5", f"{home}/a.h5"),
            (ANNA, OK, "fork", "beamline/a.h5@1", f"{home}/beam.h5"),
            (ANNA, DENIED, "fork", f"{home}/a.h5@1", "beamline/b.h5"),
            (ANNA, HIDDEN, "fork", f"{home}/a.h5@1", f"{his}/b.h5"),
            (BOB, HIDDEN, "fork", f"{home}/a.h5@1", f"{his}/b.h5"),
            (BOB, HIDDEN, "fork", f"{home}/none.h5@1", f"{his}/b.h5"),
            (BOB, HIDDEN, "promote", f"{home}/trial.h5", f"{home}/a.h5"),
            # Read and write, and no right to restore.
            (CAROL, OK, "fork", "beamline/a.h5@1", "beamline/fork.h5"),
            (CAROL, DENIED, "promote", "beamline/fork.h5", "beamline/a.h5"),
            ("robot", DENIED, "fork", f"{home}/a.h5@1", f"{home}/robot.h5"),
        ])
        shown = host.run(ANNA, "status", f"{home}/beam.h5").ok().out
        assert "fork of:      beamline/a.h5@1, forked at" in shown and f" by {ANNA}" in shown, shown
        assert host.site.head(f"{home}/trial.h5").exists() and not host.site.head(f"{his}/b.h5").exists()


def test_python_forks_and_promotes(package):
    out = package.py("""
    import h5py
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["x"] = [1.0, 2.0]
    made = h5mirror.fork(URL + "@1", "trial.h5", comment="a try")
    print(made.number, made.comment, [v.number for v in h5mirror.versions(URL.replace("run.h5", "trial.h5"))])
    print(h5mirror.promote(URL.replace("run.h5", "trial.h5"), "run.h5").number)
    try:
        h5mirror.fork(URL, "trial.h5")
    except OSError as error:
        print(error.errno)
    try:
        h5mirror.promote(URL, "h5mirror://elsewhere:1/run.h5")
    except ValueError as error:
        print("both must be on one server" in str(error))
    """)
    assert out.splitlines() == ["1 a try [1]", "1", "16", "True"], out
