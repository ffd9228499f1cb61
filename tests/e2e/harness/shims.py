"""Libraries to be preloaded into programs under test, built when they are wanted."""

import subprocess
from pathlib import Path

from . import paths


def built(source: Path, directory: Path) -> str:
    """The library of one C file, in `directory`."""
    library = directory / f"{source.stem}.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True, timeout=60)
    return str(library)


def for_ranks(mpi: str, directory: Path) -> list[str]:
    """What programs of several ranks over `mpi` need on a machine with fewer or busy processors."""
    return [built(paths.PROGRAMS / "yield_in_wait.c", directory)] if mpi == "mpich" else []
