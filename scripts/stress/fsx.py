#!/usr/bin/env python3
"""Reads the files of a mount in every way that Linux has, at random, and compares each byte; then replaces sources.

    scripts/stress/fsx.py --volfs target/release/volfs [--seconds 60] [--seed N] [--direct-io] [SOURCE...]

A SOURCE is a dataset; those of tests/data/demo if none is given. They are copied, and never changed. What files must
have comes from a mount whose files are read from begin to end; of these lodN.raw is compared with `volfs cat`, and NumPy
files with lodN.raw. In the first half of the time no read may fail. In the second half datasets are replaced by
renaming, with a copy that has other samples: what comes from one open file must be of one version, or an error; three
seconds after a replacement, files that are opened must have the new version. At the end nothing may be open or in
progress, and descriptors, threads and memory of the daemon are printed. Exits with 1 after wrong bytes, hangs and
leftovers, and then names the seed and the operation. A seed gives each worker the same operations again; their order
among workers is another one. Needs `pip install numpy`.
"""

import argparse
import ctypes
import glob
import io
import itertools
import json
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter

import numpy as np
from random_reads import PAGE, Truth, Worker, Wrong

LIMIT = 60.0  # seconds after which an operation hangs
SETTLED = 3.0  # seconds after a replacement until everything must be of the new version
LARGE = 16 << 20
SMALL = 64  # chunks have more bytes, or say little
FEW = {"large": 3, "pictures": 4, "chunks": 12}  # files of a dataset that are read, of those that are many or long
LIBC = ctypes.CDLL(None, use_errno=True)


class Mount:
    """A mount that ends with a block; at its end nothing may be left."""

    def __init__(self, options, source, point, *arguments):
        self.volfs, self.point = options.volfs, point
        os.makedirs(point, exist_ok=True)
        subprocess.run([self.volfs, "mount", *arguments, source, point], check=True, stdout=subprocess.DEVNULL)
        self.pid = self.status()["pid"]

    def status(self):
        with open(os.path.join(self.point, ".volfs/status.json")) as file:
            return json.load(file)

    def size(self):
        """Returns descriptors, threads and MiB of anonymous memory of the daemon."""
        with open(f"/proc/{self.pid}/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        kib = int(fields["RssAnon"].split()[0])
        return len(os.listdir(f"/proc/{self.pid}/fd")), int(fields["Threads"]), kib // 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([self.volfs, "umount", "--lazy", self.point], check=False, stdout=subprocess.DEVNULL)
        end = time.monotonic() + LIMIT
        while os.path.exists(f"/proc/{self.pid}") and time.monotonic() < end:
            time.sleep(0.05)
        with open("/proc/mounts") as file:
            left = any(line.split()[1] == self.point for line in file)
        if left or os.path.exists(f"/proc/{self.pid}"):
            raise Wrong(f"{self.point}: the mount or its daemon {self.pid} is left")


def files_of(point, dice):
    """Returns files of a mount by the dataset that they are in: of those that are many or long only a few."""
    found = {}
    for folder, _, names in os.walk(point):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), point)
            if not path.startswith(".volfs") and name not in ("dataset.json", "error.txt"):
                found.setdefault(path.split("/")[0], []).append(path)
    for dataset, paths in found.items():
        kinds = {}
        for path in sorted(paths):
            is_large = os.path.getsize(os.path.join(point, path)) > LARGE
            kind = "large" if is_large else "pictures" if path.endswith(".png") else "chunks" if "/c/" in path else ""
            kinds.setdefault(kind, []).append(path)
        found[dataset] = []
        for kind, paths in kinds.items():
            found[dataset] += dice.sample(paths, min(len(paths), FEW.get(kind, len(paths))))
    return found


def compare_views(options, point, path, content):
    """Compares a file of a mount with what `volfs cat` or NumPy makes of its level."""
    match = re.fullmatch(r"(.*/lod\d+)\.(?:by-([^/]+)\.)?(raw|npy)", path)
    if not match:
        return
    level, axis, kind = match.groups()
    raw = subprocess.run([options.volfs, "cat", f"{point}/{level}.raw"], check=True, capture_output=True).stdout
    if kind == "npy":
        with open(f"{point}/{level}.json") as file:
            names = [axis["name"].lower() for axis in json.load(file)["axes"]]
        array = np.load(io.BytesIO(content))
        if axis:
            array = np.moveaxis(array, 0, names.index(axis.lower()) if axis.lower() in names else -1)
        content = array.tobytes()
    if content != raw:
        raise Wrong(f"{path}: another way to read it gives other samples")


