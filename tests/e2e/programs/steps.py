"""Fills a file of MIB mebibytes in steps, a flush after each; goes on where an earlier run stopped.

    steps.py FILE MIB STEP_MIB
"""

import sys

import h5py
import numpy as np

path, mib, step_mib = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with h5py.File(path, "a") as f:
    d = f.require_dataset("d", (mib << 20,), "u1")
    summary = f.require_dataset("summary", (1 << 20,), "f8")
    step = int(f.attrs.get("steps", 0))
    while step < mib // step_mib:
        for n in range(step_mib):
            at = (step * step_mib + n) << 20
            d[at:at + (1 << 20)] = np.full(1 << 20, step % 251 + 1, "u1")
        summary[...] = step
        step += 1
        f.attrs["steps"] = step
        f.flush()
        print("cut", step, flush=True)
print("done", flush=True)
