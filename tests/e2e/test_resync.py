"""Two sides that differ in part become the same by sending that part, and comparing them never lies."""

import json
import os
import random
import shutil
import signal

import numpy as np
import pytest

from harness import hdf5, paths
from harness.metrics import Metrics
from harness.process import wait_until
from harness.proxy import Proxy
from harness.server import Server

BLOCK = 4096

MAKE = """
    with h5py.File("run.h5", "w") as f:
        d = f.create_dataset("d", ({mib} << 20,), "u1")
        chance = np.random.default_rng(1)
        for n in range({mib}):
            d[n << 20:(n + 1) << 20] = chance.integers(1, 256, 1 << 20, "u1")
"""

# The work of a program that knows nothing of the driver.
CHANGE = """
    chance = np.random.default_rng({seed})
    with h5py.File("run.h5", "r+") as f:
        d = f["d"]
        for at in chance.choice(len(d) // 4096, {pages}, replace=False):
            d[at * 4096:at * 4096 + 4096] = chance.integers(0, 256, 4096, "u1")
        f.create_dataset("more{seed}", data=chance.integers(1, 256, {more}, "u1"))
"""


def change_outside(site, pages: int, more: int, seed: int = 2) -> None:
    site.run(site.script(CHANGE.format(pages=pages, more=more, seed=seed)), env=site.plain_env()).ok()


