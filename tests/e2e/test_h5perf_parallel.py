"""h5perf on 1, 2 and 4 processes: each byte is where the pattern has it, the report is laid out as the original's, and a
process that fails ends all."""

import json
import os
import re
import signal
import time

import h5py
import numpy as np
import pytest

from harness import hdf5, paths
from harness.process import Process, run, wait_until

MPIRUN = [os.environ.get("H5MIRROR_MPIEXEC") or "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
# A process that fails waits a second for others, and MPI's starter another one.
SOON_S = 30


class Perf:
    def __init__(self, directory, env):
        self.directory, self.env = directory, env

    def command(self, processes, arguments):
        return [*MPIRUN, "-n", str(processes), paths.BIN / "h5perf", *arguments]

    def run(self, processes, *arguments, **env):
        return run(self.command(processes, arguments), self.directory, cwd=self.directory, env={**self.env, **env}, name="h5perf")

    def ok(self, processes, *arguments, **env) -> str:
        result = self.run(processes, *arguments, **env).ok()
        assert result.err == "", result.err
        return result.out

    def start(self, command):
        return Process(command, self.directory, cwd=self.directory, env=self.env, name="h5perf")

    def left(self) -> list[str]:
        return sorted(path.name for path in self.directory.glob("**/#pio_tmp*"))


@pytest.fixture
def perf(tmp_path):
    env = hdf5.plain_env(HOME=str(tmp_path), OMPI_MCA_mpi_yield_when_idle="1")
    for name in ("USER", "LOGIN"):
        env.pop(name, None)
    return Perf(tmp_path, env)


def own_lines(text: str) -> list[str]:
    """h5perf's output, without that of MPI's starter."""
    return [line for line in text.splitlines() if line.startswith("h5perf: ")]


def h5perfs(process) -> list[int]:
    """Those that the starter has started, by process."""
    children = open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
    return [int(child) for child in children if "h5perf" in open(f"/proc/{child}/comm").read()]


def line_of(bytes_of_one, processes, block, interleaved) -> np.ndarray:
    """Of each byte of a dataset the process that wrote it, from 1 on."""
    at = np.arange(bytes_of_one * processes)
    return ((at // block % processes if interleaved else at // bytes_of_one) + 1).astype("u1")


def square_of(bytes_of_one, processes, block, interleaved) -> np.ndarray:
    row, column = np.indices((bytes_of_one * processes,) * 2)
    return ((column // block % processes if interleaved else row // bytes_of_one) + 1).astype("u1")


# Processes, options; what a dataset holds; the side of the blocks that plain files hold one after the other. Few collective
# calls: each one waits for all processes.
PATTERNS = {
    "line": (3, ("-e", "96", "-B", "8", "-x", "16", "-X", "16"), line_of(96, 3, 8, False), None),
    "line, interleaved": (3, ("-e", "96", "-B", "8", "-x", "16", "-X", "48", "-I"), line_of(96, 3, 8, True), None),
    "line, interleaved, collective": (2, ("-e", "96", "-B", "8", "-x", "48", "-X", "48", "-I", "-C", "-c"),
                                      line_of(96, 2, 8, True), None),
    "square": (2, ("-g", "-e", "16", "-B", "4", "-x", "8", "-X", "8"), square_of(16, 2, 4, False), None),
    "square, interleaved": (2, ("-g", "-e", "8", "-B", "4", "-x", "8", "-X", "8", "-I", "-C"), square_of(8, 2, 4, True), None),
    "square, interleaved, chunked": (2, ("-g", "-e", "8", "-B", "4", "-x", "16", "-X", "16", "-I", "-C", "-c"),
                                     square_of(8, 2, 4, True), 4),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_each_byte_is_where_the_pattern_has_it(perf, name):
    processes, options, wanted, block = PATTERNS[name]
    (perf.directory / "data" / "someone").mkdir(parents=True)
    perf.ok(processes, *options, "-p", str(processes), "-d", "2", "-F", "2", "-D", "v", HDF5_NOCLEANUP="", HDF5_PARAPREFIX=str(perf.directory / "data"),
            USER="someone")
    plain = wanted
    if block:  # Block by block, row after row of them.
        side = wanted.shape[0] // block
        plain = wanted.reshape(side, block, side, block).swapaxes(1, 2)
    assert len(perf.left()) == 6
    for number in (1, 2):
        base = perf.directory / "data" / "someone" / f"#pio_tmp_{number}"
        for suffix in (".posix", ".mpio"):
            written = np.fromfile(f"{base}{suffix}", "u1")
            assert np.array_equal(written, np.concatenate([plain.ravel(), plain.ravel()])), suffix
        with h5py.File(f"{base}.h5") as file:
            assert sorted(file) == ["Dataset_1", "Dataset_2"]
            for dataset in file.values():
                assert np.array_equal(dataset[...], wanted)
                assert bool(dataset.chunks) == ("-c" in options)


def test_processes_are_halved_and_the_report_is_the_originals(perf):
    report = perf.ok(4, "-e", "64K", "-X", "32K", "-i", "2", "-D", "v,r,t", HDF5_MPI_INFO="romio_cb_write=enable; a = b")
    assert perf.left() == []
    assert "rank 0: Number of processes=1:4\n" in report
    assert "object has 2 items\nromio_cb_write=enable\na=b\nrank 0: ==== End of Parameters ====\n\n" in report
    assert re.findall(r"^Number of processors = (\d)$", report, re.M) == ["4", "2", "1"]
    assert re.findall(r"^Transfer Buffer Size: (\d+) bytes, File size: (\S+) MB$", report, re.M) == [
        ("32768", total) for total in ("0.25", "0.12", "0.06")]
    assert re.findall(r"^        IO API = (.*)$", report, re.M) == ["POSIX", "MPIO", "PHDF5 (w/MPI-IO driver)"] * 3
    blocks = re.findall(r"^            (\S.*) \(2 iteration\(s\)\):$", report, re.M)
    assert blocks[:10] == [name for side in ("Write", "Read") for name in
                           (f"Raw Data {side}", side, f"{side} Open-Close", f"{side} File Open", f"{side} File Close")]
    assert len(blocks) == 90
    rates = re.findall(r"^                (Maximum|Average|Minimum) Throughput: *(\d+\.\d\d) MB/s \( *\d+\.\d{3} s\)$", report, re.M)
    assert len(rates) == 3 * 6 * 9
    for most, mean, least in zip(rates[::3], rates[1::3], rates[2::3]):
        assert float(most[1]) >= float(mean[1]) >= float(least[1]) > 0


def test_drivers_side_by_side_in_json_and_to_a_file(perf):
    assert perf.ok(2, "-A", "phdf5", "-v", "mpio", "-v", "mpio", "--compare", "-i", "3", "-e", "64K", "-X", "32K", "-p", "2", "-w",
                   "-a", "4K", "--json", "-o", "report") == ""
    report = json.loads((perf.directory / "report").read_text())
    assert report["parameters"]["alignment"] == 4096
    assert [(lane["processes"], lane["buffer"], lane["bytes"], lane["driver"]) for lane in report["results"]] == [
        (2, 32768, 131072, "mpio")] * 2
    for lane in report["results"]:
        assert "read" not in lane["phases"]
        write = lane["phases"]["write_open_close"]
        assert len(write["seconds"]) == 3 and all(0 < least <= most for least, most in
                                                  zip(write["shortest_seconds"], write["seconds"]))
    assert report["results"][0]["phases"]["write"]["ratio"] == {"median": 1.0, "min": 1.0, "max": 1.0}


@pytest.mark.parametrize("arguments, said", [
    (("-e", "256K", "-B", "96K"), "h5perf: a transfer buffer of 131072 (-x to -X) must be a multiple of the block (-B 98304); "
                                  "see h5perf --help"),
    (("-P", "3"), "h5perf: -P 3 is more than the 2 process(es) that MPI started; start more with mpirun -n; see h5perf --help"),
    (("-o", "no/such/report"), "h5perf: the report cannot be written to no/such/report; name another file by -o"),
    (("-v", "sec2", "-A", "phdf5"), "h5perf: -v sec2: this driver knows nothing of MPI; mpio does, and h5mirror over it"),
], ids=["sizes", "processes", "report", "driver"])
def test_what_is_refused_is_told_once(perf, arguments, said):
    result = perf.run(2, *arguments)
    assert result.code == 1
    assert own_lines(result.err) == [said]
    assert result.out == "" and perf.left() == []


def test_a_directory_that_is_not_there_is_told_once(perf):
    result = perf.run(2, "-A", "posix", HDF5_PARAPREFIX=str(perf.directory / "none"))
    assert result.code == 1 and result.out == "" and result.seconds < SOON_S
    (line,) = own_lines(result.err)
    assert "posix, iteration 1: create " in line and "No such file" in line


def test_a_process_that_fails_ends_all_and_says_why(perf):
    """The second process, whose part lies behind what it may write."""
    program = [paths.BIN / "h5perf", "-A", "posix", "-e", "256K", "-p", "2"]
    limited = ["sh", "-c", "trap '' XFSZ; ulimit -f 200; exec \"$0\" \"$@\"", *program]
    result = run([*MPIRUN, "-n", "1", *program, ":", "-n", "1", *limited], perf.directory, cwd=perf.directory, env=perf.env,
                 name="h5perf")
    assert result.code != 0 and result.out == "" and result.seconds < SOON_S
    (line,) = own_lines(result.err)
    assert line.startswith("h5perf: process 1 of 2: posix, iteration 1: write ") and "File too large" in line
    assert perf.left() == []


@pytest.mark.parametrize("which", [0, 1])
def test_a_process_that_is_killed_leaves_no_files(perf, which):
    process = perf.start(perf.command(2, ["-e", "1M", "-i", "100000", "-p", "2"]))
    wait_until(lambda: perf.left(), "a data file")
    os.kill(h5perfs(process)[which], signal.SIGKILL)
    started = time.monotonic()
    assert process.wait(SOON_S).code != 0
    assert time.monotonic() - started < SOON_S
    assert perf.left() == []


def test_a_signal_to_the_starter_leaves_no_files(perf):
    process = perf.start(perf.command(2, ["-e", "1M", "-i", "100000", "-p", "2"]))
    wait_until(lambda: perf.left(), "a data file")
    os.kill(process.pid, signal.SIGTERM)
    result = process.wait(SOON_S)
    assert result.code != 0 and own_lines(result.err) == []
    assert perf.left() == []
