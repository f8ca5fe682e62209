#!/usr/bin/env python3
"""Writes what other programs have encoded into tests/data/codecs, for the tests of src/codec.

    make_codec_fixtures.py OUT

Writes OUT/codecs/cases.jsonl and OUT/codecs/bytes.bin. A line of cases.jsonl has the codec, its configuration, and the
first byte and length in bytes.bin of the encoded ("stored") and of the decoded bytes. Needs `pip install numcodecs
pcodec google-crc32c h5py hdf5plugin lz4 xxhash` and `zfpy<=1.0.1`, of which a newer version has a number that numcodecs
cannot read. The output is reproducible to the byte.
"""

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


def volume(dtype, shape=(8, 9, 11), noise=1):
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

    def add(self, codec, configuration, stored, decoded, **more):
        stored, decoded = bytes(stored), np.ascontiguousarray(decoded).tobytes() if isinstance(decoded, np.ndarray) else bytes(decoded)
        line = {"codec": codec, "configuration": configuration, "stored": self.place(stored), "decoded": self.place(decoded), **more}
        self.lines.append(json.dumps(line, separators=(",", ":")))

    def numcodecs(self, codec, array, decoded=None):
        """Adds what a codec of numcodecs makes of an array, and what it decodes that to."""
        configuration = {key: value for key, value in codec.get_config().items() if key != "id"}
        stored = numcodecs.compat.ensure_bytes(codec.encode(array))
        if codec.codec_id == "gzip":
            # without the time
            stored = stored[:4] + bytes(4) + stored[8:]
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
        shapes = {"u1": (3, 25, 29), "V3": (9, 9, 9), ">f4": (5, 11, 11), "<f8": (5, 7, 8), "<c16": (3, 7, 7), "V17": (3, 5, 9), "V255": (1, 2, 3)}
        for dtype, shape in shapes.items():
            array = volume(dtype, shape)
            for shuffle in [1, 2] if name != "zstd" or dtype in ["V3", ">f4"] else [2]:
                cases.numcodecs(numcodecs.Blosc(name, 9, shuffle, blocksize=2048), array)
    for shape in [(1,), (7,), (8, 9), (33, 31)]:
        for shuffle in [0, 1, 2]:
            cases.numcodecs(numcodecs.Blosc("lz4", 5, shuffle), volume("<i4", (1, *([1] * (2 - len(shape))), *shape)))
    rng = np.random.default_rng(1)
    cases.numcodecs(numcodecs.Blosc("lz4", 5, 1), rng.integers(0, 256, 300, "u1"))
    cases.numcodecs(numcodecs.Blosc("zstd", 0, 1), volume("<u2", (3, 4, 5)))


def compressors(cases):
    array = volume("<u2")
    for level in [1, 9]:
        for codec in [numcodecs.Zstd, numcodecs.GZip, numcodecs.Zlib, numcodecs.BZ2]:
            cases.numcodecs(codec(level), array)
    cases.numcodecs(numcodecs.Zstd(3, checksum=True), array)
    cases.numcodecs(numcodecs.LZ4(), array)
    plain = array.tobytes()
    half = len(plain) // 2
    parts = plain[:half], plain[half:]
    # several members and streams, with all that a header can have; what z5py calls gzip
    header = b"\x1f\x8b\x08\x1e\0\0\0\0\0\3" + b"\4\0ab\0\0" + b"name\0" + b"comment\0"
    header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    body = zlib.compress(parts[0], 9)[2:-4]
    first = header + body + struct.pack("<II", zlib.crc32(parts[0]), len(parts[0]))
    cases.add("gzip", {}, first + gzip.compress(parts[1], 5, mtime=0) + bytes(5), plain)
    cases.add("gzip", {"level": -1, "useZlib": True}, zlib.compress(plain, 6), plain)
    cases.add("deflate", {}, body, parts[0])
    cases.add("bzip2", {"blockSize": 9}, bz2.compress(parts[0]) + bz2.compress(parts[1], 1), plain)
    cases.add("zstd", {}, numcodecs.Zstd(1).encode(parts[0]) + numcodecs.Zstd(2).encode(parts[1]), plain)
    noise = np.random.default_rng(3).normal(size=600).astype("<f4")
    for codec in [numcodecs.GZip(6), numcodecs.Zlib(6), numcodecs.Zstd(3)]:
        cases.numcodecs(codec, noise)

    lzma2, delta = {"id": lzma.FILTER_LZMA2, "preset": 1}, {"id": lzma.FILTER_DELTA, "dist": 2}
    cases.numcodecs(numcodecs.LZMA(), array)
    for check in [lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_SHA256]:
        codec = numcodecs.LZMA(check=check, filters=[delta, lzma2])
        # numcodecs itself does not decode .xz with filters in the configuration
        cases.numcodecs(codec, array, array)
    cases.numcodecs(numcodecs.LZMA(format=lzma.FORMAT_ALONE, preset=1), array)
    lzma1 = {"id": lzma.FILTER_LZMA1, "lc": 2, "lp": 1, "pb": 1, "dict_size": 1 << 16}
    for filters in [[lzma2], [delta, lzma2], [delta, delta, lzma2], [lzma1]]:
        cases.numcodecs(numcodecs.LZMA(format=lzma.FORMAT_RAW, filters=filters), array)
    cases.add("xz", {"preset": 6}, lzma.compress(parts[0]) + lzma.compress(parts[1]) + bytes(4), plain)
    cases.add("lzma", {"format": 0}, lzma.compress(plain, lzma.FORMAT_ALONE), plain)

    # of one process, whose blocks are not of one length
    cases.numcodecs(numcodecs.PCodec(equal_pages_up_to=400), volume("<f4"))
    for dtype in ["<i2", "<u2", "<f2", "<i4", "<u4", "<i8", "<u8", "<f8"]:
        cases.numcodecs(numcodecs.PCodec(), volume(dtype, (5, 6, 7)))
    cases.numcodecs(numcodecs.PCodec(level=3, mode_spec="classic", delta_encoding_order=2), volume("<f8", (5, 6, 7)))


