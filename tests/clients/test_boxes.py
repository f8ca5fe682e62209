"""Boxes as files, by `volfs cat -o` and over HTTP: segyio, tifffile, NumPy and pandas read the samples, numbers, places and
sizes that the whole level has. And GDAL reads the outlines of surveys."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from conftest import SCALED, SURVEYS, Level, level, volfs

LAYERS = [layer for layer in SURVEYS if "size_5x1x17" not in layer]


def box_of(of_level: Level) -> tuple[slice, ...]:
    """Return the middle half of each axis."""
    return tuple(slice(n // 4, max(n - n // 4, 1)) for n in of_level.shape)


def written(of_level: Level, file: Path, *more: str) -> Path:
    """Have the box of a level written to a file."""
    region = ",".join(f"{part.start}:{part.stop}" for part in box_of(of_level))
    subprocess.run([volfs(), "cat", of_level.file(".raw"), "--region", region, "-o", file, *more], check=True)
    return file


def positions(of_level: Level) -> list[np.ndarray]:
    """Return the positions of the box along each axis."""
    return [(axis["first"] + axis["step"] * np.arange(axis["count"]))[part] for axis, part in zip(of_level.about["axes"], box_of(of_level))]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("lod", [0, 1])
def test_segyio_reads_a_part_of_a_survey(mount: Path, tmp_path: Path, layer: str, lod: int) -> None:
    segyio = pytest.importorskip("segyio")
    if not (mount / layer / f"lod{lod}.json").exists():
        pytest.skip("the layer has no such level")
    of_level = level(mount, layer, lod)
    with segyio.open(str(written(of_level, tmp_path / "part.sgy"))) as part, segyio.open(str(of_level.folder / "lod0.sgy")) as whole:
        inlines, crosslines, samples = positions(of_level)
        np.testing.assert_array_equal(part.ilines, inlines)
        np.testing.assert_array_equal(part.xlines, crosslines)
        np.testing.assert_allclose(part.samples, samples)
        expected = of_level.samples()[box_of(of_level)].astype("f4")
        if of_level.has(f"lod{lod}.float32.npy"):
            expected = np.load(of_level.file(".float32.npy"))[box_of(of_level)]
        np.testing.assert_array_equal(np.squeeze(segyio.tools.cube(part)), np.squeeze(np.nan_to_num(expected, nan=0)))
        # each trace is where the whole survey has it
        there = {(header[189], header[193]): (header[181], header[185], header[71]) for header in whole.header}
        for header in part.header:
            assert (header[181], header[185], header[71]) == there[header[189], header[193]]


@pytest.mark.parametrize("layer", ["demo/cells/color", "wkw/types/uint16", "demo/north.zgy/data"])
def test_tifffile_reads_a_crop(mount: Path, tmp_path: Path, layer: str) -> None:
    tifffile = pytest.importorskip("tifffile")
    of_level = level(mount, layer)
    with (
        tifffile.TiffFile(written(of_level, tmp_path / "crop.tif")) as crop,
        tifffile.TiffFile(of_level.folder / "tiff/lod0.tif") as whole,
    ):
        np.testing.assert_array_equal(crop.asarray(), np.squeeze(of_level.samples()[box_of(of_level)]))
        for key in ("unit", "spacing"):
            assert crop.imagej_metadata.get(key) == whole.imagej_metadata.get(key)
        for name in ("XResolution", "YResolution", "ResolutionUnit"):
            assert crop.pages[0].tags[name].value == whole.pages[0].tags[name].value


@pytest.mark.parametrize("layer", ["demo/cells/color", "demo/north.zgy/data", "zgy/v3_rotated.zgy/data", "vds/two.vds/Amplitude"])
def test_pandas_reads_a_table(mount: Path, tmp_path: Path, layer: str) -> None:
    pandas = pytest.importorskip("pandas")
    of_level = level(mount, layer)
    table = pandas.read_csv(written(of_level, tmp_path / "part.csv"))
    expected = of_level.samples()[box_of(of_level)]
    np.testing.assert_array_equal(table["value"].to_numpy(expected.dtype), expected.reshape(-1))
    places = np.meshgrid(*positions(of_level), indexing="ij")
    for n, (name, place) in enumerate(zip(of_level.axes, places)):
        assert table.columns[n].split(" (")[0] == name
        np.testing.assert_allclose(table[table.columns[n]], place.reshape(-1))
    geometry = json.loads((of_level.folder.parent / "dataset.json").read_text(encoding="utf-8"))["geometry"]
    if geometry is None or geometry["affine"] is None:
        assert not any(name.startswith("world_") for name in table.columns)
        return
    world = np.array(geometry["affine"]["annotation_to_world"]) @ [places[0].reshape(-1), places[1].reshape(-1), np.ones(places[0].size)]
    for name, expected in zip(("world_x (m)", "world_y (m)"), world):
        np.testing.assert_allclose(table[name], expected, rtol=1e-9)


@pytest.mark.parametrize("layer", SCALED)
def test_values_have_nan_for_no_data(mount: Path, tmp_path: Path, layer: str) -> None:
    pandas = pytest.importorskip("pandas")
    of_level = level(mount, layer)
    stored = of_level.samples()[box_of(of_level)]
    expected = np.where(stored == of_level.about["no_value"], np.nan, stored.astype("f4"))
    if of_level.has("lod0.float32.npy"):
        expected = np.load(of_level.file(".float32.npy"))[box_of(of_level)]
    np.testing.assert_array_equal(np.load(written(of_level, tmp_path / "part.npy", "--scaled")), expected)
    table = pandas.read_csv(written(of_level, tmp_path / "part.csv", "--scaled"))
    np.testing.assert_array_equal(table["value"].to_numpy("f4"), expected.astype("f4").reshape(-1))


@pytest.mark.parametrize("name", ["npy", "sgy", "tif", "csv"])
def test_the_server_sends_what_cat_writes(mount: Path, server: str, tmp_path: Path, name: str) -> None:
    of_level = level(mount, "demo/north.zgy/data")
    region = ",".join(f"{part.start}:{part.stop}" for part in box_of(of_level))
    with urllib.request.urlopen(f"{server}/demo/north.zgy/data/lod0.raw?box={region}&format={name}") as answer:
        assert answer.read() == written(of_level, tmp_path / f"part.{name}").read_bytes()


@pytest.mark.parametrize("dataset", sorted({layer.rpartition("/")[0] for layer in LAYERS}))
def test_gdal_reads_the_outline(mount: Path, dataset: str) -> None:
    pyogrio = pytest.importorskip("pyogrio")
    geometry = json.loads((mount / dataset / "dataset.json").read_text(encoding="utf-8"))["geometry"]
    world = np.array([corner["world"] for corner in geometry["corners"]])
    info = pyogrio.read_info(mount / dataset / "outline.geojson", force_total_bounds=True)
    np.testing.assert_allclose(info["total_bounds"], [*world.min(0), *world.max(0)])
    # no system that GDAL would take for longitudes and latitudes
    assert info["crs"].startswith("LOCAL_CS[") and f'UNIT["{geometry["units"]["horizontal"]["name"]}",' in info["crs"]
    assert (info["features"], info["geometry_type"]) == (1, "Polygon")


def test_what_is_no_survey_has_no_outline(mount: Path) -> None:
    assert (mount / "demo/cells/dataset.json").exists() and not (mount / "demo/cells/outline.geojson").exists()
