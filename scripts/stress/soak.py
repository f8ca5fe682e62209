#!/usr/bin/env python3
"""Everything at once, for hours: readers of all kinds, sources that are replaced, a store that fails, mounts that come and go.

    scripts/stress/soak.py [VOLFS] [--minutes 100] [--seed N] [--pause FILE] [--folder FOLDER]

VOLFS (default: target/release/volfs) mounts a folder with a cache of 8 MiB, mounts the same datasets from an object
store with a disk cache of 64 MiB, and serves the folder over HTTP. The datasets are those of tests/data and larger ones
that are written here; single ones are replaced by renaming all the time, with a copy that has other samples. A third
mount shares the disk cache, and is unmounted or killed every few seconds. The store (flaky_store.py) answers one request in
forty with an error, half an answer, none, or late, and sometimes nothing works for seconds. Readers use preads, maps,
O_DIRECT, sendfile, splice, dd, `volfs cat`, ranges over HTTP, walks, and forked processes that read on. All that they get
must be of one version; an error is right where a source was replaced or the store has failed, and nowhere else.

Every minute a line has what the daemons hold and what readers have got. At the end it fails if bytes were wrong, if
something hung or stayed behind, or if descriptors, threads or memory grew: if the median of the last fifth of the time
is above that of the second fifth. SIGTERM ends it early. While the FILE of --pause exists, readers wait: others measure. Needs NumPy.
"""

import argparse
import errno
import glob
import http.client
import json
import mmap
import multiprocessing
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import fsx
import numpy as np
from flaky_store import BUCKET, FlakyStore
from random_reads import File, Truth, Worker, Wrong

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from zgy_by_hand import F32, I16, Raw  # noqa: E402

DATA = [
    "demo/*", "zgy/v3_sparse_int8.zgy", "vds/two.vds", "vds/wavelet.vds", "hdf5/layouts-latest.h5", "hdf5/filters.h5", "netcdf3/classic.nc",
    "zarr/v2.zarr", "zarr/v3.zarr", "zarr/volume.n5", "wkw/pyramid", "precomputed/gzip", "precomputed/sharded",
]
HANGS = 900  # seconds; a request of the store is tried again for 20, and all may be stopped (SIGSTOP) for a while
FILES = 20  # that are read, of a dataset
SLACK = {"descriptors": 16, "threads": 8, "MiB": 48}
STORE_ERRORS = {errno.EIO, errno.ESTALE, errno.ENOENT, errno.ENOTDIR}


def write_volumes(folder, seed):
    """Writes volumes of tens of MB: plain ZGY of floats and of integers, and Zarr of deflated chunks."""
    noise = np.random.default_rng(seed)
    smooth = np.cumsum(noise.standard_normal((192, 256, 256), dtype=np.float32), axis=2)
    Path(folder, "floats.zgy").write_bytes(Raw(4, F32, smooth.shape, bs=(64, 64, 64)).fill(smooth).build())
    integers = noise.integers(-999, 999, (256, 200, 300), dtype=np.int16)
    Path(folder, "integers.zgy").write_bytes(Raw(3, I16, integers.shape, bs=(64, 64, 64)).fill(integers).build())
    chunks = Path(folder, "chunks.zarr")
    chunks.mkdir()
    about = {"zarr_format": 2, "shape": [256, 256, 256], "chunks": [64, 64, 64], "dtype": "<i2", "order": "C", "fill_value": 0, "filters": None, "compressor": {"id": "zlib", "level": 1}}
    (chunks / ".zarray").write_text(json.dumps(about))
    for at in np.ndindex(4, 4, 4):
        samples = np.cumsum(noise.integers(-3, 4, (64, 64, 64), dtype=np.int16), axis=2, dtype=np.int16)
        (chunks / ".".join(map(str, at))).write_bytes(zlib.compress(samples.tobytes(), 1))


