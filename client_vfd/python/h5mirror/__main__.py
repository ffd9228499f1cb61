"""`h5mirror VERB ...` where the package was installed as a wheel, and `python -m h5mirror VERB ...`."""

import os
import sys

from ._places import program


def main() -> None:
    """Becomes the program h5mirror."""
    try:
        path = program()
    except FileNotFoundError as error:
        sys.exit(f"h5mirror: {error}")
    os.execv(path, ["h5mirror", *sys.argv[1:]])


if __name__ == "__main__":
    main()
