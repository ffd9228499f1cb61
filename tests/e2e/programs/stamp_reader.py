"""Opens files that stamp.py writes, one of FILES and then another, again and again until there is a file STOP, and reads
all of each, sometimes twice and sometimes late. A url is followed. One open must show one number, and no error but that
a cut has expired that was held for KEEP seconds or longer. Where its name begins with "alone" each dataset must show one
number, and together those of a moment between two flushes. Prints a dot on standard error for each cut, and a summary
as JSON; what is wrong ends it with exit code 1.

While there is a file AWAY other errors are right too, but two numbers are not; where it says "killed" the cuts that
follow may be older ones.

    stamp_reader.py FILE,... KEEP SEED STOP [AWAY]
"""

import collections
import contextlib
import json
import os
import random
import sys
import time
from pathlib import Path

import h5py
import numpy as np

names, keep, seed, stop = sys.argv[1].split(","), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
away = sys.argv[5] if len(sys.argv) > 5 else None
choose = random.Random(seed)
cuts, newest, expired = collections.Counter(), {}, 0
ERRORS = (OSError, RuntimeError, KeyError)


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


def moment(name, found):
    """A number that rises from cut to cut."""
    if not os.path.basename(name).startswith("alone"):
        assert len(found) == 1, f"one open shows {sorted(found)}: {found}"
        return min(found)
    # Flushed in this order.
    seen = [[n for n in found if path in found[n]] for path in ("fixed", "scalar", "rows")]
    assert all(len(each) == 1 for each in seen), f"one dataset shows two: {found}"
    fixed, scalar, rows = (each[0] for each in seen)
    assert fixed >= scalar >= rows >= fixed - 1, f"one open shows {sorted(found)}: {found}"
    return fixed + scalar + rows


def look(name, file):
    """Reads an open file, once or more often."""
    seen = set()
    for pause in choose.choice([(0,), (0,), (0, 0.2), (0, 0.05, 0.3), (0, keep + 1.5)]):
        time.sleep(pause)
        seen.add(moment(name, numbers(file)))
        assert len(seen) == 1, f"one open shows {sorted(seen)}, one after the other"
    return seen.pop()


def opened(name):
    """Open files, some after each other."""
    if "://" in name:
        import h5mirror  # Only a follower has it.

        with contextlib.closing(h5mirror.follow(name, wait=True, agent="off")) as followed:
            yield from (file for _, file in zip(range(choose.randint(2, 6)), followed))
        return
    for _ in range(choose.randint(1, 4)):
        with h5py.File(name, "r") as file:
            yield file


def server_state():
    """Empty: it is there."""
    return Path(away).read_text() if away and os.path.exists(away) else ""


def read(name):
    """Reads some cuts of a file."""
    global expired
    with contextlib.closing(opened(name)) as files:
        while not os.path.exists(stop):
            before, since = server_state(), None
            try:
                file = next(files, None)
                if file is None:
                    return
                since = time.monotonic()
                n = look(name, file)
            except ERRORS as error:
                if isinstance(error, FileNotFoundError) and name not in newest:
                    time.sleep(0.05)
                    return
                held = 0 if since is None else time.monotonic() - since
                has_expired = held >= keep and "snapshot expired, reopen" in str(error)
                if not has_expired and not before and not server_state():
                    sys.exit(f"{name}, held for {held:.2f} s: {error!r}")
                expired += has_expired
                if since is None:
                    time.sleep(0.1)
                    return
                continue
            if "killed" in before + server_state():
                newest.clear()
            if n < newest.get(name, n):
                sys.exit(f"{name}: an open showed {n} after one showed {newest[name]}")
            if n > newest.get(name, -1):
                cuts[name] += 1
                print(end=".", file=sys.stderr, flush=True)
            newest[name] = n


while not os.path.exists(stop):
    for each in choose.sample(names, len(names)):
        read(each)
print(json.dumps({"cuts": cuts.total(), "of": {Path(name).stem: cuts[name] for name in names}, "expired": expired}), flush=True)
