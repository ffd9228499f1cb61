"""h5perf_serial: it writes what its report says, through POSIX calls and through any of HDF5's drivers, and the report
has the original's layout."""

import csv
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess

import h5py
import numpy as np
import pytest

from harness import hdf5, paths
from harness.process import run, wait_until

# Dataset, buffer and order, with the chunks of some.
SHAPES = [("16", "4", "1"), ("64,16", "64,16", "1,2"), ("16,16", "2,4", "2,1"), ("16,16", "4,2", "1,2"),
          ("16,16", "4,16", "1,2"), ("4,6,8", "2,6,8", "1,2,3"), ("4,6,8", "2,3,8", "3,1,2"),
          ("4,6,8", "4,6,2", "2,3,1"), ("4,6,8", "1,1,1", "3,2,1"), ("2,4,6,8", "2,2,3,4", "4,2,3,1"),
          ("1K,512", "256,128", "1,2")]
# Dataset and buffer: how many writes of how many bytes.
WRITES = [("16,16", "2,4", 64, 4), ("16,16", "4,16", 4, 64), ("4,6,8", "2,6,8", 2, 96), ("4,6,8", "2,3,8", 8, 24),
          ("4,6,8", "4,6,2", 96, 2)]
STOCK = ["sec2", "stdio", "core", "split", "multi", "family", "direct", "splitter", "onion"]


class Perf:
    def __init__(self, directory, env):
        self.directory, self.env = directory, env

    def run(self, *arguments, program=None, **env):
        return run([program or paths.BIN / "h5perf_serial", *arguments], self.directory, cwd=self.directory,
                   env={**self.env, **env}, name="h5perf")

    def ok(self, *arguments, **env) -> str:
        result = self.run(*arguments, **env).ok()
        assert result.err == "", result.err
        return result.out

    def counted(self, *arguments, **env) -> dict:
        """Of each data file: calls by kind."""
        counts = self.directory / "counts"
        self.ok(*arguments, LD_PRELOAD=str(paths.TEST_BIN / "libe2e_data_io.so"), H5MIRROR_TEST_COUNTS=str(counts), **env)
        names = ("writes", "written", "seeks", "reads", "read", "syncs")
        return {line.split()[0]: dict(zip(names, map(int, line.split()[1:])))
                for line in counts.read_text().splitlines()}

    def left(self) -> list[str]:
        return sorted(path.name for path in self.directory.glob("#sio_tmp*"))


@pytest.fixture
def perf(tmp_path):
    env = hdf5.plain_env(HOME=str(tmp_path), LD_LIBRARY_PATH=str(paths.HDF5 / "lib"))
    for name in ("USER", "LOGIN", "HDF5_PREFIX", "HDF5_NOCLEANUP"):
        env.pop(name, None)
    return Perf(tmp_path, env)


