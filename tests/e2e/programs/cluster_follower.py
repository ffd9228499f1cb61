"""Follows a file, and checks that each cut is one state of cluster_writer.py, until a file `enough` is there.

    cluster_follower.py URL

Prints `seen N` for each cut, or `away` for a cut that was lost with its server during the read. Any other error ends
it.
"""

import errno
import os
import sys

import h5mirror

from cluster_state import Mixed, look


def follow():
    for f in h5mirror.follow(sys.argv[1], timeout="60s", until_done=True):
        try:
            print("seen", look(f), flush=True)
        except Mixed as mixed:
            sys.exit(f"mixed {mixed}")
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            print("away", flush=True)


# A file whose server was lost has no writer for a moment.
while not os.path.exists("enough"):
    follow()
