"""`h5mirror VERB ...` where the package was installed as a wheel, and `python -m h5mirror VERB ...`."""

import os
import sys

from ._places import program

# How often this was run by itself, through the h5mirror of PATH.
_DEPTH = "H5MIRROR_WRAPPED"
# `h5mirror exec` may run programs that run this again, but not so deep.
_DEPTH_MAX = 8


def main() -> None:
    """Becomes the program h5mirror; `web` is of the package itself."""
    if sys.argv[1:2] == ["web"]:
        from .web._command import main as web

        return web(sys.argv[2:])
    try:
        path = program()
    except FileNotFoundError as error:
        sys.exit(f"h5mirror: {error}")
    depth = os.environ.get(_DEPTH, "")
    count = int(depth) + 1 if depth.isdecimal() else 1
    if count > _DEPTH_MAX:
        sys.exit(f"h5mirror: {path} starts this Python package again and again: install the program h5mirror "
                 "(cmake --install), and put its directory first into PATH")
    os.environ[_DEPTH] = str(count)
    os.execv(path, ["h5mirror", *sys.argv[1:]])


if __name__ == "__main__":
    main()
