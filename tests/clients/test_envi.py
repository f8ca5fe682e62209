"""lodN.hdr, an ENVI header of lodN.raw: GDAL (rasterio) and spectral."""

from __future__ import annotations

import warnings
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import IMAGES, SCALED, SURVEYS, Level, assert_same, level, levels

OTHERS = ["vds/two.vds/Amplitude", "vds/four.vds/Amplitude"]
LAYERS = [layer for layer in [*SURVEYS, *IMAGES, *SCALED, *OTHERS] if not layer.endswith("int8.zgy/data")]
LAYERS.remove("wkw/types/int8")


def bands(of_level: Level) -> np.ndarray[Any, Any]:
    samples = of_level.samples()
    return samples.reshape((prod(samples.shape[:-2]), *samples.shape[-2:]))


@pytest.mark.parametrize("layer", LAYERS)
def test_gdal_opens_raw(mount: Path, layer: str) -> None:
    rasterio = pytest.importorskip("rasterio")
    for of_level in levels(mount, layer):
        expected = bands(of_level)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with rasterio.open(of_level.file(".raw")) as file:
                assert file.driver == "ENVI" and file.count == len(expected)
                assert_same(file.read(), expected)
                assert_same(file.read(file.count), expected[-1])
                assert file.nodata == of_level.about["no_value"] or layer.startswith("demo")


@pytest.mark.parametrize("layer", LAYERS)
def test_spectral_opens_the_header(mount: Path, layer: str) -> None:
    envi = pytest.importorskip("spectral.io.envi")
    of_level = level(mount, layer)
    image = envi.open(of_level.file(".hdr"))
    mapped = image.open_memmap(interleave="bsq")
    assert_same(mapped, bands(of_level))
    assert str(of_level.folder.parent.name) in image.metadata["description"]


def test_arrays_without_a_form_have_no_header(mount: Path) -> None:
    for layer in ["wkw/types/int8", "zgy/v3_int8.zgy/data", "wkw/pyramid/rgb", "vds/six.vds/Amplitude"]:
        assert not level(mount, layer).has("lod0.hdr"), layer
