"""Old versions go to an archive, and read as before: also while it is away, full, or the server is killed."""

import contextlib
import random
import signal
import stat
import time

import pytest
from harness import mounts, paths
from harness.metrics import Metrics
from harness.process import Process, wait_until
from harness.site import Site

WRITE = """
    for n in range({first}, {end}):
        with h5py.File("{name}", "a") as f:
            f.attrs["n"] = n
            f.require_dataset("d", (20_000,), "f8")[:] = np.random.rand(20_000)
"""
ONCE = {"archive_every": "1h", "archive_after": "0s"}  # only on request
ALWAYS = {"archive_every": "1s", "archive_after": "0s"}


def write(site, name, first, end):
    site.py(WRITE.format(name=name, first=first, end=end))
    site.settle(name)


def segments(site, name):
    return sorted((site.root / f"{name}.h5m").glob("pages-*"))


def objects(archive):
    return sorted(each for each in archive.rglob("pages-*") if not each.name.endswith(".new"))


def server_state(site):
    return site.json("status")["archive"]


@contextlib.contextmanager
def site_with(tmp_path, archive, **options):
    site = Site(tmp_path, options={"archive": archive, **options})
    try:
        site.server.start()
        yield site
    finally:
        site.close()


@pytest.fixture
def archive(tmp_path):
    directory = tmp_path / "archive"
    directory.mkdir()
    return directory


@pytest.fixture
def ordered(tmp_path, archive):
    """A site that archives only on request, and whose run.h5 has ten noted versions."""
    with site_with(tmp_path, f"dir:{archive}", **ONCE) as site:
        write(site, "run.h5", 0, 10)
        site.keep("run.h5")
        yield site


def remote_number(site, version):
    """The content of a version for a reader on another machine."""
    script = site.script(f'print(h5py.File("run.h5", "r").attrs["n"], h5py.File("run.h5", "r")["d"][:].sum() > 0)')
    config = site.config(mode="reader", version=version)
    number, has_data = site.run(script, config=config).ok().out.split()
    assert has_data == "True"
    return int(number)


def test_the_server_archives_by_itself_and_readers_see_no_difference(tmp_path, archive):
    with site_with(tmp_path, f"dir:{archive}", **ALWAYS) as site:
        metrics = Metrics(site)
        write(site, "run.h5", 0, 10)
        site.keep("run.h5")
        wait_until(lambda: not segments(site, "run.h5"), "nothing is archived", 60)
        assert objects(archive) and site.status("run.h5")["history_bytes"] == 0
        site.check_kept()
        assert [remote_number(site, version) for version in (1, 5, 10)] == [0, 4, 9]
        assert site.cli("verify", "run.h5").ok()
        assert metrics.value("h5mirror_archive_archived_bytes_total") > 0
        assert metrics.value("h5mirror_archive_failing") == 0
        state = server_state(site)
        assert state["place"] == str(archive) and state["error"] == "" and state["archived_bytes"] > 0
        assert f"{archive}: answers" in site.cli("status").ok().out
        write(site, "run.h5", 10, 13)
        wait_until(lambda: not segments(site, "run.h5"), "what follows is not archived", 60)
        site.check_kept()
        site.server.stop()
        site.server.start()
        site.check_kept()


def test_a_file_is_archived_by_order(ordered, archive):
    assert segments(ordered, "run.h5") and not objects(archive)
    done = ordered.json("archive", "run.h5")
    assert done["segments_archived"] == 1 and done["left"] == ""
    assert done["archived_bytes"] == done["freed_bytes"] > 0
    assert len(objects(archive)) == 1 and not segments(ordered, "run.h5")
    stats = ordered.json("stats", "run.h5")
    assert stats["archive_objects"] == 1 and stats["pages_bytes"] == 0
    assert stats["archive_bytes"] == objects(archive)[0].stat().st_size
    assert " in 1 object\n" in ordered.cli("stats", "run.h5").ok().out
    ordered.check_kept()
    assert "run.h5: nothing new to archive" in ordered.cli("archive", "run.h5").ok().out
    write(ordered, "run.h5", 10, 13)
    write(ordered, "other.h5", 0, 3)
    shown = ordered.cli("archive", "--all", "--keep", "1GiB").ok().out
    assert "other.h5: archived 1 segment" in shown and "2 files:" in shown, shown
    assert len(objects(archive)) == 3
    assert len(segments(ordered, "run.h5")) == 1, "what is kept stays on the disk too"
    assert ordered.cli("archive", "--all", "--older-than", "1d").ok().out.startswith("0 files")
    ordered.check_kept()


