"""The wheel of h5mirror: its content, and a test that it works without gRPC and without other parts of h5mirror."""

import email
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from harness import hdf5, paths
from harness.process import run

PACKAGE = paths.SOURCE / "client_vfd" / "python"
TOOLS = paths.CACHE / "venv-wheel" / "bin"
TRIXIE = paths.CACHE / "trixie"

# On every Linux that takes manylinux wheels.
EVERYWHERE = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2",
              "libstdc++.so.6", "libgcc_s.so.1", "libz.so.1"}

# Writes, commits, follows, lists and reads, with the server's address as argument; all of our code comes from the wheel.
PROGRAM = """
import os, sys, h5py, h5mirror
url = f"h5mirror://{sys.argv[1]}/run.h5"
with h5py.File("run.h5", "w", driver="h5mirror", server=sys.argv[1], root=os.getcwd(), timeout="20s") as f:
    f["d"] = range(1000)
    assert h5mirror.commit(f, "first") == 1
    files = h5mirror.follow(url)
    print(next(files)["d"][5])
    f["d"][:] = 7
    f.flush()
    print(next(files)["d"][5])
    files.close()
print([(each.number, each.comment) for each in h5mirror.versions(url)])
print(h5mirror.open(url)["d"][5], h5mirror.open(url + "@1")["d"][5])
libraries = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
ours = [each for each in libraries if any(part in each for part in ("h5mirror", "grpc", "protobuf", "absl"))]
print(sorted({each.split("/h5mirror", 1)[1].split("/")[0] for each in ours}), len(ours) > 20)
"""
PRINTED = "5\n7\n[(1, 'first'), (2, '')]\n7 5\n['', '.libs'] True\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from this tree."""
    assert TOOLS.exists(), f"{TOOLS} is missing; ./dev setup makes it"
    out = tmp_path_factory.mktemp("wheel")
    run([paths.SOURCE / "scripts" / "build_wheel", paths.BUILD, TOOLS.parent, out], out, timeout=300).ok()
    built, = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def unpacked(wheel):
    directory = wheel.parent / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    return directory


def elf_files(directory: Path) -> list[Path]:
    files = [each for each in directory.rglob("*") if each.is_file() and each.read_bytes()[:4] == b"\x7fELF"]
    assert len(files) > 20
    return files


def readelf(*arguments) -> str:
    done = subprocess.run(["readelf", "--wide", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def newest(kind: str, text: str) -> tuple[int, ...]:
    return max((tuple(map(int, each.split("."))) for each in re.findall(rf"\b{kind}_([0-9.]+)", text)), default=(0,))


def test_the_tag_states_the_oldest_glibc_that_all_of_it_runs_with(wheel, unpacked):
    tag = re.fullmatch(r"h5mirror-[0-9.]+-py3-none-manylinux_(\d+)_(\d+)_x86_64\.whl", wheel.name)
    assert tag, wheel.name
    stated = int(tag[1]), int(tag[2])
    wanted = {each: readelf("--version-info", each) for each in elf_files(unpacked)}
    # GLIBC_ABI_DT_RELR says that 2.36 is wanted in other words.
    assert not any("GLIBC_ABI_DT_RELR" in text for text in wanted.values())
    assert max(newest("GLIBC", text) for text in wanted.values()) <= stated
    # GCC 12's, which came with no glibc before 2.35.
    assert max(newest("GLIBCXX", text) for text in wanted.values()) <= (3, 4, 30)


def test_every_library_that_a_machine_may_lack_is_in_it_under_a_name_of_its_own(unpacked):
    files = elf_files(unpacked)
    carried = {each.name for each in files if each.parent.name == "h5mirror.libs"}
    assert carried and all(re.search(r"-[0-9a-f]{8}\.so", each) for each in carried), carried
    for each in files:
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("--dynamic", each)))
        assert needed <= carried | EVERYWHERE, (each, needed - carried - EVERYWHERE)
        assert not any("hdf5" in library for library in needed), f"{each} brings an HDF5 of its own"
        for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.+)\]", readelf("--dynamic", each)):
            assert all(part.startswith("$ORIGIN") for part in path.split(":")), (each, path)


