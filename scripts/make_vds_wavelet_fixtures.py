#!/usr/bin/env python3
"""Writes the wavelet chunks of tests/data/wavelet, with the samples that a decoder must give.

    make_vds_wavelet_fixtures.py OUT [CORPUS]

Needs `pip install numpy openvds`; openvds is the reference library, which writes each chunk (in a VDS of its own) and
reads back the expected samples. The output is reproducible to the byte.

expected.json has one record for each chunk: its parameters; its adaptive table; the CRC-32 of its samples (X fastest,
little-endian) at the best quality under "best", and at the adaptive levels under "levels". Chunks named "old" are new
chunks with the version word of an old version: where the versions agree, they decode to the same samples, and where
they differ, to those of the reference library. CORPUS gets the small chunks in the form that the fuzz target
vds_wavelet takes.
"""

import json
import struct
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np
import openvds as ov

LAYOUT, CHANNEL = ov.VolumeDataLayoutDescriptor, ov.VolumeDataChannelDescriptor
GROUPS = {2: ov.DimensionsND.Dimensions_01, 3: ov.DimensionsND.Dimensions_012}
FORMATS = {"F32": "R32", "U8": "U8", "U16": "U16"}
TYPES = {"F32": "<f4", "U8": "u1", "U16": "<u2"}
LEVELS = (0, 1, 2, 5)
NO_VALUE = -999.25


# ------------------------------------------------------------------ samples

def smooth(size):
    """Returns real values within -1..1 with structure and a little noise, (z, y, x); exact operations make them
    reproducible."""
    x, y, z = size
    k, j, i = (a.astype(np.int64) for a in np.ogrid[:z, :y, :x])
    wave = lambda p, n: np.abs((p % (2 * n)) - n) * 2 - n  # a triangle of height n
    noise = ((i * 73856093 ^ j * 19349663 ^ k * 83492791) * 2654435761 >> 7) % 64
    v = wave(3 * i + j, 24) * 20 + wave(i + 2 * j + 5 * k, 40) * 8 + noise
    return (v.astype(np.float32) / np.float32(1024)).astype(np.float32)


