"""Reads a mag of a WKW layer, stored in one file, with wkw; protocol in peer.py."""

from pathlib import Path

import numpy as np
import wkw
from wkw import wkw as inner

import peer


def opened(path):
    """Uses the library's C function, which fills the caller's array; the Python wrapper would allocate one per call."""
    (mag,) = Path(path).glob("*/*/header.wkw")
    dataset = wkw.Dataset.open(str(mag.parent))
    edge = dataset.header.block_len * dataset.header.file_len

    def read(start, array):
        # (z, y, x) in C order equals the library's (x, y, z) in Fortran order
        low = start[::-1]
        box = np.array([*low, *(a + n for a, n in zip(low, array.shape[::-1]))], dtype=np.uint32)
        inner._check_wkw(inner.libwkw.dataset_read(dataset.handle, inner.ffi.cast("uint32_t *", box.ctypes.data),
                                                   inner.ffi.cast("void *", array.ctypes.data)))

    return (edge,) * 3, np.dtype(dataset.header.voxel_type), read


if __name__ == "__main__":
    peer.run(opened, __doc__)
