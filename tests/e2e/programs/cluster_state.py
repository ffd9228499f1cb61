"""One state of cluster_writer.py, as a reader or a follower sees it."""

import numpy as np


class Mixed(Exception):
    pass


def demand(true, what):
    if not true:
        raise Mixed(what)


def look(f):
    """The number of the state that the open file `f` shows. Mixed: it shows no single state."""
    n = int(f.attrs["n"])
    demand(f["d"].shape[0] == n + 1, f"{f['d'].shape[0]} rows at {n}")
    rows = f["d"][max(0, n - 16):]
    demand((rows == np.arange(max(0, n - 16), n + 1)[:, None]).all(), f"rows at {n}: {rows[:, 0]}")
    values = np.unique(f["overwritten"][:])
    demand(values.tolist() == [n], f"overwritten has {values} at {n}")
    groups = [each for each in f if each.startswith("group")]
    demand(groups == [f"group {each:06}" for each in range(max(0, n - 2), n + 1)], f"groups at {n}: {groups}")
    return n
