"""No file names a path that exists only where it was written."""

import re

# Each path is in pieces, so that this file does not name it.
PATHS = re.compile(r"(?<![\w./$}])/(?:" + "|".join((
    "wo" + "rk/", "ro" + r"ot/", "tmp/" + r"(?:bash_jobs|infra|setup)", "opt/" + "wheels")) + ")")


def check(tree):
    for path in tree.text_files():
        for number, line in tree.lines(path):
            match = PATHS.search(line)
            if match:
                yield f"{path}:{number}: names {match.group(0)}..., a path of one machine"
