"""Levels over OPeNDAP, DAP2 and DAP4: netCDF4-python, xarray with netCDF4 and pydap, pydap, ncdump, nccopy, NCO, CDO and GDAL."""

from __future__ import annotations

import json
import shutil
import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SCALED, Level, level, levels, volfs

TYPES = [
    *(f"wkw/types/{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32)),
    "wkw/types/float32",
    "wkw/types/float64",
]
LAYERS = ["demo/north.zgy/data", "demo/south.vds/Amplitude", "wkw/pyramid/rgb", "vds/two.vds/Amplitude", *TYPES]
WIDE = ["wkw/types/int64", "wkw/types/uint64"]


def parts(shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """Return the whole, a box, and a box with steps."""
    whole = tuple(slice(0, n) for n in shape)
    box = tuple(slice(n // 4, n // 4 + max(1, n // 3)) for n in shape)
    steps = tuple(slice(min(1, n - 1), n, max(1, n // 5)) for n in shape)
    return [whole, box, steps]


def equal(got: Any, of_level: Level, part: tuple[slice, ...]) -> None:
    """Compare values: DAP2 has few types, so the types differ."""
    np.testing.assert_array_equal(np.asarray(got), of_level.samples()[part].astype(np.asarray(got).dtype))


def plain(name: str) -> str:
    """Return the name of an axis as clients see it."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name)


def check_positions(of_level: Level, variables: Any) -> None:
    """Compare the positions that a dataset has with those of lodN.json."""
    for axis in of_level.about["axes"]:
        name = plain(axis["name"])
        if name in variables:
            positions = axis["first"] + np.arange(axis["count"]) * axis["step"]
            np.testing.assert_array_equal(np.asarray(variables[name][:]), positions)
        else:
            assert (axis["first"], axis["step"]) == (0, 1)


@pytest.mark.parametrize("layer", LAYERS)
def test_netcdf4_over_dap2(mount: Path, server: str, layer: str) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    for of_level in levels(mount, layer):
        with netcdf4.Dataset(f"{server}/{layer}/lod{of_level.lod}") as file:
            file.set_auto_maskandscale(False)
            for part in parts(of_level.shape):
                equal(file["data"][part], of_level, part)
            check_positions(of_level, file.variables)


@pytest.mark.parametrize("layer", [*LAYERS[:3], *TYPES, *WIDE])
def test_netcdf4_over_dap4(mount: Path, server: str, layer: str) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    of_level = level(mount, layer)
    with netcdf4.Dataset(f"dap4://{server.removeprefix('http://')}/{layer}/lod0") as file:
        file.set_auto_maskandscale(False)
        for part in parts(of_level.shape):
            got = file["data"][part]
            assert np.asarray(got).dtype.newbyteorder("=") == np.dtype(of_level.about["dtype"])
            equal(got, of_level, part)
        check_positions(of_level, file.variables)


@pytest.mark.parametrize("layer", [*LAYERS[:2], TYPES[0], TYPES[4], *SCALED])
def test_xarray_over_dap2(mount: Path, server: str, layer: str) -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    of_level = level(mount, layer)
    with xr.open_dataset(f"{server}/{layer}/lod0", mask_and_scale=False) as data:
        for part in parts(of_level.shape):
            equal(data["data"][part].values, of_level, part)
    with xr.open_dataset(f"{server}/{layer}/lod0") as data:
        missing = of_level.samples() == of_level.about["no_value"]
        if missing.any():
            np.testing.assert_array_equal(np.isnan(data["data"].values), missing)


@pytest.mark.parametrize("query", ["", "?dap4.ce=/"])
@pytest.mark.parametrize("layer", [*LAYERS[:2], *TYPES])
def test_xarray_with_pydap(mount: Path, server: str, layer: str, query: str) -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("pydap")
    of_level = level(mount, layer)
    with xr.open_dataset(f"{server}/{layer}/lod0{query}", engine="pydap", mask_and_scale=False) as data:
        for part in parts(of_level.shape)[1:]:
            equal(data["data"][part].values, of_level, part)
        check_positions(of_level, {name: data[name].values for name in data.coords})


@pytest.mark.parametrize("protocol", ["dap2", "dap4"])
@pytest.mark.parametrize("layer", [*LAYERS[:2], *TYPES])
def test_pydap(mount: Path, server: str, layer: str, protocol: str) -> None:
    client = pytest.importorskip("pydap.client")
    of_level = level(mount, layer)
    data = client.open_url(f"{server}/{layer}/lod0", protocol=protocol)["data"]
    for part in parts(of_level.shape):
        equal(np.asarray(data[part]), of_level, part)


def run(*command: object) -> str:
    """Run a program, or skip the test; return what it prints."""
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run([str(part) for part in command], capture_output=True, check=True, text=True).stdout


@pytest.mark.parametrize("address", ["{}", "{}#dap4"])
@pytest.mark.parametrize("layer", LAYERS[:3])
def test_ncdump_and_nccopy(mount: Path, server: str, layer: str, address: str, tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    of_level, url = level(mount, layer), address.format(f"{server}/{layer}/lod0")
    assert 'Conventions = "CF-1.8"' in run("ncdump", "-h", url)
    run("nccopy", url, tmp_path / "copy.nc")
    with netcdf4.Dataset(tmp_path / "copy.nc") as file:
        file.set_auto_maskandscale(False)
        equal(file["data"][:], of_level, (slice(None),) * len(of_level.shape))


@pytest.mark.parametrize("layer", LAYERS[:2])
def test_nco_cuts_with_steps(mount: Path, server: str, layer: str, tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    of_level = level(mount, layer)
    cuts = [part for axis in of_level.axes for part in ("-d", f"{axis},2,20,3")]
    run("ncks", "-O", *cuts, f"{server}/{layer}/lod0", tmp_path / "part.nc")
    with netcdf4.Dataset(tmp_path / "part.nc") as file:
        file.set_auto_maskandscale(False)
        equal(file["data"][:], of_level, (slice(2, 21, 3),) * 3)


@pytest.mark.parametrize("layer", LAYERS[:2])
def test_cdo_copies(mount: Path, server: str, layer: str, tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    of_level = level(mount, layer)
    run("cdo", "-s", "-f", "nc4", "copy", f"{server}/{layer}/lod0", tmp_path / "copy.nc")
    with netcdf4.Dataset(tmp_path / "copy.nc") as file:
        file.set_auto_maskandscale(False)
        equal(np.asarray(file["data"][:]).reshape(of_level.shape), of_level, (slice(None),) * 3)


def test_gdal_reads_rows(mount: Path, server: str, tmp_path: Path) -> None:
    of_level = level(mount, LAYERS[0])
    source = f'NETCDF:"{server}/{LAYERS[0]}/lod0":data'
    run("gdal_translate", "-q", "-b", "6", "-of", "ENVI", source, tmp_path / "plane.raw")
    plane = np.fromfile(tmp_path / "plane.raw", "<f4").reshape(of_level.shape[1:])
    assert (plane == of_level.samples()[5]).all() or (plane[::-1] == of_level.samples()[5]).all()


def test_damage_in_the_middle_makes_clients_fail(tmp_path: Path) -> None:
    netcdf4 = pytest.importorskip("netCDF4")
    folder = tmp_path / "planes"
    folder.mkdir()
    about = {"zarr_format": 2, "shape": [12, 512, 512], "chunks": [1, 512, 512], "dtype": "<f4", "order": "C"}
    about |= {"compressor": {"id": "zlib", "level": 1}, "filters": None, "fill_value": 0.0}
    (folder / ".zarray").write_text(json.dumps(about))
    plane = zlib.compress(np.arange(512 * 512, dtype="<f4").tobytes(), 1)
    for n in range(12):
        damaged = plane[: len(plane) // 2] + bytes(len(plane) // 2) if n == 9 else plane
        (folder / f"{n}.0.0").write_bytes(damaged)
    command = [volfs(), "serve", str(tmp_path), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            url = process.stdout.readline().rsplit(" ", 1)[1].strip() + "planes/data/lod0"
            with netcdf4.Dataset(url) as file:
                assert file["data"][8].shape == (512, 512)
                with pytest.raises((RuntimeError, OSError)):
                    file["data"][:]
            if shutil.which("nccopy"):
                done = subprocess.run(["nccopy", url, tmp_path / "copy.nc"], capture_output=True, check=False)
                assert done.returncode != 0
        finally:
            process.terminate()
