"""HDF5's own parallel tests pass when the connector mirrors their files, and the server has each file in its last
state.

With `./dev test --all` only: to build them takes minutes, and they take ten. tests/e2e/test_parallel.py has parallel
programs for each run. Each test program names mpio itself, so only the connector can bring h5mirror in.

Left out, as they do not write through a parallel file or take longer than they tell: t_2Gio and t_bigio (gigabytes),
t_pmulti_dset (over five minutes also without us), t_cache_image (which HDF5 does not run either), t_vfd (it calls a
driver without the library above it), t_subfiling_vfd (another driver).
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from harness import paths, shims
from harness.process import Process

HERE = Path(__file__).resolve().parent
PROGRAMS = ["testphdf5", "t_mpi", "t_cache", "t_pread", "t_pshutdown", "t_prestart", "t_init_term", "t_select_io_dset",
            "t_shapesame", "t_filters_parallel"]
# It puts bytes before its files' superblocks with write(), which no driver sees.
NOT_COMPARED = {"t_pread"}
RANKS = {"openmpi": 3, "mpich": 2}
# MPICH's ROMIO writes blocks with gaps as a whole ("data sieving"; of several ranks: "collective buffering"). Beyond
# the file's end it fills the gaps with leftover bytes of its buffer, without the mirror too: no rank wrote these bytes,
# and the copy does not have them. Collective buffering stays on where it leaves no such bytes.
NO_SIEVING = "romio_ds_write disable\n"
HINTS = {"t_shapesame": NO_SIEVING + "romio_cb_write disable\n"}
PROGRAM_MAX_S = 900


def programs_over(mpi: str) -> Path:
    """Builds the programs over an MPI where they are not built yet; their directory."""
    if not paths.TEST_ALL:
        pytest.skip("one of the long tests: ./dev test --all")
    if shutil.which(f"mpirun.{mpi}") is None:
        pytest.skip(f"there is no {mpi}")
    done = subprocess.run([HERE / "build_hdf5_tests", paths.CACHE, paths.HDF5_SOURCE, mpi], timeout=1500,
                          capture_output=True, text=True)
    if done.returncode != 0 and not (paths.HDF5_SOURCE / "CMakeLists.txt").exists():
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return paths.CACHE / f"hdf5-1.14.5-{mpi}-tests" / "bin"


class Suite:
    """The programs over one MPI, mirrored, in the working directory of `site`."""

    def __init__(self, site, mpi: str, directory: Path):
        self.site, self.mpi = site, mpi
        self.programs = programs_over(mpi)
        self.kept = directory / "kept"
        self.kept.mkdir()
        preloaded = [shims.built(HERE / "keep_deleted.c", directory), *shims.for_ranks(mpi, directory)]
        self.env = site.env(LD_PRELOAD=":".join(preloaded), KEEP_DELETED=str(self.kept), HDF5TestExpress="3", HDF5_NOCLEANUP="1",
                            HDF5_VOL_CONNECTOR="h5mirror drivers=all", OMPI_ALLOW_RUN_AS_ROOT="1",
                            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.env["LD_LIBRARY_PATH"] = str(self.programs)
        self.env["TMPDIR"] = "/tmp"  # Open MPI's sockets have short names only.
        self.hints = directory / "romio"
        self.env["ROMIO_HINTS"] = str(self.hints)
        shutil.copytree(paths.HDF5_SOURCE / "test" / "testfiles", site.work, dirs_exist_ok=True)

    def run(self, program: str):
        self.hints.write_text(HINTS.get(program, NO_SIEVING))
        ranks = 3 if program in HINTS else RANKS[self.mpi]
        command = [shutil.which(f"mpirun.{self.mpi}"), "-n", ranks, self.programs / program]
        if self.mpi == "openmpi":
            command.insert(1, "--oversubscribe")
        process = Process(command, self.site.logs, cwd=self.site.work, env=self.env, name=program)
        self.site.beside.append(process)
        return process.wait(PROGRAM_MAX_S)

    def compare(self) -> int:
        """Checks that each file, also a deleted one, is a version on the server. Returns how many there were."""
        on_server = {row["name"] for row in self.site.json("ls")["files"]}
        count = 0
        for file in [*self.site.work.glob("*.h5"), *self.kept.iterdir()]:
            name = file.name.split("-", 2)[-1]
            if name not in on_server:
                continue
            self.site.settle(name)
            assert self.has_version_like(name, file), f"{file} is no version of {name}: {self.site.versions(name)}"
            count += 1
        return count

    def has_version_like(self, name: str, file: Path) -> bool:
        content = file.read_bytes()
        return any(self.site.export(name, version).read_bytes() == content
                   for version in reversed(self.site.versions(name)))

    def clean(self) -> None:
        for file in [*self.site.work.glob("*.h5"), *self.kept.iterdir()]:
            file.unlink()


@pytest.fixture(params=["openmpi", "mpich"])
def suite(request, bare_site, tmp_path):
    return Suite(bare_site, request.param, tmp_path)


@pytest.mark.limit(3600)
def test_each_program_passes_and_its_files_are_mirrored(suite):
    compared = 0
    for program in PROGRAMS:
        done = suite.run(program)
        assert done.code == 0, f"{program}:\n{done.describe()}"
        if program not in NOT_COMPARED:
            compared += suite.compare()
        if program != "t_pshutdown":  # t_prestart reads what it left.
            suite.clean()
    assert compared >= len(PROGRAMS) // 2 and suite.site.server.running(), compared
    print(f"{len(PROGRAMS)} programs, {compared} files compared")


def test_what_a_flush_wrote_is_there_after_the_program_aborts(suite):
    assert suite.run("t_pflush1").code != 0, "it ends without a close"
    done = suite.run("t_pflush2")
    assert done.code == 0, done.describe()
