"""Includes follow the arrows between rooms (docs/ARCHITECTURE.md, "Rooms"), never backwards."""

import re

from tree import CPP

# What each room may include, itself aside. tests and bench may use every room; none uses them.
ALLOWED = {
    "base": set(),
    "proto": set(),
    "rpc": {"proto", "base"},
    "onion_store": {"base"},
    "swmr_agent": {"rpc", "proto", "base"},
    "server": {"onion_store", "rpc", "proto", "base"},
    "client_vfd": {"rpc", "proto", "base"},
    # The store in the program: a module of its own, loaded on demand.
    "client_vfd/embedded": {"onion_store", "rpc", "base"},
    "tools": {"rpc", "onion_store", "proto", "base"},
    # What it has to mirror it mirrors as the driver's own configuration says.
    "tools/h5edit": {"client_vfd", "rpc", "onion_store", "proto", "base"},
}
ROOMS = {room for room in ALLOWED if "/" not in room} | {"tests", "bench", "deploy"}
INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')


def room_of(include):
    if include.startswith("h5mirror/v1/"):
        return "proto"
    first = include.split("/", 1)[0]
    return first if first in ROOMS else None


def check(tree):
    for path in tree.with_suffix(CPP):
        room = path.split("/", 1)[0]
        part = "/".join(path.split("/")[:2])
        allowed = ALLOWED.get(part, ALLOWED.get(room))
        for number, line in tree.lines(path):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = room_of(match.group(1))
            if match.group(1).startswith("../"):
                yield f"{path}:{number}: include from the repository's root, not {match.group(1)}"
            elif allowed is not None and target and target != room and target not in allowed:
                yield f"{path}:{number}: {room} must not include {target} ({match.group(1)})"