def prepare(options, folder, dice):
    """Makes two versions of all datasets; returns files of each that both versions have, and folders with their bytes."""
    versions = [os.path.join(folder, "versions", str(number)) for number in range(2)]
    truths = [os.path.join(folder, f"truth{number}") for number in range(2)]
    for version in versions:
        os.makedirs(version)
        for source in options.sources:
            fsx.copied(source, os.path.join(version, os.path.basename(source)))
    for name in os.listdir(versions[1]):
        fsx.change(os.path.join(versions[1], name))
    shutil.copytree(versions[0], os.path.join(folder, "live"))
    with fsx.Mount(options, versions[0], options.point):
        paths = fsx.files_of(options.point, dice)
    # the finest level in any case, the largest by far
    paths = {name: [path for path in files if path.endswith("lod0.raw")][:2] + dice.sample(files, min(len(files), FILES)) for name, files in paths.items()}
    paths = {name: list(dict.fromkeys(files)) for name, files in paths.items()}
    for version, truth in zip(versions, truths, strict=True):
        paths = fsx.learn(options, version, truth, dice, paths)
    return paths, truths


class Reader(Worker):
    """Reads at random, in all ways of random_reads.py, and as whole programs do."""

    def __init__(self, seed, options, point, paths, truth, scratch, fails):
        super().__init__(seed, point, paths, truth, scratch, True)
        self.options, self.fails = options, fails

    def got(self, file, offset, length, piece):
        # a store that failed may answer when the rest is asked for
        super().got(file, offset, len(piece) if self.fails else length, piece)


class Programs(Worker):
    """Does what programs do: scans of whole files, dd, volfs cat, walks, forks."""

    def __init__(self, seed, options, point, paths, truth, scratch, fails):
        super().__init__(seed, point, paths, truth, scratch, True)
        self.options, self.fails = options, fails
        self.ways = [self.scan, self.dd, self.cat, self.walk, self.fork]

    def step(self):
        way = self.dice.choice(self.ways)
        path = self.dice.choice(self.paths)
        self.what = path
        try:
            way(path)
            self.done[way.__name__] += 1
        except OSError as error:
            if error.errno not in STORE_ERRORS:
                raise Wrong(f"{way.__name__} {path}: {error}") from error
            self.done[errno.errorcode[error.errno]] += 1

    def scan(self, path):
        file = File(os.path.join(self.point, path), path, self.truth.of(path), self.dice.choice([0, 0, os.O_DIRECT]))
        try:
            size, at = 1 << self.dice.randrange(12, 21), 0
            buffer = memoryview(mmap.mmap(-1, size))
            while count := os.preadv(file.number, [buffer], at):
                file.expect(at, count, buffer[:count].tobytes(), f"scan of {path}")
                at, self.bytes = at + count, self.bytes + count
            file.keep([version for version in file.versions if len(version) == at], f"the end of {path} at {at}")
        finally:
            file.close()

    def whole(self, path, output):
        if not any(version[:] == output for version in self.truth.of(path)):
            raise Wrong(f"{self.what}: {len(output)} bytes that are of no version")
        self.bytes += len(output)

    def run(self, path, command):
        done = subprocess.run(command, capture_output=True, check=False, timeout=HANGS)
        if done.returncode < 0 or b"panicked" in done.stderr:
            raise Wrong(f"{command[0]} {path}: status {done.returncode}, {done.stderr[:300]}")
        if done.returncode:
            self.done[f"{Path(command[0]).name} failed"] += 1
        else:
            self.whole(path, done.stdout)

    def dd(self, path):
        flags = self.dice.choice([["iflag=direct"], []])
        self.run(path, ["dd", "status=none", f"bs={self.dice.choice(['4K', '128K', '1M', '8M'])}", *flags, f"if={os.path.join(self.point, path)}"])

    def cat(self, _):
        raw = [path for path in self.paths if path.endswith(".raw")]
        path = self.what = self.dice.choice(raw)
        self.run(path, [self.options.volfs, "cat", os.path.join(self.point, path)])

    def walk(self, path):
        top = os.path.join(self.point, path.split("/")[0])
        for folder, _, names in os.walk(top, onerror=self.note):
            for name in self.dice.sample(names, min(8, len(names))):
                try:
                    os.stat(os.path.join(folder, name))
                except OSError as error:
                    self.note(error)

    def note(self, error):
        if error.errno not in STORE_ERRORS:
            raise Wrong(f"walk: {error}")
        self.done[f"walk {errno.errorcode[error.errno]}"] += 1

    def fork(self, path):
        """Reads on in children, with the descriptor of their parent, which reads too: all of one version."""
        file = File(os.path.join(self.point, path), path, self.truth.of(path), 0)
        try:
            self.pieces(file, 2)
            children = []
            for number in range(2):
                if (child := os.fork()) == 0:
                    self.child(file, number)
                children.append(child)
            failure = None
            try:
                self.pieces(file, 4)
            except OSError as error:
                failure = error
            for child in children:
                _, status = os.waitpid(child, 0)
                code = os.waitstatus_to_exitcode(status)
                if code == 1:
                    self.done["EIO of a child"] += 1
                elif code < 64:
                    raise Wrong(f"a child that reads {path} on ends with {code}")
                else:
                    of = [version for number, version in enumerate(self.truth.of(path)) if code - 64 & 1 << number]
                    file.keep([version for version in file.versions if version in of], f"{path}, of parent and child")
            if failure:
                raise failure
        finally:
            file.close()

    def child(self, file, number):
        """Reads; the exit status tells which versions it can be of."""
        code = 3
        try:
            self.dice = random.Random(number + os.getpid())
            self.pieces(file, 6)
            code = 64 + sum(1 << n for n, version in enumerate(self.truth.of(file.name)) if any(version is kept for kept in file.versions))
        except OSError:
            code = 1
        except Wrong as error:
            print(f"WRONG: in a child: {error}", flush=True)
        finally:
            os._exit(code)

    def pieces(self, file, count):
        for _ in range(count):
            offset, length = self.place(file, 1 << 18)
            piece = os.pread(file.number, length, offset)
            file.expect(offset, len(piece), piece, self.what)
            self.bytes += len(piece)


