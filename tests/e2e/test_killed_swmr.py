"""Killed SWMR writers: all bytes of their last cut, and the later ones in the file, can be read, and writing can go on.

Such a writer leaves an earlier end of file in the superblock, and HDF5 cuts the file off there when it closes it."""

import os
import shutil
import subprocess

import pytest

from harness import hdf5, paths
from harness.site import Site

MAKE = """
    NAME = sys.argv[1]
    def make(f):
        f.create_dataset("d", (0, 500), maxshape=(None, 500), chunks=(4, 500), dtype="i4")
"""
START = """
    f = h5py.File(NAME, "w", libver="latest")
    make(f)
    f.swmr_mode = True
"""
OPEN = """
    with h5py.File(NAME, "w", libver="latest") as f: make(f)
    fapl = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    fapl.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    f = h5py.File(h5py.h5f.open(NAME.encode(), h5py.h5f.ACC_RDWR | h5py.h5f.ACC_SWMR_WRITE, fapl=fapl))
"""
ROWS = 20
# No flush of the file: that would set its end.
WRITE = """
    d = f["d"]
    for n in range({rows}):
        d.resize(n + 1, axis=0)
        d[n] = n
        d.flush()
    print("ready", flush=True)
    sys.stdin.readline()
    f.close()
    print("closed", flush=True)
"""
READ = """
    with h5py.File(sys.argv[1]) as f:
        rows = f["d"].shape[0]
        assert (f["d"][:] == np.arange(rows)[:, None]).all()
        print(rows)
"""
READ_SWMR = READ.replace("sys.argv[1]", "sys.argv[1], 'r', swmr=True")
# Reads all, and writes more.
CHANGE = """
    with h5py.File(sys.argv[1], "r+") as f:
        d = f["d"]
        rows = d.shape[0]
        assert (d[:] == np.arange(rows)[:, None]).all()
        d.resize(rows + 5, axis=0)
        for n in range(rows, rows + 5): d[n] = n
        f.require_dataset("more", (3000,), "i8")[...] = rows
        print(rows)
"""
UNTOUCHED = """
    with h5py.File(sys.argv[1], "r+") as f: print(f["d"].shape[0])
"""


class Killed:
    """A writer, and the actions on its file."""

    def __init__(self, site, name):
        self.site, self.name, self.writer = site, name + ".h5", None
        self.local = site.local(self.name)

    def write(self, script, *, config=None, env=None):
        command = [*self.site.script(MAKE + script + WRITE.format(rows=ROWS)), self.name]
        self.writer = self.site.start(command, talks=True, env=env, config=config or self.site.config(ack="applied"))
        assert self.writer.line() == "ready"

    def kill(self):
        self.writer.kill()

    def die(self, script):
        """A writer that is killed, and that the server has given up."""
        self.write(script)
        self.kill()
        self.site.wait_for_no_lease(self.name)

    def stock(self, script, file=None):
        return self.site.run([*self.site.script(script), file or self.name], env=self.site.plain_env())

    def plugin(self, script, config=None):
        return self.site.run([*self.site.script(script), self.name], config=config)

    def is_whole(self, file=None):
        """Stock HDF5 opens it, and writes more."""
        assert self.stock(READ, file).ok().out == f"{ROWS}\n"
        assert self.stock(CHANGE, file).ok().out == f"{ROWS}\n"
        assert self.stock(READ, file).ok().out == f"{ROWS + 5}\n"


@pytest.fixture
def killed(request, shared_site, h5py_version):
    shared_site.python = paths.venv_python(h5py_version)
    yield Killed(shared_site, request.node.name.replace("[", "-").strip("]"))
    for process in shared_site.beside:
        process.kill()
    shared_site.beside.clear()


BEHIND_A_USER_BLOCK = START.replace('libver="latest"', 'libver="latest", userblock_size=1024')
each_kind = pytest.mark.parametrize("kind", [START, OPEN], ids=["start", "open"])
each_place = pytest.mark.parametrize("kind", [START, OPEN, BEHIND_A_USER_BLOCK], ids=["start", "open", "behind"])


@each_place
def test_an_export_is_a_file_as_any(killed, kind):
    site = killed.site
    killed.die(kind)
    version = site.versions(killed.name)[-1]
    out = site.directory / f"{killed.name}.out"
    done = site.cli("export", f"{killed.name}@{version}", out).ok()
    assert "its superblock is that of a closed file" in done.err
    piped = site.directory / f"{killed.name}.piped"
    site.run(["sh", "-c", f"{paths.BIN}/h5mirror --server {site.server.address} export {killed.name}@{version} - "
              f"> {piped}"], env=site.plain_env()).ok()
    assert hdf5.digest(piped) == hdf5.digest(out)
    killed.is_whole(out)
    again = site.json("export", "--force", f"{killed.name}@{version}", out)
    assert again["superblock_closed"] is True
    assert site.json("export", "bystander.h5@1", site.directory / f"{killed.name}.b")["superblock_closed"] is False


