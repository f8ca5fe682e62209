#!/usr/bin/env python3
"""Writes tests/data/zarr: hierarchies of Zarr v2 and v3 and N5 containers, and what their own libraries read from them.

    pip install zarr tensorstore numpy ml_dtypes
    ./scripts/make_zarr_fixtures.py

expected.json has for each array: the folder of its dataset, its path in it, shape and NumPy type as volfs shows them, and the
CRC-32 of its samples in C order, little-endian, as zarr-python or tensorstore read them back. The samples are the same
each time.
"""
import json
import shutil
import warnings
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np
import tensorstore as ts
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

ROOT = Path(__file__).resolve().parent.parent / "tests/data/zarr"
expected = []
warnings.simplefilter("ignore")


def samples(shape, dtype, seed):
    dtype = np.dtype(dtype)
    random = np.random.default_rng(seed)
    smooth = np.add.outer(np.arange(shape[0]) * 3, np.arange(int(np.prod(shape[1:])))).reshape(shape) if len(shape) > 1 else np.arange(shape[0])
    noisy = smooth + random.integers(0, 5, shape)
    if dtype.kind == "b":
        return noisy % 2 == 0
    if dtype.kind == "c":
        return (noisy + 1j * (noisy * 2)).astype(dtype)
    if dtype.kind in "Mm":
        return noisy.astype("i8").astype(dtype)
    return (noisy - (7 if dtype.kind in "if" else 0)).astype(dtype)


def shown(values):
    """Returns samples as volfs shows them."""
    if values.dtype == ml_dtypes.bfloat16:
        return values.astype("<f4")
    if values.dtype.kind == "b":
        return values.astype("u1")
    if values.dtype.kind in "Mm":
        return values.astype("<i8")
    return values.astype(values.dtype.newbyteorder("<"))


def expect(dataset, path, values, layer=None, lod=0):
    values = np.ascontiguousarray(shown(np.asarray(values)))
    shape = list(values.shape) or [1]
    entry = {"dataset": dataset, "path": path, "layer": layer or path or "data", "lod": lod, "shape": shape,
             "dtype": values.dtype.name, "crc32": f"{zlib.crc32(values.tobytes()):08x}"}
    expected.append(entry)


def v2(group, name, dtype, shape=(5, 6), chunks=(3, 4), leave_out=False, **options):
    array = group.create_array(name, shape=shape, chunks=chunks, dtype=dtype, **options)
    array[...] = samples(shape, dtype, len(name)) if shape else np.array(7, dtype)
    if leave_out:
        array[: chunks[0], : chunks[1]] = array.fill_value
    return array


