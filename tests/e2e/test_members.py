"""Family, split and multi files: each member is mirrored, and a cut is one over all of them.

The tests that need members of different moments send a change through `bandwidth`: the small member's cut is on
the server while the large one's still takes seconds. A kill in between leaves just that.
"""

import filecmp
import json
import shutil
import signal

import pytest

from harness.process import wait_until

# FAPL is the list of a file "a.h5" or "a%d.h5", whose members are opened by the environment's driver.
LISTS = """
import ctypes
def new(): return h5py.h5p.create(h5py.h5p.FILE_ACCESS)
def family():
    fapl = new()
    fapl.set_fapl_family(256 << 10, new())
    return b"a%d.h5", fapl
def split():
    fapl = new()
    fapl.set_fapl_split(b"-m.h5", new(), b"-r.h5", new())
    return b"a.h5", fapl
def multi():
    [library] = {line.split()[-1] for line in open("/proc/self/maps") if "/libhdf5-" in line}
    set_multi = ctypes.CDLL(library).H5Pset_fapl_multi
    set_multi.argtypes = [ctypes.c_int64] + [ctypes.c_void_p] * 4 + [ctypes.c_bool]
    fapl, members = new(), [new() for _ in range(7)]
    assert set_multi(fapl.id, None, (ctypes.c_int64 * 7)(*[each.id for each in members]), None, None, True) >= 0
    return b"a.h5", fapl
NAME, FAPL = DRIVER()
def create(): return h5py.File(h5py.h5f.create(NAME, fapl=FAPL))
def change(): return h5py.File(h5py.h5f.open(NAME, h5py.h5f.ACC_RDWR, fapl=FAPL))
def read(): return h5py.File(h5py.h5f.open(NAME, h5py.h5f.ACC_RDONLY, fapl=FAPL))
"""
MEMBERS = {"family": ["a0.h5", "a1.h5", "a2.h5"], "split": ["a.h5-m.h5", "a.h5-r.h5"],
           "multi": ["a.h5-s.h5", "a.h5-b.h5", "a.h5-r.h5", "a.h5-g.h5", "a.h5-l.h5", "a.h5-o.h5"]}
# The state n: all data, and an attribute beside it in the metadata.
ROWS = 75_000
STATE = """
    def put(f, n):
        f.require_dataset("d", (ROWS,), "f8")[:] = n
        f.attrs["n"] = n
    def state(f):
        n = int(f.attrs["n"])
        assert (f["d"][:] == n).all(), (n, f["d"][:])
        return n
""".replace("ROWS", str(ROWS))
READ = "with read() as f: print(state(f))"
# Puts a state at each line that comes in.
WRITER = """
    f = OPEN()
    for line in sys.stdin:
        put(f, int(line))
        f.flush()
        print("flushed", flush=True)
    f.attrs["end"] = 1
    f.close()
"""


class Members:
    """A site and one of the drivers."""

    def __init__(self, site, driver: str):
        self.site, self.driver, self.names = site, driver, MEMBERS[driver]
        # At 24 KiB/s a member of 256 KiB or more takes 10 s, these take less than 4 s.
        self.large = {"family": "a1.h5", "split": "a.h5-r.h5", "multi": "a.h5-r.h5"}[driver]
        self.small = {"family": "a2.h5", "split": "a.h5-m.h5", "multi": "a.h5-s.h5"}[driver]

    def script(self, text: str) -> list:
        indented = "\n".join(line.removeprefix("    ") for line in (STATE + "\n" + text).splitlines())
        return self.site.script(LISTS.replace("DRIVER()", self.driver + "()") + indented)

    def run(self, text: str, **options):
        return self.site.run(self.script(text), **options)

    def start(self, open: str = "create", **keys):
        return self.site.start(self.script(WRITER.replace("OPEN", open)), config=self.site.config(**keys), talks=True)

    def make(self) -> None:
        """State 1, in a cut of all members."""
        self.run("f = create(); put(f, 1); f.close()").ok()
        for name in self.names:
            self.site.settle(name)

    def groups(self, name: str) -> list[tuple[str, int]]:
        """The cuts of its versions, oldest first."""
        return [(each["group"]["id"], each["group"]["number"]) for each in reversed(self.site.log(name)) if "group" in each]

    def numbers(self, name: str) -> list[int]:
        return [number for _, number in self.groups(name)] if self.site.exists(name) else []

    def wait_for(self, number: int) -> None:
        """Waits until every member has a version of a cut."""
        for name in self.names:
            wait_until(lambda: number in self.numbers(name), f"{name} is in no cut {number}", 120)

    def reader(self, **keys) -> str:
        return self.site.run(self.script(READ), config=self.site.config(mode="reader", **keys)).ok().out.strip()

    def local_state(self) -> int:
        return int(self.run(READ, env=self.site.plain_env()).ok().out)

    def tear(self):
        """Has the small member in a cut of state 2 that the large one lacks; the writer stands still then."""
        self.make()
        before = len(self.groups(self.small))
        writer = self.start("change", bandwidth="24KiB", timeout="1s", linger="1s")
        writer.popen.stdin.write(b"2\n")
        writer.popen.stdin.flush()
        wait_until(lambda: len(self.groups(self.small)) > before, f"{self.small} is in no new cut", 120)
        writer.signal(signal.SIGSTOP)
        assert len(self.groups(self.large)) == before, f"{self.large} is as fast; nothing is torn"
        return writer

    def killed_between(self) -> None:
        """The members as a kill between their cuts leaves them: that of state 1 is whole, that of 2 is not."""
        self.tear().kill()
        for name in self.names:
            self.site.wait_for_no_lease(name)


