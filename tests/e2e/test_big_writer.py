"""A writer of a 2 GiB file that is killed again and again."""

import filecmp
import random
import shutil
import signal
import time

import pytest

from harness import hdf5, paths
from harness.process import run
from harness.site import Site

MIB, STEP_MIB = 2048, 32


def steps_in(site, path) -> int:
    """Checks a file of steps.py with no plugin; the steps that it holds."""
    command = [site.python, paths.PROGRAMS / "check_steps.py", path, STEP_MIB]
    return int(run(command, site.logs, env=site.plain_env(), timeout=300).ok().out)


@pytest.mark.limit(1100)
def test_random_kill_of_the_writer_of_a_2_gib_file(tmp_path):
    """Three times: the head opens, is the last complete cut, and `recover` brings the local file to it."""
    seed = random.SystemRandom().randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    site = Site(tmp_path)
    program = [site.python, paths.PROGRAMS / "steps.py", "big.h5", MIB, STEP_MIB]
    config = None
    try:
        site.server.start()
        for kill in range(3):
            config = site.config(ack_tick="applied", timeout="60s")
            writer = site.start(program, config=config)
            wanted = chance.randrange(2, 9)  # A moment within the third to the ninth step of this run.
            while writer.out().count("cut") < wanted:
                assert writer.running(), writer.wait().describe()
                time.sleep(0.02)
            time.sleep(chance.uniform(0, 0.2))  # Far from the 64th step, which three runs must not reach.
            assert writer.running(), "it came to its end"
            writer.signal(signal.SIGKILL)
            acked = int(writer.wait().out.split()[-1])
            site.wait_for_no_lease("big.h5")
            site.settle("big.h5", timeout=300)
            hdf5.assert_opens(site.head("big.h5"))
            steps = steps_in(site, site.head("big.h5"))
            print(f"kill {kill + 1}: the writer saw {acked} steps acked, the head has {steps}")
            assert acked <= steps <= acked + 1, "the head is the last complete cut"
            site.cli("recover", site.local("big.h5"), timeout=300).ok()
            assert filecmp.cmp(site.local("big.h5"), site.head("big.h5"), shallow=False)
            assert steps_in(site, site.local("big.h5")) == steps
            for broken in site.work.glob("big.h5.*"):
                if broken.is_file():
                    broken.unlink()
        site.run(program, config=config, timeout=300).ok()
        site.assert_mirrored("big.h5")
        assert steps_in(site, site.head("big.h5")) == MIB // STEP_MIB
        assert site.log("big.h5")[0]["comment"] == ""
        assert sum("writer lost" in row["comment"] for row in site.log("big.h5")) == 3
    finally:
        site.close()
        shutil.rmtree(tmp_path)
