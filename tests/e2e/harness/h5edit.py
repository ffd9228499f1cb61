"""h5edit on the file of the examples: its fixture, its runs, and what a file holds."""

import os
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

from . import hdf5, paths
from .process import Result, run

D1 = "/g1/g1.1/dset1.1.1"
NINE = "".join(f"CREATE GROUP / i{n} {{H5T_STD_I32BE (1,2,3) {{11,12,21,22,31,{n}}}}};\n" for n in range(8)) + \
    "CREATE GROUP / f {H5T_IEEE_F64LE (2,2,2) {0.1E1, 0.2E1, -1.1e2, -1.2e2, 2.1E-3, 2.2E-3, -3.1E-3, -3.2E-2}};\n"


def _attribute(owner, name: str, values, h5type) -> None:
    data = np.asarray(values)
    space = h5py.h5s.create_simple(data.shape)
    h5py.h5a.create(owner.id, name.encode(), h5type, space).write(data)


def make_fixture(path: Path, libver="earliest") -> Path:
    """The tree that the examples call F."""
    i8, i32 = h5py.h5t.STD_I8BE, h5py.h5t.STD_I32BE
    with h5py.File(path, "w", libver=libver) as f:
        _attribute(f, "attr1", np.array([*range(97, 106), 0], "i1"), i8)
        _attribute(f, "attr2", np.array([[0, 1], [2, 3]], "i4"), i32)
        for group in ("/g1/g1.1", "/g1/g1.2/g1.2.1", "/g2"):
            f.create_group(group)
        d = f.create_dataset(D1, data=np.outer(np.arange(10), np.arange(10)).astype(">i4"))
        for name, text in (("attr1", b"1st attribute of dset1.1.1\0"), ("attr2", b"2nd attribute of dset1.1.1\0")):
            _attribute(d, name, np.frombuffer(text, "i1"), i8)
        f.create_dataset("/g1/g1.1/dset1.1.2", data=np.arange(20).astype(">i4"))
        f["/g1/g1.2/extlink"] = h5py.ExternalLink("somefile", "somepath")
        f["/g1/g1.2/g1.2.1/slink"] = h5py.SoftLink("somevalue")
        f.create_dataset("/g2/dset2.1", data=(1 + np.arange(10) / 10).astype(">f4"))
        f.create_dataset("/g2/dset2.2", data=np.zeros((3, 5), ">f4"))
    return path


def content(path: Path) -> dict:
    """All that a file holds: (object, attribute or "") -> type, shape, bytes."""
    held = {}

    def note(name, thing):
        for key in thing.attrs:
            attribute = thing.attrs.get_id(key)
            raw = np.empty(attribute.shape or (), attribute.dtype) if attribute.shape is not None else None
            if raw is not None:
                attribute.read(raw)
            value = None if raw is None else raw.tolist() if raw.dtype.hasobject else raw.tobytes()
            held[name, key] = (attribute.get_type().encode(), attribute.shape, value)
        if isinstance(thing, h5py.Dataset):
            held[name, ""] = (thing.dtype.str, thing.shape, thing[()].tobytes())
        elif isinstance(thing, h5py.Datatype):
            held[name, ""] = thing.id.encode()
        else:
            held[name, ""] = sorted(thing)

    with h5py.File(path, "r") as f:
        note("/", f)
        f.visititems(lambda name, thing: note("/" + name, thing))
    return held


def changed(before: dict, after: dict) -> set:
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def ddl(path: Path) -> str:
    """h5dump's text of attributes, in single blanks."""
    return " ".join(hdf5.dump(path, "-A").decode().split())


def command(*words) -> list:
    return [paths.BIN / "h5edit", *words]


def h5edit(directory: Path, *words, timeout: float = 60, **env: str) -> Result:
    return run(command(*words), directory, cwd=directory, timeout=timeout, name="h5edit", env=hdf5.plain_env(**env))


def bound(directory: Path) -> list:
    """A prefix of a command: it then runs under the modes of files and directories, which do not bind root."""
    if os.geteuid() != 0:
        return []
    words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if run([*words, "true"], directory, name="setpriv").code != 0:
        pytest.skip("root cannot give up its rights here (setpriv --bounding-set)")
    return words


def bound_h5edit(directory: Path, *words) -> Result:
    return run([*bound(directory), *command(*words)], directory, cwd=directory, timeout=60, name="h5edit",
               env=hdf5.plain_env())


def backup(file: Path) -> Path:
    return file.parent / f".{file.name}.bck"


def nothing_beside(file: Path) -> bool:
    """Neither a back-up nor a journal."""
    return not (backup(file).exists() or Path(f"{file}.h5m").exists())


def pipe(directory: Path, script: str, *words) -> subprocess.CompletedProcess:
    """With the script on standard input."""
    return subprocess.run([str(w) for w in command(*words)], cwd=directory, input=script, text=True, timeout=60,
                          capture_output=True, env=hdf5.plain_env())
