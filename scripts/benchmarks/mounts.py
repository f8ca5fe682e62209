"""Mounts that last for one run: volfs, whose memory is sampled, and nullfs, which does no work."""

import contextlib
import json
import os
import subprocess
import threading
import time
from pathlib import Path

import processor_time

TIMEOUT = 60


class Failed(Exception):
    """A program that a measurement needs has failed."""


class Absent(Exception):
    """The mount does not show the file to be read."""


def run(*command, timeout=900):
    """Runs a program and returns its output and error output; raises Failed with the last error line if it fails."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout,
                              env={**os.environ, "LC_ALL": "C"})
    except subprocess.TimeoutExpired:
        raise Failed(f"{Path(command[0]).name} took more than {timeout} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Failed(f"{Path(command[0]).name}: {lines[-1]}")
    return done.stdout, done.stderr


class AnonymousMemory(threading.Thread):
    """Samples the anonymous memory (RssAnon) of a process every 10 ms."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self._file, self._end = pid, 0, Path(f"/proc/{pid}/status"), threading.Event()

    def bytes_now(self):
        """Returns the current bytes."""
        for line in self._file.read_text().splitlines():
            if line.startswith("RssAnon:"):
                return 1024 * int(line.split()[1])
        return 0

    def run(self):
        while not self._end.is_set():
            try:
                self.peak = max(self.peak, self.bytes_now())
            except OSError:
                return
            self._end.wait(0.01)

    def stop(self):
        """Ends the sampling."""
        self._end.set()
        self.join()


class Volfs:
    """A fresh mount of volfs."""

    def __init__(self, tools, source, *options):
        self.tools, self.at, self.command = tools, tools.mounts / "volfs", [source, tools.mounts / "volfs", *options]

    def __enter__(self):
        self.at.mkdir(parents=True, exist_ok=True)
        begin = time.perf_counter()
        try:
            run(self.tools.volfs, "mount", *self.command, timeout=TIMEOUT)
        except Failed as failed:
            if "not a volume of a format" in str(failed):
                raise Absent("this version of volfs does not read the format") from None
            raise
        self.took = time.perf_counter() - begin
        try:
            self.memory = AnonymousMemory(self.status()["pid"])
            self.memory.start()
        except BaseException:
            self.leave()
            raise
        return self

    def __exit__(self, *_):
        self.memory.stop()
        self.leave()

    def leave(self):
        """Unmounts; lazily if the mount is busy."""
        try:
            run(self.tools.volfs, "umount", self.at, timeout=TIMEOUT)
        except Failed:
            run(self.tools.volfs, "umount", "--lazy", self.at, timeout=TIMEOUT)
        with contextlib.suppress(OSError):
            self.at.rmdir()

    def status(self):
        """Returns the content of status.json."""
        return json.loads((self.at / ".volfs" / "status.json").read_text())

    def processor(self):
        """Returns the seconds of processor time that the daemon and its processes have used."""
        return processor_time.of_mount(self.memory.pid)

    def counters(self):
        """Returns the counters of status.json."""
        return self.status()["counters"]

    def layer(self, dataset):
        """Returns the folder of the first layer of a dataset."""
        folder = self.at / dataset
        if (folder / "error.txt").exists():
            raise Absent((folder / "error.txt").read_text().strip().splitlines()[0])
        found = sorted(folder.glob("*/lod0.raw")) if folder.is_dir() else []
        if not found:
            raise Absent(f"no {dataset}/*/lod0.raw")
        return found[0].parent


class Nullfs:
    """A fresh mount of nullfs with one file of a given size."""

    def __init__(self, tools, size, *options):
        self.tools, self.size, self.options, self.at = tools, size, options, tools.mounts / "nullfs"
        self.file = self.at / "null.raw"

    def __enter__(self):
        self.at.mkdir(parents=True, exist_ok=True)
        self.daemon = subprocess.Popen([self.tools.nullfs, self.at, str(self.size), *self.options], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + TIMEOUT
        while not self.file.exists():
            if self.daemon.poll() is not None:
                raise Failed(f"nullfs: {self.daemon.stderr.read().strip()}")
            if time.monotonic() > end:
                self.__exit__()
                raise Failed("nullfs does not answer")
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        command = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
        try:
            run(*command, self.at, timeout=TIMEOUT)
        except Failed:
            run(*command, "-l" if os.geteuid() == 0 else "-z", self.at, timeout=TIMEOUT)
        try:
            self.daemon.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
        self.daemon.stderr.close()
        with contextlib.suppress(OSError):
            self.at.rmdir()
