#!/usr/bin/env python3
"""Writes files at random with the libraries of their formats, and compares what the Python module volfs reads of them.

    scripts/stress/random_files.py [--files N] [--seed N] [--module FOLDER] [hdf5 | zarr | n5 | precomputed ...]

Shapes, types, byte orders, chunks, shards, codecs, filters, fill values, parts that were never written and sizes that
were changed later are drawn from the seed. Each array is read whole, and in some boxes with steps. What volfs refuses is
counted by its reason; what the library itself cannot read has to be refused. Exits with 1 if anything was read wrongly,
and names the seed of the file. FOLDER has the package volfs, if it is not installed. Needs
`pip install numpy h5py hdf5plugin zarr tensorstore`.
"""

import argparse
import shutil
import sys
import tempfile
import traceback
import urllib.parse
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

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


def plain(values):
    """The bytes of samples, and their shape."""
    values = np.ascontiguousarray(values)
    values = values.view("u1") if values.dtype.kind == "b" else values
    return values.shape, values.astype(values.dtype.newbyteorder("<")).tobytes()


def compare(volfs, random, path, arrays, counts):
    """Reads a file by volfs. Yields what is wrong."""
    try:
        layers = volfs.open(path).layers
    except volfs.Error as error:
        counts[f"refused: {str(error).replace(str(path), '')[:110]}"] += 1
        return
    for name, expected in arrays.items():
        found = [layers[layer] for layer in layers if urllib.parse.unquote(layer) == name] or (list(layers.values()) if len(arrays) == 1 else [])
        try:
            array = found[0].level(0)
            read = np.asarray(array[...])
        except Exception as error:
            if not isinstance(expected, Exception):
                counts[f"refused: {str(error).replace(str(path), '')[:110]}"] += 1
            continue
        if isinstance(expected, Exception):
            yield f"{name}: read, and the library says: {expected}"
            continue
        if plain(read.reshape(expected.shape) if expected.ndim == 0 else read) != plain(expected):
            yield f"{name}: {read.dtype} {read.shape} differs from {expected.dtype} {expected.shape}"
            continue
        for _ in range(3 if expected.ndim else 0):
            index = random.index(expected.shape)
            if plain(array[index]) != plain(expected[index]):
                yield f"{name}: {index} differs"
        counts["right"] += 1


FORMATS = {"hdf5": hdf5, "zarr": zarr, "n5": n5, "precomputed": precomputed}


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
            except Unwritten:
                counts["not written by the library"] += 1
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
