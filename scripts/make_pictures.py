#!/usr/bin/env python3
"""Makes docs/pictures from a mount of the bundled volumes: an inline of the survey, and a plane of the cells.

    volfs mount tests/data/demo ~/volumes
    python3 scripts/make_pictures.py ~/volumes docs/pictures

Needs NumPy alone. Everything is read through the mount, as any program would.
"""

import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np

WHITE, RED, BLUE = np.array([[247.0, 247, 247], [178, 24, 43], [33, 102, 172]])


def write_png(path, rgb):
    """Writes an array of uint8 (row, column, 3) as a PNG file."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = rgb.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in rgb)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def enlarged(image, factor):
    """The image with `factor` times the rows and columns, interpolated linearly between the centres of its pixels."""
    for axis in (0, 1):
        count = image.shape[axis]
        at = np.clip((np.arange(count * factor) + 0.5) / factor - 0.5, 0, count - 1)
        below = np.floor(at).astype(int)
        weight = (at - below).reshape([-1, 1] if axis == 0 else [1, -1])
        above = np.minimum(below + 1, count - 1)
        image = image.take(below, axis) * (1 - weight) + image.take(above, axis) * weight
    return image


def repeated(image, factor):
    """The image with each pixel repeated: for labels, which must not be mixed."""
    return image.repeat(factor, 0).repeat(factor, 1)


def seismic_colors(amplitudes, limit):
    """Negative amplitudes blue, positive ones red."""
    t = np.clip(amplitudes / limit, -1, 1)[..., None]
    return np.where(t < 0, WHITE + (BLUE - WHITE) * -t, WHITE + (RED - WHITE) * t)


def survey_picture(layer, factor):
    """Inline 20, samples downwards."""
    inline = np.load(layer / "lod0.npy", mmap_mode="r")[20].astype(float).T
    return seismic_colors(enlarged(inline, factor), np.percentile(np.abs(inline), 99))


def cells_picture(dataset, factor):
    """Plane 48 of the cells under the colours of their segmentation, one for each id."""
    plane = np.load(dataset / "color/lod0.npy", mmap_mode="r")[48].astype(float)
    ids = np.load(dataset / "segmentation/lod0.npy", mmap_mode="r")[48]
    number = repeated(np.unique(ids, return_inverse=True)[1].reshape(ids.shape), factor)
    gray = enlarged(plane, factor)[..., None].repeat(3, axis=2) * (255 / plane.max())
    # steps of the golden ratio around the colour circle: neighbouring numbers get colours far apart
    hue = (number * 0.618034 % 1)[..., None] * 2 * np.pi + np.array([0, 2, 4]) * np.pi / 3
    labelled = 0.55 * gray + 0.45 * (140 + 110 * np.cos(hue))
    return np.where((number > 0)[..., None], labelled, gray)


def main():
    mount, folder = Path(sys.argv[1]), Path(sys.argv[2])
    about = json.loads((mount / "north.zgy/data/lod0.json").read_text())
    factor = 3
    height = about["shape"][2] * factor
    survey = survey_picture(mount / "north.zgy/data", factor)
    cells = cells_picture(mount / "cells", height // 96)
    gap = np.full((height, 4 * factor, 3), 255.0)
    whole = np.concatenate([survey, gap, cells], axis=1)
    folder.mkdir(parents=True, exist_ok=True)
    write_png(folder / "survey-and-cells.png", whole.clip(0, 255).astype(np.uint8))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
