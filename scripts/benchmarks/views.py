"""Benchmarks the files for other programs: whole volumes against lod0.raw, boxes against the formats' own libraries.

Called as `scripts/bench views [--edge N] [--rounds N] [--rows WORDS]`. Each measurement has a fresh mount, so nothing is
decoded; the source comes from the page cache. Processor time is that of the mount (daemon and its processes), for
boxes also that of the reader.
"""

import argparse
import fnmatch
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

import figures
import processor_time
from mounts import Failed, Volfs, run
from readers import Array, Tools, dd
from volumes import VOLUMES, prepare

HERE = Path(__file__).parent
NAMES = ("zgy-plain", "zgy-zfp", "vds-none-64", "vds-wavelet-64", "wkw-raw-uint8", "wkw-lz4-uint8", "wkw-lz4-uint16")
NATIVE = {"openzgy": "OpenZGY", "openvds": "openvds", "wkw": "wkw"}
# edges of boxes, and how many a round reads
BOXES = {64: 24, 128: 12}
# the samples of LOD 0 as a Zarr array, from the folder of a layer on
IMAGE = "../{}.ome.zarr/0"


def read_folder(folder):
    """Reads every file in a folder and below, in order of names; returns seconds and bytes."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".json")
    size, begin = 0, time.perf_counter()
    buffer = bytearray(1 << 20)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while got := file.readinto(buffer):
                size += got
    return time.perf_counter() - begin, size


def files(layer):
    """Returns the views of LOD 0 of a layer that this dataset has: name and path."""
    array = Array.of(layer)
    named = [("lod0.raw", layer / "lod0.raw"), ("lod0.npy", layer / "lod0.npy")]
    named += [(f"lod0.by-{axis}.npy", layer / f"lod0.by-{axis}.npy") for axis in array.axes[1:]]
    named += [(name, layer / name) for name in ("lod0.float32.npy", "lod0.sgy", "tiff/lod0.tif")]
    named.append(("lod0.slices, across the first axis", layer / "lod0.slices" / array.axes[0]))
    named.append(("chunks of LAYER.ome.zarr", layer.with_name(layer.name + ".ome.zarr") / "lod0"))
    return [(name, path) for name, path in named if path.exists()]


def read(path):
    """Reads a file with dd, or the files of a folder; returns seconds and bytes."""
    if path.is_dir():
        return read_folder(path)
    size = path.stat().st_size
    return dd(path, size), size


def middle(values, factor=1, digits=3):
    """Formats the median with minimum and maximum."""
    low, mid, high = (f"{value * factor:.{digits}g}" for value in (min(values), statistics.median(values), max(values)))
    return f"{mid} ({low}..{high})"


class Bench:
    """All measurements, in rounds."""

    def __init__(self, tools, clients):
        self.tools, self.clients = tools, clients
        self.figures = {"whole": [], "boxes": []}

    def mounted(self, volume, measure):
        """Calls `measure(layer)` on a fresh mount; returns its result and the processor time of the mount."""
        source = volume.path(self.tools.data)
        prepare(source, volume.size(self.tools))
        with Volfs(self.tools, source) as mount:
            layer, pid = mount.layer(source.name), mount.status()["pid"]
            before = processor_time.of_mount(pid)
            found = measure(layer)
            return found, processor_time.of_mount(pid) - before

    def whole(self, volume):
        """Yields a row of the table for each view of a volume."""
        names, _ = self.mounted(volume, lambda layer: [name for name, _ in files(layer)])
        found = {name: [] for name in names}
        for _ in range(self.tools.rounds):
            for name in names:
                (seconds, size), processor = self.mounted(volume, lambda layer: read(dict(files(layer))[name]))
                found[name].append((seconds, processor, size))
        samples = volume.size(self.tools)
        of_raw = statistics.median(seconds for seconds, _, _ in found["lod0.raw"])
        for name, runs in found.items():
            seconds, processor = [run[0] for run in runs], statistics.median(run[1] for run in runs)
            self.figures["whole"].append({"volume": volume.title, "file": name, "bytes": runs[0][2], "samples": samples, "seconds": seconds,
                                          "processor": [run[1] for run in runs]})
            yield (volume.title, name, f"{runs[0][2] / 1e6:.0f}", middle(seconds), f"{samples / statistics.median(seconds) / 1e9:.2f}",
                   f"{statistics.median(seconds) / of_raw:.2f}", f"{processor / samples * 2**30:.2f}")

    def readers(self, volume, copy):
        """Returns the clients that read boxes of a volume: name, Python, client, path (relative: to a layer)."""
        source = volume.path(self.tools.data)
        return ((NATIVE[volume.peer], sys.executable, volume.peer, source),
                ("zarr-python", self.clients, "zarr-python", Path(IMAGE)),
                ("zarr-python, chunks copied to memory", self.clients, "zarr-python", copy),
                ("tensorstore", self.clients, "tensorstore", Path(IMAGE)),
                ("tensorstore, chunks copied to memory", self.clients, "tensorstore", copy),
                ("np.load of lod0.npy, mapped", self.clients, "mapped", Path("lod0.npy")))

    def boxes(self, volume):
        """Yields a row of the table for each client and size of box. What the Zarr clients themselves cost is seen where
        they read copies of the chunks, without volfs."""
        with tempfile.TemporaryDirectory(prefix="volfs-bench.", dir="/dev/shm") as memory:
            copy = Path(memory) / "image"
            self.mounted(volume, lambda layer: shutil.copytree(str(layer / IMAGE).format(layer.name), copy))
            yield from self.boxes_with(volume, copy)

    def boxes_with(self, volume, copy):
        """Yields the rows of `boxes`, with a copy of the chunks."""
        for edge, count in BOXES.items():
            found, same = {}, set()
            for number in range(self.tools.rounds):
                for name, python, client, path in self.readers(volume, copy):
                    command = [python, HERE / "box_reader.py", client]
                    rest = [edge, count, *["--crc"] * (number == 0)]
                    if path.is_absolute():
                        prepare(path)
                        done, processor = run(*command, path, *rest)[0], 0
                    else:
                        def measure(layer):
                            return run(*command, os.path.normpath(str(layer / path).format(layer.name)), *rest)[0]

                        done, processor = self.mounted(volume, measure)
                    done = json.loads(done.splitlines()[-1])
                    same |= {done["crc32"]} if number == 0 else set()
                    found.setdefault(name, []).append((done["seconds"], done["processor"] + processor))
            by_library = statistics.median(s for seconds, _ in next(iter(found.values())) for s in seconds)
            for name, runs in found.items():
                seconds = [s for some, _ in runs for s in some]
                processor = statistics.median(p for _, p in runs) / count
                self.figures["boxes"].append({"volume": volume.title, "edge": edge, "reader": name, "seconds": seconds,
                                              "processor": [p / count for _, p in runs], "same": len(same) == 1})
                yield (volume.title, f"{edge}^3", name, middle(seconds, 1e3), f"{by_library / statistics.median(seconds):.2f}",
                       f"{processor * 1e3:.3g}", "yes" if len(same) == 1 else "**no**")


def table(head, rows):
    """Formats a Markdown table; leaves out repeated titles."""
    lines, before = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)], None
    for title, *cells in rows:
        lines.append("| " + " | ".join(["" if title == before else title, *cells]) + " |")
        before = title
    return "\n".join(lines)


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench views", description=__doc__.split("\n")[0])
    parser.add_argument("--edge", type=int, default=512, help="samples along each axis (512)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds per measurement (5)")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=["*"],
                        help="only these, separated by commas: whole:VOLUME and boxes:VOLUME, with * and ?")
    parser.add_argument("--json", type=Path, help="also write every single figure to this file")
    for name in ("data", "programs", "clients"):
        parser.add_argument(f"--{name}", type=Path, required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    """Measures, and prints two tables. Exit status: 0 done, 1 a measurement failed."""
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    before, begin, failed = os.getloadavg()[0], time.strftime("%Y-%m-%d %H:%M"), False
    rows = {"whole": [], "boxes": []}
    with tempfile.TemporaryDirectory(prefix="volfs-bench.", ignore_cleanup_errors=True) as spare:
        tools = Tools(args.programs.resolve() / "volfs", None, None, Path(spare), args.data.resolve() / str(args.edge), args.edge,
                      args.rounds, 0, 0)
        bench = Bench(tools, args.clients)
        for kind, measure in (("whole", bench.whole), ("boxes", bench.boxes)):
            for volume in VOLUMES:
                wanted = any(fnmatch.fnmatch(f"{kind}:{volume.name}", pattern) for pattern in args.rows)
                if volume.name not in NAMES or not wanted:
                    continue
                try:
                    problem = volume.make(tools.data, args.edge)
                    if problem:
                        raise Failed(f"{volume.name} cannot be written: {problem}")
                    rows[kind] += measure(volume)
                    print(f"{kind}:{volume.name}: done", file=sys.stderr)
                except (Failed, OSError, ValueError, KeyError) as error:
                    print(f"{kind}:{volume.name}: failed: {error}", file=sys.stderr)
                    failed = True
    if args.json:
        figures.write(args.json, tools.volfs, begin, {"edge": args.edge, "rounds": args.rounds}, **bench.figures)
    print(f"{begin}; {os.cpu_count()} threads; volumes of {args.edge}^3, {args.rounds} rounds, medians (least..greatest); "
          f"load before {before:.2f}, after {os.getloadavg()[0]:.2f}.\n")
    if rows["whole"]:
        head = ("volume", "file", "MB", "s", "GB/s of samples", "times lod0.raw", "processor s/GiB of samples")
        print(table(head, rows["whole"]), end="\n\n")
    if rows["boxes"]:
        print(table(("volume", "box", "reader", "ms a box", "times the library", "processor ms a box", "same samples"), rows["boxes"]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
