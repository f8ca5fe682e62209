#!/usr/bin/env python3
"""Writes tests/data/hdf5: files of HDF5 and netCDF-4 in every layout, chunk index, filter and type, and what h5py reads from them.

    pip install h5py netCDF4 numpy hdf5plugin
    ./scripts/make_hdf5_fixtures.py

expected.json has for each array: its file, its path, shape and NumPy type as volfs shows them, and the CRC-32 of its samples in C
order, little-endian. The samples are the same each time.
"""
import ctypes
import json
import shutil
import zlib
from pathlib import Path

import h5py
import hdf5plugin
import netCDF4
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t, h5z

ROOT = Path(__file__).resolve().parent.parent / "tests/data/hdf5"
expected = []


def samples(shape, dtype, seed=1):
    dtype = np.dtype(dtype)
    noisy = np.arange(int(np.prod(shape))).reshape(shape) * 3 + np.random.default_rng(seed).integers(0, 5, shape)
    if dtype.kind == "b":
        return noisy % 2 == 0
    if dtype.kind == "c":
        return (noisy + 1j * (noisy * 2)).astype(dtype)
    return (noisy - (7 if dtype.kind in "if" else 0)).astype(dtype)


def expect(name, path, values):
    values = np.asarray(values)
    if values.dtype.kind == "b":
        values = values.astype("i1")
    values = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<")))
    expected.append({"file": name, "path": path, "shape": list(values.shape) or [1], "dtype": values.dtype.name,
                     "crc32": f"{zlib.crc32(values.tobytes()):08x}"})


def expect_all(name, but=()):
    with h5py.File(ROOT / name) as file:
        def visit(path, item):
            if isinstance(item, h5py.Dataset) and path not in but and item.dtype.kind not in "OSV" and item.size:
                expect(name, path, item[()])
        file.visititems(visit)


def low(file, name, file_type, shape, chunks=None, values=None, change=None, most=None):
    """Creates a dataset with calls of the library that h5py does not wrap."""
    properties = h5p.create(h5p.DATASET_CREATE)
    if chunks:
        properties.set_chunk(chunks)
    if change:
        change(properties)
    dataset = h5d.create(file.id, name.encode(), file_type, h5s.create_simple(shape, most or shape), properties)
    if values is not None:
        dataset.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(values))
    return h5py.Dataset(dataset)


