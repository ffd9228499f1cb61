"""Includes follow the arrows between rooms and their folders (docs/ARCHITECTURE.md, "Rooms"),
never backwards."""

import re

from tree import CPP

# The rooms and folders that each one may include, besides itself. "room/**" stands for the room and
# all folders below it; a name alone stands for its own files. tests and bench may use every room;
# none uses them.
ALLOWED = {
    "base": set(),
    "base/testing": {"base"},
    "proto": set(),
    "rpc": {"proto", "base"},
    # The interface of the store, without its folders; each folder may use those above it.
    "onion_store/disk": {"base"},
    "onion_store": {"onion_store/disk", "base"},
    "onion_store/shared": {"onion_store", "onion_store/disk", "base"},
    "onion_store/stage": {"onion_store/shared", "onion_store", "onion_store/disk", "base"},
    "onion_store/index": {"onion_store/stage", "onion_store/shared", "onion_store", "onion_store/disk", "base"},
    "onion_store/pages": {
        "onion_store/index", "onion_store/stage", "onion_store/shared", "onion_store", "onion_store/disk", "base",
    },
    "onion_store/jobs": {
        "onion_store/pages", "onion_store/index", "onion_store/stage", "onion_store/shared", "onion_store",
        "onion_store/disk", "base",
    },
    # The parts of one file's object, each with a test of its own; then the object.
    "onion_store/file/state": {
        "onion_store/pages", "onion_store/index", "onion_store/shared", "onion_store", "onion_store/disk", "base",
    },
    "onion_store/file/cuts": {
        "onion_store/pages", "onion_store/index", "onion_store/stage", "onion_store/shared", "onion_store",
        "onion_store/disk", "base",
    },
    "onion_store/file/pins": {
        "onion_store/file/cuts", "onion_store/pages", "onion_store/index", "onion_store/stage", "onion_store/shared",
        "onion_store", "onion_store/disk", "base",
    },
    "onion_store/file/writer": {
        "onion_store/file/cuts", "onion_store/pages", "onion_store/index", "onion_store/stage", "onion_store/shared",
        "onion_store", "onion_store/disk", "base",
    },
    "onion_store/file/apply": {
        "onion_store/file/pins", "onion_store/file/cuts", "onion_store/pages", "onion_store/index", "onion_store/stage",
        "onion_store/shared", "onion_store", "onion_store/disk", "base",
    },
    "onion_store/file/versions": {
        "onion_store/file/cuts", "onion_store/pages", "onion_store/index", "onion_store/stage", "onion_store/shared",
        "onion_store", "onion_store/disk", "base",
    },
    "onion_store/file": {
        "onion_store/file/**", "onion_store/jobs", "onion_store/pages", "onion_store/index", "onion_store/stage",
        "onion_store/shared", "onion_store", "onion_store/disk", "base",
    },
    "onion_store/store": {"onion_store/file", "onion_store/index", "onion_store/shared", "onion_store", "base"},
    # The store in a program, without a server.
    "onion_store/embedded": {"onion_store/store", "onion_store", "onion_store/disk", "base"},
    # Forms of an archive: of the store only the interface.
    "archive": {"onion_store", "base"},
    # The server loads it if its root is in CephFS.
    "ceph": {"base"},
    # Which server owns a cell. The module with Ceph's libraries is a folder of its own.
    "cluster": {"base"},
    "cluster/testing": {"cluster", "base"},
    "cluster/rados": {"cluster", "base"},
    "swmr_agent": {"rpc", "proto", "base"},
    "swmr_agent/testing": {"swmr_agent", "rpc", "proto", "base"},
    "server/settings": {"archive", "ceph", "cluster", "onion_store", "rpc", "proto", "base"},
    "server/state": {"onion_store", "rpc", "proto", "base"},
    # The store of a server that is one of several.
    "server/cluster": {
        "server/calls", "server/door", "server/state", "server/settings", "archive", "ceph", "cluster", "onion_store",
        "rpc", "proto", "base",
    },
    "server/door": {"server/settings", "onion_store", "rpc", "proto", "base"},
    "server/notify": {"server/settings", "rpc", "proto", "base"},
    "server/metrics": {"server/notify", "server/door", "server/state", "server/settings", "onion_store", "rpc", "proto", "base"},
    "server/quotas": {
        "server/metrics", "server/door", "server/state", "server/settings", "onion_store", "rpc", "proto", "base",
    },
    "server/calls": {
        "server/quotas", "server/metrics", "server/notify", "server/door", "server/state", "server/settings",
        "onion_store", "rpc", "proto", "base",
    },
    "server/history": {
        "archive", "server/quotas", "server/metrics", "server/notify", "server/state", "server/settings", "onion_store", "rpc",
        "proto", "base",
    },
    "server/mirror": {
        "server/history", "server/calls", "server/quotas", "server/metrics", "server/notify", "server/door",
        "server/state", "server/settings", "onion_store", "rpc", "proto", "base",
    },
    "server/live": {"server/calls", "server/state", "server/settings", "onion_store", "rpc", "proto", "base"},
    "server/services": {
        "archive", "server/history", "server/calls", "server/quotas", "server/notify", "server/door", "server/state",
        "server/settings", "onion_store", "rpc", "proto", "base",
    },
    "server/http": {
        "server/cluster", "server/live", "server/services", "server/calls", "server/door", "server/state",
        "server/settings", "cluster", "onion_store", "rpc", "proto", "base",
    },
    # The daemon, which puts the folders together.
    "server": {"server/**", "archive", "ceph", "cluster", "onion_store", "onion_store/embedded", "rpc", "proto", "base"},
    # The C faces between the plugin and the modules that it loads.
    "client_vfd/api": {"base"},
    # The state and the decisions of a writer's session: pure.
    "client_vfd/session/state": {"client_vfd/api", "base"},
    "client_vfd/session": {"client_vfd/session/state", "client_vfd/api", "rpc", "proto", "base"},
    "client_vfd/plugin/host": {"client_vfd/api", "client_vfd/include", "base"},
    "client_vfd/plugin/config": {"base"},
    "client_vfd/plugin/writes": {"client_vfd/plugin/host", "client_vfd/api", "base"},
    "client_vfd/plugin/modes": {
        "client_vfd/plugin/writes", "client_vfd/plugin/config", "client_vfd/plugin/host", "client_vfd/api",
        "base",
    },
    "client_vfd/plugin/metadata_buffer": {
        "client_vfd/plugin/modes", "client_vfd/plugin/writes", "client_vfd/plugin/host", "base",
    },
    "client_vfd/plugin/parallel": {
        "client_vfd/plugin/modes", "client_vfd/plugin/writes", "client_vfd/plugin/config", "client_vfd/plugin/host",
        "client_vfd/api",
    },
    "client_vfd/plugin/open": {
        "client_vfd/plugin/parallel", "client_vfd/plugin/metadata_buffer", "client_vfd/plugin/modes", "client_vfd/plugin/writes",
        "client_vfd/plugin/config", "client_vfd/plugin/host", "base",
    },
    "client_vfd/plugin": {"client_vfd/plugin/**", "base"},
    # The VOL connector: a plugin of its own, with the driver's dealings with its host.
    "client_vfd/connector": {"client_vfd/plugin/config", "client_vfd/plugin/host", "client_vfd/include", "base"},
    # The store in the program: a module of its own, loaded on demand.
    "client_vfd/embedded": {"client_vfd/**", "onion_store", "onion_store/embedded", "rpc", "base"},
    "client_vfd": {"client_vfd/**", "rpc", "proto", "base"},
    "cli/process": {"base"},
    "cli/output": {"rpc", "proto", "base"},
    "cli/context": {"cli/output", "cli/process", "rpc", "proto", "base"},
    "cli/login": {"cli/process", "rpc", "base"},
    "cli/exec": {"cli/context", "cli/output", "cli/process", "rpc", "proto", "base"},
    "sync": {"cli/context", "cli/output", "cli/process", "rpc", "proto", "base"},
    "cli/restore": {"base"},
    "cli/verbs": {
        "sync", "cli/exec", "cli/login", "cli/restore", "cli/context", "cli/output", "cli/process", "rpc", "proto", "base",
    },
    "cli": {"cli/**", "sync", "rpc", "proto", "base"},
    "hdf5": {"base"},
    "h5diff": {"cli/**", "sync", "hdf5", "rpc", "proto", "base"},
    # It loads the driver, and with it gRPC. So it must not use rpc itself.
    "h5restore": {"cli/restore", "client_vfd/include", "hdf5", "base"},
    # It mirrors edited files by the driver's own configuration.
    "h5edit": {
        "client_vfd/**", "sync", "cli/context", "cli/output", "cli/process", "hdf5", "rpc", "onion_store",
        "onion_store/embedded", "proto", "base",
    },
    "h5perf_serial": {"cli/process", "hdf5", "base"},
    # The part of h5perf_serial that links no HDF5 (h5m_h5perf_common).
    "h5perf": {"h5perf_serial", "cli/process", "hdf5", "base"},
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


def is_within(target, name):
    if not name.endswith("/**"):
        return target == name
    return (target + "/").startswith(name.removesuffix("**"))


def allowed_of(path, room):
    """A test may use every folder of its room, and of the rooms that its folder may use."""
    if not TEST.search(path):
        return ALLOWED[room]
    return {name.split("/", 1)[0] + "/**" for name in {room} | ALLOWED[room]}


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
