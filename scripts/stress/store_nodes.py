#!/usr/bin/env python3
"""Kills nodes of a distributed object store under eight readers of a mount.

    scripts/stress/store_nodes.py [--seconds 300] [--readers 8] [--lost-seconds 150] [--garage FILE]
                                  [--volfs target/release/volfs] SOURCE

SOURCE is a folder of datasets. It is uploaded to Garage with three nodes and a copy of each object on each of them, and
mounted twice: from the folder, which is the truth, and from the store, with a cache of 16 MiB, by the address of the first node. Eight
processes read whole files and random ranges past the page cache, and compare every byte, while one of the other nodes is
killed (SIGKILL), is away for some seconds, and comes back, again and again. At the end two of three nodes are killed: a
read must end with an I/O error, and reads must work again when the nodes are back. Prints each event and the figures;
the exit status is 1 if anything is wrong. ./scripts/install_stores.sh --garage installs the store.
"""

import argparse
import errno
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time

from garage import BUCKET, Cluster, wait_until

PIECES = [4096, 65536, 100_000, 1 << 20]
LONGEST = 8 << 20  # bytes of a random range


class Mount:
    """A mount on a folder of its own."""

    def __init__(self, options, source, folder, name, arguments, environment):
        self.options, self.point, self.log = options, os.path.join(folder, name), os.path.join(folder, name + ".log")
        os.mkdir(self.point)
        command = [options.volfs, "mount", "--cache-size", "16MiB", "--log-file", self.log, *arguments, source, self.point]
        subprocess.run(command, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)

    def files(self):
        """Returns the files of raw samples, with their sizes."""
        found = {}
        for folder, _, names in os.walk(self.point):
            for name in names:
                path = os.path.join(folder, name)
                if name.endswith(".raw"):
                    found[os.path.relpath(path, self.point)] = os.path.getsize(path)
        return found

    def status(self):
        """Returns what status.json has."""
        with open(os.path.join(self.point, ".volfs", "status.json"), encoding="utf-8") as file:
            return json.load(file)

    def end(self):
        """Unmounts."""
        subprocess.run([self.options.volfs, "umount", "--lazy", self.point], check=False, stdout=subprocess.DEVNULL)


def read(path, offset, length):
    """Reads a range in one call, past what is in the page cache."""
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), offset, length, os.POSIX_FADV_DONTNEED)
        return os.pread(file.fileno(), length, offset)


def ranges(dice, size):
    """Returns what is read of a file: all of it in pieces, or a range at random."""
    if dice.random() < 0.25:
        piece = dice.choice(PIECES)
        # not all of a large file: the next one should have its turn
        begin = dice.randrange(max(1, size - 64 * piece))
        return [(offset, min(piece, size - offset)) for offset in range(begin, min(size, begin + 64 * piece), piece)]
    offset = dice.randrange(size)
    return [(offset, min(dice.randrange(1, LONGEST), size - offset))]


def reader(seed, files, here, there, stop, results):
    """Reads at random until the end, and compares; puts (time, seconds of the read, bytes, error) for each read."""
    dice, names = random.Random(seed), sorted(files)
    while not stop.is_set():
        name = dice.choice(names)
        for offset, length in ranges(dice, files[name]):
            began, wrong = time.monotonic(), None
            try:
                got = read(os.path.join(there, name), offset, length)
                took = time.monotonic() - began
                if got != read(os.path.join(here, name), offset, length):
                    wrong = f"{name}: wrong bytes within {offset}+{length}"
            except OSError as error:
                took, wrong = time.monotonic() - began, f"{name}: {error.strerror} at {offset}+{length}"
            results.put((began, took, length, wrong))
            if stop.is_set():
                break


class Diary:
    """Prints events with the seconds since the beginning."""

    def __init__(self):
        self.began = time.monotonic()

    def note(self, text):
        """Prints a line."""
        print(f"{time.monotonic() - self.began:7.1f} s  {text}", flush=True)


class Tally:
    """What the readers have done."""

    def __init__(self, results, diary):
        self.results, self.diary = results, diary
        self.reads = self.bytes = self.errors = 0
        self.longest = 0.0

    def collect(self, seconds):
        """Counts for some seconds. Returns reads, bytes and the longest read of these."""
        until, before, longest = time.monotonic() + seconds, (self.reads, self.bytes), 0.0
        while time.monotonic() < until or not self.results.empty():
            try:
                _, took, length, wrong = self.results.get(timeout=0.2)
            except multiprocessing.queues.Empty:
                continue
            self.reads, self.bytes = self.reads + 1, self.bytes + length
            longest = max(longest, took)
            if wrong:
                self.errors += 1
                self.diary.note(f"WRONG {wrong}")
        self.longest = max(self.longest, longest)
        return f"{self.reads - before[0]} reads, {(self.bytes - before[1]) / 1e6:.0f} MB, longest {longest:.2f} s"