def muted(size):
    """Adds zeros at the start of each row, of varying length."""
    v = smooth(size)
    _, y, x = v.shape
    for k in range(v.shape[0]):
        for j in range(y):
            v[k, j, : (j * 7 + k * 11) * x // 64 % x] = 0
    return v


def holed(size):
    """Adds NoValue in a corner and at scattered positions."""
    v = smooth(size)
    v[: size[2] // 3, :, : size[0] // 2] = NO_VALUE
    v[..., 5::7] = NO_VALUE
    return v


def odd_floats(size):
    """Adds floats that are hard to preserve: -0.0, subnormal and large ones."""
    v = smooth(size)
    flat = v.reshape(-1)
    flat[3::97] = -0.0
    flat[11::101] = 1e-40
    flat[17::103] = 3e4
    return v


def not_numbers(size):
    """Adds infinities, and NaNs with payloads."""
    v = smooth(size)
    flat = v.reshape(-1)
    bits = flat.view("<u4")
    bits[5::97] = 0xFFC12345
    bits[9::89] = 0x7F800001
    flat[7::101] = -np.inf
    flat[8::101] = np.nan
    flat[3::55] = 3e38
    return v


def spiked(size):
    """Adds a spike: samples over many powers of two need many levels, most of which are empty."""
    v = smooth(size)
    v.reshape(-1)[100] = 1e18
    return v


# ------------------------------------------------------------------ chunks

def write(path, v, sample, method, tolerance, no_value):
    size = v.shape[::-1]
    dims = 2 if size[2] == 1 else 3
    layout = LAYOUT(LAYOUT.BrickSize.BrickSize_512, 0, 0, 4, LAYOUT.LODLevels.LODLevels_None, LAYOUT.Options.Options_None, 0)
    axes = [ov.VolumeDataAxisDescriptor(n, "XYZ"[d], "", 0.0, float(max(n - 1, 1))) for d, n in enumerate(size[:dims])]
    low, high = -1.3, 1.3
    most = {"F32": None, "U8": 255, "U16": 65535}[sample]
    scale, offset = 1.0, 0.0
    if most:
        most -= no_value
        scale, offset = (high - low) / most, low
        codes = np.clip(np.floor((v - np.float32(low)) / np.float32(scale) + 0.5), 0, most)
        v = np.where(v == np.float32(NO_VALUE), most + 1, codes) if no_value else codes
    stored = np.ascontiguousarray(v.astype(TYPES[sample]))
    channel = [getattr(ov.VolumeDataFormat, "Format_" + FORMATS[sample]), ov.VolumeDataComponents.Components_1, "Amplitude", "", low, high,
               ov.VolumeDataMapping.Direct, 1, CHANNEL.Flags.Default]
    channel += [NO_VALUE, scale, offset] if no_value else [scale, offset]
    error = ov.VDSError()
    vds = ov.create(str(path), "", layout, axes, [CHANNEL(*channel)], ov.MetadataContainer(), getattr(ov.CompressionMethod, method), tolerance, error)
    if error.code:
        raise RuntimeError(error.string)
    access = ov.getAccessManager(vds).createVolumeDataPageAccessor(
        GROUPS[dims], 0, 0, 8, ov.IVolumeDataAccessManager.AccessMode.AccessMode_Create, 1024)
    assert access.getChunkCount() == 1
    page = access.createPage(0)
    np.array(page.getWritableBuffer(), copy=False)[...] = stored[0] if dims == 2 else stored
    page.release()
    access.commit()
    ov.close(vds)
    return stored, float(np.float32(scale)), float(np.float32(offset))


def read(path, size, sample, tolerance=None):
    """Returns the samples that the reference library reads, through its pages."""
    error = ov.VDSError()
    vds = ov.open(str(path), "", error) if tolerance is None else ov.openWithAdaptiveCompressionTolerance(str(path), "", tolerance, error)
    if error.code:
        raise RuntimeError(error.string)
    access = ov.getAccessManager(vds).createVolumeDataPageAccessor(
        GROUPS[2 if size[2] == 1 else 3], 0, 0, 8, ov.IVolumeDataAccessManager.AccessMode.AccessMode_ReadOnly, 1024)
    page = access.readPage(0)
    found = np.array(page.getBuffer(), copy=True)
    page.release()
    ov.close(vds)
    assert found.size == int(np.prod(size)) and found.itemsize == np.dtype(TYPES[sample]).itemsize
    return np.ascontiguousarray(found)


def stored_chunk(path):
    """Returns the file, offset and length of the chunk, its metadata, and the tolerance actually used."""
    data = path.read_bytes()
    table, files, name_bytes = struct.unpack_from("<qii", data, 16)
    for at in range(table, table + files * (32 + name_bytes), 32 + name_bytes):
        head, chunks, _, per_page, kind, cm, fm = struct.unpack_from("<qiii4sii", data, at)
        if kind == b"VDS ":
            (page,) = struct.unpack_from("<q", data, head + 16 + fm)
            offset, length = struct.unpack_from("<qi", data, page)
            (used,) = struct.unpack_from("<f", data, head + 16 + 4)  # the tolerance in the layer's metadata
            return data, offset, length, data[page + 16 : page + 16 + cm], used
    raise RuntimeError("no layer")


CASES = [
    # name, samples, size, type, method, tolerance, NoValue, version
    ("plain", smooth, (32, 32, 32), "F32", "Wavelet", 0.02, False, None),
    ("plain-lossless", smooth, (16, 16, 16), "F32", "WaveletLossless", 0.02, False, None),
    ("odd", smooth, (29, 30, 31), "F32", "Wavelet", 0.02, False, None),
    ("odd-lossless", smooth, (19, 13, 10), "F32", "WaveletLossless", 0.02, False, None),
    ("mixed", smooth, (40, 9, 17), "F32", "Wavelet", 0.01, False, None),
    ("picture", smooth, (40, 37, 1), "F32", "WaveletLossless", 0.02, False, None),
    ("picture-plain", smooth, (64, 32, 1), "F32", "Wavelet", 0.005, False, None),
    ("line", smooth, (1, 1, 100), "F32", "WaveletLossless", 0.02, False, None),
    ("tiny", smooth, (7, 5, 3), "F32", "WaveletLossless", 0.02, False, None),
    ("eight", smooth, (8, 8, 8), "F32", "WaveletLossless", 0.02, False, None),
    ("hard-floats", odd_floats, (17, 12, 9), "F32", "WaveletLossless", 0.02, False, None),
    ("not-numbers", not_numbers, (17, 12, 9), "F32", "WaveletLossless", 0.02, False, None),
    ("not-numbers-normalized", not_numbers, (17, 12, 9), "F32", "WaveletNormalizeBlockLossless", 0.02, False, None),
    ("many-levels", spiked, (16, 16, 8), "F32", "Wavelet", 0.02, False, None),
    ("muted", muted, (40, 12, 9), "F32", "Wavelet", 0.02, False, None),
    ("muted-long", muted, (300, 6, 5), "F32", "WaveletLossless", 0.02, False, None),
    ("no-value", holed, (21, 12, 16), "F32", "WaveletLossless", 0.02, True, None),
    ("no-value-lossy", holed, (40, 16, 9), "F32", "Wavelet", 0.02, True, None),
    ("normalized", smooth, (24, 17, 33), "F32", "WaveletNormalizeBlock", 0.02, False, None),
    ("normalized-lossless", smooth, (17, 16, 9), "F32", "WaveletNormalizeBlockLossless", 0.02, False, None),
    ("u8", smooth, (20, 18, 17), "U8", "Wavelet", 1.0, False, None),
    ("u8-lossless", smooth, (20, 18, 17), "U8", "WaveletLossless", 1.0, False, None),
    ("u8-no-value", holed, (16, 16, 16), "U8", "WaveletLossless", 1.0, True, None),
    ("u8-normalized", smooth, (17, 16, 9), "U8", "WaveletNormalizeBlock", 1.0, False, None),
    ("u16", smooth, (20, 18, 17), "U16", "Wavelet", 1.0, False, None),
    ("u16-lossless", smooth, (16, 16, 16), "U16", "WaveletLossless", 1.0, False, None),
    ("u16-no-value", holed, (20, 18, 17), "U16", "Wavelet", 1.0, True, None),
    ("old-odd", smooth, (29, 30, 31), "F32", "Wavelet", 0.02, False, 671),
    ("old-u8-lossless", smooth, (20, 18, 17), "U8", "WaveletLossless", 1.0, False, 672),
]


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    expected = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.vds"
        for name, samples, size, sample, method, tolerance, no_value, version in CASES:
            v = samples(size)
            stored, scale, offset = write(path, v, sample, method, tolerance, no_value)
            data, at, length, metadata, used = stored_chunk(path)
            chunk = bytearray(data[at : at + length])
            if version:
                chunk[:4] = struct.pack("<i", version)
                path.write_bytes(data[:at] + chunk + data[at + length :])
            best = read(path, size, sample)
            lossless = "Lossless" in method
            # the library preserves neither NoValue in integers nor all normalised integers
            if lossless and (sample == "F32" or not no_value and "Normalize" not in method):
                assert best.tobytes() == stored.tobytes(), name
            levels = {level: zlib.crc32(read(path, size, sample, used * 2.0**level * 1.001).tobytes()) for level in LEVELS}
            expected[name] = {
                "size": list(size), "sample": sample, "no_value": NO_VALUE if no_value else None, "scale": scale, "offset": offset,
                "normalized": "Normalize" in method, "lossless": lossless, "table": list(metadata[8:24]),
                "best": zlib.crc32(best.tobytes()), "levels": levels,
            }
            (out / f"{name}.chunk").write_bytes(chunk)
            path.unlink()
            if len(sys.argv) > 2 and len(chunk) < 8000:
                # the upper half of the version word holds the parameters that the header lacks
                chunk[2] = lossless | ("Normalize" in method) << 1 | no_value << 2 | ["F32", "U8", "U16"].index(sample) << 3
                corpus = Path(sys.argv[2])
                corpus.mkdir(parents=True, exist_ok=True)
                (corpus / name).write_bytes(chunk)
    lines = (f'  {json.dumps(name)}: {json.dumps(record)}' for name, record in expected.items())
    (out / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
