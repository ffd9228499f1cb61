"""Programs of several ranks (programs/ranks.c), under a parallel HDF5 and Open MPI, or with H5MIRROR_TEST_MPI=mpich
under MPICH: for that the program is built here."""

import os
import shutil
import subprocess

import pytest

from . import paths, shims
from .process import Process

MPI = os.environ.get("H5MIRROR_TEST_MPI", "openmpi")
IS_OPEN_MPI = MPI == "openmpi"
PROGRAM = paths.TEST_BIN / ("e2e_ranks" if IS_OPEN_MPI else f"e2e_ranks.{MPI}")
HDF5 = paths.CACHE / f"hdf5-1.14.5-{MPI}"
COLUMNS = 512
ROWS = 4  # of a rank in a step


def _build() -> None:
    """The program over another MPI than cmake's."""
    source = paths.PROGRAMS / "ranks.c"
    if IS_OPEN_MPI or (PROGRAM.exists() and PROGRAM.stat().st_mtime > source.stat().st_mtime):
        return
    subprocess.run([f"mpicc.{MPI}", "-O1", "-o", PROGRAM, source, f"-I{HDF5}/include", f"-L{HDF5}/lib", "-lhdf5"],
                   check=True, timeout=120)


_build()
needed = pytest.mark.skipif(not PROGRAM.exists(), reason="there is no parallel HDF5 (./dev setup builds one)")


class Hosts:
    """How mpirun starts ranks on the two machines of `machines`, which share the disk: rank 0 on the first, all others on
    the second. Each has a host name, so that no memory is shared."""

    def __init__(self, machines, directory):
        first, second = machines.addresses
        agent = directory / "agent"
        agent.write_text(f"#!/bin/sh\nshift\nexec ip netns exec {machines.namespaces[1]} unshare --uts "
                         'sh -c "hostname second; $*"\n')
        agent.chmod(0o755)
        self.before = ["ip", "netns", "exec", machines.namespaces[0], "unshare", "--uts", "sh", "-c",
                       'hostname first; exec "$@"', "mpirun"]
        between = first.rpartition(".")[0] + ".0/24"
        if IS_OPEN_MPI:
            self._where = ["--mca", "plm_rsh_agent", agent, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include",
                           between, "--mca", "oob_tcp_if_include", between, "--host"]
        else:
            # Its messages go through memory all the same: UCX sees that both are one machine.
            self._where = ["-launcher", "rsh", "-launcher-exec", agent, "-hosts"]
        self._addresses = first, second
        self.of_rank = []  # before the program

    def words(self, count: int) -> list:
        first, second = self._addresses
        return [*self._where, f"{first}:1,{second}:{count - 1}"]


class Nodes:
    """Nodes of `per_node` ranks each, told apart by their host names: all of them are this machine."""

    def __init__(self, directory, per_node: int = 2):
        wrapper = directory / "on_node"
        rank = "OMPI_COMM_WORLD_RANK" if IS_OPEN_MPI else "PMI_RANK"
        wrapper.write_text(f"#!/bin/sh\nNODE=node$(({rank} / {per_node})) exec unshare --uts "
                           "sh -c 'hostname \"$NODE\"; exec \"$@\"' sh \"$@\"\n")
        wrapper.chmod(0o755)
        self.before = []
        self.of_rank = [wrapper]

    def words(self, _count: int) -> list:
        return []


class Ranks:
    """`count` ranks that obey commands, in `site`; by the driver's name with `config`, else by the connector.

    `more` is for their environment.
    """

    def __init__(self, site, count: int, *, config: str | None = None, connector: str = "h5mirror drivers=all",
                 columns: int = COLUMNS, hosts: Hosts | Nodes | None = None, **more):
        self.site, self.count = site, count
        env = site.env(config if config is not None else site.config(), **more)
        env["LD_LIBRARY_PATH"] = str(HDF5 / "lib")
        for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
            env[name] = "1"
        env["TMPDIR"] = os.environ.get("TMPDIR", "/tmp")  # Its sockets have short names only.
        command = [*(hosts.before if hosts else []), shutil.which(f"mpirun.{MPI}"),
                   *(["--oversubscribe"] if IS_OPEN_MPI else []), *(hosts.words(count) if hosts else []), "-n", count,
                   *(hosts.of_rank if hosts else []), PROGRAM, columns]
        if preloaded := shims.for_ranks(MPI, site.directory):
            env["LD_PRELOAD"] = ":".join(preloaded)
        if config is not None:
            del env["HDF5_DRIVER"]
            command.append(config)
        else:
            env["HDF5_VOL_CONNECTOR"] = connector
        self.process: Process = site.start(command, env=env, talks=True)

    def do(self, *commands: str) -> None:
        """All ranks must obey each command."""
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
    """Checks that the program's file, opened by h5py, has one whole step. Returns the step."""
    step = int(file.attrs["step"])
    rows = file["rows"][:]
    assert rows.shape == (step * ranks * ROWS, columns), (step, rows.shape)
    for n in range(step):
        part = rows[n * ranks * ROWS:(n + 1) * ranks * ROWS]
        assert (part == n + 1).all(), f"rows of step {n + 1} of {step} are mixed"
    assert (file["columns"][:, :columns // ranks * ranks] == step).all(), f"columns are not all of step {step}"
    return step
