"""Shared by the drivers of the reference libraries.

Each is called as `peer_X.py FILE all|0|1|2 [--crc]`. It reads the whole volume, or the middle slice across an axis
(slowest axis first), once, through a new handle, into an array that is already allocated and touched, and prints the
time as JSON.
"""

import argparse
import json
import sys
import time
import zlib

import numpy as np


def touched(shape, dtype):
    """Returns an array of zeros whose pages are all resident."""
    array = np.empty(shape, dtype)
    array.fill(0)
    return array


def box_of(shape, what):
    """Returns start and size of the box to read."""
    start, size = [0] * len(shape), list(shape)
    if what != "all":
        axis = int(what)
        start[axis], size[axis] = shape[axis] // 2, 1
    return start, size


def run(opened, about):
    """Runs a driver: `opened(path)` returns (shape, dtype, read); `read(start, array)` fills the array in C order, from
    `start` on."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("path")
    parser.add_argument("what", choices=("all", "0", "1", "2"))
    parser.add_argument("--crc", action="store_true", help="also print the CRC-32 of the samples read")
    args = parser.parse_args()
    shape, dtype, read = opened(args.path)
    start, size = box_of(shape, args.what)
    array = touched(size, dtype)
    begin, processor = time.perf_counter(), time.process_time()
    read(start, array)
    found = {"seconds": time.perf_counter() - begin, "processor": time.process_time() - processor, "bytes": array.nbytes}
    if args.crc:
        found["crc32"] = zlib.crc32(array)
    json.dump(found, sys.stdout)