def layouts(name, libver):
    with h5py.File(ROOT / name, "w", libver=libver) as file:
        values = samples((7, 9, 11), "<i4")
        file.create_dataset("contiguous", data=values)
        file.create_dataset("big endian", data=values.astype(">i4"))
        file.create_dataset("never written", (4, 5), "<f4", fillvalue=2.5)
        low(file, "compact", h5t.STD_I32LE, (5, 3), None, samples((5, 3), "<i4"), lambda p: p.set_layout(h5d.COMPACT))
        file.create_dataset("scalar", data=np.float64(1.5))
        file.create_dataset("empty", (0, 3), "<f4", maxshape=(None, 3), chunks=(1, 3))
        for filters in [{}, {"compression": "gzip", "shuffle": True}]:
            packed = " packed" if filters else ""
            file.create_dataset("single" + packed, data=values, chunks=(7, 9, 11), **filters)
            few = file.create_dataset("fixed" + packed, (7, 9, 11), "<i4", chunks=(2, 4, 4), fillvalue=-1, **filters)
            few[0:3, 2:7] = values[0:3, 2:7]
            many = file.create_dataset("paged" + packed, (46, 50), "u1", chunks=(2, 1), fillvalue=9, **filters)
            many[3:9, 40:45] = samples((6, 5), "u1")
            many[44:, 49] = 77
            grows = file.create_dataset("extensible" + packed, (300, 5), "<u2", maxshape=(None, 5), chunks=(1, 5), **filters)
            grows[::2] = samples((150, 5), "<u2")
            both = file.create_dataset("both grow" + packed, (25, 14), "<i2", maxshape=(None, None), chunks=(2, 1), **filters)
            both[:20] = samples((20, 14), "<i2")
            if packed:
                continue
            wide = file.create_dataset("extensible wide" + packed, (6, 150000), "u1", maxshape=(6, None), chunks=(3, 1), **filters)
            for at in [0, 3, 11, 5000, 149999]:
                wide[1:5, at] = at % 251 + 1
        low(file, "implicit", h5t.STD_I16LE, (7, 9), (2, 4), samples((7, 9), "<i2"), lambda p: p.set_alloc_time(h5d.ALLOC_TIME_EARLY))
        shrunk = file.create_dataset("shrunk", data=samples((20, 6), "<i4"), maxshape=(None, 6), chunks=(4, 4))
        shrunk.resize((9, 6))
        direct = file.create_dataset("masked", (4, 6), "<u2", chunks=(2, 6), compression="gzip", shuffle=True)
        direct.id.write_direct_chunk((0, 0), samples((2, 6), "<u2").tobytes(), 3)
        direct[2:] = samples((2, 6), "<u2", 5)
        # nobody has this filter, and no chunk
        unknown = lambda p: (p.set_filter(65000, h5z.FLAG_OPTIONAL, ()), p.set_fletcher32())
        low(file, "unknown filter", h5t.STD_I16LE, (5, 6), (2, 6), samples((5, 6), "<i2"), unknown)
        file["type"] = np.dtype("<i2")
        file.create_dataset("named type", (3, 4), file["type"])[...] = samples((3, 4), "<i2")
        for number in range(3):
            file.attrs[f"number {number}"] = number
    expect_all(name)


def types(name):
    with h5py.File(ROOT / name, "w") as file:
        for dtype in ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]:
            for order in "<>":
                file.create_dataset(f"{order}{dtype}", data=samples((3, 5), order + dtype))
        file.create_dataset("bool", data=samples((3, 5), "?"))
        file.create_dataset("enum", data=samples((3, 5), "<i2") % 3, dtype=h5py.enum_dtype({"a": 0, "b": 1, "c": 2}, "<i2"))
        for path, dtype, chunks in [("arrays", "<i4", (3,)), ("big arrays", ">f4", None)]:
            file.create_dataset(path, (4,), np.dtype((dtype, (2, 3))), chunks=chunks)[:] = samples((4, 2, 3), dtype)
        for bytes_, offset, bits, order in [(4, 3, 17, h5t.ORDER_LE), (2, 0, 12, h5t.ORDER_BE), (3, 0, 24, h5t.ORDER_LE), (5, 0, 40, h5t.ORDER_BE)]:
            kind = h5t.STD_I32LE.copy()
            kind.set_size(max(bytes_, 4))
            kind.set_precision(bits)
            kind.set_offset(offset)
            kind.set_size(bytes_)
            kind.set_order(order)
            values = samples((3, 4), "<i8") - 9
            low(file, f"bits {bytes_} {offset} {bits}", kind, (3, 4)).id.write(h5s.ALL, h5s.ALL, values, h5t.NATIVE_INT64)
        half = h5t.IEEE_F32LE.copy()
        half.set_fields(15, 7, 8, 0, 7)
        half.set_size(2)
        half.set_ebias(127)
        low(file, "bfloat16", half, (3, 5)).id.write(h5s.ALL, h5s.ALL, samples((3, 5), "<f4"), h5t.NATIVE_FLOAT)
        low(file, "extended", h5t.NATIVE_LDOUBLE, (3, 5)).id.write(h5s.ALL, h5s.ALL, samples((3, 5), "<f8") / 3, h5t.NATIVE_DOUBLE)
        file.create_dataset("texts", data=["a", "b"], dtype=h5py.string_dtype())
        file.create_dataset("fixed texts", data=np.array([b"a", b"b"]))
        file.create_dataset("structures", data=np.zeros(3, [("a", "<i4"), ("b", "<f8")]))
        file.create_dataset("references", (2,), h5py.ref_dtype)
        file.create_dataset("opaque", data=np.zeros(2, "V5"))
        file.create_dataset("lists", (2,), h5py.vlen_dtype(np.int32))
        file.create_dataset("nothing", data=h5py.Empty("<f4"))
        values = samples((3, 4), "<i8") - 9
        for path, shown in [("bits 4 3 17", "<i4"), ("bits 2 0 12", "<i2"), ("bits 3 0 24", "<i8"), ("bits 5 0 40", "<i8")]:
            expect(name, path, values.astype(shown))
        expect(name, "bfloat16", samples((3, 5), "<f4"))
        expect(name, "extended", samples((3, 5), "<f8") / 3)
    expect_all(name, ["bits 4 3 17", "bits 2 0 12", "bits 3 0 24", "bits 5 0 40", "bfloat16", "extended"])


