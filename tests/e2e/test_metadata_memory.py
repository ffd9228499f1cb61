"""metadata=memory: HDF5 makes the same file as with sec2, in fewer writes, and between two cuts the file's metadata is
that of the last one."""

import shutil
import signal
import subprocess

import pytest

from harness import hdf5, mounts, paths
from harness.process import wait_until
from harness.site import Site

MEMORY = "mode=off;metadata=memory"

# Each kind of metadata, grown, shrunk, deleted and made again, with raw data in between; the file shrinks too.
EVERYTHING = """
    random = np.random.default_rng(7)
    def fill(f, tag):
        for n in range(300):
            f.create_group(f"{tag}/g{n % 17}/h{n}").attrs["n"] = np.arange(n % 50)
        f[f"{tag}/contiguous"] = random.integers(0, 255, 300_000, dtype="u1")
        f.create_dataset(f"{tag}/chunked", (0,), maxshape=(None,), chunks=(1000,), compression="gzip")
        f[f"{tag}/strings"] = [f"text {n}" * (n % 9) for n in range(500)]
        for n in range(40):
            d = f[f"{tag}/chunked"]
            d.resize((d.shape[0] + 700,))
            d[-700:] = random.random(700)
    with h5py.File("NAME", "w", libver="LIBVER") as f:
        fill(f, "a")
        f.flush()
        fill(f, "b")
        del f["a"]
        f["b/strings"][3] = "other"
        f["b/chunked"].resize((100,))
        f.flush()
        fill(f, "c")
    with h5py.File("NAME", "r+", libver="LIBVER") as f:
        for n in range(200):
            del f[f"c/g{n % 17}/h{n}"]
        f["c/contiguous"][5:10] = 0
    with h5py.File("NAME", "r+", libver="LIBVER") as f:
        del f["c"]
        f["tail"] = np.zeros(100_000)
        f.flush()
        del f["tail"]
"""

GROUPS = """
    f = h5py.File("k.h5", "w", libver="{libver}")
    f["kept"] = np.arange(10_000)
    for n in range(500):
        f.create_group(f"first{{n}}").attrs["n"] = n
    f.attrs["note"] = "of the cut"
    f.attrs["stays"] = "in the same heap"
    f.flush()
    print("flushed", flush=True)
    while not os.path.exists("go"):
        time.sleep(0.01)
    for n in range(20_000):
        f.create_group(f"second{{n % 50}}/g{{n}}").attrs["n"] = n
        if n == 0:
            f.attrs.modify("note", "newer, and longer than it was")
    f["late"] = np.arange(100_000)
    f["kept"][:5000] = -1
    print("writing", flush=True)
    while not os.path.exists("finish"):
        time.sleep(0.01)
    f.close()
    print("closed", flush=True)
"""


def everything(name, libver) -> str:
    return EVERYTHING.replace("NAME", name).replace("LIBVER", libver)


@pytest.fixture
def local(tmp_path, h5py_version):
    """Programs alone, with no server, with either h5py."""
    site = Site(tmp_path, h5py=h5py_version)
    yield site
    site.close()


