#!/usr/bin/env python3
"""The life cycle of mounts under load: kills, terminations, lazy and busy unmounts, mount over mount.

    scripts/stress/life.py [--rounds 100] [--readers 8] [--volfs target/release/volfs] SOURCE

SOURCE is a folder of datasets, or a file. The first reading of each file, from a mount that nothing happens to, is the
truth for all later ones. Eight processes read all the time and compare every byte. The table at the end says how often
each thing was done, how many bytes were compared, and what hung or was left behind, which must be nothing: the exit
status is 1 otherwise. Only the standard library is needed.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 30  # seconds after which anything counts as hanging


def run(*command):
    """Runs a command; returns its exit status, or None if it hangs."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        try:
            _, said = child.communicate(timeout=LIMIT)
            if child.returncode and command[1] == "mount" and b" already" not in said:
                print(said.decode(errors="replace").strip(), flush=True)
            return child.returncode
        except subprocess.TimeoutExpired:
            child.kill()
            return None


def read(path, size):
    """Reads a file in pieces of odd sizes, past what a mount before may have left in the page cache."""
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while piece := file.read(size):
            yield piece


def reader(number, truths, mountpoint, counts, mismatches, beats):
    """Reads random files for ever, and compares them."""
    dice = random.Random(number)
    files = sorted(truths)
    while True:
        name = dice.choice(files)
        truth = truths[name]
        offset = 0
        beats[number] = time.monotonic()
        try:
            for piece in read(os.path.join(mountpoint, name), dice.choice([4096, 65536, 100_000, 1 << 20])):
                if truth[offset : offset + len(piece)] != piece:
                    mismatches[number] += 1
                offset += len(piece)
                counts[number] += len(piece)
                beats[number] = time.monotonic()
            if offset != len(truth):
                mismatches[number] += 1
        except OSError:
            time.sleep(0.002)  # dead, or between two mounts