def test_orders_that_cannot_be_filled_say_why(ordered, archive):
    assert ordered.cli("archive", "no.h5").code == 3
    for bad in ((), ("run.h5", "--all"), ("run.h5", "--older-than", "1d"), ("run.h5", "--keep", "much")):
        assert ordered.cli("archive", *bad).code == 2, bad
    ordered.server.stop()
    del ordered.server.options["archive"]
    ordered.server.start()
    none = ordered.cli("archive", "run.h5")
    assert none.code == 5 and "set `archive`" in none.err, none.describe()
    assert ordered.json("status")["archive"] is None


def test_a_prune_deletes_what_it_made_useless(ordered, archive):
    ordered.cli("archive", "run.h5").ok()
    ordered.kept.clear()
    ordered.cli("prune", "run.h5", "--keep-last", "1").ok()
    assert not objects(archive)
    assert ordered.versions("run.h5") == [10]


def test_a_removed_file_keeps_its_objects_until_it_is_gone_for_good(ordered, archive):
    ordered.cli("archive", "run.h5").ok()
    ordered.cli("rm", "run.h5").ok()
    assert objects(archive)
    ordered.cli("undelete", "run.h5").ok()
    ordered.check_kept()
    ordered.kept.clear()
    ordered.server.options["removed_keep"] = "0s"
    ordered.server.stop()
    ordered.server.start()
    ordered.cli("rm", "run.h5").ok()
    ordered.server.stop()
    ordered.server.start()  # It looks for such files once an hour, and at its start.
    wait_until(lambda: not objects(archive), "a file that is gone keeps its objects", 60)


def test_an_archive_that_goes_away_hurts_no_writer_and_comes_back(ordered, archive):
    ordered.cli("archive", "run.h5").ok()
    away = archive.with_name("away")
    archive.rename(away)
    gone = ordered.cli("export", "run.h5@1", "-")
    assert gone.code == 4 and "run.h5" in gone.err and str(archive) in gone.err, gone.describe()
    assert "is not there" in server_state(ordered)["error"]
    assert ordered.json("stats", "run.h5")["archive_bytes"] is None
    doctor = ordered.cli("doctor", "--no-scratch")
    assert doctor.code == 0 and "WARN  archive " in doctor.out, doctor.describe()
    write(ordered, "run.h5", 10, 15)
    newest = ordered.export("run.h5", 15)
    assert newest.read_bytes() == ordered.head("run.h5").read_bytes()
    refused = ordered.cli("archive", "run.h5")
    assert refused.code == 4 and "is its disk mounted" in refused.err, refused.describe()
    archive.mkdir()  # The place where its disk should be.
    empty = ordered.cli("export", "run.h5@1", "-")
    assert empty.code == 5 and "lacks the object" in empty.err, empty.describe()
    assert not list(archive.iterdir())
    unsure = ordered.cli("verify", "run.h5")
    assert unsure.code == 5 and "lacks the object" in unsure.err, unsure.describe()
    archive.rmdir()
    away.rename(archive)
    ordered.check_kept()
    assert server_state(ordered)["error"] == ""
    ordered.cli("archive", "run.h5").ok()
    ordered.check_kept()


def test_a_server_starts_without_its_archive(ordered, archive):
    ordered.cli("archive", "run.h5").ok()
    ordered.server.stop()
    away = archive.with_name("away")
    archive.rename(away)
    ordered.server.start()
    write(ordered, "run.h5", 10, 12)
    wait_until(lambda: " fails (" in ordered.server.log(), "nobody is told", 30)
    away.rename(archive)
    ordered.check_kept()


