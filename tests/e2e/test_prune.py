"""Versions are dropped by a policy, beside a writer; retained versions read as before."""

import time

import pytest

WRITE = """
    for n in range({first}, {end}):
        with h5py.File("run.h5", "a") as f:
            f.attrs["n"] = n
            f.require_dataset("d", (20_000,), "f8")[:] = np.random.rand(20_000)
"""


@pytest.fixture
def twenty(site):
    """A site whose run.h5 has the versions 1 to 20; each holds its number, less one, in `n`."""
    site.py(WRITE.format(first=0, end=20))
    site.settle("run.h5")
    site.cli("tag", "run.h5@5", "published").ok()
    return site


def number_in(site, version):
    script = site.script(f"print(h5py.File({str(site.export('run.h5', version))!r}).attrs['n'])")
    return int(site.run(script, env=site.plain_env()).ok().out)


def pages_bytes(site):
    return sum(each.stat().st_size for each in (site.root / "run.h5.h5m").glob("pages-*"))


def test_an_empty_policy_is_refused_with_a_lesson(twenty):
    refused = twenty.cli("prune", "run.h5")
    assert refused.code == 2 and "--keep-daily 7" in refused.err and "--dry-run" in refused.err, refused.describe()
    for bad in (("--keep-last", "-1"), ("--keep-within", "tuesday"), ("--keep-tag", "no tag")):
        assert twenty.cli("prune", "run.h5", *bad).code == 2, bad
    assert len(twenty.versions("run.h5")) == 20


def test_a_dry_run_shows_the_plan_and_drops_nothing(twenty):
    shown = twenty.cli("prune", "run.h5", "--keep-last", "2", "--keep-tag", "published", "--dry-run").ok()
    assert "keep 3 versions:" in shown.out and "drop 17 versions:" in shown.out, shown.out
    assert "newest, last" in shown.out and "tag published" in shown.out, shown.out
    plan = twenty.json("prune", "run.h5", "--keep-last", "2", "--keep-tag", "published", "--dry-run")
    assert [each["version"] for each in plan["keep"]] == [20, 19, 5]
    assert plan["keep"][2]["kept_by"] == ["tag published"] and len(plan["drop"]) == 17
    assert len(twenty.versions("run.h5")) == 20


def test_what_is_kept_reads_as_before_and_the_space_comes_back(twenty):
    before = pages_bytes(twenty)
    done = twenty.json("prune", "run.h5", "--keep-last", "2", "--keep-tag", "published")
    assert done["versions_dropped"] == 17
    assert twenty.versions("run.h5") == [5, 19, 20]
    assert [number_in(twenty, version) for version in (5, 19, 20)] == [4, 18, 19]
    assert pages_bytes(twenty) < before / 4 and done["freed_bytes"] == before - pages_bytes(twenty)
    gone = twenty.cli("export", "run.h5@7", "-")
    assert gone.code == 3 and "pruned" in gone.err, gone.describe()
    twenty.server.kill9()
    twenty.server.start()
    assert [number_in(twenty, version) for version in (5, 19, 20)] == [4, 18, 19]
    twenty.py(WRITE.format(first=20, end=21))
    assert twenty.versions("run.h5") == [5, 19, 20, 21]


def test_a_file_is_pruned_while_it_is_written(twenty):
    writer = twenty.start(twenty.script("""
        n = 20
        while not os.path.exists("stop"):
            with h5py.File("run.h5", "a") as f:
                f.attrs["n"] = n
                f["d"][:] = np.random.rand(20_000)
            n += 1
    """))
    for keep in ("15", "10", "5"):
        time.sleep(0.5)
        twenty.cli("prune", "run.h5", "--keep-last", keep, "--keep-tag", "published").ok()
    (twenty.work / "stop").touch()
    writer.wait().ok()
    twenty.settle("run.h5")
    versions = twenty.versions("run.h5")
    assert versions[0] == 5
    assert [number_in(twenty, version) for version in versions[:6]] == [version - 1 for version in versions[:6]]
