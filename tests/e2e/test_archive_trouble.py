"""An archive in S3 that cannot be used: each error names the place and the way out, writers notice nothing, and all is
archived once it works again."""

import contextlib

import pytest

from harness import paths
from harness.process import wait_until
from harness.s3 import S3, Trouble
from test_archive import ONCE, segments, server_state, site_with, write


@contextlib.contextmanager
def service(tmp_path, **options):
    s3 = S3(tmp_path, **options)
    try:
        yield s3
    finally:
        s3.close()


def assert_told(site, *words):
    """A request ends with an error that has these words, and the server's report on its archive has them too."""
    def shown():
        refused = site.cli("archive", "run.h5")
        assert refused.code != 0, refused.describe()
        return all(word in refused.err for word in words)

    wait_until(shown, f"nobody tells of {words}", 60)
    wait_until(lambda: all(word in server_state(site)["error"] for word in words), f"no state has {words}", 60)


def archive_again(site):
    """The server may notice a moment later that the archive works again."""
    wait_until(lambda: site.cli("archive", "run.h5").code == 0, "it is not archived", 60)
    wait_until(lambda: server_state(site)["error"] == "", "it is not well again", 60)
    assert not segments(site, "run.h5")


long = pytest.mark.skipif(not paths.TEST_ALL, reason="takes longer: with --all only")

TROUBLES = {
    "keys that nobody knows": (Trouble(403, "InvalidAccessKeyId"), "does not know the access key", "s3-keys"),
    "a wrong secret": (Trouble(403, "SignatureDoesNotMatch"), "the secret key is wrong", "s3-keys"),
    "keys without rights": (Trouble(403, "AccessDenied"), "DeleteObject and ListBucket are needed", "s3-keys"),
    "a bucket that is not there": (Trouble(404, "NoSuchBucket"), "make the bucket first"),
    "clocks apart": (Trouble(403, "RequestTimeTooSkewed", clock_seconds=-7200), "ahead of that of the service"),
    "a full bucket": (Trouble(403, "QuotaExceeded"), "raise the quota"),
    "a busy service": (Trouble(503, "SlowDown"), "503 SlowDown"),
}


@long
def test_each_trouble_is_named_and_passes(tmp_path):
    with service(tmp_path) as s3, site_with(tmp_path, s3.url(), **ONCE) as site:
        write(site, "run.h5", 0, 2)
        site.keep("run.h5")
        archive_again(site)
        for n, (trouble, *words) in enumerate(TROUBLES.values(), 2):
            s3.trouble = trouble
            # All but a full bucket keep readers out, too.
            s3.troubled = ("PUT",) if trouble.code == "QuotaExceeded" else ("GET", "HEAD", "PUT", "DELETE")
            write(site, "run.h5", n, n + 1)
            assert_told(site, "s3://lab-history/node7", *words)
            assert segments(site, "run.h5")
            assert site.export("run.h5", n + 1).read_bytes() == site.head("run.h5").read_bytes()
            s3.trouble = None
            archive_again(site)
            site.keep("run.h5")
        site.check_kept()


def test_an_endpoint_that_is_down_at_start_and_stop(tmp_path):
    with service(tmp_path) as s3, site_with(tmp_path, s3.url(), **ONCE) as site:
        write(site, "run.h5", 0, 3)
        site.keep("run.h5")
        archive_again(site)
        write(site, "run.h5", 3, 5)
        site.keep("run.h5")
        s3.down()
        assert_told(site, "s3://lab-history/node7", "connect to server", "127.0.0.1")
        site.server.stop(timeout=15)
        site.server.start(timeout=20)
        assert site.export("run.h5", 5).read_bytes() == site.head("run.h5").read_bytes()
        s3.up()
        archive_again(site)
        site.check_kept()


@long
def test_a_stop_and_a_start_while_the_service_does_not_answer(tmp_path):
    with service(tmp_path) as s3, site_with(tmp_path, s3.url(), **ONCE, archive_heads=True) as site:
        write(site, "run.h5", 0, 3)
        site.keep("run.h5")
        s3.trouble = Trouble(hangs=True)
        order = site.start([paths.BIN / "h5mirror", "--server", site.address, "archive", "run.h5"], env=site.plain_env())
        wait_until(lambda: s3.hanging, "no call hangs", 30)
        site.server.stop(timeout=15)
        assert order.wait(30).code == 4
        site.server.start(timeout=20)
        write(site, "run.h5", 3, 4)
        site.keep("run.h5")
        site.server.stop(timeout=15)
        s3.trouble = None
        site.server.start()
        archive_again(site)
        site.check_kept()


def test_a_certificate_of_an_unknown_authority(tmp_path):
    with service(tmp_path, tls=True) as s3, site_with(tmp_path, s3.url(), **ONCE) as site:
        write(site, "run.h5", 0, 2)
        site.keep("run.h5")
        assert_told(site, "https://127.0.0.1", "ca=FILE")
        site.server.stop()
        site.server.options["archive"] = s3.url(ca=s3.authority)
        site.server.start()
        archive_again(site)
        site.check_kept()


def test_two_servers_with_one_prefix(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with service(tmp_path) as s3, site_with(tmp_path, s3.url(), **ONCE) as site:
        write(site, "run.h5", 0, 2)
        site.keep("run.h5")
        archive_again(site)
        there = dict(s3.objects)
        with site_with(other, s3.url(), **ONCE) as second:
            write(second, "run.h5", 0, 2)
            assert_told(second, "s3://lab-history/node7 is the archive of another root", "of its own")
            assert s3.objects == there
            second.server.stop()
            second.server.options["archive"] = s3.url("node8")
            second.server.start()
            archive_again(second)
        site.check_kept()


@long
def test_a_directory_on_which_nothing_is_mounted(tmp_path):
    place = tmp_path / "mnt"
    place.mkdir()
    with site_with(tmp_path, f"dir:{place}", **ONCE, archive_heads=True) as site:
        wait_until(lambda: "is its disk mounted" in site.server.log(), "nobody is warned of one disk", 30)
        write(site, "run.h5", 0, 3)
        site.keep("run.h5")
        archive_again(site)
        away = place.with_name("away")
        for n, restarts in enumerate((False, True), 3):
            write(site, "run.h5", n, n + 1)
            site.keep("run.h5")
            place.rename(away)
            place.mkdir()
            if restarts:
                site.server.stop()
                site.server.start()
            assert_told(site, str(place), "lacks the object", "is its disk mounted")
            read = site.cli("export", "run.h5@1", tmp_path / f"{n}.h5")
            # A server that has the directory open can still read in it.
            assert not restarts or (read.code != 0 and str(place) in read.err), read.describe()
            assert not list(place.iterdir()), "a second life began in it"
            place.rmdir()
            away.rename(place)
            archive_again(site)
        site.check_kept()
