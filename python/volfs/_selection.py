"""Selections of an array by lists, masks, numbers and slices, independently along each axis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from types import EllipsisType

    from numpy.typing import NDArray

    from . import _volfs

    Index: TypeAlias = int | slice | EllipsisType | Sequence[int] | Sequence[bool] | NDArray[np.integer[Any] | np.bool_]
    Selection: TypeAlias = Index | tuple[Index, ...]

_BLOCK_MAX = 64 << 20
"""About the most that is read at once where not all of it is wanted, in bytes."""


class _Part(NamedTuple):
    """Neighbouring positions of an axis, read together: which of them are wanted, and where they go."""

    box: slice
    take: NDArray[np.intp]
    put: NDArray[np.intp]


class _Axis(NamedTuple):
    """What is wanted of an axis."""

    parts: list[_Part]
    length: int
    is_kept: bool


def select(array: _volfs.Array, selection: Selection) -> NDArray[Any]:
    """Read for each axis an index, a slice, a mask, or a list of indices, of any order.

    Raises IndexError for positions that do not exist.
    """
    keys = _keys(selection, array.ndim)
    if all(isinstance(key, slice) or _is_number(key) for key in keys):
        return array[tuple(keys)]
    axes = [_axis(*about) for about in zip(keys, array.shape, array.chunks, strict=True)]
    out = np.empty([axis.length for axis in axes], array.dtype)
    if out.size:
        rest = math.prod(_longest(axis.parts) for axis in axes[1:]) * out.itemsize
        split = _split(axes[0].parts, max(1, _BLOCK_MAX // rest))
        batches = _batches([split, *(axis.parts for axis in axes[1:])], max(1, _BLOCK_MAX // (_longest(split) * rest)))
        for batch in batches:
            # bricks that several boxes have are decoded once
            blocks = array.read_many([tuple(part.box for part in parts) for parts in batch])
            for parts, block in zip(batch, blocks, strict=True):
                out[np.ix_(*(part.put for part in parts))] = block[np.ix_(*(part.take for part in parts))]
    return out.reshape([axis.length for axis in axes if axis.is_kept])


def box_of(shape: Sequence[int], selection: Selection) -> list[tuple[int, int]]:
    """Return for each axis the first position of a box, and the one after the last.

    Raises IndexError if the selection is no box, or empty.
    """
    box = []
    for key, size in zip(_keys(selection, len(shape)), shape, strict=True):
        if isinstance(key, slice):
            chosen = range(size)[key]
            is_run = len(chosen) > 0 and (chosen.step == 1 or len(chosen) == 1)
        else:
            axis = _axis(key, size, size)
            whole = np.arange(axis.length)
            is_run = len(axis.parts) == 1 and all(np.array_equal(whole, order) for order in axis.parts[0][1:])
            chosen = range(axis.parts[0].box.start, axis.parts[0].box.stop) if is_run else range(0)
        if not is_run:
            raise IndexError("a box has neighbouring positions of each axis, in ascending order, and at least one")
        box.append((chosen[0], chosen[-1] + 1))
    return box


def _is_number(key: object) -> bool:
    return isinstance(key, int | np.integer) and not isinstance(key, bool)


def _keys(selection: Selection, axes: int) -> list[Any]:
    given: list[Any] = list(selection) if isinstance(selection, tuple) else [selection]
    if any(key is Ellipsis for key in given):
        at = next(n for n, key in enumerate(given) if key is Ellipsis)
        given[at : at + 1] = [slice(None)] * (axes - len(given) + 1)
    if len(given) > axes:
        raise IndexError(f"{len(given)} indices for an array of {axes} axes")
    return given + [slice(None)] * (axes - len(given))


def _axis(key: Any, size: int, brick: int) -> _Axis:
    if isinstance(key, slice):
        wanted = np.arange(size)[key]
    else:
        wanted = np.asarray(key)
        if wanted.dtype == bool and wanted.shape == (size,):
            wanted = np.flatnonzero(wanted)
        if wanted.size == 0:
            wanted = wanted.astype(np.intp)
        if wanted.dtype.kind not in "iu" or wanted.ndim > 1:
            raise IndexError(
                f"an index is a whole number, a slice, a list of whole numbers, or a mask of {size} positions"
            )
        if wanted.size and not (-size <= wanted.min() and wanted.max() < size):
            raise IndexError(f"an index is out of range for an axis of {size} positions")
        # small types of integers may not hold the size
        wanted = wanted.astype(np.intp)
        wanted = np.where(wanted < 0, wanted + size, wanted)
    is_kept = wanted.ndim > 0
    wanted = wanted.reshape(-1)
    order = np.argsort(wanted, kind="stable")
    # Where a whole brick is left out, nothing needs to decode it.
    gaps = np.flatnonzero(np.diff(wanted[order]) > brick) + 1
    parts = [_part(wanted[put], put) for put in np.split(order, gaps)] if wanted.size else []
    return _Axis(parts, len(wanted), is_kept)


def _part(wanted: NDArray[np.intp], put: NDArray[np.intp]) -> _Part:
    start = int(wanted[0])
    return _Part(slice(start, int(wanted[-1]) + 1), wanted - start, put)


def _longest(parts: list[_Part]) -> int:
    return max(int(part.take[-1]) + 1 for part in parts)


def _split(parts: list[_Part], longest: int) -> list[_Part]:
    """Return parts of at most so many positions."""
    split = []
    for part in parts:
        at = part.take // longest
        groups = [np.flatnonzero(at == group) for group in np.unique(at)]
        split += [_part(part.box.start + part.take[group], part.put[group]) for group in groups]
    return split


def _batches(parts: list[list[_Part]], length: int) -> Iterator[list[tuple[_Part, ...]]]:
    boxes = itertools.product(*parts)
    while batch := list(itertools.islice(boxes, length)):
        yield batch
