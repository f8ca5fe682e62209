"""Arrays: what is selected is what NumPy selects, and the ways to read it."""

from __future__ import annotations

import base64
import json
import pickle
import random
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import volfs
from conftest import DATA, DEMO, damaged
from numpy.typing import NDArray
from volfs import _array, _selection


@pytest.fixture(scope="module")
def array() -> volfs.Array:
    return volfs.open(DEMO / "north.zgy").layer.level(0)


@pytest.fixture(scope="module")
def plain(array: volfs.Array) -> NDArray[Any]:
    return array[...]


def expected_of(folder: str) -> list[dict[str, Any]]:
    """Return what the reference readers have found in the files of a folder of tests/data."""
    found = json.loads((DATA / folder / "expected.json").read_text("utf-8"))
    found = found if isinstance(found, list) else found.get("layers") or found["arrays"]
    # those of HDF5 have one level, but for pyramids, whose layers have other names
    # a copy of `tagged` as files has lost the metadata of its objects
    found = [{"dataset": entry.get("file"), "layer": entry.get("path"), "lod": 0} | entry for entry in found]
    return [entry for entry in found if entry["dataset"] not in ("tagged", "image.ims", "viewer.h5")]


@pytest.mark.parametrize("folder", ["vds", "wkw", "zarr", "precomputed", "hdf5"])
def test_arrays_of_every_format_and_type_are_those_of_the_reference_reader(folder: str) -> None:
    types = set()
    for expected in expected_of(folder):
        dataset = volfs.open(DATA / folder / expected["dataset"])
        names = [layer["name"] for layer in dataset.metadata["layers"]]
        layers = dict(zip(names, dataset.layers.values(), strict=False)) | dict(dataset.layers)
        level = layers[expected.get("folder", expected["layer"])].level(expected["lod"])
        assert (list(level.shape), level.dtype.name) == (expected["shape"], expected["dtype"]), expected
        assert f"{zlib.crc32(np.ascontiguousarray(level).tobytes()):08x}" == expected["crc32"], expected
        types.add(level.dtype.name)
    assert folder != "zarr" or {"float16", "complex64", "complex128"} <= types


def some_slice(choice: random.Random, size: int) -> Any:
    start, stop = (choice.randrange(-size, size) for _ in range(2))
    return slice(start, stop, choice.choice([1, 1, 2, 7, 70, -1, -3, None]))


def some_index(choice: random.Random, size: int) -> Any:
    indices = [choice.randrange(-size, size) for _ in range(choice.randrange(6))]
    mask = np.array([choice.random() < 0.1 for _ in range(size)])
    start = choice.randrange(-size, size)
    return choice.choice([slice(None), some_slice(choice, size), start, indices, np.array(indices, int), mask])


def selected(array: NDArray[Any], keys: list[Any]) -> NDArray[Any]:
    """Select independently along each axis."""
    for axis in reversed(range(len(keys))):
        array = np.take(array, np.arange(array.shape[axis])[keys[axis]], axis)
    return array


def test_an_index_is_that_of_numpy(array: volfs.Array, plain: NDArray[Any]) -> None:
    choice = random.Random(2)
    for _ in range(200):
        keys = [choice.choice([some_slice(choice, n), choice.randrange(-n, n), slice(None)]) for n in array.shape]
        key = choice.choice([tuple(keys), tuple(keys[:2]), (keys[0], ...), (..., keys[2]), (keys[0], ..., keys[2])])
        got, expected = array[key], plain[key]
        assert got.shape == expected.shape and np.array_equal(got, expected), key
    assert isinstance(array[1, 2, 3], np.float32) and len(array) == 128
    for wrong in [128, -129, (0, 0, 0, 0), (..., ...), [1], 1.5, "a", None, True, np.array([1])]:
        with pytest.raises(IndexError):
            array[wrong]


