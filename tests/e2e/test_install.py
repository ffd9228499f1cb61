"""`cmake --install`: the installed programs work for an ordinary user without access to the build and the cache."""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import paths
from harness.installed import User, copy_h5py, install

# Installed where it was built: with a parallel HDF5.
PARALLEL = ["h5perf"] if (paths.CACHE / "hdf5-1.14.5-openmpi").exists() else []
WRITER = """
import h5py
for n in range(2):
    with h5py.File("run.h5", "a") as f:
        f[f"d{n}"] = [n] * 1000
"""


@pytest.fixture(scope="module")
def installed():
    """A directory that everybody can enter, with the installation in `prefix` of it."""
    directory = Path(tempfile.mkdtemp(prefix="h5m-install-"))
    directory.chmod(0o755)
    try:
        install(directory / "prefix")
        yield directory
    finally:
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def prefix(installed):
    return installed / "prefix"


@pytest.fixture
def user(installed, prefix, tmp_path):
    home = Path(tempfile.mkdtemp(dir=installed)) / "home"
    home.parent.chmod(0o755)
    return User(prefix, home, tmp_path)


@pytest.fixture
def server(user):
    """The address of a server that the user has started from the prefix."""
    process, address = user.serve()
    yield address
    process.kill()


@pytest.fixture(scope="module")
def h5py_path(installed):
    return copy_h5py(installed / "site")


def files_below(directory: Path) -> set[str]:
    return {str(each.relative_to(directory)) for each in directory.rglob("*") if not each.is_dir()}


def elf_files(directory: Path) -> list[Path]:
    return [each for each in directory.rglob("*") if each.is_file() and each.read_bytes()[:4] == b"\x7fELF"]


def test_everything_lands_below_the_prefix_also_with_destdir(prefix, tmp_path):
    stage = tmp_path / "stage"
    install(Path("/opt/h5mirror"), destdir=stage)
    assert files_below(stage / "opt/h5mirror") == files_below(prefix)
    assert files_below(stage) == {f"opt/h5mirror/{each}" for each in files_below(prefix)}
    unit = (stage / "opt/h5mirror/lib/systemd/system/h5mirrord.service").read_text()
    assert "ExecStart=/opt/h5mirror/bin/h5mirrord" in unit


def test_everybody_may_read_it(prefix):
    for each in [prefix, *prefix.rglob("*")]:
        wanted = 0o555 if each.is_dir() else 0o444
        assert each.stat().st_mode & wanted == wanted, each


def test_no_program_asks_for_a_library_of_the_build_or_the_cache(prefix, user):
    programs = elf_files(prefix)
    assert len(programs) >= 12, programs
    for each in programs:
        dynamic = subprocess.run(["readelf", "--wide", "--dynamic", each], capture_output=True, text=True, check=True).stdout
        for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.+)\]", dynamic):
            assert all(part.startswith("$ORIGIN") for part in path.split(":")), (each, path)
        assert "not found" not in user.run(["ldd", each]).ok().said, each


def test_the_cache_is_out_of_the_users_reach(user):
    if not user.is_another:
        pytest.skip("not run by root, so there is no other user")
    assert not user.run(["ls", paths.CACHE / "venv-h5py-3.12.1"]).code == 0


def test_every_program_runs(prefix, user):
    programs = sorted(each.name for each in (prefix / "bin").iterdir())
    assert programs == ["h5edit", "h5mirror", "h5mirror-agent", "h5mirrord", *PARALLEL, "h5perf_serial"]
    for name in programs:
        assert user.run([name, "--version"]).ok().out.startswith(name), name
        assert "--" in user.run([name, "--help"]).ok().out, name
    helpers = {each.name for each in (prefix / "libexec/h5mirror").iterdir()}
    assert helpers == {"h5mirror-diff", "h5mirror-restore", "hdf5-probe", "h5mirror-exec-audit.so"}
    assert user.run([prefix / "libexec/h5mirror/h5mirror-diff", "--version"]).ok().out
    library, = (prefix / "lib/h5mirror").glob("libhdf5.so.*")
    assert re.match(r"\d+\.\d+", user.run([prefix / "libexec/h5mirror/hdf5-probe", "version", library]).ok().out)