def daemons(mountpoint):
    """Returns the processes of volfs that name this mount point."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{pid}/stat") as file:
                zombie = file.read().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            continue
        if b"mount" in words[1:2] and os.fsencode(mountpoint) in words and not zombie:
            found.append(int(pid))
    return found


def mounts(mountpoint):
    with open("/proc/mounts") as file:
        return sum(line.split()[1] == mountpoint for line in file)


def wait(condition):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Stress:
    def __init__(self, volfs, source, rounds, readers):
        self.volfs, self.source, self.rounds = os.path.abspath(volfs), os.path.abspath(source), rounds
        self.folder = tempfile.TemporaryDirectory(prefix="volfs-life-")
        self.mountpoint = os.path.join(self.folder.name, "mount")
        os.mkdir(self.mountpoint)
        self.table = []
        self.failures = []
        self.readers = readers

    def fail(self, text):
        self.failures.append(text)
        print("FAILED:", text, flush=True)

    def mount(self):
        status = run(self.volfs, "mount", "--cache-size", "16MiB", self.source, self.mountpoint)
        if status != 0:
            self.fail("volfs mount hangs" if status is None else f"volfs mount: exit status {status}")
        return self.pid()

    def pid(self):
        try:
            with open(os.path.join(self.mountpoint, ".volfs/status.json")) as file:
                return json.load(file)["pid"]
        except OSError as error:
            self.fail(f"status.json: {error}")
            return None

    def umount(self, *arguments):
        return run(self.volfs, "umount", *arguments, self.mountpoint)

    def learn(self):
        """Reads every file once."""
        self.mount()
        self.truths = {}
        for folder, _, names in os.walk(self.mountpoint):
            for name in names:
                path = os.path.join(folder, name)
                below = os.path.relpath(path, self.mountpoint)
                if below.startswith(".volfs") or name == "dataset.json":
                    continue
                try:
                    with open(path, "rb") as file:
                        self.truths[below] = file.read()
                except OSError:
                    pass  # a damaged dataset
        if self.umount() != 0:
            self.fail("the first unmount")

    def start_readers(self):
        shared = multiprocessing.Array
        self.counts, self.mismatches = shared("Q", self.readers, lock=False), shared("Q", self.readers, lock=False)
        self.beats = shared("d", self.readers, lock=False)
        self.processes = [
            multiprocessing.Process(
                target=reader, args=(n, self.truths, self.mountpoint, self.counts, self.mismatches, self.beats), daemon=True
            )
            for n in range(self.readers)
        ]
        for process in self.processes:
            process.start()

    def all_read(self):
        """Waits until readers have read something of the present mount."""
        before = sum(self.counts)
        if not wait(lambda: sum(self.counts) > before + (1 << 20)):
            self.fail("readers get nothing")

    def no_reader_hangs(self):
        begin = time.monotonic()
        if not wait(lambda: all(beat > begin for beat in self.beats)):
            self.fail("a reader hangs")

    def nothing_left(self, what):
        if not wait(lambda: mounts(self.mountpoint) == 0):
            self.fail(f"{what}: a mount is left")
        if not wait(lambda: not daemons(self.mountpoint)):
            self.fail(f"{what}: processes are left: {daemons(self.mountpoint)}")

    def phase(self, name, rounds, action):
        began, bytes_before, failures = time.monotonic(), sum(self.counts), len(self.failures)
        remounts = 0
        for number in range(rounds):
            remounts += action(number) or 0
            self.no_reader_hangs()
        self.nothing_left(name)
        compared = sum(self.counts) - bytes_before
        self.table.append((name, rounds, remounts, compared, len(self.failures) - failures, time.monotonic() - began))

    def ends_by(self, which):
        def action(number):
            pid = self.mount()
            self.all_read()
            if pid is None:
                return 0
            os.kill(pid, which)
            if which == signal.SIGKILL and not wait(lambda: pid not in daemons(self.mountpoint)):
                self.fail("a killed daemon does not end")
            if which == signal.SIGKILL and number % 2:
                # every other time the next mount clears the dead one
                return 1
            if which == signal.SIGKILL and self.umount() not in (0,):
                self.fail("volfs umount of a dead mount")
            if not wait(lambda: mounts(self.mountpoint) == 0):
                self.fail(f"{which.name}: a mount is left")
            return 1

        return action

    def last_kill_is_cleared(self, which):
        action = self.ends_by(which)

        def both(number):
            done = action(number)
            if number == self.rounds - 1 and mounts(self.mountpoint):
                self.umount()
            return done

        return both

    def busy_and_lazy(self, _):
        self.mount()
        self.all_read()
        held = open(os.path.join(self.mountpoint, min(self.truths)), "rb")
        if self.umount() != 1:
            self.fail("a busy mount is not refused")
        if self.umount("--lazy") != 0:
            self.fail("volfs umount --lazy")
        # what is open stays readable
        if held.read() != self.truths[min(self.truths)]:
            self.fail("a file of a lazily unmounted mount")
        held.close()
        return 1

    def over_mount(self, number):
        self.mount()
        if run(self.volfs, "mount", self.source, self.mountpoint) != 1:
            self.fail("a mount over a mount is not refused")
        # another program's mount on top: volfs leaves it alone
        on_top = os.geteuid() == 0 and run("mount", "-t", "tmpfs", "none", self.mountpoint) == 0
        if on_top:
            if self.umount("--lazy") != 1:
                self.fail("volfs umount takes away the mount of another program")
            run("umount", "-l", self.mountpoint)
        self.all_read()
        if self.umount("--lazy") != 0:
            self.fail("volfs umount --lazy")
        return 1

    def several_mounts(self, number):
        others = []
        for n in range(3):
            place = os.path.join(self.folder.name, f"other{n}")
            os.makedirs(place, exist_ok=True)
            if run(self.volfs, "mount", self.source, place) != 0:
                self.fail("one of several mounts")
            others.append(place)
        self.mount()
        with open(os.path.join(others[0], ".volfs/status.json")) as file:
            os.kill(json.load(file)["pid"], signal.SIGKILL)
        name = min(self.truths)
        for place in others[1:]:
            with open(os.path.join(place, name), "rb") as file:
                if file.read() != self.truths[name]:
                    self.fail("bytes of one of several mounts")
        for place in others:
            if run(self.volfs, "umount", place) != 0:
                self.fail(f"volfs umount of one of several mounts ({place})")
            if not wait(lambda: mounts(place) == 0 and not daemons(place)):
                self.fail("one of several mounts leaves something")
        self.all_read()
        if self.umount("--lazy") != 0:
            self.fail("volfs umount --lazy")
        return 4

    def run(self):
        self.learn()
        digest = hashlib.sha256(b"".join(self.truths[name] for name in sorted(self.truths))).hexdigest()[:16]
        size = sum(map(len, self.truths.values()))
        print(f"{len(self.truths)} files, {size / 1e6:.1f} MB, {digest}; {self.readers} readers", flush=True)
        self.start_readers()
        few = max(2, self.rounds // 5)
        self.phase("SIGTERM", self.rounds, self.ends_by(signal.SIGTERM))
        self.phase("SIGKILL", self.rounds, self.last_kill_is_cleared(signal.SIGKILL))
        self.phase("busy, then lazy unmount", few, self.busy_and_lazy)
        self.phase("mount over mount", few, self.over_mount)
        self.phase("several mounts, one killed", few, self.several_mounts)
        for process in self.processes:
            process.kill()
        print(f"\n{'':28}{'rounds':>8}{'mounts':>8}{'GB compared':>13}{'failures':>10}{'seconds':>9}")
        for name, rounds, remounts, compared, failures, seconds in self.table:
            print(f"{name:28}{rounds:8}{remounts:8}{compared / 1e9:13.2f}{failures:10}{seconds:9.0f}")
        wrong = sum(self.mismatches)
        print(f"\nwrong bytes: {wrong}; hangs, leftovers and other failures: {len(self.failures)}")
        for process in self.processes:
            process.join(LIMIT)
        self.folder.cleanup()
        return 1 if wrong or self.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--volfs", default="target/release/volfs")
    options = parser.parse_args()
    sys.exit(Stress(options.volfs, options.source, options.rounds, options.readers).run())


if __name__ == "__main__":
    main()
