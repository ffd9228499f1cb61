"""An experiment as users write it. Nothing here knows of h5mirror.

    experiment.py FILE STEPS PAUSE_S
"""

import sys
import time

import h5py
import numpy as np

path, steps, pause_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
rng = np.random.default_rng(1)

with h5py.File(path, "a") as f:
    if "frames" not in f:
        f.create_dataset("frames", (0, 512, 1024), maxshape=(None, 512, 1024), chunks=(1, 512, 1024),
                         dtype="f4")
        f.create_dataset("time", (0,), maxshape=(None,), chunks=(1024,), dtype="f8")
    frames, times = f["frames"], f["time"]
    for _ in range(steps):
        n = len(frames)
        frames.resize(n + 1, axis=0)
        times.resize(n + 1, axis=0)
        frames[n] = rng.random((512, 1024), dtype="f4")
        times[n] = time.time()
        f.attrs["frames"] = n + 1
        time.sleep(pause_s / 2)
        f.flush()
        print(f"frame {n}", flush=True)
        time.sleep(pause_s / 2)