def test_another_root_does_not_get_into_the_archive(ordered, archive, tmp_path):
    ordered.cli("archive", "run.h5").ok()
    other = tmp_path / "other"
    other.mkdir()
    with site_with(other, f"dir:{archive}", **ONCE) as second:
        write(second, "run.h5", 0, 3)
        refused = second.cli("archive", "run.h5")
        assert refused.code == 5 and "archive of another root" in refused.err, refused.describe()
        assert segments(second, "run.h5")
    assert len(objects(archive)) == 1


def test_a_full_archive_leaves_history_on_the_disk(tmp_path, archive):
    with mounts.tmpfs(archive, "512k") as resize:
        with site_with(tmp_path, f"dir:{archive}", **ONCE) as site:
            write(site, "run.h5", 0, 12)
            site.keep("run.h5")
            full = site.cli("archive", "run.h5")
            assert full.code == 1 and "No space left" in full.err, full.describe()
            assert segments(site, "run.h5")
            write(site, "run.h5", 12, 14)
            site.check_kept()
            resize("64m")
            site.cli("archive", "run.h5").ok()
            assert not segments(site, "run.h5")
            site.check_kept()


@pytest.mark.limit(280)
def test_kills_while_it_archives(tmp_path, archive):
    """Each time the server is killed in the middle of a put, which takes at least 1 s, or just after it."""
    with site_with(tmp_path, f"dir:{archive}", **ONCE, archive_rate="4MiB") as site:
        chance = random.Random(48)
        half_done = 0
        for turn in range(5):
            before = set(objects(archive))
            site.py(f"""
                for n in range({3 * turn}, {3 * turn + 3}):
                    with h5py.File("run.h5", "a") as f:
                        f.attrs["n"] = n
                        f.require_dataset("d", (250_000,), "f8")[:] = np.random.rand(250_000)
            """)
            site.settle("run.h5")
            site.keep("run.h5")
            order = Process([paths.BIN / "h5mirror", "--server", site.address, "archive", "run.h5"], site.logs,
                            env=site.plain_env(), name="archive")
            site.beside.append(order)
            wait_until(lambda: list(archive.rglob("*.new")) or set(objects(archive)) - before, "nothing is put", 60)
            time.sleep(chance.random())
            site.server.kill9()
            order.wait(60)
            half_done += bool(list(archive.rglob("*.new")) or segments(site, "run.h5"))
            site.server.start()
            site.check_versions_kept("run.h5")
        assert half_done, "no kill met the server at work"
        site.cli("archive", "run.h5").ok()
        assert not segments(site, "run.h5") and not list(archive.rglob("*.new"))
        site.check_kept()
        assert site.cli("verify", "run.h5").ok()


def test_a_directory_that_hangs_holds_few_readers_and_no_stop(tmp_path, archive):
    with site_with(tmp_path, f"dir:{archive}", **ONCE, stop_timeout="2s") as site:
        write(site, "run.h5", 0, 10)
        site.keep("run.h5")
        site.cli("archive", "run.h5").ok()
        site.server.stop()
        site.server.start()  # It has no block of an object in memory.
        with mounts.hanging(archive):
            waiting = [Process([paths.BIN / "h5mirror", "--server", site.address, "export", "run.h5@1",
                                tmp_path / f"out-{number}"], site.logs, env=site.plain_env(), name=f"export-{number}")
                       for number in range(12)]
            site.beside.extend(waiting)
            wait_until(lambda: sum(not each.running() for each in waiting) >= 4, "all readers wait for it", 60)
            assert {each.wait(1).code for each in waiting if not each.running()} == {4}
            assert any(each.running() for each in waiting), "nobody waited for the archive"
            write(site, "run.h5", 10, 12)
            assert site.export("run.h5", 12).read_bytes() == site.head("run.h5").read_bytes()
            began = time.monotonic()
            site.server.process.signal(signal.SIGTERM)
            assert site.server.process.wait(30).code == 7
            assert time.monotonic() - began < 20
        site.server.start()
        site.check_kept()


