"""Opens FILE, which stamp.py writes, again and again until there is a file STOP, and reads all of it, sometimes
twice and sometimes late. One open must show one number, and no error but that a cut has expired that was held for
KEEP seconds or longer. Prints a dot on standard error for each cut, and a summary as JSON; what is wrong ends it with
exit code 1.

    stamp_reader.py FILE KEEP SEED STOP
"""

import json
import os
import random
import sys
import time

import h5py
import numpy as np

name, keep, seed, stop = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
choose = random.Random(seed)
summary = {"opens": 0, "cuts": 0, "expired": 0, "newest": -1}


def number_of(text):
    return int((text.decode() if isinstance(text, bytes) else str(text)).split(":")[0])


def numbers_in(value):
    value = np.asarray(value)
    if value.dtype.kind in "iu":
        return {int(each) for each in np.unique(value)}
    return {number_of(each) for each in value.ravel()}


def numbers(file):
    """Each number that the file shows, and where."""
    found = {}

    def see(where, value):
        for n in numbers_in(value):
            found.setdefault(n, []).append(where)

    def visit(path, thing):
        if path.startswith("old ") and "/" not in path:
            see(path, int(path.split()[1]))
        for key, value in thing.attrs.items():
            see(f"{path}@{key}", value)
        if path == "appended":
            rows = [number_of(each) for each in thing[:]]
            see(path, rows[-1])
            assert rows == list(range(len(rows))), f"appended: {rows}"
        elif path == "rows":
            see(path, thing[-1])
            assert (thing[:] == np.arange(thing.shape[0])[:, None]).all(), "rows"
        elif isinstance(thing, h5py.Dataset):
            see(path, thing[()])

    visit("", file)
    file.visititems(visit)
    return found


def look(opened):
    """Reads an open file, once or more often."""
    with h5py.File(name, "r") as file:
        opened.append(time.monotonic())
        seen = set()
        for pause in choose.choice([(0,), (0,), (0, 0.2), (0, 0.05, 0.3), (0, keep + 1.5)]):
            time.sleep(pause)
            found = numbers(file)
            seen |= set(found)
            assert len(seen) == 1, f"one open shows {sorted(seen)}: {found}"
        return seen.pop()


while not os.path.exists(stop):
    opened = []
    try:
        n = look(opened)
    except FileNotFoundError:
        assert summary["opens"] == 0, "the file has gone"
        time.sleep(0.05)
        continue
    except (OSError, RuntimeError, KeyError) as error:
        held = time.monotonic() - opened[0] if opened else 0
        if held < keep or "snapshot expired, reopen" not in str(error):
            sys.exit(f"{name}, held for {held:.2f} s: {error!r}")
        summary["expired"] += 1
        continue
    if n < summary["newest"]:
        sys.exit(f"{name}: an open showed {n} after one showed {summary['newest']}")
    summary["opens"] += 1
    if n > summary["newest"]:
        summary["cuts"] += 1
        print(end=".", file=sys.stderr, flush=True)
    summary["newest"] = n
print(json.dumps(summary), flush=True)
