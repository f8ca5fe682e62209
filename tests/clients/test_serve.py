"""Clients that read and list over HTTP, in Python and in JavaScript, on `volfs serve` of all test data."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from conftest import levels

LAYERS = ["demo/north.zgy/data", "demo/south.vds/Amplitude", "demo/cells/color", "demo/cells/segmentation", "wkw/types/uint16"]


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
        array = group[str(level.lod)]
        np.testing.assert_array_equal(of_image(array[:]), level.samples())
    part = tuple(slice(n // 3, n // 2 + 1) for n in levels(mount, layer)[0].shape)
    if len(part) == 3:
        np.testing.assert_array_equal(group["0"][part], levels(mount, layer)[0].samples()[part])


@pytest.mark.parametrize("layer", LAYERS)
def test_tensorstore(mount, server, layer):
    ts = pytest.importorskip("tensorstore")
    for level in levels(mount, layer):
        kvstore = {"driver": "http", "base_url": f"{server}/{layer}.ome.zarr/{level.lod}/"}
        array = ts.open({"driver": "zarr3", "kvstore": kvstore}).result()
        np.testing.assert_array_equal(of_image(array.read().result()), level.samples())


@pytest.mark.parametrize("layer", LAYERS[:2])
def test_xarray_and_dask(mount, server, layer):
    pytest.importorskip("aiohttp")
    xr = pytest.importorskip("xarray")
    pytest.importorskip("dask")
    level = levels(mount, layer)[0]
    data = xr.open_zarr(f"{server}/{layer}.zarr/lod0")
    np.testing.assert_array_equal(data["image"].compute().values, level.samples())
    axis = level.about["axes"][0]
    first = data["image"].sel({axis["name"]: axis["first"] + axis["step"]})
    np.testing.assert_array_equal(first.compute().values, level.samples()[1])


def test_dask_array(mount, server):
    pytest.importorskip("aiohttp")
    pytest.importorskip("zarr")
    array = pytest.importorskip("dask.array")
    level = levels(mount, LAYERS[0])[0]
    data = array.from_zarr(f"{server}/{LAYERS[0]}.ome.zarr/0")
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


def files_below(folder: Path) -> set[str]:
    """Return the paths of all files below a folder."""
    return {os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names}


def test_fsspec_lists_folders(mount, server):
    pytest.importorskip("aiohttp")
    fsspec = pytest.importorskip("fsspec")
    http = fsspec.filesystem("http")
    for folder in ("demo", "demo/north.zgy", "demo/north.zgy/data"):
        listed = {entry["name"].removeprefix(f"{server}/{folder}/"): entry["type"] for entry in http.ls(f"{server}/{folder}/")}
        kinds = {True: ("/", "directory"), False: ("", "file")}
        there = {entry.name: kinds[entry.is_dir()] for entry in os.scandir(mount / folder)}
        assert listed == {name + slash: kind for name, (slash, kind) in there.items()}
    folder = f"{LAYERS[0]}.ome.zarr/"
    assert {name.removeprefix(f"{server}/{folder}") for name in http.find(f"{server}/{folder}")} == files_below(mount / folder)


def test_zarr_without_consolidated_metadata(mount, server):
    pytest.importorskip("aiohttp")
    zarr = pytest.importorskip("zarr")
    there, served = (
        zarr.open_group(f"{place}/{LAYERS[0]}.ome.zarr", mode="r", use_consolidated=False) for place in (mount, server)
    )
    names = [sorted(name for name, _ in group.members(max_depth=None)) for group in (there, served)]
    assert names[0] == names[1] != []


def test_wget_follows_links(mount, server, tmp_path):
    if shutil.which("wget") is None:
        pytest.skip("wget is not installed")
    folder, url = f"{LAYERS[0]}.ome.zarr", f"{server}/{LAYERS[0]}.ome.zarr/"
    subprocess.run(["wget", "-q", "-r", "-l", "inf", "-np", "-nH", "-R", "index.html*", "-P", tmp_path, url], check=True)
    assert files_below(tmp_path / folder) == files_below(mount / folder) != set()
    for name in files_below(mount / folder):
        assert (tmp_path / folder / name).read_bytes() == (mount / folder / name).read_bytes()


# What viewers in browsers are made of; prints a sum of each level.
SCRIPT = """
import * as zarr from "zarrita";
import * as ome from "ome-zarr.js";
const url = process.argv[2];
const root = await zarr.open(new zarr.FetchStore(url), { kind: "group" });
const { datasets } = root.attrs.ome.multiscales[0];
const sums = [];
for (const { path } of datasets) {
  const { data } = await zarr.get(await zarr.open(root.resolve(path), { kind: "array" }));
  let sum = 0;
  for (let n = 0; n < data.length; n++) sum = (sum * 31 + Number(BigInt.asUintN(32, BigInt(data[n])))) % 1000003;
  sums.push(sum);
}
const viv = await import("@vivjs/loaders").catch(() => null);
const source = (await viv?.loadOmeZarr(url, { type: "multiscales" }))?.data[0];
const selection = Object.fromEntries(source?.labels.slice(0, -2).map((axis) => [axis, 1]) ?? []);
const raster = source ? Array.from((await source.getRaster({ selection })).data) : null;
// what a browser has, and node has not
let painted = [];
globalThis.ImageData = class { constructor(data) { painted = Array.from(data); } };
const canvas = { getContext: () => ({ putImageData() {} }), toDataURL: () => "" };
globalThis.document = { createElement: () => canvas };
await ome.renderThumbnail(url, 64);
console.log(JSON.stringify({ sums, raster, painted: new Set(painted).size }));
"""


@pytest.mark.parametrize("layer", ["wkw/pyramid/rgb", "wkw/pyramid/color", "demo/cells/color"])
def test_zarrita_ome_zarr_js_and_viv(mount, server, layer, tmp_path):
    modules = Path(os.environ.get("NODE_MODULES", "node_modules")).resolve()
    if not shutil.which("node") or not (modules / "ome-zarr.js").exists():
        pytest.skip("node, and the folder that NODE_MODULES names with zarrita and ome-zarr.js (and @vivjs/loaders)")
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "read.mjs").write_text(SCRIPT)
    command = ["node", str(tmp_path / "read.mjs"), f"{server}/{layer}.ome.zarr"]
    told = json.loads(subprocess.run(command, capture_output=True, check=True, text=True, cwd=tmp_path).stdout)
    for got, level in zip(told["sums"], levels(mount, layer), strict=True):
        total, samples = 0, level.samples()
        for sample in (np.moveaxis(samples, -1, 0) if samples.ndim == 4 else samples).ravel().tolist():
            total = (total * 31 + sample) % 1000003
        assert got == total
    assert told["painted"] > 10
    if told["raster"] is not None:
        plane = levels(mount, layer)[0].samples()[1]
        assert told["raster"] == (plane[..., 1] if plane.ndim == 3 else plane).ravel().tolist()
