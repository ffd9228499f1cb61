"""More than one mirror: each server has its own window, state and resync, and one that is away does not slow the others."""

import json
import signal
import subprocess
import time

import pytest

from harness import hdf5, paths
from harness.process import run, wait_until
from harness.proxy import Proxy
from harness.scripts import BIG, CHANGE, TIMED, TOUCH, felt, longest, took, waited
from harness.server import Server

MIB = 1 << 20


class Far:
    """One more server, and its files."""

    def __init__(self, site, name: str):
        root, logs = site.directory / f"{name}-root", site.directory / f"{name}-logs"
        root.mkdir()
        logs.mkdir()
        self.site, self.server = site, Server(root, logs).start()

    @property
    def address(self) -> str:
        return self.server.address

    def head(self, name: str):
        return self.server.root / name

    def cli(self, *arguments):
        return tool(self.site, "--server", self.address, *arguments)

    def log(self, name: str) -> list[dict]:
        return json.loads(self.cli("log", name, "--json").ok().out)["versions"]

    def assert_mirrored(self, name: str) -> None:
        self.cli("status", name, "--wait=30").ok()
        hdf5.assert_same(self.site.local(name), self.head(name))


def tool(site, *arguments, timeout: float = 60):
    """The admin CLI, with no server named but in `arguments` and in the user's configuration."""
    return run([paths.BIN / "h5mirror", *arguments], site.logs, env=hdf5.plain_env(HOME=str(site.home)),
               cwd=site.directory, timeout=timeout, name="h5mirror")


@pytest.fixture
def far(site):
    """A second server. Both are in the user's configuration."""
    far = Far(site, "far")
    settings = site.home / ".config/h5mirror"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "client.toml").write_text(f'server = "{site.address},{far.address}"\n')
    yield far
    far.server.close()


def servers(*addresses, **keys) -> dict:
    return {"server": ",".join(addresses), **keys}


def records(site, name: str) -> dict[str, dict]:
    """By server; of each file name only whether it is that of an only mirror."""
    found = {}
    for path in site.local(f"{name}.h5m").glob("client*.json"):
        record = json.loads(path.read_text())
        found[record["server"]] = {**record, "alone": path.name == "client.json"}
    return found


def assert_both(site, far, name: str) -> None:
    site.assert_mirrored(name)
    far.assert_mirrored(name)


@pytest.fixture
def two(site, far):
    """The configuration of both servers."""
    return lambda **keys: site.config(**servers(site.address, far.address, **keys))


# Both.


def test_each_server_has_every_version(site, far, two, h5py_version):
    site.python = paths.venv_python(h5py_version)
    site.py(BIG, config=two())
    site.py(TOUCH.format(n=1), config=two())
    assert_both(site, far, "big.h5")
    assert len(site.versions("big.h5")) == len(far.log("big.h5")) == 2
    found = records(site, "big.h5")
    assert set(found) == {site.address, far.address}
    assert all(record["state"] == "clean" and not record["alone"] for record in found.values()), found


def test_the_program_is_told_what_is_wrong_with_a_list(site, far):
    for bad, why in ((f"{far.address},embedded", "embedded"), (f"{far.address},", "missing"),
                     (f"{far.address},{far.address}", "twice"), (",".join(f"h{n}" for n in range(9)), "at most 8")):
        result = site.run(site.script("h5py.File('x.h5', 'w')"), config=site.config(server=bad))
        assert result.code != 0 and why in result.err and "server=" in result.err, result.describe()
    assert not site.local("x.h5").exists()


