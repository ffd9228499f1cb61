"""Writes run.h5 below a directory, thirty steps of ten values, and mirrors it: python experiment.py SERVER DIRECTORY"""

import os
import sys
import time

import h5mirror  # noqa: F401 - makes the driver known to h5py
import h5py
import numpy as np

server, directory = sys.argv[1:]
rng = np.random.default_rng(1)

with h5py.File(os.path.join(directory, "run.h5"), "w", driver="h5mirror", server=server, root=directory) as f:
    f.attrs["run"] = "under way"
    temperature = f.create_dataset("temperature", (0,), maxshape=(None,), chunks=(100,), dtype="f4")
    for step in range(1, 31):
        temperature.resize((10 * step,))
        temperature[-10:] = 20 + np.sin(step / 5) + 0.1 * rng.standard_normal(10)
        f.attrs["step"] = step
        f.flush()  # A cut, which the file's followers see.
        time.sleep(0.1)
    f.attrs["run"] = "complete"
