"""Opens files again and again, and checks that each open is one state of cluster_writer.py, until a file `enough` is there.

    cluster_reader.py NAME...

Prints `seen NAME N`, or `away NAME` where the driver says that no server answers for the file, that its cut has expired,
or that the server's disk is full. Anything else is the end: `mixed NAME TEXT` on stderr, exit 1.
"""

import os
import re
import sys
import time

import h5py
import numpy as np


class Mixed(Exception):
    pass


def demand(true, what):
    if not true:
        raise Mixed(what)


def look(name):
    with h5py.File(name, "r") as f:
        n = int(f.attrs["n"])
        demand(f["d"].shape[0] == n + 1, f"{f['d'].shape[0]} rows at {n}")
        rows = f["d"][max(0, n - 16):]
        demand((rows == np.arange(max(0, n - 16), n + 1)[:, None]).all(), f"rows at {n}: {rows[:, 0]}")
        values = np.unique(f["overwritten"][:])
        demand(values.tolist() == [n], f"overwritten has {values} at {n}")
        groups = [each for each in f if each.startswith("group")]
        demand(groups == [f"group {each:06}" for each in range(max(0, n - 2), n + 1)], f"groups at {n}: {groups}")
        return n


while not os.path.exists("enough"):
    for name in sys.argv[1:]:
        try:
            print("seen", name, look(name), flush=True)
        except Mixed as mixed:
            sys.exit(f"mixed {name} {mixed}")
        except (OSError, RuntimeError, KeyError) as error:
            text = str(error).replace("\n", " ")
            is_away = re.search(r"errno = (11|110|111|116)\b", text)  # EAGAIN, ETIMEDOUT, ECONNREFUSED, ESTALE
            if not is_away:
                sys.exit(f"mixed {name} {text}")
            print("away", name, flush=True)
        time.sleep(0.2)
