"""Follows a file that `bench_ticks pulse` writes, until its writer is done.

    latency_reader.py URL

Prints `ready` when it has the first cut. In the end it prints each value with the time at which it read it, as JSON:
[value, time.monotonic()].
"""

import json
import sys
import time

import h5mirror

seen = []
for file in h5mirror.follow(sys.argv[1], until_done=True, wait=True):
    value = int(file["d"][0])
    seen.append((value, time.monotonic()))
    if len(seen) == 1:
        print("ready", flush=True)
print(json.dumps(seen))
