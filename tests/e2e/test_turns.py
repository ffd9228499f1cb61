"""Two programs that take turns on one file, each as soon as the other's lock is free."""

import signal

import pytest

from harness import paths, storm
from harness.process import wait_until

# Opens again and again until the other's lock is free. One attribute a visit.
TURNS = """
    for n in range({count}):
        while True:
            try:
                f = h5py.File("turns.h5", "r+")
                break
            except BlockingIOError:
                time.sleep(0.0005)
        f.attrs[f"{who}{{n % 50}}"] = n
        f["d"][{first} + n % 100] = n + 1
        f.close()
    print("done", flush=True)
"""


@pytest.mark.limit(300)
@pytest.mark.parametrize("ack", ["durable", "applied", "none"])
def test_each_goes_on_from_the_others_close(site, ack):
    """The lock is free before the server has made the close durable, and nothing diverges by that."""
    site.py("h5py.File('turns.h5', 'w')['d'] = np.zeros(1000)").ok()
    config = site.config(ack=ack)
    writers = [site.start(site.script(TURNS.format(count=100, who=who, first=first)), config=config)
               for who, first in (("a", 0), ("b", 500))]
    for writer in writers:
        result = writer.wait(200).ok()
        assert "diverged" not in result.err, result.describe()
    print("afterwards:", storm.bring_level(site, "turns.h5"))
    storm.assert_all_identical(site, "turns.h5")


# Closes when told to, with the server silent: the lock is free while it waits for the answer.
FIRST = """
    f = h5py.File("turns.h5", "r+")
    f["d"][:500] = 1
    f.flush()
    print("flushed", flush=True)
    while not os.path.exists("close"):
        time.sleep(0.01)
    f["d"][300:700] = 2
    f.close()
"""
SECOND = """
    while True:
        try:
            f = h5py.File("turns.h5", "r+")
            break
        except BlockingIOError:
            time.sleep(0.0005)
    f["d"][600:650] = 3
    print("changed", flush=True)
    while not os.path.exists("server is back"):
        time.sleep(0.01)
    f.close()
"""


@pytest.mark.parametrize("ack", ["durable", "none"])
def test_the_server_goes_between_ones_close_and_its_answer(site, ack):
    """The first program's changes never arrived, and the second has the file open by then: it sends both."""
    site.py("h5py.File('turns.h5', 'w')['d'] = np.zeros(1000)").ok()
    created = site.settle("turns.h5")["last_cut"]
    config = site.config(ack=ack, timeout="30s")
    first = site.start(site.script(FIRST), config=config)
    first.wait_for_line("flushed")
    wait_until(lambda: site.status("turns.h5")["last_cut"] != created, "the flush never came")
    site.server.process.signal(signal.SIGSTOP)
    site.local("close").touch()
    second = site.start(site.script(SECOND), config=config)
    second.wait_for_line("changed")
    assert first.running() or ack == "none", "it had its answer, so nothing was lost"
    site.server.kill9()
    site.server.start()
    site.local("server is back").touch()
    for writer in (first, second):
        result = writer.wait().ok()
        assert "diverged" not in result.err, result.describe()
    print("afterwards:", storm.bring_level(site, "turns.h5"))
    storm.assert_all_identical(site, "turns.h5")
    site.py("assert h5py.File('turns.h5')['d'][::100].tolist() == [1, 1, 1, 2, 2, 2, 3, 0, 0, 0]").ok()


@pytest.mark.parametrize("ack", ["applied", "none"])
def test_one_that_comes_between_the_others_open_and_its_lock(site, ack):
    """HDF5 takes the size of the file at the open, before the lock: it is another one by then."""
    site.py("h5py.File('turns.h5', 'w')['d'] = np.zeros(1000)").ok()
    first = site.script("h5py.File('turns.h5', 'r+')['e'] = np.ones(100_000)")
    second = site.script("""
        with h5py.File('turns.h5', 'r+') as f:
            assert f['e'][-1] == 1
            f['d'][0] = 5
    """)
    site.run(second, config=site.config(ack=ack), LD_PRELOAD=str(paths.TEST_BIN / "libe2e_before_lock.so"),
             BEFORE_LOCK=" ".join(str(word) for word in first)).ok()
    site.settle("turns.h5")
    assert site.head("turns.h5").read_bytes() == site.local("turns.h5").read_bytes()