class Client(Worker):
    """Asks `volfs serve` for ranges over a connection that stays."""

    def __init__(self, seed, options, point, paths, truth, scratch, fails):
        super().__init__(seed, point, paths, truth, scratch, True)
        self.connection, self.address = None, options.address

    def step(self):
        path = self.what = self.dice.choice(self.paths)
        versions = self.truth.of(path)
        first = self.dice.randrange(len(versions[0]) + 1)
        last = first + self.dice.choice([0, 100, self.dice.randrange(1 << 20)])
        headers = {} if self.dice.random() < 0.1 else {"Range": f"bytes={first}-{last}"}
        try:
            self.connection = self.connection or http.client.HTTPConnection(self.address, timeout=HANGS)
            self.connection.request("GET", "/" + quote(path), headers=headers)
            answer = self.connection.getresponse()
            body = answer.read()
        except (http.client.HTTPException, OSError) as error:
            self.connection = self.connection and self.connection.close()
            self.done[f"HTTP {type(error).__name__}"] += 1
            return
        self.done[f"HTTP {answer.status}"] += 1
        wanted = {200: [version[:] for version in versions], 206: [version[first : last + 1] for version in versions]}
        if answer.status in wanted:
            self.bytes += len(body)
            if body not in wanted[answer.status]:
                raise Wrong(f"{path} over HTTP, {headers}: {len(body)} bytes that are of no version")
        elif answer.status not in (404, 416, 500, 502, 503, 504, 410):
            raise Wrong(f"{path} over HTTP: status {answer.status}, {body[:200]}")


class Beside(Worker):
    """Mounts the store again and again beside the others, with their disk cache; ends the mount in one way or another."""

    def __init__(self, seed, options, point, paths, truth, scratch, fails):
        super().__init__(seed, point + "-beside", paths, truth, scratch, True)
        self.options = options

    def step(self):
        os.makedirs(self.point, exist_ok=True)
        done = subprocess.run([self.options.volfs, "mount", *self.options.of_store, self.point], env=self.options.environment, capture_output=True, check=False, timeout=HANGS)
        if done.returncode:
            self.done["mount failed"] += 1
            # right where the store does not answer, in one line
            if done.returncode != 1 or not done.stderr.startswith((b"volfs: cannot use s3:", b"volfs: cannot look at s3:")) or done.stderr.count(b"\n") != 1:
                raise Wrong(f"a mount beside: {done.returncode}, {done.stderr[:300]}")
            return
        with open(os.path.join(self.point, ".volfs/status.json")) as file:
            pid = json.load(file)["pid"]
        for _ in range(self.dice.randrange(12)):
            try:
                path = self.what = self.dice.choice(self.paths)
                file = File(os.path.join(self.point, path), path, self.truth.of(path), 0)
                try:
                    Programs.pieces(self, file, 3)
                finally:
                    file.close()
            except OSError as error:
                if error.errno not in STORE_ERRORS:
                    raise Wrong(f"beside: {path}: {error}") from error
                self.done[errno.errorcode[error.errno]] += 1
        how = self.dice.choice(["kill", "terminate", "lazy", "umount"])
        if how in ("kill", "terminate"):
            os.kill(pid, 9 if how == "kill" else 15)
        if how != "terminate":
            subprocess.run([self.options.volfs, "umount", *["--lazy"] * (how == "lazy"), self.point], check=False, capture_output=True, timeout=HANGS)
        until = time.monotonic() + HANGS
        while os.path.exists(f"/proc/{pid}") or os.path.ismount(self.point):
            if time.monotonic() > until:
                raise Wrong(f"{how}: the daemon {pid} or its mount is left")
            time.sleep(0.05)
        self.done[f"ended by {how}"] += 1


