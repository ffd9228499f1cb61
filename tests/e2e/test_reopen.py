"""One program that opens, changes and closes its file again and again: each open follows on the last."""

import random
import time

import pytest

from harness import storm
from harness.process import wait_until

LOOP = """
    with h5py.File("loop.h5", "a") as f:
        f["d"] = np.zeros(20_000)
    for n in range({count}):
        with h5py.File("loop.h5", "r+") as f:
            f.attrs[f"a{{n % 20}}"] = n
            f["d"][n * 7 % 20_000] = n
        {between}
    print("done", flush=True)
"""


def assert_whole(site, versions):
    """Each of `versions` is the file at some close: it has the n-th attribute and value, and all before."""
    exported = [str(site.export("loop.h5", version)) for version in versions]
    site.run(site.script(f"""
        for path in {exported!r}:
            with h5py.File(path) as f:
                written = sorted(int(value) for value in f["d"][()] if value > 0)
                newest = max(f.attrs.values(), default=0)
                assert written == list(range(1, newest + 1)), (path, newest, written)
    """), env=site.plain_env()).ok()


@pytest.mark.parametrize("ack", ["none", "applied", "durable"])
def test_every_close_of_a_loop_is_a_version(site, ack):
    result = site.py(LOOP.format(count=60, between=""), config=site.config(ack=ack))
    assert "behind" not in result.err and "diverged" not in result.err, result.describe()
    site.assert_mirrored("loop.h5")
    assert site.versions("loop.h5") == list(range(1, 62))
    assert site.record("loop.h5")["state"] == "clean"
    with_export = site.export("loop.h5", 31)
    count = site.run(site.script(f"print(h5py.File({str(with_export)!r})['d'][29 * 7])"), env=site.plain_env())
    assert count.ok().out.strip() == "29.0", count.describe()


def test_server_killed_under_a_loop_of_opens(site):
    """The next open sends again the changes that a killed server had not made durable."""
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    loop = LOOP.format(count=1500, between="time.sleep(0.002)")
    writer = site.start(site.script(loop), config=site.config(ack="applied"))
    kills = 0
    while writer.running() and kills < 6:
        time.sleep(chance.uniform(0.1, 0.9))
        site.server.kill9()
        kills += 1
        site.server.start()
    result = writer.wait(100).ok()
    assert "diverged" not in result.err, result.describe()
    print("afterwards:", storm.bring_level(site, "loop.h5"))
    site.assert_mirrored("loop.h5")
    assert kills >= 3, "the writer ended before the server was killed often"
    assert_whole(site, site.versions("loop.h5")[-12:])


def test_writer_killed_in_a_loop_of_opens_leaves_a_cut(site):
    """kill -9 between two opens or within one: the head is the content of some close."""
    writer = site.start(site.script(LOOP.format(count=100_000, between="")), config=site.config(ack="applied"))
    site.wait_for_cut("loop.h5")
    time.sleep(1.5)
    wait_until(lambda: len(site.versions("loop.h5")) > 3, "there are no closes")  # The first one has no attribute yet.
    writer.kill()
    site.wait_for_no_lease("loop.h5")
    site.settle("loop.h5")
    said = site.run(site.script(f"""
        with h5py.File({str(site.head("loop.h5"))!r}) as f:
            newest = max(f.attrs.values())
            print(int(newest), int(f["d"][newest * 7 % 20_000]))
    """), env=site.plain_env()).ok().out.split()
    assert said[0] == said[1], said
