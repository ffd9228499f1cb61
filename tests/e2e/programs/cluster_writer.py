"""Writes files in turn until a file `enough` is there, a flush each; knows nothing of h5mirror.

    cluster_writer.py PAUSE_S NAME...

Each flush is a state that checks itself: cluster_reader.py. A line `ack NAME N BEGAN ENDED` follows it, in seconds of the
monotonic clock, which all processes of a machine share.
"""

import os
import sys
import time

import h5py
import numpy as np

pause_s, names = float(sys.argv[1]), sys.argv[2:]


def make(name):
    f = h5py.File(name, "w", libver="latest")
    f.create_dataset("d", (0, 256), maxshape=(None, 256), chunks=(4, 256), dtype="i8")
    f.create_dataset("overwritten", (4096,), dtype="i8")
    return f


def step(f, n):
    f["d"].resize(n + 1, axis=0)
    f["d"][n] = n
    f["overwritten"][:] = n
    f.attrs["n"] = n
    f.create_group(f"group {n:06}")
    if n > 2:
        del f[f"group {n - 3:06}"]


files = {name: make(name) for name in names}
n = 0
while not os.path.exists("enough"):
    for name, f in files.items():
        step(f, n)
        began = time.monotonic()
        f.flush()
        print("ack", name, n, f"{began:.3f} {time.monotonic():.3f}", flush=True)
        time.sleep(pause_s)
    n += 1
for f in files.values():
    f.close()
print("closed", flush=True)
