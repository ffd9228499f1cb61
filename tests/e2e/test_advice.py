"""Errors that say what is wrong and the way out: TLS on one side alone, a file that h5py's mode "a" may not open."""

import fcntl
import os
import time

import pytest

from harness import hdf5, paths
from harness.process import run
from harness.server import Server
from harness.site import Site


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    """What `h5mirrord init` makes."""
    directory = tmp_path_factory.mktemp("init")
    run([paths.BIN / "h5mirrord", "init", "--dir", directory / "secrets", "--host", "localhost"], directory).ok()
    return directory / "secrets"


@pytest.fixture
def tls_site(tmp_path, secrets):
    site = Site(tmp_path, options={"tls_cert": secrets / "server.pem", "tls_key": secrets / "server.key",
                                   "tokens_file": secrets / "tokens"})
    site.server.start()
    yield site
    site.close()


@pytest.fixture
def site(bare_site):
    """These tests need no history."""
    return bare_site


def soon(result, patience):
    """The command must not wait for the end of --timeout."""
    assert result.seconds < patience, result.describe()
    return result


def test_a_tls_server_without_a_ca_is_named_at_once(tls_site):
    result = soon(tls_site.cli("--timeout", "60", "ls", timeout=200), 45)
    assert result.code == 4 and f"{tls_site.address} speaks TLS, and no CA is set here" in result.err, result.describe()
    assert "ca.pem" in result.err and "~/.config/h5mirror" in result.err, result.describe()


def test_the_plugin_says_once_that_the_server_speaks_tls(tls_site):
    result = tls_site.py("""
        for n in range(5):
            with h5py.File(f"{n}.h5", "w") as f:
                f["x"] = np.arange(10)
    """)
    assert result.err.count("speaks TLS, and no CA is set here") == 5, "once for each file"
    asked = tls_site.server.log().count("TLS") + tls_site.server.log().count("handshake")
    assert asked < 5, tls_site.server.log()
    reading = tls_site.run(tls_site.script("h5py.File('0.h5', 'r')"), config=tls_site.config(mode="reader"))
    assert reading.code != 0 and "speaks TLS, and no CA is set here" in reading.err, reading.describe()


def test_a_plain_server_and_a_ca_are_named_at_once(site, secrets):
    result = soon(site.cli("--ca", secrets / "ca.pem", "--timeout", "60", "ls", timeout=200), 45)
    assert result.code == 4 and f"{site.address} speaks no TLS, and a CA is set here" in result.err, result.describe()
    written = site.run(site.script("h5py.File('x.h5', 'w')['x'] = 1"), config=site.config(ca=secrets / "ca.pem"))
    assert "speaks no TLS, and a CA is set here" in written.err, written.describe()


def test_another_servers_ca_is_named_at_once(tls_site, tmp_path):
    run([paths.BIN / "h5mirrord", "init", "--dir", tmp_path / "other"], tmp_path).ok()
    result = soon(tls_site.cli("--ca", tmp_path / "other" / "ca.pem", "--timeout", "60", "ls", timeout=200), 45)
    assert result.code == 4 and "is not signed by the CA that is set here" in result.err, result.describe()


def test_a_server_that_comes_up_late_is_waited_for(tls_site, secrets):
    """TLS or not: a server that is away is not asked what it speaks."""
    tls_site.server.stop()
    waiting = tls_site.start([paths.BIN / "h5mirror", "--server", tls_site.address, "--timeout", "120", "--ca",
                              secrets / "ca.pem", "--token", f"@{secrets / 'token'}", "ls"])
    time.sleep(0.5)  # Whichever comes first is right.
    tls_site.server.start()
    waiting.wait().ok()


OPEN = """
    try:
        h5py.File("x.h5", {mode!r})
    except OSError as error:
        print(type(error).__name__, error)
"""


