"""Two programs that take turns on one file, each as soon as the other's lock is free."""

import pytest

from harness import storm

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