def test_a_program_is_mirrored_and_every_verb_finds_its_helper(user, server, h5py_path):
    python = ["/usr/bin/python3", "-c", WRITER]
    cli = ["h5mirror", "--server", server]
    user.run([*cli, "exec", "--strict", "--root", user.home, "--", *python], PYTHONPATH=str(h5py_path)).ok()
    log = json.loads(user.run([*cli, "log", "run.h5", "--json"]).ok().out)["versions"]
    assert [row["version"] for row in log] in ([2, 1], ["2", "1"])
    changes = user.run([*cli, "diff", "run.h5@1", "run.h5@2"])
    assert changes.code == 1 and "+ /d1" in changes.out, changes.describe()
    assert "cut" in user.run([*cli, "watch", "-n", "1", "run.h5"]).ok().out
    user.run([*cli, "verify", "--open-versions", "run.h5"]).ok()
    user.run([*cli, "doctor", "--python", "/usr/bin/python3"], PYTHONPATH=str(h5py_path)).ok()
    user.run(["h5edit", "-c", "CREATE /d0 note {{2.5}};", "run.h5"], H5MIRROR_SERVER=server).ok()
    user.run(["h5perf_serial", "-A", "hdf5", "-e", "64K", "-x", "16K", "-i", "1", "-v", f"h5mirror:server={server}"]).ok()


def test_without_libhdf5_watch_tells_bytes_and_diff_says_what_is_missing(user, server, h5py_path, installed):
    user.run(["h5mirror", "--server", server, "exec", "--root", user.home, "--", "/usr/bin/python3", "-c", WRITER],
             PYTHONPATH=str(h5py_path)).ok()
    broken = user.home.parent / "broken"
    shutil.copytree(user.prefix, broken, symlinks=True)
    for library in (broken / "lib/h5mirror").glob("libhdf5.so.*"):
        library.unlink()
    cli = [broken / "bin/h5mirror", "--server", server]
    watch = user.run([*cli, "watch", "--json", "-n", "1", "run.h5"]).ok()
    assert json.loads(watch.out)["cut"] and "does not start" in watch.err and "bytes only" in watch.err, watch.describe()
    diff = user.run([*cli, "diff", "run.h5@1", "run.h5@2"])
    assert diff.code != 127 and "does not start: install" in diff.err, diff.describe()
    (broken / "libexec/h5mirror/h5mirror-diff").unlink()
    watch = user.run([*cli, "watch", "--json", "-n", "1", "run.h5"]).ok()
    assert json.loads(watch.out)["cut"] and "h5mirror-diff is not in" in watch.err, watch.describe()
    asked = user.run([*cli, "watch", "--json", "--changes", "objects", "-n", "1", "run.h5"])
    assert asked.code == 3 and asked.out == "", asked.describe()


def test_the_python_package_takes_plugin_and_program_of_the_installation_in_path(user, server, h5py_path, installed):
    package = installed / "package"
    shutil.copytree(paths.SOURCE / "client_vfd/python/h5mirror", package / "h5mirror",
                    ignore=shutil.ignore_patterns("_native", "__pycache__"))
    out = user.run(["/usr/bin/python3", "-c", f"""
import h5py, h5mirror, os
with h5py.File("run.h5", "w", driver="h5mirror", server="{server}", root=os.getcwd()) as f:
    f["d"] = 5
    h5mirror.commit(f, "first")
print([each.comment for each in h5mirror.versions("h5mirror://{server}/run.h5")])
"""], PYTHONPATH=f"{package}:{h5py_path}").ok().out
    assert out == "['first']\n"


def test_its_pages_are_read_with_man(prefix, user):
    if shutil.which("man") is None or shutil.which("lowdown") is None:
        pytest.skip("no man or no lowdown; ./dev setup installs them")
    pages = sorted(each.name for each in (prefix / "share/man").rglob("*.[18]"))
    assert pages == ["h5edit.1", "h5mirror-agent.1", "h5mirror.1", "h5mirrord.8", *(f"{name}.1" for name in PARALLEL), "h5perf_serial.1"]
    for page in pages:
        title, section = page.rsplit(".", 1)
        text = user.run(["man", "-M", prefix / "share/man", "--warnings", section, title], MANPAGER="cat", MANWIDTH="80").ok()
        assert text.err == "", text.describe()
        assert f" NAME {title} - " in " ".join(text.out.split()), text.describe()
        assert "\nSEE ALSO\n" in text.out and "##" not in text.out, text.describe()


def test_links_between_the_documents_hold(prefix):
    documents = prefix / "share/doc/h5mirror"
    pages = list(documents.rglob("*.md"))
    assert {"README.md", "operations.md", "driver-keys.md", "h5mirror.1.md"} <= {each.name for each in pages}
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(documents)} links to {target}"


def test_bash_completes_every_program(prefix, user):
    for program in sorted(each.name for each in (prefix / "bin").iterdir()):
        script = prefix / "share/bash-completion/completions" / program
        assert user.run(["bash", "-c", f"source {script} && complete -p {program}"]).ok().out.strip().endswith(program)
    words = """source "$1"; COMP_WORDS=(h5mirrord init --ho); COMP_CWORD=2; _h5mirrord h5mirrord; echo "${COMPREPLY[*]}" """
    script = prefix / "share/bash-completion/completions/h5mirrord"
    assert user.run(["bash", "-c", words, "bash", script]).ok().out == "--host\n"
