#!/usr/bin/env python3
"""Writes files at random with the libraries of their formats, and compares what the Python module volfs reads of them.

    scripts/stress/random_files.py [--files N] [--seed N] [--module FOLDER] [FORMAT ...]

Formats are hdf5, zarr, n5, precomputed, zgy, vds and wkw. Shapes, types, byte orders, chunks, shards, codecs, filters,
fill values, parts that were never written and sizes that were changed later are drawn from the seed; of ZGY, VDS and WKW
all layers with all levels, their values if samples are scaled, and what files have that no library writes today. Each
array is read whole, and in some boxes with steps. What volfs refuses is counted by its reason, and is wrong for the last
three formats; what the library itself cannot read has to be refused. Exits with 1 if anything was read wrongly, and names
the seed of the file. FOLDER has the package volfs, if it is not installed. Needs
`pip install numpy h5py hdf5plugin zarr tensorstore`, and for the last three formats, in an environment of their own,
`pip install "numpy<2" zfpy pyzgy openvds wkw`.
"""

import argparse
import itertools
import json
import math
import multiprocessing
import os
import re
import shutil
import struct
import sys
import tempfile
import traceback
import urllib.parse
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

# the modules that write the fixtures
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

LONGEST = {0: 1, 1: 400, 2: 60, 3: 24, 4: 12, 5: 8}
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