@each_kind
def test_a_recovered_file_goes_on_mirrored(killed, kind):
    site = killed.site
    killed.die(kind)
    done = site.cli("recover", killed.local).ok()
    assert "the superblock of a closed file" in done.err and "lacks" not in done.err, done.err
    site.assert_mirrored(killed.name)
    assert killed.stock(READ).ok().out == f"{ROWS}\n"
    changed = killed.plugin(CHANGE).ok()
    assert changed.out == f"{ROWS}\n" and "diverged" not in changed.err, changed.err
    assert site.record(killed.name)["state"] == "clean"
    site.assert_mirrored(killed.name)
    assert killed.stock(READ).ok().out == f"{ROWS + 5}\n"


def is_closed_on_both_sides(killed, result):
    """Stock HDF5 opens local file and head for writing, and they are the newest version."""
    site = killed.site
    site.assert_mirrored(killed.name)
    record = site.record(killed.name)
    assert record["state"] == "clean" and record["version"] == result["version"] == site.versions(killed.name)[-1]
    for file in (killed.local, site.head(killed.name)):
        copy = site.directory / f"{killed.name}.copy"
        shutil.copyfile(file, copy)
        killed.is_whole(copy)
    assert site.json("resync", "--from", "remote", killed.local)["files"][0]["action"] == "unchanged"


@each_kind
def test_a_file_that_was_made_like_the_server_s_goes_on_mirrored(killed, kind):
    """Both have the superblock of a closed file."""
    site = killed.site
    killed.die(kind)
    result = site.json("resync", "--from", "remote", killed.local)["files"][0]
    assert result["action"] == "equal" and result["superblock_closed"] is True
    is_closed_on_both_sides(killed, result)
    changed = killed.plugin(CHANGE).ok()
    assert changed.out == f"{ROWS}\n" and "diverged" not in changed.err, changed.err
    site.assert_mirrored(killed.name)
    assert killed.stock(READ).ok().out == f"{ROWS + 5}\n"


@each_place
def test_one_that_differs_becomes_the_server_s_as_of_its_close(killed, kind):
    """The local file is replaced, by a copy with the superblock of a closed file."""
    site = killed.site
    killed.die(kind)
    with open(killed.local, "r+b") as file:
        file.seek(-3, os.SEEK_END)
        file.write(b"???")
    result = site.json("resync", "--from", "remote", killed.local)["files"][0]
    assert result["action"] == "fetched" and result["superblock_closed"] is True
    is_closed_on_both_sides(killed, result)


@each_kind
def test_one_that_is_level_already_is_mended_too(killed, kind):
    """An undecided resync leaves the local file alone, and its record says that both sides are the same."""
    site = killed.site
    killed.die(kind)
    left = hdf5.digest(killed.local)
    assert site.json("resync", killed.local)["files"][0]["action"] == "equal"
    assert site.json("resync", "--from", "remote", "--dry-run", killed.local)["files"][0]["action"] == "equal"
    assert hdf5.digest(killed.local) == left
    is_closed_on_both_sides(killed, site.json("resync", "--from", "remote", killed.local)["files"][0])


@each_kind
def test_what_mended_the_local_file_is_sent(killed, kind):
    """--from local sends the file as it is; --any, since the record says that its writer did not close it."""
    site = killed.site
    killed.die(kind)
    killed.plugin(UNTOUCHED, "mode=off").ok()
    result = site.json("resync", "--from", "local", "--any", killed.local)["files"][0]
    assert result["action"] == "sent"
    is_closed_on_both_sides(killed, result)


def test_a_file_that_a_stock_swmr_writer_has_open_is_not_mended_under_it(killed):
    """The writer holds no lock, and its flags must stay for later opens."""
    site = killed.site
    killed.write(START)
    killed.kill()
    site.wait_for_no_lease(killed.name)
    left = hdf5.digest(killed.local)
    with open(killed.local, "r+b"):
        refused = site.cli("resync", "--from", "remote", killed.local)
    assert refused.code != 0 and "somebody has it open" in refused.err, refused.describe()
    assert hdf5.digest(killed.local) == left
    assert site.json("resync", "--from", "remote", killed.local)["files"][0]["superblock_closed"] is True


