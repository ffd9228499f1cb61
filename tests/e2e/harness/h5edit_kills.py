"""Kills h5edit at a call of the test's choice, and opens the file after that. The file is f.h5, the commands are in
`script`, beside it."""

import shutil
import signal
import subprocess

from . import hdf5, paths
from .h5edit import command, h5edit


def kill_at(f, number: int, *words) -> int:
    env = hdf5.plain_env(LD_PRELOAD=str(paths.TEST_BIN / "libe2e_kill_at.so"), KILL_AT=str(number))
    done = subprocess.run([str(w) for w in command(*words, "--command-file", "script", "f.h5")], cwd=f.parent, env=env,
                          capture_output=True, timeout=60)
    assert done.returncode in (0, -signal.SIGKILL), done
    return done.returncode


def kills(f, original, *words):
    """The file's bytes after a kill at each call and a recovery, until the run is through."""
    for number in range(1, 2000):
        f.write_bytes(original)
        code = kill_at(f, number, *words)
        if code == 0:
            return
        yield number
    raise AssertionError("no end")


def tear(f, original, *words) -> bytes:
    """Kills a run between two writes of the file. Returns the bytes that the file would have got."""
    h5edit(f.parent, *words, "--command-file", "script", "f.h5").ok()
    final = f.read_bytes()
    for _ in kills(f, original, *words):
        if f.read_bytes() not in (original, final):
            return final
        shutil.rmtree(f"{f}.h5m", ignore_errors=True)
    raise AssertionError("no kill met a half-written file")


def driver(f, config: str) -> dict:
    return hdf5.plain_env(HDF5_PLUGIN_PATH=str(paths.LIB), HDF5_DRIVER="h5mirror", HDF5_DRIVER_CONFIG=config,
                          HOME=str(f.parent))


def h5ls(f, config: str, bound=()) -> str:
    """Opens the file through the driver, for reading. Returns the output."""
    return subprocess.run([*bound, paths.hdf5_tool("h5ls"), "f.h5"], cwd=f.parent, env=driver(f, config), capture_output=True,
                          text=True, timeout=60).stderr
