"""Exact reading of parts of arrays: by pread, so that a brick that cannot be decoded is an exception."""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Union

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = Union[int, slice, Sequence[int], NDArray[np.integer[Any]]]
    Selection = Union[Index, tuple[Index, ...]]

Box = Sequence[tuple[int, int]]
"""For each axis the first position, and the one after the last."""

_PAGE = 4096
_SPAN_MAX = 8 << 20
"""The longest range that is read for the sake of the parts in it, in bytes."""
_BLOCK_MAX = 64 << 20
"""About the largest part that is read at once where not all of it is wanted, in bytes."""
_READ_MAX = 1 << 30


class View:
    """A file that holds an array in C order, with one of its axes moved to the front."""

    def __init__(
        self,
        open_file: Callable[[], int],
        failed: Callable[[OSError], OSError],
        shape: Sequence[int],
        dtype: np.dtype[Any],
        axis: int = 0,
        convert: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    ) -> None:
        """Describe a file of samples of `dtype`. It is opened when it is first read; `shape` is that of the array.

        Errors pass through `failed`, and samples through `convert`.
        """
        self.axis = axis
        self._order = [axis, *(other for other in range(len(shape)) if other != axis)]
        self._shape = [shape[axis] for axis in self._order]
        self._dtype = dtype
        self._open_file = open_file
        self._failed = failed
        self._convert = convert
        self._file: _File | None = None
        self._lock = threading.Lock()

    def cost(self, box: Box) -> int:
        """Return about how many bytes have to be read for a box, calls and pages counted."""
        turned = [box[axis] for axis in self._order]
        outer, span = _plan(self._shape, self._dtype.itemsize, turned)
        return math.prod(stop - start for start, stop in turned[:outer]) * (span + 2 * _PAGE)

    def read(self, box: Box) -> NDArray[Any]:
        """Read a box, in the order of the array's axes. Raises OSError if any byte of it cannot be read."""
        try:
            block = self._read_turned([box[axis] for axis in self._order])
        except OSError as error:
            raise self._failed(error) from error
        if self._convert is not None:
            block = self._convert(block)
        return np.ascontiguousarray(np.moveaxis(block, 0, self.axis))

    def close(self) -> None:
        """Close the file, as soon as no other thread reads it."""
        with self._lock:
            self._file = None

    def _opened(self) -> _File:
        with self._lock:
            if self._file is None:
                self._file = _File(self._open_file(), math.prod(self._shape) * self._dtype.itemsize)
            return self._file

    def _read_turned(self, box: Box) -> NDArray[Any]:
        file = self._opened()
        itemsize = self._dtype.itemsize
        strides = _strides(self._shape, itemsize)
        counts = [stop - start for start, stop in box]
        outer, span = _plan(self._shape, itemsize, box)
        out = np.empty(counts, self._dtype)
        contiguous = span == math.prod(counts[outer:]) * itemsize
        scratch = out if contiguous else np.empty(span, np.uint8)
        for position in itertools.product(*(range(count) for count in counts[:outer])):
            offset = sum((box[axis][0] + index) * strides[axis] for axis, index in enumerate(position))
            offset += sum(box[axis][0] * strides[axis] for axis in range(outer, len(box)))
            if contiguous:
                file.read(out[position].reshape(-1).view(np.uint8), offset)
            else:
                file.read(scratch, offset)
                out[position] = np.ndarray(counts[outer:], self._dtype, scratch, strides=strides[outer:])
        return out