def version_2():
    group = zarr.create_group(ROOT / "v2.zarr", zarr_format=2, overwrite=True)
    names = {}
    for dtype in ["|b1", "|i1", "|u1", "<i2", ">i2", "<u4", ">u8", "<f4", ">f8", "<f2", ">c8", "<c16", "<M8[ns]", ">m8[s]"]:
        name = dtype.translate(str.maketrans("<>|[]", "lbn__"))
        names[name] = v2(group, name, dtype, fill_value=None if dtype[1] in "Mm" else 0)
    names["fortran"] = v2(group, "fortran", "<u2", (5, 6, 7), (3, 4, 5), order="F")
    names["slashes"] = v2(group, "slashes", "<i4", chunk_key_encoding={"name": "v2", "separator": "/"})
    names["uncompressed"] = v2(group, "uncompressed", "<u2", compressors=None)
    names["uncompressed-fortran"] = v2(group, "uncompressed-fortran", "<f4", compressors=None, order="F")
    names["filled"] = v2(group, "filled", "<f4", leave_out=True, fill_value=float("nan"), config={"write_empty_chunks": False})
    names["negative-fill"] = v2(group, "negative-fill", "<i2", leave_out=True, fill_value=-5, config={"write_empty_chunks": False})
    names["scalar"] = v2(group, "scalar", "<i4", (), ())
    names["long-chunk"] = v2(group, "long-chunk", "<u2", (5,), (64,))
    nested = group.create_group("nested/deeper")
    names["nested/deeper/line"] = v2(nested, "line", "<u2", (11,), (4,))
    names["nested/deeper/line"].attrs["_ARRAY_DIMENSIONS"] = ["time"]
    for name, array in names.items():
        expect("v2.zarr", name, array[...])
    for name, values, unit in [("depth", np.arange(11) * 2.5 + 100, "m"), ("lines", np.array([110, 112, 114]), None), ("odd", np.array([1, 2, 4]), None)]:
        line = group.create_array(f"survey/{name}", shape=values.shape, chunks=(4,), dtype=values.dtype, compressors=None if unit else "auto")
        line[...] = values
        line.attrs.update({"_ARRAY_DIMENSIONS": [name]} | ({"units": unit} if unit else {}))
        expect("v2.zarr", f"survey/{name}", line[...])
    cube = v2(group["survey"], "cube", "<f4", (3, 3, 11), (2, 2, 5))
    cube.attrs["_ARRAY_DIMENSIONS"] = ["lines", "odd", "depth"]
    expect("v2.zarr", "survey/cube", cube[...])
    # as other writers have it: no order of a single byte, attributes with NaN
    zarr.consolidate_metadata(ROOT / "v2.zarr")
    strings = group.create_array("strings", shape=(3,), chunks=(3,), dtype="S4")
    strings[...] = [b"a", b"b", b"c"]
    (ROOT / "v2.zarr/nested/.zattrs").write_text('{"_FillValue": NaN, "text": "NaN", "list": [-Infinity, 1]}')
    scaled = v2(group, "scaled", "<i2")
    scaled.attrs.update({"scale_factor": 0.5, "add_offset": -3, "_FillValue": -7, "_ARRAY_DIMENSIONS": ["y", "x"]})
    expect("v2.zarr", "scaled", scaled[...])


def v3(group, name, dtype, codecs=None, shape=(5, 6), chunks=(3, 4), leave_out=False, **options):
    extra = {} if codecs is None else {"codecs": codecs}
    array = zarr.create(store=group.store_path / name, shape=shape, chunks=chunks, dtype=dtype, zarr_format=3, overwrite=True,
                        **extra, **options)
    array[...] = samples(shape, dtype, len(name)) if shape else np.array(7, dtype)
    if leave_out:
        array[: chunks[0], : chunks[1]] = array.fill_value
    return array


