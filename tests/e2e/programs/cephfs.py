"""Files of a CephFS, as another client sees them, over the C library. No mount and no rights are wanted.

    cephfs.py CONF mkdir DIRECTORY...
    cephfs.py CONF get FILE OUT
    cephfs.py CONF hold FILE            reads it, says so in a line, and has it open until it is killed
    cephfs.py CONF stay                 says so in a line, and stays mounted until it is killed

A program of its own: libcephfs does not survive a fork.
"""

import ctypes
import os
import signal
import sys

READ_BYTES = 1 << 22


class Mounted:
    def __init__(self, conf: str):
        self._library = ctypes.CDLL("libcephfs.so.2")
        self._library.ceph_read.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64]
        self._mount = ctypes.c_void_p()
        _must(self._library.ceph_create(ctypes.byref(self._mount), None), "create")
        self.call("ceph_conf_read_file", conf.encode())
        self.call("ceph_mount", b"/")

    def call(self, name: str, *arguments) -> int:
        return _must(getattr(self._library, name)(self._mount, *arguments), f"{name} {arguments}")

    def close(self) -> None:
        self.call("ceph_unmount")
        self._library.ceph_release(self._mount)


def _must(result: int, what: str) -> int:
    if result < 0:
        sys.exit(f"{what}: {os.strerror(-result)}")
    return result


def get(mounted: Mounted, path: str, out: str) -> None:
    fd = mounted.call("ceph_open", path.encode(), os.O_RDONLY, 0)
    buffer = ctypes.create_string_buffer(READ_BYTES)
    with open(out, "wb") as file:
        while count := mounted.call("ceph_read", fd, buffer, READ_BYTES, file.tell()):
            file.write(buffer.raw[:count])
    mounted.call("ceph_close", fd)


def hold(mounted: Mounted, path: str) -> None:
    fd = mounted.call("ceph_open", path.encode(), os.O_RDONLY, 0)
    buffer = ctypes.create_string_buffer(READ_BYTES)
    mounted.call("ceph_read", fd, buffer, READ_BYTES, 0)
    print("held", flush=True)
    signal.pause()


def main(conf: str, verb: str, *arguments: str) -> None:
    mounted = Mounted(conf)
    if verb == "get":
        get(mounted, *arguments)
    elif verb == "hold":
        hold(mounted, *arguments)
    elif verb == "stay":
        print("mounted", flush=True)
        signal.pause()
    else:
        for directory in arguments:
            mounted.call("ceph_mkdirs", directory.encode(), 0o755)
    mounted.close()


main(*sys.argv[1:])
