"""lodN.nc, netCDF-4: h5py, netCDF4-python, xarray with both engines, ncdump, NCO, CDO and GDAL; in place, and over HTTP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import LAYERS, SCALED, Level, assert_same, level, levels

# Layers of the formats that are trees of chunks, and some without positions.
TREES = ["demo/cells/color", "wkw/pyramid/rgb"]
ONE_OF_EACH = ["demo/north.zgy/data", "demo/south.vds/Amplitude", *TREES]


def layers_of(mount: Path, folder: str) -> list[str]:
    """Return all layers below a folder of the mount, as paths in it."""
    found = []
    for at, folders, files in os.walk(mount / folder):
        if "lod0.nc" in files:
            found.append(os.path.relpath(at, mount))
            folders.clear()
        folders[:] = [name for name in folders if not name.endswith((".zarr", ".slices"))]
    return sorted(found)


def no_value_of(of_level: Level) -> Any:
    """Return what marks missing samples, if samples can have that value."""
    no_value = of_level.about["no_value"]
    dtype = np.dtype(of_level.about["dtype"])
    return no_value if no_value is not None and dtype.type(no_value) == no_value else None


def check_axes(of_level: Level, names: list[str], coordinate: Any) -> None:
    """Compare the names and positions of dimensions; `coordinate` returns positions and unit, or None."""
    for name, axis in zip(names, of_level.about["axes"], strict=True):
        assert name in (axis["name"].replace("/", "%2F"), *(f"axis{n}" for n in range(7))), (name, axis)
        found = coordinate(name)
        if found is None:
            assert (axis["first"], axis["step"]) == (0, 1), axis
            continue
        np.testing.assert_array_equal(found[0], axis["first"] + np.arange(axis["count"]) * axis["step"])
        assert found[1] == axis["unit"], axis


def test_h5py_reads_every_fixture(mount: Path) -> None:
    h5py = pytest.importorskip("h5py")
    layers = layers_of(mount, ".")
    formats = {level(mount, layer).about["format"] for layer in layers}
    assert {"zgy", "vds", "wkw"} < formats
    for layer in layers:
        for of_level in levels(mount, layer):
            if np.prod(of_level.shape) > 1 << 24:
                continue
            try:
                of_level.file(".raw").read_bytes()
            except OSError:
                continue  # damaged on purpose
            samples = of_level.samples()
            with h5py.File(of_level.file(".nc")) as file:
                data = file["data"]
                assert_same(data[()], samples)
                assert len(data.attrs) >= 2
                names = [dimension[0].name.removeprefix("/") for dimension in data.dims]

                def coordinate(name: str, file: Any = file) -> Any:
                    scale = file[name]
                    if scale.dtype.kind == "f" and scale.dtype.itemsize == 8:
                        unit = scale.attrs.get("units")
                        return scale[()], None if unit is None else unit.decode()
                    return None

                check_axes(of_level, names, coordinate)
            assert os.path.getsize(of_level.file(".nc")) % 4096 == samples.nbytes % 4096


@pytest.mark.parametrize("layer", LAYERS)
def test_netcdf4_python(mount: Path, layer: str) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    for of_level in levels(mount, layer):
        with netcdf4.Dataset(of_level.file(".nc")) as file:
            file.set_auto_maskandscale(False)
            data = file["data"]
            assert_same(data[:], of_level.samples())
            assert file.Conventions == "CF-1.8" and data.long_name == of_level.about["layer"]
            assert getattr(data, "_FillValue", None) == no_value_of(of_level)

            def coordinate(name: str, file: Any = file) -> Any:
                found = file.variables.get(name)
                return None if found is None else (found[:], getattr(found, "units", None))

            check_axes(of_level, list(data.dimensions), coordinate)


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
@pytest.mark.parametrize("layer", ONE_OF_EACH)
def test_xarray(mount: Path, layer: str, engine: str) -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    for of_level in levels(mount, layer):
        with xr.open_dataset(of_level.file(".nc"), engine=engine, mask_and_scale=False) as data:
            assert_same(data["data"].values, of_level.samples())
            axis = of_level.about["axes"][0]
            at = {data["data"].dims[0]: axis["first"] + axis["step"] * (axis["count"] // 2)}
            assert_same(data["data"].sel(at).values, of_level.samples()[axis["count"] // 2])


@pytest.mark.parametrize("layer", SCALED)
def test_xarray_decodes_values(mount: Path, layer: str) -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    of_level = level(mount, layer)
    with xr.open_dataset(of_level.file(".nc"), engine="netcdf4") as data:
        values = data["data"].values.astype(np.float64)
    stored, about = of_level.samples(), of_level.about
    missing = stored == about["no_value"]
    expected = stored * (about["scale"] or 1) + (about["offset"] or 0)
    assert np.isnan(values[missing]).all()
    np.testing.assert_allclose(values[~missing], expected[~missing], rtol=1e-6)


def run(*command: object) -> str:
    """Run a program that reads netCDF, or skip the test; return what it prints."""
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([str(part) for part in command], capture_output=True, check=True, text=True)
    return done.stdout


@pytest.mark.parametrize("layer", ONE_OF_EACH)
def test_ncdump_and_nccopy(mount: Path, layer: str, tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    of_level = level(mount, layer)
    header = run("ncdump", "-h", of_level.file(".nc"))
    assert 'Conventions = "CF-1.8"' in header
    for name, count in zip(of_level.axes, of_level.shape, strict=True):
        assert f"{name} = {count} ;" in header
    run("nccopy", of_level.file(".nc"), tmp_path / "copy.nc")
    with netcdf4.Dataset(tmp_path / "copy.nc") as file:
        file.set_auto_maskandscale(False)
        assert_same(file["data"][:], of_level.samples())


@pytest.mark.parametrize("layer", ONE_OF_EACH)
def test_nco_cuts_a_part(mount: Path, layer: str, tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    of_level = level(mount, layer)
    last = min(9, of_level.shape[0] - 1)
    run("ncks", "-O", "-d", f"{of_level.axes[0]},1,{last},2", of_level.file(".nc"), tmp_path / "part.nc")
    with netcdf4.Dataset(tmp_path / "part.nc") as file:
        file.set_auto_maskandscale(False)
        assert_same(file["data"][:], of_level.samples()[1 : last + 1 : 2])


@pytest.mark.parametrize("layer", ONE_OF_EACH[:3])
def test_cdo_knows_the_array(mount: Path, layer: str) -> None:
    of_level = level(mount, layer)
    told = run("cdo", "-s", "sinfon", of_level.file(".nc"))
    assert "data" in told and str(int(np.prod(of_level.shape[1:]))) in told


@pytest.mark.parametrize("layer", ONE_OF_EACH[:3])
def test_gdal_reads_rows(mount: Path, layer: str) -> None:
    if level(mount, layer).about["dtype"] == "int8":
        pytest.skip("GDAL 3.6 has no int8")
    of_level = level(mount, layer)
    told = json.loads(run("gdalmdiminfo", f'NETCDF:"{of_level.file(".nc")}"'))
    assert [size["size"] for size in told["dimensions"]] == list(of_level.shape)
    text = run("gdallocationinfo", "-valonly", "-b", "1", f'NETCDF:"{of_level.file(".nc")}":data', "5", "7")
    plane = of_level.samples()[0]
    assert float(text) in (float(plane[7, 5]), float(plane[plane.shape[0] - 8, 5]))  # rows from below without `axis`


def test_byte_ranges_over_http(mount: Path, server: str) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    of_level = level(mount, ONE_OF_EACH[0])
    try:
        file = netcdf4.Dataset(f"{server}/{ONE_OF_EACH[0]}/lod0.nc#mode=bytes")
    except OSError:
        pytest.skip("this netCDF was built without byte ranges")
    with file:
        assert_same(file["data"][5], of_level.samples()[5])