class Shared:
    """What the processes share."""

    def __init__(self, count, pause):
        self.stop, self.pause = multiprocessing.Event(), pause
        self.beats = multiprocessing.Array("d", [time.monotonic()] * count, lock=False)
        self.results = multiprocessing.Queue()


def work(number, kind, arguments, shared):
    """What a process does until the end."""
    worker, told = kind(*arguments), time.monotonic()
    wrong = None
    while not shared.stop.is_set() and wrong is None:
        shared.beats[number] = time.monotonic()
        if shared.pause and os.path.exists(shared.pause):
            time.sleep(1)
            continue
        try:
            worker.step()
        except Exception as error:
            wrong = f"{arguments[0]}: {error!r}"
        if time.monotonic() > told + 5 or shared.stop.is_set() or wrong:
            shared.results.put((worker.done, worker.bytes, wrong))
            worker.done, worker.bytes, told = Counter(), 0, time.monotonic()
    shared.results.put((worker.done, worker.bytes, None))
    shared.beats[number] = float("inf")


class Serve:
    """`volfs serve` of a folder."""

    def __init__(self, options, source, log):
        command = [options.volfs, "serve", "--listen", "127.0.0.1:0", "--cache-size", "8MiB", "--log-file", log, source]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.address = self.process.stdout.readline().split("http://")[1].split("/")[0].strip()

    size = fsx.Mount.size

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        if self.process.wait(60):
            raise Wrong(f"serve ends with {self.process.returncode}")


def disk_usage(folder):
    total = 0
    for at, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(at, name)).st_blocks * 512
            except OSError:
                pass
    return total


class Diary:
    """Collects what workers tell and what daemons hold, and prints a line a minute."""

    def __init__(self, options, shared, daemons, cache, store):
        self.options, self.shared, self.daemons, self.cache, self.store = options, shared, daemons, cache, store
        self.began, self.paused, self.done, self.bytes, self.wrong, self.sizes = time.monotonic(), 0.0, Counter(), 0, [], []

    def seconds(self):
        return time.monotonic() - self.began - self.paused

    def collect(self):
        while not self.shared.results.empty():
            done, size, wrong = self.shared.results.get()
            self.done += done
            self.bytes += size
            if wrong:
                self.fail(wrong)

    def fail(self, text):
        self.wrong.append(text)
        print(f"WRONG: seed {self.options.seed}: {text}", flush=True)

    def look(self):
        """Notes what the daemons hold."""
        for name, daemon in self.daemons.items():
            status = Path(f"/proc/{daemon.pid}/status")
            if not status.exists() or "RssAnon" not in status.read_text():
                ended = daemon.process.poll() if name == "serve" else ""
                self.fail(f"the daemon of {name} has ended {ended}")
                return
        disk = disk_usage(self.cache)
        self.sizes.append(({name: daemon.size() for name, daemon in self.daemons.items()}, disk))
        if disk > self.options.disk_cache << 20:
            self.fail(f"the disk cache has {disk} bytes")
        if time.monotonic() - min(self.shared.beats) > HANGS + 60:
            self.fail(f"worker {np.argmin(self.shared.beats)} hangs")

    def line(self):
        sizes, disk = self.sizes[-1]
        held = "; ".join(f"{name} {d} fds {t} threads {m} MiB" for name, (d, t, m) in sizes.items())
        operations = sum(count for name, count in self.done.items() if name[0].islower() and "failed" not in name)
        operations += self.done["HTTP 200"] + self.done["HTTP 206"]
        errors = {name: count for name, count in sorted(self.done.items()) if name[0].isupper() and name not in ("HTTP 200", "HTTP 206") or " failed" in name or name.startswith("walk ")}
        print(f"{self.seconds() / 60:5.1f} min | {held} | disk {disk / 2**20:.0f} MiB | {operations} operations, {self.bytes / 1e9:.2f} GB | errors {errors} | faults {dict(self.store.counts())}", flush=True)

    def growth(self):
        """Compares the second fifth with the last."""
        fifth = len(self.sizes) // 5
        if fifth < 2:
            return
        for name in self.daemons:
            for n, what in enumerate(SLACK):
                early, late = (statistics.median(sizes[name][n] for sizes, _ in part) for part in (self.sizes[fifth : 2 * fifth], self.sizes[-fifth:]))
                most = max(sizes[name][n] for sizes, _ in self.sizes)
                print(f"{name}, {what}: median {early} in the second fifth, {late} in the last, {most} at most")
                if late > 1.1 * early + SLACK[what]:
                    self.fail(f"{name}: {what} grew from {early} to {late}")


