"""Clients that read Zarr over HTTP, on `volfs serve` of all test data: the same samples as through the mount."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import numpy as np
import pytest

from conftest import DATA, levels, volfs

LAYERS = ["demo/north.zgy/data", "demo/south.vds/Amplitude", "demo/cells/color", "demo/cells/segmentation", "wkw/types/uint16"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Serve the test data; yield the address."""
    command = [volfs(), "serve", str(DATA), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().rsplit(" ", 1)[1].strip().rstrip("/")
        finally:
            process.terminate()


def of_image(array):
    """Return samples with channels last, as the mount's files have them: OME-Zarr has them first."""
    array = np.asarray(array)
    return np.moveaxis(array, 0, -1) if array.ndim == 4 else array


@pytest.mark.parametrize("layer", LAYERS)
def test_zarr_python(mount, server, layer):
    pytest.importorskip("aiohttp")
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(f"{server}/{layer}.ome.zarr", mode="r")
    for level in levels(mount, layer):
        array = group[f"lod{level.lod}/image"]
        np.testing.assert_array_equal(of_image(array[:]), level.samples())
    part = tuple(slice(n // 3, n // 2 + 1) for n in levels(mount, layer)[0].shape)
    if len(part) == 3:
        np.testing.assert_array_equal(group["lod0/image"][part], levels(mount, layer)[0].samples()[part])


@pytest.mark.parametrize("layer", LAYERS)
def test_tensorstore(mount, server, layer):
    ts = pytest.importorskip("tensorstore")
    for level in levels(mount, layer):
        kvstore = {"driver": "http", "base_url": f"{server}/{layer}.ome.zarr/lod{level.lod}/image/"}
        array = ts.open({"driver": "zarr3", "kvstore": kvstore}).result()
        np.testing.assert_array_equal(of_image(array.read().result()), level.samples())


@pytest.mark.parametrize("layer", LAYERS[:2])
def test_xarray_and_dask(mount, server, layer):
    pytest.importorskip("aiohttp")
    xr = pytest.importorskip("xarray")
    pytest.importorskip("dask")
    level = levels(mount, layer)[0]
    data = xr.open_zarr(f"{server}/{layer}.ome.zarr/lod0")
    np.testing.assert_array_equal(data["image"].compute().values, level.samples())
    axis = level.about["axes"][0]
    first = data["image"].sel({axis["name"]: axis["first"] + axis["step"]})
    np.testing.assert_array_equal(first.compute().values, level.samples()[1])


def test_dask_array(mount, server):
    pytest.importorskip("aiohttp")
    pytest.importorskip("zarr")
    array = pytest.importorskip("dask.array")
    level = levels(mount, LAYERS[0])[0]
    data = array.from_zarr(f"{server}/{LAYERS[0]}.ome.zarr/lod0/image")
    assert data.max().compute() == level.samples().max()


def test_fsspec_reads_parts(mount, server):
    pytest.importorskip("aiohttp")
    fsspec = pytest.importorskip("fsspec")
    level = levels(mount, LAYERS[0])[0]
    samples = level.samples()
    with fsspec.open(f"{server}/{LAYERS[0]}/lod0.raw", "rb", block_size=1 << 16).open() as file:
        file.seek(samples[:50].nbytes)
        plane = np.frombuffer(file.read(samples[50].nbytes), samples.dtype).reshape(samples[50].shape)
    np.testing.assert_array_equal(plane, samples[50])
