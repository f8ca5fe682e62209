#!/usr/bin/env python3
"""Counts what reading a volume costs: requests and bytes of an object store, and dollars.

    scripts/scale/requests.py URL LAYER [--volfs PROGRAM] [--mount-option OPTION]... [--per-thousand 0.0004] [--per-gb 0]

URL is what `volfs mount` takes, with credentials in the environment; LAYER is the path of a layer in the mount, such as
`north.zgy/data`. For each row the URL is mounted anew, without a disk cache. The figures are the counters of the mount
(`store` in .volfs/status.json), and so the same wherever the store is. Prices are in dollars: of 1,000 requests, and of a
gigabyte that leaves the provider's network. Prints a Markdown table. Only the standard library is needed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

PIECE = 1 << 20


class Volume:
    """The finest level of a layer in a mount."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "lod0.json"), encoding="utf-8") as file:
            self.about = json.load(file)
        self.shape, self.names = self.about["shape"], [axis["name"] for axis in self.about["axes"]]

    def read(self, name, offset, length):
        """Reads a range of a file."""
        with open(os.path.join(self.folder, name), "rb", buffering=0) as file:
            while length:
                got = len(os.pread(file.fileno(), min(PIECE, length), offset))
                if not got:
                    raise EOFError(name)
                offset, length = offset + got, length - got

    def slice(self, axis):
        """Reads the slice in the middle of an axis, from the file in which it is one range."""
        plane = self.about["size"] // self.shape[axis]
        name = "lod0.npy" if axis == 0 else f"lod0.by-{self.names[axis]}.npy"
        header = os.path.getsize(os.path.join(self.folder, name)) - self.about["size"]
        self.read(name, header + plane * (self.shape[axis] // 2), plane)

    def box(self, edge):
        """Reads a box in the middle, row by row."""
        low = [(count - min(edge, count)) // 2 for count in self.shape]
        high = [first + min(edge, count) for first, count in zip(low, self.shape)]
        stride = self.about["strides"]
        for i in range(low[0], high[0]):
            for j in range(low[1], high[1]):
                self.read("lod0.raw", i * stride[0] + j * stride[1] + low[2] * stride[2], (high[2] - low[2]) * stride[2])

    def whole(self):
        """Reads all of it."""
        self.read("lod0.raw", 0, self.about["size"])

    def preview(self):
        """Reads the picture of three slices."""
        path = os.path.join(self.folder, "preview.png")
        self.read("preview.png", 0, os.path.getsize(path))


def walk(folder):
    """Looks at all files, as `ls -lR` does."""
    for below, _, names in os.walk(folder):
        for name in names:
            os.lstat(os.path.join(below, name))


def counted(options, action):
    """Does something with a mount of its own; returns requests and bytes."""
    with tempfile.TemporaryDirectory(prefix="volfs-requests-") as point:
        more = [word for option in options.mount_option for word in ("-o", option)]
        subprocess.run([options.volfs, "mount", *more, options.url, point], check=True, stdout=subprocess.DEVNULL)
        try:
            action(point)
            with open(os.path.join(point, ".volfs", "status.json"), encoding="utf-8") as file:
                store = json.load(file)["store"]
        finally:
            subprocess.run([options.volfs, "umount", "--lazy", point], check=True, stdout=subprocess.DEVNULL)
        if not store:
            sys.exit(f"{options.url} is not in an object store")
        return store["requests"], store["bytes"]


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url")
    parser.add_argument("layer")
    parser.add_argument("--volfs", default="volfs")
    parser.add_argument("--mount-option", action="append", default=[], help="as `quality=2`, may be repeated")
    parser.add_argument("--per-thousand", type=float, default=0.0004, help="dollars")
    parser.add_argument("--per-gb", type=float, default=0.0, help="dollars")
    options = parser.parse_args()
    about = []

    def of_volume(action):
        def on(point):
            volume = Volume(os.path.join(point, options.layer))
            about[:] = [volume]
            action(volume)
        return on

    rows = [("mount", lambda point: None), ("`ls -lR` of the mount", walk), ("open the layer", of_volume(lambda volume: None))]
    counted(options, of_volume(lambda volume: None))
    [volume] = about
    rows += [(f"a slice across {name}", of_volume(lambda volume, axis=axis: volume.slice(axis)))
             for axis, name in enumerate(volume.names)]
    rows += [("a box of 64^3", of_volume(lambda volume: volume.box(64))), ("`preview.png`", of_volume(Volume.preview)),
             ("the volume", of_volume(Volume.whole))]
    bricks = (volume.about["bricks"] or {}).get("stored") or "?"
    print(f"{options.layer}: {'x'.join(map(str, volume.shape))}, {volume.about['dtype']}, {volume.about['codec']}, "
          f"{bricks} stored bricks of {'x'.join(map(str, volume.about['brick_shape']))}\n")
    print("| what is read | requests | MB | dollars for 1,000 of them |\n|---|---|---|---|")
    for name, action in rows:
        requests, size = counted(options, action)
        dollars = 1000 * (requests / 1000 * options.per_thousand + size / 1e9 * options.per_gb)
        print(f"| {name} | {requests:,} | {size / 1e6:,.1f} | {dollars:,.2f} |", flush=True)


if __name__ == "__main__":
    main()
