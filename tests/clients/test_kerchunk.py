"""lodN.zarr.json, references to lodN.raw: fsspec, zarr-python, xarray, kerchunk and dask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import LAYERS, Level, assert_same, level, levels


def options(of_level: Level) -> dict[str, Any]:
    """Return where the references are, and what they refer to: their own is a name relative to the working folder."""
    return {"fo": str(of_level.file(".zarr.json")), "template_overrides": {"raw": str(of_level.file(".raw"))}}


@pytest.mark.parametrize("layer", LAYERS)
def test_references_are_planes_of_raw(mount: Path, layer: str) -> None:
    for of_level in levels(mount, layer):
        text = json.loads(of_level.file(".zarr.json").read_text(encoding="utf-8"))
        assert text["version"] == 1 and text["templates"] == {"raw": f"lod{of_level.lod}.raw"}
        raw = of_level.samples().tobytes()
        parts = [ref for key, ref in text["refs"].items() if isinstance(ref, list)]
        assert b"".join(raw[at : at + count] for _, at, count in parts) == raw


@pytest.mark.parametrize("layer", LAYERS)
def test_xarray_opens_references(mount: Path, layer: str) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    of_level = level(mount, layer)
    kwargs = {"consolidated": False, "storage_options": options(of_level)}
    with xarray.open_dataset("reference://", engine="zarr", backend_kwargs=kwargs, chunks={}) as data:
        assert list(data.data_vars) == ["image"]
        assert_same(data["image"].values, of_level.samples())
        for axis in of_level.about["axes"]:
            if axis["name"] in data.coords:
                expected = axis["first"] + axis["step"] * np.arange(axis["count"])
                np.testing.assert_array_equal(data.coords[axis["name"]].values, expected)
        assert len(data.coords) == len(of_level.shape)


def test_zarr_opens_references(mount: Path) -> None:
    zarr = pytest.importorskip("zarr")
    of_level = level(mount, "demo/cells/color")
    group = zarr.open_group("reference://", mode="r", storage_options=options(of_level))
    assert_same(group["image"][5:70, 3], of_level.samples()[5:70, 3])


def test_fsspec_reads_one_plane(mount: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    of_level = level(mount, "demo/north.zgy/data")
    file_system = fsspec.filesystem("reference", **options(of_level))
    plane = np.frombuffer(file_system.cat_file("image/17.0.0"), np.float32).reshape(of_level.shape[1:])
    assert_same(plane, of_level.samples()[17])


def test_names_are_relative_to_the_working_folder(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    xarray = pytest.importorskip("xarray")
    of_level = level(mount, "demo/north.zgy/data", 1)
    monkeypatch.chdir(of_level.folder)
    kwargs = {"consolidated": False, "storage_options": {"fo": "lod1.zarr.json"}}
    with xarray.open_dataset("reference://", engine="zarr", backend_kwargs=kwargs) as data:
        assert_same(data["image"].values, of_level.samples())


def test_the_engine_of_kerchunk_opens_references(mount: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kerchunk")
    xarray = pytest.importorskip("xarray")
    of_level = level(mount, "demo/north.zgy/data")
    monkeypatch.chdir(of_level.folder)
    with xarray.open_dataset("lod0.zarr.json", engine="kerchunk") as data:
        assert_same(data["image"].values, of_level.samples())