@each_kind
def test_one_that_was_recovered_by_who_may_only_read_goes_on_mirrored(tmp_path, h5py_version, kind):
    """The bytes that the server lacks go with the next change."""
    tokens = tmp_path / "tokens"

    def token(name, rights):
        command = [paths.BIN / "h5mirrord", "token", "add", name, "--rights", rights, "--tokens-file", tokens]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def use(token):
        where = tmp_path / "home" / ".config" / "h5mirror" / "token"
        where.parent.mkdir(parents=True, exist_ok=True)
        where.touch(mode=0o600)
        where.write_text(token)

    reads, writes = token("reads", "read"), token("writes", "read,write")
    site = Site(tmp_path, options={"tokens_file": tokens}, h5py=h5py_version)
    try:
        use(writes)
        site.server.start()
        killed = Killed(site, "run")
        killed.die(kind)
        use(reads)
        done = site.cli("recover", killed.local).ok()
        assert "the server's file lacks the closed superblock" in done.err, done.err
        assert killed.stock(READ).ok().out == f"{ROWS}\n"
        use(writes)
        changed = killed.plugin(CHANGE).ok()
        assert changed.out == f"{ROWS}\n" and "diverged" not in changed.err, changed.err
        site.assert_mirrored(killed.name)
        assert killed.stock(READ).ok().out == f"{ROWS + 5}\n"
    finally:
        site.close()


@each_place
@pytest.mark.parametrize("mode", ["mirror", "off", "memory"])
def test_an_open_through_the_driver_loses_nothing(killed, kind, mode):
    config = {"mirror": killed.site.config(), "off": "mode=off",
              "memory": killed.site.config(mode="off", metadata="memory")}[mode]
    killed.write(kind, config=config)
    killed.kill()
    opened = killed.plugin(UNTOUCHED, config).ok()
    assert opened.out == f"{ROWS}\n" and "was left by an SWMR writer that was killed" in opened.err
    assert killed.plugin(CHANGE, config).ok().out == f"{ROWS}\n"
    assert killed.stock(READ).ok().out == f"{ROWS + 5}\n"


@each_kind
def test_one_that_stock_hdf5_wrote_is_opened_through_the_driver(killed, kind):
    killed.write(kind, env=killed.site.plain_env())
    killed.kill()
    assert "SWMR" in killed.stock(UNTOUCHED).err, "HDF5 itself gives it up"
    assert killed.plugin(CHANGE, "mode=off").ok().out == f"{ROWS}\n"
    assert killed.stock(READ).ok().out == f"{ROWS + 5}\n"


def test_one_is_opened_with_the_versions_beside_it(killed):
    killed.write(START, env=killed.site.plain_env())
    killed.kill()
    embedded = "server=embedded"
    assert killed.plugin(CHANGE, embedded).ok().out == f"{ROWS}\n"
    assert killed.stock(READ).ok().out == f"{ROWS + 5}\n"


@each_kind
@pytest.mark.parametrize("config", [None, "mode=off", "server=embedded"], ids=["mirror", "off", "embedded"])
def test_a_writer_that_is_alive_is_left_alone(killed, kind, config):
    """No other program may write its file; SWMR readers may read it."""
    killed.write(kind, config=None if config == "server=embedded" else config)
    refused = killed.plugin(CHANGE, config)
    assert refused.code != 0 and "Somebody has the file open" in refused.err, refused.err
    assert "SWMR" in killed.stock(CHANGE).err
    assert killed.stock(READ_SWMR).ok().out == f"{ROWS}\n"
    assert killed.writer.ask("close") == "closed"
    assert killed.stock(READ).ok().out == f"{ROWS}\n"


def test_it_can_be_written_for_swmr_again(killed):
    killed.write(OPEN, config="mode=off")
    killed.kill()
    again = OPEN.split("\n", 2)[2] + """
    rows = f["d"].shape[0]
    assert (f["d"][:] == np.arange(rows)[:, None]).all()
    f.close()
    print(rows)
    """
    assert killed.plugin(MAKE + again, "mode=off").ok().out == f"{ROWS}\n"
    assert killed.stock(READ).ok().out == f"{ROWS}\n"


def test_what_was_appended_to_a_sound_file_is_treated_as_hdf5_does(killed):
    def end(run):
        killed.stock("""
            with h5py.File(sys.argv[1], "w", libver="latest") as f: f["d"] = np.arange(20)[:, None] * np.ones(500, "i4")
        """).ok()
        with open(killed.local, "ab") as file:
            file.write(b"appended" * 100)
        before = killed.local.stat().st_size
        assert run().ok().out == "20\n"
        return before - killed.local.stat().st_size

    assert end(lambda: killed.plugin(UNTOUCHED, "mode=off")) == end(lambda: killed.stock(UNTOUCHED)) == 800