class Random:
    """What files are drawn with."""

    def __init__(self, seed):
        self.source = np.random.default_rng(seed)

    def below(self, end):
        return int(self.source.integers(end))

    def between(self, least, most):
        return int(self.source.integers(least, most, endpoint=True))

    def chance(self, share):
        return self.source.random() < share

    def of(self, *choices):
        return choices[self.below(len(choices))]

    def shape(self, least, most):
        axes = self.between(least, most)
        return tuple(self.between(1, LONGEST[axes]) for _ in range(axes))

    def chunks(self, shape):
        return tuple(self.between(1, max(1, int(1.3 * count))) for count in shape)

    def box(self, shape):
        return tuple(slice(*sorted(self.between(0, count) for _ in range(2))) for count in shape)

    def index(self, shape):
        """An index of NumPy: numbers, and ranges with a step."""
        return tuple(slice(part.start, part.stop, self.between(1, 3)) if self.chance(0.7) else self.below(count)
                     for part, count in zip(self.box(shape), shape))

    def values(self, dtype, shape):
        """Noise, few values, or runs of the same; floats with NaN and rounded ones."""
        kind, count = self.below(3), int(np.prod(shape))
        if dtype.kind == "b":
            return self.source.integers(0, 2, shape).astype(dtype)
        if dtype.kind in "iu" and kind == 0:
            return np.frombuffer(self.source.bytes(count * dtype.itemsize), dtype).reshape(shape)
        if dtype.kind in "iumM":
            return (self.source.integers(0, 9, shape) * (np.arange(count).reshape(shape) // 7 % 3)).astype(dtype)
        found = np.asarray(100 * self.source.normal(size=shape))
        if dtype.kind == "c":
            return (found + 1j * self.source.normal(size=shape)).astype(dtype)
        found = np.where(self.source.random(shape) < 0.1, np.nan, found) if kind == 0 else found.round() if kind == 1 else found
        return found.astype(dtype)


    def smooth(self, dtype, shape):
        """Waves, zeros at one end, and some noise: lossy codecs leave most of it."""
        found = np.zeros(shape)
        for axis, count in enumerate(shape):
            wave = np.sin(self.source.normal(0, 0.4) * np.arange(count) + self.below(7))
            found = found + wave.reshape([-1 if other == axis else 1 for other in range(len(shape))])
        found += self.of(0, 0.01, 0.3) * self.source.normal(size=shape)
        found[..., :self.of(0, 0, 9)] = 0
        if dtype.kind == "f":
            return (self.of(1e-3, 20, 20, 1e6) * found).astype(dtype)
        most = np.iinfo(dtype).max
        return np.clip((found / 8 + (dtype.kind == "u") / 2) * most, np.iinfo(dtype).min, most * (1 - 1e-6)).astype(dtype)


class Unwritten(Exception):
    """The library does not write what was drawn."""


def hdf5(random, path):
    """Returns the arrays by name, as h5py reads them; an error for what it does not read."""
    import h5py
    import hdf5plugin

    versions = random.of(("earliest", "latest"), ("latest", "latest"), ("earliest", "v108"), ("v110", "v110"), "earliest")
    options = {"userblock_size": random.of(512, 1024, 2048)} if random.chance(0.1) else {}
    names = []
    with h5py.File(path, "w", libver=versions, **options) as file:
        for number in range(random.between(1, 4)):
            name = f"{random.of('a', 'g/b', 'g/h/c', 'x y', 'é', 'p%q', 'g/.h')}{number}"
            is_written = integers_of_some_bits(random, file, name, h5py) if random.chance(0.15) else one_of_hdf5(random, file, name, h5py, hdf5plugin)
            if is_written:
                names.append(name)
    found = {}
    with h5py.File(path) as file:
        for name in names:
            try:
                found[name] = file[name][...]
            except OSError as error:
                found[name] = error
    return found


def integers_of_some_bits(random, file, name, h5py):
    """Writes integers that have fewer bits than their bytes, perhaps not the lowest; and chunks that leave out filters."""
    dtype = np.dtype(random.of("<", ">") + random.of(*INTEGERS))
    shape, most = random.shape(1, 3), 8 * dtype.itemsize
    kind = h5py.h5t.py_create(dtype).copy()
    bits = random.between(1, most)
    kind.set_precision(bits)
    kind.set_offset(random.between(0, most - bits))
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    chunks = tuple(map(min, random.chunks(shape), shape))
    plan.set_chunk(chunks)
    filters = {"nbit": lambda: plan.set_filter(h5py.h5z.FILTER_NBIT, 0, ()), "shuffle": plan.set_shuffle,
               "deflate": lambda: plan.set_deflate(5), "fletcher32": plan.set_fletcher32}
    for chosen in [one for one in filters if random.chance(0.4)]:
        filters[chosen]()
    links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    try:
        made = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(shape), plan, lcpl=links)
    except ValueError:
        return False
    low = random.source.integers(0, 1 << min(bits - (dtype.kind == "i"), 62), shape)
    values = (low - random.of(0, 1) * (dtype.kind == "i") * low.max()).astype(dtype)
    write(random, h5py.Dataset(made), values)
    if random.chance(0.3):
        # all filters left out
        made.write_direct_chunk((0,) * len(shape), random.values(dtype, chunks).tobytes(), (1 << plan.get_nfilters()) - 1)
    return True


def one_of_hdf5(random, file, name, h5py, hdf5plugin):
    """Writes an array. Returns whether the library does."""
    dtype = np.dtype(random.of("<", ">") + random.of(*INTEGERS, "f2", "f4", "f8", "c8", "c16"))
    dtype = np.dtype(bool) if random.chance(0.07) else dtype
    shape = random.shape(1, 5)
    values, options = random.values(dtype, shape), {}
    is_enum = random.chance(0.06)
    if is_enum:
        values = np.asarray(random.source.choice([1, 2, -7], shape), "<i2")
        dtype = h5py.enum_dtype({"a": 1, "b": 2, "c": -7}, basetype="<i2")
    kind = None if is_enum else dtype.kind
    if random.chance(0.75):
        options["chunks"] = random.chunks(shape)
        if random.chance(0.3):
            options["maxshape"] = tuple(random.of(None, count + random.below(9)) for count in shape)
        most = [chunk if end is None else end for chunk, end in zip(options["chunks"], options.get("maxshape", shape))]
        options["chunks"] = tuple(map(min, options["chunks"], most))
        options["fletcher32"] = random.chance(0.3)
        options["shuffle"] = random.chance(0.2)
        filters = [
            {}, {"compression": "gzip", "compression_opts": random.below(10)}, {"compression": "lzf"},
            {"compression": "szip", "compression_opts": (random.of("nn", "ec"), random.of(8, 16, 32))},
            {"scaleoffset": random.below(5) if kind == "f" else random.of(0, 8 * values.itemsize, random.between(1, 8 * values.itemsize))},
            hdf5plugin.Blosc(cname=random.of("blosclz", "lz4", "lz4hc", "zlib", "zstd"), clevel=random.below(10), shuffle=random.below(3)),
            hdf5plugin.Bitshuffle(nelems=random.of(0, 8, 64, 4096), cname=random.of("none", "lz4", "zstd")),
            hdf5plugin.LZ4(nbytes=random.of(0, 64, 1000, 100_000)), hdf5plugin.Zstd(clevel=random.between(1, 9)),
            hdf5plugin.BZip2(blocksize=random.between(1, 9)),
        ]
        options |= dict(random.of(*filters))
    if random.chance(0.4) and kind in ("i", "u", "f") and "scaleoffset" not in options:
        options["fillvalue"] = dtype.type(random.below(100))
    try:
        if "chunks" not in options and values.nbytes < 60_000 and random.chance(0.5):
            plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plan.set_layout(h5py.h5d.COMPACT)
            *folder, last = name.rsplit("/", 1)
            group = file.require_group(folder[0]) if folder else file
            made = h5py.h5d.create(group.id, last.encode(), h5py.h5t.py_create(dtype, logical=True), h5py.h5s.create_simple(shape), plan)
            array = h5py.Dataset(made)
        else:
            array = file.create_dataset(name, shape=shape, dtype=dtype, **options)
    except (ValueError, OSError, TypeError, RuntimeError):
        return False
    write(random, array, values)
    if "maxshape" in options and random.chance(0.5):
        most = [count + 20 if end is None else end for count, end in zip(shape, options["maxshape"])]
        array.resize(tuple(min(end, max(1, count + random.between(-5, 11))) for count, end in zip(shape, most)))
    return True


def write(random, array, values):
    """Writes all values, or some boxes of them."""
    if random.chance(0.65):
        array[...] = values
        return
    for _ in range(random.below(4)):
        box = random.box(values.shape)
        array[box] = values[box]


def zarr(random, path):
    """Returns the array of a Zarr of version 2 or 3, as zarr-python reads it."""
    import zarr as library

    options, values = random.of(zarr2, zarr3)(random)
    try:
        array = library.create_array(store=path, shape=values.shape, dtype=values.dtype, **options)
        write(random, array, values)
        if values.ndim and random.chance(0.15):
            array.resize(tuple(max(1, count + random.between(-4, 8)) for count in values.shape))
        found = np.asarray(library.open(path, mode="r")[...])
    except Exception as error:
        # what its codecs refuse has many types
        raise Unwritten from error
    return {"data": found.view(found.dtype.str.replace("M", "i").replace("m", "i")[:3]) if found.dtype.kind in "mM" else found}


def fill_value(random, dtype):
    if dtype.kind not in "iuf" or random.chance(0.5):
        return {}
    return {"fill_value": random.of(0, 1, 7) if dtype.kind in "iu" else random.of(0.0, -1.5, float("nan"), float("inf"))}


def zarr2(random):
    import numcodecs

    dtype = np.dtype(random.of("<", ">") + random.of(*INTEGERS, "f2", "f4", "f8", "c8", "c16", "M8[ns]", "m8[s]"))
    dtype = np.dtype(bool) if random.chance(0.07) else dtype
    shape = random.shape(1, 5)
    blosc = numcodecs.Blosc(cname=random.of("blosclz", "lz4", "lz4hc", "zlib", "zstd"), clevel=random.below(10),
                            shuffle=random.between(-1, 2), blocksize=random.of(0, 0, 256, 1000))
    compressor = random.of(None, numcodecs.Zlib(random.below(10)), numcodecs.GZip(5), numcodecs.BZ2(3), numcodecs.LZMA(preset=1),
                           numcodecs.LZ4(), numcodecs.Zstd(random.between(1, 9), checksum=random.of(True, False)), blosc)
    filters = [numcodecs.Shuffle(dtype.itemsize), numcodecs.CRC32(), numcodecs.Adler32(), numcodecs.Fletcher32()]
    if dtype.kind in "iuf":
        filters.append(numcodecs.Delta(dtype.str))
    if dtype.kind == "b":
        filters.append(numcodecs.PackBits())
    if dtype.kind == "f" and dtype.itemsize > 2:
        filters += [numcodecs.BitRound(random.between(1, 8)), numcodecs.Quantize(random.between(1, 4), dtype.str)]
    chain = [random.of(*filters)] if random.chance(0.5) else []
    if chain and random.chance(0.2):
        chain.append(numcodecs.Shuffle(random.of(2, 4)))
    options = {"zarr_format": 2, "chunks": random.chunks(shape), "order": random.of("C", "C", "F"), "compressors": compressor,
               "filters": chain or None, "chunk_key_encoding": {"name": "v2", "separator": random.of(".", "/")}}
    return options | fill_value(random, dtype), random.values(dtype, shape)


def zarr3(random):
    from zarr import codecs

    dtype = np.dtype("<" + random.of(*INTEGERS, "f2", "f4", "f8", "c8", "c16"))
    dtype = np.dtype(bool) if random.chance(0.07) else dtype
    shape = random.shape(0, 5)
    blosc = codecs.BloscCodec(cname=random.of("blosclz", "lz4", "lz4hc", "zlib", "zstd"), clevel=random.below(10),
                              shuffle=random.of("noshuffle", "shuffle", "bitshuffle"), typesize=random.of(1, 2, 4, 8))
    packed = random.of([], [codecs.GzipCodec(level=5)], [codecs.ZstdCodec(level=3, checksum=random.of(True, False))], [blosc],
                       [codecs.Crc32cCodec()], [codecs.ZstdCodec(), codecs.Crc32cCodec()], [codecs.GzipCodec(), codecs.ZstdCodec()])
    order = codecs.BytesCodec(endian=random.of("little", "big") if dtype.itemsize > 1 else None)
    turned = [codecs.TransposeCodec(order=tuple(map(int, random.source.permutation(len(shape)))))] if len(shape) > 1 and random.chance(0.3) else []
    chunks = random.chunks(shape)
    keys = random.of({"name": "default", "separator": "/"}, {"name": "default", "separator": "."}, {"name": "v2", "separator": "."})
    options = {"zarr_format": 3, "chunk_key_encoding": keys} | fill_value(random, dtype)
    if not shape or random.chance(0.5):
        options |= {"chunks": chunks, "serializer": order, "compressors": packed or None, "filters": turned or None}
        return options, random.values(dtype, shape)
    index = random.of([codecs.BytesCodec(), codecs.Crc32cCodec()], [codecs.BytesCodec()], [codecs.BytesCodec(endian="big")])
    inner = [*turned, order, *packed]
    for _ in range(random.of(1, 1, 1, 2)):
        shards = codecs.ShardingCodec(chunk_shape=chunks, codecs=inner, index_codecs=index, index_location=random.of("start", "end"))
        chunks, inner = tuple(chunk * random.between(1, 3) for chunk in chunks), [shards]
    options |= {"chunks": chunks, "serializer": inner[0], "compressors": None, "filters": None}
    return options, random.values(dtype, shape)


def by_tensorstore(random, path, driver, metadata, more, values):
    """Writes values, and returns them as tensorstore reads them."""
    import tensorstore

    plan = {"driver": driver, "kvstore": {"driver": "file", "path": str(path)}, **metadata, **more, "create": True}
    try:
        array = tensorstore.open(plan).result()
    except ValueError as error:
        raise Unwritten from error
    write(random, array, values)
    return array.read().result()


def n5(random, path):
    """Returns the array of an N5 dataset, whose axes volfs reverses."""
    dtype, shape = np.dtype(random.of(*INTEGERS, "f4", "f8")), random.shape(1, 5)
    codec = random.of({"type": "raw"}, {"type": "gzip", "level": 5}, {"type": "gzip", "useZlib": True}, {"type": "bzip2"}, {"type": "xz"},
                      {"type": "blosc", "cname": random.of("blosclz", "lz4", "lz4hc", "zlib", "zstd"), "clevel": 5, "shuffle": random.below(3)},
                      {"type": "zstd", "level": 3})
    metadata = {"dimensions": shape, "blockSize": random.chunks(shape), "dataType": dtype.name, "compression": codec}
    return {"data": by_tensorstore(random, path, "n5", {"metadata": metadata}, {}, random.values(dtype, shape)).T}


def precomputed(random, path):
    """Returns the samples of a volume, with the axes as volfs has them: z, y, x, and channels first."""
    encoding = random.of("raw", "raw", "compressed_segmentation", "png")
    dtype = np.dtype({"compressed_segmentation": random.of("u4", "u8"), "png": random.of("u1", "u2")}.get(encoding) or random.of(*INTEGERS, "f4"))
    channels = 1 if encoding == "png" else random.of(1, 1, 2, 3)
    size = random.shape(3, 3)
    scale = {"size": size, "encoding": encoding, "chunk_size": random.chunks(size), "resolution": [1, 1, 1],
             "voxel_offset": [random.between(-50, 50) for _ in size]}
    if encoding == "compressed_segmentation":
        scale["compressed_segmentation_block_size"] = [random.between(1, 9) for _ in size]
    if random.chance(0.5):
        scale["sharding"] = {"@type": "neuroglancer_uint64_sharded_v1", "preshift_bits": random.below(4), "minishard_bits": random.below(4),
                             "shard_bits": random.below(4), "hash": random.of("identity", "murmurhash3_x86_128"),
                             "minishard_index_encoding": random.of("raw", "gzip"), "data_encoding": random.of("raw", "gzip")}
    about = {"type": "segmentation" if encoding == "compressed_segmentation" else "image", "data_type": dtype.name, "num_channels": channels}
    values = random.values(dtype, (*size, channels))
    metadata = {"multiscale_metadata": about, "scale_metadata": scale}
    # boxes of tensorstore begin at the offset
    moved = {"transform": {"input_inclusive_min": [0] * 4, "input_shape": [*size, channels],
                           "output": [{"input_dimension": axis, "offset": ([*scale["voxel_offset"], 0])[axis]} for axis in range(4)]}}
    found = by_tensorstore(random, path, "neuroglancer_precomputed", metadata, moved, values)
    return {"": found[..., 0].T if channels == 1 else found.transpose(3, 2, 1, 0)}


def zgy(random, path):
    """Returns the samples of each level as openzgy reads them, and the values that its version in C++ makes of them."""
    import openzgy.api as library
    import zgy_by_hand as hand

    if random.chance(0.4):
        zgy_by_library(random, path, library)
    else:
        path.write_bytes(zgy_file_by_hand(random, hand))
    found = {}
    reader = library.ZgyReader(str(path))
    info, entries = reader._meta._ih, reader._meta._blup._lookup
    code, bricks = info._datatype.value, [tuple(map(int, count)) for count in info._lodsizes]
    used = hand.safe_range(code, info._file_codingrange)
    if used and hand.default_storage(code, used) != reader._accessor._defaultValue(as_float=False):
        raise Unwritten("between two numbers of the same distance from zero, openzgy in Python and in C++ choose differently")
    for level in range(hand.usable_lods(entries, bricks)):
        stored = np.zeros(hand.lod_shape(info._size, level), hand.TYPES[code][1])
        reader._accessor.readToExistingBuffer(stored, (0, 0, 0), lod=level, as_float=False)
        found["data", level] = stored
        if used:
            slope, intercept = hand.scaling(code, used)
            found["data", level, "values"] = (stored.astype("f8") * slope + intercept).astype("<f4")
    reader.close()
    return found


def zgy_samples(random, dtype, shape):
    return random.smooth(dtype, shape) if random.chance(0.6) else random.values(dtype, shape)


def coding_range(random):
    least = float(random.source.normal(0, 1000))
    odd = random.of((100.0, -100.0), (5.0, 5.0), (math.nan, 1.0), (-1.0, math.inf), (0.0, 0.0), (-1e-30, 1e-30))
    return random.of((-128.0, 127.0), (-28.0, 227.0), (0.0, 65535.0), (10.0, 20.0), (-20.0, -10.0), (-abs(least), abs(least)),
                     (least, least + 1 + random.below(9999)), odd)


def zgy_by_library(random, path, library):
    """Writes a file by openzgy, in some boxes of whole bricks. It makes the levels."""
    kind = random.of("float", "float", "int8", "int16")
    size, brick = tuple(random.between(1, 70) for _ in range(3)), tuple(random.of(4, 8, 16, 16, 32, 64) for _ in range(3))
    options = {"size": size, "bricksize": brick, "datatype": library.SampleDataType[kind], "zstart": 100.0, "zinc": 4.0,
               "annotstart": (1, 2), "annotinc": (3, 1), "corners": ((0, 0), (9, 0), (0, 9), (9, 9))}
    if kind == "float" and random.chance(0.7):
        options["compressor"] = library.ZgyCompressFactory("ZFP", snr=random.of(10, 30, 30, 50, 70, 99))
    if kind != "float":
        least = float(random.source.normal(0, 1000))
        options["datarange"] = (least, least + 1 + random.below(9999))
    samples = zgy_samples(random, np.dtype("<f4"), size)
    try:
        with library.ZgyWriter(str(path), **options) as file:
            for _ in range(random.of(0, 1, 1, 2, 4)):
                begin, end = ([], []) if random.chance(0.5) else ([0, 0, 0], list(size))
                for count, side in zip(size, brick) if not begin else ():
                    low, high = sorted(random.below(-(-count // side) + 1) for _ in range(2))
                    begin.append(min(low * side, (count - 1) // side * side))
                    end.append(min(max(high, low + 1) * side, count))
                if random.chance(0.2):
                    file.writeconst(tuple(begin), np.float32(random.below(100)), tuple(np.subtract(end, begin)), is_storage=False)
                else:
                    file.write(tuple(begin), np.ascontiguousarray(samples[tuple(map(slice, begin, end))]))
    except Exception as error:
        raise Unwritten(f"openzgy: {error}"[:80]) from error


def zgy_file_by_hand(random, hand):
    """Returns the bytes of a file with what openzgy does not write: other versions and types, tables in any order."""
    version = random.of(1, 2, 3, 3, 4, 4, 4)
    code = random.of(hand.I8, hand.I16, hand.F32, hand.U8, hand.U16, hand.I32, hand.U32)
    code = hand.F32 if version == 4 and random.chance(0.8) else code
    brick = (64,) * 3 if version == 1 else tuple(random.of(4, 8, 8, 16, 16, 32) for _ in range(3))
    size = tuple(random.between(1, min(130 if version == 1 else 90, 6 * side)) for side in brick)
    fields = {"codingrange": coding_range(random), "stats": (7, 1.0, 2.0, -5.0, 5.0), "orig": (random.below(99), 20, 0),
              "inc": (random.of(1, -2), 1, 4),
              "strings": random.of(b"made\0by hand\0\0m\0ms\0", b"a\0b\0c\0d\0e", b"a\0b\0c\0m\0ms\0sixth\0\0\0")}
    parts = [str(part) for part in random.source.permutation(["info", "hist", "alpha", "brick"])]
    fields["parts"] = [one for part in parts for one in (*([random.below(99)] if random.chance(0.3) else []), part)]
    file = hand.Raw(version, code, size, brick, **fields)
    file.shuffled, file.aligned, file.gap = random.chance(0.5), random.chance(0.4), random.of(0, 0, random.below(200))
    file.tail, file.alpha_tiles = random.of(b"", bytes(random.below(3000))), random.chance(0.2)
    if random.chance(0.3):
        file.alpha = [hand.CONSTANT | 1] * hand.lut_starts(file.lods, alpha=True)[1]
    ways = [None, hand.REVERSIBLE, {"precision": random.between(1, 32)}, {"rate": random.between(1, 32)},
            {"tolerance": 10.0 ** random.between(-5, 3)}]
    ways = [way for way in ways if random.chance(0.5)] or [random.of(*ways)]
    has_packed = code == hand.F32 and (version == 4 or random.chance(0.2))
    levels = range(random.between(1, len(file.lods))) if random.chance(0.1) else None
    file.fill(zgy_samples(random, file.dtype, size), levels, (lambda *at: random.of(*ways)) if has_packed else None)
    for index, (packed, is_packed) in file.blob.items():
        if is_packed and len(packed) > 0.9 * file.brick_bytes:
            # no writer keeps these, and readers expect less than a plain brick
            brick = hand.zfpy.decompress_numpy(packed)
            file.blob[index] = ((hand.subtile(brick) if version == 1 else brick).tobytes(), False)
    for _ in range(random.of(0, 3, 3, 9)):
        level = random.of(*file.truth)
        at = tuple(random.below(count) for count in file.lods[level])
        number = np.frombuffer(random.source.bytes(file.dtype.itemsize), file.dtype)[0]
        # openzgy changes bits of some NaN
        value = random.of(math.nan, -math.inf, -0.0, 1.5, *([number] if number == number else [])) if code == hand.F32 else random.of(0, 1, number)
        random.of(lambda: file.const(level, at, value, random.of(0, random.below(1 << 16 if file.dtype.itemsize < 4 else 1))),
                  lambda: file.special(level, at, hand.ONE, 0), lambda: file.missing(level, at))()
    if file.lods[0] != (1, 1, 1) and random.chance(0.1):
        file.missing(0, (0, 0, 0))
    blob = bytearray(file.build())
    if random.chance(0.15):
        # two entries for one brick; of packed ones openzgy takes the second for the end of the first
        first = file.starts[0]
        of, to = (first + random.below(file.count - first) for _ in range(2))
        if file.final[of] < hand.COMPRESSED:
            at = file.at["brick"] + 8 * to
            blob[at:at + 8] = file.pack([file.final[of]])
    return bytes(blob)


def in_child(work, *arguments):
    """Returns what a function returns in a process of its own: openvds ends the process at what it does not expect."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(False)

    def run():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            sender.send(work(*arguments))
        except Exception as error:
            sender.send(f"{type(error).__name__} {error}")

    child = context.Process(target=run)
    child.start()
    sender.close()
    try:
        found = receiver.recv() if receiver.poll(300) else "it does not end"
    except EOFError:
        child.join()
        found = f"it ends the process with {child.exitcode}"
    child.kill()
    child.join()
    if isinstance(found, str):
        raise Unwritten(f"openvds: {found}"[:110])
    return found


def vds(random, path):
    """Returns the samples of each level of each layer, and their values, as openvds reads them."""
    return in_child(vds_by_library, random, path)


def vds_by_library(random, path):
    import make_vds_fixtures as made

    class Arrays(made.Expected):
        """Keeps the arrays instead of their hashes."""

        def __init__(self):
            super().__init__()
            self.arrays = {}

        def layer(self, entry, layout, channel, samples, spacing, method):
            self.last = entry["folder"], entry["lod"]
            self.arrays[self.last] = samples

        def values(self, values):
            self.arrays[*self.last, "values"] = values

    is_file = random.chance(0.6)
    volume, expected = vds_volume(random, made, is_file), Arrays()
    if is_file:
        made.write(volume, str(path))
        expected.add(volume, volume.name, made.methods_of_file(path), str(path))
        return expected.arrays
    cloud = made.Cloud(path.parent, expected)
    objects = cloud.make(volume, experimental=random.chance(0.5))
    if random.chance(0.3):
        # the metadata of chunks are those of objects, which a copy keeps in a file
        objects, tags = made.without_pages(objects)
        listed = {name: {"vdschunkmetadata": tag} for name, tag in tags.items()}
        objects["ObjectMetadata.json"] = json.dumps(listed).encode(), {}
    elif random.chance(0.3):
        objects = made.status(objects, lambda layer: -1 in layer.get("pageDirectory", [-1]) or layer.pop("pageDirectory"))
    cloud.save(path.name, objects, random.of("", ".json"))
    return expected.arrays


def vds_volume(random, made, is_file):
    """Draws a volume: axes, channels, groups of dimensions, levels."""
    axes = random.of(2, 3, 3, 3, 3, 3, 4, 4, 5, 6)
    dims = [random.between(1, {2: 150, 3: 90, 4: 40, 5: 9, 6: 5}[axes]) for _ in range(axes)]
    dims[random.below(axes)] = random.between(20, 100)
    while math.prod(dims) > 250_000:
        dims[dims.index(max(dims))] //= 2
    groups = ["".join(map(str, group)) for length in (2, 3) for group in itertools.combinations(range(axes), length)]
    # each position along the other axes is a chunk, for which openvds waits
    outside = {group: math.prod(count for axis, count in enumerate(dims) if str(axis) not in group) for group in groups}
    few = [group for group in groups if outside[group] < 25] or [min(outside, key=outside.get)]
    chosen = {random.of(*few) for _ in range(random.of(1, 1, 2, 3))} | ({"012"} if axes == 3 and random.chance(0.8) else set())
    method = random.of(*made.CODES)
    channels = [vds_channel(random, made, number, method, chosen, is_file) for number in range(random.of(1, 1, 2, 3))]
    brick, wholes = random.of(32, 32, 64), {}

    def samples(channel, index, salt):
        if salt not in wholes:
            dtype, shape = np.dtype(made.DTYPES[channel.format]), (channel.values or dims[0], *dims[1:])
            whole = random.smooth(dtype, shape) if random.chance(0.6) else random.values(dtype, shape)
            if channel.format == "1Bit":
                whole = whole & 1
            if channel.no_value:
                whole = np.where(random.source.random(shape) < random.of(0.01, 0.3), channel.nothing(), whole).astype(dtype)
            wholes[salt] = whole
        return wholes[salt][tuple(index)]

    return made.Volume(
        "random", tuple(dims), channels, method, random.of(0.01, 0.5, 1.0, 4.0), tuple(sorted(chosen)), brick,
        random.of((0, 0), (0, 0), (2, 2), (2, 3), (4, 4), (0, 5)), random.of(0, 0, 1, 2, 3), random.chance(0.4),
        random.of(1, 2, 4) if brick < 64 else 1, random.below(axes) if random.chance(0.15) else -1, random.of(1, 2, 4, 1024),
        samples=samples)


def vds_channel(random, made, number, method, groups, is_file):
    # openvds makes no URL of other names
    name = random.of("of ", "a/b", "100%", "LOD0", "Dimensions_") if is_file else random.of("of", "LOD0", "Dimensions_")
    form = random.of("R32", "R32", "U8", "U16", "1Bit", "U32", "U64", "R64")
    flags = ["NoLossyCompression", "NoLossyCompressionUseZip", "DiscreteData", *(["NotRenderable"] if number else [])]
    flags = [flag for flag in flags if random.chance(0.1)]
    lossy = form in ("R32", "U8", "U16") and method.startswith("Wavelet")
    numbers = {"1Bit": [0, 1], "U8": [0, 7, 254], "U16": [0, 300, 65534], "U32": [16777217, 3000000000], "U64": [2**63 + 2**62, 5]}
    constants = numbers.get(form, [0.1, -0.0, 1e30, -7, math.inf])
    values = random.of(0, 0, 1, 12) if number else 0
    if values > 1 and any(len(group) == 3 and "0" not in group for group in groups):
        # there is no such layer
        values = 1
    is_code = form in ("U8", "U16")
    return made.Chan(
        form, f"{name}{number}", components=1 if lossy or form == "1Bit" else random.of(1, 1, 1, 2, 4),
        values=values, no_value=(is_code or form in ("R32", "R64")) and random.chance(0.25),
        scale=random.of(1.0, 0.1, 0.5, 3.0) if is_code else 1.0, offset=random.of(0.0, -0.3, -20.0) if is_code else 0.0,
        range=random.of((-60.0, 60.0), (0.0, 255.0), (0.0, 65535.0)), flags=tuple(flags),
        chunks={random.below(14): made.SKIP if random.chance(0.4) else random.of(*constants) for _ in range(random.of(0, 0, 2, 5))})


def wkw(random, path):
    """Returns the voxels of each mag of each layer in the box of the description, as wkw reads them."""
    import make_wkw_fixtures as made

    made.scrambled = lambda shape, dtype, channels=1: np.asfortranarray(random.values(np.dtype(dtype), (channels, *shape)))
    writer, found, entries = made.Writer(path), {}, []
    is_described = random.chance(0.85)
    for number in range(random.of(1, 1, 2, 3)):
        mags, about = [], {}
        writer.expect = lambda dataset, name, lod, mag, place, *_: mags.append((mag, place))
        corner = tuple(random.of(0, random.below(40), random.below(1_000_000)) for _ in range(3))
        name = f"{random.of('color', 'a b', 'p%q')}{number}"
        entries.append(wkw_layer(random, made, writer, name, corner, mags, about))
        mags.sort(key=lambda one: (max(one[0]), math.prod(one[0]), one[0]))
        cubes = wkw_cubes(random, made, mags)
        box = entries[-1]["boundingBox"]
        size = (box["width"], box["height"], box["depth"])
        if random.chance(0.5):
            # the description cuts off voxels, or goes beyond the cubes
            corner = tuple(max(0, at + random.between(-9, 9)) for at in corner)
            size = tuple(max(1, count + random.between(-9, 15)) for count in size)
            entries[-1]["boundingBox"] = dict(topLeft=list(corner), width=size[0], height=size[1], depth=size[2])
        if not is_described:
            # the box around the cubes of the finest mag that has some
            held = next(((mag, at) for (mag, _), at in zip(mags, cubes) if at), None)
            if held is None:
                continue
            mag, side = held[0], about["side"]
            corner = tuple(min(at) * side * factor for at, factor in zip(zip(*held[1]), mag))
            size = tuple((max(at) + 1) * side * factor - first for at, factor, first in zip(zip(*held[1]), mag, corner))
        for level, (mag, place) in enumerate(mags):
            low, count = made.in_mag(corner, size, mag)
            channels = [about["channels"]] if about["channels"] > 1 else []
            found[name, level] = np.frombuffer(made.read(place, low, count), about["dtype"]).reshape(count[::-1] + channels)
    if is_described:
        writer.properties(".", entries, before=random.of(b"", b"\xef\xbb\xbf"))
    return found


def wkw_layer(random, made, writer, name, corner, mags, about):
    """Writes a layer. Returns its description, in one of the dialects."""
    block = 1 << random.below(6)
    length = random.of(8, 16, 32) // block or 1
    dtype = np.dtype(random.of(*INTEGERS, "f4", "f8"))
    about |= {"dtype": dtype, "channels": random.of(1, 1, 1, 2, 3, 5), "side": block * length}
    size = tuple(random.between(1, min(60, 3 * about["side"])) for _ in range(3))
    factors = random.of(((1, 1, 1),), ((1, 1, 1), (2, 2, 1), (4, 4, 2)), ((1, 1, 1), (2, 2, 2)),
                        ((2, 2, 1), (2, 1, 4), (16, 16, 8)), ((3, 5, 1),))
    is_long = random.chance(0.2)
    entry = writer.layer(".", name, dtype.name, size, corner=corner, channels=about["channels"], mags=factors, long_names=is_long,
                         block=(block, length, random.of(made.RAW, made.LZ4, made.LZ4HC)), category=random.of("color", "segmentation"))
    if is_long or random.chance(0.3):
        for mag in entry["mags"]:
            del mag["path"]
    if random.chance(0.2):
        entry["wkwResolutions"] = [{"resolution": mag["mag"], "cubeLength": 1024} for mag in entry.pop("mags")]
    mag_list = entry.get("mags") or entry["wkwResolutions"]
    mag_list[:] = [mag_list[n] for n in random.source.permutation(len(mag_list))]
    if random.chance(0.3):
        del entry["numChannels"]
    return entry


def wkw_cubes(random, made, mags):
    """Takes cubes away, and packs others in another way, with gaps and unused bytes. Returns those of each mag."""
    found = []
    for _, folder in mags:
        found.append([])
        cubes = sorted(folder.glob("z*/y*/x*.wkw"))
        kept = [cube for cube in cubes if not random.chance(0.15)]
        for cube in set(cubes) - set(kept):
            cube.unlink()
        for cube in kept:
            at = tuple(map(int, re.search(r"z(\d+)/y(\d+)/x(\d+)\.wkw$", str(cube)).groups()))[::-1]
            found[-1].append(at)
            if random.chance(0.2):
                wkw_repacked(random, made, folder, cube, at)
            if random.chance(0.2):
                wkw_moved(random, cube)
        if random.chance(0.2):
            (folder / "z0x").mkdir()
            (folder / "x0.wkw_tmp").write_bytes(b"unfinished")
    return found


def wkw_repacked(random, made, folder, cube, at):
    """Writes a cube again as blocks of another type."""
    import wkw as library

    with library.Dataset.open(str(folder)) as dataset:
        header = dataset.header
        side = header.block_len * header.file_len
        voxels = dataset.read(tuple(side * n for n in at), (side,) * 3)
    other = folder.parent / "repacked"
    made.write_mag(other, voxels, (0, 0, 0), header.block_len, header.file_len, random.of(made.RAW, made.LZ4, made.LZ4HC))
    shutil.move(other / "z0/y0/x0.wkw", cube)
    shutil.rmtree(other)


def wkw_moved(random, cube):
    """Puts unused bytes before the blocks of a cube, and behind them."""
    whole, gap = cube.read_bytes(), random.below(100)
    first, = struct.unpack_from("<Q", whole, 8)
    ends = np.frombuffer(whole[8:first], "<u8") + np.uint64(gap)
    cube.write_bytes(whole[:8] + ends.tobytes() + bytes(gap) + whole[first:] + bytes(random.below(50)))


def plain(values):
    """The bytes of samples, and their shape."""
    values = np.ascontiguousarray(values)
    values = values.view("u1") if values.dtype.kind == "b" else values
    return values.shape, values.astype(values.dtype.newbyteorder("<")).tobytes()


def differ(read, expected):
    """Returns whether samples, or their types, differ. h5py has truth values where a file has an enumeration."""
    return plain(read) != plain(expected) or expected.dtype.kind not in (read.dtype.kind, "b")


def compare(volfs, random, path, arrays, counts):
    """Reads a file by volfs. Yields what is wrong. Keys are names, or names and levels, then of all that is shown."""
    try:
        layers = volfs.open(path).layers
    except volfs.VolfsError as error:
        counts[f"refused: {str(error).replace(str(path), '')[:110]}"] += 1
        if any(isinstance(key, tuple) for key in arrays):
            yield f"refused: {error}"
        return
    levels = {key[:2] for key in arrays if isinstance(key, tuple)}
    shown = {(urllib.parse.unquote(name), level) for name, layer in layers.items() for level in layer.lods}
    if levels and shown != (levels := {(urllib.parse.unquote(name), level) for name, level in levels}):
        yield f"layers and levels missing: {sorted(levels - shown)}, too many: {sorted(shown - levels)}"
    for key, expected in arrays.items():
        name, level, *of_values = key if isinstance(key, tuple) else (key, 0)
        found = [layers[layer] for layer in layers if name in (layer, urllib.parse.unquote(layer))]
        found = found or (list(layers.values()) if len(arrays) == 1 else [])
        # boxes come from bricks that are decoded for them, or from whole ones that are still in memory
        reads = [random.index(expected.shape) for _ in range(3)] if getattr(expected, "ndim", 0) else []
        reads.insert(random.of(0, len(reads)), ...)
        try:
            array = found[0].level(level)
            array = array.values if of_values else array
            read = [np.asarray(array[index]) for index in reads]
            # values that are the stored samples have their type
            read = [part.astype(expected.dtype) for part in read] if of_values else read
        except Exception as error:
            if not isinstance(expected, Exception):
                counts[f"refused: {str(error).replace(str(path), '')[:110]}"] += 1
                if isinstance(key, tuple):
                    yield f"{key}: refused: {error}"
            continue
        if isinstance(expected, Exception):
            yield f"{name}: read, and the library says: {expected}"
            continue
        # an array without axes has one of one position
        read = [part.reshape(()) for part in read] if expected.ndim == 0 else read
        wrong = [index for index, part in zip(reads, read) if differ(part, expected[index])]
        if ... in wrong:
            whole = read[reads.index(...)]
            yield f"{key}: {whole.dtype} {whole.shape} differs from {expected.dtype} {expected.shape}{first_difference(whole, expected)}"
        for index in wrong if ... not in wrong else ():
            yield f"{key}: {index} differs"
        counts["right"] += not wrong


def first_difference(read, expected):
    if read.shape != expected.shape or read.dtype != expected.dtype:
        return ""
    differ = np.argwhere(read.view(f"V{read.itemsize}") != expected.view(f"V{expected.itemsize}"))
    at = tuple(map(int, differ[0])) if len(differ) else ()
    return f": {len(differ)} samples, the first at {at}: {read[at]!r}, not {expected[at]!r}" if at else ""


FORMATS = {"hdf5": hdf5, "zarr": zarr, "n5": n5, "precomputed": precomputed, "zgy": zgy, "vds": vds, "wkw": wkw}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=300, help="files of each format (300)")
    parser.add_argument("--seed", type=int, default=0, help="of the first file; the next one has the next (0)")
    parser.add_argument("--module", type=Path, help="the folder of the package volfs")
    parser.add_argument("formats", nargs="*", choices=[*FORMATS, []])
    args = parser.parse_args()
    if args.module:
        sys.path.insert(0, str(args.module))
    import volfs

    warnings.filterwarnings("ignore")
    wrong = 0
    for name in args.formats or FORMATS:
        counts = Counter()
        for seed in range(args.seed, args.seed + args.files):
            folder = Path(tempfile.mkdtemp(prefix="volfs-random-"))
            random, path = Random(seed), folder / f"file.{name if name != 'hdf5' else 'h5'}"
            try:
                problems = list(compare(volfs, random, path, FORMATS[name](random, path), counts))
            except Unwritten as error:
                counts[f"not written by the library{': ' if str(error) else ''}{error}"] += 1
                problems = []
            except Exception:
                problems = [traceback.format_exc()]
            for problem in problems:
                print(f"{name}, seed {seed}: {problem}", flush=True)
            wrong += len(problems)
            shutil.rmtree(folder)
        print(f"{name}: {args.files} files; " + ", ".join(f"{count} {what}" for what, count in counts.most_common()), flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