def h5diff(one, other) -> None:
    done = subprocess.run([paths.hdf5_tool("h5diff"), one, other], env=hdf5.plain_env(), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def until_writing(site, libver, config):
    """Runs GROUPS up to "writing". Returns the program, and the file as it was at the flush."""
    writer = site.start(site.script(GROUPS.format(libver=libver)), config=config)
    writer.wait_for_line("flushed")
    at_flush = site.directory / "at-flush.h5"
    shutil.copy(site.local("k.h5"), at_flush)
    site.local("go").touch()
    writer.wait_for_line("writing")
    return writer, at_flush


def without_data(file) -> bytes:
    """h5dump's output about a copy: the file may be locked."""
    copy = shutil.copy(file, file.with_name(f"copy-of-{file.name}"))
    return hdf5.dump(copy, "-A")


@pytest.mark.parametrize("libver", ["earliest", "v110"])
def test_files_are_those_of_sec2(local, libver):
    for name, config in (("plain.h5", None), ("memory.h5", MEMORY), ("small.h5", f"{MEMORY};metadata_memory=4KiB"),
                         ("log.h5", f"{MEMORY};under=log")):
        env = local.plain_env() if config is None else local.env(config)
        local.run(local.script(everything(name, libver)), env=env).ok()
        h5diff(local.local("plain.h5"), local.local(name))
        assert hdf5.dump(local.local(name)) == hdf5.dump(local.local("plain.h5"))
        assert local.local(name).stat().st_size == local.local("plain.h5").stat().st_size
        if libver == "earliest":  # The newer ones note the times of its objects.
            assert hdf5.digest(local.local(name)) == hdf5.digest(local.local("plain.h5")), name


def test_content_is_that_of_the_split_driver(local):
    local.run(local.script(everything("memory.h5", "earliest")), config=MEMORY).ok()
    split = everything("split", "earliest").replace("libver=", 'driver="split", libver=')
    local.run(local.script(split), env=local.plain_env()).ok()
    assert local.local("split-m.h5").exists() and not local.local("split").exists()
    assert hdf5.dump(local.local("split"), "--filedriver=split") == hdf5.dump(local.local("memory.h5"))


@pytest.mark.parametrize("libver", ["earliest", "v110"])
def test_between_two_cuts_the_files_metadata_is_that_of_the_last_one(local, libver):
    writer, at_flush = until_writing(local, libver, MEMORY)
    assert without_data(local.local("k.h5")) == without_data(at_flush)
    writer.signal(signal.SIGKILL)
    writer.wait()
    local.run(local.script("""
        with h5py.File("k.h5", "r+") as f:
            assert len(f) == 501 and "late" not in f, list(f)[:10]
            assert (f["kept"][:5000] == -1).all() and f["first499"].attrs["n"] == 499
            assert f.attrs["note"] == "of the cut"
            f["again"] = np.arange(1000)
    """), env=local.plain_env()).ok()
    hdf5.assert_opens(local.local("k.h5"))


def test_a_writer_that_goes_on_puts_all_at_its_close(local):
    writer, _ = until_writing(local, "earliest", MEMORY)
    local.local("finish").touch()
    writer.wait().ok()
    local.run(local.script("""
        with h5py.File("k.h5") as f:
            assert len(f) == 552 and len(f["second7"]) == 400
            assert f["second7/g19957"].attrs["n"] == 19957 and f["late"][-1] == 99_999
    """), env=local.plain_env()).ok()


def test_metadata_beyond_the_bound_goes_to_the_file(local):
    writer, at_flush = until_writing(local, "earliest", f"{MEMORY};metadata_memory=4KiB")
    held_end = at_flush.stat().st_size + 800_000 + 100_000  # "late", and some.
    assert local.local("k.h5").stat().st_size > held_end
    local.local("finish").touch()
    writer.wait().ok()
    hdf5.assert_opens(local.local("k.h5"))


def test_metadata_takes_few_writes(local):
    """Counted in the kernel: write calls of the process so far."""
    counted = """
        def calls():
            return next(int(line.split()[1]) for line in open("/proc/self/io") if line.startswith("syscw"))
        before = calls()
        with h5py.File("{name}.h5", "w", libver="{libver}") as f:
            for n in range(10_000):
                f.create_group(f"g{{n}}")
        print(calls() - before)
    """
    for libver, factor in (("earliest", 100), ("v110", 20)):
        plainly, held = (int(local.py(counted.format(name=name, libver=libver), config=config).out)
                         for name, config in (("plain", "mode=off"), ("held", MEMORY)))
        print(f"10,000 groups, {libver}: {plainly} writes, {held} with metadata=memory")
        assert held * factor < plainly


def test_small_raw_data_takes_few_writes_too(local):
    """For a file that no server gets."""
    counted = """
        def calls():
            return next(int(line.split()[1]) for line in open("/proc/self/io") if line.startswith("syscw"))
        before = calls()
        with h5py.File("{name}.h5", "w", libver="earliest") as f:
            for n in range(2000):
                f[f"d{n}"] = np.full(512, n)
                f[f"d{n}"].attrs["n"] = n
        print(calls() - before)
        with h5py.File("{name}.h5", "r") as f:
            assert all((f[f"d{n}"][()] == n).all() and f[f"d{n}"].attrs["n"] == n for n in range(2000))
    """
    plainly, held = (int(local.py(counted.replace("{name}", name), config=config).out)
                     for name, config in (("plain", "mode=off"), ("held", MEMORY)))
    print(f"2,000 datasets of 4 KiB: {plainly} writes, {held} with metadata=memory")
    assert held * 4 < plainly


@pytest.mark.parametrize("mode", ["r", "r+", "a"])
def test_an_open_that_changes_nothing_leaves_bytes_and_times(local, mode):
    local.run(local.script(everything("u.h5", "v110")), env=local.plain_env()).ok()
    before, stat = hdf5.digest(local.local("u.h5")), local.local("u.h5").stat()
    local.py(f"""
        with h5py.File("u.h5", "{mode}") as f:
            f.visit(lambda name: None)
            f.flush()
    """, config=MEMORY)
    after = local.local("u.h5").stat()
    assert (after.st_mtime_ns, after.st_ctime_ns) == (stat.st_mtime_ns, stat.st_ctime_ns)
    assert hdf5.digest(local.local("u.h5")) == before


# Prints the result of each open, and the values seen through it.
OPENERS = """
    def opened(mode):
        try:
            return h5py.File("t.h5", mode)
        except OSError as error:
            print(mode, type(error).__name__, error.errno)
    def look(f):
        print(f.mode, len(f), f.attrs["n"], f["d"][:3] if "d" in f else "", f["d"].attrs["text"] if "d" in f else "")
    with h5py.File("t.h5", "w") as f:
        f.attrs["n"] = 0
    first = opened("r+")
    second, third = opened("r"), opened("r+")
    first.attrs["n"] = 1
    first["d"] = np.arange(1000)
    first["d"].attrs["text"] = ["of variable", "length"]
    for n in range(300): first.create_group(f"g{n}")
    for each in (first, second, third): look(each)
    first.flush()
    third["d"][:] = 7
    third["d"].attrs["text"] = ["newer"]
    del third["g7"]
    third.close()
    look(second)
    first.close()
    look(second)
    opened("w")
    second.close()
    reader = opened("r")
    opened("r+")
    look(reader)
    look(opened("r"))
"""


def test_two_openers_in_one_program_see_what_they_see_with_sec2(local):
    with_sec2 = local.run(local.script(OPENERS), env=local.plain_env()).ok()
    plain = hdf5.digest(local.local("t.h5"))
    assert local.py(OPENERS, config=MEMORY).out == with_sec2.out
    assert "OSError" in with_sec2.out and "301 " in with_sec2.out
    assert hdf5.digest(local.local("t.h5")) == plain


def test_an_opener_in_another_program_is_locked_out_or_sees_the_last_cut(local):
    """With locks: as with sec2. Without locks it sees no half of a change."""
    reader = """
        try:
            with h5py.File("k.h5", "{mode}") as f:
                print(len(f), f.attrs["note"], f["kept"][-1])
        except OSError as error:
            print(type(error).__name__, error.errno)
    """
    look, change = (local.script(reader.format(mode=mode)) for mode in ("r", "r+"))
    others = (local.plain_env(), local.env(MEMORY))
    writer, _ = until_writing(local, "earliest", MEMORY)
    for env in others:
        for script in (look, change):
            assert local.run(script, env=env).ok().out.strip() == "BlockingIOError 11"
        unlocked = local.run(look, env={**env, "HDF5_USE_FILE_LOCKING": "FALSE"}).ok()
        assert unlocked.out.strip() == "501 of the cut 9999"
    local.local("finish").touch()
    writer.wait().ok()
    held = local.start(local.script("""
        with h5py.File("k.h5", "r") as f:
            print("open", flush=True)
            while not os.path.exists("done"):
                time.sleep(0.01)
            print(len(f), flush=True)
    """), config=MEMORY)
    held.wait_for_line("open")
    for env in others:
        assert local.run(look, env=env).ok().out.strip() == "552 newer, and longer than it was 9999"
        assert local.run(change, env=env).ok().out.strip() == "BlockingIOError 11"
    local.local("done").touch()
    assert held.wait().ok().out.split() == ["open", "552"]


def test_a_path_through_a_symlinked_directory_is_the_same_file(local):
    local.local("real/below").mkdir(parents=True)
    local.local("link").symlink_to("real")
    local.local("plain").mkdir()
    program = """
        with h5py.File("{one}/f.h5", "w") as f:
            f["d"] = np.arange(1000)
            for n in range(10_000):
                f.create_group(f"g{{n}}")
            if {held}: assert os.path.getsize("{one}/f.h5") < 20_000, "nothing is held"
            with h5py.File("{other}/f.h5", "r+") as again:
                assert len(again) == 10_001
                again.attrs["text"] = "by the other path"
            assert f.attrs["text"] == "by the other path"
    """
    local.run(local.script(program.format(one="plain", other="plain", held=False)), env=local.plain_env()).ok()
    for one, other, rules in (("link", "real/below/..", ""), ("real", "link", f";root={local.work}/link"),
                              ("link", "real", f";root={local.work}/real;include=f.h5")):
        local.py(program.format(one=one, other=other, held=True), config=MEMORY + rules)
        assert hdf5.digest(local.local("real/f.h5")) == hdf5.digest(local.local("plain/f.h5"))
        local.local("real/f.h5").unlink()
    assert local.local("link").is_symlink()


EMPTY = """
    try:
        h5py.File("e.h5", "{mode}").close()
        print("opened")
    except OSError as error:
        print(type(error).__name__, error.errno, error)
"""


def test_an_empty_file_is_to_a_reader_none_and_to_a_writer_a_new_one(local):
    """As with sec2."""
    for mode, size in (("r", 0), ("r+", 800), ("a", 800)):
        results = []
        for env in (local.plain_env(), local.env(MEMORY)):
            local.local("e.h5").write_bytes(b"")
            before = local.local("e.h5").stat()
            said = local.run(local.script(EMPTY.format(mode=mode)), env=env).ok().out
            after = local.local("e.h5").stat()
            assert after.st_size == size and (after.st_mtime_ns == before.st_mtime_ns) == (size == 0), said
            results.append((said, local.local("e.h5").read_bytes()))
        assert results[0] == results[1] and (size > 0) == (results[0][0] == "opened\n"), results
    assert [path.name for path in local.work.iterdir()] == ["e.h5"]


def test_files_that_the_rules_leave_out_are_written_at_once(local):
    program = """
        f = h5py.File("{name}", "w")
        for n in range(10_000):
            f.create_group(f"g{{n}}")
        print(os.path.getsize("{name}"))
        os._exit(0)
    """
    for name, config, held in (("a.h5", MEMORY, True), ("b.h5", f"{MEMORY};exclude=b*", False),
                               ("c.h5", f"{MEMORY};root=/elsewhere", False), ("d.h5", "mode=off", False)):
        size = int(local.py(program.format(name=name), config=config).out)
        assert (size == 0) == held, (name, size)


def test_a_child_that_goes_on_alone_has_what_the_parent_held(local):
    """A daemon: it forks with the file open, and the parent ends."""
    local.py("""
        f = h5py.File("d.h5", "w")
        for n in range(5000):
            f.create_group(f"g{n % 10}/h{n}")
        if os.fork() != 0:
            while not os.path.exists("apart"):
                time.sleep(0.01)
            os._exit(0)
        os.setsid()
        open("apart", "w").close()
        for n in range(5000, 6000):
            f.create_group(f"g{n % 10}/h{n}")
        f.close()
        open("done", "w").close()
    """, config=MEMORY)
    wait_until(lambda: local.local("done").exists(), "the child did not end")
    local.run(local.script("""
        with h5py.File("d.h5") as f:
            assert sum(len(f[name]) for name in f) == 6000
    """), env=local.plain_env()).ok()


def test_what_a_child_writes_into_the_same_file_stays(local):
    """Between its parent's earlier and later writes, with room that was taken before the fork."""
    local.py("""
        f = h5py.File("s.h5", "w", libver="v110")
        f.flush()
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        space = h5py.h5s.create_simple((256,))
        d = [h5py.Dataset(h5py.h5d.create(f.id, b"d%d" % n, h5py.h5t.NATIVE_INT32, space, plist)) for n in range(6)]
        d[0][...] = 1000
        child = os.fork()
        if child == 0:
            for n in (1, 4):
                d[n][...] = n
                d[n].flush()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        for n in (2, 3, 5):
            d[n][...] = n
            d[n].flush()
        f.close()
    """, config=MEMORY)
    local.run(local.script("""
        with h5py.File("s.h5") as f:
            assert [set(f[f"d{n}"][()]) for n in range(6)] == [{1000}, {1}, {2}, {3}, {4}, {5}]
    """), env=local.plain_env()).ok()


@pytest.mark.parametrize("end", ["os._exit(0)", "sys.exit(0)"])
def test_a_child_that_ends_takes_nothing_from_the_parent(local, end):
    local.py(f"""
        f = h5py.File("p.h5", "w")
        for n in range(5000):
            f.create_group(f"g{{n % 10}}/h{{n}}")
        f.flush()
        f["g1/h1"].attrs["held"] = 5
        child = os.fork()
        if child == 0:
            assert len(f["g1"]) == 500
            {end}
        for n in range(5000, 10_000):
            f.create_group(f"g{{n % 10}}/h{{n}}")
        assert os.waitpid(child, 0)[1] == 0
        f.close()
    """, config=MEMORY)
    local.run(local.script("""
        with h5py.File("p.h5") as f:
            assert sum(len(f[name]) for name in f) == 10_000 and f["g1/h1"].attrs["held"] == 5
    """), env=local.plain_env()).ok()


def test_a_full_disk_fails_the_flush_and_leaves_the_last_cut(local):
    with mounts.tmpfs(local.work, "2m") as resize:
        writer = local.start(local.script("""
            f = h5py.File("full.h5", "w")
            f["kept"] = np.arange(10_000)
            f.flush()
            for n in range(20_000):
                f.create_group(f"g{n}")
            try:
                f.flush()
            except Exception as error:
                print("failed", error, flush=True)
            while not os.path.exists("go"):
                time.sleep(0.01)
            f.flush()
            f.close()
        """), config=MEMORY)
        writer.wait_for_line("failed")
        left = local.directory / "left.h5"
        shutil.copy(local.local("full.h5"), left)
        assert b"kept" in hdf5.dump(left, "-A") and b"g0" not in hdf5.dump(left, "-A")
        resize("50m")
        local.local("go").touch()
        writer.wait().ok()
        local.run(local.script("""
            with h5py.File("full.h5") as f:
                assert len(f) == 20_001 and f["kept"][-1] == 9999
        """), env=local.plain_env()).ok()


def test_swmr_readers_see_what_a_writer_flushes(local):
    writer = local.start(local.script("""
        f = h5py.File("s.h5", "w", libver="latest")
        d = f.create_dataset("d", (0,), maxshape=(None,), chunks=(100,), dtype="i8")
        f.swmr_mode = True
        for n in range(1, 21):
            d.resize((n * 1000,))
            d[-1000:] = n
            d.flush()
        print("written", flush=True)
        time.sleep(100)
    """), config=MEMORY)
    writer.wait_for_line("written")
    local.run(local.script("""
        with h5py.File("s.h5", "r", libver="latest", swmr=True) as f:
            assert f["d"].shape == (20_000,) and (f["d"][-1000:] == 20).all()
    """), config="mode=off").ok()


# With a server.

@pytest.fixture
def held(both):
    """The site, and programs whose metadata is held."""
    both.memory = both.config(metadata="memory")
    return both


@pytest.mark.parametrize("libver", ["earliest", "v110"])
def test_head_and_local_file_are_the_same(held, libver):
    held.run(held.script(everything("m.h5", libver)), config=held.memory).ok()
    held.assert_mirrored("m.h5")
    versions = held.versions("m.h5")
    before = held.local("m.h5").stat().st_mtime_ns
    for mode in ("r", "r+"):
        held.py(f'h5py.File("m.h5", "{mode}").close()', config=held.memory)
    assert held.versions("m.h5") == versions and held.local("m.h5").stat().st_mtime_ns == before
    held.keep("m.h5")


def test_a_mirrored_files_bytes_do_not_depend_on_it(held):
    """Neither the pages of the newest version nor those of earlier ones."""
    for name, config in (("file.h5", held.config()), ("memory.h5", held.memory)):
        held.run(held.script(everything(name, "earliest")), config=config).ok()
        held.assert_mirrored(name)
    assert held.versions("file.h5") == held.versions("memory.h5") == [1, 2, 3]
    for version in (1, 2, 3):
        one, other = held.export("file.h5", version), held.export("memory.h5", version)
        assert hdf5.digest(one) == hdf5.digest(other)


def test_an_empty_file_reaches_a_server_with_its_first_writer(held):
    held.local("e.h5").touch()
    assert "file signature not found" in held.py(EMPTY.format(mode="r"), config=held.memory).out
    assert held.local("e.h5").stat().st_size == 0 and not held.exists("e.h5")
    assert held.py(EMPTY.format(mode="r+"), config=held.memory).out == "opened\n"
    held.assert_mirrored("e.h5")


def test_a_mirrored_file_behind_a_symlinked_directory_has_one_name(held):
    held.local("real").mkdir()
    held.local("link").symlink_to("real")
    for path in ("link/f.h5", "real/f.h5"):
        held.py(f"""
            with h5py.File("{path}", "a") as f:
                for n in range(2000):
                    f.create_group(f"{path}/g{{n}}")
        """, config=held.memory)
    held.assert_mirrored("real/f.h5")
    assert held.versions("real/f.h5") == [1, 2] and not held.exists("link/f.h5")


def test_bounded_memory_and_a_server(held):
    held.run(held.script(everything("m.h5", "earliest")),
             config=held.memory + ";metadata_memory=4KiB").ok()
    held.assert_mirrored("m.h5")


def test_a_killed_writers_last_cut_is_on_the_server_and_in_the_local_file(held):
    writer, at_flush = until_writing(held, "earliest", held.memory)
    held.wait_for_cut("k.h5")
    writer.signal(signal.SIGKILL)
    writer.wait()
    held.wait_for_no_lease("k.h5")
    held.settle("k.h5")
    assert hdf5.dump(held.head("k.h5")) == hdf5.dump(at_flush)
    assert without_data(held.local("k.h5")) == without_data(at_flush)
    held.cli("recover", held.local("k.h5")).ok()
    held.assert_mirrored("k.h5")
    assert hdf5.dump(held.local("k.h5")) == hdf5.dump(at_flush)


@pytest.mark.parametrize("seed", range(4))
def test_a_writer_that_is_killed_anywhere_can_be_recovered(site, seed):
    """Also in the middle of a put, where the local file alone may be broken."""
    memory = site.config(metadata="memory")
    writer = site.start(site.script("""
        f = h5py.File("k.h5", "w")
        for n in range(100_000):
            for m in range(200):
                f.create_group(f"g{n}/h{m}").attrs["m"] = m
            f.attrs["cut"] = n
            f.flush()
            print("cut", n, flush=True)
    """), config=memory)
    writer.wait_for_line(f"cut {3 + 5 * seed}\n")
    writer.signal(signal.SIGKILL)
    writer.wait()
    site.wait_for_no_lease("k.h5")
    site.settle("k.h5")
    site.cli("recover", site.local("k.h5")).ok()
    site.assert_mirrored("k.h5")
    site.run(site.script("""
        with h5py.File("k.h5") as f:
            assert len(f) == f.attrs["cut"] + 1 and all(len(f[name]) == 200 for name in f)
    """), env=site.plain_env()).ok()


def test_a_mirrored_file_is_held_over_a_fork_too(held):
    held.py("""
        f = h5py.File("f.h5", "w")
        for n in range(5000):
            f.create_group(f"g{n % 10}/h{n}")
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(0 if len(f["g1"]) >= 500 else 1)
            assert os.waitpid(child, 0)[1] == 0
            f.create_group(f"after{child}")
        f.flush()
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        f.create_group("last")
        f.close()
    """, config=held.memory)
    held.assert_mirrored("f.h5")