def differing_bytes(one, other) -> int:
    """Bytes of 4 KiB blocks that differ; the shorter file goes on with zeros."""
    size = max(one.stat().st_size, other.stat().st_size)
    padded = np.zeros((2, -(-size // BLOCK) * BLOCK), "u1")
    for row, file in enumerate((one, other)):
        content = np.fromfile(file, "u1")
        padded[row, :len(content)] = content
    blocks = (padded[0] != padded[1]).reshape(-1, BLOCK).any(axis=1)
    return int(blocks.sum()) * BLOCK


def resync(site, *flags) -> dict:
    return site.json("resync", *flags, site.local("run.h5"))["files"][0]


def verify(site):
    """The exit code and the output of `verify --against`."""
    result = site.cli("verify", "--against", site.local("run.h5"), "--wait", "10", "--json")
    assert result.code in (0, 1, 6), result.describe()
    return result.code, json.loads(result.out)


def flip(file, offset: int) -> None:
    with open(file, "r+b") as f:
        f.seek(offset)
        byte = f.read(1)[0]
        f.seek(offset)
        f.write(bytes([byte ^ 1]))


@pytest.mark.limit(300)
def test_the_local_side_wins_and_only_what_differs_is_sent(bare_site):
    """256 MiB, of which 100 pages were overwritten and 1 MiB was appended while the server was away."""
    site = bare_site
    site.py(MAKE.format(mib=256))
    site.settle("run.h5")
    before = site.directory / "before.h5"
    shutil.copyfile(site.head("run.h5"), before)
    site.server.stop()
    change_outside(site, pages=100, more=1 << 20)
    site.server.start()
    # A program that comes along is told so, and goes on locally.
    ask = site.config(on_outside_change="ask")
    assert "diverged" in site.py('h5py.File("run.h5", "r+").attrs["n"] = 1', config=ask).err
    refused = site.cli("resync", site.local("run.h5"))
    assert refused.code == 5 and "--from local" in refused.err and "--from remote" in refused.err
    done = resync(site, "--from", "local")
    differing = differing_bytes(site.local("run.h5"), before)
    assert done["action"] == "sent" and done["kept_version"] == 1
    assert 0 < done["sent_bytes"] <= 1.1 * differing, done
    assert done["digest_bytes"] < 1 << 20, done
    print(f"{differing} bytes differed, {done['sent_bytes']} sent, {done['digest_bytes']} of digests,"
          f" {done['seconds']:.2f} s")
    site.assert_mirrored("run.h5")
    assert hdf5.digest(site.export("run.h5", 1)) == hdf5.digest(before)
    # The mirror goes on from there.
    said = site.py('h5py.File("run.h5", "r+").attrs["n"] = 2').err
    assert "diverged" not in said and site.record("run.h5")["state"] == "clean", said
    site.assert_mirrored("run.h5")
    assert site.versions("run.h5") == [1, 2, 3]


def test_the_remote_side_wins_and_the_local_one_is_a_version(site):
    site.py(MAKE.format(mib=32))
    site.keep("run.h5")
    site.server.stop()
    change_outside(site, pages=20, more=100_000)
    site.server.start()
    lost = hdf5.digest(site.local("run.h5"))
    done = resync(site, "--from", "remote")
    assert done["action"] == "fetched" and done["received_bytes"] <= 1.1 * done["differing_bytes"], done
    assert hdf5.digest(site.export("run.h5", done["kept_version"])) == lost
    assert hdf5.digest(site.export("run.h5", 1)) == hdf5.digest(site.local("run.h5"))
    assert "local side of" in site.log("run.h5")[1]["comment"]
    site.assert_mirrored("run.h5")
    site.check_kept()
    assert "diverged" not in site.py('h5py.File("run.h5", "r+").attrs["n"] = 2').err
    site.assert_mirrored("run.h5")


def test_an_empty_server_gets_all(bare_site):
    site = bare_site
    site.py(MAKE.format(mib=8))
    site.server.stop()
    shutil.rmtree(site.root)
    site.root.mkdir()
    site.server.start()
    assert "diverged" in site.py('h5py.File("run.h5", "r+").attrs["n"] = 1').err
    assert resync(site)["action"] == "uploaded"
    site.assert_mirrored("run.h5")
    assert "diverged" not in site.py('h5py.File("run.h5", "r+").attrs["n"] = 2').err
    site.assert_mirrored("run.h5")


def test_a_server_restored_from_an_older_copy(bare_site):
    site = bare_site
    site.py(MAKE.format(mib=8))
    site.settle("run.h5")
    site.server.stop()
    shutil.copytree(site.root, site.directory / "backup")
    site.server.start()
    site.py('h5py.File("run.h5", "r+")["d"][100_000:120_000] = 7')
    site.assert_mirrored("run.h5")
    site.server.stop()
    shutil.rmtree(site.root)
    shutil.copytree(site.directory / "backup", site.root)
    site.server.start()
    assert "diverged" in site.py('h5py.File("run.h5", "r+").attrs["n"] = 1').err
    done = resync(site, "--from", "local")
    assert done["action"] == "sent" and done["sent_bytes"] < 100_000, done
    site.assert_mirrored("run.h5")
    assert "diverged" not in site.py('h5py.File("run.h5", "r+").attrs["n"] = 2').err
    site.assert_mirrored("run.h5")


@pytest.mark.limit(300)
def test_a_resync_that_is_killed_leaves_the_head_at_its_cut(bare_site):
    site = bare_site
    site.py(MAKE.format(mib=256))
    site.settle("run.h5")
    before = hdf5.digest(site.head("run.h5"))
    site.run(site.script("""
        with h5py.File("run.h5", "r+") as f:
            for n in range(256):
                f["d"][n << 20:(n + 1) << 20] = n
    """), env=site.plain_env()).ok()
    record = site.record("run.h5")
    with Proxy(site.server.address) as proxy:  # By which it could not be done within a minute.
        proxy.tell(f"throttle {4 << 20}")
        command = [paths.BIN / "h5mirror", "--server", proxy.address, "resync", "--from", "local", site.local("run.h5")]
        process = site.start(command, env=site.plain_env())
        wait_until(lambda: site.status("run.h5")["lease"] is not None or not process.running(), "it never began to send")
        assert process.running(), process.wait().describe()
        process.kill()
    site.wait_for_no_lease("run.h5")
    site.settle("run.h5")
    assert site.versions("run.h5") == [1]
    assert hdf5.digest(site.head("run.h5")) == before
    assert site.record("run.h5") == record
    assert resync(site, "--from", "local")["action"] == "sent"
    site.assert_mirrored("run.h5")
    assert hdf5.digest(site.export("run.h5", 1)) == before


def test_a_closed_file_is_verified_and_a_flipped_bit_named(site):
    site.py(MAKE.format(mib=8))
    code, said = verify(site)
    assert code == 0 and said["equal"] and not said["live"], said
    assert site.status("run.h5")["last_check"]["differing_bytes"] == 0
    flip(site.local("run.h5"), 5_000_000)
    code, said = verify(site)
    assert code == 6 and said["differing_bytes"] == BLOCK, said
    assert said["differing"] == [{"offset": 5_000_000 // BLOCK * BLOCK, "length": BLOCK}]
    check = site.status("run.h5")["last_check"]
    assert check["differing_bytes"] == BLOCK and check["equal_time"] is not None


WRITER = """
    chance = np.random.default_rng(5)
    with h5py.File("run.h5", "r+") as f:
        d = f["d"]
        # The second half is left alone.
        for n in range(1_000_000):
            at = int(chance.integers(0, len(d) // 2 - 50_000))
            d[at:at + int(chance.integers(1, 50_000))] = n % 251
            if n % 10 == 0:
                f.attrs["n"] = n
                f.flush()
                print("cut", flush=True)
            time.sleep(0.002)
            if os.path.exists("stop"):
                break
"""


@pytest.mark.limit(300)
def test_no_false_alarm_beside_a_writer(site):
    site.py(MAKE.format(mib=8))
    writer = site.start(site.script(WRITER))
    writer.wait_for_line("cut")
    site.wait_for_cut("run.h5")
    equal = 0
    for round_number in range(20):
        code, said = verify(site)
        assert said["live"] and said["differing_bytes"] == 0, (round_number, said)
        assert said["busy_bytes"] < 4 << 20, (round_number, said)
        equal += code == 0
    print(f"{equal} of 20 rounds found all equal, in the others something was being written")
    site.local("stop").touch()
    writer.wait().ok()
    site.wait_for_no_lease("run.h5")
    assert verify(site)[0] == 0
    site.assert_mirrored("run.h5")


@pytest.mark.limit(240)
def test_a_flipped_bit_is_found_beside_a_writer(site):
    site.py(MAKE.format(mib=8))
    writer = site.start(site.script(WRITER))
    writer.wait_for_line("cut")
    flip(site.local("run.h5"), (7 << 20) + 12_345)
    code, said = verify(site)
    assert code == 6 and said["live"] and said["differing_bytes"] == BLOCK, said
    assert said["differing"][0]["offset"] == ((7 << 20) + 12_345) // BLOCK * BLOCK
    site.local("stop").touch()
    writer.wait().ok()


def test_the_metrics_tell_how_old_the_last_good_check_is(bare_site):
    site = bare_site
    metric = Metrics(site).value

    site.py(MAKE.format(mib=1))
    assert verify(site)[0] == 0
    age = "h5mirror_server_check_oldest_equal_age_seconds"
    wait_until(lambda: metric(age) > 1, "the check grows no older")
    flip(site.local("run.h5"), 500_000)
    assert verify(site)[0] == 6
    differing = "h5mirror_server_check_differing_files"
    wait_until(lambda: metric(differing) == 1, "the difference is not told")
    site.server.stop()
    site.server.start()
    wait_until(lambda: metric(differing) == 1 and metric(age) > 1, "it is forgotten over a restart")


def test_on_a_schedule_until_it_is_told_to_stop(site):
    site.py(MAKE.format(mib=1))
    watch = site.start([paths.BIN / "h5mirror", "--server", site.server.address, "--json", "verify", "--against",
                        site.local("run.h5"), "--every", "1s"], env=site.plain_env())
    wait_until(lambda: watch.out().count("\n") >= 2, "it checks only once")
    # A server that is away is no reason to end.
    site.server.stop()
    wait_until(lambda: "h5mirror: " in watch.err(), "it does not say that the server is away")
    site.server.start()
    count = watch.out().count("\n")
    wait_until(lambda: watch.out().count("\n") > count, "it does not check any more")
    watch.signal(signal.SIGTERM)
    result = watch.wait(10)
    assert result.code == 0, result.describe()
    assert all(json.loads(line)["equal"] for line in result.out.splitlines())


def test_random_changes_on_both_sides_of_every_edge(site):
    """Sizes and places at and beside the borders of blocks."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    edges = [0, 1, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (2 << 20) + 5000]
    local = site.local("run.h5")
    local.write_bytes(chance.randbytes(3 << 20))
    site.cli("push", "--any", "--name", "run.h5", local).ok()
    for _ in range(12):
        content = bytearray(local.read_bytes())[:chance.choice(edges + [3 << 20] * 4)]
        content += bytes(chance.choice([0, 0, 1, 5000])) + chance.randbytes(chance.choice([0, 1, 4096, 1 << 20]))
        for _ in range(chance.randrange(5)):
            at = chance.choice(edges)
            content[at:at + 3] = chance.randbytes(len(content[at:at + 3]))
        local.write_bytes(content)
        done = resync(site, "--from", "local", "--any")
        site.settle("run.h5")
        assert site.head("run.h5").read_bytes() == bytes(content), (seed, done)


def test_a_writer_that_was_killed_is_missing_until_the_file_is_recovered(bare_site):
    site = bare_site
    metrics = Metrics(site)

    def lag() -> float:
        return metrics.value("h5mirror_server_mirror_lag_seconds")

    def kill_a_writer() -> None:
        writer = site.start(site.script(WRITER))
        writer.wait_for_line("cut")
        site.wait_for_cut("run.h5")
        writer.kill()
        wait_until(lambda: (site.status("run.h5")["mirror"] or {}).get("state") == "degraded", "nobody misses it")
        wait_until(lambda: lag() > 0, "its lag does not grow")

    site.py(MAKE.format(mib=4))
    kill_a_writer()
    site.wait_for_no_lease("run.h5")
    site.cli("recover", site.local("run.h5")).ok()
    assert site.status("run.h5")["mirror"]["state"] == "in sync"
    wait_until(lambda: lag() == 0, "it is missed all the same")
    assert "diverged" not in site.py('h5py.File("run.h5", "r+").attrs["n"] = -1').err
    kill_a_writer()
    site.wait_for_no_lease("run.h5")
    site.cli("rm", "run.h5").ok()
    wait_until(lambda: lag() == 0, "it is missed though it was removed")


def test_a_file_that_diverged_alarms_until_it_is_recovered_and_over_a_restart(bare_site):
    site = bare_site
    metrics = Metrics(site)

    def diverged() -> float:
        return metrics.value('h5mirror_server_mirror_files{state="diverged"}')

    site.py(MAKE.format(mib=1))
    site.py('h5py.File("run.h5", "r+").attrs["n"] = 1')
    site.cli("rollback", "run.h5@1").ok()
    assert "diverged" in site.py('h5py.File("run.h5", "r+").attrs["n"] = 2').err
    wait_until(lambda: diverged() == 1, "nobody is told")
    site.server.stop()
    site.server.start()
    assert site.status("run.h5")["mirror"]["state"] == "diverged"
    wait_until(lambda: diverged() == 1, "the restart forgot it")
    site.cli("recover", site.local("run.h5")).ok()
    wait_until(lambda: diverged() == 0, "it alarms all the same")
    assert site.status("run.h5")["mirror"]["state"] == "in sync"
    site.server.kill9()
    site.server.start()
    assert site.status("run.h5")["mirror"]["state"] == "in sync"


def test_a_difference_that_a_check_found_alarms_until_it_is_mended(bare_site):
    site = bare_site
    metrics = Metrics(site)
    local = site.local("run.h5")

    def differing() -> float:
        return metrics.value("h5mirror_server_check_differing_files")

    def rot() -> None:
        with open(local, "r+b") as f:
            f.seek(1 << 19)
            byte = f.read(1)
            f.seek(1 << 19)
            f.write(bytes([byte[0] ^ 0xff]))
        assert site.cli("verify", "--against", local).code == 6
        wait_until(lambda: differing() == 1, "nobody is told")

    site.py(MAKE.format(mib=1))
    for mend in ("push", "resync --from local", "resync --from remote", "recover"):
        rot()
        site.cli(*mend.split(), local).ok()
        wait_until(lambda: differing() == 0, f"after {mend} it alarms all the same")


def test_a_strangers_file_of_that_name_alarms_nobody(site):
    site.py(MAKE.format(mib=1))
    assert site.status("run.h5")["mirror"]["state"] == "in sync"
    other = site.work / "other"
    other.mkdir()
    site.run(site.script(MAKE.format(mib=2)), env=site.plain_env()).ok()
    shutil.move(site.local("run.h5"), other / "run.h5")
    # The same name by another root, and another path.
    said = site.py('h5py.File("other/run.h5", "r+").attrs["n"] = 1', config=site.config(root=other)).err
    assert "diverged" in said
    assert site.status("run.h5")["mirror"]["state"] == "in sync"


@pytest.mark.parametrize("what", ["directory", "file"])
def test_a_file_that_is_behind_and_was_renamed(bare_site, what):
    """It is sent neither under its old name nor as a new file; the commands that are named bring it there."""
    site = bare_site
    (site.work / "runs").mkdir()
    site.py(MAKE.format(mib=16).replace("run.h5", "runs/run.h5"))
    site.settle("runs/run.h5")
    site.server.stop()
    away = site.config(timeout="1s")
    change = 'h5py.File("{name}", "r+")["d"][100_000:120_000] = 7'
    if what == "directory":
        name = "archive/run.h5"
        site.py(change.format(name="runs/run.h5"), config=away)
        os.rename(site.work / "runs", site.work / "archive")
    else:
        name = "runs/final.h5"
        os.rename(site.work / "runs/run.h5", site.work / name)
        site.py(change.format(name=name), config=away)
    site.server.start()
    for verb in ("resync", "push"):
        refused = site.cli(verb, site.local(name))
        assert refused.code == 5, refused.describe()
        assert f"h5mirror mv runs/run.h5 {name}" in refused.err, refused.describe()
        assert f"h5mirror resync --from local --name {name}" in refused.err, refused.describe()
    assert not site.exists(name) and site.versions("runs/run.h5") == [1]
    site.cli("mv", "runs/run.h5", name).ok()
    done = site.json("resync", "--from", "local", "--name", name, site.local(name))["files"][0]
    assert done["action"] == "sent" and done["sent_bytes"] < 100_000, done
    site.assert_mirrored(name)
    said = site.py(change.format(name=name).replace("7", "8")).err
    assert said == "" and site.record(name)["state"] == "clean", said
    site.assert_mirrored(name)
    assert len(site.versions(name)) == 3 and not site.exists("runs/run.h5")


@pytest.mark.parametrize("verb", [["push", "-r"], ["resync"]], ids=["push", "resync"])
def test_records_follow_a_server_that_has_moved(bare_site, verb):
    """Its root was copied to another host: the records of files that are equal there say so, and the mirror goes on."""
    site = bare_site
    site.py(MAKE.format(mib=2))
    site.settle("run.h5")
    site.server.stop()
    shutil.copytree(site.root, site.directory / "moved")
    before, site.root = site.address, site.directory / "moved"
    site.server = Server(site.root, site.home).start()
    where = site.work if verb[0] == "push" else site.local("run.h5")
    done = site.json(*verb, where)["files"][0]
    assert done["action"] in ("unchanged", "equal") and done["sent_bytes"] == 0, done
    record = site.record("run.h5")
    assert record["server"] == site.address != before and record["state"] == "clean", record
    assert site.json(*verb, where)["files"][0]["action"] == "unchanged"
    assert "diverged" not in site.py('h5py.File("run.h5", "r+").attrs["n"] = 1').err
    site.assert_mirrored("run.h5")
    assert site.versions("run.h5") == [1, 2]