def version_3():
    group = zarr.create_group(ROOT / "v3.zarr", zarr_format=3, overwrite=True)
    little, big, zstd = BytesCodec(endian="little"), BytesCodec(endian="big"), ZstdCodec(level=3)
    names = {}
    for dtype in ["bool", "int8", "uint8", "int16", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128"]:
        names[dtype] = v3(group, dtype, dtype, [BytesCodec(endian="little" if np.dtype(dtype).itemsize > 1 else None), zstd])
    names["big"] = v3(group, "big", "float64", [big, zstd])
    names["complex-big"] = v3(group, "complex-big", "complex64", [big])
    names["raw"] = v3(group, "raw", "uint16", [little])
    names["turned"] = v3(group, "turned", "int16", [TransposeCodec(order=(2, 0, 1)), little], (5, 6, 7), (3, 4, 5))
    names["turned-twice"] = v3(group, "turned-twice", "int16",
                               [TransposeCodec(order=(2, 0, 1)), TransposeCodec(order=(1, 0, 2)), big, GzipCodec()], (5, 6, 7), (3, 4, 5))
    names["checked"] = v3(group, "checked", "uint16", [little, GzipCodec(), Crc32cCodec()])
    names["blosc"] = v3(group, "blosc", "uint16", [little, BloscCodec(cname="lz4", shuffle="shuffle", typesize=2)])
    names["dots"] = v3(group, "dots", "uint16", [little], chunk_key_encoding=("default", "."))
    names["old-keys"] = v3(group, "old-keys", "uint16", [little], chunk_key_encoding=("v2", "/"))
    names["scalar"] = v3(group, "scalar", "int32", [little], (), ())
    sparse = {"leave_out": True, "config": {"write_empty_chunks": False}}
    names["filled"] = v3(group, "filled", "float32", [little, zstd], fill_value=float("-inf"), **sparse)
    index = [little, Crc32cCodec()]

    def shards(chunks, codecs, index_codecs=index, location="end"):
        return ShardingCodec(chunk_shape=chunks, codecs=codecs, index_codecs=index_codecs, index_location=location)

    shape, shard = (20, 30), (8, 12)
    names["shards"] = v3(group, "shards", "uint16", [shards((4, 4), [little, zstd])], shape, shard)
    names["shards-raw"] = v3(group, "shards-raw", "uint16", [shards((4, 4), [little])], shape, shard)
    names["shards-start"] = v3(group, "shards-start", "uint16", [shards((4, 4), [big, zstd], location="start")], shape, shard)
    names["shards-plain-index"] = v3(group, "shards-plain-index", "uint16", [shards((4, 4), [little], [little])], shape, shard)
    names["shards-turned"] = v3(group, "shards-turned", "int32", [shards((4, 6), [TransposeCodec(order=(1, 0)), little, zstd])], shape, shard)
    names["shards-nested"] = v3(group, "shards-nested", "uint16", [shards((4, 6), [shards((2, 3), [little, zstd])])], shape, shard)
    names["shards-sparse"] = v3(group, "shards-sparse", "uint16", [shards((4, 4), [little, zstd])], shape, shard, fill_value=9, **sparse)
    names["shards-sparse"][:4, :20] = 9
    for name, array in names.items():
        expect("v3.zarr", name, array[...])
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(ROOT / "v3.zarr/bfloat16")},
            "metadata": {"shape": [5, 6], "data_type": "bfloat16", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3, 4]}}}}
    store = ts.open(spec, create=True, delete_existing=True).result()
    store[...] = samples((5, 6), "f4", 3).astype(ml_dtypes.bfloat16)
    expect("v3.zarr", "bfloat16", store.read().result())
    turned = {"name": "transpose", "configuration": {"order": [1, 0]}}
    spec["kvstore"]["path"] = str(ROOT / "v3.zarr/shards-in-turned")
    spec["metadata"] = {"shape": [20, 30], "data_type": "uint16", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 12]}},
                        "codecs": [turned, {"name": "sharding_indexed", "configuration": {
                            "chunk_shape": [6, 4], "codecs": [turned, {"name": "bytes", "configuration": {"endian": "little"}}],
                            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}]}
    store = ts.open(spec, create=True, delete_existing=True).result()
    store[...] = samples((20, 30), "u2", 4)
    expect("v3.zarr", "shards-in-turned", store.read().result())
    extended = json.loads((ROOT / "v3.zarr/raw/zarr.json").read_text())
    for name, change in {"extended": {"new": {"must_understand": True}}, "transformed": {"storage_transformers": [{"name": "x"}]},
                         "irregular": {"chunk_grid": {"name": "rectilinear"}}, "text": {"data_type": "string"}}.items():
        (ROOT / "v3.zarr" / name).mkdir()
        (ROOT / "v3.zarr" / name / "zarr.json").write_text(json.dumps(extended | change))


def one_array():
    array = zarr.create_array(ROOT / "one.zarr", shape=(6, 8, 10), chunks=(3, 4, 5), dtype="uint16", zarr_format=3,
                              dimension_names=["z", "y", "x"], overwrite=True)
    array[...] = samples((6, 8, 10), "u2", 1)
    expect("one.zarr", "", array[...])


