"""Files that are large in objects: 10,000 datasets that change with each cut."""

import time

import pytest

from harness.metrics import Metrics
from harness.package import Package
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
    site = bare_site
    metrics = Metrics(site)
    stops = [site.directory / name for name in ("stop-readers", "stop-writer")]
    writer = site.start([*site.script(WRITER), stops[1]], config=site.config(ack="applied"))
    site.wait_for_cut("run.h5", 60)
    began = time.monotonic()
    agent = Agent(site).start()
    readers = [site.start([*site.script(REOPENS), stops[0]], config=site.config(mode="reader", agent=way))
               for way in ("off", agent.socket)]
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
