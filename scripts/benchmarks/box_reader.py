"""Reads boxes at random positions of a volume, one after the other, with one client; prints the time of each as JSON.

    box_reader.py CLIENT PATH EDGE COUNT [--crc]

With EDGE 0 it reads traces: whole lines along the last axis. CLIENT is `openzgy`, `openvds`, `wkw` or `h5py`, and PATH
a file or folder of that format; or it is `volfs` in process, and PATH any of these; or it is `zarr-python` or
`tensorstore`, and PATH an array of LAYER.ome.zarr; or it is `mapped` or `rows`, and PATH a .npy file, which is mapped,
or of which each row of a box is read by a call of its own. The positions depend on the shape, EDGE and COUNT alone, so
that all clients read the same boxes. Opening is not counted.
"""

import argparse
import importlib
import json
import os
import sys
import time
import zlib

import numpy as np

import peer


def native(name, path):
    """Reads with the format's own library."""
    shape, dtype, read = importlib.import_module(f"peer_{name}").opened(path)

    def box(start, edge):
        out = np.empty((edge,) * len(shape) if edge else (1, 1, shape[2]), dtype)
        read(list(start), out)
        return out

    return shape, box


def sliced(array):
    """Reads by slicing an array."""
    return array.shape, lambda start, edge: np.ascontiguousarray(array[tuple(slice(n, n + edge) for n in start)])


def by_zarr_python(path):
    """Reads with zarr-python."""
    import zarr

    return sliced(zarr.open_array(path, mode="r"))


def by_tensorstore(path):
    """Reads with tensorstore, whose own cache stays off."""
    array = importlib.import_module("peer_tensorstore").array_of(path)
    return array.shape, lambda start, edge: array[
        tuple(slice(n, n + (edge or 1)) if edge or axis < 2 else slice(None) for axis, n in enumerate(start))].read().result()


def by_rows(path):
    """Reads each row with a call of pread."""
    mapped = np.load(path, mmap_mode="r")
    shape, dtype, header, file = mapped.shape, mapped.dtype, mapped.offset, os.open(path, os.O_RDONLY)

    def read(start, edge):
        box = np.empty((edge,) * 3, dtype)
        for row in np.ndindex(edge, edge):
            at = np.ravel_multi_index([a + n for a, n in zip(start, (*row, 0))], shape)
            if os.preadv(file, [box[row]], header + int(at) * dtype.itemsize) != box[row].nbytes:
                raise EOFError(path)
        return box

    return shape, read


CLIENTS = {name: (lambda path, name=name: native(name, path)) for name in ("openzgy", "openvds", "wkw", "h5py", "volfs", "zarr")}
CLIENTS |= {"zarr-python": by_zarr_python, "tensorstore": by_tensorstore,
            "mapped": lambda path: sliced(np.load(path, mmap_mode="r")), "rows": by_rows}


def positions(shape, edge, count):
    """Returns where boxes begin, the same for every client."""
    random = np.random.default_rng(edge)
    if edge == 0:
        return [(*map(int, random.integers(0, shape[:2])), 0) for _ in range(count)]
    return [tuple(int(n) for n in random.integers(0, np.array(shape) - edge + 1)) for _ in range(count)]


def main():
    """Reads the boxes, and prints seconds and processor time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("client", choices=CLIENTS)
    parser.add_argument("path")
    parser.add_argument("edge", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--crc", action="store_true", help="also print the CRC-32 of all samples")
    args = parser.parse_args()
    shape, read = CLIENTS[args.client](args.path)
    boxes = positions(shape, args.edge, args.count)
    # the first touch of memory is not what is measured
    peer.touched(4 * args.edge**3, "uint8")
    seconds, crc, processor = [], 0, time.process_time()
    for start in boxes:
        begin = time.perf_counter()
        box = read(start, args.edge)
        seconds.append(time.perf_counter() - begin)
        if args.crc:
            crc = zlib.crc32(box, crc)
    found = {"seconds": seconds, "processor": time.process_time() - processor}
    json.dump(found | ({"crc32": crc} if args.crc else {}), sys.stdout)


if __name__ == "__main__":
    main()