def image(path, version):
    """An image of three levels with labels, of two axes of space, as ome-zarr-py writes it."""
    group = zarr.create_group(ROOT / path, zarr_format=2 if version == "0.4" else 3, overwrite=True)
    values = samples((2, 16, 24), "u2", 5)

    def write(group, name, values, channels):
        axes = [{"name": "c", "type": "channel"}] * channels + [{"name": n, "type": "space", "unit": "micrometer"} for n in "yx"]
        datasets = []
        for level in range(3):
            part = values[..., :: 2**level, :: 2**level]
            array = group.create_array(str(level), shape=part.shape, chunks=(1,) * channels + (8, 8), dtype=part.dtype)
            array[...] = part
            datasets.append({"path": str(level), "coordinateTransformations": [
                {"type": "scale", "scale": [1.0] * channels + [0.5 * 2**level] * 2},
                {"type": "translation", "translation": [0.0] * channels + [(2**level - 1) * 0.25] * 2}]})
            expect(path, f"{name}{level}", array[...], name.strip("/") or "data", level)
        multiscales = [{"name": "image", "axes": axes, "datasets": datasets}]
        if version == "0.4":
            group.attrs["multiscales"] = [multiscales[0] | {"version": version}]
        else:
            group.attrs["ome"] = {"version": version, "multiscales": multiscales}
        return group

    write(group, "", values, 1)
    omero = {"channels": [{"label": "dapi", "window": {"min": 0, "max": 65535, "start": 3, "end": 60}}, {"label": "gfp", "window": {"min": 0, "max": 65535, "start": 1, "end": 50}}]}
    if version == "0.4":
        group.attrs["omero"] = omero
    else:
        group.attrs["ome"] = group.attrs["ome"] | {"omero": omero}
    labels = group.create_group("labels")
    labels.attrs.update({"labels": ["cells"]} if version == "0.4" else {"ome": {"version": version, "labels": ["cells"]}})
    write(labels.create_group("cells"), "labels/cells/", (values[0] // 8).astype("u4"), 0)
    zarr.consolidate_metadata(ROOT / path)


def n5():
    root = ROOT / "volume.n5"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    (root / "attributes.json").write_text('{"n5": "2.5.1"}')

    def write(name, dtype, compression, shape=(7, 5, 11), block=(3, 4, 5), attributes=None, leave_out=False):
        spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(root / name)},
                "metadata": {"dimensions": shape, "blockSize": block, "dataType": dtype, "compression": compression} | (attributes or {})}
        store = ts.open(spec, create=True, delete_existing=True).result()
        values = samples(shape, dtype, len(name))
        if leave_out:
            store[: block[0], : block[1]] = values[: block[0], : block[1]]
        else:
            store[...] = values
        return store.read().result()

    for name, dtype, compression in [
        ("raw", "uint16", {"type": "raw"}), ("bytes", "uint8", {"type": "raw"}), ("gzip", "float32", {"type": "gzip"}),
        ("zlib", "int32", {"type": "gzip", "useZlib": True}), ("bzip2", "uint64", {"type": "bzip2"}), ("xz", "int8", {"type": "xz"}),
        ("zstd", "float64", {"type": "zstd"}), ("blosc", "int16", {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}),
    ]:
        expect("volume.n5", name, write(name, dtype, compression).T)
    expect("volume.n5", "groups/sparse", write("groups/sparse", "uint16", {"type": "gzip"}, leave_out=True).T)
    for level, shape in enumerate([(12, 10, 8), (6, 5, 4)]):
        attributes = {"downsamplingFactors": [2**level] * 3, "pixelResolution": {"unit": "nm", "dimensions": [4.0, 4.0, 40.0]}} if level else {
            "pixelResolution": {"unit": "nm", "dimensions": [4.0, 4.0, 40.0]}}
        values = write(f"image/s{level}", "uint8", {"type": "gzip"}, shape, (4, 4, 4), attributes)
        expect("volume.n5", f"image/s{level}", values.T, "image", level)
    (root / "strings").mkdir()
    (root / "strings/attributes.json").write_text(json.dumps({"dimensions": [3], "blockSize": [3], "dataType": "string", "compression": {"type": "raw"}}))


