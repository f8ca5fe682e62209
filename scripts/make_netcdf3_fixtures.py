#!/usr/bin/env python3
"""Writes tests/data/netcdf3: netCDF-3 files of each kind, and what netCDF4 reads from them.

    pip install netCDF4 numpy
    ./scripts/make_netcdf3_fixtures.py

expected.json has for each variable: its file, its name, its shape and type, and the CRC-32 of its samples in C order,
little-endian. The samples are the same each time.
"""
import json
import shutil
import zlib
from pathlib import Path

import netCDF4
import numpy as np

ROOT = Path(__file__).resolve().parent.parent / "tests/data/netcdf3"
KINDS = {"classic.nc": "NETCDF3_CLASSIC", "offsets.nc": "NETCDF3_64BIT_OFFSET", "cdf5.nc": "NETCDF3_64BIT_DATA"}


def write(name, kind):
    types = ["i1", "i2", "i4", "f4", "f8"] + (["u1", "u2", "u4", "i8", "u8"] if name == "cdf5.nc" else [])
    noise = np.random.default_rng(1)
    with netCDF4.Dataset(ROOT / name, "w", format=kind) as file:
        file.set_auto_maskandscale(False)
        file.setncatts({"title": "rain", "list": np.array([1, -2, 3], "i2"), "tenth": np.float32(0.1)})
        for dimension, count in [("time", None), ("lat", 6), ("lon", 9), ("sample", 20000)]:
            file.createDimension(dimension, count)
        lat = file.createVariable("lat", "f4", ("lat",))
        lat.units = "degrees_north"
        time = file.createVariable("time", "f8", ("time",))
        for dtype in types:
            file.createVariable(f"whole_{dtype}", dtype, ("lat", "lon"))[:] = noise.integers(0, 100, (6, 9))
            # records of one sample, and of an odd number of bytes
            file.createVariable(f"one_{dtype}", dtype, ("time",))[:] = noise.integers(0, 100, 5)
            file.createVariable(f"records_{dtype}", dtype, ("time", "lat", "lon"))[:] = noise.integers(0, 100, (5, 6, 9))
        rain = file.createVariable("rain", "i2", ("time", "lon"), fill_value=-1)
        rain.setncatts({"scale_factor": 0.5, "add_offset": 10.0, "valid_range": np.array([0, 40], "i2")})
        rain[:] = np.arange(45).reshape(5, 9)
        file.createVariable("scalar", "i4", ())[...] = 7
        file.createVariable("text", "S1", ("lat",))[:] = np.array(list("abcdef"), "S1")
        if name == "offsets.nc":
            # larger than what is read at a time
            file.createVariable("wide", "i4", ("time", "sample"))[:] = np.arange(100000).reshape(5, 20000)
        lat[:] = 60 - 2.5 * np.arange(6)
        time[:] = np.arange(5)


def write_others():
    for dtype in ("i1", "i2"):
        with netCDF4.Dataset(ROOT / f"alone-{dtype}.nc", "w", format="NETCDF3_CLASSIC") as file:
            file.createDimension("time", None)
            file.createDimension("x", 3)
            # records of a variable that is alone have no padding
            file.createVariable("alone", dtype, ("time", "x"))[:] = np.arange(21).reshape(7, 3)
    with netCDF4.Dataset(ROOT / "no-records.nc", "w", format="NETCDF3_CLASSIC") as file:
        file.createDimension("time", None)
        file.createVariable("none", "f4", ("time",))


def main():
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir(parents=True)
    for name, kind in KINDS.items():
        write(name, kind)
    write_others()
    expected = []
    for path in sorted(ROOT.glob("*.nc")):
        with netCDF4.Dataset(path) as file:
            file.set_auto_maskandscale(False)
            for name, variable in file.variables.items():
                if variable.dtype.kind != "S":
                    values = np.ascontiguousarray(variable[...]).astype(variable.dtype.newbyteorder("<"))
                    expected.append({"file": path.name, "name": name, "shape": list(variable.shape) or [1],
                                     "dtype": variable.dtype.name, "crc32": f"{zlib.crc32(values.tobytes()):08x}"})
    lines = ",\n".join(json.dumps(entry) for entry in expected)
    (ROOT / "expected.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