def filters(name):
    with h5py.File(ROOT / name, "w", libver="latest") as file:
        def add(path, dtype, **how):
            file.create_dataset(path, data=samples((20, 30), dtype), chunks=(8, 16), **how)
        add("deflate", "<i4", compression="gzip")
        add("all", ">f8", compression="gzip", shuffle=True, fletcher32=True)
        add("fletcher32", "<i2", fletcher32=True)
        add("shuffle", "<f4", shuffle=True)
        add("lzf", "<i4", compression="lzf")
        add("lzf shuffle", ">u2", compression="lzf", shuffle=True)
        for dtype in ["<i4", ">i4", "<u2", ">i8", "i1", "u1"]:
            add("scaleoffset " + dtype, dtype, scaleoffset=0)
        add("scaleoffset 12", "<u4", scaleoffset=12)
        for dtype in ["<f4", ">f4", "<f8", ">f8"]:
            add("scaleoffset " + dtype, dtype, scaleoffset=2)
        filled = file.create_dataset("scaleoffset fill", (20, 30), "<i4", chunks=(8, 16), scaleoffset=0, fillvalue=-1000)
        filled[2:7, 3:9] = samples((5, 6), "<i4")
        for path, dtype, bits, offset in [("nbit", "<i4", 17, 3), ("nbit big", ">u2", 11, 2)]:
            kind = h5t.py_create(np.dtype(dtype)).copy()
            kind.set_precision(bits)
            kind.set_offset(offset)
            low(file, path, kind, (20, 30), (8, 16), samples((20, 30), dtype) % 1000, lambda p: p.set_filter(h5z.FILTER_NBIT, h5z.FLAG_MANDATORY))
        low(file, "nbit floats", h5t.IEEE_F32BE, (20, 30), (8, 16), samples((20, 30), ">f4"), lambda p: p.set_filter(h5z.FILTER_NBIT, h5z.FLAG_MANDATORY))
        add("szip", "<i4", compression="szip", compression_opts=("nn", 8))
        add("szip big", ">i2", compression="szip", compression_opts=("nn", 16))
        add("szip entropy", "<u2", compression="szip", compression_opts=("ec", 4))
        add("szip wide", "<f8", compression="szip", compression_opts=("nn", 32))
        zeros = file.create_dataset("szip zeros", (64, 64), "u1", chunks=(64, 64), compression="szip", compression_opts=("nn", 4))
        zeros[5, 3:9] = samples((6,), "u1")
        zeros[40:, 60:] = 1
        add("zstd", "<f4", **hdf5plugin.Zstd())
        add("lz4", "<f4", **hdf5plugin.LZ4())
        add("bitshuffle", "<i4", **hdf5plugin.Bitshuffle(cname="none"))
        add("bitshuffle lz4", "<u2", **hdf5plugin.Bitshuffle())
        add("bitshuffle zstd", "<f8", **hdf5plugin.Bitshuffle(cname="zstd"))
        add("blosc", "<i4", **hdf5plugin.Blosc())
        add("bzip2", "<i4", **hdf5plugin.BZip2())
        add("zfp", "<f4", **hdf5plugin.Zfp(reversible=True))
    expect_all(name, ["zfp"])


