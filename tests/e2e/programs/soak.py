"""Opens, changes and closes files TIMES times, each open a session of its own; a line for each hundred.

    soak.py TIMES FILE...
"""

import itertools
import sys

import h5py

times, names = int(sys.argv[1]), sys.argv[2:]
for n, name in zip(range(times), itertools.cycle(names)):
    with h5py.File(name, "a") as file:
        file.attrs["n"] = n
    if n % 100 == 99:
        print("sessions", n + 1, flush=True)
