"""Opens files again and again, and checks that each open is one state of cluster_writer.py, until a file `enough` is there.

    cluster_reader.py NAME...

Prints `seen NAME N`, or `away NAME` if the driver says that no server answers for the file, that its cut has expired,
or that the server's disk is full. Any other error ends it: `mixed NAME TEXT` on stderr, exit 1.
"""

import os
import re
import sys
import time

import h5py

from cluster_state import Mixed, look


def newest(name):
    with h5py.File(name, "r") as f:
        return look(f)


while not os.path.exists("enough"):
    for name in sys.argv[1:]:
        try:
            print("seen", name, newest(name), flush=True)
        except Mixed as mixed:
            sys.exit(f"mixed {name} {mixed}")
        except (OSError, RuntimeError, KeyError) as error:
            text = str(error).replace("\n", " ")
            is_away = re.search(r"errno = (11|110|111|116)\b", text)  # EAGAIN, ETIMEDOUT, ECONNREFUSED, ESTALE
            if not is_away:
                sys.exit(f"mixed {name} {text}")
            print("away", name, flush=True)
        time.sleep(0.2)
