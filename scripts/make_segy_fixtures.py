#!/usr/bin/env python3
"""Writes the VDS datasets of tests/data/segy, which are SEG-Y files as SEGYImport of OpenVDS imports them.

    make_segy_fixtures.py OUT

Writes OUT/segy/NAME.vds and OUT/segy/expected.json: for each dataset the name, and bytes and CRC-32 of the SEG-Y
file. Needs `pip install numpy openvds`, which brings SEGYImport. The SEG-Y
files are reproducible, the bytes of the datasets are not: they have the time of the import, and random hashes.
"""

import json
import struct
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SAMPLES, INLINES, CROSSLINES = 25, 6, 7
CODES = {"ibm": 1, "int16": 3}


@dataclass
class File:
    """A SEG-Y file and how it is imported."""

    name: str
    sample: str = "ibm"
    little: bool = False
    offsets: int = 1
    holes: bool = False
    by_crossline: bool = False  # else by inline
    descending: bool = False  # the lines that it is sorted by
    options: tuple = ()


FILES = [
    File("gathers", "ibm", offsets=3, holes=True, options=("--compression-method", "Zip", "--prestack")),
    File("turned", "int16", little=True, by_crossline=True, descending=True,
         options=("--compression-method", "WaveletLossless", "-l", "-p", "CrosslineNumber", "-s", "InlineNumber")),
]


def ibm(values):
    """Return the bytes of values as normalised floating point of IBM, cut off."""
    out = []
    for value in values:
        sign, value, exponent = (0x80 if value < 0 else 0), abs(float(value)), 64
        while value >= 1:
            value, exponent = value / 16, exponent + 1
        while 0 < value < 1 / 16:
            value, exponent = value * 16, exponent - 1
        out.append(struct.pack(">I", (sign | exponent) << 24 | int(value * (1 << 24)) if value else 0))
    return b"".join(out)


def samples(file, inline, crossline, offset):
    """Return the bytes of the samples of a trace."""
    order = "<" if file.little else ">"
    at = np.arange(SAMPLES)
    values = np.sin(at * 0.4 + inline * 0.7 + crossline * 0.3 + offset) * 1000 / (1 + at)
    if file.sample == "ibm":
        return ibm(values)
    return np.rint(values).astype(order + "i2").tobytes()


def traces(file):
    """Return the inline, crossline and offset of each trace, counted from 0, in the order of the file."""
    found = [(i, x, o) for i in range(INLINES) for x in range(CROSSLINES)
             if not file.holes or (i * 5 + x * 3) % 11 for o in range(file.offsets)]
    direction = -1 if file.descending else 1
    key = (lambda t: (direction * t[1], t[0])) if file.by_crossline else (lambda t: (direction * t[0], t[1]))
    return sorted(found, key=key)


def header(file, number, inline, crossline, offset):
    """Return the header of a trace."""
    order = "<" if file.little else ">"
    out = bytearray(240)
    put = lambda byte, form, *values: struct.pack_into(order + form, out, byte - 1, *values)
    il, xl = 1001 + inline, 300 + crossline
    x, y = 431964.75 + 12.25 * inline + 3 * crossline, 6348565.25 + 3 * inline - 12.25 * crossline
    put(1, "ii", number, number)
    put(9, "i", il)
    put(21, "i", xl)
    put(29, "h", 1)
    put(37, "i", 100 + 50 * offset)
    put(69, "hh", 1, -100)
    put(73, "iiii", *[int(x * 100), int(y * 100)] * 2)
    put(115, "HH", SAMPLES, 4000)
    put(181, "ii", int(x * 100), int(y * 100))
    put(189, "ii", il, xl)
    # what no standard field is
    out[232:240] = bytes((number * 7 + at) % 256 for at in range(8))
    return bytes(out)


def segy(file):
    """Return the bytes of the file."""
    order = "<" if file.little else ">"
    text = "".join(f"C{line + 1:2} {file.name} for the tests of volfs".ljust(80) for line in range(40)).encode("cp500")
    binary = bytearray(400)
    struct.pack_into(order + "hhHHHHhhh", binary, 12, CROSSLINES, 0, 4000, 4000, SAMPLES, SAMPLES, CODES[file.sample], 1,
                     4 if file.offsets == 1 else 2)
    struct.pack_into(order + "h", binary, 54, 1)
    out = [text, bytes(binary)]
    for number, trace in enumerate(traces(file), 1):
        out += [header(file, number, *trace), samples(file, *trace)]
    return b"".join(out)


def main(out):
    tool = Path(sys.executable).parent / "SEGYImport"
    folder = Path(out) / "segy"
    folder.mkdir(parents=True, exist_ok=True)
    expected = []
    with tempfile.TemporaryDirectory() as temporary:
        for file in FILES:
            original, dataset = Path(temporary) / f"{file.name}.sgy", folder / f"{file.name}.vds"
            original.write_bytes(segy(file))
            dataset.unlink(missing_ok=True)
            command = [tool, "-b", "32", "--lod-levels", "0", *file.options, "--url", dataset, original]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            content = original.read_bytes()
            expected.append({"name": f"{file.name}.vds", "bytes": len(content), "crc32": f"{zlib.crc32(content):08x}"})
            print(f"{file.name}: {original.stat().st_size} bytes of SEG-Y, {dataset.stat().st_size} of VDS")
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