def learn(options, source, folder, dice, paths=None):
    """Copies what is read of a mount of a folder; returns its files by dataset. Those that cannot be read are left out."""
    with Mount(options, source, options.point) as mount:
        wanted, readable = paths or files_of(mount.point, dice), {}
        for dataset, path in [(dataset, path) for dataset in wanted for path in wanted[dataset]]:
            try:
                with open(os.path.join(mount.point, path), "rb") as file:
                    content = file.read()
            except OSError:
                continue
            compare_views(options, mount.point, path, content)
            readable.setdefault(dataset, []).append(path)
            copy = os.path.join(folder, path)
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            with open(copy, "wb") as file:
                file.write(content)
    return readable


def copied(source, target):
    shutil.copytree(source, target) if os.path.isdir(source) else shutil.copy2(source, target)


def change(path):
    """Gives a dataset other samples: chunks that are files change places, other files get a few bits changed."""
    groups, files = {}, [path]
    if os.path.isdir(path):
        files = sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        for file in files:
            level, _, rest = os.path.relpath(file, path).partition("/")
            groups.setdefault((level, re.sub(r"\d+", "#", rest)), []).append(file)
    chunks = [group for group in groups.values() if len(group) > 1 and max(map(os.path.getsize, group)) > SMALL]
    for first, second in itertools.chain(*(zip(group[::2], group[1::2], strict=False) for group in chunks)):
        exchange(first, second)
    for file in [] if chunks else [file for file in files if os.path.getsize(file) > 4 * PAGE]:
        with open(file, "r+b") as opened:
            content = bytearray(opened.read())
            content[len(content) // 8 :: 4099] = bytes(byte ^ 0x10 for byte in content[len(content) // 8 :: 4099])
            opened.seek(0)
            opened.write(content)


def is_changed(versions):
    return versions[0][:] != versions[1][:]


def exchange(first, second):
    """Exchanges two names in one step."""
    if LIBC.renameat2(-100, os.fsencode(first), -100, os.fsencode(second), 2):
        raise OSError(ctypes.get_errno(), "renameat2", first)


class Shared:
    """What the processes of a half share."""

    def __init__(self, count):
        self.stop, self.failed = multiprocessing.Event(), multiprocessing.Value("i", 0)
        self.beats = multiprocessing.Array("d", [time.monotonic()] * count, lock=False)
        self.results = multiprocessing.Queue()

    def fail(self, text):
        self.failed.value = 1
        print(f"WRONG: {text}", flush=True)


def work(number, options, paths, truth, scratch, replaces, shared):
    """What a thread does until the end."""
    worker = Worker(f"{options.seed} {replaces} {number}", options.point, paths, truth, scratch, replaces)
    try:
        while not shared.stop.is_set() and not shared.failed.value:
            shared.beats[number] = time.monotonic()
            worker.step()
    except Exception as error:
        shared.fail(f"seed {options.seed}, worker {number}, after {sum(worker.done.values())} operations: {error!r}")
    shared.beats[number] = float("inf")
    for file in worker.files:
        file.close()
    shared.results.put((worker.done, worker.bytes))


def work_in_threads(numbers, *arguments):
    threads = [threading.Thread(target=work, args=(number, *arguments)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Replacer:
    """Replaces datasets, and looks now and then whether the new versions are shown."""

    def __init__(self, mount, folder, paths, truth, dice):
        self.mount, self.paths, self.truth, self.dice = mount, paths, truth, dice
        self.live, self.stage, self.versions = (os.path.join(folder, name) for name in ["live", "stage", "versions"])
        self.now, self.done, self.looked = dict.fromkeys(paths, 0), 0, 0

    def step(self):
        name = self.dice.choice(sorted(self.paths))
        self.now[name] ^= 1
        staged, live = os.path.join(self.stage, name), os.path.join(self.live, name)
        copied(os.path.join(self.versions, str(self.now[name]), name), staged)
        # an inode may be used again, so that a folder with an old time would look like one before
        if os.path.isdir(staged) or self.dice.random() < 0.5:
            os.utime(staged)
        exchange(staged, live)
        shutil.rmtree(staged) if os.path.isdir(staged) else os.remove(staged)
        self.done += 1
        time.sleep(self.dice.choice([0, 0.05, 0.3, 1, 2.5]))
        if self.done % 10 == 0:
            self.look()

    def look(self):
        time.sleep(SETTLED)
        for name, paths in self.paths.items():
            for path in self.dice.sample(paths, min(len(paths), 8)):
                wanted = self.truth.of(path)[self.now[name]]
                with open(os.path.join(self.mount.point, path), "rb") as file:
                    offset = self.dice.randrange(max(1, len(wanted) - LARGE))
                    file.seek(offset)
                    if file.read(LARGE) != wanted[offset : offset + LARGE]:
                        raise Wrong(f"{path} is not shown as it is since {SETTLED} seconds")
                self.looked += 1


def half(options, mount, paths, truth, folder, replacer):
    """Reads for some seconds; returns whether all was right."""
    count = options.processes * options.threads
    # a child is forked for each map while sources are replaced, which should have no other threads
    width = 1 if replacer else options.threads
    shared, flat = Shared(count), [path for paths in paths.values() for path in paths]
    arguments = (options, flat, truth, folder, bool(replacer), shared)
    parts = [range(start, start + width) for start in range(0, count, width)]
    processes = [multiprocessing.Process(target=work_in_threads, args=(part, *arguments)) for part in parts]
    for process in processes:
        process.start()
    began, sizes = time.monotonic(), []
    while time.monotonic() < began + options.seconds / 2 and not shared.failed.value:
        try:
            replacer.step() if replacer else time.sleep(1)
        except Exception as error:
            shared.fail(f"seed {options.seed}, replacement {replacer.done}: {error!r}")
        sizes.append(mount.size())
        if os.geteuid() == 0 and len(sizes) % 10 == 0:
            with open("/proc/sys/vm/drop_caches", "w") as file:
                file.write("1")
        if time.monotonic() - min(shared.beats) > LIMIT:
            shared.fail(f"seed {options.seed}: worker {np.argmin(shared.beats)} hangs")
    shared.stop.set()
    try:
        results = [shared.results.get(timeout=LIMIT) for _ in range(count)]
    finally:
        for process in processes:
            process.kill()
    done = sum((done for done, _ in results), Counter())
    replaced = f"{replacer.done} replacements, {replacer.looked} files looked at after; " if replacer else ""
    print(f"{replaced}{sum(done.values())} operations, {sum(size for _, size in results) / 1e9:.2f} GB compared")
    print("  " + ", ".join(f"{name} {count}" for name, count in sorted(done.items())))
    time.sleep(SETTLED)
    third = len(sizes) // 3 + 1
    for name, *values in zip(["descriptors", "threads", "MiB"], *sizes, strict=True):
        print(f"  {name}: at most {max(values[:third])} at first, {max(values[-third:])} at last")
    now = mount.status()["now"]
    print(f"  at rest: {mount.size()}, {now}", flush=True)
    return not shared.failed.value and not any(now.values())


def prepare(options, folder, dice):
    """Copies the sources, and makes other versions of them; returns the files of each dataset, and their bytes."""
    versions = [os.path.join(folder, "versions", str(number)) for number in range(2)]
    truths = [os.path.join(folder, f"truth{number}") for number in range(2)]
    for path in [os.path.join(folder, "stage"), *versions]:
        os.makedirs(path)
    for source, version in itertools.product(options.sources, versions):
        copied(source, os.path.join(version, os.path.basename(os.path.normpath(source))))
    for name in os.listdir(versions[1]):
        change(os.path.join(versions[1], name))
    shutil.copytree(versions[0], os.path.join(folder, "live"))
    paths = learn(options, versions[0], truths[0], dice)
    in_both = learn(options, versions[1], truths[1], dice, paths)
    return paths, in_both, truths


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", metavar="SOURCE", default=sorted(glob.glob("tests/data/demo/*")))
    parser.add_argument("--volfs", default="target/release/volfs")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--cache-size", default="8MiB")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=4, help="of each process")
    parser.add_argument("--direct-io", action="store_true", help="without the kernel's page cache")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    dice, right = random.Random(options.seed), False
    with tempfile.TemporaryDirectory(prefix="volfs-fsx-", dir=os.environ.get("TMPDIR")) as folder:
        options.point = os.path.join(folder, "point")
        try:
            paths, in_both, truths = prepare(options, folder, dice)
            truth = Truth(truths)
            differing = {name: [path for path in paths if is_changed(truth.of(path))] for name, paths in in_both.items()}
            differing = {name: paths for name, paths in differing.items() if paths}
            files, changed = (sum(map(len, found.values())) for found in [paths, differing])
            print(f"{files} files of {len(paths)} datasets; {changed} of {len(differing)} have two versions", flush=True)
            arguments = ["--cache-size", options.cache_size, *["--direct-io"] * options.direct_io]
            with Mount(options, os.path.join(folder, "live"), options.point, *arguments) as mount:
                right = half(options, mount, paths, Truth(truths[:1]), folder, None)
                replacer = Replacer(mount, folder, differing, truth, dice)
                right = right and half(options, mount, differing, truth, folder, replacer)
        except Wrong as error:
            print(f"WRONG: seed {options.seed}: {error}")
            right = False
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
