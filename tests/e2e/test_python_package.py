"""The Python package h5mirror (client_vfd/python), from the source tree, with both h5py; test_wheel.py installs it."""

import re

import pytest

from harness import paths
from harness.package import PACKAGE, Package, secured
from harness.site import Site

# Three versions, of which the second and third have comments and the second a tag.
THREE = """
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["d"] = np.arange(10)
    for n in (1, 2):
        with h5py.File("run.h5", "a", driver="h5mirror", config=CONFIG) as f:
            f["d"][:] = n
            h5mirror.commit(f, f"pass {n}, \\u00fcber")
"""


@pytest.fixture
def three(package):
    package.py(THREE)
    package.site.cli("tag", "run.h5@2", "published").ok()
    return package


ORDERS = {
    "before_h5py": ("", "import h5mirror, h5py"),
    "after_h5py": ("", "import h5py, h5mirror"),
    "after_h5py_was_used": ("import h5py; f = h5py.File('other.h5', 'w'); f['x'] = 1; f.close()", "import h5mirror"),
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_driver_is_registered_at_any_moment(package, order):
    used, imported = ORDERS[order]
    script = package.site.directory / "order.py"
    script.write_text(f"""{used}
{imported}
assert "h5mirror" in h5py.registered_drivers()
with h5py.File("run.h5", "a", driver="h5mirror", config={package.site.config()!r}) as f:
    f["d"] = 7
""")
    env = {**package.site.plain_env(), "PYTHONPATH": str(PACKAGE), "H5MIRROR_PLUGIN_DIR": str(paths.LIB)}
    package.site.run([package.site.python, script], env=env).ok()
    package.site.assert_mirrored("run.h5")
    assert package.site.versions("run.h5") == [1]
    assert not package.site.exists("other.h5")


def test_keys_are_arguments_of_h5py_file(package):
    package.py("""
    from datetime import timedelta
    from pathlib import Path
    with h5py.File("run.h5", "a", driver="h5mirror", server=SERVER, root=Path.cwd(), timeout=timedelta(seconds=5),
                   exclude=["*.tmp", "*.log"], comment="by keys", libver="latest") as f:
        f["d"] = np.arange(1000)
    """)
    package.site.assert_mirrored("run.h5")
    assert [row["comment"] for row in package.site.log("run.h5")] == ["by keys"]


def test_a_commit_makes_a_version_with_that_comment(package):
    out = package.py("""
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["d"] = np.arange(10)
        print(h5mirror.commit(f, "first, \\u00fcber"), h5mirror.commit(f, "nothing changed"))
        f["d"][:] = 3
        print(h5mirror.commit(f["d"], "by a dataset"), h5mirror.status(f).state)
    with h5py.File("run.h5", "a", driver="h5mirror", config=CONFIG) as f:
        print(h5mirror.commit(f, "nothing changed"), h5mirror.status(f).state)
    """)
    assert out.splitlines() == ["1 1", "2 connected", "None unchanged"], out
    assert [row["comment"] for row in package.site.log("run.h5")] == ["by a dataset", "first, über"]


def test_a_commit_works_on_files_that_the_environment_mirrors(package):
    site = package.site
    environment = {"PYTHONPATH": str(PACKAGE), "H5MIRROR_PLUGIN_DIR": str(paths.LIB)}
    site.py("""
    import h5mirror
    with h5py.File("run.h5", "w") as f:
        f["d"] = 1
        assert h5mirror.commit(f, "by the environment") == 1
    """, **environment)
    assert site.log("run.h5")[0]["comment"] == "by the environment"


def test_a_commit_without_a_server_warns_and_the_program_goes_on(package):
    package.site.server.stop()
    out = package.py("""
    import warnings
    with h5py.File("run.h5", "w", driver="h5mirror", config=CONFIG + ";timeout=200ms;linger=0s") as f:
        f["d"] = 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert h5mirror.commit(f, "lost?") is None
        assert [each.category for each in caught] == [h5mirror.NotMirroredWarning] and caught[0].filename == __file__
        print(caught[0].message)
        assert h5mirror.status(f).state in ("degraded", "connecting"), h5mirror.status(f)
    """)
    assert "run.h5: the commit 'lost?' is in the local file alone: " in out
    package.site.server.start()


def test_a_commit_of_another_driver_s_file_of_a_closed_one_or_of_a_reader_is_refused(three):
    plain = three.raised("h5mirror.commit(f, 'x')", "    f = h5py.File('plain.h5', 'w')")
    assert plain.startswith("ValueError plain.h5 was not opened by h5mirror: open it with driver='h5mirror'")
    closed = three.raised("h5mirror.status(f)", "    f = h5mirror.open(URL); f.close()")
    assert closed.startswith("ValueError the file is closed")
    reader = three.raised("h5mirror.commit(f, 'x')", "    f = h5mirror.open(URL)")
    assert reader.startswith("ValueError") and "is open for reading: it has nothing to commit" in reader


def test_open_gives_the_file_as_it_is_and_any_version(three):
    assert three.py("""
    from datetime import datetime, timezone
    first, second, third = h5mirror.versions(URL)
    def read(url=URL, **keys):
        with h5mirror.open(url, "r", **keys) as f:
            assert f.mode == "r" and h5mirror.status(f).state == "reading"
            return h5mirror.status(f).version, int(f["d"][5])
    assert read() == (3, 2)
    assert read(URL + "@2") == read(version=2) == read(URL + "@tag:published") == (2, 1)
    assert read(URL + "@latest-2") == read(version="1") == read(version=first.time) == (1, 5)
    assert read(URL + "@2999-01-01T00:00") == read(version=datetime.now(timezone.utc)) == (3, 2)
    assert read(rdcc_nbytes=1 << 20, timeout="2s", cache="8MiB") == (3, 2)
    assert read("h5mirror:///run.h5", server=SERVER) == (3, 2)
    print("read")
    """, H5MIRROR_SERVER="127.0.0.1:1") == "read\n"


def test_a_url_without_a_server_means_that_of_the_client_s_configuration(three):
    three.site.home.joinpath(".config/h5mirror").mkdir(parents=True)
    three.site.home.joinpath(".config/h5mirror/client.toml").write_text(
        f'server = "{three.site.address}"\nroot = "/elsewhere"\nexclude = ["*"]\n')
    assert three.py("""
    print(h5mirror.open("h5mirror:///run.h5@1")["d"][5], len(h5mirror.versions("h5mirror:///run.h5")))
    """) == "5 3\n"


def test_links_lead_to_files_that_lie_beside_the_one_of_the_url(package):
    package.py("""
    os.makedirs("day/raw")
    with h5py.File("day/raw/part.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["d"] = 41
    with h5py.File("day/main.h5", "w", driver="h5mirror", config=CONFIG) as f:
        f["part"] = h5py.ExternalLink("raw/part.h5", "/d")
    with h5py.File("day/raw/part.h5", "a", driver="h5mirror", config=CONFIG) as f:
        f["d"][...] = 42
    """)
    assert package.py("""
    import shutil
    shutil.rmtree("day")
    with h5mirror.open(f"h5mirror://{SERVER}/day/main.h5") as f:
        print(f["part"][()])
    with h5mirror.open(f"h5mirror://{SERVER}/day/main.h5@1") as f:
        print(f["part"][()])
    """) == "42\n41\n"


def test_versions_tells_what_the_log_tells(three):
    out = three.py("""
    for each in h5mirror.versions(URL):
        assert each.time.tzinfo is not None and each.time.utcoffset().total_seconds() == 0
        print(each.number, each.time.isoformat(timespec="microseconds"), each.size, each.tags, each.comment, each.host != "",
              each.program, each.user, each.user_verified, sep="|")
    """)
    rows = [line.split("|") for line in out.splitlines()]
    log = list(reversed(three.site.log("run.h5")))
    assert [row[0] for row in rows] == ["1", "2", "3"]
    # In UTC, and less than a microsecond after the server's nanoseconds.
    for (_, time, *_), known in zip(rows, log):
        fraction = (known["time"].rstrip("Z").partition(".")[2] + "0" * 9)[:9]
        assert time.endswith("+00:00") and time[:19] == known["time"][:19]
        assert 0 <= int(time[20:26]) * 1000 - int(fraction) < 1000, (time, known["time"])
    assert [int(row[2]) for row in rows] == [row["size_bytes"] for row in log]
    assert [row[3] for row in rows] == ["()", "('published',)", "()"]
    assert [row[4] for row in rows] == ["", "pass 1, über", "pass 2, über"]
    assert all(row[5] == "True" and row[7] == log[0]["user"] and row[8] == "False" for row in rows), rows


def test_a_local_path_means_its_mirror_and_a_url_the_server_s_file(package):
    package.py("""
    with h5py.File("other.h5", "w", driver="h5mirror", config=CONFIG + ";name=elsewhere.h5") as f:
        f["d"] = 1
    """)
    url = "h5mirror://" + package.site.address
    both = f"print(len(h5mirror.versions('other.h5')), len(h5mirror.versions('{url}/elsewhere.h5')))"
    assert package.py(both, H5MIRROR_SERVER=package.site.address) == "1 1\n"
    assert package.raised(f"h5mirror.versions('{url}/other.h5')").startswith("FileNotFoundError [Errno 2]")


def test_what_is_not_there_is_a_file_not_found_error(three):
    for expression in ("h5mirror.open(URL.replace('run', 'other'))", "h5mirror.open(URL + '@7')",
                       "h5mirror.open(URL, version='tag:draft')", "h5mirror.versions(URL.replace('run', 'other'))"):
        assert three.raised(expression).startswith("FileNotFoundError [Errno 2]"), expression


def test_a_server_that_does_not_answer_is_an_error_that_names_it(package):
    away = "h5mirror://127.0.0.1:1/run.h5"
    opened = package.raised(f"h5mirror.open({away!r}, timeout='500ms')")
    assert opened.startswith("ConnectionRefusedError [Errno 111]") and "127.0.0.1:1" in opened, opened
    listed = package.raised(f"h5mirror.versions({away!r}, timeout=1)")
    assert listed.startswith("ConnectionError [Errno 113]") and "127.0.0.1:1" in listed, listed


def test_a_url_is_for_reading(three):
    for mode in ("r+", "a", "w", "x"):
        said = three.raised(f"h5mirror.open(URL, {mode!r})")
        assert said.startswith(f"ValueError mode '{mode}'") and f"h5py.File(path, '{mode}', driver='h5mirror'" in said
    assert three.site.versions("run.h5") == [1, 2, 3]


def test_wrong_arguments_are_refused_with_the_reason(package):
    for expression, words in (
            ("h5mirror.open('http://node7/run.h5')", "ValueError 'http://node7/run.h5' is not an h5mirror URL: it begins"),
            ("h5mirror.open('/data/run.h5')", "it begins with none of these: h5mirror://HOST[:PORT]/NAME"),
            ("h5mirror.open('h5mirror://node7')", "it names no file"),
            ("h5mirror.open('h5mirror://me@node7/run.h5')", "it names a user"),
            ("h5mirror.open('h5mirror://node7/run.h5?timeout=1s')", "keys are arguments"),
            ("h5mirror.open('h5mirror://node7/run.h5#2')", "'#' in a name is written %23"),
            ("h5mirror.open('h5mirror+unix://run/s?name=a.h5')", "a socket's path is absolute"),
            ("h5mirror.open('h5mirror+unix:///run/s')", "name=NAME, once"),
            ("h5mirror.open(URL + '@2', version=3)", "give one of them"),
            ("h5mirror.open(URL, server='node8')", "give one of them"),
            ("h5mirror.versions(URL + '@2')", "leave '@2' out"),
            ("h5mirror.open(URL, serve='node8')", "OSError"),
            ("h5mirror.open(URL, serve='node8')", "unknown key 'serve'; known are: server, mode,"),
            ("h5py.File('a.h5', 'w', driver='h5mirror', timeout='soon')", "timeout=soon: must be"),
            ("h5py.File('a.h5', 'w', driver='h5mirror', comment='a;b')", "ValueError comment='a;b': a ';'"),
            ("h5py.File('a.h5', 'w', driver='h5mirror', config='@/x.toml', ack='none')", "beside which no other key")):
        assert words in package.raised(expression), expression


def test_a_socket_is_named_by_a_url_of_its_own(tmp_path, h5py_version):
    site = Site(tmp_path, h5py=h5py_version, listen=f"unix:{tmp_path}/a socket")
    try:
        site.server.start()
        package = Package(site)
        package.py(THREE)
        assert package.py(f"""
    url = "h5mirror+unix://{tmp_path}/a%20socket?name=run.h5"
    print(len(h5mirror.versions(url)), h5mirror.open(url + "@latest-1")["d"][5])
    print(len(h5mirror.versions("h5mirror:///run.h5", server=SERVER)))
    """) == "3 1\n3\n"
    finally:
        site.close()


def test_a_token_is_an_argument_and_in_nobody_s_sight(tmp_path, h5py_version):
    secrets = tmp_path / "secrets"
    with secured(tmp_path, h5py_version) as (package, keys):
        assert package.py(f"""
    with h5py.File("run.h5", "w", driver="h5mirror", server=SERVER, root=os.getcwd(), {keys}) as f:
        f["d"] = 5
    import shutil
    shutil.copy('{secrets}/ca.pem', "ca.pem"), shutil.copy('{secrets}/token', "token"), os.chmod("token", 0o600)
    ran, run = [], h5mirror._versions.subprocess.run
    h5mirror._versions.subprocess.run = lambda command, **more: ran.append(command) or run(command, **more)
    print(h5mirror.versions(URL, {keys})[0].user_verified, h5mirror.versions(URL, ca="ca.pem", token="@token")[0].number)
    assert {keys.partition("token=")[2]} not in " ".join(map(str, ran[0]))
    print(h5mirror.open(URL, {keys})["d"][()])
    """, first="import h5mirror, h5mirror._versions") == "True 1\n5\n"
        ca = keys.partition(",")[0]
        assert package.raised(f"h5mirror.versions(URL, {ca}, token='wrong')").startswith("PermissionError [Errno 13]")
        assert package.raised(f"h5mirror.open(URL, {ca}, token='wrong')").startswith("PermissionError [Errno 13]")


def test_a_plugin_that_is_not_there_is_an_import_error(package):
    result = package.run("", H5MIRROR_PLUGIN_DIR="/nowhere")
    assert result.code != 0 and "ImportError: libhdf5_vfd_h5mirror.so is not in /nowhere" in result.err


def test_without_a_plugin_and_a_program_it_says_what_to_install(package):
    nowhere = {"H5MIRROR_PLUGIN_DIR": "", "PATH": "/nowhere", "HDF5_PLUGIN_PATH": "/nowhere"}
    opened = package.raised("h5mirror.open(URL)", **nowhere)
    assert opened.startswith("OSError HDF5 cannot load its driver h5mirror: ") and "H5MIRROR_PLUGIN_DIR" in opened, opened
    listed = package.raised("h5mirror.versions(URL)", **nowhere)
    assert listed.startswith("FileNotFoundError the program h5mirror is neither in this package nor in PATH"), listed


def test_an_hdf5_that_is_told_to_load_no_plugins_says_so(package):
    said = package.raised("h5mirror.open(URL)", HDF5_PLUGIN_PRELOAD="::")
    assert said.startswith("OSError HDF5 cannot load its driver h5mirror: ") and "no reason" not in said, said


def test_an_hdf5_without_plugins_is_an_import_error(bare_site):
    bare_site.python = paths.venv_python("3.8.0")
    if not bare_site.python.exists():
        pytest.skip("no environment with h5py 3.8.0; ./dev setup makes it")
    result = Package(bare_site).run("")
    assert result.code != 0 and re.search(r"ImportError: h5mirror needs HDF5 1\.14 or later, and h5py 3\.8\.0 runs on "
                                          r"HDF5 1\.12\.2", result.err), result.err


def test_the_words_of_a_state_are_those_of_the_c_header(package):
    header = (paths.SOURCE / "client_vfd/include/H5FDh5mirror.h").read_text()
    names = re.findall(r'case H5FD_H5MIRROR_\w+:\s+return "([^"]+)"', header)
    numbers = [int(each) for each in re.findall(r"H5FD_H5MIRROR_\w+ = (\d+)", header)]
    assert numbers == list(range(len(names)))
    assert package.py("from h5mirror._control import STATES; print(*STATES, sep='|')").strip() == "|".join(names)
