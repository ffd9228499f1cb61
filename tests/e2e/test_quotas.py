"""The space of accounts: a writer that takes too much gets an error and loses nothing, and no other user notices."""

import signal

import pytest

from harness import hdf5, paths
from harness.process import run, wait_until

QUOTAS = """
[[quota]]
directory = "home/${user}"
head_bytes = "{head}"
history_bytes = "{history}"
max_files = {files}
removed_bytes = "{removed}"
"""


def quotas(head="4MiB", history="1GiB", files=100, removed="1GiB") -> str:
    text = QUOTAS
    for key, value in {"head": head, "history": history, "files": files, "removed": removed}.items():
        text = text.replace("{" + key + "}", str(value))
    return text


WRITE = """
    with h5py.File("{name}", "w") as f:
        f["x"] = np.random.rand({count})
"""

# As "a" mode programs do: a version each.
COMMITS = """
    for n in range({count}):
        with h5py.File("{name}", "a") as f:
            f.require_dataset("d", (20_000,), "f8")[:] = np.random.rand(20_000)
"""

STEPS = """
    f = h5py.File("home/anna/run.h5", "w")
    for n in range(10):
        f[f"d{n}"] = np.random.rand(125_000)
        f.flush()
        print(n, flush=True)
        sys.stdin.readline()
    f.close()
    print("end", flush=True)
"""


def reload(site, tables: str) -> None:
    """The server has read these tables and counted."""
    before = site.server.log().count("reloaded")
    site.server.tables = tables
    config = site.server.directory / "h5mirrord.toml"
    config.write_text(config.read_text().partition("\n[[quota]]")[0] + tables)
    site.server.process.signal(signal.SIGHUP)
    wait_until(lambda: site.server.log().count("reloaded") > before, "no reload is logged")


@pytest.fixture
def homes(bare_site):
    for user in ("anna", "bob"):
        (bare_site.work / "home" / user).mkdir(parents=True)
    return bare_site


@pytest.mark.site(tables=quotas())
def test_a_head_that_would_grow_too_large_stays_whole_and_gets_the_rest_when_there_is_room(homes):
    site = homes
    writer = site.start(site.script(STEPS), talks=True)
    assert writer.line() == "0"
    for n in range(1, 9):
        assert writer.ask("") == str(n)
    wait_until(lambda: 'quota: "home/anna"' in site.server.log(), f"nothing is refused:\n{site.server.log_tail()}")
    spaces = {space["directory"]: space["amounts"] for space in site.json("usage")["usages"][0]["spaces"]}
    amounts = {amount["what"]: amount for amount in spaces["home/anna"]}
    assert amounts["head_bytes"]["limit"] == 4 << 20 and 0 < amounts["head_bytes"]["used"] <= 4 << 20, spaces
    assert amounts["files"]["used"] == 1, spaces
    # A neighbour writes on, in the meantime.
    site.py(WRITE.format(name="home/bob/a.h5", count=250_000))
    site.assert_mirrored("home/bob/a.h5")
    # The file is an earlier state, whole.
    site.wait_for_no_lease("home/anna/run.h5")
    version = site.versions("home/anna/run.h5")[-1]
    with_plain = site.script(f"""
        f = h5py.File({str(site.export("home/anna/run.h5", version))!r})
        for n in range(len(f)):
            assert len(f[f"d{{n}}"][:]) == 125_000
        print(len(f))
    """)
    assert 1 <= int(site.run(with_plain, env=site.plain_env()).ok().out) <= 4
    assert site.head("home/anna/run.h5").stat().st_size <= 4 << 20
    # The program knows of nothing.
    assert writer.ask("") == "9"
    reload(site, quotas(head="40MiB"))
    size = site.local("home/anna/run.h5").stat().st_size
    wait_until(lambda: int(site.status("home/anna/run.h5")["size_bytes"]) == size, "the rest is not brought")
    assert writer.ask("") == "end"
    writer.wait().ok()
    site.assert_mirrored("home/anna/run.h5")


