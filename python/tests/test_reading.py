"""Selections of an array in files, against what NumPy selects."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from volfs import _reading
from volfs._reading import View, read_selection

SHAPE = (9, 40, 700)
BRICKS = (4, 8, 64)


def failed(error: OSError) -> OSError:
    return OSError(error.errno, "failed")


def view_of(array: NDArray[Any], path: Path, axis: int = 0, header: bytes = b"header") -> View:
    path.write_bytes(header + np.moveaxis(array, axis, 0).tobytes())
    return View(lambda: os.open(path, os.O_RDONLY), failed, array.shape, array.dtype, axis)


@pytest.fixture
def array() -> NDArray[np.uint16]:
    return np.arange(np.prod(SHAPE), dtype=np.uint16).reshape(SHAPE)


def some_index(random: random.Random, size: int) -> Any:
    start, stop, step = (
        random.randrange(-size, size),
        random.randrange(-size, size),
        random.choice([1, 1, 2, 7, -1, -3]),
    )
    indices = [random.randrange(-size, size) for _ in range(random.randrange(6))]
    return random.choice(
        [slice(None), slice(start, stop), slice(start, stop, step), start, indices, np.array(indices, int)]
    )


def selected(array: NDArray[Any], keys: list[Any]) -> NDArray[Any]:
    """Select independently along each axis."""
    for axis in reversed(range(len(keys))):
        array = np.take(array, np.arange(array.shape[axis])[keys[axis]], axis)
    return array


@pytest.mark.parametrize("turned", [[], [1, 2]])
@pytest.mark.parametrize("limits", [(4096, 8 << 20, 64 << 20), (1, 1, 1), (512, 3000, 20000)])
def test_selections_are_those_of_numpy(
    array: NDArray[np.uint16],
    tmp_path: Path,
    turned: list[int],
    limits: tuple[int, int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, limit in zip(["_PAGE", "_SPAN_MAX", "_BLOCK_MAX"], limits):
        monkeypatch.setattr(_reading, name, limit)
    monkeypatch.setattr(_reading, "_READ_MAX", 1001)
    views = [view_of(array, tmp_path / str(axis), axis) for axis in [0, *turned]]
    choice = random.Random(1)
    for _ in range(150):
        keys = [some_index(choice, size) for size in SHAPE]
        read = read_selection(views, array.dtype, SHAPE, BRICKS, tuple(keys))
        assert np.array_equal(read, selected(array, keys)), keys
        assert read.shape == selected(array, keys).shape


def test_a_selection_may_leave_axes_out(array: NDArray[np.uint16], tmp_path: Path) -> None:
    views = [view_of(array, tmp_path / "0")]

    def read(selection: Any) -> NDArray[Any]:
        return read_selection(views, array.dtype, SHAPE, BRICKS, selection)

    assert np.array_equal(read(()), array) and np.array_equal(read(3), array[3])
    assert np.array_equal(read((..., 5)), array[..., 5]) and np.array_equal(read((1, ..., 5)), array[1, :, 5])
    assert np.array_equal(read(...), array)
    for selection in [(0, 0, 0, 0), 9, -10, ([0, 40],), 1.5, ([[1]],), "a"]:
        with pytest.raises(IndexError):
            read(selection)


def test_a_slice_is_read_where_it_is_contiguous(array: NDArray[np.uint16], tmp_path: Path) -> None:
    reads: list[int] = []

    def counted(axis: int) -> View:
        view = view_of(array, tmp_path / str(axis), axis)
        read = view.read
        view.read = lambda box: (reads.append(axis), read(box))[1]  # type: ignore[method-assign,func-returns-value]
        return view

    views = [counted(axis) for axis in range(3)]
    for selection, axis in [((4,), 0), ((slice(None), slice(None), 4), 2), ((slice(2, 4), 4), 0)]:
        reads.clear()
        read_selection(views, array.dtype, SHAPE, BRICKS, selection)
        assert reads == [axis], selection


def test_bricks_that_are_not_wanted_are_not_read(array: NDArray[np.uint16], tmp_path: Path) -> None:
    view = view_of(array, tmp_path / "0")
    boxes: list[Any] = []
    read = view.read
    view.read = lambda box: (boxes.append(list(box)), read(box))[1]  # type: ignore[method-assign,func-returns-value]
    read_selection([view], array.dtype, SHAPE, BRICKS, ([8, 0, 1], slice(0, 3), [10, 600]))
    assert boxes == [
        [(0, 2), (0, 3), (10, 11)],
        [(0, 2), (0, 3), (600, 601)],
        [(8, 9), (0, 3), (10, 11)],
        [(8, 9), (0, 3), (600, 601)],
    ]


def test_ranges_with_no_page_between_them_are_read_as_one(
    array: NDArray[np.uint16], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = view_of(array, tmp_path / "0")
    reads: list[int] = []
    read = _reading._File.read

    def counted(file: _reading._File, into: NDArray[np.uint8], offset: int) -> None:
        reads.append(len(into))
        read(file, into, offset)

    monkeypatch.setattr(_reading._File, "read", counted)
    for box, lengths in [
        ([(0, 2), (0, 40), (0, 690)], [2 * 40 * 1400 - 20]),
        ([(0, 2), (0, 3), (0, 690)], [3 * 1400 - 20] * 2),
        ([(0, 9), (0, 40), (0, 700)], [array.nbytes]),
    ]:
        reads.clear()
        assert np.array_equal(view.read(box), array[tuple(slice(*ends) for ends in box)])
        assert reads == lengths


def test_a_file_that_ends_early_is_an_error(array: NDArray[np.uint16], tmp_path: Path) -> None:
    view = view_of(array, tmp_path / "0")
    read_selection([view], array.dtype, SHAPE, BRICKS, (0, 0, 0))
    os.truncate(tmp_path / "0", 1000)
    with pytest.raises(OSError, match="failed"):
        read_selection([view], array.dtype, SHAPE, BRICKS, (8,))


def test_a_closed_file_is_opened_again(array: NDArray[np.uint16], tmp_path: Path) -> None:
    path = tmp_path / "0"
    opened: list[int] = []
    view_of(array, path)

    def open_file() -> int:
        opened.append(os.open(path, os.O_RDONLY))
        return opened[-1]

    view = View(open_file, failed, SHAPE, array.dtype)
    for _ in range(2):
        for _ in range(2):
            assert view.read([(0, 1), (0, 1), (0, 2)]).shape == (1, 1, 2)
        view.close()
        with pytest.raises(OSError):
            os.fstat(opened[-1])
    assert len(opened) == 2
