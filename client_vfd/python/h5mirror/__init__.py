"""h5mirror for h5py: live mirrors and versions of HDF5 files.

    import h5py, h5mirror

    with h5py.File("run7.h5", "a", driver="h5mirror", server="node7:7447") as f:
        f["temperature"][:] = 21.5
        h5mirror.commit(f, "calibrated")

    for version in h5mirror.versions("h5mirror://node7:7447/lab1/data/run7.h5"):
        print(version.number, version.time, version.comment)

    with h5mirror.open("h5mirror://node7:7447/lab1/data/run7.h5@latest-1") as f:
        print(f["temperature"][:])

    for f in h5mirror.follow("h5mirror://node7:7447/lab1/data/run7.h5"):  # as it is written
        print(f["temperature"][-1])

    for event in h5mirror.events("h5mirror://node7:7447/lab1/data/run7.h5"):  # its cuts and versions
        print(event.cut, event.version)

    with h5mirror.ticks(0.1):  # readers see a program that computes and does not flush
        simulate(f)

Importing it registers the driver with h5py, before or after h5py itself was imported and used.
docs/reference/python.md has more.
"""

from ._places import let_hdf5_find_plugin

let_hdf5_find_plugin()  # Before anything imports h5py.

# ruff: noqa: E402
from ._control import NotMirroredWarning, Status, commit, status
from ._driver import register
from ._events import Event, events
from ._follow import follow
from ._forks import fork, promote
from ._open import open  # noqa: A004
from ._restore import LostReference, Restored, restore
from ._ticks import Ticks, ticks
from ._url import Url
from ._versions import Version, versions

__all__ = ["Event", "LostReference", "NotMirroredWarning", "Restored", "Status", "Ticks", "Url", "Version", "commit", "events",
           "follow", "fork", "open", "promote", "restore", "status", "ticks", "versions"]
__version__ = "0.1.0"

register()
