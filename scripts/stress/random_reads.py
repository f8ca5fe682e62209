"""Reads of files at random, in every way that Linux has, compared with what the files must have. Used by fsx.py."""

import errno
import mmap
import os
import random
import tempfile
from collections import Counter

PAGE = mmap.PAGESIZE
OPEN = 12  # files that a worker has open
OF_REPLACED = {errno.EIO, errno.ESTALE, errno.ENOENT, errno.ENOTDIR}
ADVICE = [getattr(os, f"POSIX_FADV_{name}") for name in "DONTNEED WILLNEED SEQUENTIAL RANDOM NORMAL".split()]
MAP_ADVICE = [getattr(mmap, f"MADV_{name}") for name in "DONTNEED WILLNEED SEQUENTIAL RANDOM NORMAL".split()]


class Wrong(Exception):
    """Bytes, sizes or names that are not those of any version."""


class Truth:
    """What a file has in each version, mapped."""

    def __init__(self, folders):
        self.folders, self.maps = folders, {}

    def of(self, path):
        if path not in self.maps:
            self.maps[path] = [self.map(os.path.join(folder, path)) for folder in self.folders]
        return self.maps[path]

    def map(self, path):
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) if os.path.getsize(path) else b""


class File:
    """An open file, the versions that all its bytes so far were of, and where it stands."""

    def __init__(self, path, name, versions, flags):
        self.name, self.versions, self.at, self.map, self.flags = name, list(versions), 0, None, flags
        self.number = os.open(path, os.O_RDONLY | flags)

    def keep(self, versions, what):
        """Notes which versions it can be of, as `what` shows."""
        if not versions:
            raise Wrong(f"{what}: of no version, or of another than before")
        self.versions = versions

    def expect(self, offset, length, got, what):
        self.keep([version for version in self.versions if version[offset : offset + length] == got], what)

    def close(self):
        if self.map:
            self.map.close()
        os.close(self.number)


def in_child(action):
    """Runs an action in a child, since a map of a file that was replaced ends whoever reads it."""
    end, start = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(start, action())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(start)
    with open(end, "rb") as file:
        got = file.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise OSError(errno.EIO, "in a map")
    return got


