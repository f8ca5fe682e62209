"""Makes every call that changes or opens files at a mount and at a folder of a read-only file system of the kernel that has the
same files, and prints each call whose result is another.

    errors.py MOUNTPOINT FOLDER FILE      FILE is a path in both, at least two folders deep

The calls and paths are those that pjdfstest has for a file system that cannot be written to: calls on files, folders, missing
names, names and paths that are too long, what lies below a file.
"""

import errno
import os
import stat
import sys
from pathlib import Path

LONGEST_NAME = "n" * 255


def opening(flags):
    def call(path):
        os.close(os.open(path, flags, 0o600))

    return call


def of_descriptor(call):
    def opened(path):
        number = os.open(path, os.O_RDONLY)
        try:
            call(number)
        finally:
            os.close(number)

    return opened


def calls(other):
    """Returns what can be called with a path; `other` is a file of the same file system."""
    names = ["RDONLY", "WRONLY", "RDWR", "WRONLY|TRUNC", "RDONLY|TRUNC", "RDWR|APPEND", "RDONLY|DIRECTORY", "RDONLY|NOFOLLOW", "PATH",
             "PATH|NOFOLLOW", "RDONLY|CREAT", "WRONLY|CREAT", "RDWR|CREAT|EXCL", "RDONLY|CREAT|DIRECTORY", "RDWR|TMPFILE",
             "WRONLY|NONBLOCK", "RDONLY|NOATIME"]
    flags = {name: sum(getattr(os, f"O_{part}") for part in name.split("|")) for name in names}
    return {
        **{f"open {name}": opening(bits) for name, bits in flags.items()},
        "chmod": lambda path: os.chmod(path, 0o600),
        "chown": lambda path: os.chown(path, 1, 1),
        "lchown": lambda path: os.lchown(path, 1, 1),
        "truncate": lambda path: os.truncate(path, 0),
        "truncate to less than nothing": lambda path: os.truncate(path, -1),
        "mkdir": os.mkdir,
        "rmdir": os.rmdir,
        "unlink": os.unlink,
        "mkfifo": os.mkfifo,
        "mknod": lambda path: os.mknod(path, stat.S_IFREG | 0o600),
        "symlink": lambda path: os.symlink("x", path),
        "link to": lambda path: os.link(path, f"{other}.new"),
        "link from": lambda path: os.link(other, path),
        "rename to": lambda path: os.rename(path, f"{other}.new"),
        "rename from": lambda path: os.rename(other, path),
        "rename to itself": lambda path: os.rename(path, path),
        "utime": lambda path: os.utime(path, (1, 1)),
        "utime of a link": lambda path: os.utime(path, (1, 1), follow_symlinks=False),
        "stat": os.stat,
        "lstat": os.lstat,
        "readlink": os.readlink,
        "statvfs": os.statvfs,
        "scandir": lambda path: os.scandir(path).close(),
        "access": lambda path: [os.access(path, mode) for mode in (os.F_OK, os.R_OK, os.W_OK, os.X_OK)],
        "getxattr": lambda path: os.getxattr(path, "user.none"),
        "setxattr": lambda path: os.setxattr(path, "user.none", b"1"),
        "removexattr": lambda path: os.removexattr(path, "user.none"),
        "ftruncate": of_descriptor(lambda number: os.ftruncate(number, 0)),
        "write": of_descriptor(lambda number: os.write(number, b"x")),
        "fchmod": of_descriptor(lambda number: os.fchmod(number, 0o600)),
        "fchown": of_descriptor(lambda number: os.fchown(number, 1, 1)),
        "fallocate": of_descriptor(lambda number: os.posix_fallocate(number, 0, 1)),
        "read": of_descriptor(lambda number: len(os.read(number, 1))),
        "pread behind the end": of_descriptor(lambda number: os.pread(number, 1, 1 << 40)),
        "pread before the begin": of_descriptor(lambda number: os.pread(number, 1, -1)),
        "seek before the begin": of_descriptor(lambda number: os.lseek(number, -1, os.SEEK_SET)),
        "fsync": of_descriptor(os.fsync),
        "fdatasync": of_descriptor(os.fdatasync),
    }


def paths(file):
    """Returns paths below a root, by what they are."""
    folder = os.path.dirname(file)
    return {
        "a file": file, "a folder": folder, "the root": ".", "nothing": f"{folder}/missing", "in nothing": f"{folder}/missing/x",
        "below a file": f"{file}/x", "a file with a slash": f"{file}/", "a folder with a slash": f"{folder}/",
        "nothing with a slash": f"{folder}/missing/", "a file and .": f"{file}/.", "a file and ..": f"{file}/..",
        "a folder and .": f"{folder}/.", "a folder and ..": f"{folder}/..", "above nothing": f"{folder}/missing/..",
        "the longest name": f"{folder}/{LONGEST_NAME}", "too long a name": f"{folder}/{LONGEST_NAME}n",
        "in the longest name": f"{LONGEST_NAME}/x", "too long a path": f"{folder}/" + "./" * 2048 + "x",
        "a path of the longest length": "./" * 2000 + file, "an empty name": "",
    }


def result(call, path):
    try:
        value = call(path)
    except OSError as error:
        return errno.errorcode[error.errno]
    return value if isinstance(value, (list, int, bytes)) else "succeeds"


mountpoint, folder, file = map(Path, sys.argv[1:])
results = {}
for root in (folder, mountpoint):
    os.chdir(root)
    for name, call in calls(str(root / file)).items():
        for kind, path in paths(str(file)).items():
            results[root, name, kind] = result(call, path)
for root, name, kind in results:
    if root == mountpoint and (got := results[root, name, kind]) != (expected := results[folder, name, kind]):
        print(f"{name}: {kind}: {got} in place of {expected}")
print(f"{len(results) // 2} calls")
