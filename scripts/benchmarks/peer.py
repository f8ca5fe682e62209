"""Shared by the drivers of the reference libraries.

Each is called as `peer_X.py FILE all|0|1|2 [--crc]`. It reads the whole volume, or the middle slice across an axis
(slowest axis first), once, through a new handle, into an array that is already allocated and touched, and prints the
time as JSON; after a slice also that of another one through the same handle, a while later.
"""

import argparse
import json
import sys
import time
import zlib

import numpy as np


# Seconds between two slices, as of somebody who looks at them.
PAUSE = 0.2


def touched(shape, dtype):
    """Returns an array of zeros whose pages are all resident."""
    array = np.empty(shape, dtype)
    array.fill(0)
    return array


def box_of(shape, what, part=2):
    """Returns start and size of the box to read: all, or the slice after one of `part` equal parts."""
    start, size = [0] * len(shape), list(shape)
    if what != "all":
        axis = int(what)
        start[axis], size[axis] = shape[axis] // part, 1
    return start, size


def timed(read, start, array):
    """Reads, and returns how long it took."""
    begin, processor = time.perf_counter(), time.process_time()
    read(start, array)
    return {"seconds": time.perf_counter() - begin, "processor": time.process_time() - processor}


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
    found = {**timed(read, start, array), "bytes": array.nbytes}
    if args.crc:
        found["crc32"] = zlib.crc32(array)
    if args.what != "all":
        time.sleep(PAUSE)
        start, _ = box_of(shape, args.what, 4)
        found["further"] = timed(read, start, array)
    json.dump(found, sys.stdout)
