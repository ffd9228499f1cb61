"""Users of one host behind one h5mirror-agent: each reads what the server lets it read, and no more.

Only root may use the server's socket, so a user's reads come from the agent.
"""

import array
import json
import os
import pwd
import shutil
import socket
import struct
from pathlib import Path

import pytest

from harness import hdf5, paths
from harness.process import run, wait_until
from harness.users import ANNA, BOB, needs_root, running_host
from test_agent import Agent

pytestmark = needs_root

AGENTS = """
[[access]]
files = "home/**"
users = ["token:robot"]
allow = ["read", "write", "operate"]
"""
OWN = """
[[access]]
files = "home/${user}/**"
allow = ["read", "write"]
"""
SHARED = f"""
[[access]]
files = "home/{ANNA}/**"
users = ["unix:{BOB}"]
allow = ["read"]
"""
TABLES = AGENTS + OWN


def readable_by_all(directory: Path) -> None:
    """A copy of all that a reader needs: other users may not be able to read the checkout and HDF5."""
    shutil.copy(paths.hdf5_tool("h5dump"), directory / "h5dump")
    shutil.copytree(paths.LIB, directory / "plugin", ignore=lambda _, names: {n for n in names if n.endswith(".a")})
    (directory / "lib").mkdir()
    for library in (paths.HDF5 / "lib").glob("libhdf5*.so*"):
        shutil.copy(library, directory / "lib")


class Readers:
    """An agent, and users that read through it."""

    def __init__(self, host, *arguments):
        self.host = host
        Path(host.site.address.removeprefix("unix:")).chmod(0o600)
        self.agent = Agent(host.site)
        self.agent.socket = host.directory / "agent.sock"
        token = ["--token", f"@{host.directory}/robot.token"] if host.site.server.tables else []
        self.agent.command = [paths.BIN / "h5mirror-agent", "--server", host.site.address, "--socket", self.agent.socket,
                              "--socket-mode", "0666", *token, *arguments]
        self.agent.start()
        status = host.run("robot", "status", f"home/{ANNA}/a.h5", "--json").ok().out
        self.cut = int(json.loads(status)["last_cut"])

    def read(self, user: str, name: str):
        """One value of a file, as h5dump of that user prints it."""
        site, directory = self.host.site, self.host.directory
        config = f"mode=reader;server={site.address};root={directory};agent={self.agent.socket};timeout=2s"
        env = hdf5.plain_env(HOME=str(directory / user), LD_LIBRARY_PATH=str(directory / "lib"), HDF5_DRIVER="h5mirror",
                             HDF5_PLUGIN_PATH=str(directory / "plugin"), HDF5_DRIVER_CONFIG=config)
        return run(["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", directory / "h5dump",
                    "--enable-error-stack", "-d", "/x",
                    "-s", "41", "-c", "1", name], site.logs, env=env, cwd=directory, timeout=60, name="h5dump")

    def reads(self, user: str, name: str = f"home/{ANNA}/a.h5") -> bool:
        result = self.read(user, name)
        assert (result.code == 0) == ("(41): 41" in result.out), result.describe()
        return result.code == 0

    def maps(self, user: str, name: str = f"home/{ANNA}/a.h5", *, blocks: bool = False) -> int:
        """How many descriptors a user gets of the newest cut: to map its metadata, or of its blocks."""
        target, name = self.host.site.address.encode(), name.encode()
        kind, answer_kind = (b"H5MASB01", b"H5MBLK02") if blocks else (b"H5MASK02", b"H5MGOT01")
        question = struct.pack("<8sqqq16sIIII", kind, self.cut, 0, 0, b"", 0, len(target), len(name), 0)
        with socket.socket(socket.AF_UNIX) as asks:
            asks.settimeout(30)
            os.seteuid(pwd.getpwnam(user).pw_uid)
            try:
                asks.connect(f"{self.agent.socket}.maps")
            finally:
                os.seteuid(0)
            asks.sendall(question + target + name)
            answer, parts, _, _ = asks.recvmsg(24, socket.CMSG_SPACE(17 * 4))
            got = array.array("i")
            for _, _, data in parts:
                got.frombytes(data[:len(data) - len(data) % 4])
            for each in got:
                os.close(each)
            assert answer[:8] == answer_kind and struct.unpack("<I", answer[8:12])[0] == len(got)
            return len(got)