@pytest.fixture(params=["family", "split", "multi"])
def members(site, request):
    return Members(site, request.param)


def test_a_flush_and_a_close_are_each_one_cut_of_all_members(members):
    writer = members.start()
    assert [writer.ask(state) for state in ("1", "2")] == ["flushed"] * 2
    writer.popen.stdin.close()
    writer.wait().ok()
    members.wait_for(3)
    first = members.groups(members.names[0])
    assert [number for _, number in first] == [1, 2, 3] and len({id for id, _ in first}) == 1, first
    for name in members.names:
        assert members.groups(name) == first, name
        members.site.settle(name)
        assert filecmp.cmp(members.site.head(name), members.site.local(name), shallow=False), name


def test_the_next_open_goes_on_with_cuts_of_its_own(members):
    members.make()
    members.run("f = change(); put(f, 2); f.close()").ok()
    for name in members.names:
        members.site.settle(name)
        assert [number for _, number in members.groups(name)] == [1, 1], name
    assert len({id for id, _ in members.groups(members.names[0])}) == 2
    assert members.reader() == "2" and members.reader(version="1") == "1"


def test_an_untouched_open_makes_no_cut(members):
    members.make()
    before = [members.groups(name) for name in members.names]
    members.run("f = change(); print(state(f)); f.close()").ok()
    assert [members.groups(name) for name in members.names] == before


def test_after_a_kill_between_two_members_all_are_recovered_to_one_moment(members):
    site = members.site
    members.killed_between()
    named = site.local(members.names[-1])
    dry = site.cli("recover", "--dry-run", named).ok()
    assert "would" in dry.said, dry.describe()
    assert members.run("with read() as f: print(f.attrs['n'])", env=site.plain_env()).out != "1\n", "nothing was changed"
    site.cli("recover", named).ok()
    assert members.local_state() == 1
    for name in members.names:
        site.settle(name)
        assert filecmp.cmp(site.head(name), site.local(name), shallow=False), name
    # It is written on from there, and mirrored.
    members.run("f = change(); put(f, 7); f.close()").ok()
    assert members.reader() == "7"
    for name in members.names:
        assert site.record(name)["state"] == "clean", name


def test_a_second_recovery_changes_nothing(members):
    site = members.site
    members.killed_between()
    site.cli("recover", site.local(members.names[0])).ok()
    versions = [site.versions(name) for name in members.names]
    site.cli("recover", site.local(members.names[-1])).ok()
    assert [site.versions(name) for name in members.names] == versions and members.local_state() == 1


def test_a_reader_beside_a_writer_sees_the_cut_that_all_members_have(members):
    writer = members.tear()
    assert members.reader() == "1"
    writer.signal(signal.SIGCONT)
    before = len(members.groups(members.small))
    wait_until(lambda: len(members.groups(members.large)) == before, f"{members.large} is in no new cut", 120)
    for name in members.names:
        wait_until(lambda: len(members.groups(name)) == before, f"{name} is in no new cut", 120)
    assert members.reader() == "2"


def test_a_version_of_the_first_member_is_one_of_all(members):
    site = members.site
    writer = members.start()
    for state in range(1, 5):  # The cut before a whole one is needed no more, and may be pruned.
        assert writer.ask(str(state)) == "flushed"
        members.wait_for(state)
    writer.popen.stdin.close()
    writer.wait().ok()
    members.wait_for(5)
    first = members.names[0]
    shutil.rmtree(site.work)
    site.work.mkdir()
    of_number = {number: each["version"] for each in site.log(first) for number in [each["group"]["number"]]}
    assert [members.reader(version=str(of_number[number])) for number in (1, 2, 3)] == ["1", "2", "3"]
    site.cli("tag", f"{first}@{of_number[2]}", "good").ok()
    assert members.reader(version="tag:good") == "2"
    # A member that has lost it: the tag is refused, a request by time goes back further.
    [lost] = [each["version"] for each in site.log(members.large) if each["group"]["number"] == 2]
    drop_version(site, members.large, int(lost))
    refused = members.run(READ, config=site.config(mode="reader", version="tag:good"))
    # HDF5's split and multi drivers drop the reason.
    assert refused.code != 0, refused.describe()
    assert members.driver != "family" or f"{members.large} has no version" in refused.err, refused.describe()
    [time] = [each["time"] for each in site.log(first) if each["group"]["number"] == 2]
    assert members.reader(version=time) == "1"