@pytest.mark.parametrize("limit", [64 << 20, 100_000, 1])
def test_an_orthogonal_selection_is_that_of_numpy(
    array: volfs.Array, plain: NDArray[Any], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_selection, "_BLOCK_MAX", limit)
    choice = random.Random(1)
    for _ in range(60 if limit > 1 else 5):
        keys = [some_index(choice, size) for size in array.shape]
        read, expected = array.oindex[tuple(keys)], selected(plain, keys)
        assert read.shape == expected.shape and np.array_equal(read, expected), keys
    for dtype in ("int8", "uint8"):
        assert np.array_equal(array.oindex[:, :, np.array([3, 7], dtype)], plain[:, :, [3, 7]])
    for selection in [(0, 0, 0, 0), 128, -129, ([0, 128],), 1.5, ([[1]],), "a", [True], True]:
        with pytest.raises(IndexError):
            array.oindex[selection]  # type: ignore[index]


def test_bricks_that_are_not_wanted_are_not_read(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    array = volfs.open(path).layer.level(0)
    with pytest.raises(volfs.DamagedBrick):
        array.oindex[[5, 100], :, 3]
    assert array.oindex[[100, 70], :, [3, 180]].shape == (2, 96, 2)
    # the damaged brick has samples 0 to 63 of crosslines 0 to 63
    assert array.oindex[[5, 100], [70, 90], [3, 180]].shape == (2, 2, 2)


def test_memory_of_the_caller_is_filled(array: volfs.Array, plain: NDArray[Any]) -> None:
    region = (slice(10, 30), slice(None, None, 3), slice(40, 104))
    expected = plain[region]
    shape = expected.shape
    many = np.zeros((*shape, 2), np.float32)
    for out in [
        np.zeros(shape, np.float32),
        np.zeros(shape, np.float32, order="F"),
        many[..., 1],
        np.zeros([2 * n for n in shape], np.float32)[::2, 1::2, ::2],
        np.zeros(shape, np.float32)[::-1, :, ::-1],
        np.zeros(shape[::-1], np.float32).T,
    ]:
        array.read_into(region, out)
        assert np.array_equal(out, expected)
    assert not many[..., 0].any()
    array.read_into((3, 4, slice(None, None, -1)), out := np.zeros(192, np.float32))
    assert np.array_equal(out, plain[3, 4, ::-1])
    array.read_into((3, 4, 50), out := np.zeros((), np.float32))
    assert out == plain[3, 4, 50]
    array.read_into((0, slice(5, 5)), np.zeros((0, 192), np.float32))


def test_memory_that_does_not_fit_is_refused(array: volfs.Array) -> None:
    read_only = np.zeros(192, np.float32)
    read_only.flags.writeable = False
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (192,), (0,))
    cases: list[tuple[Any, Any]] = [
        (TypeError, np.zeros(192, np.int32)),
        (TypeError, np.zeros(192, ">f4")),
        (TypeError, [0.0] * 192),
        (ValueError, np.zeros(191, np.float32)),
        (ValueError, np.zeros((1, 192), np.float32)),
        ((TypeError, ValueError), read_only),
        (ValueError, overlapping),
    ]
    for kind, out in cases:
        with pytest.raises(kind):
            array.read_into((0, 0), out)
    with pytest.raises(ValueError):
        array.read_into((0, 0, 0), np.zeros(3, np.float32))


def test_many_regions_are_read_at_once(array: volfs.Array, plain: NDArray[Any]) -> None:
    same = [(slice(n, n + 4), 3, slice(n, 40 + n)) for n in range(20)]
    stack = array.read_many(same)
    assert isinstance(stack, np.ndarray) and np.array_equal(stack, [plain[region] for region in same])
    assert np.array_equal(array.read_many([(1, 2, 3), (4, 5, 6)]), plain[[1, 4], [2, 5], [3, 6]])
    others = [(0,), (slice(3), ..., 5), (1, 2, 3)]
    for part, region in zip(array.read_many(others), others, strict=True):
        assert part.shape == plain[region].shape and np.array_equal(part, plain[region])
    assert len(array.read_many([])) == 0 and array[:, 5:5].shape == (128, 0, 192)
    empty, full = array.read_many([(slice(0),), (3,)])
    assert empty.shape == (0, 96, 192) and np.array_equal(full, plain[3])


