#!/usr/bin/env python3
"""Writes the WKW datasets of tests/data, with the results that a reader must give.

    make_wkw_fixtures.py OUT

Writes OUT/wkw/DATASET/..., OUT/wkw/expected.json and OUT/demo/cells. Needs `pip install numpy wkw`; wkw is the
reference library: it writes all cubes and reads back the expected samples. The output is reproducible to the byte.

expected.json has "arrays" (one for each layer and level that a mount must show, with the CRC-32 of its samples in the
order z, y, x, channel), "hidden" (layers that cannot be shown, with a part of the reason), "missing" (mags that cannot
be shown) and "damaged" (for each layer of the dataset `damaged` the CRC-32 of its eight blocks, null for those that
must be unreadable).
"""

import json
import shutil
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import wkw

RAW, LZ4, LZ4HC = 1, 2, 3
CODECS = {RAW: "raw", LZ4: "lz4", LZ4HC: "lz4hc"}
CLASSES = {"float32": "float", "float64": "double"}
SCALE, UNIT = [11.24, 11.24, 28.0], "nanometer"


# ------------------------------------------------------------------ voxels

def scrambled(shape, dtype, channels=1):
    """Returns (channel, x, y, z): a hash of each position, so that misplaced voxels are detected, with runs of
    zeros."""
    c, x, y, z = (a.astype(np.uint64) for a in np.ogrid[:channels, :shape[0], :shape[1], :shape[2]])
    h = (x * np.uint64(73856093) + y * np.uint64(19349663) + z * np.uint64(83492791) + c * np.uint64(2654435761))
    h = (h ^ (h >> np.uint64(15))) * np.uint64(0x2C1B3C6D2C1B3C6D)
    h ^= h >> np.uint64(29)
    h[np.broadcast_to((x // np.uint64(3) + y // np.uint64(5) + z) % np.uint64(3) == 0, h.shape)] = 0
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return np.asfortranarray(((h >> np.uint64(40)).astype(np.int64) - 2**23).astype(dtype) / dtype.type(64))
    unsigned = np.dtype(f"u{dtype.itemsize}")
    return np.asfortranarray((h >> np.uint64(64 - 8 * dtype.itemsize)).astype(unsigned).view(dtype))


# ------------------------------------------------------------------ datasets

def name_of(mag):
    return str(mag[0]) if len(set(mag)) == 1 else "-".join(map(str, mag))


def in_mag(corner, size, mag):
    low = [c // m for c, m in zip(corner, mag)]
    high = [-(-(c + s) // m) for c, s, m in zip(corner, size, mag)]
    return low, [b - a for a, b in zip(low, high)]


def write_mag(folder, data, offset, block_len, file_len, kind, holes=()):
    """Writes the cubes that hold `data` at `offset`, except those in `holes`."""
    side = block_len * file_len
    header = wkw.Header(data.dtype.type, num_channels=data.shape[0], block_len=block_len, file_len=file_len, block_type=kind)
    folder.parent.mkdir(parents=True, exist_ok=True)
    first = [o // side for o in offset]
    last = [(o + n - 1) // side for o, n in zip(offset, data.shape[1:])]
    whole = np.zeros((data.shape[0], *((b - a + 1) * side for a, b in zip(first, last))), data.dtype, order="F")
    at = [o - f * side for o, f in zip(offset, first)]
    whole[(slice(None), *(slice(a, a + n) for a, n in zip(at, data.shape[1:])))] = data
    with wkw.Dataset.create(str(folder), header) as dataset:
        for cube in np.ndindex(*(b - a + 1 for a, b in zip(first, last))):
            place = tuple(f + c for f, c in zip(first, cube))
            if place not in holes:
                part = whole[(slice(None), *(slice(c * side, (c + 1) * side) for c in cube))]
                dataset.write(tuple(p * side for p in place), np.asfortranarray(part))


def read(folder, offset, size):
    """Returns the bytes of a box in the order z, y, x, channel, as the reference library reads them."""
    with wkw.Dataset.open(str(folder)) as dataset:
        return dataset.read(tuple(offset), tuple(size)).tobytes(order="F")


class Writer:
    """Writes datasets below a folder, and collects the expected results."""

    def __init__(self, root):
        self.root = root
        self.expected = {"arrays": [], "hidden": [], "missing": [], "damaged": {}}

    def layer(self, dataset, name, dtype, size, *, corner=(0, 0, 0), channels=1, mags=((1, 1, 1),), block=(4, 2, LZ4),
              category="color", holes=None, scale=(SCALE, UNIT), long_names=False, folder=None, dtype_of=None):
        """Writes a layer; returns its entry in the JSON."""
        block_len, file_len, kind = block
        for lod, mag in enumerate(mags):
            low, n = in_mag(corner, size, mag)
            of_mag = (dtype_of or {}).get(mag, dtype)
            place = self.root / dataset / (name if folder is None else folder)
            place /= "-".join(map(str, mag)) if long_names else name_of(mag)
            write_mag(place, scrambled(n, of_mag, channels), low, block_len, file_len, kind, (holes or {}).get(mag, ()))
            self.expect(dataset, name, lod, mag, place, low, n, of_mag, channels, block, scale)
        bits = 8 * np.dtype(dtype).itemsize * channels
        word = CLASSES.get(dtype, dtype)
        entry = {"name": name, "category": category, "dataFormat": "wkw",
                 "boundingBox": dict(topLeft=list(corner), width=size[0], height=size[1], depth=size[2]),
                 "elementClass": word if channels == 1 else word.rstrip("0123456789") + str(bits), "numChannels": channels,
                 "mags": [{"mag": list(mag), "path": f"./{name}/{name_of(mag)}"} for mag in mags]}
        if category == "segmentation":
            entry["largestSegmentId"] = 2**53 + 5 if dtype == "uint64" else 1000
        return entry

    def expect(self, dataset, name, lod, mag, place, low, n, dtype, channels, block, scale):
        """Records the expected samples of a box of a mag."""
        (factor, unit), (block_len, _, kind) = scale, block
        centre = [(o * m + (m - 1) / 2) * f for o, m, f in zip(low, mag, factor or [1, 1, 1])]
        step = [m * f for m, f in zip(mag, factor or [1, 1, 1])]
        last = [channels] if channels > 1 else []
        self.expected["arrays"].append({
            "dataset": dataset, "layer": name, "lod": lod, "mag": list(mag), "offset": low, "dtype": dtype,
            "shape": n[::-1] + last, "brick_shape": [block_len] * 3 + last, "first": centre[::-1], "step": step[::-1],
            "unit": unit, "codec": CODECS[kind], "crc32": f"{zlib.crc32(read(place, low, n)):08x}"})

    def properties(self, dataset, layers, *, scale=None, extra=None, before=b""):
        text = {"id": {"name": dataset, "team": ""}, "scale": scale or {"factor": SCALE, "unit": UNIT},
                "dataLayers": layers, **(extra or {"version": 1})}
        path = self.root / dataset / "datasource-properties.json"
        path.write_bytes(before + json.dumps(text, indent=1).encode() + b"\n")


# ------------------------------------------------------------------ valid datasets

def types(w):
    names = ["uint8", "uint16", "uint32", "uint64", "float32", "float64", "int8", "int16", "int32", "int64"]
    layers = [w.layer("types", name, name, (13, 11, 6), corner=(5, 6, 3), block=(4, 2, (LZ4, RAW, LZ4HC)[n % 3]))
              for n, name in enumerate(names)]
    layers += [w.layer("types", f"block{b}", "uint8", (11, 9, 7), corner=(3, 1, 2), block=(b, f, k))
               for b, f, k in ((1, 4, LZ4), (2, 8, RAW), (16, 1, LZ4HC), (32, 1, LZ4))]
    w.properties("types", layers)


def pyramid(w):
    box = dict(size=(41, 33, 21), corner=(5, 7, 3), block=(8, 2, LZ4))
    mags = ((1, 1, 1), (2, 2, 1), (4, 4, 2))
    layers = [
        w.layer("pyramid", "color", "uint8", mags=mags, **box),
        w.layer("pyramid", "segmentation", "uint64", (20, 18, 9), corner=(5, 7, 3), mags=mags, block=(8, 2, LZ4HC),
                category="segmentation", holes={(1, 1, 1): {(0, 0, 0), (1, 1, 0)}}),
        w.layer("pyramid", "rgb", "uint8", (13, 9, 5), corner=(1, 2, 3), channels=3),
        w.layer("pyramid", "flow", "float32", (7, 6, 5), corner=(9, 2, 0), channels=2, block=(4, 1, RAW)),
        w.layer("pyramid", "far", "uint8", (9, 7, 5), corner=(123457, 2000003, 65531)),
        w.layer("pyramid", "mixed", "uint16", (16, 8, 16), block=(4, 2, LZ4)),
        w.layer("pyramid", "wrong class", "uint16", (5, 5, 5)),
    ]
    layers[-1]["elementClass"] = "uint8"
    layers[0]["mags"].append({"mag": [8, 8, 4], "path": "./color/8-8-4"})
    w.expected["missing"].append({"dataset": "pyramid", "layer": "color", "mag": [8, 8, 4], "reason": "no such folder"})
    # cubes of one mag may differ in block type
    mixed, other = w.root / "pyramid/mixed/1", w.root / "pyramid/other"
    for kind, cube in ((RAW, "z0/y0/x0.wkw"), (LZ4HC, "z1/y0/x1.wkw")):
        write_mag(other, scrambled((16, 8, 16), "uint16"), (0, 0, 0), 4, 2, kind)
        shutil.copy(other / cube, mixed / cube)
        shutil.rmtree(other)
    (w.root / "pyramid/zarr/1").mkdir(parents=True)
    (w.root / "pyramid/zarr/1/.zarray").write_text("{}")
    box = dict(topLeft=[0, 0, 0], width=8, height=8, depth=8)
    for name, entry, reason in (
            ("zarr", {"dataFormat": "tiff", "mags": [{"mag": 1}]}, "its format is tiff"),
            ("remote", {"dataFormat": "wkw", "mags": [{"mag": [1, 1, 1], "path": "s3://host/em/1"}]}, "remote"),
            ("nowhere", {"dataFormat": "wkw", "mags": [{"mag": [1, 1, 1]}]}, "no such folder"),
            ("no mags", {"dataFormat": "wkw", "mags": []}, "no mags")):
        layers.append({"name": name, "category": "color", "elementClass": "uint8", "boundingBox": box, **entry})
        w.expected["hidden"].append({"dataset": "pyramid", "layer": name, "reason": reason})
    layers.append({**layers[4], "name": "nothing", "mags": [{"mag": [1, 1, 1], "path": "far/1/"}], "boundingBox": {**box, "width": 0}})
    w.expected["hidden"].append({"dataset": "pyramid", "layer": "nothing", "reason": "boundingBox is empty"})
    w.properties("pyramid", layers, extra={"version": 1, "unknown": [1, {"a": None}]})


def old(w):
    scale = ([4.0, 4.0, 35.0], UNIT)
    entry = w.layer("old", "color", "uint16", (12, 9, 7), corner=(1, 2, 3), mags=((1, 1, 1), (2, 2, 2)), scale=scale, long_names=True)
    del entry["mags"], entry["numChannels"]
    entry["wkwResolutions"] = [{"resolution": 2, "cubeLength": 8}, {"resolution": [1, 1, 1], "cubeLength": 4096}]
    w.properties("old", [entry], scale=scale[0], extra={"defaultViewConfiguration": {}}, before=b"\xef\xbb\xbf")


def without_json(w):
    """Writes datasets without a JSON: the box is that of all cubes; it begins in the middle of the mag and ends with
    whole cubes."""
    none = (None, None)
    for name, dtype, corner in (("color", "uint8", (8, 0, 16)), ("segmentation", "uint32", (0, 8, 0))):
        w.layer("bare", name, dtype, (24, 16, 8), corner=corner, mags=((1, 1, 1), (2, 2, 1)), scale=none)
    w.layer("annotation", "data", "uint32", (32, 16, 16), corner=(16, 32, 0), mags=((1, 1, 1), (2, 2, 1)), block=(16, 1, LZ4),
            scale=none, folder=".")


# ------------------------------------------------------------------ damage

def damaged(w):
    """Writes layers of 16^3 voxels, each one cube of eight blocks that is damaged in its own way."""
    cube = "z0/y0/x0.wkw"

    def patch(at, data, name=cube):
        def change(mag):
            whole = bytearray((mag / name).read_bytes())
            whole[at:at + len(data)] = data
            (mag / name).write_bytes(whole)
        return change

    def cut(size, name=cube):
        def change(mag):
            whole = (mag / name).read_bytes()
            (mag / name).write_bytes(whole[:size])
        return change

    def folder(mag):
        (mag / cube).unlink()
        (mag / cube).mkdir()
        (mag / cube / "keep").write_bytes(b"")

    every, entry = range(8), struct.pack
    cases = [  # name, kind, damage, unreadable blocks (by number in the cube) or a part of the reason why the mag is refused
        ("missing", RAW, lambda mag: (mag / cube).unlink(), "zeros"),
        ("empty", LZ4, cut(0), every),
        ("short header", RAW, cut(10), every),
        ("short table", LZ4, cut(40), every),
        ("last byte", RAW, cut(-1), [7]),
        ("last byte coded", LZ4, cut(-1), [7]),
        ("magic", LZ4, patch(0, b"XKW"), every),
        ("block type", RAW, patch(5, b"\4"), every),
        ("voxel type", LZ4, patch(6, b"\7"), every),
        ("block length", RAW, patch(4, b"\x22"), every),
        ("offset 0", LZ4, patch(8, bytes(8)), every),
        ("table zero", LZ4HC, patch(16, bytes(64)), every),
        ("table falls", LZ4, patch(16 + 8 * 3, entry("<Q", 20)), [3, 4]),
        ("table far", LZ4, patch(16 + 8 * 7, entry("<Q", 1 << 62)), [7]),
        ("garbage", LZ4, patch(80, b"\xff" * 40), [0]),
        ("folder", RAW, folder, every),
        ("header offset", LZ4, patch(8, entry("<Q", 16), "header.wkw"), []),
        ("header type", RAW, patch(5, b"\2", "header.wkw"), []),
        ("no header", RAW, lambda mag: (mag / "header.wkw").unlink(), "header.wkw is missing"),
        ("header short", RAW, cut(15, "header.wkw"), "only 15 bytes"),
        ("header version", RAW, patch(3, b"\2", "header.wkw"), "version 2"),
        ("header voxels", RAW, patch(6, b"\2\3", "header.wkw"), "not a multiple"),
        ("header huge", RAW, patch(4, b"\xff", "header.wkw"), "too large"),
    ]
    layers = []
    box = dict(topLeft=[0, 0, 0], width=16, height=16, depth=16)
    for name, kind, change, outcome in cases:
        mag = w.root / "damaged" / name / "1"
        voxels = scrambled((16, 16, 16), "uint8")
        write_mag(mag, voxels, (0, 0, 0), 8, 2, kind)
        change(mag)
        layers.append({"name": name, "category": "color", "dataFormat": "wkw", "elementClass": "uint8", "boundingBox": box,
                       "mags": [{"mag": [1, 1, 1]}]})
        if isinstance(outcome, str) and outcome != "zeros":
            w.expected["hidden"].append({"dataset": "damaged", "layer": name, "reason": outcome})
            continue
        if outcome == "zeros":
            voxels, outcome = np.zeros_like(voxels), []
        blocks = [voxels[0, 8 * x:8 * x + 8, 8 * y:8 * y + 8, 8 * z:8 * z + 8].tobytes(order="F")
                  for z in (0, 1) for y in (0, 1) for x in (0, 1)]
        w.expected["damaged"][name] = [None if n in outcome else f"{zlib.crc32(b):08x}" for n, b in enumerate(blocks)]
    w.properties("damaged", layers)


# ------------------------------------------------------------------ the demonstration

def cells(w):
    """Writes soft cells on a dark background, and a segmentation that numbers them."""
    n, rng = 96, np.random.Generator(np.random.PCG64(12))
    x, y, z = np.ogrid[:n, :n, :n]
    image, ids = np.zeros((n, n, n)), np.zeros((n, n, n), np.uint32)
    for number in range(1, 101):
        c, r = rng.uniform(8, n - 8, 3), rng.uniform(6, 15)
        d = np.sqrt((x - c[0])**2 + (y - c[1])**2 + (1.7 * (z - c[2]))**2) / r
        image = np.maximum(image, np.clip(1.15 - d, 0, 1) * rng.uniform(110, 230))
        ids[(d < 0.8) & (ids == 0)] = 1000 + number
    layers = []
    for name, voxels, category in (("color", (image.astype(np.uint8) // 3) * 3, "color"), ("segmentation", ids, "segmentation")):
        mags = ((1, 1, 1), (2, 2, 1), (4, 4, 2))
        for mag in mags:
            coarse = voxels[tuple(slice(None, None, m) for m in mag)]
            write_mag(w.root / "cells" / name / name_of(mag), np.asfortranarray(coarse[None]), (0, 0, 0), 32, 1, LZ4HC)
        layers.append({"name": name, "category": category, "dataFormat": "wkw", "elementClass": str(voxels.dtype),
                       "boundingBox": dict(topLeft=[0, 0, 0], width=n, height=n, depth=n), "numChannels": 1,
                       "mags": [{"mag": list(mag), "path": f"./{name}/{name_of(mag)}"} for mag in mags]})
    layers[1]["largestSegmentId"] = int(ids.max())
    w.properties("cells", layers)


def main(out):
    for folder in (out / "wkw", out / "demo/cells"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    w = Writer(out / "wkw")
    for make in (types, pyramid, old, without_json, damaged):
        make(w)
    (out / "wkw/expected.json").write_text(json.dumps(w.expected, indent=1) + "\n")
    cells(Writer(out / "demo"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
