"""The part of an HDF5 file that the adapter for tiled serves. Used under no lock but h5py's own.

Nothing is served that lies in another file: it would be a file of the machine where tiled runs. So no external links are
followed, and no virtual datasets or those with external storage are read.
"""

from typing import Any

import h5py
import numpy
from tiled.structures.array import ArrayStructure

# Soft links that lead on to others.
_LINKS_MAX = 16
# Elements of a dataset of text of any length: tiled wants the longest one's size with the structure, so all are read.
_TEXTS_MAX = 10_000
# Bytes of a block of an array, about. Chunks are put together to that.
_BLOCK = 16 << 20


def walk(h5: h5py.File, path: tuple[str, ...]) -> Any:
    """The group or dataset at a path. KeyError: no served object is there."""
    here: Any = h5["/"]
    above = [here]
    for key in path:
        here = _follow(h5, here, key, 0)
        if here in above:  # A tree without end.
            raise KeyError(key)
        above.append(here)
    return here


def member(h5: h5py.File, path: tuple[str, ...], key: str) -> Any:
    """A member of a group. KeyError: no served object is there."""
    found = walk(h5, (*path, key))
    if isinstance(found, h5py.Group) or (isinstance(found, h5py.Dataset) and _is_served(found)):
        return found
    raise KeyError(key)


def keys_of(h5: h5py.File, path: tuple[str, ...]) -> list[str]:
    """The members of a group that are served."""
    out = []
    for key in walk(h5, path):
        try:
            member(h5, path, key)
        except KeyError:
            continue
        out.append(key)
    return out


def _follow(h5: h5py.File, group: Any, key: str, depth: int) -> Any:
    """A member of a group, through soft links. KeyError: none, a broken link, or one into another file."""
    link = group.get(key, getlink=True) if isinstance(group, h5py.Group) and key not in ("", ".") and "/" not in key else None
    if isinstance(link, h5py.HardLink):
        return group[key]
    if not isinstance(link, h5py.SoftLink) or depth == _LINKS_MAX:
        raise KeyError(key)
    here = h5["/"] if link.path.startswith("/") else group
    for each in link.path.split("/"):
        if each not in ("", "."):
            here = _follow(h5, here, each, depth + 1)
    return here


def _is_served(dataset: h5py.Dataset) -> bool:
    if dataset.shape is None or dataset.is_virtual or dataset.external is not None:
        return False
    if _is_text(dataset):
        return bool(dataset.size <= _TEXTS_MAX)
    return not dataset.dtype.hasobject and _has_structure(dataset.dtype)


def _is_text(dataset: h5py.Dataset) -> bool:
    return dataset.dtype.hasobject and h5py.check_string_dtype(dataset.dtype) is not None


def _has_structure(dtype: Any) -> bool:
    try:
        ArrayStructure.from_array(_Shape((), dtype, None))
    except (KeyError, ValueError):  # tiled knows no such type.
        return False
    return True


class _Shape:
    """The facts of an array that tiled needs for its structure. Reads no data."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, chunks: Any) -> None:
        self.shape, self.dtype, self.chunks = shape, dtype, chunks

    def __array__(self) -> Any:
        raise TypeError("is not read")


def structure_of(dataset: h5py.Dataset) -> ArrayStructure:
    """Shape, type and blocks of a dataset that is served."""
    dtype = read(dataset, ()).dtype if _is_text(dataset) else dataset.dtype
    return ArrayStructure.from_array(_Shape(dataset.shape, dtype, _blocks(dataset, dtype)))


def _blocks(dataset: h5py.Dataset, dtype: Any) -> Any:
    """Of some chunks each; None: as tiled parts an array without chunks."""
    if dataset.chunks is None or dataset.size == 0:
        return None
    import dask.array.core

    normalize: Any = dask.array.core.normalize_chunks  # Without types in the versions that have none.
    return normalize("auto", shape=dataset.shape, dtype=dtype, limit=_BLOCK, previous_chunks=dataset.chunks)


def read(dataset: h5py.Dataset, index: Any) -> Any:
    """The elements of an index of integers, slices and "...", as numpy takes it; no others are fetched.

    Text of any length becomes bytes of the longest one's length, as in tiled's own adapter for HDF5.
    """
    if _is_text(dataset):
        texts = numpy.asarray(dataset[()], dtype=bytes)
        return (texts if texts.dtype.itemsize else texts.astype("S1"))[_tuple(index)]
    forwards: list[Any] = []
    turns: list[slice] = []
    for axis, each in _numbered(_tuple(index), dataset.ndim):
        if isinstance(each, slice) and each.step is not None and each.step < 0:  # HDF5 reads forwards only.
            numbers = range(*each.indices(dataset.shape[axis]))
            forwards.append(slice(numbers[-1], numbers[0] + 1, -each.step) if numbers else slice(0, 0))
            turns.append(slice(None, None, -1))
        else:
            forwards.append(each)
            turns.extend([slice(None)] if isinstance(each, slice) else [])
    return numpy.asarray(dataset[tuple(forwards)])[tuple(turns)]


def _tuple(index: Any) -> tuple[Any, ...]:
    return tuple(index) if isinstance(index, tuple) else (index,)


def _numbered(index: tuple[Any, ...], ndim: int) -> list[tuple[int, Any]]:
    """Each part of an index with its axis, and with slices for "..."."""
    if Ellipsis not in index:
        index = (*index, Ellipsis)
    at = index.index(Ellipsis)
    before, behind = index[:at], index[at + 1:]
    between = (slice(None),) * (ndim - len(before) - len(behind))
    return list(enumerate((*before, *between, *behind)))


def attributes(item: Any) -> dict[str, Any]:
    """Those that JSON can hold."""
    out = {}
    for key in item.attrs:
        try:
            value = _plain(item.attrs[key])
        except (OSError, TypeError, ValueError):  # Of a type that h5py or JSON does not know.
            continue
        out[key] = value
    return out


def _plain(value: Any) -> Any:
    """TypeError: JSON has no such value."""
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        if value.dtype.fields is not None:
            raise TypeError("a compound")
        return _plain(value.tolist())
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(type(value).__name__)
