"""The archive of a cluster: each cell has its part of it, which goes with the cell from server to server.

The registry is in a file, and the root is a local directory: nothing but the stores' locks fences. Late calls of a
server that has lost a cell are tested beside the code (onion_store/file/archive_late_calls_test.cc).
"""

import json
import shutil
import signal
import stat

import pytest
from harness import hdf5, paths
from harness.cluster import Cluster
from harness.process import Process, run, wait_until
from test_archive import s3  # noqa: F401  the fixture

# Archives only on request.
OPTIONS = {"archive_every": "1h", "archive_after": "0s", "archive_heads": "true"}


def write(cluster, name, first, end, count=20_000):
    site = cluster.tools
    site.py(f"""
        os.makedirs(os.path.dirname("{name}"), exist_ok=True)
        for n in range({first}, {end}):
            with h5py.File("{name}", "a") as f:
                f.attrs["n"] = n
                f.require_dataset("d", ({count},), "f8")[:] = np.random.rand({count})
    """)
    site.settle(name)
    site.keep(name)


def archive(cluster, *names):
    for name in names:
        cluster.tools.cli("archive", name).ok()


def check(cluster, *names):
    """All versions that were noted are there, and the checksums of all bytes are right."""
    for name in names:
        cluster.tools.check_versions_kept(name)
        cluster.tools.cli("verify", name).ok()


def segments(cluster, name):
    return sorted((cluster.site.root / f"{name}.h5m").glob("pages-*"))


def objects(place, kind="pages"):
    return sorted(each for each in place.rglob(f"{kind}-*") if not each.name.endswith(".new"))


def restore(cluster, place, *more, root):
    """`place`: a directory, or a URL."""
    url = place if isinstance(place, str) else f"dir:{place}"
    command = [paths.BIN / "h5mirrord", "restore-root", "--archive", url, "--root", root, "--json", *more]
    return run(command, cluster.site.logs, env=cluster.site.plain_env(), name="restore-root")


@pytest.fixture
def place(tmp_path):
    directory = tmp_path / "archive"
    directory.mkdir()
    return directory


@pytest.fixture
def make(tmp_path, place):
    if not paths.TEST_ALL:
        pytest.skip("./dev test --all runs it")
    made = []

    def start(**options):
        home = tmp_path / f"cluster-{len(made)}"
        home.mkdir()
        made.append(Cluster(home, nodes="ab", cells=("p", "q"),
                            options={"archive": f"dir:{place}", **OPTIONS, **options}))
        return made[-1].start()

    yield start
    for each in made:
        each.close()


def test_each_cell_has_its_part_and_takes_it_along(make, place):
    """Archived versions can be read at the next owner of the cell, and be brought back there."""
    cluster = make()
    names = ("p/run.h5", "q/run.h5")
    for name in names:
        write(cluster, name, 0, 8)
    archive(cluster, *names)
    owners = {cell: (place / "cells" / cell / "root").read_text() for cell in "pq"}
    assert owners["p"] != owners["q"] and not (place / "root").exists()
    for cell in "pq":
        assert objects(place / "cells" / cell) and not segments(cluster, f"{cell}/run.h5")
    status = cluster.tools.json("status")["archive"]
    assert status["error"] == "" and status["place"] == str(place)
    stats = cluster.tools.json("stats", "p/run.h5")
    assert stats["archive_objects"] == len([each for each in (place / "cells/p/files").rglob("*") if each.is_file()])
    check(cluster, *names)
    epoch = cluster.epoch("p")
    lost = cluster.owner("p")
    cluster.kill(lost)
    cluster.wait_for_owner("p", epoch)
    wait_until(lambda: cluster.tools.cli("--timeout", "1", "status", "p/run.h5").code == 0, "it does not answer", 60)
    check(cluster, "p/run.h5")
    cluster.tools.cli("rollback", "p/run.h5@2").ok()
    cluster.tools.settle("p/run.h5")
    assert segments(cluster, "p/run.h5"), "a rollback brings back what it needs"
    write(cluster, "p/run.h5", 8, 10)
    archive(cluster, "p/run.h5")
    assert not segments(cluster, "p/run.h5")
    check(cluster, "p/run.h5")
    assert (place / "cells/p/root").read_text() == owners["p"], "the owner is the cell, and no server"


