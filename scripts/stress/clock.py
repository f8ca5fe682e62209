#!/usr/bin/env python3
"""Sets the clock of a mount forwards and backwards while its source is read and overwritten.

    scripts/stress/clock.py [--seconds 120] [--volfs target/release/volfs] FILE

FILE is a plain ZGY file. The daemon runs with libfaketime (Debian's package libfaketime), which gives it another time
of day; the files keep their real times. Each second the clock is set to another hour of the day before or after. Two
readers compare every byte all the time. Every few seconds the copy of FILE that is mounted is overwritten in place, and
must show its new samples soon. At the end nothing may be busy: the daemon's processor time is measured for some seconds
when all files have aged. Prints the figures; the exit status is 1 if anything is wrong.
"""

import argparse
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

SOON = 5.0  # seconds; two on a machine that does nothing else
AGED = 50  # seconds after which a file that was written is not read again
LIBRARIES = ["/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1"]


class Mount:
    """A mount whose daemon has a clock of its own."""

    def __init__(self, options, source, folder):
        self.options, self.point, self.clock = options, os.path.join(folder, "mount"), os.path.join(folder, "clock")
        os.mkdir(self.point)
        self.set_clock(0)
        environment = {
            **os.environ,
            "LD_PRELOAD": options.faketime,
            "FAKETIME_TIMESTAMP_FILE": self.clock,
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }
        log = ["--log-file", os.path.join(folder, "log")]
        subprocess.run([options.volfs, "mount", *log, source, self.point], env=environment, check=True)

    def set_clock(self, ahead):
        """Sets the daemon's clock so many seconds ahead of the right time."""
        with open(self.clock + ".new", "w", encoding="ascii") as file:
            file.write(f"{ahead:+d}s\n")
        os.rename(self.clock + ".new", self.clock)

    def status(self):
        with open(os.path.join(self.point, ".volfs", "status.json"), encoding="utf-8") as file:
            return json.load(file)

    def processor_time(self):
        """Returns the seconds that the daemon has used."""
        with open(f"/proc/{self.status()['pid']}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        subprocess.run([self.options.volfs, "umount", "--lazy", self.point], check=False, stdout=subprocess.DEVNULL)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def read_loop(path, truths, stop, tally):
    """Compares a file with what it may be."""
    while not stop.is_set():
        try:
            found = read(path)
        except OSError:
            tally["errors"] += 1
            time.sleep(0.05)
            continue
        tally["bytes"] += len(found)
        tally["wrong"] += found not in truths


def overwrite(path, content):
    with open(path, "r+b", buffering=0) as file:
        file.write(content)


def shows(path, samples):
    """Returns the seconds until a file has these samples, or None."""
    begun = time.monotonic()
    while time.monotonic() - begun < SOON:
        try:
            if read(path) == samples:
                return time.monotonic() - begun
        except OSError:
            pass
        time.sleep(0.02)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--volfs", default="target/release/volfs")
    parser.add_argument("--faketime", default=next((f for p in LIBRARIES for f in glob.glob(p)), None))
    options = parser.parse_args()
    if not options.faketime:
        parser.error("libfaketime is not there: apt install libfaketime, or give --faketime")
    options.volfs = os.path.abspath(options.volfs)
    wrong = []
    with tempfile.TemporaryDirectory(prefix="volfs-clock-") as folder:
        source = os.path.join(folder, "source")
        os.mkdir(source)
        path = os.path.join(source, "x.zgy")
        content = read(options.file)
        other = content[: len(content) // 2] + bytes(byte ^ 0x10 for byte in content[len(content) // 2 :])
        samples = []
        for version in [other, content]:
            with open(path, "wb") as file:
                file.write(version)
            command = [options.volfs, "cat", path, "--layer", "data", "--lod", "0"]
            samples.append(subprocess.run(command, check=True, capture_output=True).stdout)
        shutil.copyfile(path, os.path.join(source, "still.zgy"))
        mount = Mount(options, source, folder)
        try:
            shown = [os.path.join(mount.point, name, "data", "lod0.raw") for name in ["x.zgy", "still.zgy"]]
            stop, tallies = threading.Event(), [{"bytes": 0, "errors": 0, "wrong": 0} for _ in shown]
            # the file that changes may be either version; which one is looked at below
            truths = [samples, samples[1:]]
            readers = [threading.Thread(target=read_loop, args=a) for a in zip(shown, truths, [stop] * 2, tallies)]
            for reader in readers:
                reader.start()
            dice, begun, sets, slowest, uptime, version = random.Random(1), time.monotonic(), 0, 0.0, 0.0, 1
            while time.monotonic() - begun < options.seconds:
                mount.set_clock(dice.choice([1, -1]) * dice.randrange(24) * 3600 + dice.randrange(-40, 40))
                sets += 1
                if sets % 4 == 0:
                    version = 1 - version
                    overwrite(path, [other, content][version])
                    mount.set_clock(dice.choice([1, -1]) * dice.randrange(24) * 3600)
                    took = shows(shown[0], samples[version])
                    slowest = max(slowest, took or SOON)
                    wrong += [f"old samples after {SOON} s"] * (took is None)
                now = mount.status()["uptime"]
                wrong += [f"the uptime went from {uptime} to {now}"] * (not uptime <= now <= uptime + 60)
                uptime = now
                time.sleep(1)
            stop.set()
            for reader in readers:
                reader.join()
            # the clock of a machine that was set wrong, and stays so
            mount.set_clock(-6 * 3600)
            for file in shown:
                read(file)
            time.sleep(AGED)
            before, bytes_before = mount.processor_time(), mount.status()["counters"]["source_bytes"]
            time.sleep(10)
            busy = mount.processor_time() - before
            again = mount.status()["counters"]["source_bytes"] - bytes_before
        finally:
            mount.end()
        lines = read(os.path.join(folder, "log")).decode().splitlines()
    wrong += [f"{tally['wrong']} reads of other bytes" for tally in tallies if tally["wrong"]]
    wrong += [f"{tallies[1]['errors']} errors of the file that nobody changed"] * (tallies[1]["errors"] > 0)
    wrong += [f"busy for {busy} s of 10, {again} bytes read"] * (busy > 1 or again > 0)
    compared = sum(tally["bytes"] for tally in tallies)
    print(f"the clock was set {sets} times; {compared} bytes compared; {tallies[0]['errors']} errors during writes")
    print(f"new samples were shown after {slowest:.1f} s at most; at rest {busy:.2f} s of 10 busy, {again} bytes read")
    print(f"{len(lines)} lines of log")
    print("\n".join(wrong) or "all right")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
