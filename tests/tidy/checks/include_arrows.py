"""Includes follow the arrows between rooms and their folders (docs/ARCHITECTURE.md, "Rooms"),
never backwards."""

import re

from tree import CPP

# What each room or folder may include, itself aside. A name stands for all folders below it.
# tests and bench may use every room; none uses them.
ALLOWED = {
    "base": set(),
    "proto": set(),
    "rpc": {"proto", "base"},
    "onion_store": {"base"},
    "swmr_agent": {"rpc", "proto", "base"},
    "server": {"onion_store", "rpc", "proto", "base"},
    "client_vfd": {"rpc", "proto", "base"},
    # The store in the program: a module of its own, loaded on demand.
    "client_vfd/embedded": {"client_vfd", "onion_store", "rpc", "base"},
    "cli/process": {"base"},
    "cli/output": {"rpc", "proto", "base"},
    "cli/context": {"cli/output", "cli/process", "rpc", "proto", "base"},
    "cli/exec": {"cli/context", "cli/output", "cli/process", "rpc", "proto", "base"},
    "sync": {"cli/context", "cli/output", "cli/process", "rpc", "proto", "base"},
    "cli/verbs": {
        "sync", "cli/exec", "cli/context", "cli/output", "cli/process", "rpc", "proto", "base",
    },
    "cli": {"cli/verbs", "sync", "cli/context", "cli/output", "cli/process", "rpc", "proto", "base"},
    "hdf5": {"base"},
    "h5diff": {"cli", "sync", "hdf5", "rpc", "proto", "base"},
    # What it has to mirror it mirrors as the driver's own configuration says.
    "h5edit": {
        "client_vfd", "sync", "cli/context", "cli/output", "cli/process", "hdf5", "rpc", "onion_store",
        "proto", "base",
    },
    "h5perf_serial": {"cli/process", "hdf5", "base"},
}
ROOMS = {room.split("/", 1)[0] for room in ALLOWED} | {"tests", "bench", "deploy"}
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
TEST = re.compile(r"/testing/|/test_|_(test|testing|fixture)\.")


def room_of(path):
    """The longest name of ALLOWED that `path` lies in, or its top directory."""
    if path.startswith("h5mirror/v1/"):
        return "proto"
    folders = path.split("/")[:-1]
    for length in range(len(folders), 0, -1):
        if (room := "/".join(folders[:length])) in ALLOWED:
            return room
    return folders[0] if folders and folders[0] in ROOMS else None


def is_within(target, room):
    return target == room or target.startswith(room + "/")


def allowed_of(path, room):
    """A test may use every folder of its room."""
    own = {room.split("/", 1)[0]} if TEST.search(path) else set()
    return ALLOWED[room] | own


def check(tree):
    for path in tree.with_suffix(CPP):
        room = room_of(path)
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if not match:
                continue
            include = match.group(1)
            if include.startswith("../"):
                yield f"{path}:{number}: include from the repository's root, not {include}"
            target = room_of(include)
            if room not in ALLOWED or target in (None, room):
                continue
            if not any(is_within(target, name) for name in allowed_of(path, room)):
                yield f"{path}:{number}: {room} must not include {target} ({include})"