def test_mode_a_has_the_reason_why_not(both):
    """As sec2: after an error of another driver h5py makes a second attempt, and shows the error of that one."""
    both.py("h5py.File('x.h5', 'w')['x'] = np.arange(10)")
    with open(both.local("x.h5"), "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for mode in ("a", "r+"):
            assert both.py(OPEN.format(mode=mode)).out.startswith("BlockingIOError [Errno 11]"), mode
        # A program that wants a new file is told that there is one.
        assert both.py(OPEN.format(mode="x")).out.startswith("FileExistsError [Errno 17]")
    assert both.py(OPEN.format(mode="a")).out == ""
    both.local("x.h5").unlink()
    assert both.py(OPEN.format(mode="a")).out == "", "what is not there is made"


def test_mode_a_has_our_own_reasons_too(site):
    site.py("h5py.File('x.h5', 'w')['x'] = np.arange(10)", config="server=embedded")
    refused = site.py(OPEN.format(mode="a")).out
    assert refused.startswith("PermissionError [Errno 1]") and "history" in refused, refused
    writer = site.start(site.script("""
        f = h5py.File("s.h5", "w", libver="latest")
        f["x"] = np.arange(10)
        f.swmr_mode = True
        print("ready", flush=True)
        time.sleep(600)
    """))
    writer.wait_for_line("ready")
    refused = site.py(OPEN.format(mode="a").replace("x.h5", "s.h5")).out
    assert refused.startswith("BlockingIOError [Errno 11]") and "SWMR" in refused, refused
    writer.kill()


@pytest.mark.parametrize("first, ok", [("h5mirror", True), ("h5py", False)])
def test_with_the_driver_named_and_no_plugin_path_the_package_finds_it(bare_site, first, ok):
    env = {**bare_site.env(), "PYTHONPATH": str(paths.SOURCE / "client_vfd" / "python"),
           "H5MIRROR_PLUGIN_DIR": str(paths.LIB)}
    del env["HDF5_PLUGIN_PATH"]
    result = bare_site.run([bare_site.python, "-c", f"import {first}, h5py; h5py.File('x.h5', 'w').close()"], env=env)
    assert (result.code == 0) == ok, result.describe()
    if ok:
        bare_site.assert_mirrored("x.h5")
    else:
        assert "Not a datatype" in result.err, "docs/how-to/when-mirroring-does-not-work.md says otherwise"
    doctor = bare_site.run([paths.BIN / "h5mirror", "doctor", "--no-scratch"], env=env)
    assert "FAIL" in doctor.out and "Not a datatype" in doctor.out, doctor.describe()


def doctor(site, version, *options, **env):
    command = [paths.BIN / "h5mirror", "--server", site.address, *options, "doctor", "--no-scratch", "--python",
               paths.venv_python(version)]
    return site.run(command, env={**site.plain_env(), **env})


def test_doctor_tries_each_hdf5_with_the_connector(bare_site, h5py_version):
    result = doctor(bare_site, h5py_version)
    found = [line for line in result.out.splitlines() if f"h5py {h5py_version}" in line]
    assert found and "loads the plugin and the VOL connector" in found[0], result.describe()


def test_doctor_says_what_a_connector_that_is_not_found_does(bare_site, h5py_version):
    """HDF5 2.0.0 crashes, 1.14.4 goes on; doctor's own children are spared."""
    told = {"HDF5_VOL_CONNECTOR": "h5mirror tick=1s", "HDF5_PLUGIN_PATH": "/nowhere"}
    program = bare_site.run([paths.venv_python(h5py_version), "-c", "import h5py; h5py.File('x.h5', 'w').close()"],
                            env={**bare_site.plain_env(), **told})
    assert (program.code == 0) == (h5py_version == "3.12.1"), f"the way out says otherwise: {program.describe()}"
    result = doctor(bare_site, h5py_version, **told)
    line = next(line for line in result.out.splitlines() if " connector " in line)
    assert line.startswith("FAIL") and "HDF5_PLUGIN_PATH does not hold libhdf5_vol_h5mirror.so" in line, line
    assert "HDF5 2.0 crashes" in line and f"export HDF5_PLUGIN_PATH={paths.LIB}" in line, line
    assert f"h5py {h5py_version}" in result.out and result.code == 1, result.describe()
    right = doctor(bare_site, h5py_version, **{**told, "HDF5_PLUGIN_PATH": str(paths.LIB)})
    assert f"HDF5_PLUGIN_PATH holds {paths.LIB}" in right.out and "FAIL" not in right.out, right.describe()


def test_doctor_sees_an_installation_without_the_connector(bare_site):
    plugins = bare_site.directory / "plugins"
    plugins.mkdir()
    for name in ("libhdf5_vfd_h5mirror.so", "h5mirror"):
        (plugins / name).symlink_to(paths.LIB / name)
    result = doctor(bare_site, "3.12.1", "--plugin-dir", plugins)
    assert f"{plugins} holds no libhdf5_vol_h5mirror.so" in result.out and "install h5mirror anew" in result.out, result.out
    assert "WARN" in result.out and result.code == 0, result.describe()


def doctor_with_cache_in(site, **directories):
    """HOME, XDG_CACHE_HOME and TMPDIR are the named ones, or unset."""
    env = {key: value for key, value in hdf5.plain_env().items() if key not in ("HOME", "XDG_CACHE_HOME")}
    env |= {key: str(value) for key, value in directories.items()}
    return run([paths.BIN / "h5mirror", "--server", site.address, "doctor", "--libhdf5", paths.HDF5 / "lib" / "libhdf5.so"], site.logs,
               env=env, timeout=120)


@pytest.mark.parametrize("key, below", [("HOME", ".cache"), ("XDG_CACHE_HOME", "."), ("TMPDIR", f"h5mirror-{os.geteuid()}")])
def test_doctor_writes_through_no_link_that_was_there_first(site, tmp_path, key, below):
    """In a place that all may write, another user may have made the directories."""
    around, victim = tmp_path / "around", tmp_path / "victim"
    victim.write_text("precious")
    planted = around / below / "h5mirror" / "doctor"
    planted.mkdir(parents=True)
    (planted / "scratch.h5").symlink_to(victim)
    said = doctor_with_cache_in(site, **{key: around}).said
    assert victim.read_bytes() == b"precious"
    assert "scratch.h5 is no plain file of yours" in said and "Remove it" in said and "--no-scratch" in said, said


def test_doctor_without_a_home_has_a_directory_of_its_own(site, tmp_path):
    """Also where a former program made it under a umask of 002."""
    for _ in range(2):
        said = doctor_with_cache_in(site, TMPDIR=tmp_path).said
        assert "Remove it" not in said and "scratch" in said, said
        own = tmp_path / f"h5mirror-{os.geteuid()}"
        assert own.stat().st_mode & 0o022 == 0
        own.chmod(0o775)


@pytest.mark.site(options={"http_listen": "127.0.0.1:0"})
def test_the_port_of_http_in_place_of_the_server_s_is_named(site):
    said = run([paths.BIN / "h5mirror", "--server", f"127.0.0.1:{site.server.http_port}", "--timeout", "3", "ls"], site.logs,
               env=site.plain_env(), timeout=60)
    assert said.code == 4 and "not that of its `http_listen`" in said.err, said.describe()