def test_its_version_is_the_release_s_and_it_says_what_it_is_licensed_under(unpacked):
    info, = unpacked.glob("*.dist-info")
    metadata = email.message_from_string((info / "METADATA").read_text())
    program = run([paths.BIN / "h5mirror", "--version"], unpacked).ok().out.split()[-1]
    assert metadata["Version"] == program
    assert (info / "licenses" / "licenses" / "LICENSE").read_text() == (paths.SOURCE / "LICENSE").read_text()
    assert list(info.glob("licenses/licenses/libgrpc*.txt")) and list(info.glob("licenses/licenses/libprotobuf*.txt"))


def test_it_is_typed(unpacked, tmp_path):
    assert (unpacked / "h5mirror" / "py.typed").exists()
    run([TOOLS / "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", tmp_path, PACKAGE / "h5mirror"],
        tmp_path, timeout=100).ok()


@pytest.fixture
def installed(bare_site, h5py_version, wheel, tmp_path):
    """A site, and the environment of programs that have the wheel and nothing else of h5mirror."""
    bare_site.python = paths.venv_python(h5py_version)
    target = tmp_path / "installed"
    run([bare_site.python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", target, wheel],
        tmp_path).ok()
    env = hdf5.plain_env(HOME=str(bare_site.home), PYTHONPATH=str(target), PATH=f"{target}/bin:/usr/bin:/bin")
    env.pop("LD_LIBRARY_PATH", None)
    return bare_site, env


def test_installed_it_writes_follows_lists_and_reads_by_its_own_libraries(installed):
    site, env = installed
    (site.directory / "program.py").write_text(PROGRAM)
    assert site.run([site.python, site.directory / "program.py", site.address], env=env).ok().out == PRINTED
    site.assert_mirrored("run.h5")


def test_installed_it_brings_the_program_h5mirror(installed):
    site, env = installed
    site.run(["h5mirror", "--server", site.address, "exec", "--strict", "--root", site.work, "--", site.python, "-c",
              "import h5py; h5py.File('run.h5', 'w')['d'] = 1"], env=env).ok()
    assert "python" in site.run(["h5mirror", "--server", site.address, "log", "run.h5"], env=env).ok().out
    out = site.run([site.python, "-m", "h5mirror", "--version"], env=env).ok().out
    assert out.startswith("h5mirror ")


def test_installed_it_keeps_versions_without_a_server(installed):
    site, env = installed
    site.server.stop()
    out = site.run(site.script("""
        import h5mirror
        for n in range(2):
            with h5py.File("run.h5", "a", driver="h5mirror", server="embedded", comment=f"pass {n}") as f:
                f[f"d{n}"] = n
        print([each.comment for each in h5mirror.versions("run.h5")])
    """), env=env).ok().out
    assert out == "['pass 0', 'pass 1']\n"


@pytest.fixture(scope="module")
def pure(tmp_path_factory):
    """A directory that holds what `pip install client_vfd/python` puts into a Python environment: no program."""
    directory = tmp_path_factory.mktemp("pure")
    shutil.copytree(PACKAGE, directory / "package", ignore=shutil.ignore_patterns("_native", "__pycache__"))
    run([TOOLS / "python", "-m", "hatchling", "build", "-t", "wheel", "-d", directory], directory, cwd=directory / "package").ok()
    built, = directory.glob("*.whl")
    run([paths.venv_python("3.12.1"), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target",
         directory / "environment", built], directory).ok()
    return directory / "environment"


def run_pure(site, pure, path, *command, **more):
    env = hdf5.plain_env(HOME=str(site.home), PYTHONPATH=str(pure), PATH=path, **more)
    return site.run(command, env=env, timeout=30)


VERSIONS = "import h5mirror; print([each.number for each in h5mirror.versions('h5mirror://{}/run.h5')])"


def test_without_binaries_it_starts_the_program_that_comes_later_in_path(bare_site, pure):
    site = bare_site
    site.py("h5py.File('run.h5', 'w')['d'] = 1")
    path = f"{pure}/bin:{paths.BIN}:/usr/bin:/bin"
    log = run_pure(site, pure, path, "h5mirror", "--server", site.address, "log", "run.h5").ok()
    assert "python" in log.out, log.describe()
    assert run_pure(site, pure, path, site.python, "-c", VERSIONS.format(site.address)).ok().out == "[1]\n"


def test_without_binaries_and_program_it_says_what_to_install(bare_site, pure):
    site = bare_site
    path = f"{pure}/bin:/usr/bin:/bin"
    for command in (["h5mirror", "log", "run.h5"], [site.python, "-m", "h5mirror", "log", "run.h5"],
                    [site.python, "-c", VERSIONS.format(site.address)]):
        result = run_pure(site, pure, path, *command)
        assert result.code == 1, result.describe()
        assert f"neither in this package nor in PATH ({pure}/bin/h5mirror only starts this package): install" in result.err


@pytest.mark.parametrize("how", ["exec", ""])
def test_a_script_of_that_name_that_starts_the_package_is_no_endless_loop(bare_site, pure, tmp_path, how):
    script = tmp_path / "bin" / "h5mirror"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\n{how} {bare_site.python} -m h5mirror \"$@\"\n")
    script.chmod(0o755)
    result = run_pure(bare_site, pure, f"{script.parent}:/usr/bin:/bin", "h5mirror", "log", "run.h5")
    assert result.code == 1 and f"{script} starts this Python package again and again: install" in result.err, result.describe()