def webknossos():
    """A dataset of webKNOSSOS with layers in Zarr and N5 beside each other, each in the axes that its writers use."""
    root = ROOT / "webknossos"
    root.mkdir()
    corner, size = [3, 2, 1], [30, 25, 15]
    layers = []

    def layer(name, data_format, mags, category="color", element_class="uint8"):
        box = {"topLeft": corner, "width": size[0], "height": size[1], "depth": size[2]}
        layers.append({"name": name, "category": category, "dataFormat": data_format, "elementClass": element_class,
                       "boundingBox": box, "mags": mags})

    def expect_box(name, lod, values, mag):
        """Expects the box of values in the order c, x, y, z."""
        low = [c // m for c, m in zip(corner, mag)]
        high = [-(-(c + s) // m) for c, s, m in zip(corner, size, mag)]
        part = values[:, low[0]:high[0], low[1]:high[1], low[2]:high[2]].transpose(3, 2, 1, 0)
        expect("webknossos", f"{name}/{lod}", part if values.shape[0] > 1 else part[..., 0], name, lod)

    index = [BytesCodec(endian="little"), Crc32cCodec()]
    for name, channels, dtype in [("color", 1, "uint8"), ("rgb", 3, "uint8"), ("segmentation", 1, "uint32")]:
        mags = []
        for lod, mag in enumerate([(1, 1, 1), (2, 2, 1)]):
            shape = (channels, *(-(-n // m) for n, m in zip((40, 32, 24), mag)))
            codecs = [ShardingCodec(chunk_shape=(channels, 8, 8, 8), index_codecs=index, codecs=[
                TransposeCodec(order=(3, 2, 1, 0)), BytesCodec(endian="little"), BloscCodec(cname="zstd", shuffle="shuffle", typesize=1)])]
            path = f"{name}/{'-'.join(map(str, mag)) if lod else 1}"
            array = zarr.create(store=root / path, shape=shape, chunks=(channels, 16, 16, 16), dtype=dtype, zarr_format=3, codecs=codecs)
            array[...] = samples(shape, dtype, lod)
            expect_box(name, lod, array[...], mag)
            mags.append({"mag": list(mag), "path": f"./{path}", "axisOrder": {"c": 0, "x": 1, "y": 2, "z": 3}})
        layer(name, "zarr3", mags, "segmentation" if name == "segmentation" else "color", dtype if channels == 1 else "uint24")
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(root / "n5/1")},
            "metadata": {"dimensions": (40, 32, 24), "blockSize": (16, 16, 16), "dataType": "uint16", "compression": {"type": "gzip"}}}
    store = ts.open(spec, create=True).result()
    store[...] = samples((40, 32, 24), "u2", 9)
    expect_box("n5", 0, store.read().result()[None], (1, 1, 1))
    layer("n5", "n5", [{"mag": [1, 1, 1], "path": "n5/1", "axisOrder": {"x": 0, "y": 1, "z": 2}}], element_class="uint16")
    # the arrays begin at their voxel_offset: the box of the layer lies in them, or exceeds them at the low end
    for name, channels, offset in [("precomputed", 1, (2, 0, 1)), ("precomputed rgb", 3, (6, 4, 1))]:
        mags = []
        for lod, mag in enumerate([(1, 1, 1), (2, 2, 1)]):
            first = [o // m for o, m in zip(offset, mag)]
            size_of_mag = [-(-n // m) for n, m in zip((40, 32, 24), mag)]
            spec = {"driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": str(root / name)},
                    "multiscale_metadata": {"type": "image", "data_type": "uint8", "num_channels": channels},
                    "scale_metadata": {"size": size_of_mag, "encoding": "raw", "chunk_size": [16, 16, 16], "voxel_offset": first,
                                       "resolution": [11 * mag[0], 11 * mag[1], 28 * mag[2]]}}
            store = ts.open(spec, create=True).result()
            values = samples((*size_of_mag, channels), "u1", lod)
            store.write(values).result()
            low = [max(c // m, f) for c, m, f in zip(corner, mag, first)]
            high = [-(-(c + s) // m) for c, s, m in zip(corner, size, mag)]
            box = tuple(slice(begin - f, end - f) for begin, end, f in zip(low, high, first))
            part = values[box].transpose(2, 1, 0, 3)
            expect("webknossos", f"{name}/{lod}", part if channels > 1 else part[..., 0], name, lod)
            mags.append({"mag": list(mag), "path": f"./{name}/{11 * mag[0]}_{11 * mag[1]}_{28 * mag[2]}", "axisOrder": {"x": 0, "y": 1, "z": 2}})
        layer(name, "neuroglancerPrecomputed", mags, element_class="uint8" if channels == 1 else "uint24")
    properties = {"id": {"name": "webknossos", "team": ""}, "scale": {"factor": [11.0, 11.0, 28.0], "unit": "nanometer"}, "dataLayers": layers}
    (root / "datasource-properties.json").write_text(json.dumps(properties, indent=1))


def main():
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir(parents=True)
    version_2()
    version_3()
    one_array()
    image("image-0.4.zarr", "0.4")
    image("image-0.5.zarr", "0.5")
    n5()
    webknossos()
    lines = ",\n".join(json.dumps(entry) for entry in expected)
    (ROOT / "expected.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