@pytest.mark.limit(280)
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_an_owner_is_lost_in_the_middle_of_an_archive_job(make, place, end):
    """It is killed while it puts an object, which takes 2 s at least; or it stands still, and wakes up later."""
    cluster = make(archive_rate="4MiB")
    write(cluster, "p/run.h5", 0, 4, count=500_000)
    before = objects(place)
    owner, epoch = cluster.owner("p"), cluster.epoch("p")
    order = Process([paths.BIN / "h5mirror", "--server", cluster.addresses[owner], "archive", "p/run.h5"],
                    cluster.site.logs, env=cluster.site.plain_env(), name="archive")
    cluster.site.beside.append(order)
    wait_until(lambda: list(place.rglob("*.new")) or len(objects(place)) > len(before), "nothing is put", 60)
    if end == signal.SIGKILL:
        cluster.kill(owner)
    else:
        cluster.front.mark(owner, down=True)
        cluster.servers[owner].process.signal(signal.SIGSTOP)
        other = cluster.servers[1 - owner]
        wait_until(lambda: "cannot be opened" in other.log(), f"nobody gives it up:\n{cluster.logs()}", 60)
        cluster.servers[owner].process.signal(signal.SIGCONT)
        cluster.assert_fenced(owner)
    order.kill()
    cluster.wait_for_owner("p", epoch)
    wait_until(lambda: cluster.tools.cli("--timeout", "1", "status", "p/run.h5").code == 0, "it does not answer", 60)
    check(cluster, "p/run.h5")
    archive(cluster, "p/run.h5")
    assert not segments(cluster, "p/run.h5") and not list(place.rglob("*.new"))
    # Objects of the former owner are given up, not taken over: each segment has one object.
    numbers = [each.name.split("-")[1] for each in objects(place / "cells/p")]
    assert len(numbers) == len(set(numbers))
    check(cluster, "p/run.h5")
    # Objects that a prune makes useless are deleted, though another server put them: with the next copy, since the last
    # one may need them.
    cluster.tools.kept.clear()
    cluster.tools.cli("prune", "p/run.h5", "--keep-last", "1").ok()
    archive(cluster, "p/run.h5")
    assert not objects(place / "cells/p")


def test_a_cell_moves_while_it_is_archived(make, place):
    """The move waits for no call of the archive, which would take half a minute here."""
    cluster = make(archive_rate="4MiB")
    write(cluster, "p/run.h5", 0, 6, count=2_000_000)
    owner, epoch = cluster.owner("p"), cluster.epoch("p")
    order = Process([paths.BIN / "h5mirror", "--server", cluster.addresses[owner], "archive", "p/run.h5"],
                    cluster.site.logs, env=cluster.site.plain_env(), name="archive")
    cluster.site.beside.append(order)
    wait_until(lambda: list(place.rglob("*.new")), "nothing is put", 60)
    cluster.tools.cli("cluster", "move", "p", cluster.nodes[1 - owner]).ok()
    assert cluster.wait_for_owner("p", epoch) == 1 - owner
    assert order.wait(60).code != 0
    assert all(server.running() for server in cluster.servers)
    assert cluster.tools.json("status")["archive"]["error"] == ""
    cluster.tools.check_versions_kept("p/run.h5")


def test_another_cluster_does_not_get_into_the_archive(make, place):
    first = make()
    write(first, "p/run.h5", 0, 4)
    archive(first, "p/run.h5")
    there = objects(place)
    second = make()
    write(second, "p/run.h5", 0, 4)
    refused = second.tools.cli("archive", "p/run.h5")
    assert refused.code == 5 and "archive of another root" in refused.err, refused.describe()
    assert objects(place) == there and segments(second, "p/run.h5")
    # Of the other cell there is no part yet.
    write(second, "q/run.h5", 0, 4)
    refused = second.tools.cli("archive", "q/run.h5")
    assert refused.code == 5 and "archive of another cluster" in refused.err, refused.describe()
    assert str(first.site.root) in refused.err and str(second.site.root) in refused.err, refused.describe()
    assert "another cluster" in second.tools.json("status")["archive"]["error"]
    assert not (place / "cells" / "q").exists() and segments(second, "q/run.h5")
    check(second, "q/run.h5")
    write(first, "q/run.h5", 0, 4)
    archive(first, "q/run.h5")