class Worker:
    """Opens files and reads them at random."""

    def __init__(self, seed, point, paths, truth, scratch, replaces):
        self.dice, self.point, self.paths, self.truth, self.scratch = random.Random(seed), point, paths, truth, scratch
        self.replaces, self.files, self.done, self.bytes, self.what = replaces, [], Counter(), 0, ""
        self.operations = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("do_")]

    def step(self):
        """Does one thing."""
        if len(self.files) > OPEN:
            self.files.pop(self.dice.randrange(len(self.files))).close()
        operation, arguments = self.open, []
        if self.files and self.dice.random() < 0.95:
            operation, arguments = self.dice.choice(self.operations), [self.dice.choice(self.files)]
        name = operation.__name__.removeprefix("do_")
        try:
            operation(*arguments)
            self.done[name] += 1
        except OSError as error:
            if error.errno == errno.ENODEV and name == "map":
                self.done["no shared maps"] += 1
            elif self.replaces and error.errno in OF_REPLACED:
                self.done[errno.errorcode[error.errno]] += 1
            else:
                raise Wrong(f"{name} {self.what}: {error}") from error

    def open(self):
        # large ones more often
        path = self.what = max(self.dice.choices(self.paths, k=2), key=lambda path: len(self.truth.of(path)[0]))
        flags = self.dice.choice([0, 0, 0, os.O_DIRECT, os.O_NOATIME])
        self.files.append(File(os.path.join(self.point, path), path, self.truth.of(path), flags))

    def place(self, file, most=1 << 20):
        """Returns an offset and a length: odd, at edges of pages, at and beyond the end, of no bytes."""
        size, dice = len(file.versions[0]), self.dice
        offset = dice.choice([dice.randrange(size + 1), dice.randrange(size + 1) // PAGE * PAGE, size, 0])
        offset = max(0, offset + dice.choice([0, 0, 1, -1, 7, dice.randrange(-PAGE, PAGE), -3 * PAGE]))
        length = dice.choice([0, 1, PAGE, dice.randrange(PAGE), dice.randrange(1 << 17), dice.randrange(most)])
        if file.flags & os.O_DIRECT and dice.random() < 0.8:
            offset, length = offset // PAGE * PAGE, (length + PAGE) // PAGE * PAGE
        self.what = f"{file.name}, {length} bytes at {offset}, open with {file.flags:#o}"
        return offset, length

    def got(self, file, offset, length, piece):
        """Compares what was read. Only an error may end it earlier than the file."""
        if self.replaces and 0 < len(piece) < length and not any(len(piece) + offset == len(v) for v in file.versions):
            length = len(piece)
            file.expect(offset, length, piece, self.what)
            os.pread(file.number, 1, offset + length)  # which fails
            raise Wrong(f"{self.what}: {length} are there, and the next are no error")
        file.expect(offset, length, piece, self.what)
        self.bytes += len(piece)

    def do_pread(self, file):
        offset, length = self.place(file)
        self.got(file, offset, length, os.pread(file.number, length, offset))

    def do_read_on(self, file):
        to, length = self.place(file)
        if self.dice.random() < 0.3:
            file.at = os.lseek(file.number, to, os.SEEK_SET)
        self.what += f", from {file.at} on"
        piece = os.read(file.number, length)
        self.got(file, file.at, length, piece)
        file.at += len(piece)

    def do_seek_data(self, file):
        offset, _ = self.place(file)
        try:
            data, hole = (os.lseek(file.number, offset, way) for way in [os.SEEK_DATA, os.SEEK_HOLE])
            fits = lambda version: offset <= hole <= len(version) and offset <= data and not any(version[offset:data])
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            fits = lambda version: offset >= len(version)
        os.lseek(file.number, file.at, os.SEEK_SET)
        file.keep([version for version in file.versions if fits(version)], f"holes in {self.what}")

    def do_map(self, file):
        places = [self.place(file, 1 << 18)]
        if self.dice.random() < 0.5:
            places = [(self.dice.randrange(len(file.versions[0]) + 1), 1) for _ in range(self.dice.randrange(50))]
        advice, flags = self.dice.choice(MAP_ADVICE), self.dice.choice([mmap.MAP_SHARED, mmap.MAP_PRIVATE])

        def read():
            if not file.map and os.fstat(file.number).st_size:
                file.map = mmap.mmap(file.number, 0, flags=flags, prot=mmap.PROT_READ)
            if file.map:
                file.map.madvise(advice)
            return b"".join(file.map[offset : offset + length] for offset, length in places) if file.map else b""

        content = in_child(read) if self.replaces else read()
        of_version = [b"".join(version[at : at + length] for at, length in places) for version in file.versions]
        fitting = [version for version, wanted in zip(file.versions, of_version, strict=True) if wanted == content]
        file.keep(fitting, f"{self.what}, mapped: {places[:3]}")
        self.bytes += len(content)

    def do_advise(self, file):
        offset, length = self.place(file)
        os.posix_fadvise(file.number, offset, length, self.dice.choice(ADVICE))

    def do_sendfile(self, file):
        self.copy(file, lambda to, at, left: os.sendfile(to, file.number, at, left))

    def do_splice(self, file):
        def send(to, at, left):
            # what fits into a pipe
            count = os.splice(file.number, start, min(left, PAGE), at)
            return os.splice(end, to, count) if count else 0

        end, start = os.pipe()
        try:
            self.copy(file, send)
        finally:
            os.close(end)
            os.close(start)

    def copy(self, file, send):
        """Compares what the kernel copies into another file."""
        offset, length = self.place(file)
        with tempfile.TemporaryFile(dir=self.scratch) as to:
            sent = 0
            while sent < length and (count := send(to.fileno(), offset + sent, length - sent)):
                sent += count
            self.got(file, offset, length, os.pread(to.fileno(), length, 0))

    def do_stat(self, file):
        self.what = file.name
        size = os.fstat(file.number).st_size
        file.keep([version for version in file.versions if len(version) == size], f"the size {size} of {file.name}")
        if os.path.basename(file.name) not in os.listdir(os.path.join(self.point, os.path.dirname(file.name))):
            raise OSError(errno.ENOENT, "not listed", file.name)

    def do_open_again(self, file):
        self.what = file.name
        self.files.append(File(f"/proc/self/fd/{file.number}", file.name, file.versions, 0))