def test_a_stop_does_not_wait_for_the_archive(tmp_path, archive):
    """A put of some 250 KiB/s would take minutes."""
    with site_with(tmp_path, f"dir:{archive}", **ONCE, archive_rate="4MiB") as site:
        site.py("""
            for n in range(6):
                with h5py.File("run.h5", "a") as f:
                    f.require_dataset("d", (2_000_000,), "f8")[:] = np.random.rand(2_000_000)
        """)
        site.settle("run.h5")
        site.keep("run.h5")
        order = Process([paths.BIN / "h5mirror", "--server", site.address, "archive", "run.h5"], site.logs,
                        env=site.plain_env(), name="archive")
        site.beside.append(order)
        wait_until(lambda: list(archive.rglob("*.new")), "nothing is put", 30)
        began = time.monotonic()
        site.server.stop(timeout=15)
        assert time.monotonic() - began < 10
        assert order.wait(30).code == 4
        site.server.start()
        site.check_kept()


def test_keys_that_others_can_read_are_refused(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("[default]\naws_access_key_id = A\naws_secret_access_key = S\n")
    keys.chmod(0o644)
    url = f"s3://bucket/lab?endpoint=http://127.0.0.1:9&credentials={keys}"
    site = Site(tmp_path, options={"archive": url})
    try:
        refused = site.server.launch().wait(60)
        assert refused.code == 2 and "archive = " in refused.err and str(keys) in refused.err, refused.describe()
        assert "S\n" not in refused.err
        keys.chmod(0o600)
        site.server.start()  # No service answers there; the root is served all the same.
        write(site, "run.h5", 0, 2)
        wait_until(lambda: server_state(site)["error"], "nobody is told", 60)
        began = time.monotonic()
        site.server.stop()
        assert time.monotonic() - began < 15
    finally:
        site.close()


@pytest.fixture
def s3(tmp_path):
    """The URL of an S3 service of its own, and the environment with its keys."""
    python = paths.CACHE / "venv-s3" / "bin" / "python"
    if not paths.TEST_ALL or not python.exists():
        pytest.skip("./dev test --all runs it beside an S3 service")
    told = tmp_path / "s3-environment"
    service = Process([python, paths.SOURCE / "tests/archive/with_s3.py", "sh", "-c",
                       f"env > {told}.new; mv {told}.new {told}; exec sleep 1000"], tmp_path, name="s3")
    try:
        wait_until(told.exists, "the S3 service does not start", 60)
        env = dict(line.split("=", 1) for line in told.read_text().splitlines() if "=" in line)
        yield f"s3://{env['H5M_TEST_S3_BUCKET']}/lab?endpoint={env['H5M_TEST_S3_ENDPOINT']}", env, service
    finally:
        service.signal(signal.SIGCONT)
        service.kill()


def test_an_s3_service_that_hangs_hurts_no_writer(tmp_path, s3):
    url, env, service = s3
    keys = tmp_path / "keys"
    keys.write_text(f"[default]\naws_access_key_id = {env['AWS_ACCESS_KEY_ID']}\n"
                    f"aws_secret_access_key = {env['AWS_SECRET_ACCESS_KEY']}\n")
    keys.chmod(stat.S_IRUSR | stat.S_IWUSR)
    with site_with(tmp_path, f"{url}&credentials={keys}", **ONCE) as site:
        write(site, "run.h5", 0, 10)
        site.keep("run.h5")
        site.cli("archive", "run.h5").ok()
        assert not segments(site, "run.h5")
        site.check_kept()
        site.server.stop()
        site.server.start()  # It has no block of an object in memory.
        service.signal(signal.SIGSTOP)
        h5mirror = [paths.BIN / "h5mirror", "--server", site.address]
        waiting = [Process([*h5mirror, "export", "run.h5@1", tmp_path / f"out-{number}"], site.logs,
                           env=site.plain_env(), name=f"export-{number}") for number in range(6)]
        site.beside.extend(waiting)
        write(site, "run.h5", 10, 13)
        waiting.append(Process([*h5mirror, "archive", "--all"], site.logs, env=site.plain_env(), name="archive"))
        site.beside.append(waiting[-1])
        assert site.export("run.h5", 13).read_bytes() == site.head("run.h5").read_bytes()
        assert any(each.running() for each in waiting), "nobody waited for the service"
        began = time.monotonic()
        site.server.stop()
        assert time.monotonic() - began < 15
        assert {each.wait(60).code for each in waiting} == {4}
        service.signal(signal.SIGCONT)
        site.server.start()
        site.cli("archive", "run.h5").ok()
        assert not segments(site, "run.h5")
        site.check_kept()