def java_block(decoded, compress):
    """Returns a block of LZ4BlockOutputStream."""
    stored = lz4.block.compress(decoded, store_size=False) if compress else decoded
    sum = xxhash.xxh32_intdigest(decoded, 0x9747B28C) & 0x0FFFFFFF if decoded else 0
    return b"LZ4Block" + struct.pack("<BIII", 0x26 if compress else 0x16, len(stored), len(decoded), sum) + stored


def blocks(cases):
    plain = volume(">u2").tobytes()
    parts = [plain[at : at + 1024] for at in range(0, len(plain), 1024)]
    cases.add("lz4-java", {}, b"".join(java_block(part, n % 2 == 0) for n, part in enumerate(parts)) + java_block(b"", False), plain)
    with tempfile.TemporaryDirectory() as folder:
        file = h5py.File(Path(folder) / "a.h5", "w")

        def chunk(array, **options):
            """Returns a chunk as HDF5 stores it."""
            file.create_dataset("a", data=array, chunks=array.shape, **options)
            stored = file["a"].id.read_direct_chunk((0,) * array.ndim)[1]
            del file["a"]
            return stored

        for array in [volume("<u2"), np.random.default_rng(5).integers(0, 256, 1500, "u1")]:
            for block in [0, 1024]:
                cases.add("lz4-hdf5", {}, chunk(array, **hdf5plugin.LZ4(nbytes=block)), array)
        shapes = {"u1": (8, 9, 11), "<u2": (7, 9, 11), ">f4": (3, 9, 11), "<f8": (3, 9, 11), "<i4": (1, 1, 7)}
        for dtype, shape in shapes.items():
            array = volume(dtype, shape)
            for name, block in [("none", 0), ("none", 256), ("lz4", 0), ("lz4", 256), ("zstd", 256)]:
                configuration = {"elementsize": array.itemsize, "blocksize": block, "cname": name}
                stored = chunk(array, **hdf5plugin.Bitshuffle(nelems=block, cname=name))
                cases.add("bitshuffle", configuration, stored, array)
        for array in [volume("<u2"), volume("u1", (3, 5, 7)), np.full(1001, 255, "u1")]:
            cases.add("fletcher32", {}, chunk(array, fletcher32=True), array)
        for array in [volume("<i4", (3, 5, 7)), volume(">f8", (3, 5, 7)), volume("<c16", (2, 3, 3))]:
            cases.add("shuffle", {"elementsize": array.itemsize}, chunk(array, shuffle=True), array)
        cases.add("zlib", {}, chunk(volume("<u2"), compression="gzip"), volume("<u2"))
        cases.add("blosc", {}, chunk(volume("<u2"), **hdf5plugin.Blosc(cname="lz4hc", clevel=9, shuffle=2)), volume("<u2"))


def checksums(cases):
    array = volume("<i2", (3, 5, 7))
    for codec in [numcodecs.CRC32, numcodecs.Adler32, numcodecs.checksum32.CRC32C]:
        for options in [{}, {"location": "start"}, {"location": "end"}]:
            cases.numcodecs(codec(**options), array)
    for length in [0, 1, 2, 719, 722]:
        content = np.arange(length, dtype="u4").astype("u1") if length else np.zeros(0, "u1")
        if length:
            cases.numcodecs(numcodecs.Fletcher32(), content)
        cases.numcodecs(numcodecs.checksum32.CRC32C(), content)


# numbers at the ends of types, and between integers
HARD = np.array([0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, 127.9, 128, -129, 255.5, 256, 3e4, -4e4, 65519, 65520, 7e4, 2**31 - 0.5, 2.0**31, -(2.0**31) - 1,
    2.0**32, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, 1e-5, 6e-8, 2.9e-8, 1e-310, np.inf, -np.inf, np.nan, 1 / 3, -1e5 / 3])


