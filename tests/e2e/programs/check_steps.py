"""Checks that a file of steps.py holds exactly the steps that it says, and prints their number."""

import sys

import h5py
import numpy as np

with h5py.File(sys.argv[1], "r") as f:
    step_mib, steps = int(sys.argv[2]), int(f.attrs["steps"])
    for step in range(steps):
        at = (step * step_mib) << 20
        part = f["d"][at:at + (step_mib << 20)]
        assert part.min() == part.max() == step % 251 + 1, f"step {step}"
    if steps:
        assert np.all(f["summary"][...] == steps - 1)
print(steps)
