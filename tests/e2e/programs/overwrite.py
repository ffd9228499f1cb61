"""Creates files of one contiguous dataset each, then overwrites all of it between two flushes.

    overwrite.py MIB FILE...

Prints this process's peak of resident memory in kB as its last word.
"""

import resource
import sys

import h5py
import numpy as np

mib, names = int(sys.argv[1]), sys.argv[2:]
block = np.empty(1 << 20, "u1")
for name in names:
    with h5py.File(name, "w") as f:
        d = f.create_dataset("d", (mib << 20,), "u1")
        for n in range(mib):
            block[:] = n % 251
            d[n << 20:(n + 1) << 20] = block

files = [h5py.File(name, "r+") for name in names]
for f in files:
    f.attrs["round"] = 1
    f.flush()
for turn in range(mib):
    for number, f in enumerate(files):
        block[:] = (turn + number) % 241 + 3
        f["d"][turn << 20:(turn + 1) << 20] = block
for f in files:
    f.flush()
    f.attrs["round"] = 2
for f in files:
    f.close()
print("peak_kb", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
