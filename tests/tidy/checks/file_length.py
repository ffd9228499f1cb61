"""A source file holds one idea: at most 600 lines, and a median far below."""

from tree import CPP

LINES_MAX = 600


def check(tree):
    for path in tree.with_suffix(CPP + (".py",)):
        lines = len(tree.lines(path)) - 1   # After the last newline comes one empty piece.
        if lines > LINES_MAX:
            yield f"{path}: {lines} lines, more than {LINES_MAX}; it wants to be two ideas"
