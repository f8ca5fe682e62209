#!/usr/bin/env python3
"""Refuses volfs every n-th large block of memory, for every n, and checks what users get.

    scripts/stress/memory.py VOLFS [SOURCE...] [--large BYTES] [--most N] [--only COMMAND[,COMMAND]]

The commands are those of failures.py, each on tests/data/demo, or on the datasets of each SOURCE. A command is run once
for every n, and does not get the n-th block of at least BYTES (64 KiB) that its process asks for, however often it
asks: no_memory.c, which is compiled to a temporary folder, comes between it and the C library. What is allowed is what
failures.py allows. Blocks without which the process ends are printed with the lines of the source that ask for them;
those of KNOWN are counted apart. Needs cc, addr2line and, for mounts, root.
"""
import argparse
import collections
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from failures import DEMO, FILES, Mount, Once, Serve, Wrong

HERE = Path(__file__).resolve().parent
# `cat` prints a part of volumes of more bytes.
LONGEST = 64 << 20
# Files of the allocator and of collections.
OF_ALLOCATION = re.compile(r"/rustc/|/allocator-api2|/hashbrown-|/memory/allocator\.rs|/src/main\.rs")
# What ends a process that gets no memory for it, by the functions that ask. All are of a size that no file or request
# decides, and all but the last get the reserve of the allocator, of which the shim knows nothing.
KNOWN = {
    "tables of caches": r"OpenFiles::new|Refreshes|ComputedContents",
    "messages between processes": r"Link::receive",
    "colours of labels, as JSON": r"label_colours|view::zarr|view/zarr",
    "buffers of the FUSE library": r"fuser::session",
}


class Shim:
    """The library that refuses memory."""

    def __init__(self, folder, volfs, large):
        self.volfs, self.large, self.lines = volfs, large, {}
        self.library, self.counts, self.places = (Path(folder) / name for name in ("no_memory.so", "counts", "places"))
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", self.library, HERE / "no_memory.c"], check=True)

    def prefix(self, n):
        self.counts.write_bytes(bytes(4096))
        self.places.write_bytes(b"")
        settings = {"LD_PRELOAD": self.library, "COUNTS": self.counts, "PLACES": self.places, "REFUSED": n, "LARGE": self.large}
        return ["env", *(f"{name}={value}" for name, value in settings.items())]

    def asked(self):
        """Returns the most blocks that a process asked for, how many were refused, and the bytes of the last of them."""
        return struct.unpack("QQQ", self.counts.read_bytes()[:24])

    def callers(self):
        """Returns the functions and lines of the program that asked for what was refused, from the innermost on."""
        name = re.escape(Path(self.volfs).name)
        # the addresses are those after the calls
        found = [hex(int(at, 16) - 1) for at in re.findall(rf"{name}\(\+(0x[0-9a-f]+)\)", self.places.read_text())]
        unknown = sorted({at for at in found if at not in self.lines})
        if unknown:
            command = ["addr2line", "-a", "-f", "-i", "-C", "-e", self.volfs, *unknown]
            output = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
            for at, text in zip(unknown, re.split(r"^0x.*\n", output, flags=re.M)[1:]):
                function, *places = text.splitlines()[:1] + text.splitlines()[1::2]
                places = [re.sub(r"^.*/registry/src/[^/]*/|^.*/(?=src/)", "", place) for place in places if not OF_ALLOCATION.search(place)]
                self.lines[at] = [f"{function} {place}" for place in places]
        return [line for at in found for line in self.lines[at]]


