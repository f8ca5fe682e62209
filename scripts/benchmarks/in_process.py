"""Compares volfs in process with the formats' own libraries, through Python: each side in a fresh process, in turn.

    in_process.py --data FOLDER --module FOLDER [--size 512] [--rounds 5] [--json FILE] [PATTERN...]

For each volume: all of it in one call, the middle slice across each axis, boxes and traces at random positions, one after
the other. Prints the time of the library divided by that of volfs, medians of all rounds, and processor seconds for each
GiB of the whole volume.
"""

import argparse
import fnmatch
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import figures
from volumes import CHUNKED, VOLUMES, load_pages

HERE = Path(__file__).parent
# what is read: the arguments of a driver, or of box_reader.py
BOXES = {"box 64": ("64", "40"), "box 128": ("128", "10"), "300 traces": ("0", "300")}


def once(side, path, what, module):
    """Reads once in a new process; returns seconds and processor seconds."""
    if what in BOXES:
        command = [HERE / "box_reader.py", side, path, *BOXES[what]]
    else:
        command = [HERE / f"peer_{side}.py", path, what]
    # threads of NumPy's OpenBLAS spin for a while after it was imported, on the processors that are measured
    environment = os.environ | {"PYTHONPATH": str(module), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0].name} {side}: {done.stderr.strip().splitlines()[-1]}")
    found = json.loads(done.stdout)
    seconds = found["seconds"]
    return sum(seconds) if isinstance(seconds, list) else seconds, found["processor"]


def compare(volume, path, args):
    """Returns for each kind of read the ratio of the clock, and seconds and processor seconds of both sides."""
    load_pages(path)
    found = {}
    for what in ("all", "0", "1", "2", *BOXES):
        rounds = [[once(side, path, what, args.module) for side in (args.peer or volume.peer, "volfs")] for _ in range(args.rounds)]
        theirs, ours = ([tuple(map(statistics.median, zip(*side)))] for side in zip(*rounds))
        ratio = statistics.median(peer[0] / own[0] for peer, own in rounds)
        found[what] = {"ratio": ratio, "peer": theirs[0], "volfs": ours[0]}
    return found


def cells(volume, peer, found, size):
    """Returns a row of the table."""
    slices = [found[axis]["ratio"] for axis in "012"]
    per_gib = [found["all"][side][1] / size * 2**30 for side in ("volfs", "peer")]
    row = [volume.title, peer, f"{found['all']['ratio']:.2f}", ", ".join(f"{ratio:.2g}" for ratio in slices)]
    row += [f"{found[what]['ratio']:.2f}" for what in BOXES]
    return row + ["{:.2f}, {:.2f}".format(*per_gib)]


def main():
    """Measures the chosen volumes and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--module", type=Path, required=True, help="a folder with the Python module volfs")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", choices=["zarr"], help="read with this in place of the usual library")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("patterns", nargs="*", default=["*"])
    args = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    data, begin, rows = args.data / str(args.size), time.strftime("%F %T"), []
    head = ["volume", "library", "whole", "slices, axis 0, 1, 2", *BOXES, "processor s/GiB: volfs, library"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for volume in (*VOLUMES, *CHUNKED):
        if not any(fnmatch.fnmatch(volume.name, pattern) for pattern in args.patterns):
            continue
        problem = volume.make(data, args.size)
        if problem:
            print(f"{volume.name} cannot be written: {problem}", file=sys.stderr)
            continue
        size = args.size**3 * {"dtype=uint8": 1, "dtype=uint16": 2}.get((*volume.recipe, "")[1], 4)
        found = compare(volume, volume.path(data), args)
        rows.append({"volume": volume.title, "bytes": size} | found)
        print("| " + " | ".join(cells(volume, args.peer or volume.peer, found, size)) + " |", flush=True)
    if args.json:
        about = {"size": args.size, "rounds": args.rounds, "load": os.getloadavg()[0]}
        figures.write(args.json, Path("volfs"), begin, about, in_process=rows)


if __name__ == "__main__":
    main()
