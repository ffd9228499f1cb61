"""Each key of the driver's configuration has one row in docs/reference/driver-keys.md, and no row is of another key."""

import re

KEYS = "base/driver_keys.h"
PAGE = "docs/reference/driver-keys.md"


def check(tree):
    listed = re.search(r"kDriverKeys = [^{]*\{(.*?)\}\);", (tree.root / KEYS).read_text(), re.DOTALL)
    keys = set(re.findall(r'"(\w+)"', listed.group(1))) if listed else set()
    if not keys:
        yield f"{KEYS}: no keys found"
    rows = re.findall(r"^\| `(\w+)` \|", (tree.root / PAGE).read_text(), re.MULTILINE)
    for key in sorted(keys ^ set(rows)):
        yield f"{PAGE}: `{key}` " + ("has no row" if key in keys else f"is not in {KEYS}")
    for key in sorted({key for key in rows if rows.count(key) > 1}):
        yield f"{PAGE}: `{key}` has {rows.count(key)} rows"
