"""A small picture of an array for notebooks."""

from __future__ import annotations

import base64
import html
import math
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import VolfsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._array import Array

_PIXELS_MAX = 256
_READ_MAX = 32 << 20
"""The most that is decoded for a picture, in bytes."""


def table(array: Array, rows: list[tuple[str, str]]) -> str:
    """Return an HTML table of names and texts, with a picture of the middle of an array beside it."""
    lines = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
    picture = _picture(array)
    encoded = base64.b64encode(picture or b"").decode()
    image = f'<td><img style="height: 12em" src="data:image/png;base64,{encoded}"></td>' if picture else ""
    return f"<table><tr><td><table>{lines}</table></td>{image}</tr></table>"


def _picture(array: Array) -> bytes | None:
    """Return the middle plane across the first axis as a PNG; None if it is too large, or cannot be read."""
    if array.ndim < 2 or not array.size:
        return None
    # the two axes that are shown; of the others one position
    first = min(array.ndim - 2, 1)
    last, axes = first + 2, array.shape[first : first + 2]
    key: tuple[Any, ...] = (*(count // 2 for count in array.shape[:first]), *map(_thinned, axes))
    key += (0,) * (array.ndim - last)
    decoded = array.dtype.itemsize * math.prod(array.chunks)
    decoded *= math.prod(math.ceil(count / brick) for count, brick in zip(axes, array.chunks[first:last], strict=True))
    if decoded > _READ_MAX:
        return None
    try:
        plane = array.read(key, scaled=True)
        plane = (np.abs(plane) if plane.dtype.kind == "c" else plane).astype(np.float64)
    except VolfsError:
        return None
    # samples of a trace go down
    return _png(_grey(plane.T if array.axis_names[-1].lower() in ("sample", "time", "depth") else plane))


def _thinned(count: int) -> slice:
    return slice(None, None, math.ceil(count / _PIXELS_MAX) or 1)


def _grey(plane: NDArray[np.float64]) -> NDArray[np.uint8]:
    finite = plane[np.isfinite(plane)]
    low, high = np.percentile(finite, (1, 99)) if finite.size else (0.0, 0.0)
    shades = (plane - low) / ((high - low) or 1) * 255
    grey: NDArray[np.uint8] = np.nan_to_num(shades, nan=0).clip(0, 255).astype(np.uint8)
    return grey


def _png(pixels: NDArray[np.uint8]) -> bytes:
    rows, columns = pixels.shape
    lines = np.zeros((rows, columns + 1), np.uint8)
    lines[:, 1:] = pixels

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">2I5B", columns, rows, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, content) for kind, content in chunks)
