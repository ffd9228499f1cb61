"""Many files, much data, many names: within the set limits."""

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from harness import paths
from harness.site import Site, count_open_files

KIB_PER_MIB = 1024
MEMORY_MAX_MIB = 128
WINDOW_MIB = 64


def test_200_files_open_at_once(both):
    both.py("""
        files = [h5py.File(f"f{n:03}.h5", "w") for n in range(200)]
        for turn in range(3):
            for n, f in enumerate(files):
                f[f"x{turn}"] = np.full(2000, n + turn)
                f.flush()
        for f in files:
            f.close()
    """, timeout=110)
    both.settle("f199.h5")
    for n in range(200):
        name = f"f{n:03}.h5"
        both.settle(name)
        assert both.local(name).read_bytes() == both.head(name).read_bytes(), name
    assert both.json("ls")["complete"] and len(both.json("ls")["files"]) == 201
    print(f"the server has {count_open_files(both.server.pid)} open descriptors afterwards")


def test_two_programs_with_100_files_each(site):
    script = """
        files = [h5py.File(f"p{which}-{{n}}.h5", "w") for n in range(100)]
        for n, f in enumerate(files):
            f["x"] = np.full(5000, n)
        for f in files:
            f.close()
    """
    programs = [site.start(site.script(script.format(which=which))) for which in range(2)]
    for program in programs:
        program.wait(100).ok()
    for which in range(2):
        for n in range(100):
            name = f"p{which}-{n}.h5"
            site.settle(name)
            assert site.local(name).read_bytes() == site.head(name).read_bytes(), name


@pytest.mark.limit(600)
def test_16_sessions_overwrite_256_mib_each_within_memory(tmp_path):
    """16 programs, memory_max=128 MiB: the server stays below it + 10 %, each client below window + 64 MiB over its own."""
    mib, per_program = 256, 1
    site = Site(tmp_path, options={"memory_max": f"{MEMORY_MAX_MIB}MiB"})
    try:
        site.server.start()
        names = [f"big{n:02}.h5" for n in range(16)]
        program = [site.python, paths.PROGRAMS / "overwrite.py"]
        alone = site.run([*program, 16, *(f"alone{n}.h5" for n in range(per_program))], env=site.plain_env()).ok()
        for path in site.work.glob("alone*"):
            path.unlink()
        started = time.monotonic()
        clients = [site.start([*program, mib, *names[first:first + per_program]],
                              config=site.config(window=f"{WINDOW_MIB}MiB", timeout="120s"))
                   for first in range(0, len(names), per_program)]
        results = [client.wait(400).ok() for client in clients]
        written = time.monotonic() - started
        for name in names:
            site.settle(name, timeout=240)
        settled = time.monotonic() - started
        server_kb = site.server.peak_kb()
        own_kb = int(alone.out.split()[-1])
        client_kb = [int(result.out.split()[-1]) - own_kb for result in results]
        print(f"server peak {server_kb / KIB_PER_MIB:.0f} MiB of {MEMORY_MAX_MIB}; clients over their own "
              f"{own_kb / KIB_PER_MIB:.0f} MiB: {[f'{kb / KIB_PER_MIB:.0f} MiB' for kb in client_kb]}; "
              f"programs {written:.0f} s, settled {settled:.0f} s")
        for name in names:
            assert site.record(name)["state"] == "clean", site.record(name)
            assert site.versions(name) == [1, 2]
            site.assert_mirrored(name)
        assert server_kb < MEMORY_MAX_MIB * 1.1 * KIB_PER_MIB
        assert all(kb < (WINDOW_MIB + 64) * KIB_PER_MIB for kb in client_kb)
        exported = site.export(names[3], 1)
        plain = site.work / names[3]
        assert exported.stat().st_size > mib << 20 and exported.read_bytes() != plain.read_bytes()
    finally:
        site.close()
        shutil.rmtree(tmp_path)


def clone_mirrored_file(root, name, directory, count):
    """Makes `count` mirrored files as docs/reference/format.md lays them out, by hard links to one real file's history."""
    (root / directory).mkdir()
    head, index = root / name, root / f"{name}.h5m" / "index"
    per_inode = 30_000  # ext4 allows 65,000 names of a file.
    for n in range(count):
        if n % per_inode == 0:
            first_head, first_index = root / f"clone{n}.bytes", root / f"clone{n}.index"
            shutil.copyfile(head, first_head)
            shutil.copyfile(index, first_index)
        stem = f"{root}/{directory}/f{n:06}.h5"
        os.link(first_head, stem)
        os.mkdir(stem + ".h5m", 0o700)
        os.link(first_index, stem + ".h5m/index")
    for path in root.glob("clone*"):
        path.unlink()


@pytest.mark.limit(300)
def test_100_000_files_in_one_directory():
    """`ls` pages through them; names of 100,000 files come whole and in order."""
    count = 100_000
    # 300,000 links take minutes on a busy disk; nothing here is about the disk.
    directory = Path(tempfile.mkdtemp(prefix="h5mirror-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    site = Site(directory)
    try:
        site.server.start()
        site.py("h5py.File('one.h5', 'w')['x'] = 1")
        site.settle("one.h5")
        site.server.stop()
        clone_mirrored_file(site.root, "one.h5", "many", count)
        site.server.start()
        started = time.monotonic()
        first = site.json("ls", "many", "-n", "1000")
        first_s = time.monotonic() - started
        started = time.monotonic()
        everything = site.json("ls", "many", timeout=120)
        all_s = time.monotonic() - started
        print(f"first page of 1,000 in {first_s:.2f} s; all 100,000 in {all_s:.2f} s, "
              f"{all_s / (count / 10_000):.2f} s a page of 10,000")
        assert [row["name"] for row in everything["files"]] == [f"many/f{n:06}.h5" for n in range(count)]
        assert len(first["files"]) == 1000 and not first["complete"]
        site.local("many").mkdir()
        site.py("h5py.File('many/new.h5', 'w')['x'] = 1")
        site.assert_mirrored("many/new.h5")
    finally:
        site.close()
        shutil.rmtree(directory)
