"""A reader gets a file's metadata in a few answers, however many objects it has."""

import pytest

from harness.metrics import Metrics
from harness.proxy import Proxy

OBJECTS = 12_000
MAKE = """
    with h5py.File("run.h5", {mode!r}, libver={libver!r}) as f:
        for i in range({groups}):
            g = f.create_group("{prefix}%03d" % i)
            for j in range(999):
                g.create_dataset("d%04d" % j, data=np.arange(3))
        {extra}
"""
WALK = """
    count = 0
    def look(name, thing):
        global count
        count += 1
        assert isinstance(thing, h5py.Group) or thing.shape == (3,) or name == "raw", name
    with h5py.File("run.h5", {open_mode!r}) as f:
        f.visititems(look)
    print(count)
"""
READS = ("ReadVersion", "ReadSnapshot", "FindVersion")


def make(libver="latest", mode="w", groups=OBJECTS // 1000, prefix="g", extra="pass"):
    return MAKE.format(libver=libver, mode=mode, groups=groups, prefix=prefix, extra=extra)


def walk(site, mode="reader", open_mode="r", **keys):
    """Objects that a reader found."""
    return int(site.py(WALK.format(open_mode=open_mode), config=site.config(mode=mode, **keys), timeout=120).out)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_many_objects_take_few_answers(bare_site, libver):
    site = bare_site
    metrics = Metrics(site)
    site.py(make(libver), timeout=120)
    assert walk(site) == OBJECTS
    calls = metrics.calls(*READS)
    assert 2 <= calls <= 8, calls
    # The server keeps what it knows of the file over a restart.
    metrics = Metrics(site)
    assert walk(site, version="latest") == OBJECTS
    assert 2 <= metrics.calls(*READS) <= 8, metrics.calls(*READS)


def test_without_a_local_file_too(bare_site):
    site = bare_site
    metrics = Metrics(site)
    site.py(make(), config=site.config(mode="remote"), timeout=120)
    for open_mode in ("r", "r+"):
        before = metrics.calls()
        assert walk(site, mode="remote", open_mode=open_mode) == OBJECTS
        assert 2 <= metrics.calls() - before <= 8, metrics.lines()


def test_of_a_file_that_is_being_written_too(bare_site):
    site = bare_site
    metrics = Metrics(site)
    script = make(extra="f.flush(); print('ready', flush=True); sys.stdin.readline(); f.close(); print('closed', flush=True)")
    writer = site.start(site.script(script), config=site.config(ack="applied"), talks=True)
    assert writer.line(timeout=60) == "ready"
    assert walk(site) == OBJECTS
    assert 2 <= metrics.calls(*READS) <= 8, metrics.calls(*READS)
    assert writer.ask("go") == "closed"
    writer.wait().ok()


def test_a_look_at_one_object_brings_little(bare_site):
    """Beside 256 KiB of metadata with each of the first answers."""
    site = bare_site
    metrics = Metrics(site)
    site.py(make(), timeout=120)
    site.py('assert h5py.File("run.h5", "r")["g011/d0500"][2] == 2', config=site.config(mode="reader"))
    assert metrics.calls(*READS) <= 5, metrics.calls(*READS)


def test_a_small_cache_is_no_error(bare_site):
    site = bare_site
    site.py(make(), timeout=120)
    assert walk(site, cache="1MiB") == OBJECTS


def test_metadata_that_nobody_spoke_of_is_learnt(bare_site):
    """Of a file that was written without the plugin, and is mirrored with its first change."""
    site = bare_site
    site.run(site.script(make()), env=site.plain_env(), timeout=120).ok()
    site.py("h5py.File('run.h5', 'a').attrs['n'] = 1", timeout=60)
    metrics = Metrics(site)
    assert walk(site) == OBJECTS
    first = metrics.calls(*READS)
    assert walk(site) == OBJECTS
    second = metrics.calls(*READS) - first
    assert second <= max(8, first // 2), (first, second)


def test_raw_data_does_not_come_with_it(bare_site):
    site = bare_site
    metrics = Metrics(site)
    site.py(make(groups=1, extra='f.create_dataset("raw", data=np.zeros(8 << 20, "u1") + 7)'), timeout=60)
    with Proxy(site.server.address) as site.proxy:
        assert walk(site) == 1001
        assert metrics.calls(*READS) <= 6
        got = site.proxy.tell("totals")["to_client_bytes"]
    assert 100_000 < got < 4 << 20, got