def test_the_state_of_each_is_told(site, far, two):
    """Through H5FDh5mirror.h: connected, degraded, and connected again; the file's is the worse one."""
    program = subprocess.Popen([paths.TEST_BIN / "e2e_mirrors", "c.h5"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, cwd=site.work, env=site.env(two()))

    def say(words: str) -> str:
        program.stdin.write(words + "\n")
        program.stdin.flush()
        return program.stdout.readline().strip()

    def state(words: str) -> str:
        return words.replace(site.address, "NEAR").replace(far.address, "FAR")

    try:
        whole, near, at_near, other, at_far = state(say("status")).split()
        assert (near, other) == ("NEAR", "FAR") and whole in (at_near, at_far), (whole, at_near, at_far)
        assert {at_near, at_far} <= {"unchanged", "connecting", "connected"}, (at_near, at_far)
        assert say("change 1") == "changed 0"
        assert say("commit") == "committed 0"
        assert state(say("status")) == "connected NEAR connected FAR connected"
        far.server.kill9()
        assert say("change 2") == "changed 0"
        assert say("commit") == "committed 1"
        assert state(say("status")) == "degraded NEAR connected FAR degraded"
        far.server.start()
        time.sleep(0.6)
        assert say("change 3") == "changed 0"
        wait_until(lambda: say("commit") == "committed 0", "the far one does not come back", every=0.1)
        assert state(say("status")) == "connected NEAR connected FAR connected"
        assert say("close") == "closed 0"
        assert program.wait(20) == 0
    finally:
        program.kill()
        program.wait()
    assert_both(site, far, "c.h5")


# One is away.


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("harm", ["stopped", "killed"])
def test_one_that_is_away_does_not_slow_the_other(site, far, harm, which):
    """The other server acks each flush durably. The lost one comes back, and the next open sends it the changes that it
    missed."""
    lost, kept = (site, far) if which == 0 else (far, site)
    config = site.config(**servers(site.address, far.address, timeout=None, flush="sync", ack="durable"))
    site.local("hold 5").touch()
    writer = site.start(site.script(TIMED.format(times=40, mib=1, pause=0.05)), config=config)
    writer.wait_for_line("cut 5")
    if harm == "stopped":
        lost.server.process.signal(signal.SIGSTOP)
    else:
        lost.server.kill9()
    site.local("hold 5").unlink()
    result = writer.wait().ok()
    assert felt(result) < 1.9, result.describe()
    # The first flush waited for one deadline; later flushes wait little or not at all.
    assert took(result) < (25 if harm == "stopped" else 15), result.describe()
    kept.assert_mirrored("t.h5")
    found = records(site, "t.h5")
    assert found[kept.address]["state"] == "clean", found
    if harm == "stopped":
        lost.server.process.signal(signal.SIGCONT)
    else:
        assert found[lost.address]["state"] == "behind", found
        lost.server.start()
    site.wait_for_no_lease("t.h5")
    time.sleep(0.5)
    result = site.py("h5py.File('t.h5', 'a').attrs['n'] = 1", config=site.config(**servers(site.address, far.address)))
    assert "diverged" not in result.err, result.describe()
    tool(site, "resync", site.local("t.h5")).ok()
    assert_both(site, far, "t.h5")


def test_the_flushes_of_the_other_stay_fast(site, far):
    """With one server dead, a flush that the other acks durably takes as long as with that server alone."""
    # Two programs that take turns, so that what else the machine does hits both.
    timed = """
        f = h5py.File("{name}.h5", "w")
        d = f.create_dataset("d", (1 << 20,), "u1")
        for n, _ in enumerate(sys.stdin):
            began = time.monotonic()
            d[:] = n
            f.flush()
            print(time.monotonic() - began, flush=True)
        f.close()
    """
    def start(name: str, **keys):
        config = site.config(**keys, flush="sync", ack="durable", timeout=None)
        return site.start(site.script(timed.format(name=name)), config=config, talks=True)

    far.server.kill9()
    programs = [start("alone", server=site.address), start("beside", **servers(site.address, far.address))]
    took = [[float(each.ask("flush")) for each in programs] for _ in range(25)]
    alone, beside = (sorted(times)[12] for times in zip(*took))
    assert beside < 3 * alone + 0.1, (alone, beside)
    for each in programs:
        each.popen.stdin.close()
        each.wait().ok()
    site.assert_mirrored("beside.h5")


def test_waiting_for_several_is_waiting_once(site):
    """Three that hang: a flush or a close waits as long as for one."""
    others = [Far(site, name) for name in ("b", "c", "d")]
    try:
        config = site.config(**servers(site.address, *(each.address for each in others), timeout=None, flush="sync",
                                       ack="durable"))
        site.local("hold 4").touch()
        writer = site.start(site.script(TIMED.format(times=20, mib=1, pause=0.1)), config=config)
        writer.wait_for_line("cut 4")
        for each in others:
            each.server.process.signal(signal.SIGSTOP)
        site.local("hold 4").unlink()
        result = writer.wait().ok()
        assert waited(result) > 0.9 and felt(result) < 1.9, result.describe()
        site.assert_mirrored("t.h5")
    finally:
        for each in others:
            each.server.close()


def test_wait_waits_for_all_at_the_same_time(site, far, two):
    far.server.kill9()
    site.server.kill9()
    result = site.py(TIMED.format(times=3, mib=1, pause=0), config=two(on_outage="wait=2s", timeout=None))
    assert waited(result) > 1.5 and longest(result) < 3.7, result.describe()
    site.server.start()


def test_fail_fails_when_any_is_lost(site, far, two):
    far.server.kill9()
    result = site.py("""
        f = h5py.File("f.h5", "w")
        try:
            f["x"] = 1
            f.flush()
            print("flushed")
        except Exception as error:
            print("failed", error)
        f.close()
    """, config=two(on_outage="fail", timeout=None))
    assert "failed" in result.out and "on_outage=fail" in result.out and far.address in result.out, result.describe()
    site.assert_mirrored("f.h5")


@pytest.mark.limit(200)
def test_a_slow_one_has_its_own_window(site, far):
    """Its link takes 1 MiB/s: neither the writes nor the other mirror wait for it."""
    with Proxy(far.address) as slow:
        slow.tell("throttle 1048576")
        config = site.config(**servers(site.address, slow.address, timeout=None, window="4MiB", flush="tick",
                                       ack_commit="applied"))
        result = site.py(TIMED.format(times=12, mib=8, pause=0.05), config=config)
        assert longest(result) < 2, result.describe()
        site.assert_mirrored("t.h5")
        found = records(site, "t.h5")
        assert found[site.address]["state"] == "clean", found[site.address]
        assert found[slow.address]["state"] == "behind", found
        slow.tell("throttle 0")
        result = site.py("h5py.File('t.h5', 'a').attrs['n'] = 1",
                         config=site.config(**servers(site.address, slow.address)))
        assert "diverged" not in result.err, result.describe()
    site.assert_mirrored("t.h5")
    far.assert_mirrored("t.h5")


# From one to two and back.


def test_one_becomes_two_and_two_one_without_a_second_upload(site, far, two):
    site.py(BIG)
    site.settle("big.h5")
    assert records(site, "big.h5")[site.address]["alone"]

    site.py(TOUCH.format(n=1), config=two())
    assert_both(site, far, "big.h5")
    assert site.log("big.h5")[0]["changed_bytes"] < MIB and site.log("big.h5")[0]["generation"] == 1
    assert len(far.log("big.h5")) == 1
    found = records(site, "big.h5")
    assert not any(record["alone"] for record in found.values()) and len(found) == 2, found

    result = site.py(TOUCH.format(n=2))
    assert "diverged" not in result.err, result.describe()
    site.assert_mirrored("big.h5")
    assert site.log("big.h5")[0]["changed_bytes"] < MIB and len(site.versions("big.h5")) == 3
    assert records(site, "big.h5")[site.address]["alone"]

    # For the mirror that was left out, the file has changed outside. With `ask`, the user decides.
    result = site.py(TOUCH.format(n=3), config=two(on_outside_change="ask"))
    assert result.err.count("have diverged") == 1 and far.address in result.err, result.describe()
    site.assert_mirrored("big.h5")
    done = json.loads(tool(site, "resync", "--from", "local", "--json", site.local("big.h5")).ok().out)["files"]
    assert {row["server"]: row["action"] for row in done} == {site.address: "unchanged", far.address: "sent"}, done
    assert max(row["sent_bytes"] for row in done) < MIB
    assert_both(site, far, "big.h5")


def test_what_an_only_mirror_lacks_it_gets_as_one_of_two(site, far, two):
    """Its dirty map is taken over with its record."""
    site.py(BIG)
    site.settle("big.h5")
    site.server.kill9()
    site.py(CHANGE.format(n=7))
    assert "dirty_map" in records(site, "big.h5")[site.address]
    site.server.start()
    result = site.py(TOUCH.format(n=1), config=two())
    assert "diverged" not in result.err, result.describe()
    assert_both(site, far, "big.h5")
    assert MIB <= site.log("big.h5")[0]["changed_bytes"] < 1.2 * MIB
    assert not site.local("big.h5.h5m/dirty").exists()


def test_each_has_its_own_dirty_map(site, far, two):
    site.py(BIG, config=two())
    site.settle("big.h5")
    far.server.kill9()
    site.py(CHANGE.format(n=7), config=two())
    found = records(site, "big.h5")
    assert "dirty_map" in found[far.address] and "dirty_map" not in found[site.address], found
    far.server.start()
    site.py(TOUCH.format(n=1), config=two())
    assert_both(site, far, "big.h5")
    assert site.log("big.h5")[0]["changed_bytes"] < MIB
    assert MIB <= far.log("big.h5")[0]["changed_bytes"] < 1.2 * MIB
    assert not list(site.local("big.h5.h5m").glob("dirty*"))


def test_a_renamed_file_is_renamed_on_both(site, far, two):
    site.py(BIG, config=two())
    assert_both(site, far, "big.h5")
    refused = tool(site, "mv", site.local("big.h5"), site.local("new.h5"))
    assert refused.code != 0 and "2 mirrors" in refused.err, refused.describe()
    site.local("big.h5").rename(site.local("new.h5"))
    result = site.py(TOUCH.replace("big.h5", "new.h5").format(n=1), config=two())
    assert "diverged" not in result.err, result.describe()
    assert_both(site, far, "new.h5")
    assert not far.head("big.h5").exists() and not site.local("big.h5.h5m").exists()
    assert len(far.log("new.h5")) == 2


# Tools and readers.


def test_tools_go_over_all_mirrors(site, far, two):
    """For a file that was changed without a driver."""
    site.py(BIG, config=two())
    assert_both(site, far, "big.h5")
    local = site.local("big.h5")
    shown = json.loads(tool(site, "status", local, "--json").ok().out)
    assert {row["server"]: row["local"]["standing"] for row in shown["mirrors"]} == {site.address: "level",
                                                                                     far.address: "level"}, shown
    checked = tool(site, "verify", "--against", local).ok()
    assert checked.out.count("are equal") == 2 and far.address in checked.out, checked.describe()

    site.run(site.script(CHANGE.format(n=9)), env=site.plain_env()).ok()
    checked = tool(site, "verify", "--against", local)
    assert checked.code == 6 and checked.out.count("differ in") == 2, checked.describe()
    refused = tool(site, "resync", "--from", "remote", local)
    assert refused.code != 0 and "--server" in refused.err and far.address in refused.err, refused.describe()
    tool(site, "--server", far.address, "resync", "--from", "local", local).ok()
    far.assert_mirrored("big.h5")
    assert hdf5.digest(site.head("big.h5")) != hdf5.digest(local)
    far.server.kill9()
    result = tool(site, "resync", "--from", "local", local)
    assert result.code != 0 and far.address in result.err and "resynced" in result.out, result.describe()
    site.assert_mirrored("big.h5")
    shown = tool(site, "status", local)
    assert shown.code != 0 and "which is away" in shown.out and "level at version" in shown.out, shown.describe()
    far.server.start()
    tool(site, "resync", local).ok()
    assert_both(site, far, "big.h5")


def test_recover_takes_the_newest(site, far, two):
    site.py(BIG, config=two())
    assert_both(site, far, "big.h5")
    site.server.kill9()
    site.py(CHANGE.format(n=7), config=two())
    far.assert_mirrored("big.h5")
    wanted = hdf5.digest(site.local("big.h5"))
    site.server.start()
    site.local("big.h5").write_bytes(b"broken")
    result = tool(site, "recover", site.local("big.h5")).ok()
    assert far.address in result.err, result.describe()
    assert hdf5.digest(site.local("big.h5")) == wanted


def test_a_reader_takes_the_first_that_has_the_file(site, far, two):
    site.py(BIG, config=two())
    site.py("h5py.File('near.h5', 'w')['x'] = 1")
    assert_both(site, far, "big.h5")
    read = "print(h5py.File('{name}.h5', 'r')['{data}'][...].sum())"
    reader = dict(mode="reader", **servers(far.address, site.address))
    first = site.py(read.format(name="big", data="big"), config=site.config(**reader)).out
    site.py(read.format(name="near", data="x"), config=site.config(**reader))
    far.server.kill9()
    reader["timeout"] = "5s"  # For so long the lost server is tried.
    assert site.py(read.format(name="big", data="big"), config=site.config(**reader)).out == first
    result = site.run(site.script(read.format(name="none", data="x")), config=site.config(**reader))
    assert result.code != 0 and far.address in result.err and site.address in result.err, result.describe()


def test_exec_tells_of_each_mirror(site, far):
    far.server.kill9()
    report = site.directory / "report.json"
    result = tool(site, "--server", f"{site.address},{far.address}", "exec", "--root", str(site.work), "--report", report,
                  "--", *map(str, site.script(f"h5py.File('{site.local('e.h5')}', 'w')['x'] = 1")))
    assert result.code == 0, result.describe()
    rows = {row["server"]: row["mirrored"] for row in json.loads(report.read_text())["files"]}
    assert rows == {site.address: True, far.address: False}, result.describe()