class _File:
    """An open file, which ends in the samples; closed with the last reference to it."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._header = os.fstat(descriptor).st_size - size

    def __del__(self) -> None:
        os.close(self._descriptor)

    def read(self, into: NDArray[np.uint8], offset: int) -> None:
        """Fill a contiguous array with the bytes from an offset on."""
        buffer = into.data
        done = 0
        while done < len(buffer):
            n = os.preadv(self._descriptor, [buffer[done : done + _READ_MAX]], self._header + offset + done)
            if n == 0:
                raise OSError(5, "the file ends early")
            done += n


def _strides(shape: Sequence[int], itemsize: int) -> list[int]:
    return [math.prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape))]


def _plan(shape: Sequence[int], itemsize: int, box: Box) -> tuple[int, int]:
    """Return how a box is read: the number of leading axes to loop over, and the bytes of each range to read.

    Ranges with less than a page between them are read as one: every page of it is needed anyway.
    """
    strides = _strides(shape, itemsize)
    span = itemsize
    for axis in reversed(range(len(shape))):
        count = box[axis][1] - box[axis][0]
        gap = strides[axis] - span
        longer = (count - 1) * strides[axis] + span
        if count > 1 and (gap >= _PAGE or (gap > 0 and longer > _SPAN_MAX)):
            return axis + 1, span
        span = longer
    return 0, span


class _Part(NamedTuple):
    """Neighbouring positions of an axis, read together: which of them are wanted, and where they go."""

    start: int
    stop: int
    take: NDArray[np.intp]
    put: NDArray[np.intp]


@dataclass
class _AxisSelection:
    """What is wanted of an axis: `whole` if that is one range without gaps."""

    parts: list[_Part]
    count: int
    whole: bool
    scalar: bool


def read_selection(
    views: Sequence[View], dtype: np.dtype[Any], shape: Sequence[int], bricks: Sequence[int], selection: Selection
) -> NDArray[Any]:
    """Read for each axis an index, a slice, or an array of indices (which select rows, columns, ... independently).

    The first of `views` is preferred; another is read where the selection is much less scattered in it. Raises
    IndexError for positions that do not exist.
    """
    keys = _keys(selection, len(shape))
    axes = [_axis_selection(key, size, brick) for key, size, brick in zip(keys, shape, bricks)]
    counts = [axis.count for axis in axes]
    if 0 in counts:
        out = np.empty(counts, dtype)
    elif all(axis.whole for axis in axes):
        out = _read_box(views, [axis.parts[0][:2] for axis in axes])
    else:
        out = np.empty(counts, dtype)
        rest = math.prod(max(part.stop - part.start for part in axis.parts) for axis in axes[1:]) * dtype.itemsize
        axes[0].parts = _split(axes[0].parts, max(1, _BLOCK_MAX // rest))
        for parts in itertools.product(*(axis.parts for axis in axes)):
            block = _read_box(views, [part[:2] for part in parts])
            out[np.ix_(*(part.put for part in parts))] = block[np.ix_(*(part.take for part in parts))]
    return out.reshape([axis.count for axis in axes if not axis.scalar])


def box_of(shape: Sequence[int], selection: Selection) -> Box:
    """Return the box that a selection is. Raises IndexError if it is none, or empty."""
    axes = [_axis_selection(key, size, size) for key, size in zip(_keys(selection, len(shape)), shape)]
    if not all(axis.whole for axis in axes):
        raise IndexError("a box has neighbouring positions of each axis, in ascending order, and at least one")
    return [axis.parts[0][:2] for axis in axes]


def _read_box(views: Sequence[View], box: Box) -> NDArray[Any]:
    best = min(views, key=lambda view: view.cost(box))
    # The same pages for all readers, unless it costs too much.
    return (views[0] if views[0].cost(box) <= 2 * best.cost(box) else best).read(box)


def _keys(selection: Selection, axes: int) -> list[Index]:
    given: list[Any] = list(selection) if isinstance(selection, tuple) else [selection]
    if any(key is Ellipsis for key in given):
        at = next(n for n, key in enumerate(given) if key is Ellipsis)
        given[at : at + 1] = [slice(None)] * (axes - len(given) + 1)
    if len(given) > axes:
        raise IndexError(f"{len(given)} indices for an array of {axes} axes")
    return given + [slice(None)] * (axes - len(given))


def _axis_selection(key: Index, size: int, brick: int) -> _AxisSelection:
    if isinstance(key, slice):
        wanted = np.arange(size)[key]
    else:
        wanted = np.asarray(key)
        if wanted.size == 0:
            wanted = wanted.astype(np.intp)
        if wanted.dtype.kind not in "iu" or wanted.ndim > 1:
            raise IndexError("an index is a whole number, a slice, or an array of whole numbers with one axis")
        if wanted.size and not (-size <= wanted.min() and wanted.max() < size):
            raise IndexError(f"an index is out of range for an axis of {size} positions")
        wanted = np.where(wanted < 0, wanted + size, wanted)
    scalar = wanted.ndim == 0
    wanted = wanted.reshape(-1).astype(np.intp)
    count = len(wanted)
    if count and (np.diff(wanted) == 1).all():
        return _AxisSelection([_part(wanted, np.arange(count))], count, True, scalar)
    order = np.argsort(wanted, kind="stable")
    # Where a whole brick is left out, nothing needs to decode it.
    gaps = np.flatnonzero(np.diff(wanted[order]) > brick) + 1
    parts = [_part(wanted[put], put) for put in np.split(order, gaps)] if count else []
    return _AxisSelection(parts, count, False, scalar)


def _part(wanted: NDArray[np.intp], put: NDArray[np.intp]) -> _Part:
    start = int(wanted[0])
    return _Part(start, int(wanted[-1]) + 1, wanted - start, put)


def _split(parts: list[_Part], longest: int) -> list[_Part]:
    split = []
    for part in parts:
        at = part.take // longest
        groups = [np.flatnonzero(at == group) for group in np.unique(at)]
        split += [_part(part.start + part.take[group], part.put[group]) for group in groups]
    return split