@pytest.fixture
def host(tmp_path):
    with running_host(tmp_path) as host:
        readable_by_all(host.directory)
        host.reload(TABLES)
        for user in (ANNA, BOB):
            (host.site.work / "home" / user).mkdir(parents=True)
            # Written through the driver, so that the server knows what is metadata.
            host.site.py(f"h5py.File('home/{user}/a.h5', 'w')['x'] = np.arange(1000)",
                         config=host.site.config(token=f"@{host.directory}/robot.token"))
        yield host


def test_each_user_reads_and_maps_what_the_server_lets_it(host):
    readers = Readers(host)
    assert readers.reads(ANNA)
    assert readers.maps(ANNA) > 0 and readers.maps(ANNA, blocks=True) == 2
    assert not readers.reads(BOB) and readers.maps(BOB) == 0 and readers.maps(BOB, blocks=True) == 0
    assert readers.reads(BOB, f"home/{BOB}/a.h5")
    assert not readers.reads(ANNA, f"home/{BOB}/a.h5")
    # Root can have the agent's token.
    assert readers.reads("root") and readers.reads("root", f"home/{BOB}/a.h5")
    assert readers.reads(ANNA) and readers.maps(ANNA) > 0
    assert readers.agent.stop()[0] == 2, "it followed both files"


def test_rights_that_come_and_go_count_within_seconds(host):
    readers = Readers(host)
    assert not readers.reads(BOB)
    host.reload(AGENTS + SHARED + OWN)
    wait_until(lambda: readers.reads(BOB), "bob may read it now", 30)
    assert readers.maps(BOB) > 0 and readers.maps(BOB, blocks=True) == 2
    host.reload(TABLES)
    wait_until(lambda: not readers.reads(BOB), "bob may not read it any more", 30)
    assert readers.maps(BOB) == 0 and readers.maps(BOB, blocks=True) == 0
    assert readers.reads(ANNA)


def test_a_refused_user_hears_of_the_server_what_it_has_to_say(host):
    readers = Readers(host)
    Path(host.site.address.removeprefix("unix:")).chmod(0o666)
    result = readers.read(BOB, f"home/{ANNA}/a.h5")
    assert result.code != 0, result.describe()
    missing = readers.read(BOB, f"home/{ANNA}/none.h5")
    assert missing.code != 0, missing.describe()
    assert readers.reads(ANNA)


def test_an_agent_without_the_right_to_ask_serves_its_own_user(host):
    host.reload(TABLES.replace(', "operate"', ""))
    readers = Readers(host)
    assert readers.reads("root")
    assert not readers.reads(ANNA) and readers.maps(ANNA) == 0
    process = readers.agent.process
    wait_until(lambda: '"operate"' in process.err() + process.out(), "the log says what is missing")
    host.reload(TABLES)
    wait_until(lambda: readers.reads(ANNA), "it may ask now", 30)


def test_by_its_configuration_it_serves_all_users(host):
    readers = Readers(host, "--users", "all")
    assert readers.reads(BOB) and readers.maps(BOB) > 0


def test_without_tables_all_users_read_as_ever(host):
    site = host.site
    site.server.stop()
    for key in ("tokens_file", *host.issuer.options()):
        site.server.options.pop(key)
    site.server.tables = ""
    site.server.start()
    readers = Readers(host)
    for user in (BOB, ANNA, "root"):
        assert readers.reads(user), user
    assert readers.maps(BOB) > 0