@pytest.mark.site(tables=quotas(files=2))
def test_one_file_too_many_is_only_local(homes):
    site = homes
    for name in ("a", "b"):
        site.py(WRITE.format(name=f"home/anna/{name}.h5", count=1000))
    wait_until(lambda: refuses_a_third(site), "a third file is not refused")
    hdf5.assert_opens(site.local("home/anna/c.h5"))
    assert "of max_files = 2" in site.server.log()
    site.py(WRITE.format(name="home/bob/a.h5", count=1000))
    site.assert_mirrored("home/bob/a.h5")
    # One goes, and there is room for another.
    site.cli("rm", "home/anna/a.h5").ok()

    def takes_another() -> bool:
        site.py("h5py.File('home/anna/c.h5', 'a').attrs['again'] = time.time()")
        return site.exists("home/anna/c.h5")

    wait_until(takes_another, "a file that was removed still counts")
    site.assert_mirrored("home/anna/c.h5")
    # A move and an undelete make no third one either. Removed files are two at most, too.
    wait_until(lambda: len(site.json("ls", "--removed")["files"]) <= 2, "removed files beyond max_files stay")
    back = site.cli("undelete", "home/anna/a.h5")
    assert back.code != 0 and "max_files = 2" in back.err, back.describe()
    move = site.cli("mv", "home/bob/a.h5", "home/anna/bobs.h5")
    assert move.code != 0 and "max_files = 2" in move.err, move.describe()
    site.assert_mirrored("home/bob/a.h5")
    site.cli("mv", "home/anna/b.h5", "home/anna/d.h5").ok()


def refuses_a_third(site) -> bool:
    """True once the first two are counted. What came before is removed again."""
    site.py(WRITE.format(name="home/anna/c.h5", count=1000))
    if not site.exists("home/anna/c.h5"):
        return True
    site.cli("rm", "home/anna/c.h5").ok()
    return False


@pytest.mark.site(tables=quotas(head="1GiB", history="2MiB"))
def test_a_history_over_its_limit_costs_nobody_else_a_version(homes):
    site = homes
    site.py(COMMITS.format(name="home/bob/a.h5", count=10))
    site.py(COMMITS.format(name="home/anna/small.h5", count=3))
    for _ in range(2):
        site.py(COMMITS.format(name="home/anna/a.h5", count=15))
        site.settle("home/anna/a.h5")
    names = ("home/anna/a.h5", "home/anna/small.h5")
    wait_until(lambda: sum(site.status(name)["history_bytes"] for name in names) <= 2 << 20,
               "the account is not thinned")
    assert site.versions("home/bob/a.h5") == list(range(1, 11))
    versions = site.versions("home/anna/a.h5")
    assert versions[-1] == 30 and len(versions) < 30, versions
    assert "history_bytes = 2 MiB" in site.status("home/anna/a.h5")["history_notice"]
    site.assert_mirrored("home/anna/a.h5")


@pytest.mark.site(tables=quotas(head="64MiB", removed="8MiB"))
def test_a_loop_of_writes_and_removals_does_not_fill_the_disk(homes):
    site = homes
    site.py(WRITE.format(name="home/anna/live.h5", count=250_000))
    site.settle("home/anna/live.h5")
    site.py(WRITE.format(name="home/bob/a.h5", count=250_000))
    site.settle("home/bob/a.h5")
    site.cli("rm", "home/bob/a.h5").ok()
    for n in range(12):
        site.py(WRITE.format(name=f"home/anna/{n}.h5", count=250_000))
        site.settle(f"home/anna/{n}.h5")
        site.cli("rm", f"home/anna/{n}.h5").ok()
    removed = site.root / ".h5mirror" / "removed"

    def fits() -> bool:
        return 0 < removed_bytes(site, "home/anna") <= 8 << 20 and disk_bytes(removed) <= (8 + 4) << 20

    wait_until(fits, f"removed files fill the disk:\n{site.server.log_tail()}", 60)
    assert "quota: removed file=\"home/anna/0.h5\"" in site.server.log()
    # The listed files are there: the newest ones, and those of the neighbour, which is below its limit.
    names = [file["name"] for file in site.json("ls", "--removed")["files"]]
    assert names[0] == "home/anna/11.h5" and names[-1] == "home/bob/a.h5", names
    assert names[:-1] == [f"home/anna/{n}.h5" for n in range(11, 11 - len(names[:-1]), -1)], names
    site.cli("undelete", "home/anna/11.h5").ok()
    hdf5.assert_opens(site.head("home/anna/11.h5"))
    site.assert_mirrored("home/anna/live.h5")
    # A restart counts them all again.
    site.server.stop()
    site.server.start()
    wait_until(lambda: 0 < removed_bytes(site, "home/anna") <= 8 << 20, "the restart forgot removed files")


