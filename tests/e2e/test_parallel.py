"""Files that several ranks of a program write together: mirrored cut by cut, whatever happens to a rank or the
server."""

import h5py
import pytest

from harness import hdf5
from harness.network import two_machines
from harness.package import Package
from harness.process import wait_until
from harness.ranks import Hosts, Ranks, check, needed
from harness.site import Site

pytestmark = needed

UNDER = "mpio"


@pytest.fixture
def site(bare_site):
    return bare_site


def cut_of(site, name: str = "run.h5") -> int:
    asked = site.cli("--json", "status", name)
    return int(site.status(name)["last_cut"]) if asked.code == 0 else 0


def step_of(path, ranks: int) -> int:
    with h5py.File(path, "r") as file:
        return check(file, ranks)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_by_the_drivers_name_all_kinds_of_writes_arrive(site, ranks):
    program = Ranks(site, ranks, config=site.config(under=UNDER))
    program.do("new run.h5", "step", "flush", "own", "zip packed", "flush", "seen", "close")
    program.do("open run.h5", "step", "close")
    program.end()
    site.assert_mirrored("run.h5")
    assert site.versions("run.h5") == [1, 2]
    assert step_of(site.export("run.h5", 1), ranks) == 3
    assert step_of(site.head("run.h5"), ranks) == 4


def test_a_program_that_names_mpio_is_mirrored_by_the_connector(site):
    program = Ranks(site, 2, connector="h5mirror drivers=all;tick=10ms")
    program.do("new run.h5", "step", "flush", "own", "close", "open run.h5", "seen", "close")
    program.end()
    site.assert_mirrored("run.h5")
    assert site.versions("run.h5") == [1, 2]
    assert step_of(site.head("run.h5"), 2) == 3


def test_ranks_on_two_hosts_share_the_file_and_the_first_one_sends(tmp_path):
    """The hosts are network namespaces with the same disk. The server is reached by a Unix socket."""
    site = Site(tmp_path, listen=f"unix:{tmp_path}/socket")
    try:
        site.server.start()
        with two_machines() as machines:
            program = Ranks(site, 4, config=site.config(under=UNDER), hosts=Hosts(machines, tmp_path))
            program.do("new run.h5", "step", "flush", "own", "flush", "seen", "zip packed", "close")
            program.do("open run.h5", "step", "close")
            program.end()
        site.assert_mirrored("run.h5")
        assert site.versions("run.h5") == [1, 2]
        assert step_of(site.export("run.h5", 1), 4) == 3 and step_of(site.head("run.h5"), 4) == 4
    finally:
        site.close()


@pytest.mark.parametrize("by", ["driver", "connector"])
def test_a_file_behind_an_external_link_is_opened_by_the_same_ranks(site, by):
    program = Ranks(site, 3, config=site.config(under=UNDER) if by == "driver" else None)
    program.do("new other.h5", "step", "close", "new run.h5", "step", "link other.h5", "through", "close")
    program.end()
    for name in ("other.h5", "run.h5"):
        site.assert_mirrored(name)
    assert site.versions("other.h5") == [1, 2]
    with h5py.File(site.head("other.h5"), "r") as file:
        assert file.attrs["through"] == 3


def test_an_open_that_changes_nothing_makes_no_version(site):
    program = Ranks(site, 2, config=site.config(under=UNDER))
    program.do("new run.h5", "step", "close", "open run.h5", "flush", "close")
    program.end()
    site.assert_mirrored("run.h5")
    assert site.versions("run.h5") == [1]


def test_each_flush_is_a_cut_that_a_reader_sees_whole(site):
    program = Ranks(site, 2, config=site.config(under=UNDER))
    program.do("new run.h5", "flush")
    site.wait_for_cut("run.h5")
    reader = Package(site).start("""
    from harness.ranks import check
    for line in sys.stdin:
        with h5mirror.open(URL) as file:
            print(check(file, 2), flush=True)
    """, talks=True, PYTHONPATH=f"{Package(site).env()['PYTHONPATH']}:{hdf5.paths.PROGRAMS.parent}")
    for step in range(1, 6):
        before = cut_of(site)
        program.do("step")
        assert int(reader.ask("look")) == step - 1, "what is not flushed is not seen"
        program.do("flush")
        wait_until(lambda: cut_of(site) > before, "the flush is no cut")
        assert int(reader.ask("look")) == step
    program.do("close")
    program.end()
    site.assert_mirrored("run.h5")


@pytest.mark.parametrize("victim", [0, 3])
def test_a_rank_that_is_killed_leaves_the_last_cut_which_is_recovered(site, victim):
    program = Ranks(site, 4, config=site.config(under=UNDER, ack_tick="applied"))
    program.do("new run.h5", "step", "close", "open run.h5", "step", "flush", "step")
    program.kill(victim)
    site.wait_for_no_lease("run.h5")
    site.settle("run.h5")
    assert step_of(site.head("run.h5"), 4) == 2, "the head is the last cut"
    recover = [hdf5.paths.BIN / "h5mirror", "--server", site.address, "recover", site.local("run.h5")]
    site.run(recover, env=site.plain_env()).ok()
    assert step_of(site.local("run.h5"), 4) == 2
    program = Ranks(site, 4, config=site.config(under=UNDER))
    program.do("open run.h5", "step", "close")
    program.end()
    site.assert_mirrored("run.h5")
    assert step_of(site.head("run.h5"), 4) == 3
    assert step_of(site.export("run.h5", 1), 4) == 1


