"""Writes attributes to a new file, and reads each one again, with h5py.

    attributes.py FILE CONFIG COUNT

CONFIG is the driver's. Prints `ready`, and begins at a line of its input. In the end it prints one line of JSON, as
bench_workload does: times in seconds, from before the open on.
"""

import json
import resource
import sys
import time

import h5py
import h5mirror  # noqa: F401  registers the driver

OBJECTS = 100


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    name, config, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with h5py.File(name + ".warm-up", "w", driver="h5mirror", config=config) as warm:  # It has its connection then.
        warm["value"] = 1
    print("ready", flush=True)
    sys.stdin.readline()
    cpu_before_s, start_s = cpu_s(), time.monotonic()
    file = h5py.File(name, "w", driver="h5mirror", config=config)
    open_s = time.monotonic() - start_s
    groups = [file.create_group(f"g{n}") for n in range(OBJECTS)]
    for n in range(count):
        attributes = groups[n % OBJECTS].attrs
        key = f"a{n // OBJECTS % 8}"
        attributes[key] = n
        if attributes[key] != n:
            raise SystemExit(f"{key} is not {n}")
    felt_s = time.monotonic() - start_s
    file.close()
    print(json.dumps({"open_s": open_s, "felt_s": felt_s, "total_s": time.monotonic() - start_s, "bytes": 8 * count,
                      "cpu_before_s": cpu_before_s}), flush=True)


if __name__ == "__main__":
    main()