def drop_version(site, name: str, version: int) -> None:
    """Prunes one version: all others have tags."""
    keep = []
    for each in site.versions(name):
        if each != version:
            site.cli("tag", f"{name}@{each}", f"keep-{each}").ok()
            keep += ["--keep-tag", f"keep-{each}"]
    site.cli("prune", name, *keep).ok()
    assert version not in site.versions(name)


def test_a_member_that_is_gone_from_the_server_is_named(members):
    site = members.site
    members.make()
    site.cli("rm", members.large).ok()
    local = site.local(members.names[0])
    before = local.read_bytes()
    refused = site.cli("recover", local)
    assert refused.code != 0 and members.names[0] in refused.said, refused.describe()
    assert local.read_bytes() == before and site.versions(members.names[0]) == [1]
    assert members.run(READ, config=site.config(mode="reader")).code != 0


def test_a_server_that_was_away_gets_the_next_cut_whole(members):
    site = members.site
    writer = members.start(timeout="1s")
    assert writer.ask("1") == "flushed"
    members.wait_for(1)
    site.server.kill9()
    assert writer.ask("2") == "flushed"
    site.server.start()
    assert writer.ask("3") == "flushed"
    members.wait_for(3)
    assert members.reader() == "3"
    writer.popen.stdin.close()
    writer.wait().ok()
    members.wait_for(4)
    for name in members.names:
        assert site.record(name)["state"] == "clean", name


def test_pruning_leaves_the_newest_cut_that_is_whole(members):
    site = members.site
    members.killed_between()
    for name in members.names:
        site.cli("prune", name, "--keep-last", "1").ok()
    site.cli("recover", site.local(members.names[0])).ok()
    assert members.local_state() == 1


def test_all_drivers_mirrors_members_for_which_the_program_names_a_driver(site):
    """h5py's own split: its members are opened with sec2."""
    script = site.script(f"""
        with h5py.File({str(site.local("a.h5"))!r}, "w", driver="split") as f:
            f["x"] = np.arange(1000)
            f.flush()
            f["y"] = 1
            assert f.driver in ("split", "unknown"), f.driver
    """)
    site.cli("exec", "--root", site.work, "--all-drivers", "--", *script).ok()
    numbers = {}
    for name in ("a.h5-m.h5", "a.h5-r.h5"):
        site.settle(name)
        assert filecmp.cmp(site.head(name), site.local(name), shallow=False), name
        numbers[name] = [each["group"]["number"] for each in site.log(name)]
    assert numbers["a.h5-m.h5"] == numbers["a.h5-r.h5"] == [2, 1], json.dumps(numbers)


def test_files_that_are_opened_with_one_list_are_files_by_themselves(site):
    """As external links and programs do."""
    site.py("""
        fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        files = [h5py.File(h5py.h5f.create(name, fapl=fapl)) for name in (b"one.h5", b"two.h5")]
        for f in files:
            f["x"] = 1
            f.flush()
        files[0].close()
        files[1]["y"] = 2
        files[1].close()
        with h5py.File("links.h5", "w") as f:
            f["one"] = h5py.ExternalLink("one.h5", "/")
            f["two"] = h5py.ExternalLink("two.h5", "/")
            f["one"].attrs["n"] = f["two"].attrs["n"] = 1
    """)
    for name in ("one.h5", "two.h5", "links.h5"):
        site.assert_mirrored(name)
        assert not any("group" in each for each in site.log(name)), name


def test_members_of_either_hdf5(both):
    both.py("""
        with h5py.File("part%d.h5", "w", driver="family", memb_size=1 << 20) as f:
            f["d"] = np.arange(300_000)
    """)
    for name in ("part0.h5", "part1.h5", "part2.h5"):
        both.settle(name)
        assert filecmp.cmp(both.head(name), both.local(name), shallow=False), name
        assert both.versions(name) == [1]
    groups = [both.log(name)[0]["group"] for name in ("part0.h5", "part1.h5", "part2.h5")]
    assert groups[0] == groups[1] == groups[2]
