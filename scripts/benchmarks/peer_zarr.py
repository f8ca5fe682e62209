"""Reads a Zarr array with zarr-python; protocol in peer.py."""

import sys

import zarr

import peer


def opened(path):
    """Slices an array."""
    array = zarr.open_array(path, mode="r")
    is_checked = "--crc" in sys.argv

    def read(start, out):
        samples = array[tuple(slice(at, at + count) for at, count in zip(start, out.shape))]
        if is_checked:
            out[...] = samples

    return array.shape, array.dtype, read


if __name__ == "__main__":
    peer.run(opened, __doc__)
