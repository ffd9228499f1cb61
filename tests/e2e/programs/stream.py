"""Writes MIB mebibytes of FILE at RATE MiB/s, a mebibyte at a time, with a flush after each eighth, and says
how long its longest call took and when it was done. Time for which other programs had the cores does not
count. It begins anew at a file that is there.

    stream.py FILE MIB RATE
"""

import sys
import time

import h5py
import numpy as np

name, mib, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
longest = {"write": 0.0, "flush": 0.0, "close": 0.0}


def without_a_core():
    """Seconds for which this thread was ready to run."""
    try:
        with open("/proc/thread-self/schedstat") as times:
            return int(times.read().split()[1]) / 1e9
    except OSError:
        return 0


def timed(kind, call):
    began, ready = time.monotonic(), without_a_core()
    call()
    longest[kind] = max(longest[kind], time.monotonic() - began - (without_a_core() - ready))


block = np.random.default_rng(1).integers(0, 255, 1 << 20, dtype="u1")
file = h5py.File(name, "w")
data = file.create_dataset("data", (0,), "u1", maxshape=(None,), chunks=(1 << 20,))
table = file.create_dataset("table", (50_000,), "i8")
print("open", flush=True)
start = time.monotonic()
for n in range(mib):
    def append():
        data.resize(((n + 1) << 20,))
        data[n << 20:] = np.roll(block, n)
        at = n * 37 % 49_000
        table[at:at + 1000] = n  # What was written before is written again.
    timed("write", append)
    if n % 8 == 7:
        file.attrs["n"] = n
        timed("flush", file.flush)
        print("cut", n, flush=True)
    time.sleep(max(0.0, start + (n + 1) / rate - time.monotonic()))
timed("close", file.close)
print(f"took {time.monotonic() - start:.3f}")
for kind, seconds in longest.items():
    print(f"longest {kind} {seconds:.3f}")