def replacer(options, mount, folder, live, paths, truth, dice):
    """Returns what replaces datasets of a folder."""
    made = fsx.Replacer(mount, folder, paths, truth, dice)
    made.live = live
    made.stage = live + "-stage"
    os.makedirs(made.stage, exist_ok=True)
    return made


def replace_one(replacer):
    """Replaces a dataset, without a wait."""
    name = replacer.dice.choice(sorted(replacer.paths))
    replacer.now[name] ^= 1
    staged, live = os.path.join(replacer.stage, name), os.path.join(replacer.live, name)
    fsx.copied(os.path.join(replacer.versions, str(replacer.now[name]), name), staged)
    if os.path.isdir(staged) or replacer.dice.random() < 0.5:
        os.utime(staged)
    fsx.exchange(staged, live)
    shutil.rmtree(staged) if os.path.isdir(staged) else os.remove(staged)
    replacer.done += 1


def direct(options, diary, shared, local, remote, store):
    """Replaces, lets the store fail, and looks, until the time is up."""
    dice, next_line, next_look, outage, last = random.Random(options.seed), 0.0, 0.0, 0.0, time.monotonic()
    while diary.seconds() < options.minutes * 60 and not diary.wrong:
        if options.pause and os.path.exists(options.pause):
            began = time.monotonic()
            store.share.value = 0
            while os.path.exists(options.pause):
                time.sleep(2)
            diary.paused += time.monotonic() - began
        elif time.monotonic() > last + 60:
            diary.paused += time.monotonic() - last
            time.sleep(5)
        last, now = time.monotonic(), diary.seconds()
        if now > outage + 20 and dice.random() < 0.01:
            outage = now + dice.choice([3, 10, 30])
        store.share.value = 0.9 if now < outage else 0.025
        time.sleep(dice.choice([0.1, 0.5, 1, 3]))
        replace_one(local if dice.random() < 0.8 else remote)
        if local.done % 50 == 0:
            local.look()
        diary.collect()
        if now > next_look:
            diary.look()
            next_look = now + 5
        if now > next_line:
            diary.line()
            next_line = now + 60
        if os.geteuid() == 0 and dice.random() < 0.02:
            Path("/proc/sys/vm/drop_caches").write_text("1")
    shared.stop.set()


