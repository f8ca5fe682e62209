"""Reads a range of a file into an array allocated and touched beforehand, 1 MiB per call; prints the time as JSON.

    client.py FILE OFFSET SIZE [--direct] [--crc]

The clock starts when the file is open. This does through the mount what peer.py does through a library.
"""

import argparse
import json
import os
import sys
import time
import zlib

import peer

PIECE = 1 << 20
PAGE = 4096


def main():
    """Opens and reads the file, and prints the time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path")
    parser.add_argument("offset", type=int)
    parser.add_argument("size", type=int)
    parser.add_argument("--direct", action="store_true", help="bypass the kernel's page cache (O_DIRECT)")
    parser.add_argument("--crc", action="store_true", help="also print the CRC-32 of the bytes read")
    args = parser.parse_args()
    memory = peer.touched(args.size + PAGE, "uint8")
    array = memory[-memory.ctypes.data % PAGE:][:args.size]
    view = memoryview(array)
    file = os.open(args.path, os.O_RDONLY | (os.O_DIRECT if args.direct else 0))
    at = 0
    begin, processor = time.perf_counter(), time.process_time()
    while at < args.size:
        got = os.preadv(file, [view[at:at + PIECE]], args.offset + at)
        if got == 0:
            raise EOFError(f"{args.path} ends after {args.offset + at} bytes")
        at += got
    found = {"seconds": time.perf_counter() - begin, "processor": time.process_time() - processor, "bytes": at}
    if args.crc:
        found["crc32"] = zlib.crc32(array)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
