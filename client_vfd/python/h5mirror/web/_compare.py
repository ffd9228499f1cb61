"""The elements in which one dataset of two versions differs: how many, where, and the first of them. Runs in a worker."""

from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

BLOCK_MAX = 32 << 20
"""Bytes of each version that are compared at once."""
_OBJECTS_MAX = 100_000
_ROWS_MAX = _COLUMNS_MAX = 64
_ALONE_MAX = 128
_VALUES_MAX = 20
_TEXT_MAX = 200


class CannotCompare(Exception):
    """For people."""


@dataclass(frozen=True)
class Block:
    """A part of a dataset."""

    offset: tuple[int, ...]
    extent: tuple[int, ...]

    @property
    def selection(self) -> tuple[slice, ...]:
        return tuple(slice(at, at + count) for at, count in zip(self.offset, self.extent, strict=True))

    @property
    def elements(self) -> int:
        return int(np.prod(self.extent, dtype=object)) if self.extent else 1


def compare(old: h5py.Dataset, new: h5py.Dataset, block: Block | None) -> dict[str, Any]:
    """How a block differs; None: all that both have. `is_whole` is false, and nothing is compared, where that is too large.

    Errors: CannotCompare; those of h5py.
    """
    if old.shape is None or new.shape is None or len(old.shape) != len(new.shape):
        raise CannotCompare("the two have another number of dimensions")
    if old.dtype != new.dtype:
        raise CannotCompare(f"the type was {old.dtype} and is {new.dtype}")
    common = tuple(min(pair) for pair in zip(old.shape, new.shape, strict=True))
    told: dict[str, Any] = {"old_shape": list(old.shape), "shape": list(new.shape), "compared": list(common), "is_whole": True,
                            "differing": 0, "grid": None, "values": []}
    whole = Block((0,) * len(common), common)
    if block is None:
        if not _is_small(old, whole):
            return {**told, "is_whole": False}
        block = whole
    elif not _is_small(old, block := _clipped(block, common)):
        raise CannotCompare(f"a block has at most {BLOCK_MAX >> 20} MiB")
    if block.elements == 0:
        return told
    one, other = np.asarray(old[block.selection]), np.asarray(new[block.selection])
    mask = _differing(one, other)
    return {**told, "is_whole": block == whole, "differing": int(mask.sum()), "grid": _grid(mask),
            "values": _values(mask, one, other, block.offset)}


def _is_small(dataset: h5py.Dataset, block: Block) -> bool:
    most = _OBJECTS_MAX if dataset.dtype.hasobject else BLOCK_MAX // max(1, dataset.dtype.itemsize)
    return block.elements <= most


def _clipped(block: Block, shape: tuple[int, ...]) -> Block:
    if len(block.offset) != len(shape) or len(block.extent) != len(shape) or min((*block.offset, *block.extent, 0)) < 0:
        raise CannotCompare(f"the block has other dimensions than the {len(shape)} of the dataset")
    offset = tuple(min(at, count) for at, count in zip(block.offset, shape, strict=True))
    return Block(offset, tuple(min(extent, count - at) for at, extent, count in zip(offset, block.extent, shape, strict=True)))


def _differing(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of bytes, so that a NaN equals itself; of texts and other objects by value."""
    if one.dtype.hasobject:
        pairs = zip(one.reshape(-1), other.reshape(-1), strict=True)
        return np.fromiter((_text(a) != _text(b) for a, b in pairs), bool, one.size).reshape(one.shape)
    size = one.dtype.itemsize
    if size == 0:
        return np.zeros(one.shape, bool)
    a, b = (np.ascontiguousarray(each).reshape(-1).view(np.uint8).reshape(-1, size) for each in (one, other))
    return np.asarray((a != b).any(axis=1)).reshape(one.shape)


def _grid(mask: np.ndarray[Any, Any]) -> list[list[float]] | None:
    """The part of the elements that differ in each cell; None: there is one element alone."""
    if mask.ndim == 0:
        return None
    flat = mask.reshape(1, 1, -1) if mask.ndim == 1 else mask.reshape(mask.shape[0], -1, mask.shape[-1])
    rows = _edges(flat.shape[0], _ROWS_MAX)
    columns = _edges(flat.shape[2], _ALONE_MAX if mask.ndim == 1 else _COLUMNS_MAX)
    counts = np.add.reduceat(np.add.reduceat(flat.sum(axis=1, dtype=np.int64), rows, axis=0), columns, axis=1)
    sizes = np.outer(np.diff([*rows, flat.shape[0]]), np.diff([*columns, flat.shape[2]])) * flat.shape[1]
    # A cell of many in which one differs is not told as one without.
    return [[float(np.ceil(cell * 1000) / 1000) for cell in row] for row in counts / sizes]


def _edges(length: int, most: int) -> list[int]:
    """Where cells begin, of a length above 0."""
    count = min(length, most)
    return [cell * length // count for cell in range(count)]


def _values(mask: np.ndarray[Any, Any], one: np.ndarray[Any, Any], other: np.ndarray[Any, Any],
            offset: tuple[int, ...]) -> list[dict[str, Any]]:
    found = []
    for at in np.flatnonzero(mask)[:_VALUES_MAX]:
        index = np.unravel_index(at, mask.shape) if mask.ndim else ()
        found.append({"index": [int(place) + begin for place, begin in zip(index, offset, strict=True)],
                      "old": _text(one[index]), "new": _text(other[index])})
    return found


def _text(value: Any) -> str:
    """As a person reads it, without the name of its type."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    elif isinstance(value, np.generic) and value.dtype.names is None:
        value = value.item()
    return str(value)[:_TEXT_MAX]
