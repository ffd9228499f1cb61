"""A record that names a server which is not the user's own is reported, and not followed: no token and no byte goes
there."""

import json
import select
import socket

import pytest

from harness import hdf5, paths
from harness.process import run


class Listener:
    """A client that connects here would have sent a token."""

    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:{}".format(self._socket.getsockname()[1])

    def was_asked(self) -> bool:
        return bool(select.select([self._socket], [], [], 0)[0])

    def close(self) -> None:
        self._socket.close()


def change_record(site, **fields):
    path = site.work / "run.h5.h5m" / "client.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.fixture
def trap(bare_site):
    """A file whose record names a foreign server, and that the user's own server does not have."""
    site = bare_site
    site.py('h5py.File("run.h5", "w")["d"] = np.arange(9000)')
    site.py('h5py.File("run.h5", "r+")["e"] = 1')
    site.settle("run.h5")
    site.foreign = Listener()
    site.file_id = site.record("run.h5")["file_id"]
    change_record(site, server=site.foreign.address, file_id="7" * 32)
    (site.home / ".config" / "h5mirror").mkdir(parents=True)
    token = site.home / ".config" / "h5mirror" / "token"
    token.write_text("h5m_a-users-token\n")
    token.chmod(0o600)
    yield site
    site.foreign.close()


def tool(site, *arguments, program="h5mirror", **env):
    env = hdf5.plain_env(HOME=str(site.home), **env)
    return run([paths.BIN / program, *arguments], site.logs, env=env, cwd=site.work, timeout=60, name=program)


VERBS = [
    ["status", "run.h5"], ["log", "./run.h5"], ["show", "run.h5@1"], ["diff", "run.h5@1"], ["tag", "run.h5@1", "good"],
    ["untag", "run.h5", "good"], ["commit", "run.h5"], ["watch", "run.h5"], ["mv", "run.h5", "other.h5"],
    ["rm", "run.h5"], ["export", "run.h5@1", "out.h5"], ["rollback", "run.h5@1"], ["prune", "run.h5", "--keep-last", "1"],
    ["stats", "run.h5"], ["verify", "run.h5"], ["verify", "--against", "run.h5"], ["recover", "run.h5"], ["push", "run.h5"],
    ["resync", "run.h5"], ["resync", "--from", "local", "run.h5"], ["adopt", "run.h5"], ["doctor", "run.h5", "--no-scratch"],
]


def test_no_verb_follows_it(trap):
    before = trap.local("run.h5").read_bytes()
    for verb in VERBS:
        result = tool(trap, *verb, H5MIRROR_SERVER=trap.address)
        assert result.code == (1 if verb[0] == "doctor" else 5), (verb, result.describe())
        said = result.out + result.err
        assert trap.foreign.address in said and "not one of your configured servers" in said and trap.address in said, (verb, said)
        assert "run.h5.h5m/client.json" in said, (verb, said)
        assert not trap.foreign.was_asked(), verb
    result = tool(trap, "-c", "CREATE /x {{1}};", "run.h5", program="h5edit", H5MIRROR_SERVER=trap.address)
    assert result.code != 0 and trap.foreign.address in result.err, result.describe()
    assert not trap.foreign.was_asked()
    assert trap.local("run.h5").read_bytes() == before and trap.versions("run.h5") == [1, 2]


def test_of_a_list_the_own_servers_are_asked(trap):
    """The cluster is that of the configuration, whatever servers a record adds."""
    for servers in (f"{trap.foreign.address}|{trap.address}", f"{trap.address}|{trap.foreign.address}"):
        change_record(trap, server=servers, file_id=trap.file_id)
        for verb in ["status", "run.h5"], ["log", "run.h5"], ["verify", "run.h5"]:
            tool(trap, *verb, H5MIRROR_SERVER=trap.address).ok()
        assert not trap.foreign.was_asked()
    tool(trap, "rehome", "run.h5", H5MIRROR_SERVER=trap.address).ok()
    assert trap.record("run.h5")["server"] == trap.address and not trap.foreign.was_asked()


def test_a_list_of_two_mirrors_is_none_of_ones_own(trap):
    """A login at one of them would go to the other one."""
    change_record(trap, server=f"{trap.foreign.address}|{trap.address}", file_id=trap.file_id)
    (trap.home / ".config" / "h5mirror" / "client.toml").write_text(
        f'server = ["{trap.address}", "{trap.foreign.address}"]\n')
    result = tool(trap, "log", "run.h5").ok()
    assert "rehome" in result.err, result.describe()  # The configured server was asked in its place.
    assert not trap.foreign.was_asked()


def test_the_own_server_is_asked_where_it_has_the_file(trap):
    """As after a move of the server: the record then names an address that is unused, or a stranger's, by now."""
    change_record(trap, file_id=trap.file_id)
    for verb in ["status", "run.h5"], ["log", "run.h5"], ["verify", "run.h5"], ["verify", "--against", "run.h5"]:
        result = tool(trap, *verb, H5MIRROR_SERVER=trap.address).ok()
        assert f"names the server {trap.foreign.address}" in result.err and "rehome" in result.err, result.describe()
    assert not trap.foreign.was_asked()


def test_the_message_has_the_command_that_goes_there(trap):
    result = tool(trap, "log", "./run.h5", "--json", H5MIRROR_SERVER=trap.address)
    assert f"h5mirror --server {trap.foreign.address} log ./run.h5 --json" in result.err, result.describe()
    result = tool(trap, "--server", trap.foreign.address, "--timeout", "1", "log", "./run.h5")
    assert trap.foreign.was_asked() and "not one of your configured servers" not in result.err, result.describe()


@pytest.mark.parametrize("where", ["variable", "driver", "file"])
def test_every_place_of_the_configuration_counts(trap, where):
    env = {}
    if where == "variable":
        env = {"H5MIRROR_SERVER": trap.foreign.address}
    elif where == "driver":
        env = {"HDF5_DRIVER_CONFIG": f"root={trap.work};server={trap.address},{trap.foreign.address}"}
    else:
        (trap.home / ".config" / "h5mirror" / "client.toml").write_text(f'server = ["{trap.foreign.address}"]\n')
    result = tool(trap, "log", "run.h5", "--timeout", "1", **env)
    assert "not one of your configured servers" not in result.err and trap.foreign.was_asked(), result.describe()


def test_a_name_that_is_no_address_is_no_command(trap):
    change_record(trap, server="x; touch /tmp/pwned #")
    result = tool(trap, "log", "run.h5", H5MIRROR_SERVER=trap.address)
    assert result.code == 5 and "h5mirror --server x" not in result.err, result.describe()