def commands(volfs, source):
    """Returns the commands for a source: of each kind of file of each dataset one is read."""
    listed = json.loads(subprocess.run([volfs, "ls", "--json", source], check=True, stdout=subprocess.PIPE).stdout)
    datasets = {}
    for layer in listed:
        if layer["error"] is None:
            # a source may itself be the dataset
            at = source / layer["path"]
            datasets.setdefault(at if at.exists() else source, layer)
    yield Once(volfs, "ls", ["ls", source], False)
    for path in datasets:
        yield Once(volfs, f"info {path.name}", ["info", path], False)
    for path, layer in datasets.items():
        region = ["--region", f"{layer['shape'][0] // 2}:"] if layer["size"] > LONGEST else []
        yield Once(volfs, f"cat {path.name}", ["cat", path, *region], True)
    yield Once(volfs, "verify", ["verify", source], False)
    files = FILES if source == DEMO else []
    files = sorted({*files, *kinds_of_files(volfs, source)})
    yield Mount(volfs, source, files)
    boxes = [f"{path}?box={what}" for path in files if re.search(r"lod0\.(raw|npy)$", path) for what in ("0", ":,0")]
    forms = [f"{path}?format={form}" for path in files if path.endswith("lod1.raw") for form in ("csv", "npy", "sgy", "tif")]
    opendap = [re.sub("raw$", end, path) for path in files if path.endswith("lod1.raw") for end in ("dods", "dap")]
    yield Serve(volfs, source, sorted([*files, *boxes, *forms, *opendap]))


def kinds_of_files(volfs, source):
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([volfs, "mount", "--foreground", source, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            process.stdout.readline()
            kinds = {}
            for at, folders, names in os.walk(folder):
                folders.sort()
                path = Path(at).relative_to(folder)
                for name in sorted(names):
                    kinds.setdefault((path.parts[:1], re.sub(r"\d+", "N", name)), str(path / name))
            return [path for path in kinds.values() if not path.startswith(".volfs")]
        finally:
            subprocess.run(["umount", folder], stderr=subprocess.DEVNULL)
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("volfs", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("sources", type=lambda path: Path(path).resolve(), nargs="*", default=[DEMO])
    parser.add_argument("--large", type=int, default=64 << 10)
    parser.add_argument("--most", type=int, default=10**9)
    parser.add_argument("--only", type=lambda names: names.split(","))
    arguments = parser.parse_intermixed_args()
    totals, wrong = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="volfs-memory.") as folder:
        shim = Shim(folder, arguments.volfs, arguments.large)
        for source in arguments.sources:
            for command in commands(arguments.volfs, source):
                if arguments.only and command.name.split()[0] not in arguments.only:
                    continue
                outcomes = try_all(shim, command, arguments.most, wrong)
                totals.update(outcomes)
                print(f"{source.name}: {command.name}: " + ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items())), flush=True)
    print(f"\n{sum(totals.values())} blocks refused: " + ", ".join(f"{n} {what}" for what, n in sorted(totals.items())))
    for what, n in wrong.most_common():
        print(f"\n{n} times: {what}")
    sys.exit(1 if wrong else 0)


def try_all(shim, command, most, wrong):
    command.expected()
    command.check(shim.prefix(0))
    asked, outcomes = shim.asked()[0], collections.Counter()
    tried = range(1, asked + 1)
    if asked > most:
        tried = sorted({1 + round(i * (asked - 1) / max(1, most - 1)) for i in range(most)})
    for n in tried:
        what, message = "", ""
        try:
            outcome = command.check(shim.prefix(n))
        except Wrong as error:
            what, outcome = str(error), "WRONG"
        refused, bytes_ = shim.asked()[1:]
        if what:
            callers = shim.callers()
            reason = next((reason for reason, asks in KNOWN.items() if re.search(asks, "\n".join(callers))), None)
            if reason and "memory allocation of" in what:
                outcome = f"without {reason}"
            else:
                ours = callers[:6]
                message = re.sub(r"\d+", "N", what)[:200] + "\n    " + "\n    ".join(ours)
                wrong[message] += 1
                print(f"WRONG {command.name}: block {n} of {bytes_} bytes: {what}\n    " + "\n    ".join(ours), flush=True)
        outcomes[outcome if refused else "not reached"] += 1
    return outcomes


if __name__ == "__main__":
    main()
