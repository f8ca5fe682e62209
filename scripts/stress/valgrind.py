#!/usr/bin/env python3
"""Mounts samples with a daemon that valgrind watches (memcheck), and reads all files at once in several ways.

    scripts/stress/valgrind.py VOLFS [--readers 6] [--most 3] [SOURCE]

SOURCE is tests/data/demo if it is not given; of files whose paths differ in numbers alone only so many are read. What
they must have comes from a mount without valgrind. Readers are threads with pread, `dd`, and NumPy with maps; each reads
the files in an order of its own, past the page cache. Prints what valgrind found in the daemon and its helpers: uses of
memory that is not initialised or not there, and blocks that are lost. The exit status is 1 if there is anything, or a
wrong byte. Needs valgrind and NumPy. VOLFS has no instructions that valgrind does not know (AVX-512): they are used
only where the processor has them, and the one that valgrind shows has not.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT = 240  # seconds to mount, or to end
MOST = 8 << 20  # bytes that are read of a file
# The handle on a mount is never freed: it would unmount whatever is there by then.
KEPT = "{\n  kept\n  Memcheck:Leak\n  match-leak-kinds: definite\n  fun:malloc\n  ...\n  fun:*5volfs5mount*\n}\n"
LEAKS = ["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]
MEMCHECK = ["valgrind", *LEAKS, "--fair-sched=yes", "--num-callers=30"]


class Mount:
    """A mount in a folder of its own, which ends with a block."""

    def __init__(self, volfs, source, folder, before=()):
        self.point = Path(folder)
        self.point.mkdir()
        self.process = subprocess.Popen([*before, volfs, "mount", "--foreground", source, folder])
        limit = time.monotonic() + LIMIT
        while not os.path.ismount(folder):
            if self.process.poll() is not None or time.monotonic() > limit:
                self.process.kill()
                sys.exit(f"it does not mount: status {self.process.returncode}")
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.status = self.process.wait(LIMIT)
        finally:
            subprocess.run(["umount", "--lazy", self.point], stderr=subprocess.DEVNULL)
            self.process.kill()


def files_of(point, most):
    """Returns files of a mount, by path, and the first bytes of each; `None` for those that are an error."""
    found, kinds = {}, {}
    for folder, _, names in os.walk(point):
        if ".volfs" not in folder:
            for path in (Path(folder) / name for name in names):
                kinds.setdefault(re.sub(r"\d+", "#", str(path.relative_to(point))), []).append(path)
    dice = random.Random(0)
    for path in sorted(path for kind in kinds.values() for path in dice.sample(sorted(kind), min(most, len(kind)))):
        try:
            with path.open("rb") as file:
                found[path.relative_to(point)] = file.read(MOST)
        except OSError:
            found[path.relative_to(point)] = None
    return found


def by_pread(path, dice):
    """Reads pieces of a file from its end to its begin."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        size = dice.choice([4096, 100_001, 1 << 20])
        offsets = range(0, min(os.fstat(number).st_size, MOST), size)
        return b"".join(reversed([os.pread(number, min(size, MOST - at), at) for at in reversed(offsets)]))
    finally:
        os.close(number)


def by_dd(path, dice):
    size = dice.choice([1 << 12, 1 << 16, 1 << 20])
    command = ["dd", f"if={path}", f"bs={size}", f"count={MOST // size}", "iflag=fullblock", "status=none"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode:
        raise OSError("dd")
    return done.stdout


def by_numpy(path, _):
    return np.memmap(path, np.uint8, "r")[:MOST].tobytes() if path.stat().st_size else b""


def read_all(read, point, files, dice, wrong):
    """Reads files of a mount in some order, and notes those that are not as they should be."""
    for name, expected in dice.sample(files, len(files)):
        try:
            got = read(point / name, dice)
        except OSError:
            got = None
        if got != expected:
            wrong.append(f"{name}: {read.__name__} gives other bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("volfs")
    parser.add_argument("source", nargs="?", default=ROOT / "tests" / "data" / "demo", type=Path)
    parser.add_argument("--readers", default=6, type=int)
    parser.add_argument("--most", default=3, type=int)
    options = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="volfs-valgrind-") as folder:
        with Mount(options.volfs, options.source, f"{folder}/right") as mount:
            files = files_of(mount.point, options.most)
        began = time.monotonic()
        kept = Path(folder, "kept")
        kept.write_text(KEPT)
        watched = [*MEMCHECK, f"--suppressions={kept}", f"--log-file={folder}/%p.log"]
        with Mount(options.volfs, options.source, f"{folder}/watched", watched) as mount:
            readers = []
            for number in range(options.readers):
                # a map of a file that is an error ends the reader
                read = [by_pread, by_dd, by_numpy][number % 3]
                part = [item for item in files.items() if item[1] is not None or read is not by_numpy]
                arguments = (read, mount.point, part, random.Random(number), wrong)
                readers.append(threading.Thread(target=read_all, args=arguments))
            [reader.start() for reader in readers]
            [reader.join() for reader in readers]
        logs = [log.read_text() for log in Path(folder).glob("*.log")]
    sums = [int(count) for log in logs for count in re.findall(r"ERROR SUMMARY: (\d+) errors", log)]
    print(f"{len(files)} files, {time.monotonic() - began:.0f} s, {len(sums)} processes, {sum(sums)} errors; status {mount.status}")
    for log in logs:
        if not re.search("ERROR SUMMARY: 0 errors", log):
            print(log)
    print("\n".join(wrong[:20]) or "all bytes are right")
    sys.exit(1 if wrong or sum(sums) or not sums or mount.status else 0)


if __name__ == "__main__":
    main()
