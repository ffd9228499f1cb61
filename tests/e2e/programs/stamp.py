"""Writes the number of the cut into all that FILE holds and flushes, each PACE seconds, until there is a file STOP.

    stamp.py FILE earliest|latest|swmr|alone PACE STOP

With `alone` it flushes each dataset alone, after it has written that.
"""

import os
import sys
import time

import h5py
import numpy as np

name, kind, pace, stop = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
file = h5py.File(name, "w", libver="earliest" if kind == "earliest" else "latest")


def create():
    file.create_dataset("fixed", (65536,), "i4")
    file.create_dataset("scalar", (), "i8")
    file.create_dataset("rows", (0, 100), "i4", maxshape=(None, 100), chunks=(4, 100))
    if kind == "swmr":
        file.attrs["n"] = 0
    if kind in ("swmr", "alone"):
        return
    file.create_dataset("chunked", (64, 128), "i2", maxshape=(None, 128), chunks=(64, 64))
    file.create_dataset("packed", (20000,), "i8", chunks=(1000,), compression="gzip")
    file.create_dataset("strings", (50,), h5py.string_dtype())
    file.create_dataset("appended", (0,), h5py.string_dtype(), maxshape=(None,), chunks=(64,))
    file.create_group("old 0")


def stamp(n):
    if kind != "alone":
        file.attrs["n"] = n
    for name in ("fixed", "scalar", "rows"):
        dataset = file[name]
        if name == "rows":
            dataset.resize(n + 1, axis=0)
            dataset[n] = n
        else:
            dataset[...] = n
        if kind == "alone" and n > 0:
            dataset.flush()
            time.sleep(pace / 3)


def stamp_more(n):
    text = f"{n}:" + "x" * (n * 37 % 300)
    file.attrs["text"] = text
    file["chunked"].resize(64 * (n % 7 + 1), axis=0)
    file["chunked"][:] = n
    file["packed"][:] = n
    file["strings"][:] = text
    file["appended"].resize(n + 1, axis=0)
    file["appended"][n] = text
    for i in range(12):  # More than an object header keeps.
        file["fixed"].attrs[f"a{i}"] = np.full(i + 1, n)
    # Deleted and made anew, of another size: its space is used again.
    for each in [each for each in file if each.startswith("old ")]:
        del file[each]
    group = file.create_group(f"old {n}")
    group.attrs["text"] = [text] * 3
    group["data"] = np.full(500 + n * 991 % 5000, n)


create()
n = 0
while not os.path.exists(stop):
    if kind in ("earliest", "latest"):
        stamp_more(n)
    stamp(n)
    if n == 0 and kind in ("swmr", "alone"):
        file.swmr_mode = True
    elif kind != "alone":
        file.flush()
    n += 1
    if kind != "alone":
        time.sleep(pace)
file.close()
print("cuts", n, flush=True)
