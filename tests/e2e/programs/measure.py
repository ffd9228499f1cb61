"""A day at the lab, as such scripts are written: set up, append in a loop, come back and tidy up."""

import sys

import h5py
import numpy as np

path = sys.argv[1]
rng = np.random.default_rng(7)

with h5py.File(path, "w") as f:
    f.attrs["operator"] = "lab 3"
    run = f.create_group("run/calibration")
    run.create_dataset("dark", data=rng.integers(0, 100, (64, 64), dtype="i4"))
    frames = f.create_dataset("run/frames", (0, 64, 64), maxshape=(None, 64, 64), chunks=(4, 64, 64),
                              dtype="u2", compression="gzip", shuffle=True)
    log = f.create_dataset("run/log", (0,), maxshape=(None,), dtype=h5py.string_dtype())
    for n in range(40):
        frames.resize(n + 1, axis=0)
        frames[n] = rng.integers(0, 4000, (64, 64))
        log.resize(n + 1, axis=0)
        log[n] = f"frame {n} " + "x" * int(rng.integers(0, 80))
        if n % 8 == 7:
            f.flush()

with h5py.File(path, "r+") as f:
    del f["run/calibration/dark"]
    f["run/frames"].attrs["mean"] = f["run/frames"][...].mean()
    f["alias"] = h5py.SoftLink("/run/frames")
    f.create_dataset("late", data=np.arange(300_000.0))

with h5py.File(path, "a", libver="latest") as f:
    f["late"][:1000] = -1
    for n in range(200):
        f.create_group(f"many/{n:03}").attrs["n"] = n

with h5py.File(path, "r") as f:
    assert f["run/frames"].shape == (40, 64, 64)
    assert len(f["many"]) == 200
print("closed", path)
