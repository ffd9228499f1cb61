"""Programs of several ranks (programs/ranks.c), under Open MPI and a parallel HDF5."""

import os
import shutil

import pytest

from . import paths
from .process import Process

PROGRAM = paths.TEST_BIN / "e2e_ranks"
LIBRARY = paths.CACHE / "hdf5-1.14.5-openmpi" / "lib"
COLUMNS = 512
ROWS = 4  # of a rank in a step

needed = pytest.mark.skipif(not PROGRAM.exists(), reason="there is no parallel HDF5 (./dev setup builds one)")


class Ranks:
    """`count` ranks that obey commands, in `site`; by the driver's name with `config`, else by the connector.

    `more` is for their environment.
    """

    def __init__(self, site, count: int, *, config: str | None = None, connector: str = "h5mirror drivers=all",
                 columns: int = COLUMNS, **more):
        self.site, self.count = site, count
        env = site.env(config if config is not None else site.config(), **more)
        env["LD_LIBRARY_PATH"] = str(LIBRARY)
        for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
            env[name] = "1"
        env["TMPDIR"] = os.environ.get("TMPDIR", "/tmp")  # Its sockets have short names only.
        command = [shutil.which("mpirun.openmpi"), "--oversubscribe", "-n", count, PROGRAM, columns]
        if config is not None:
            del env["HDF5_DRIVER"]
            command.append(config)
        else:
            env["HDF5_VOL_CONNECTOR"] = connector
        self.process: Process = site.start(command, env=env, talks=True)

    def do(self, *commands: str) -> None:
        """Each must be obeyed by all ranks."""
        for command in commands:
            said = self.ask(command)
            assert said == "done", f"{command}: {said!r}\n{self.process.err()[-4000:]}"

    def ask(self, command: str) -> str:
        return self.process.ask(command)

    def kill(self, rank: int) -> None:
        """One rank is killed, and MPI ends the others."""
        self.process.popen.stdin.write(f"kill {rank}\n".encode())
        self.process.popen.stdin.flush()
        assert self.process.wait().code != 0

    def end(self) -> None:
        """No more commands: the program closes what is open, and ends."""
        self.process.popen.stdin.close()
        self.process.wait().ok()


def check(file, ranks: int, columns: int = COLUMNS) -> int:
    """An h5py file of the program's holds one whole step; returns which."""
    step = int(file.attrs["step"])
    rows = file["rows"][:]
    assert rows.shape == (step * ranks * ROWS, columns), (step, rows.shape)
    for n in range(step):
        part = rows[n * ranks * ROWS:(n + 1) * ranks * ROWS]
        assert (part == n + 1).all(), f"rows of step {n + 1} of {step} are mixed"
    assert (file["columns"][:, :columns // ranks * ranks] == step).all(), f"columns are not all of step {step}"
    return step