def edges(name):
    """Chunks that are not filtered where they reach beyond the array: h5py does not wrap the call."""
    library, = (Path(h5py.__file__).parent.parent / "h5py.libs").glob("libhdf5-*")

    def change(properties):
        properties.set_deflate(6)
        assert ctypes.CDLL(str(library)).H5Pset_chunk_opts(ctypes.c_int64(properties.id), ctypes.c_uint(2)) == 0

    with h5py.File(ROOT / name, "w", libver="latest") as file:
        low(file, "edges", h5t.STD_I32LE, (7, 9), (3, 4), samples((7, 9), "<i4"), change)
        low(file, "one axis", h5t.STD_I32LE, (6, 9), (3, 4), samples((6, 9), "<i4"), change)
    expect_all(name)


def links(name, libver):
    with h5py.File(ROOT / name, "w", libver=libver, userblock_size=1024, track_order=libver == "latest") as file:
        values = samples((4, 5), "<i2")
        inner = file.create_group("group/inner")
        inner["array"] = values
        file["hard"] = inner["array"]
        file["soft"] = h5py.SoftLink("/group/inner/array")
        file["dangling"] = h5py.SoftLink("/group/none")
        file["outside"] = h5py.ExternalLink("other.h5", "/array")
        inner["loop"] = file["group"]
        inner["root"] = file["/"]
        file.attrs["title"] = "links"
        inner["soft loop"] = h5py.SoftLink("/group")
        many = file.create_group("many")
        for number in range(30):
            many[f"{number:03d} " + "long " * 10] = np.uint8(number)
            inner["array"].attrs[f"attribute {number}"] = f"text {number}"
        expect(name, "hard", values)
        for number in range(30):
            expect(name, f"many/{number:03d} " + "long " * 10, np.uint8(number))
    with open(ROOT / name, "r+b") as file:
        file.write(b"a block of the user")


def netcdf(name):
    with netCDF4.Dataset(ROOT / name, "w") as file:
        file.title = "rain"
        for dimension, count in [("time", None), ("lat", 6), ("lon", 8), ("bare", 3)]:
            file.createDimension(dimension, count)
        for dimension, unit, first, step in [("time", "days since 2000-01-01", 0, 1), ("lat", "degrees_north", 60, -2.5), ("lon", "degrees_east", 5, 2.5)]:
            count = 4 if dimension == "time" else len(file.dimensions[dimension])
            variable = file.createVariable(dimension, "f8", (dimension,))
            variable.units = unit
            variable[:] = first + step * np.arange(count)
        rain = file.createVariable("rain", "i2", ("time", "lat", "lon"), zlib=True, fill_value=-32768)
        rain.setncatts({"scale_factor": np.float32(0.5), "add_offset": 10.0, "valid_range": np.array([0, 400], "i2"), "units": "mm"})
        rain.set_auto_maskandscale(False)
        rain[:] = samples((4, 6, 8), "<i2")
        file.createVariable("plain", "f4", ("lat", "bare"))[:] = samples((6, 3), "<f4")
        group = file.createGroup("sub")
        group.createDimension("level", 5)
        group.createVariable("level", "i4", ("level",))[:] = [10, 20, 40, 80, 160]
        group.createVariable("wind", "f4", ("level", "lon"))[:] = samples((5, 8), "<f4")
    expect_all(name, ["bare"])


