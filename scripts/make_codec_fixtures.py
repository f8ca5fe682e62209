#!/usr/bin/env python3
"""Writes what other programs have encoded into tests/data/codecs, for the tests of src/codec.

    make_codec_fixtures.py OUT

Writes OUT/codecs/cases.jsonl and OUT/codecs/bytes.bin. A line of cases.jsonl has the codec, its configuration, and the
first byte and length in bytes.bin of the encoded ("stored") and of the decoded bytes. Needs `pip install numcodecs
pcodec google-crc32c h5py hdf5plugin lz4 xxhash` and `zfpy<=1.0.1`, of which a newer version has a number that numcodecs
cannot read. The output is reproducible to the byte.
"""

import base64
import bz2
import gzip
import json
import lzma
import struct
import sys
import tempfile
import zlib
from pathlib import Path

import h5py
import hdf5plugin
import lz4.block
import numcodecs
import numpy as np
import xxhash
import zfpy


def volume(dtype, shape=(10, 11, 12), noise=1):
    """Returns a smooth volume with a little noise, of any sample type."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(7)
    z, y, x = np.indices(shape)
    values = 80 + 25 * np.sin(z / 5) + 15 * np.cos((x + 2 * y) / 9) + rng.integers(0, noise + 1, shape)
    if dtype.kind == "V":
        one = np.frombuffer(values.astype("<u4").tobytes(), "u1").reshape(-1, 4)
        return np.tile(one, (1, -(-dtype.itemsize // 4)))[:, : dtype.itemsize].copy().view(dtype).reshape(shape)
    if dtype.kind == "b":
        return values > 90
    if dtype.kind in "fc":
        values = values / 7
    if dtype.kind == "c":
        values = values + 1j * values[::-1]
    return values.astype(dtype)


class Cases:
    def __init__(self):
        self.lines, self.bytes, self.places = [], bytearray(), {}

    def place(self, content):
        if content not in self.places:
            self.places[content] = [len(self.bytes), len(content)]
            self.bytes += content
        return self.places[content]

    def add(self, codec, configuration, stored, decoded):
        stored, decoded = bytes(stored), np.ascontiguousarray(decoded).tobytes() if isinstance(decoded, np.ndarray) else bytes(decoded)
        line = {"codec": codec, "configuration": configuration, "stored": self.place(stored), "decoded": self.place(decoded)}
        self.lines.append(json.dumps(line))

    def numcodecs(self, codec, array, decoded=None):
        """Adds what a codec of numcodecs makes of an array, and what it decodes that to."""
        configuration = {key: value for key, value in codec.get_config().items() if key != "id"}
        stored = numcodecs.compat.ensure_bytes(codec.encode(array))
        decoded = codec.decode(stored) if decoded is None else decoded
        self.add(codec.codec_id, configuration, stored, np.ascontiguousarray(decoded))

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cases.jsonl").write_text("".join(line + "\n" for line in self.lines))
        (folder / "bytes.bin").write_bytes(self.bytes)


def blosc(cases):
    for name in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
        for shuffle in [0, 1, 2]:
            # blocks of their own length, and a last one that is shorter
            cases.numcodecs(numcodecs.Blosc(name, 5, shuffle, blocksize=1024), volume("<u2"))
    for name in ["blosclz", "lz4", "zstd"]:
        for dtype in ["u1", "V3", ">f4", "<f8", "<c16", "V17", "V255"]:
            array = volume(dtype, (5, 7, 19) if dtype != "V255" else (2, 3, 5))
            for shuffle in [1, 2]:
                cases.numcodecs(numcodecs.Blosc(name, 9, shuffle, blocksize=2048), array)
    for shape in [(1,), (7,), (8, 9), (33, 31)]:
        for shuffle in [0, 1, 2]:
            cases.numcodecs(numcodecs.Blosc("lz4", 5, shuffle), volume("<i4", (1, *([1] * (2 - len(shape))), *shape)))
    rng = np.random.default_rng(1)
    cases.numcodecs(numcodecs.Blosc("lz4", 5, 1), rng.integers(0, 256, 300, "u1"))
    cases.numcodecs(numcodecs.Blosc("zstd", 0, 1), volume("<u2", (3, 4, 5)))


def main(out):
    cases = Cases()
    blosc(cases)
    for level in [1, 9]:
        cases.numcodecs(numcodecs.Zstd(level), volume("<u2"))
        cases.numcodecs(numcodecs.GZip(level), volume("<u2"))
        cases.numcodecs(numcodecs.Zlib(level), volume("<u2"))
    cases.write(Path(out) / "codecs")


if __name__ == "__main__":
    main(*sys.argv[1:])