@pytest.mark.parametrize("away", ["before", "between"])
def test_a_server_that_is_away_costs_the_program_nothing_and_gets_all_later(site, away):
    config = site.config(under=UNDER, timeout="500ms", linger="1s")
    if away == "before":
        site.server.kill9()
    program = Ranks(site, 2, config=config)
    program.do("new run.h5", "step", "flush")
    if away == "between":
        site.server.kill9()
    program.do("step", "flush", "step", "close")
    program.end()
    assert step_of(site.local("run.h5"), 2) == 3
    site.server.start()
    program = Ranks(site, 2, config=site.config(under=UNDER))
    program.do("open run.h5", "step", "close")
    program.end()
    site.assert_mirrored("run.h5")
    assert step_of(site.head("run.h5"), 2) == 4


def test_what_is_written_behind_a_flush_is_in_no_cut_when_the_server_comes_back(site):
    """A serial program comes back by itself, as its file is as its flush left it. Ranks write on unseen."""
    beside = site.start(site.script("""
    with h5py.File('beside.h5', 'w') as file:
        for line in sys.stdin:
            file.attrs['n'] = len(line)
            file.flush()
            print('done', flush=True)
    """), config=site.config(), talks=True)
    # A flush does not wait. A session that has never reached its server waits for the next one.
    beside.ask("one")
    site.wait_for_cut("beside.h5")
    site.settle("beside.h5")
    before = cut_of(site, "beside.h5")
    program = Ranks(site, 2, config=site.config(under=UNDER, ack_tick="applied"))
    program.do("new run.h5", "step", "close", "open run.h5", "step", "flush")
    beside.ask("more")
    site.server.kill9()
    program.do("step")
    site.server.start()
    wait_until(lambda: cut_of(site, "beside.h5") > before, "the serial program does not come back")
    site.settle("run.h5")
    assert step_of(site.head("run.h5"), 2) in (1, 2), "a cut is what a flush left"
    program.do("flush", "close")
    program.end()
    beside.popen.stdin.close()
    beside.wait().ok()
    site.assert_mirrored("run.h5")
    assert step_of(site.head("run.h5"), 2) == 3


def test_with_on_outage_fail_the_flush_fails_on_all_ranks(site):
    config = site.config(under=UNDER, timeout="3s", linger="1s", on_outage="fail", ack_tick="applied")
    program = Ranks(site, 3, config=config)
    program.do("new run.h5", "step", "flush")
    site.server.kill9()
    program.do("step")
    wait_until(lambda: program.ask("flush") == "failed", "no flush fails")
    program.ask("close")
    program.end()
    assert step_of(site.local("run.h5"), 3) == 2


def test_a_cut_that_takes_longer_than_the_timeout_is_waited_for_while_it_flows(site):
    """18 MiB a step, through a window of 1 MiB, at 10 MiB/s: longer than the default timeout."""
    config = site.config(under=UNDER, timeout=None, linger=None, window="1MiB", bandwidth="10MiB/s")
    program = Ranks(site, 2, config=config, columns=1 << 16)
    program.do("new run.h5", "flush")
    wait_until(lambda: cut_of(site) > 0, "the first flush is no cut")
    before = cut_of(site)
    program.do("step", "flush")
    wait_until(lambda: cut_of(site) > before, "the flush is no cut")
    program.do("step", "close")
    program.end()
    site.assert_mirrored("run.h5")
    assert site.versions("run.h5") == [1]
    with h5py.File(site.head("run.h5"), "r") as file:
        assert check(file, 2, 1 << 16) == 2


def test_an_outside_change_between_two_runs_is_taken_in(site):
    program = Ranks(site, 2, config=site.config(under=UNDER))
    program.do("new run.h5", "step", "close")
    program.end()
    with h5py.File(site.local("run.h5"), "r+") as file:
        file["by hand"] = 5
    program = Ranks(site, 2, config=site.config(under=UNDER))
    program.do("open run.h5", "step", "close")
    program.end()
    site.assert_mirrored("run.h5")
    with h5py.File(site.head("run.h5"), "r") as file:
        assert file["by hand"][()] == 5 and check(file, 2) == 2


def test_two_files_at_once_and_fewer_ranks_than_there_are(site):
    program = Ranks(site, 3, config=site.config(under=UNDER))
    program.do("part", "new a.h5", "new b.h5", "step", "flush", "own", "close")
    program.end()
    for name in ("a.h5", "b.h5"):
        site.assert_mirrored(name)
        assert step_of(site.head(name), 2) == 2


def test_left_out_files_and_mode_off_are_written_as_without(site):
    program = Ranks(site, 2, config=site.config(under=UNDER, exclude="scratch*"))
    program.do("new scratch.h5", "new run.h5", "step", "close")
    program.end()
    program = Ranks(site, 2, config=site.config(under=UNDER, mode="off"))
    program.do("new off.h5", "step", "close")
    program.end()
    for name in ("scratch.h5", "off.h5"):
        assert step_of(site.local(name), 2) == 1
        assert not site.exists(name)
    site.assert_mirrored("run.h5")


def test_what_is_missing_is_named(site):
    """A serial HDF5 has no MPI; a program that names no communicator cannot be several ranks."""
    failed = site.run(site.script("h5py.File('run.h5', 'w')"), config=site.config(under=UNDER))
    assert failed.code != 0
    assert "under=mpio" in failed.err and "was built without MPI" in failed.err, failed.err
    assert not site.local("run.h5").exists()