def test_an_array_is_one_of_numpy_where_one_is_wanted(array: volfs.Array, plain: NDArray[Any]) -> None:
    assert np.array_equal(np.asarray(array), plain) and np.asarray(array, np.float64).dtype == np.float64
    assert np.array(array, copy=True).flags.writeable and float(np.mean(array)) == float(plain.mean())
    if int(np.__version__.partition(".")[0]) >= 2:
        with pytest.raises(ValueError, match="without a copy"):
            np.array(array, copy=False)
        with pytest.raises(ValueError, match="without a copy"):
            np.asarray(array.values, copy=False)


def test_dlpack_reads_the_array(array: volfs.Array, plain: NDArray[Any]) -> None:
    assert array.__dlpack_device__() == np.empty(0).__dlpack_device__()
    assert np.array_equal(np.from_dlpack(array), plain)
    with pytest.raises(ValueError, match="no array of them without a copy"):
        array.__dlpack__(copy=False)


def test_an_array_is_shown(array: volfs.Array, tmp_path: Path) -> None:
    assert repr(array) == "<volfs.Array north.zgy/data/lod0 (inline: 128, crossline: 96, sample: 192) float32>"
    for path in [DEMO / "north.zgy", DEMO / "cells", DATA / "wkw" / "pyramid", DATA / "vds" / "two.vds"]:
        for layer in volfs.open(path).layers.values():
            html = layer.level(0)._repr_html_()
            assert str(layer.shape) in html and layer.dtype.name in html
            found = re.search(r"data:image/png;base64,([^\"]+)", html)
            assert found is not None, layer
            png = base64.b64decode(found[1])
            width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
            size = int.from_bytes(png[33:37], "big")
            assert len(zlib.decompress(png[41 : 41 + size])) == height * (width + 1) and max(width, height) <= 256
    assert "<img" not in volfs.open(DATA / "wkw" / "damaged")["magic"].level(0)._repr_html_()


def test_dask_reads_by_bricks(array: volfs.Array, plain: NDArray[Any]) -> None:
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(array, chunks=array.chunks)
    assert lazy.chunks == ((64, 64), (64, 32), (64, 64, 64))
    keys: list[Any] = [slice(None), (5, slice(3, 70), slice(None, None, -1)), ([60, 3, 70],), (slice(None), [1], 3)]
    for key in keys:
        assert np.array_equal(lazy[key].compute(), plain[key])
    assert np.array_equal(lazy.sum(0).compute(scheduler="processes", num_workers=2), lazy.sum(0).compute())


def test_names_of_dask_tell_what_is_read(tmp_path: Path) -> None:
    tokenize = pytest.importorskip("dask.base").tokenize
    path = tmp_path / "a.zgy"
    path.write_bytes((DEMO / "north.zgy").read_bytes())
    opened = [volfs.open(path), volfs.open(path), volfs.open(path, quality=1), volfs.open(DEMO / "north.zgy")]
    arrays = [dataset.layer.level(0) for dataset in opened]
    tokens = [tokenize(array) for array in [*arrays, arrays[0].values, opened[0].layer.level(1)]]
    assert tokens[0] == tokens[1] == tokenize(pickle.loads(pickle.dumps(arrays[0]))) and len(set(tokens)) == 5
    path.write_bytes(path.read_bytes() + b"\0")
    assert tokenize(volfs.open(path).layer.level(0)) not in tokens


def axes_of(*names: str) -> list[tuple[str, None, float, float, int]]:
    return [(name, None, float("nan"), 1, 2) for name in names]


def test_axes_without_names_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    for names, expected in [
        (("", "x", "x"), ("axis0", "axis1", "axis2")),
        (("z", "", "axis1"), ("z", "axis1", "axis1~2")),
        (("axis1", "", "y"), ("axis1", "axis1~2", "y")),
    ]:
        monkeypatch.setattr(_array.Array, "_axes", lambda _, names=names: axes_of(*names))
        array = volfs.open(DEMO / "north.zgy").layer.level(0)
        assert array.axis_names == expected and array.axes[0].values is None
        with pytest.raises(KeyError, match="has no coordinates"):
            array.axes[0].find(3)
