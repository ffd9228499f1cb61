"""Bodies of programs that several tests run; format() fills in the parts in braces."""

import re
import time

BIG = """
    with h5py.File("big.h5", "w") as f:
        f["big"] = np.random.default_rng(1).integers(0, 255, 64 << 20, dtype="u1")
"""

TOUCH = """
    with h5py.File("big.h5", "r+") as f:
        f.attrs["touched"] = {n}
"""

CHANGE = """
    with h5py.File("big.h5", "r+") as f:
        f["big"][20 << 20:21 << 20] = {n}
"""

# timed(call), and how long the longest one took: `waited`, and `longest` without the time for which the thread was ready to
# run and other programs had the cores. What a driver waits for is in both.
TIMER = """
    longest = waited = 0
    def without_a_core():
        try:
            with open("/proc/thread-self/schedstat") as times:
                return int(times.read().split()[1]) / 1e9
        except OSError:
            return 0
    def timed(call):
        global longest, waited
        began, ready = time.monotonic(), without_a_core()
        call()
        took = time.monotonic() - began
        waited = max(waited, took)
        longest = max(longest, took - (without_a_core() - ready))
"""

# Flushes that wait, how long the longest call took, and when they began. After cut N it stands still as long as there is a
# file `hold N`; what is timed begins anew then, and what the longest call took before is told too.
TIMED = TIMER + """
    f = h5py.File("t.h5", "a")
    before, began = 0, time.monotonic()
    for n in range({times}):
        def change():
            f.require_dataset("d", ({mib} << 20,), "u1")[...] = n
        timed(change)
        timed(f.flush)
        print("cut", n, flush=True)
        if os.path.exists(f"hold {{n}}"):
            before, longest, waited = longest, 0, 0
        while os.path.exists(f"hold {{n}}"):
            time.sleep(0.01)
            began = time.monotonic()
        time.sleep({pause})
    timed(f.close)
    print("longest %.6f before %.6f waited %.6f began %.6f" % (longest, before, waited, began))
"""


def longest(result) -> float:
    """The longest call of a program with TIMER or TIMED, in seconds, as if it had a core of its own."""
    return float(re.search(r"longest ([\d.]+)", result.out)[1])


def felt(result) -> float:
    """How much longer that of TIMED is than the longest one before the hold."""
    return longest(result) - float(re.search(r"before ([\d.]+)", result.out)[1])


def waited(result) -> float:
    """The longest call of TIMED, in seconds of the clock."""
    return float(re.search(r"waited ([\d.]+)", result.out)[1])


def took(result) -> float:
    """From the first call of TIMED, or the hold, to the end of the program, which is now; in seconds of the clock."""
    return time.monotonic() - float(re.search(r"began ([\d.]+)", result.out)[1])


# A file that grows by 5,000 random numbers, with a flush, for each line that the program reads; "end" closes it.
GROWING = """
    os.makedirs(os.path.dirname("{name}"), exist_ok=True)
    with h5py.File("{name}", "w") as f:
        data = f.create_dataset("x", (0,), maxshape=(None,), dtype="i8", chunks=(1000,))
        f.flush()
        print("open", flush=True)
        for line in sys.stdin:
            if line.strip() == "end":
                break
            data.resize(data.shape[0] + 5000, axis=0)
            data[-5000:] = np.random.randint(0, 1 << 40, 5000)
            f.flush()
            print("flushed", flush=True)
    print("closed", flush=True)
"""