def tiled(shape, buffer) -> np.ndarray:
    """The dataset as it must be: the buffer, whose byte k is k mod 128, side by side."""
    tile = (np.arange(np.prod(buffer)) % 128).astype("u1").reshape(buffer)
    return np.tile(tile, [size // part for size, part in zip(shape, buffer)])


def dimensions(text: str) -> list[int]:
    return [int(part[:-1]) * 1024 if part.endswith("K") else int(part) for part in text.split(",")]


@pytest.mark.parametrize("more", [(), ("-c", "chunks"), ("-c", "chunks", "-t"), ("--pattern", "random", "-c", "chunks", "-t")],
                         ids=["contiguous", "chunked", "extended", "random"])
def test_posix_and_hdf5_hold_the_same_bytes(perf, more):
    for dataset, buffer, order in SHAPES:
        chunks = ",".join(str(min(3, size)) for size in dimensions(dataset))
        words = [chunks if word == "chunks" else word for word in more]
        perf.ok("-e", dataset, "-x", buffer, "-r", order, "-w", *words, HDF5_NOCLEANUP="1")
        wanted = tiled(dimensions(dataset), dimensions(buffer))
        assert (perf.directory / "#sio_tmp.posix").read_bytes() == wanted.tobytes(), (dataset, buffer, order)
        with h5py.File(perf.directory / "#sio_tmp.h5") as f:
            d = f[f"Dataset_{wanted.size}"]
            assert d.dtype == "u1" and d.shape == wanted.shape
            assert d.maxshape == ((None,) * d.ndim if "-t" in more else d.shape)
            assert (d[()] == wanted).all(), (dataset, buffer, order)


def test_a_posix_write_is_as_long_as_it_can_be(perf):
    for dataset, buffer, writes, size in WRITES:
        counts = perf.counted("-A", "posix", "-e", dataset, "-x", buffer)["#sio_tmp.posix"]
        total = int(np.prod(dimensions(dataset)))
        assert (counts["writes"], counts["written"]) == (writes, writes * size), (dataset, buffer)
        assert (counts["reads"], counts["read"]) == (writes, total), (dataset, buffer)
        assert counts["seeks"] == 2 * writes, "one before each"
        assert counts["syncs"] == 0


def test_fsync_syncs_each_file_once(perf):
    counts = perf.counted("--fsync", "-i", "2", "-v", "split")
    assert {name: each["syncs"] for name, each in counts.items()} == {
        "#sio_tmp.posix": 2, "#sio_tmp.h5-m.h5": 2, "#sio_tmp.h5-r.h5": 2}


@pytest.mark.parametrize("buffer, order", [("2,4", "2,1"), ("4,2", "1,2")])
def test_an_extended_dataset_is_that_of_the_paper(perf, buffer, order):
    """The two examples of the paper of 2008 (shape_test draws them), to their end."""
    perf.ok("-A", "hdf5", "-e", "16,16", "-x", buffer, "-r", order, "-c", "4,4", "-t", "-w", HDF5_NOCLEANUP="1")
    with h5py.File(perf.directory / "#sio_tmp.h5") as f:
        d = f["Dataset_256"]
        assert (d.shape, d.maxshape, d.chunks) == ((16, 16), (None, None), (4, 4))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("api", ["posix", "hdf5"])
def test_a_signal_ends_it_and_leaves_no_file(perf, api, number):
    program = subprocess.Popen([paths.BIN / "h5perf_serial", "-A", api, "-e", "1G", "-x", "1"], cwd=perf.directory,
                               env=perf.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               # The parent may ignore the signal, as nohup does; the child would inherit that.
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    try:
        wait_until(perf.left, "it has begun to write")
        program.send_signal(number)
        out, err = program.communicate(timeout=60)
    finally:
        program.kill()
    assert program.returncode == 128 + number
    assert out == ""
    assert err == f"h5perf_serial: {api if api == 'posix' else 'sec2'}, iteration 1: stopped by signal {int(number)}\n"
    assert perf.left() == []


@pytest.mark.parametrize("driver", STOCK + ["mig"])
def test_every_driver_writes_reads_and_cleans_up(perf, driver):
    text = perf.ok("-v", driver, "-D", "v", "-e", "2M", "-x", "256K", "-i", "2")
    assert f"HDF5 file driver={driver}\n" in text
    assert perf.left() == []
    rates = [float(rate) for rate in re.findall(r"Throughput:\s*([\d.]+) MB/s", text)]
    assert len(rates) == 24 and min(rates) > 0


def test_files_are_named_as_the_originals_are(perf):
    for driver, names in {"sec2": [".h5"], "core": [".h5"], "split": [".h5-m.h5", ".h5-r.h5"],
                          "multi": ["-b.h5", "-g.h5", "-l.h5", "-o.h5", "-r.h5", "-s.h5"],
                          "family": ["00000.h5", "00001.h5", "00002.h5"]}.items():
        perf.ok("-v", driver, "-A", "hdf5", "-e", "2M", "-x", "1M", HDF5_NOCLEANUP="")
        left = perf.left()
        assert set(left) <= {"#sio_tmp" + name for name in names} and left, driver
        if driver != "multi":  # which makes only those that it needs
            assert len(left) == len(names), driver
        for name in left:
            (perf.directory / name).unlink()


def test_the_prefix_gets_a_directory_of_the_user(perf):
    below = perf.directory / "data"
    below.mkdir()
    text = perf.ok("-w", "-D", "1", HDF5_PREFIX=str(below), USER="me", HDF5_NOCLEANUP="1")
    assert f"data filename={below}/me/#sio_tmp.posix\n" in text
    assert f"Env HDF5_PREFIX={below}\n" in text
    assert sorted(path.name for path in (below / "me").iterdir()) == ["#sio_tmp.h5", "#sio_tmp.posix"]


def test_a_failure_is_told_and_leaves_neither_table_nor_files(perf):
    for words, what in [(("-e", "16,16", "-x", "3,2"), "multiple"), (("-e", "16", "-x", "4,4"), "dimensions"),
                        (("-v", "bogus"), "bogus"), (("-o", "/no/such/report"), "/no/such/report"),
                        (("-A", "hdf5", "-e", "16", "-x", "4", "-c", "5G"), "-c")]:
        result = perf.run(*words)
        assert (result.code, result.out) == (1, ""), words
        assert what in result.err and result.err.startswith("h5perf_serial: "), result.err
        assert perf.left() == []
    result = perf.run("-w", HDF5_PREFIX="/no/such/directory")
    assert result.code == 1 and "/no/such/directory/#sio_tmp.posix" in result.err and result.out == ""


@pytest.mark.parametrize("api", ["posix", "h5"])
def test_verify_finds_one_byte_that_changed_on_disk(perf, api):
    flip = dict(LD_PRELOAD=str(paths.TEST_BIN / "libe2e_data_io.so"), H5MIRROR_TEST_FLIP="#sio_tmp." + api)
    result = perf.run("-D", "v", **flip)
    assert result.code == 1 and result.out == ""
    assert f"#sio_tmp.{api}: element (99,199) was read as 70, and written as 71" in result.err
    assert perf.left() == []
    perf.ok(**flip)  # Nobody looks.


# Rates and times differ from run to run; nothing else may.
def layout(text: str) -> str:
    return re.sub(r"Time: +[\d.]+s", "Time: S", re.sub(r"(Throughput:) +[\d.]+ MB/s( \( *[\d.]+ s\))?",
                                                      lambda m: m[1] + " R" + (" (S)" if m[2] else ""), text))


@pytest.mark.parametrize("words", [
    "", "-w", "-A posix", "-A hdf5 -i 3", "-e 4K,64 -x 512,32 -c 1K,64 -t -D t", "-e 16 -x 4 -r 1 -D 1", "-D 3 -i 2 -w",
    "-D 4,r,t -A HDF5,posix", "-v split -e 3M -x 1M", "-v family -D 1", "-e 12,6,4 -x 4,3,2 -r 3,1,2 --num-iterations=2"])
def test_the_report_is_laid_out_as_the_originals(perf, words):
    original = perf.run(*words.split(), program=paths.hdf5_tool("h5perf_serial")).ok()
    assert layout(perf.ok(*words.split())) == layout(original.out)


def test_rates_are_in_order(perf):
    text = perf.ok("-i", "5", "--percentiles=50")
    for block in re.findall(r"Maximum Throughput: +([\d.]+).*\n.*: +([\d.]+).*\n.*: +([\d.]+).*\n +50th Percentile: +([\d.]+)",
                            text):
        most, mean, least, median = map(float, block)
        assert least <= mean <= most and least <= median <= most


def test_settings_reach_the_file(perf):
    perf.ok("-A", "hdf5", "-w", "-G", "8K", "-b", "64K", "-c", "50,100", "--deflate", "6", "--shuffle", "--libver", "v110",
            "--chunk-cache", "4M", "--sieve", "1M", "--meta-block", "64K", HDF5_NOCLEANUP="1")
    with h5py.File(perf.directory / "#sio_tmp.h5") as f:
        plist = f.id.get_create_plist()
        assert plist.get_file_space_strategy()[0] == h5py.h5f.FSPACE_STRATEGY_PAGE
        assert plist.get_file_space_page_size() == 8192
        assert f["Dataset_20000"].compression == "gzip" and f["Dataset_20000"].shuffle
        assert f["Dataset_20000"].id.get_storage_size() < 10_000
        assert (perf.directory / "#sio_tmp.h5").read_bytes()[8] >= 2, "no superblock of the earliest format"


def test_objects_are_aligned(perf):
    perf.ok("-A", "hdf5", "-w", "-a", "64K", "-T", "1K", HDF5_NOCLEANUP="1")
    with h5py.File(perf.directory / "#sio_tmp.h5") as f:
        assert f["Dataset_20000"].id.get_offset() % 65536 == 0


def test_caches_are_dropped_and_said_to_be(perf):
    assert re.search(r"^Page cache before reading=(dropped|data files dropped)$", perf.ok("--drop-caches"), re.MULTILINE)


def test_json_and_csv_have_each_time(perf):
    said = json.loads(perf.ok("--json", "-i", "3", "-e", "1M", "-x", "64K"))
    assert said["parameters"]["dataset"] == [1 << 20]
    assert [lane["api"] for lane in said["results"]] == ["posix", "hdf5"]
    for lane in said["results"]:
        assert list(lane["phases"]) == ["raw_write", "write", "write_open_close", "raw_read", "read", "read_open_close"]
        for phase in lane["phases"].values():
            assert len(phase["seconds"]) == 3 and min(phase["seconds"]) > 0
            assert min(phase["seconds"]) <= phase["p50_s"] <= phase["p99_s"] == max(phase["seconds"])
        assert all(a <= b for a, b in zip(lane["phases"]["raw_write"]["seconds"], lane["phases"]["write_open_close"]["seconds"]))
    rows = list(csv.DictReader(io.StringIO(perf.ok("--csv", "-w", "-i", "2"))))
    assert len(rows) == 2 * 2 * 3 and all(float(row["seconds"]) > 0 for row in rows)
    perf.ok("--json", "-o", "report.json")
    assert json.loads((perf.directory / "report.json").read_text())["hdf5"]


def test_a_terminal_sees_how_far_it_has_come(perf):
    def screen(*words) -> str:
        ours, theirs = pty.openpty()
        process = subprocess.Popen([paths.BIN / "h5perf_serial", *words], cwd=perf.directory, env=perf.env, stderr=theirs,
                                   stdout=subprocess.DEVNULL)
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:
            pass  # The other side is closed.
        assert process.wait() == 0
        os.close(ours)
        return seen.decode()

    # A byte at a time: that it lasts longer than the quiet half second is the slowest machine's as the fastest's.
    assert re.search(r"posix, iteration 1 of 1, writing: \d+ %", screen("-A", "posix", "-w", "-e", "4M", "-x", "1"))


def test_a_mirrored_run_beside_sec2(perf, bare_site):
    site = bare_site
    perf.directory = site.work
    said = json.loads(perf.ok("-v", "sec2", "-v", "h5mirror:" + site.config().replace(";", ","), "--compare", "--json",
                              "-i", "3", "-e", "2M", "-x", "256K", "-D", "v", HOME=str(site.home), HDF5_NOCLEANUP="1"))
    assert [lane["driver"] for lane in said["results"][:2]] == [None, "sec2"]
    mirrored = said["results"][2]
    assert mirrored["driver"].startswith("h5mirror:server=") and mirrored["mirror_complaint"] is None
    assert all(phase["ratio"]["min"] <= phase["ratio"]["median"] <= phase["ratio"]["max"]
               for phase in mirrored["phases"].values())
    site.settle("#sio_tmp.h5")
    with h5py.File(site.root / "#sio_tmp.h5") as f:
        assert (f["Dataset_2097152"][()] == tiled([1 << 21], [1 << 18])).all()


def mirrored_runs(perf, site, **env):
    """Two runs of 3 MiB each on the site's server."""
    perf.directory = site.work
    return perf.run("-A", "hdf5", "-w", "-v", "h5mirror:" + site.config().replace(";", ","), "-i", "2", "-e", "3M",
                    "-x", "1M", HOME=str(site.home), **env).ok()


def test_a_mirrored_run_leaves_nothing_on_the_server(perf, bare_site):
    site = bare_site
    assert mirrored_runs(perf, site).err == ""
    assert site.json("ls")["files"] == [] and perf.left() == []
    removed = site.json("ls", "--removed")["files"]
    assert [each["name"] for each in removed] == ["#sio_tmp.h5"] and removed[0]["size_bytes"] < 1 << 20, removed


def test_a_mirrored_run_that_is_to_keep_its_files_keeps_the_mirror(perf, bare_site):
    mirrored_runs(perf, bare_site, HDF5_NOCLEANUP="1")
    assert [each["name"] for each in bare_site.json("ls")["files"]] == ["#sio_tmp.h5"]


def test_a_mirrored_run_says_what_stays_on_the_server(perf, bare_site):
    """Where the CLI cannot remove it, here as it cannot be started."""
    own = bare_site.directory / "bin"
    own.mkdir()
    shutil.copy(paths.BIN / "h5perf_serial", own)
    perf.directory = bare_site.work
    plugin = next(paths.LIB.rglob("libhdf5_vfd_h5mirror.so")).parent
    result = perf.run("-A", "hdf5", "-w", "-v", "h5mirror:" + bare_site.config().replace(";", ","), "-e", "3M", "-x", "1M",
                      program=own / "h5perf_serial", HOME=str(bare_site.home), HDF5_PLUGIN_PATH=str(plugin)).ok()
    assert "keeps #sio_tmp.h5 with a version for each iteration" in result.err, result.describe()
    assert "rm '#sio_tmp.h5' removes it" in result.err
    assert perf.left() == []


def test_a_mirror_that_is_away_is_not_passed_over(perf):
    result = perf.run("-A", "hdf5", "-w", "-v", "h5mirror:server=127.0.0.1:1,timeout=1s").ok()
    assert "was not mirrored, its times are those of local writing" in result.err