def filters(cases):
    numbers = ["?", "i1", "u1", "<i2", ">u2", "<i4", "<u4", ">i8", "<u8", "<f2", ">f2", ">f4", "<f4", "<f8"]
    with np.errstate(all="ignore"):
        for encoded in numbers:
            integers = np.array([0, 1, 2, 127, 128, 255, 256, 32767, 32768, 65535, 2**24 + 1, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1], "u8")
            stored = (HARD if np.dtype(encoded).kind == "f" else np.concatenate([integers, -integers])).astype(encoded)
            for decoded in sorted(numbers, key="<u4".__eq__):
                if decoded == "<u4" and np.dtype(encoded).kind == "f":
                    # others have different results in different places
                    stored = stored[(stored >= -(2.0**31)) & (stored < 2.0**32)]
                codec = numcodecs.AsType(encode_dtype=encoded, decode_dtype=decoded)
                configuration = {key: value for key, value in codec.get_config().items() if key != "id"}
                cases.add("astype", configuration, stored.tobytes(), codec.decode(stored))
        pairs = [("<i2", "i1"), ("u1", "u1"), (">i4", "<i2"), ("<u8", "<u8"), ("<f4", "<f4"), ("<f8", ">f4"), ("<f4", "<f8"), ("<f2", "<f2")]
        for dtype, astype in [*pairs, ("<c8", "<c8"), (">c16", "<c16"), ("<m8[s]", "<m8[s]"), ("<i4", "<f8"), ("<f4", "<i4")]:
            # some are longer than what is decoded at a time
            shape = {"<i2": (3, 11, 17), "<f4": (3, 11, 17), ">c16": (2, 8, 17)}.get(dtype, (2, 5, 7))
            array = volume(dtype.replace("m8[s]", "i8"), shape).view(dtype)
            stored = numcodecs.Delta(dtype, astype).encode(array)
            codec = numcodecs.Delta(dtype, astype)
            configuration = {key: value for key, value in codec.get_config().items() if key != "id"}
            cases.add("delta", configuration, stored.tobytes(), codec.decode(stored))
        negative = np.array([-0.0, -0.0, 0.0, -0.0, 1e30, -1e30, np.inf, np.nan], "<f4")
        cases.add("delta", {"dtype": "<f4"}, negative.tobytes(), np.cumsum(negative, dtype="<f4"))
        for dtype, astype, offset, scale in [
            ("<f8", "u1", 10, 7), ("<f4", "<i2", -3.25, 0.1), (">f8", ">i4", 1000, 10.5), ("<i4", "<u2", 80, 3), ("<f4", "<f4", 1.7, 3),
            ("<f2", "<f2", 10, 3), ("<f8", "<f8", 1e-3, 1e9), ("<f2", "<i8", 0, 7), ("u1", "u1", 60, 2),
        ]:
            cases.numcodecs(numcodecs.FixedScaleOffset(offset, scale, dtype, astype), volume(dtype, (4, 5, 6)))
        for dtype, astype in [("<f8", "<f4"), ("<f4", "<f2"), (">f8", ">f8"), ("<f4", "<f8")]:
            cases.numcodecs(numcodecs.Quantize(2, dtype, astype), volume(dtype, (4, 5, 6)))
    for dtype, size in [("<u2", 2), ("V3", 3), ("<f4", 4), ("<c16", 16)]:
        cases.numcodecs(numcodecs.Shuffle(size), volume(dtype, (4, 5, 9)))
    cases.numcodecs(numcodecs.Shuffle(2), volume("<u2"))
    for shape in [(2, 4, 5), (3, 3, 3)]:
        cases.numcodecs(numcodecs.PackBits(), volume("?", shape))
        cases.numcodecs(numcodecs.Base64(), volume("u1", shape))
    cases.numcodecs(numcodecs.BitRound(5), volume("<f4", (2, 4, 5)))


def zfp(cases):
    array = volume("<f4", (3, 5, 6))
    for options in [{"mode": 4, "tolerance": 0.01}, {"mode": 2, "rate": 9}, {"mode": 3, "precision": 12}]:
        cases.numcodecs(numcodecs.ZFPY(**options), array)
    cases.add("zfpy", {"mode": 5}, zfpy.compress_numpy(array), array)
    # what only libzfp decodes
    for dtype, shape in [("<f8", (3, 5, 6)), ("<i4", (10, 9)), ("<i8", (90,)), ("<f4", (3, 1, 5, 6)), ("<f4", (9, 10)), ("<f8", (90,))]:
        for options in [{}, {"rate": 9}] + [{"tolerance": 0.01}, {"precision": 12}] * (dtype[1] == "f"):
            stored = zfpy.compress_numpy(volume(dtype, (3, 5, 6)).reshape(shape), **options)
            cases.add("zfpy", options, stored, zfpy.decompress_numpy(stored), needs="libzfp")


def main(out):
    cases = Cases()
    for part in [blosc, compressors, blocks, checksums, filters, zfp]:
        before = len(cases.bytes), len(cases.lines)
        part(cases)
        print(part.__name__, len(cases.bytes) - before[0], len(cases.lines) - before[1])
    cases.write(Path(out) / "codecs")


if __name__ == "__main__":
    main(*sys.argv[1:])
