"""NumPy: whole files, memory maps, and the views with permuted axes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import LAYERS, assert_same, levels


@pytest.mark.parametrize("layer", LAYERS)
def test_npy_has_the_samples_of_raw(mount: Path, layer: str) -> None:
    for level in levels(mount, layer):
        expected = level.samples()
        assert_same(np.load(level.file(".npy")), expected)
        mapped = np.load(level.file(".npy"), mmap_mode="r")
        assert_same(mapped, expected)
        assert mapped.flags.c_contiguous and mapped.ctypes.data % 64 == 0


@pytest.mark.parametrize("layer", LAYERS)
def test_by_axis_files_are_moved_axes(mount: Path, layer: str) -> None:
    for level in levels(mount, layer):
        expected = level.samples()
        for axis, name in list(enumerate(level.axes))[1:]:
            file = level.file(f".by-{name}.npy")
            assert_same(np.load(file, mmap_mode="r"), np.moveaxis(expected, axis, 0))


@pytest.mark.parametrize("layer", LAYERS)
def test_float32_files_have_the_values(mount: Path, layer: str) -> None:
    for level in levels(mount, layer):
        if not level.has(f"lod{level.lod}.float32.npy"):
            continue
        scale, offset = level.about["scale"], level.about["offset"]
        values = level.samples().astype(np.float64) * scale + offset
        got = np.load(level.file(".float32.npy"), mmap_mode="r")
        assert got.dtype == np.float32
        valid = level.samples() != level.about["no_value"]
        np.testing.assert_allclose(got[valid], values[valid], rtol=1e-6, atol=1e-6)
