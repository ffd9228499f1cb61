"""The server is killed again and again under eight writers: no acked write is lost, and every head opens."""

import json
import os
import random
import time

import pytest

from harness import hdf5, paths
from harness.process import wait_until

KILLS = 100 if os.environ.get("H5MIRROR_TEST_ALL") else 20
WRITERS = 8

# Opens, changes and closes its file; notes what the server acked as durable; pushes where the two sides differ.
WRITER = """
    import json, subprocess
    name, cli, server, root = sys.argv[1:5]
    acked = open(name + ".acked", "a")
    n = 0
    plain = {key: value for key, value in os.environ.items() if not key.startswith("HDF5_")}
    while not os.path.exists("stop"):
        n += 1
        with h5py.File(name, "a") as f:
            f.attrs["n"] = n
            f.require_dataset("d", (3000,), "i8")[(n * 7) % 2000:] = n
            if n % 3 == 0:
                f.flush()
        try:
            record = json.load(open(name + ".h5m/client.json"))
        except OSError:
            continue  # Not one answer yet.
        if record["state"] == "clean" and record["version"]:
            acked.write(json.dumps([record["version"], n]) + "\\n")
            acked.flush()
        elif record["state"] in ("behind", "diverged"):
            subprocess.run([cli, "--server", server, "push", "--replace", "--root", root, name], env=plain,
                           capture_output=True, timeout=60)
"""


@pytest.mark.limit(900)
def test_nothing_acked_is_lost(bare_site):
    site = bare_site
    chance = random.Random(20211103)
    names = [f"w{n}.h5" for n in range(WRITERS)]
    command = site.script(WRITER)
    writers = [site.start([*command, name, paths.BIN / "h5mirror", site.server.address, site.work],
                          config=site.config(timeout="2s")) for name in names]

    def acked_lines(name: str) -> int:
        notes = site.work / f"{name}.acked"
        return notes.read_text().count("\n") if notes.exists() else 0

    for kill in range(KILLS):
        if kill % 5 == 0:  # Some of the kills come after an ack, however slow the machine is.
            before = sum(map(acked_lines, names))
            wait_until(lambda: sum(map(acked_lines, names)) > before, "nothing is acked", 120)
        time.sleep(chance.uniform(0.02, 0.9))
        site.server.kill9()
        site.server.start()
    wait_until(lambda: all(map(acked_lines, names)) and sum(map(acked_lines, names)) > KILLS,
               "the writers get little done", 120)
    (site.work / "stop").touch()
    for writer in writers:
        writer.wait(120).ok()
    acked_count = 0
    for name in names:
        site.wait_for_no_lease(name)
        site.settle(name)
        hdf5.assert_opens(site.head(name))
        versions = site.versions(name)
        acked = [json.loads(line) for line in (site.work / f"{name}.acked").read_text().splitlines()]
        acked_count += len(acked)
        missing = [version for version, _ in acked if version not in versions]
        assert not missing, f"{name}: versions {missing} were acked as durable and are gone"
        # Of a long history, a sample and the newest: each has the bytes at its ack.
        for version, n in chance.sample(acked[:-1], min(6, len(acked) - 1)) + acked[-1:]:
            out = site.export(name, version)
            read = site.run(site.script(f"""
                with h5py.File({str(out)!r}) as f:
                    assert (f["d"][({n} * 7) % 2000:] == {n}).all()
                    print(f.attrs["n"])
            """), env=site.plain_env()).ok().out
            assert int(read) == n, f"{name}@{version} has n = {read}, {n} was acked"
            out.unlink()
    assert acked_count > KILLS, "the writers got something done"