def soak(options, folder):
    """Runs all of it; returns what went wrong."""
    data = os.path.join(folder, "data")
    os.makedirs(data)
    write_volumes(data, options.seed)
    options.sources = sorted(path for pattern in DATA for path in glob.glob(str(ROOT / "tests/data" / pattern)) if not path.endswith(".json"))
    options.sources += [os.path.join(data, name) for name in sorted(os.listdir(data))]
    options.point = os.path.join(folder, "point")
    dice = random.Random(options.seed)
    paths, truths = prepare(options, folder, dice)
    truth, live, remote = Truth(truths), os.path.join(folder, "live"), os.path.join(folder, "remote")
    shutil.copytree(os.path.join(folder, "versions", "0"), os.path.join(remote, "data"))
    differing = {name: [path for path in files if fsx.is_changed(truth.of(path))] for name, files in paths.items()}
    differing = {name: files for name, files in differing.items() if files}
    single = {name: files for name, files in differing.items() if os.path.isfile(os.path.join(live, name))}
    flat = [path for files in paths.values() for path in files]
    print(f"{len(flat)} files of {len(paths)} datasets, {sum(len(truth.of(path)[0]) for path in flat) / 1e6:.0f} MB; {len(differing)} datasets have two versions, {len(single)} of them also in the store", flush=True)
    cache, logs = os.path.join(folder, "cache"), os.path.join(folder, "log")
    options.of_store = ["--cache-size", "8MiB", "--disk-cache", cache, "--disk-cache-size", f"{options.disk_cache}MiB", "--log-file", logs + "-store",
                        *(word for option in ["timeout=10s", "connect_timeout=5s", "retry_seconds=20"] for word in ["--store-option", option]), f"s3://{BUCKET}/data"]
    with FlakyStore(remote, options.seed) as store:
        os.environ.update(store.environment())
        options.environment = dict(os.environ)
        shown = os.path.join(folder, "shown")
        with (fsx.Mount(options, live, shown + "-local", "--cache-size", "8MiB", "--log-file", logs + "-local") as here,
              fsx.Mount(options, options.of_store[-1], shown + "-store", *options.of_store[:-1]) as there, Serve(options, live, logs + "-serve") as served):
            options.address = served.address
            kinds = [(Reader, here, False)] * 2 + [(Programs, here, False)] * 2 + [(Reader, there, True), (Programs, there, True), (Client, here, False), (Beside, there, True)]
            shared = Shared(len(kinds), options.pause)
            workers = [multiprocessing.Process(target=work, args=(n, kind, (f"{options.seed} {kind.__name__} {n}", options, mount.point, flat, truth, folder, fails), shared))
                       for n, (kind, mount, fails) in enumerate(kinds)]
            for worker in workers:
                worker.start()
            diary = Diary(options, shared, {"local": here, "store": there, "serve": served}, cache, store)
            local = replacer(options, here, folder, live, differing, truth, dice)
            beyond = replacer(options, there, folder, os.path.join(remote, "data"), single, truth, dice)
            try:
                direct(options, diary, shared, local, beyond, store)
            except Exception as error:
                diary.fail(f"replacing: {error!r}")
            finally:
                shared.stop.set()
                store.share.value = 0
                until = time.monotonic() + HANGS + 60
                while any(beat != float("inf") for beat in shared.beats) and time.monotonic() < until:
                    diary.collect()
                    time.sleep(0.2)
                diary.collect()
                if any(beat != float("inf") for beat in shared.beats):
                    diary.fail("a worker does not end")
                for worker in workers:
                    worker.kill()
            diary.line()
            diary.growth()
            time.sleep(fsx.SETTLED)
            for name, mount in [("local", here), ("store", there)]:
                now = mount.status()["now"]
                print(f"{name}, at rest: {mount.size()}, {now}")
                if any(now.values()):
                    diary.fail(f"{name}: something is open or in progress")
            checked = subprocess.run([options.volfs, "cache", "--check", cache], capture_output=True, text=True, check=False)
            print(f"{local.done} + {beyond.done} replacements, {local.looked} files looked at after; all done: {dict(sorted(diary.done.items()))}")
            print("disk cache:", checked.returncode, checked.stdout.strip()[-300:], checked.stderr.strip()[-300:])
            for log in sorted(glob.glob(logs + "-*")):
                lines = Path(log).read_text(errors="replace").splitlines()
                print(f"{Path(log).name}: {len(lines)} lines of log", *lines[-3:], sep="\n  ")
                for line in lines:
                    if "panic" in line:
                        diary.fail(line)
            return diary.wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("volfs", nargs="?", default="target/release/volfs", metavar="VOLFS")
    parser.add_argument("--minutes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--disk-cache", type=int, default=64, help="MiB")
    parser.add_argument("--pause", metavar="FILE")
    parser.add_argument("--folder", help="for temporary files, 3 GB")
    options = parser.parse_args()
    options.volfs = os.path.abspath(options.volfs)
    print(f"seed {options.seed}", flush=True)
    first = os.getpid()
    # workers inherit it
    signal.signal(signal.SIGTERM, lambda *_: setattr(options, "minutes", 0) if os.getpid() == first else os._exit(1))
    with tempfile.TemporaryDirectory(prefix="volfs-soak-", dir=options.folder) as folder:
        try:
            wrong = soak(options, folder)
        except Wrong as error:
            wrong = [str(error)]
    print("\n".join(wrong) or "all right")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
