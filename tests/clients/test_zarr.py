"""LAYER.ome.zarr and LAYER.zarr: zarr-python, xarray, tensorstore, dask, and what reads OME-Zarr. test_serve.py has those in JavaScript."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CHANNELS, IMAGES, LAYERS, OTHERS, SCALED, SURVEYS, Level, assert_same, levels

# Those with three axes in space, and perhaps channels: images of OME-NGFF.
WITH_OME = [*SURVEYS, *IMAGES, *CHANNELS, *SCALED]
# A segmentation: an image that has itself as its label.
SEGMENTATION = "demo/cells/segmentation"


def folder(mount: Path, layer: str) -> Path:
    """Return the folder of a layer's Zarr arrays."""
    return mount / f"{layer}.ome.zarr"


def tree(mount: Path, layer: str) -> Path:
    """Return the folder of a layer's Zarr arrays with positions."""
    return mount / f"{layer}.zarr"


def expected(of_level: Level) -> np.ndarray[Any, Any]:
    """Return the samples of a level as its Zarr array has them: channels first in an image."""
    samples = of_level.samples()
    is_image = len(of_level.axes) == 4 and of_level.axes[3] in ("channel", "component")
    return np.moveaxis(samples, 3, 0) if is_image else samples


def boxes(shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """Return the corners and a box in the middle of an array of a shape."""
    begin = tuple(slice(0, min(3, n)) for n in shape)
    end = tuple(slice(max(0, n - 3), n) for n in shape)
    middle = tuple(slice(n // 3, n // 3 + max(1, n // 2)) for n in shape)
    return [begin, end, middle]


@pytest.mark.parametrize("layer", LAYERS)
def test_zarr_python(mount: Path, layer: str) -> None:
    zarr = pytest.importorskip("zarr")
    of_levels = levels(mount, layer)
    for consolidated in (True, False):
        positions = zarr.open_group(tree(mount, layer), mode="r", use_consolidated=consolidated)
        assert sorted(positions.keys()) == [f"lod{n}" for n in range(len(of_levels))]
        for of_level in of_levels:
            own = positions[f"lod{of_level.lod}"]
            assert set(own.keys()) == {"image", *(own["image"].metadata.dimension_names)}
            assert_same(own["image"][:], expected(of_level))
    group = zarr.open_group(folder(mount, layer), mode="r")
    labels = ["labels"] if layer == SEGMENTATION else []
    assert sorted(group.keys()) == [*(str(n) for n in range(len(of_levels))), *labels]
    assert len({group[str(of_level.lod)].chunks for of_level in of_levels}) == 1
    for of_level in of_levels:
        array = group[str(of_level.lod)]
        samples = expected(of_level)
        assert_same(array[:], samples)
        for box in boxes(samples.shape):
            assert_same(array[box], samples[box])
        # the paths of all programs that read levels with their positions
        assert_same(group[f"lod{of_level.lod}/image"][:], samples)


@pytest.mark.parametrize("layer", LAYERS)
def test_positions_are_those_of_lod_json(mount: Path, layer: str) -> None:
    zarr = pytest.importorskip("zarr")
    for of_level in levels(mount, layer):
        group = zarr.open_group(tree(mount, layer) / f"lod{of_level.lod}", mode="r")
        names = list(group["image"].metadata.dimension_names)
        names = [*names[1:], names[0]] if names[0] == "c" else names
        for name, axis in zip(names, of_level.about["axes"], strict=True):
            assert name in (axis["name"], "c") or axis["name"] == "", (name, axis)
            np.testing.assert_array_equal(group[name][:], axis["first"] + np.arange(axis["count"]) * axis["step"])
            assert group[name].attrs.get("units") == axis["unit"]


@pytest.mark.parametrize("layer", LAYERS)
def test_xarray_opens_levels(mount: Path, layer: str) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    for of_level in levels(mount, layer):
        for root in (tree(mount, layer), folder(mount, layer)):
            with xarray.open_zarr(root / f"lod{of_level.lod}", consolidated=True, chunks=None) as opened:
                assert_same(opened["image"].values, expected(of_level))
                assert set(opened.coords) == set(opened["image"].dims)


@pytest.mark.parametrize("layer", LAYERS)
def test_xarray_opens_all_levels_as_a_tree(mount: Path, layer: str) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    with xarray.open_datatree(tree(mount, layer), engine="zarr") as opened:
        of_levels = levels(mount, layer)
        assert list(opened.children) == [f"lod{n}" for n in range(len(of_levels))]
        for of_level in of_levels:
            assert_same(opened[f"lod{of_level.lod}/image"].values, expected(of_level))


@pytest.mark.parametrize("layer", LAYERS)
def test_tensorstore(mount: Path, layer: str) -> None:
    tensorstore = pytest.importorskip("tensorstore")
    for of_level in levels(mount, layer):
        path = folder(mount, layer) / str(of_level.lod)
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
        opened = tensorstore.open(spec, open=True, read=True).result()
        samples = expected(of_level)
        assert_same(opened.read().result(), samples)
        for box in boxes(samples.shape):
            assert_same(opened[box].read().result(), samples[box])


@pytest.mark.parametrize("layer", LAYERS)
def test_dask(mount: Path, layer: str) -> None:
    dask_array = pytest.importorskip("dask.array")
    pytest.importorskip("zarr")
    for of_level in levels(mount, layer):
        opened = dask_array.from_zarr(str(folder(mount, layer) / str(of_level.lod)))
        assert_same(opened.compute(), expected(of_level))


@pytest.mark.parametrize("layer", WITH_OME)
def test_ome_zarr_models_validate(mount: Path, layer: str) -> None:
    models = pytest.importorskip("ome_zarr_models")
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(folder(mount, layer), mode="r")
    image = models.open_ome_zarr(group)
    assert type(image).__name__ == "Image"
    recommended = group.attrs["ome"]["multiscales"][0]
    assert recommended["name"] and recommended["type"] and isinstance(recommended["metadata"], dict)
    attributes = image.ome_attributes
    of_levels = levels(mount, layer)
    assert len(attributes.multiscales[0].datasets) == len(of_levels)
    for dataset, of_level in zip(attributes.multiscales[0].datasets, of_levels):
        scale, translation = dataset.coordinateTransformations
        axes = [axis for axis in of_level.about["axes"] if axis["name"] not in ("channel", "component")]
        # the models refuse negative scales: where annotations descend, positions are their negatives
        signs = np.sign([axis["step"] for axis in axes])
        np.testing.assert_array_equal(scale.scale[-3:], [abs(axis["step"]) for axis in axes])
        np.testing.assert_array_equal(translation.translation[-3:], signs * [axis["first"] for axis in axes])


def test_ome_zarr_models_validate_labels(mount: Path) -> None:
    models = pytest.importorskip("ome_zarr_models.v05")
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(folder(mount, SEGMENTATION), mode="r")
    names = models.labels.LabelsAttrs.model_validate(group["labels"].attrs["ome"]).labels
    assert names == ["segmentation"]
    label = models.image_label.ImageLabel.from_zarr(group["labels"][names[0]])
    assert label.ome_attributes.image_label.source.image == "../../"
    samples = levels(mount, SEGMENTATION)[0].samples()
    assert_same(group["labels/segmentation/0"][:], samples)
    colours = {colour.label_value for colour in label.ome_attributes.image_label.colors}
    assert colours >= set(np.unique(samples).tolist()), "napari hides labels without a colour"


@pytest.mark.parametrize("layer", OTHERS)
def test_other_arrays_are_no_images(mount: Path, layer: str) -> None:
    zarr = pytest.importorskip("zarr")
    assert "ome" not in zarr.open_group(folder(mount, layer), mode="r").attrs


@pytest.mark.parametrize("layer", WITH_OME)
def test_ome_zarr_reads_all_levels(mount: Path, layer: str) -> None:
    io = pytest.importorskip("ome_zarr.io")
    reader = pytest.importorskip("ome_zarr.reader")
    nodes = list(reader.Reader(io.parse_url(str(folder(mount, layer))))())
    of_levels = levels(mount, layer)
    node = next(node for node in nodes if node.zarr.path.rstrip("/").endswith(f"{Path(layer).name}.ome.zarr"))
    assert len(node.data) == len(of_levels)
    for got, of_level in zip(node.data, of_levels):
        assert_same(got.compute(), expected(of_level))
    found = [node for node in nodes if node.zarr.path.rstrip("/").endswith("labels/segmentation")]
    assert len(found) == (1 if layer == SEGMENTATION else 0)
    for node in found:
        assert_same(node.data[0].compute(), of_levels[0].samples())


@pytest.mark.parametrize("layer", WITH_OME)
def test_the_reader_of_napari_ome_zarr(mount: Path, layer: str) -> None:
    reader = pytest.importorskip("napari_ome_zarr")
    read = reader.napari_get_reader(str(folder(mount, layer)))
    assert read is not None
    shown = read(str(folder(mount, layer)))
    of_levels = levels(mount, layer)
    data, options, _ = next(item for item in shown if item[2] == "image")
    assert len(data) == len(of_levels)
    for got, of_level in zip(data, of_levels):
        assert_same(got.compute(), expected(of_level))
    steps = [axis["step"] for axis in of_levels[0].about["axes"] if axis["name"] not in ("channel", "component")]
    np.testing.assert_allclose(list(options["scale"])[-3:], np.abs(steps))
    labels = [data for data, _, kind in shown if kind == "labels"]
    assert len(labels) == (1 if layer == SEGMENTATION else 0)
    for data in labels:
        assert_same(data[0].compute(), of_levels[0].samples())


@pytest.mark.parametrize("layer", WITH_OME)
def test_iohub(mount: Path, layer: str) -> None:
    iohub = pytest.importorskip("iohub.ngff")
    with iohub.open_ome_zarr(folder(mount, layer), mode="r", version="0.5") as position:
        of_levels = levels(mount, layer)
        assert [name for name, _ in position.images()] == [str(of_level.lod) for of_level in of_levels]
        for (_, image), of_level in zip(position.images(), of_levels):
            assert_same(np.asarray(image), expected(of_level))


@pytest.mark.parametrize("layer", IMAGES)
def test_cloud_volume_reads_all_mips(mount: Path, layer: str) -> None:
    cloudvolume = pytest.importorskip("cloudvolume")
    for of_level in levels(mount, layer):
        volume = cloudvolume.CloudVolume(f"zarr3://file://{folder(mount, layer)}", mip=of_level.lod, progress=False)
        assert_same(np.asarray(volume[:]), of_level.samples().T[..., None])
