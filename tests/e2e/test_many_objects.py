"""Files that are large in objects: 10,000 datasets that change with each cut, and a gigabyte of metadata."""

import time

import pytest

from harness import paths
from harness.fixtures import H5PY_VERSIONS
from harness.metrics import Metrics
from harness.package import Package
from harness.process import memory_kb
from test_agent import Agent

DATASETS = 10_000
MEMORY_MAX = 128 << 20
TICK_S = 1
# Each dataset changes in shape and values, and in between the file has some more cuts, so that there are several in a
# tick.
WRITER = f"""
    f = h5py.File("run.h5", "w", libver="latest")
    names = [b"d%05d" % i for i in range({DATASETS})]
    sets = [f.create_dataset(name, (1,), "i4", maxshape=(None,), chunks=(64,)).id for name in names]
    n, stop = 0, sys.argv[1]
    while not os.path.exists(stop):
        values = np.full(n % 50 + 1, n, "i4")
        for each in sets:
            each.set_extent(values.shape)
            each.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
        f.attrs["n"] = n
        for beat in range(8):
            f.attrs["beat"] = beat
            f.flush()
        n += 1
    f.close()
    print(n, flush=True)
"""
NUMBER = f"""
    def number(f):
        seen = {{int(f.attrs["n"])}}
        for i in range({DATASETS}):
            d = h5py.h5d.open(f.id, b"d%05d" % i)
            values = np.empty(d.shape, "i4")
            d.read(h5py.h5s.ALL, h5py.h5s.ALL, values)
            seen.add(int(values[0]))
            seen.add(int(values[-1]))
            assert d.shape[0] == values[0] % 50 + 1, f"dataset {{i}} of {{values[0]}} has the shape {{d.shape}}"
        assert len(seen) == 1, f"one open shows {{sorted(seen)}}"
        return seen.pop()
    newest = -1
    def see(n):
        global newest
        assert n >= newest, f"an open showed {{n}} after one showed {{newest}}"
        if n > newest: print(n, flush=True)
        newest = n
"""
REOPENS = NUMBER + """
    while not os.path.exists(sys.argv[1]):
        with h5py.File("run.h5", "r") as f: see(number(f))
"""
FOLLOWS = NUMBER + """
    for f in h5mirror.follow(URL, until_done=True): see(number(f))
"""


@pytest.mark.limit(200)
@pytest.mark.site(options={"memory_max": f"{MEMORY_MAX}", "tick_len": f"{TICK_S}s"})
def test_ten_thousand_datasets_that_change_each_tick_are_of_one_cut(bare_site):
    """The first reader has the writer's h5py, the others the newer one."""
    site = bare_site
    metrics = Metrics(site)
    stops = [site.directory / name for name in ("stop-readers", "stop-writer")]
    writer = site.start([*site.script(WRITER), stops[1]], config=site.config(ack="applied"))
    site.wait_for_cut("run.h5", 60)
    began = time.monotonic()
    agent = Agent(site).start()
    readers = []
    for version, way in zip(H5PY_VERSIONS, ("off", agent.socket)):
        site.python = paths.venv_python(version)
        readers.append(site.start([*site.script(REOPENS), stops[0]], config=site.config(mode="reader", agent=way)))
    readers.append(Package(site).start(FOLLOWS))
    most = 0
    while any(reader.out().count("\n") < 3 for reader in readers):
        assert all(each.running() for each in (writer, *readers)), [each.wait().describe() for each in readers]
        most = max(most, metrics.value("h5mirror_server_memory_resident_bytes"))
        time.sleep(0.2)
    stops[0].touch()
    for reader in readers[:-1]:
        reader.wait().ok()
    files, cuts = agent.stop()
    ticks = (time.monotonic() - began) / TICK_S
    assert files == 1 and 3 <= cuts <= ticks + 1, f"at most one cut a tick: {cuts} in {ticks:.1f}"
    stops[1].touch()
    last = int(writer.wait().ok().out) - 1
    assert int(readers[-1].wait().ok().out.split()[-1]) == last, "the last cut is followed"
    print(f"{8 * last + 8} cuts, {cuts} of them published; the server took {most / 2**20:.0f} MiB at most")
    assert most < MEMORY_MAX, f"{most / 2**20:.0f} MiB"
    site.assert_mirrored("run.h5")


# A compact dataset is metadata, all of it: 17,600 of 60 KiB are 1 GiB.
COMPACT, VALUES = 17_600, 60 << 7
MAKE_COMPACT = f"""
    f = h5py.File("run.h5", "w", libver="latest")
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(({VALUES},))
    for i in range({COMPACT}):
        if i % 100 == 0: group = f.create_group("g%03d" % (i // 100)).id
        d = h5py.h5d.create(group, b"d%02d" % (i % 100), h5py.h5t.NATIVE_INT64, space, how)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(i, i + {VALUES}))
    f.flush()
    print("ready", flush=True)
    sys.stdin.readline()
    f.close()
    print("closed", flush=True)
"""
# Looks at some of them, wherever they lie; or at all, in their order.
READ_COMPACT = f"""
    def peak_kb():
        return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    before, count = peak_kb(), int(sys.argv[1])
    with h5py.File("run.h5", "r") as f:
        wanted = range(count) if count == {COMPACT} else np.random.default_rng(1).permutation({COMPACT})[:count]
        for i in (0, {COMPACT} - 1, *wanted):
            values = f["g%03d/d%02d" % (i // 100, i % 100)][:]
            assert (values == np.arange(i, i + {VALUES})).all(), f"dataset {{i}}: {{values}}"
    print(peak_kb() - before)
"""
READER_CACHE_MIB, AGENT_CACHE_MIB = 4, 32
# HDF5's own cache of metadata, which grows to 32 MiB, and the connection.
READER_MORE_MIB = 64
# The messages on their way to and from it, and the subscription.
AGENT_MORE_MIB = 128


@pytest.mark.limit(400)
@pytest.mark.site(options={"memory_max": f"{MEMORY_MAX}"})
def test_a_gibibyte_of_metadata_takes_no_more_memory_than_the_caches_that_are_set(bare_site):
    site = bare_site
    writer = site.start(site.script(MAKE_COMPACT), config=site.config(ack="applied", timeout="60s"), talks=True)
    assert writer.line(timeout=150) == "ready"
    agent = Agent(site, "--cache", f"{AGENT_CACHE_MIB}MiB").start()
    count = COMPACT if paths.TEST_ALL else 100
    for way in ("off", agent.socket):
        config = site.config(mode="reader", agent=way, cache=f"{READER_CACHE_MIB}MiB", timeout="60s")
        grown = int(site.run([*site.script(READ_COMPACT), count], config=config, timeout=300).ok().out) >> 10
        print(f"{way}: the reader grew by {grown} MiB")
        assert grown <= READER_CACHE_MIB + READER_MORE_MIB, f"{grown} MiB"
    taken = {"server": site.server.peak_kb() >> 10, "agent": memory_kb(agent.process.pid) >> 10}
    print("MiB:", taken)
    assert taken["server"] < MEMORY_MAX >> 20 and taken["agent"] < AGENT_CACHE_MIB + AGENT_MORE_MIB, taken
    agent.stop()
    assert writer.ask("close") == "closed"
    writer.wait().ok()