def pyramids():
    def text(value):
        return np.array(list(value), "S1")
    with h5py.File(ROOT / "image.ims", "w", libver="latest") as file:
        image = file.create_group("DataSetInfo/Image")
        for axis, (least, most) in enumerate([(-12, 12), (100, 112), (2.5, 7.5)]):
            image.attrs[f"ExtMin{axis}"], image.attrs[f"ExtMax{axis}"] = text(str(least)), text(str(most))
        image.attrs["Unit"] = text("um")
        for level, size in enumerate([(5, 12, 24), (5, 6, 12)]):
            channel = file.create_group(f"DataSet/ResolutionLevel {level}/TimePoint 0/Channel 0")
            for axis, count in zip("ZYX", size):
                channel.attrs[f"ImageSize{axis}"] = text(str(count))
            padded = tuple(-(-count // 8) * 8 for count in size)
            channel.create_dataset("Data", data=samples(padded, "u1"), chunks=(8, 8, 8), compression="gzip")
            channel["Histogram"] = samples((16,), "<u8")
    with h5py.File(ROOT / "viewer.h5", "w", libver="latest") as file:
        for level, size in enumerate([(6, 12, 16), (6, 6, 8), (3, 3, 4)]):
            file.create_dataset(f"t00000/s00/{level}/cells", data=samples(size, "<i2"), chunks=(3, 3, 4), compression="gzip")
        file["s00/resolutions"] = np.array([[1, 1, 1], [2, 2, 1], [4, 4, 2]], "f8")
    expect_all("image.ims")
    expect_all("viewer.h5")


def virtual(name, libver):
    """Virtual datasets, whose sources are in files of the folder `parts` and in the file itself."""
    free = h5s.UNLIMITED
    layout, source = h5py.VirtualLayout, h5py.VirtualSource

    def part(number, path="d", shape=(8, 20, 20)):
        return source(f"parts/c{number}.h5", path, shape)

    def mapped(file, path, shape, most, mappings, data_type="<i2"):
        """Makes a dataset of mappings: start, stride, count and block for each axis on both sides, where not all."""
        def selected(shape, most, steps):
            space = h5s.create_simple(shape, most)
            if steps:
                start, stride, count, block = zip(*steps)
                space.select_hyperslab(start, count, stride, block)
            return space
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_fill_value(np.array(5, data_type))
        for (to, where, dataset, source_shape, source_most, steps) in mappings:
            properties.set_virtual(selected(shape, most, to), where.encode(), dataset.encode(), selected(source_shape, source_most, steps))
        h5d.create(file.id, path.encode(), h5t.py_create(np.dtype(data_type)), h5s.create_simple(shape, most), properties)

    with h5py.File(ROOT / name, "w", libver=libver) as file:
        made = layout((3, 8, 20, 20), "i2")
        for number in range(3):
            made[number] = part(number)
        file.create_virtual_dataset("stacked", made, fillvalue=-1)
        made = layout((28, 20, 20), "i2")
        for number in range(4):
            made[8 * number:8 * number + (8 if number < 3 else 4)] = part(number, shape=(8 if number < 3 else 4, 20, 20))
        file.create_virtual_dataset("one after the other, the last one missing", made, fillvalue=-1)
        made = layout((24, 20, 20), "i2")
        for number in range(3):
            made[number::3] = part(number)
        file.create_virtual_dataset("in turn", made, fillvalue=-1)
        made = layout((27, 20, 30), "i2")
        for number in range(3):
            made[9 * number:9 * number + 8, 3:17, 1:21:2] = part(number)[:, 2:16, 7:17]
        file.create_virtual_dataset("across chunks", made, fillvalue=-7)
        made = layout((8, 10), "i2")
        made[:, :] = part(1)[:, 3, 1::2]
        file.create_virtual_dataset("plane", made)
        made = layout((2, 6, 10), "f4")
        for number in range(2):
            made[number] = source(f"parts/p{number}.h5", "deep/d", (6, 10))
        file.create_virtual_dataset("contiguous, big-endian", made)
        file["own"] = samples((6, 4), "u1")
        # with more elements in all mappings than in the dataset, the library forgets the fill value
        made = layout((3, 12), "u1")
        made[:, :4] = source(".", "own", (6, 4))[1:4]
        made[:, 2:6] = source(".", "own", (6, 4))[:3]
        made[2, 10] = source(".", "link/own", (6, 4))[5, 1]
        file.create_virtual_dataset("of this file, overlapping", made, fillvalue=9)
        file["link"] = h5py.SoftLink("/")
        every = (20, 20), [(0, 20, 1, 20)] * 2
        grown = [(f"parts/c{number}.h5", "growing", (8 + number, 20, 20), (free, 20, 20)) for number in range(3)]
        mapped(file, "growing side by side", (0, 20, 60), (free, 20, 60), [
            ([(0, 1, 1, free), (0, 20, 1, 20), (20 * number, 20, 1, 20)], *grown[number], [(0, 1, 1, free), *every[1]])
            for number in range(3)])
        mapped(file, "growing in turn", (0, 20, 20), (free, 20, 20), [
            ([(2 * number, 6, free, 2), *every[1]], *grown[number], [(0, 1, free, 1), *every[1]]) for number in range(3)])
        mapped(file, "numbered", (0, 20, 20), (free, 20, 20), [
            ([(1, 9, free, 8), *every[1]], "parts/c%b.h5", "d", (8, 20, 20), None, [(0, 8, 1, 8), *every[1]])])
        mapped(file, "numbered datasets", (0, 4), (free, 4), [
            ([(0, 1, free, 1), (0, 4, 1, 4)], ".", "100%% row %b", (4,), None, None)], "|u1")
        for number in range(3):
            file[f"100% row {number}"] = samples((4,), "u1", number)
        # names that are stored once
        made = layout((4, 8, 20, 20), "i2")
        for number in range(4):
            made[number] = source(f"parts/c{number % 2}.h5", "d", (8, 20, 20))
        file.create_virtual_dataset("same names", made)
        made = layout((3, 8, 20, 20), "i2")
        made[:] = source(".", "stacked", made.shape)
        file.create_virtual_dataset("of a virtual one", made)
        mapped(file, "without sources", (3, 4), None, [])
    expect_all(name, ["of a virtual one"])


def virtual_parts():
    (ROOT / "parts").mkdir()
    for number in range(3):
        with h5py.File(ROOT / f"parts/c{number}.h5", "w", libver="latest") as file:
            file.create_dataset("d", data=samples((8, 20, 20), "<i2", number), chunks=(4, 8, 8), compression="gzip")
            file.create_dataset("growing", data=samples((8 + number, 20, 20), "<i2", number + 10), chunks=(1, 20, 20), maxshape=(None, 20, 20), compression="gzip")
    for number in range(2):
        with h5py.File(ROOT / f"parts/p{number}.h5", "w") as file:
            file["deep/d"] = samples((6, 10), ">f4", number)


class CacheImage(ctypes.Structure):
    """H5AC_cache_image_config_t."""

    _fields_ = [("version", ctypes.c_int), ("generates", ctypes.c_bool), ("resizes", ctypes.c_bool), ("ageout", ctypes.c_int)]


def cache_image(name):
    library = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "h5py.libs/libhdf5-" in line)
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_libver_bounds(h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)
    image = CacheImage(1, True, False, -1)
    if ctypes.CDLL(library).H5Pset_mdc_image_config(ctypes.c_int64(access.id), ctypes.byref(image)) < 0:
        raise OSError("this HDF5 writes no images of its cache")
    with h5py.File(h5f.create(str(ROOT / name).encode(), h5f.ACC_TRUNC, fapl=access)) as file:
        file["x"] = samples((4, 6), "i4")


def main():
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir(parents=True)
    layouts("layouts-earliest.h5", "earliest")
    layouts("layouts-latest.h5", "latest")
    types("types.h5")
    filters("filters.h5")
    edges("edges.h5")
    links("links-earliest.h5", "earliest")
    links("links-latest.h5", "latest")
    netcdf("rain.nc")
    pyramids()
    virtual_parts()
    virtual("virtual-earliest.h5", "earliest")
    virtual("virtual-latest.h5", "latest")
    cache_image("cache-image.h5")
    lines = ",\n".join(json.dumps(entry) for entry in expected)
    (ROOT / "expected.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
