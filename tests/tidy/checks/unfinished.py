"""Nothing is left unfinished in the tree; open work is an issue, not a comment."""

import re

MARKS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")) + r")\b")


def check(tree):
    for path in tree.text_files():
        for number, line in tree.lines(path):
            match = MARKS.search(line)
            if match:
                yield f"{path}:{number}: {match.group(1)}"
