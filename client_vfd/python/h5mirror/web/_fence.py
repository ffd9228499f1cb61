"""The rights that a worker gives up before it reads a stranger's file.

It gives up most of the file system and of the network, and memory without end.

Landlock also keeps it from the memory of the web process, and of other workers.

Run as a program, this puts another program behind the fence. It needs only Python's own library:

    _fence.py PARENT PORTS always|if-possible SPOOL READABLE... -- PROGRAM ARGUMENT...

SPOOL is a directory in which it may make files, or "".
"""

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterable

# linux/landlock.h. Version 1 of the interface knows files, 4 TCP, and 6 signals and abstract sockets.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_ALL_RIGHTS = (1 << 13) - 1
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE
_REFER, _TRUNCATE = 1 << 13, 1 << 14  # of versions 2 and 3
_IN_SPOOL = _WRITE_FILE | _READ_FILE | _READ_DIR | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8  # To remove and make files and directories.
_BIND, _CONNECT = 1, 2
_SCOPES = 3
_NAME_SERVICE = 53
_NO_NEW_PRIVILEGES, _PARENT_DEATH_SIGNAL = 38, 1

_ADDRESS_SPACE = 4 << 30
_SPOOLED_MAX = 16 << 30
_DESCRIPTORS = 256
# Of names, time and certificates; /proc/self/ is not among them, as it has the process's memory.
_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
           "/etc/ld.so.cache", "/etc/localtime", "/etc/ssl", "/etc/pki/tls", "/etc/ca-certificates", "/proc/cpuinfo",
           "/proc/meminfo", "/proc/sys/net", "/sys/devices/system/cpu", "/dev/urandom", "/dev/random")
_WRITABLE = ("/dev/null",)

NOT_FENCED = 125
"""With which the program ends where there is no Landlock, and `always` was asked for."""

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = [("handled_access_fs", ctypes.c_uint64), ("handled_access_net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


class _Port(ctypes.Structure):
    _fields_ = [("allowed_access", ctypes.c_uint64), ("port", ctypes.c_uint64)]


def limit(parent: int) -> None:
    """Bounds of this process, which ends with its parent."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, _DESCRIPTORS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _libc.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # It ended before.
        sys.exit(0)


def is_there() -> bool:
    """Whether the kernel has Landlock."""
    return _version() >= 1


def always_readable() -> tuple[str, ...]:
    """The files that a process of this Python may read behind any fence."""
    return *_SYSTEM, *_of_python()


def ports_of(text: str) -> tuple[int, ...]:
    """Of an argument: numbers with a comma between them."""
    return tuple(int(each) for each in text.split(",") if each)


def close(readable: Iterable[str], ports: Iterable[int], spool: str = "") -> bool:
    """From here on this process opens no file but those below `readable` and what Python and the name service need, and
    connects to no TCP port but `ports`. It makes and changes files below `spool` alone.

    What is open stays open. False: the fence is not closed, because the kernel has no Landlock, or
    because a second thread would keep its rights.
    """
    if len(os.listdir("/proc/self/task")) != 1:
        return False
    version = _version()
    if version < 1:
        return False
    rights = _ALL_RIGHTS | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    rules = _Ruleset(rights, _BIND | _CONNECT, _SCOPES)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        for path in (*always_readable(), *readable):
            _allow(ruleset, path, _EXECUTE | _READ_FILE | _READ_DIR)
        for path in _WRITABLE:
            _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
        if spool:
            _allow(ruleset, spool, _IN_SPOOL | (_TRUNCATE if version >= 3 else 0))
        for number in (*ports, _NAME_SERVICE) if version >= 4 else ():
            _add(ruleset, _NET_PORT, _Port(_CONNECT, number))
        _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return bool(_libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0)
    finally:
        os.close(ruleset)


def _version() -> int:
    """Of the kernel's interface; below 1: it has none."""
    return int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG)))


def _allow(ruleset: int, path: str, rights: int) -> None:
    if os.path.realpath(path) == "/":
        return  # An empty entry of a path would open everything.
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # Not every system has it.
    try:
        if not os.path.isdir(path):
            rights &= _ON_FILES
        _add(ruleset, _PATH_BENEATH, _Beneath(rights, descriptor))
    finally:
        os.close(descriptor)


def _add(ruleset: int, kind: int, rule: ctypes.Structure) -> None:
    _libc.syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(kind), ctypes.byref(rule), ctypes.c_uint32(0))


def _of_python() -> list[str]:
    # The web process may have its current directory first; no process behind a fence has that.
    paths = sys.path if sys.flags.safe_path else sys.path[1:]
    return [each for each in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, *paths} if each]


def main() -> None:
    end = sys.argv.index("--")
    parent, ports, when, spool, *readable = sys.argv[1:end]
    limit(int(parent))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_SPOOLED_MAX, _SPOOLED_MAX))
    if not close(readable, ports_of(ports), spool) and when == "always":
        sys.exit(NOT_FENCED)
    command = sys.argv[end + 1:]
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
