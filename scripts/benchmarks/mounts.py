"""Mounts that last for one run: volfs with its memory watched, and nullfs, which does no work."""

import contextlib
import json
import os
import subprocess
import threading
import time
from pathlib import Path

PATIENCE = 60


class Failed(Exception):
    """A program that a measurement needs did not do its part."""


class Absent(Exception):
    """The mount does not show what was to be read."""


def run(*command, patience=900):
    """Standard output of a program; [`Failed`] with its last words if it fails."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=patience,
                              env={**os.environ, "LC_ALL": "C"})
    except subprocess.TimeoutExpired:
        raise Failed(f"{Path(command[0]).name} took more than {patience} s") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Failed(f"{Path(command[0]).name}: {said[-1]}")
    return done.stdout, done.stderr


class Anonymous(threading.Thread):
    """Watches the anonymous memory (RssAnon) of a process, every 10 ms."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.most, self._file, self._end = 0, Path(f"/proc/{pid}/status"), threading.Event()

    def look(self):
        """Bytes at this moment."""
        for line in self._file.read_text().splitlines():
            if line.startswith("RssAnon:"):
                return 1024 * int(line.split()[1])
        return 0

    def run(self):
        while not self._end.is_set():
            try:
                self.most = max(self.most, self.look())
            except OSError:
                return
            self._end.wait(0.01)

    def stop(self):
        """No more looks."""
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
            run(self.tools.volfs, "mount", *self.command, patience=PATIENCE)
        except Failed as failed:
            if "not a volume of a format" in str(failed):
                raise Absent("this version of volfs does not read the format") from None
            raise
        self.took = time.perf_counter() - begin
        try:
            self.memory = Anonymous(self.status()["pid"])
            self.memory.start()
        except BaseException:
            self.leave()
            raise
        return self

    def __exit__(self, *_):
        self.memory.stop()
        self.leave()

    def leave(self):
        """Unmounts; at once if somebody still reads."""
        try:
            run(self.tools.volfs, "umount", self.at, patience=PATIENCE)
        except Failed:
            run(self.tools.volfs, "umount", "--lazy", self.at, patience=PATIENCE)
        with contextlib.suppress(OSError):
            self.at.rmdir()

    def status(self):
        """What the mount says of itself."""
        return json.loads((self.at / ".volfs" / "status.json").read_text())

    def counters(self):
        """What it has done so far."""
        return self.status()["counters"]

    def layer(self, dataset):
        """The folder of the first layer of a dataset."""
        folder = self.at / dataset
        if (folder / "error.txt").exists():
            raise Absent((folder / "error.txt").read_text().strip().splitlines()[0])
        found = sorted(folder.glob("*/lod0.raw")) if folder.is_dir() else []
        if not found:
            raise Absent(f"no {dataset}/*/lod0.raw")
        return found[0].parent


class Nullfs:
    """A fresh mount of nullfs with one file of a size."""

    def __init__(self, tools, size, *options):
        self.tools, self.size, self.options, self.at = tools, size, options, tools.mounts / "nullfs"
        self.file = self.at / "null.raw"

    def __enter__(self):
        self.at.mkdir(parents=True, exist_ok=True)
        self.daemon = subprocess.Popen([self.tools.nullfs, self.at, str(self.size), *self.options], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + PATIENCE
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
            run(*command, self.at, patience=PATIENCE)
        except Failed:
            run(*command, "-l" if os.geteuid() == 0 else "-z", self.at, patience=PATIENCE)
        try:
            self.daemon.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
        self.daemon.stderr.close()
        with contextlib.suppress(OSError):
            self.at.rmdir()
