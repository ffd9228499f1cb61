"""Names and settings that must be refused, each with an error that says what is wrong."""

import pytest

from harness import hdf5
from harness.server import Server
from harness.wire import Wire

OPEN_SCRIPT = """
    with h5py.File("x.h5", "w") as f:
        f["x"] = np.arange(10)
"""


def files_under(directory):
    """The files that a refused name could have made; files of other histories change by themselves."""
    return sorted(path for path in directory.rglob("*.h5*")
                  if "bystander" not in str(path) and ".h5mirror" not in path.parts and "logs" not in path.parts)


@pytest.mark.parametrize("extra, named", [
    ({"sever": "localhost"}, "sever"),
    ({"ack": "perhaps"}, "perhaps"),
    ({"window": "lots"}, "lots"),
    ({"timeout": "-1"}, "timeout"),
    ({"flush": "now"}, "flush"),
])
def test_wrong_client_setting_is_named(shared_site, extra, named):
    result = shared_site.run(shared_site.script(OPEN_SCRIPT), config=shared_site.config(**extra))
    assert result.code != 0, "an open with a wrong setting must fail, not go on unmirrored"
    assert named in result.said, result.describe()
    assert not shared_site.exists("x.h5")


def test_setting_without_a_value_is_named(shared_site):
    result = shared_site.run(shared_site.script(OPEN_SCRIPT), config=shared_site.config() + ";exclude")
    assert result.code != 0 and "exclude" in result.said, result.describe()


@pytest.mark.parametrize("options, named", [
    ({"memory_maximum": "1GiB"}, "memory_maximum"),
    ({"memory_max": "much"}, "memory_max"),
    ({"umask": "abc"}, "umask"),
])
def test_wrong_server_setting_is_named(tmp_path, options, named):
    (tmp_path / "root").mkdir()
    server = Server(tmp_path / "root", tmp_path, options=options)
    result = server.launch().wait(20)
    assert result.code != 0 and named in result.said, result.describe()


@pytest.mark.parametrize("name", ["/etc/passwd.h5", "../out.h5", "a/../../out.h5", "x.h5.h5m", "x.h5.h5m/pages",
                                  "a/./b.h5", "a//b.h5"])
def test_configured_name_must_stay_in_the_root(shared_site, name):
    """A name that cannot be one is an error of the open; nothing appears on the server."""
    before = files_under(shared_site.root)
    result = shared_site.run(shared_site.script(OPEN_SCRIPT), config=shared_site.config(root=None, name=name))
    assert name in result.said, result.describe()
    assert files_under(shared_site.root) == before


@pytest.mark.parametrize("name", ["/abs.h5", "../up.h5", "a/../../up.h5", "./x.h5", "a//b.h5", "x.h5.h5m",
                                  "x.h5.h5m/index", "", "nul\\0.h5", "c" * 300 + ".h5", "d/" * 2100 + "x.h5",
                                  "new\\nline.h5"])
def test_server_refuses_a_name_that_leaves_its_root(shared_site, name):
    """The server itself restricts names, whatever a client sends."""
    before = files_under(shared_site.root.parent)
    with Wire(shared_site) as wire:
        wire.open(name, "CREATE")
        wire.commit(0)
        end = wire.finish()
    assert end["code"] == "INVALID_ARGUMENT", end
    assert end["message"], end
    assert files_under(shared_site.root.parent) == before


@pytest.mark.parametrize("link", ["directory", "file"])
def test_symlink_out_of_the_root_is_refused(site, link):
    outside = site.directory / "outside"
    outside.mkdir()
    if link == "directory":
        (site.root / "sub").symlink_to(outside)
    else:
        (site.root / "sub").mkdir()
        (outside / "x.h5").write_bytes(b"precious")
        (site.root / "sub" / "x.h5").symlink_to(outside / "x.h5")
    site.local("sub").mkdir()
    before = {p: p.is_file() and p.read_bytes() for p in outside.rglob("*")}
    result = site.run(site.script(OPEN_SCRIPT.replace("x.h5", "sub/x.h5")))
    result.ok()  # The program goes on locally.
    assert "sub/x.h5" in result.err, f"one line says why it is not mirrored:\n{result.describe()}"
    assert "Once the cause is mended: h5mirror resync" in result.err, result.describe()
    hdf5.assert_opens(site.local("sub/x.h5"))
    assert {p: p.is_file() and p.read_bytes() for p in outside.rglob("*")} == before
    with Wire(site) as wire:
        wire.open("sub/x.h5", "CREATE")
        wire.commit(0)
        assert wire.finish()["code"] in ("INVALID_ARGUMENT", "PERMISSION_DENIED")


def test_version_that_does_not_exist(shared_site):
    for arguments in (["export", "bystander.h5@99", shared_site.directory / "out.h5"], ["rollback", "bystander.h5@99"]):
        result = shared_site.cli(*arguments)
        assert result.code != 0, result.describe()
        assert "bystander.h5" in result.err and "99" in result.err, result.describe()
        assert len(result.err.strip().splitlines()) == 1, f"one line:\n{result.describe()}"
    assert not (shared_site.directory / "out.h5").exists()
    assert shared_site.versions("bystander.h5") == [1, 2, 3]


@pytest.mark.parametrize("arguments", [["log", "absent.h5"], ["export", "absent.h5@1", "out.h5"],
                                       ["rollback", "absent.h5@1"], ["status", "absent.h5"],
                                       ["log", "../bystander.h5"]])
def test_file_that_does_not_exist(shared_site, arguments):
    result = shared_site.cli(*arguments)
    assert result.code != 0 and result.err.strip(), result.describe()
    assert "absent.h5" in result.err or "bystander.h5" in result.err, result.describe()


def test_version_that_is_no_number(shared_site):
    result = shared_site.cli("export", "bystander.h5@x", "out.h5")
    assert result.code == 2 and "'x'" in result.err and "latest" in result.err, result.describe()


def test_path_that_the_system_cannot_name_is_told(site):
    """A program gets there by chdir. No record can lie beside the file."""
    done = site.py("""
        for _ in range(25):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        for mode in "wa":
            with h5py.File("x.h5", mode) as f:
                f[mode] = 1
    """)
    assert done.err.count("x.h5 is NOT mirrored: its path or its descriptor cannot be looked at") == 2, done.describe()
    assert "whether a change of it was broken off" not in done.err


def test_name_that_leaves_no_room_for_what_lies_beside_it_is_told(site):
    name = "n" * 252 + ".h5"
    done = site.py(f"""
        for mode in "wa":
            with h5py.File("{name}", mode) as f:
                f[mode] = 1
    """)
    assert "a component exceeds 247 bytes: choose a shorter name" in done.err, done.describe()
    assert "whether a change of it was broken off" not in done.err


def test_root_already_served(shared_site):
    second = Server(shared_site.root, shared_site.logs)
    second.directory = shared_site.directory / "second"
    second.directory.mkdir()
    result = second.launch().wait(20)
    assert result.code != 0, result.describe()
    assert str(shared_site.root) in result.said, result.describe()


def test_root_that_does_not_exist(tmp_path):
    result = Server(tmp_path / "absent", tmp_path).launch().wait(20)
    assert result.code != 0 and "absent" in result.said, result.describe()


def test_plain_text_on_a_network_address_is_refused(tmp_path):
    (tmp_path / "root").mkdir()
    result = Server(tmp_path / "root", tmp_path, listen="0.0.0.0:0").launch().wait(20)
    assert result.code != 0 and "0.0.0.0" in result.said, result.describe()