def test_a_lost_cluster_is_rebuilt_from_its_archive(make, place, tmp_path):
    cluster = make()
    names = ("p/run.h5", "p/deep/run.h5", "q/run.h5")
    for name in names:
        write(cluster, name, 0, 4)
    archive(cluster, *names)
    heads = {name: hdf5.digest(cluster.site.root / name) for name in names}
    for index in range(2):
        cluster.kill(index)
    new = tmp_path / "new"
    new.mkdir()
    shown = json.loads(restore(cluster, place, "--dry-run", root=new).ok().out)
    assert sorted(each["name"] for each in shown["files"]) == sorted(names) and not list(new.iterdir())
    one = tmp_path / "one"
    one.mkdir()
    alone = json.loads(restore(cluster, place, "--cell", "p", root=one).ok().out)
    assert sorted(each["name"] for each in alone["files"]) == ["deep/run.h5", "run.h5"]
    assert hdf5.digest(one / "run.h5") == heads["p/run.h5"]
    some = json.loads(restore(cluster, place, "--files", "q/*", root=new).ok().out)
    assert [each["name"] for each in some["files"]] == ["q/run.h5"] and not (new / "p").exists()
    none = restore(cluster, place, "--cell", "no", root=tmp_path / "one")
    assert none.code == 1 and "no archive of a root" in none.err, none.describe()
    # In place of the root that is gone, with the archive as it is.
    for cell in "pq":
        shutil.rmtree(cluster.site.root / cell)
    done = json.loads(restore(cluster, place, "--take-over", root=cluster.site.root).ok().out)
    assert done["done"] and {each["state"] for each in done["files"]} == {"restored"}
    epochs = {cell: cluster.epoch(cell) for cell in "pq"}
    for index in range(2):
        cluster.restart(index)
    for cell in "pq":
        cluster.wait_for_owner(cell, epochs[cell])
    wait_until(lambda: all(cluster.tools.cli("--timeout", "1", "status", name).code == 0 for name in names),
               "not all files are served", 60)
    check(cluster, *names)
    write(cluster, "q/run.h5", 4, 6)
    archive(cluster, *names)
    check(cluster, *names)


def test_the_archive_of_a_cluster_is_in_s3(make, tmp_path, s3):  # noqa: F811
    url, env, _ = s3
    keys = tmp_path / "keys"
    keys.write_text(f"[default]\naws_access_key_id = {env['AWS_ACCESS_KEY_ID']}\n"
                    f"aws_secret_access_key = {env['AWS_SECRET_ACCESS_KEY']}\n")
    keys.chmod(stat.S_IRUSR | stat.S_IWUSR)
    url = f"{url}&credentials={keys}"
    cluster = make(archive=url)
    names = ("p/run.h5", "q/run.h5")
    for name in names:
        write(cluster, name, 0, 4)
    archive(cluster, *names)
    assert not segments(cluster, "p/run.h5") and not segments(cluster, "q/run.h5")
    epoch = cluster.epoch("p")
    cluster.kill(cluster.owner("p"))
    cluster.wait_for_owner("p", epoch)
    wait_until(lambda: cluster.tools.cli("--timeout", "1", "status", "p/run.h5").code == 0, "it does not answer", 60)
    check(cluster, "p/run.h5")
    write(cluster, "p/run.h5", 4, 6)
    archive(cluster, "p/run.h5")
    check(cluster, "p/run.h5")
    new = tmp_path / "new"
    new.mkdir()
    done = json.loads(restore(cluster, url, root=new).ok().out)
    assert sorted(each["name"] for each in done["files"]) == sorted(names)
    for name in names:
        assert hdf5.digest(new / name) == hdf5.digest(cluster.site.root / name)
