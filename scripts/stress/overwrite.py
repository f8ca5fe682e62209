#!/usr/bin/env python3
"""Overwrites the source of a mount in place while it is read, and looks for old bytes afterwards.

    scripts/stress/overwrite.py --volfs target/release/volfs [--zfp] FILE...

FILE is a dataset in one file, of some hundred MB, so that one write takes a while. It is copied, and never changed. Its
bricks must be readable also when a few bits are changed: plain ones are, most compressed ones are not. With --zfp a
volume of ZFP bricks is made, and another one of the same size (needs `pip install numpy zfpy`); FILE is optional then.
In each trial three readers read the finest level of its first layer again and again while the copy is overwritten with
other samples, by one write(2) or by `dd bs=16M conv=notrunc`. Three seconds later a file that is opened then must give
the new samples, and those that were opened during the write must give them or an error. Prints the trials with old
samples, and exits with 1 if there are any.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

QUIET = 3.0
READERS = 3
KEPT = 6  # files that are opened during a write and read afterwards, of each trial
PIECE = 8 << 20


def changed(content):
    """Returns the bytes of a file with a few bits changed in all but its first eighth, which has the headers."""
    content = bytearray(content)
    start = len(content) // 8
    content[start::4099] = bytes(byte ^ 0x10 for byte in content[start::4099])
    return bytes(content)


def make_zfp(path, seed):
    """Writes a ZGY file of ZFP bricks. All are equally long, so that files with other samples have the same size."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    import numpy as np
    from zgy_by_hand import F32, Raw

    size = 512
    samples = np.random.default_rng(seed).standard_normal((size, size, size), dtype=np.float32)
    volume = Raw(4, F32, samples.shape, bs=(64, 64, 64)).fill(samples, lods=[0], zfp=lambda *_: {"rate": 16})
    with open(path, "wb") as file:
        file.write(volume.build())


def first_layer(volfs, source):
    """Returns the first layer of the only dataset in a folder."""
    name = os.path.basename(source)
    with Mount(volfs, os.path.dirname(source)) as mount:
        layers = sorted(entry.name for entry in os.scandir(os.path.join(mount.point, name)) if entry.is_dir())
    return layers[0]


class Mount:
    """A mount that ends with a block."""

    def __init__(self, volfs, source):
        self.volfs, self.source = volfs, source

    def __enter__(self):
        self.point = tempfile.mkdtemp(prefix="volfs-overwrite-")
        subprocess.run([self.volfs, "mount", self.source, self.point], check=True, stdout=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        subprocess.run([self.volfs, "umount", "--lazy", self.point], check=False, stdout=subprocess.DEVNULL)
        os.rmdir(self.point)


def read_from(file, expected):
    """Reads an open file from its beginning; returns whether all bytes are the expected ones, or None if that fails."""
    at = 0
    try:
        while at < len(expected):
            piece = os.pread(file, PIECE, at)
            if piece != expected[at : at + len(piece)] or not piece:
                return False
            at += len(piece)
    except OSError:
        return None
    return True


def read_loop(path, size, stop):
    """Opens a file again and again, and reads some of it."""
    while not stop.is_set():
        try:
            with open(path, "rb", buffering=0) as file:
                file.seek(random.randrange(size))
                for _ in range(8):
                    file.read(PIECE)
        except OSError:
            time.sleep(0.001)


def overwrite(path, content, way, prepared):
    if way == "write":
        file = os.open(path, os.O_WRONLY)
        written = 0
        while written < len(content):
            written += os.pwrite(file, memoryview(content)[written:], written)
        os.close(file)
    else:
        command = ["dd", f"if={prepared}", f"of={path}", "bs=16M", "conv=notrunc", "status=none"]
        subprocess.run(command, check=True)


def open_during(path, writer):
    """Opens a file now and then until a thread has ended; keeps some of the open files, the last one among them."""
    files = []
    while writer.is_alive():
        try:
            files.append(os.open(path, os.O_RDONLY))
        except OSError:
            pass
        if len(files) > KEPT:
            os.close(files.pop(random.randrange(KEPT)))
        writer.join(0.02)
    return files


def trial(volfs, path, layer, way, content, samples, prepared):
    """Returns whether a file that is opened later, and those that were opened during the write, give the new samples
    (None: an error)."""
    stop = threading.Event()
    with Mount(volfs, os.path.dirname(path)) as mount:
        shown = os.path.join(mount.point, os.path.basename(path), layer, "lod0.raw")
        readers = [threading.Thread(target=read_loop, args=(shown, len(samples), stop)) for _ in range(READERS)]
        for reader in readers:
            reader.start()
        time.sleep(0.5)
        writer = threading.Thread(target=overwrite, args=(path, content, way, prepared))
        writer.start()
        kept = open_during(shown, writer)
        writer.join()
        time.sleep(QUIET)
        stop.set()
        for reader in readers:
            reader.join()
        late = os.open(shown, os.O_RDONLY)
        results = [read_from(late, samples)] + [read_from(file, samples) for file in kept]
        for file in [late, *kept]:
            os.close(file)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--volfs", default="target/release/volfs")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--zfp", action="store_true", help="also make a volume of ZFP bricks, and overwrite it")
    options = parser.parse_args()
    if not options.files and not options.zfp:
        parser.error("give a FILE or --zfp")
    heads = f"{'trials':>7}{'old, opened later':>19}{'old, open during':>18}{'errors':>8}"
    print(f"{'file':<24}{'overwritten by':<16}{heads}", flush=True)
    failed = False
    for original in options.files + ["zfp.zgy"] * options.zfp:
        with tempfile.TemporaryDirectory(prefix="volfs-overwrite-", dir=os.environ.get("TMPDIR")) as folder:
            failed = trials(options, original, folder) or failed
    sys.exit(1 if failed else 0)


def prepare(options, original, folder):
    """Writes two files of the same size to a folder, of which only the samples differ; returns their paths."""
    name = os.path.basename(original)
    paths = [os.path.join(folder, f"{number}-{name}") for number in range(2)]
    if original not in options.files:
        for seed, path in enumerate(paths):
            make_zfp(path, seed)
        return paths
    shutil.copyfile(original, paths[0])
    with open(original, "rb") as file:
        content = changed(file.read())
    with open(paths[1], "wb") as file:
        file.write(content)
    return paths


def trials(options, original, folder):
    """Overwrites a file in both ways, and prints a line for each; returns whether any trial failed."""
    name = os.path.basename(original)
    source = os.path.join(folder, "source", name)
    os.mkdir(os.path.dirname(source))
    versions = prepare(options, original, folder)
    shutil.copyfile(versions[0], source)
    layer = first_layer(options.volfs, source)
    for number, prepared in enumerate(versions):
        command = [options.volfs, "cat", prepared, "--layer", layer, "--lod", "0"]
        samples = subprocess.run(command, check=True, capture_output=True).stdout
        with open(prepared, "rb") as file:
            versions[number] = (file.read(), samples, prepared)
    assert len(versions[0][0]) == len(versions[1][0]) and versions[0][1] != versions[1][1]
    number, failed = 0, False
    for way in ["write", "dd"]:
        later = during = errors = 0
        for _ in range(options.trials):
            number += 1
            content, samples, prepared = versions[number % 2]
            results = trial(options.volfs, source, layer, way, content, samples, prepared)
            later += results[0] is False
            during += False in results[1:]
            errors += results[0] is None
        print(f"{name:<24}{way:<16}{options.trials:>7}{later:>19}{during:>18}{errors:>8}", flush=True)
        failed = failed or later + during + errors > 0
    return failed


if __name__ == "__main__":
    main()
