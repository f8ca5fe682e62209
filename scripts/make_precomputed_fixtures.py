#!/usr/bin/env python3
"""Writes the precomputed volumes of tests/data, with the results that a reader must give.

    make_precomputed_fixtures.py OUT

Writes OUT/precomputed/DATASET/..., expected.json and images.json beside them. Needs `pip install tensorstore
cloud-volume pyspng-seunglab pillow`. tensorstore decides what the samples are; cloud-volume reads the same, but for
PNG and JPEG of several channels, which it takes apart wrongly. The output is reproducible to the byte.

expected.json is a list with an entry for each level that a mount must show, with the CRC-32 of its samples in the order
channel, z, y, x. images.json is a list of JPEG images in base64, of every subsampling and several sizes, with the
CRC-32 of the samples that libjpeg-turbo makes of them.
"""

import base64
import io
import json
import shutil
import sys
import zlib
from pathlib import Path

import numpy as np
import simplejpeg
import tensorstore as ts
from cloudvolume import CloudVolume
from PIL import Image

OFFSET, RESOLUTION = [5, -3, 100], [4, 4.5, 40]
# cloud-volume has whole numbers
WHOLE = [4, 5, 40]


# ------------------------------------------------------------------ voxels

def scrambled(shape, dtype, channels=1):
    """Returns (x, y, z, channel): a hash of each position, so that misplaced voxels are detected, with runs of zeros."""
    x, y, z, c = (a.astype(np.uint64) for a in np.ogrid[: shape[0], : shape[1], : shape[2], :channels])
    h = x * np.uint64(73856093) + y * np.uint64(19349663) + z * np.uint64(83492791) + c * np.uint64(2654435761)
    h = (h ^ (h >> np.uint64(15))) * np.uint64(0x2C1B3C6D2C1B3C6D)
    h ^= h >> np.uint64(29)
    h[np.broadcast_to((x // np.uint64(3) + y // np.uint64(5) + z) % np.uint64(3) == 0, h.shape)] = 0
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return ((h >> np.uint64(40)).astype(np.int64) - 2**23).astype(dtype) / dtype.type(64)
    return (h >> np.uint64(64 - 8 * dtype.itemsize)).astype(f"u{dtype.itemsize}").view(dtype)


def smooth(shape, dtype, channels=1):
    """Returns (x, y, z, channel): waves and some noise, as images have them."""
    x, y, z, c = np.ogrid[: shape[0], : shape[1], : shape[2], :channels]
    values = 0.5 + 0.3 * np.sin(x / 5 + c) + 0.15 * np.cos((y + 2 * z) / 7 - c)
    noise = scrambled(shape, "uint8", channels) / 255 * 0.05
    return ((values + noise) * 0.95 * np.iinfo(dtype).max).astype(dtype)


def segments(shape, dtype, channels=1):
    """Returns (x, y, z, channel): ids in cells, of which some have their own."""
    x, y, z, c = np.ogrid[: shape[0], : shape[1], : shape[2], :channels]
    cells = (x // 5 + 3 * (y // 4) + 17 * (z // 6) + 100 * c).astype(np.uint64)
    ids = cells * np.uint64(0x9E3779B97F4A7C15 if np.dtype(dtype).itemsize == 8 else 2654435761)
    own = scrambled(shape, "uint16", channels)
    ids = np.where((x > 9) & (y < 8), ids + (own % 300).astype(np.uint64), ids)
    return np.where(cells % 7 == 0, np.uint64(0), ids).astype(dtype)


# ------------------------------------------------------------------ datasets

class Fixtures:
    def __init__(self, out):
        self.root, self.expected = out / "precomputed", []

    def write(self, name, data, chunk, encoding, kind="image", offset=OFFSET, resolution=RESOLUTION, left_out=None, **scale):
        """Writes a scale of a dataset with tensorstore; `left_out` is a box that is never written."""
        channels = data.shape[3]
        volume = {"type": kind, "data_type": str(data.dtype), "num_channels": channels}
        metadata = {"size": list(data.shape[:3]), "encoding": encoding, "chunk_size": chunk, "voxel_offset": offset,
                    "resolution": resolution, **scale}
        path = self.root / name
        store = ts.open({
            "driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": str(path)},
            "multiscale_metadata": volume, "scale_metadata": metadata, "create": True,
        }).result()
        data = data.copy()
        if left_out is not None:
            data[left_out] = 0
        store.write(data).result()
        # a chunk of zeros is left out by tensorstore
        self.read(name, key_of(resolution))

    def read(self, name, key):
        """Reads a scale with both readers, and notes what is expected of it."""
        path = self.root / name
        info = json.loads((path / "info").read_text())
        lod = [scale["key"] for scale in info["scales"]].index(key)
        scale = info["scales"][lod]
        store = ts.open({"driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": str(path)},
                         "scale_index": lod}).result() if not list((path / key).glob("*.gz")) else None
        volume = CloudVolume(f"file://{path}", mip=lod, fill_missing=True, progress=False)
        by_cloud_volume = np.asarray(volume[:])
        data = by_cloud_volume if store is None else store.read().result()
        if scale["encoding"] not in ("png", "jpeg") or info["num_channels"] == 1:
            assert (by_cloud_volume == data).all(), f"the readers differ: {name}"
        samples = np.ascontiguousarray(data.transpose(3, 2, 1, 0))
        if info["num_channels"] == 1:
            samples = samples[0]
        finest = info["scales"][0]["resolution"]
        res, offset = scale["resolution"], scale.get("voxel_offset", [0, 0, 0])
        brick = [min(c, s) for c, s in zip(scale["chunk_sizes"][0], scale["size"])][::-1]
        self.expected.append({
            "dataset": name, "layer": "data", "lod": lod, "key": key, "dtype": str(data.dtype), "shape": samples.shape,
            "brick_shape": [info["num_channels"]] * (samples.ndim > 3) + brick, "codec": scale["encoding"],
            "first": [offset[a] * res[a] + (res[a] - finest[a]) / 2 for a in (2, 1, 0)], "step": res[::-1],
            "crc32": f"{zlib.crc32(samples.astype(samples.dtype.newbyteorder('<')).tobytes()):08x}",
        })

    def write_with_cloud_volume(self, name, data, chunk, encoding, compress, kind="image"):
        path = f"file://{self.root / name}"
        info = CloudVolume.create_new_info(
            num_channels=data.shape[3], layer_type=kind, data_type=str(data.dtype), encoding=encoding,
            resolution=WHOLE, voxel_offset=OFFSET, volume_size=data.shape[:3], chunk_size=chunk)
        volume = CloudVolume(path, info=info, compress=compress, progress=False, non_aligned_writes=True)
        volume.commit_info()
        volume[:] = data
        shutil.rmtree(self.root / name / "provenance", ignore_errors=True)
        (self.root / name / "provenance").unlink(missing_ok=True)
        for member in (self.root / name).glob("*/*.gz"):
            # without the time
            member.write_bytes(member.read_bytes()[:4] + bytes(4) + member.read_bytes()[8:])
        self.read(name, key_of(WHOLE))


def key_of(resolution):
    return "_".join(f"{n:g}" for n in resolution)


def sharding(preshift, minishards, shards, kind="identity", index="gzip", data="gzip"):
    return {"sharding": {"@type": "neuroglancer_uint64_sharded_v1", "preshift_bits": preshift, "hash": kind,
                         "minishard_bits": minishards, "shard_bits": shards, "minishard_index_encoding": index,
                         "data_encoding": data}}


def datasets(out):
    made = Fixtures(out)
    hole = np.s_[8:16, 8:16, 0:8]
    made.write("raw", scrambled((21, 17, 11), "uint16"), [8, 8, 8], "raw", left_out=hole)
    made.write("raw", scrambled((11, 9, 11), "uint16"), [8, 8, 8], "raw", offset=[2, -2, 100], resolution=[8, 9, 40])
    made.write("channels", scrambled((9, 10, 7), "float32", 3), [4, 5, 7], "raw", offset=[0, 0, 0])
    for dtype in ("uint8", "int8", "int16", "uint32", "int32", "uint64", "float32"):
        made.write(f"types-{dtype}", scrambled((5, 4, 3), dtype), [64, 64, 64], "raw")
    block = {"compressed_segmentation_block_size": [8, 8, 8]}
    odd = {"compressed_segmentation_block_size": [4, 3, 5]}
    made.write("segments", segments((20, 19, 13), "uint64"), [16, 16, 16], "compressed_segmentation", "segmentation", **block)
    made.write("segments-32", segments((20, 19, 13), "uint32", 2), [16, 16, 8], "compressed_segmentation", **odd)
    made.write("jpeg", smooth((33, 18, 9), "uint8"), [16, 16, 8], "jpeg", jpeg_quality=80)
    made.write("jpeg-rgb", smooth((33, 18, 9), "uint8", 3), [16, 16, 8], "jpeg", jpeg_quality=80)
    made.write("png", smooth((21, 18, 9), "uint8"), [16, 16, 8], "png")
    made.write("png-16", smooth((21, 18, 9), "uint16", 2), [16, 16, 8], "png")
    made.write("png-rgb", smooth((21, 10, 9), "uint8", 3), [16, 16, 8], "png")
    made.write("png-4", smooth((11, 10, 9), "uint16", 4), [8, 8, 8], "png")
    made.write("sharded", scrambled((21, 17, 11), "uint16"), [4, 4, 4], "raw", left_out=hole, **sharding(1, 2, 2))
    made.write("sharded-plain", scrambled((21, 17, 11), "uint8"), [4, 4, 4], "raw",
               **sharding(0, 1, 1, index="raw", data="raw"))
    made.write("sharded-hashed", segments((20, 19, 13), "uint64"), [8, 8, 8], "compressed_segmentation",
               "segmentation", **block, **sharding(2, 1, 5, "murmurhash3_x86_128", "gzip", "gzip"))
    made.write("sharded-jpeg", smooth((33, 18, 9), "uint8"), [16, 16, 8], "jpeg",
               **sharding(3, 0, 0, "murmurhash3_x86_128", "raw", "raw"))
    made.write_with_cloud_volume("gzip", scrambled((21, 17, 11), "uint16"), [8, 8, 8], "raw", "gzip")
    made.write_with_cloud_volume("gzip-segments", segments((20, 19, 13), "uint64"), [16, 16, 16],
                                 "compressed_segmentation", "gzip", "segmentation")
    made.write_with_cloud_volume("gzip-png", smooth((21, 18, 9), "uint8"), [16, 16, 8], "png", "gzip")
    made.write_with_cloud_volume("bare-jpeg", smooth((33, 18, 9), "uint8"), [16, 16, 8], "jpeg", None)
    for info in made.root.glob("*/info"):
        info.write_text(json.dumps(json.loads(info.read_text())) + "\n")
    write_json(made.root / "expected.json", made.expected)


# ------------------------------------------------------------------ images

def images():
    """Yields JPEG images, with their samples by libjpeg-turbo."""
    for width, height in ((1, 1), (2, 3), (5, 2), (17, 33), (40, 24)):
        pixels = smooth((width, height, 1), "uint8", 3)[:, :, 0].transpose(1, 0, 2)
        gray = simplejpeg.encode_jpeg(np.ascontiguousarray(pixels[:, :, :1]), 90, colorspace="GRAY")
        yield f"gray {width} x {height}", gray, 1
        for subsampling in ("444", "422", "420", "440"):
            data = simplejpeg.encode_jpeg(np.ascontiguousarray(pixels), 85, "RGB", subsampling)
            yield f"{subsampling} {width} x {height}", data, 3
    for name, options in (
        ("restart", {"restart_marker_blocks": 2}), ("restart in rows", {"restart_marker_rows": 1}),
        ("least quality", {"quality": 1}), ("best quality", {"quality": 100}), ("own codes", {"optimize": True}),
        ("not brightness and colours", {"keep_rgb": True}),
    ):
        for channels in (1, 3):
            pixels = smooth((50, 41, 1), "uint8", 3)[:, :, 0, :channels].transpose(1, 0, 2)
            file = io.BytesIO()
            Image.fromarray(pixels[:, :, 0] if channels == 1 else np.ascontiguousarray(pixels)).save(file, "JPEG", **options)
            yield f"{name}, {channels}", file.getvalue(), channels
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, "JPEG", progressive=True)
    yield "progressive", file.getvalue(), 3


def write_images(out):
    entries = []
    for name, data, channels in images():
        decoded = simplejpeg.decode_jpeg(data, "GRAY" if channels == 1 else "RGB")
        entries.append({"name": name, "channels": channels, "samples": decoded.size, "crc32": f"{zlib.crc32(decoded.tobytes()):08x}",
                        "jpeg": base64.b64encode(data).decode()})
    write_json(out / "precomputed" / "images.json", entries)


def write_json(path, entries):
    path.write_text("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")


def main():
    out = Path(sys.argv[1]).absolute()
    shutil.rmtree(out / "precomputed", ignore_errors=True)
    datasets(out)
    write_images(out)


if __name__ == "__main__":
    main()