def removed_bytes(site, directory: str) -> int:
    return amount(site, directory, "removed_bytes")["used"]


def amount(site, directory: str, what: str) -> dict:
    for space in site.json("usage")["usages"][0]["spaces"]:
        for each in space["amounts"]:
            if space["directory"] == directory and each["what"] == what:
                return each
    return {"used": 0, "limit": None}


def disk_bytes(directory) -> int:
    sizes = []
    for path in directory.rglob("*"):
        try:
            sizes.append(path.lstat().st_blocks * 512)
        except FileNotFoundError:
            pass  # It goes just now.
    return sum(sizes)


@pytest.mark.site(tables=quotas() + "max_tags = 2\n")
def test_a_tag_beyond_the_limit_is_refused(homes):
    site = homes
    for name in ("home/anna/a.h5", "home/anna/b.h5"):
        site.py(COMMITS.format(name=name, count=2))
        site.settle(name)
    wait_until(lambda: amount(site, "home/anna", "files")["used"] == 2, "the files are not counted")
    site.cli("tag", "home/anna/a.h5@1", "first").ok()
    site.cli("tag", "home/anna/b.h5@1", "first").ok()
    assert amount(site, "home/anna", "tags") == {"what": "tags", "used": 2, "limit": 2, "refused": None}
    refused = site.cli("tag", "home/anna/a.h5@2", "second")
    assert refused.code != 0, refused.describe()
    for part in ("takes 2 of max_tags = 2", '"home/anna"', "[[quota]] (h5mirrord.toml:", "untag"):
        assert part in refused.err, refused.describe()
    assert any("tags 2 of 2" in text for text in site.json("status")["nearly_used"])
    # Each of these is no tag more.
    site.cli("tag", "--force", "home/anna/a.h5@2", "first").ok()
    site.cli("untag", "home/anna/b.h5", "first").ok()
    site.cli("tag", "home/anna/a.h5@1", "second").ok()
    site.cli("mv", "home/anna/a.h5", "home/anna/c.h5").ok()
    refused = site.cli("tag", "home/anna/b.h5@1", "third")
    assert "max_tags = 2" in refused.err, refused.describe()
    # A restart counts tags.
    site.server.stop()
    site.server.start()
    wait_until(lambda: amount(site, "home/anna", "tags")["used"] == 2, "the restart forgot the tags")


def test_check_config_shows_the_tables_and_names_what_is_wrong(homes):
    site = homes
    config = site.directory / "check.toml"
    config.write_text(f'root = "{site.root}"\n' + quotas())
    shown = check(site, config).ok().out
    assert 'directory = "home/${user}"' in shown and "max_files = 100" in shown
    config.write_text(f'root = "{site.root}"\n[[quota]]\ndirectory = "home/*"\nmax_files = 1\n')
    wrong = check(site, config)
    assert wrong.code != 0 and "check.toml:3: directory" in wrong.err, wrong.describe()


def check(site, config):
    return run([paths.BIN / "h5mirrord", "--config", config, "--check-config"], site.logs)