def upload(cluster, source):
    """Puts all files below a folder; returns how many, and their bytes."""
    count = size = 0
    for folder, _, names in os.walk(source):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                body = file.read()
            cluster.put("data/" + os.path.relpath(path, source), body)
            count, size = count + 1, size + len(body)
    return count, size


def kill_in_turn(options, cluster, tally, diary):
    """Kills the nodes but the first, one at a time, until the time is up. Returns how often."""
    dice, kills, until = random.Random(options.seed), 0, time.monotonic() + options.seconds
    diary.note(f"all nodes: {tally.collect(5)}")
    while time.monotonic() < until:
        number = dice.randrange(1, len(cluster.nodes))
        cluster.nodes[number].kill()
        kills += 1
        away = dice.uniform(2, 15)
        diary.note(f"node {number + 1} killed for {away:.0f} s: {tally.collect(away)}")
        cluster.nodes[number].start()
        wait_until("all nodes are there again", cluster.is_healthy)
        diary.note(f"node {number + 1} is back: {tally.collect(dice.uniform(2, 8))}")
    return kills


def lose_two(options, cluster, there, files, truth, diary):
    """Kills all nodes but the first, and lets them come back. Returns what went wrong."""
    for node in cluster.nodes[1:]:
        node.kill()
    diary.note("two of three nodes killed")
    name, began, wrong = max(files, key=files.get), time.monotonic(), []
    try:
        # from the end on, which nobody has read a moment ago
        for offset in range(files[name], 0, -LONGEST):
            read(os.path.join(there.point, name), max(0, offset - LONGEST), LONGEST)
            if time.monotonic() - began > options.lost_seconds:
                break
        wrong.append("no error although two of three nodes are lost")
    except OSError as error:
        took = time.monotonic() - began
        diary.note(f"a read ends after {took:.1f} s: {error.strerror}")
        if error.errno != errno.EIO or took > options.lost_seconds:
            wrong.append(f"not an I/O error within {options.lost_seconds} s")
    there.status()
    for node in cluster.nodes[1:]:
        node.start()
    wait_until("all nodes are there again", cluster.is_healthy)
    began, name = time.monotonic(), min(files, key=files.get)

    def is_right():
        try:
            return read(os.path.join(there.point, name), 0, files[name]) == read(os.path.join(truth.point, name), 0, files[name])
        except OSError:
            return False

    wait_until("reads work again", is_right, 60)
    diary.note(f"all nodes are back: reads work after {time.monotonic() - began:.1f} s")
    return wrong


def run(options, folder):
    """Runs all of it; returns what went wrong."""
    with Cluster(options.garage, os.path.join(folder, "store")) as cluster:
        diary = Diary()
        count, size = upload(cluster, options.source)
        diary.note(f"three nodes; {count} objects, {size / 1e6:.0f} MB uploaded; seed {options.seed}")
        truth = Mount(options, options.source, folder, "truth", [], {})
        there = Mount(options, f"s3://{BUCKET}/data", folder, "store-mount", [], cluster.environment(0))
        try:
            files = truth.files()
            wrong = [] if there.files() == files else ["the mounts do not show the same files"]
            results, stop = multiprocessing.Queue(), multiprocessing.Event()
            readers = [multiprocessing.Process(target=reader, args=(options.seed + n, files, truth.point, there.point, stop, results), daemon=True)
                       for n in range(options.readers)]
            for process in readers:
                process.start()
            tally = Tally(results, diary)
            kills = kill_in_turn(options, cluster, tally, diary)
            stop.set()
            tally.collect(1)
            for process in readers:
                while process.is_alive():
                    tally.collect(0.2)
            store = there.status()["store"]
            print(f"{tally.reads} reads, {tally.bytes / 1e6:.0f} MB compared, {kills} kills, {tally.errors} errors or wrong bytes, "
                  f"longest read {tally.longest:.2f} s; {store['requests']} requests, {store['retries']} of them failed")
            wrong += [f"{tally.errors} errors or wrong bytes"] * bool(tally.errors)
            return wrong + lose_two(options, cluster, there, files, truth, diary)
        finally:
            there.end()
            truth.end()
            with open(there.log, encoding="utf-8") as log:
                print("log of the mount:\n" + log.read())


def main():
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--lost-seconds", type=float, default=150)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    stores = os.environ.get("VOLFS_STORES", "target/stores")
    parser.add_argument("--garage", default=os.path.join(stores, "bin", "garage"))
    parser.add_argument("--volfs", default="target/release/volfs")
    options = parser.parse_args()
    if not os.access(options.garage, os.X_OK):
        sys.exit(f"{options.garage} is not there: ./scripts/install_stores.sh --garage")
    options.source = os.path.abspath(options.source)
    with tempfile.TemporaryDirectory(prefix="volfs-nodes-") as folder:
        wrong = run(options, folder)
    print("\n".join(wrong) or "all right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