# In a mount namespace: an overlay over the release, with the wheel and the program in it, and no trace left.
INSIDE = """
set -e
release=$1 scratch=$2 wheel=$3 program=$4
mount -t tmpfs scratch "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$scratch/top"
mount -t overlay overlay -o "lowerdir=$release,upperdir=$scratch/upper,workdir=$scratch/work" "$scratch/top"
mount -t proc proc "$scratch/top/proc"
mkdir "$scratch/top/test"
cp "$wheel" "$program" "$scratch/top/test"
shift 4
exec chroot "$scratch/top" /bin/sh -ec "$@"
"""


def in_trixie(directory: Path, wheel: Path, program: Path, script: str, *arguments):
    if os.geteuid() != 0:
        pytest.skip("another release is entered with chroot, which wants root")
    if (tried := subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, timeout=20)).returncode:
        pytest.skip(f"another release is entered in a mount namespace, which is not permitted here: {tried.stderr.strip()}")
    assert (TRIXIE / "opt" / "h5py" / "requirements.txt").exists(), f"{TRIXIE} is missing; ./dev setup makes it"
    scratch = directory / "scratch"
    scratch.mkdir(exist_ok=True)
    return run(["unshare", "--mount", "sh", "-c", INSIDE, "sh", TRIXIE, scratch, wheel, program, script, "sh", *arguments],
               directory, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"})


def test_it_works_in_another_release_that_has_no_grpc(bare_site, wheel, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    out = in_trixie(tmp_path, wheel, program, """
        . /etc/os-release; echo "$VERSION_CODENAME"
        find / -xdev \\( -name 'libgrpc*' -o -name 'libprotobuf*' -o -name '*h5mirror*.so' \\) -print
        cd /test
        /opt/h5py/bin/pip install --quiet --no-index --root-user-action ignore --disable-pip-version-check ./*.whl
        /opt/h5py/bin/python program.py "$1"
        /opt/h5py/bin/h5mirror --server "$1" log run.h5 | wc -l
    """, bare_site.address).ok().out
    assert out == "trixie\n" + PRINTED + "3\n", out
    bare_site.settle("run.h5")
    assert bare_site.versions("run.h5") == [1, 2]
    hdf5.assert_opens(bare_site.head("run.h5"))
    assert not list(TRIXIE.glob("test")), "the test leaves the release as it was"
