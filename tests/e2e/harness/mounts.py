"""Small and read-only filesystems, made with mount(8); tests skip where that is not permitted."""

import contextlib
import ctypes
import os
import shlex
import struct
import subprocess
from pathlib import Path

import pytest


def _mount(*arguments) -> None:
    if os.geteuid() != 0:
        pytest.skip("mount wants root")
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        pytest.skip(f"mount {' '.join(map(str, arguments))} is not permitted here: {done.stderr.strip()}")


@contextlib.contextmanager
def tmpfs(directory: Path, size: str):
    """A filesystem of that size on `directory`. Yields a function that gives it another size."""
    directory.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory)
    try:
        yield lambda other: _mount("-o", f"remount,size={other}", directory)
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True, timeout=20)


@contextlib.contextmanager
def read_only(directory: Path):
    """`directory` cannot be written, not even by root."""
    _mount("--bind", directory, directory)
    try:
        _mount("-o", "remount,ro,bind", directory)
        yield
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True, timeout=20)


@contextlib.contextmanager
def hanging(directory: Path):
    """All calls on files below `directory` hang, until their process is killed."""
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("a file system that hangs wants root and FUSE")
    device = os.open("/dev/fuse", os.O_RDWR)
    try:
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"hangs", os.fsencode(directory), b"fuse", 0, options) != 0:
            pytest.skip(f"FUSE is not permitted here: {os.strerror(ctypes.get_errno())}")
        # The kernel's greeting is answered, as in linux/fuse.h, and nothing after it.
        greeting = os.read(device, 1 << 18)
        unique = struct.unpack_from("=Q", greeting, 8)[0]
        os.write(device, struct.pack("=IiQIIIIHHII36x", 80, 0, unique, 7, 23, 4096, 0, 1, 1, 4096, 1))
        yield
    finally:
        os.close(device)  # The hanging calls fail now.
        subprocess.run(["umount", "-l", str(directory)], check=False, timeout=20)


def _private(mount: str) -> list:
    prefix = ["unshare", "--mount", "sh", "-ec", f'mount {mount}; exec "$@"', "sh"]
    if os.geteuid() != 0:
        pytest.skip("mount wants root")
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, timeout=20)
    if tried.returncode != 0:
        pytest.skip(f"mounts of its own are not permitted here: {tried.stderr.strip()}")
    return prefix


def private_run() -> list:
    """The prefix of a command whose program has an empty /run of its own."""
    return _private("-t tmpfs tmpfs /run")


def private_mount(mount: str) -> list:
    """The prefix of a command whose program has one mount of its own, as mount(8) makes it."""
    return _private(mount)


def private_file(file: Path, place: str) -> list:
    """The prefix of a command whose program sees `file` at `place`."""
    return _private(f"--bind {shlex.quote(str(file))} {place}")


def beside(pid: int, directory: Path) -> list:
    """The prefix of a command whose program sees the mounts of another program, and works in a directory."""
    return ["nsenter", f"--mount=/proc/{pid}/ns/mnt", "env", "-C", directory]
