"""Opens files by handle, as a server of NFS does, after the kernel has forgotten them; prints how many it opened.

    handles.py MOUNTPOINT [HANDLES]      with HANDLES, of a mount before, each must be refused
"""

import ctypes
import errno
import json
import os
import sys

AT_FDCWD = -100
LIBC = ctypes.CDLL(None, use_errno=True)


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("kind", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]


def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def handle_of(path):
    handle, mount = Handle(128), ctypes.c_int()
    called(LIBC.name_to_handle_at(AT_FDCWD, os.fsencode(path), ctypes.byref(handle), ctypes.byref(mount), 0))
    return [handle.kind, bytes(handle.data[: handle.bytes]).hex()]


def opened(top, kind, data):
    data = bytes.fromhex(data)
    handle = Handle(len(data), kind, (ctypes.c_ubyte * 128)(*data))
    return called(LIBC.open_by_handle_at(top, ctypes.byref(handle), os.O_RDONLY))


point, before = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
top = os.open(point, os.O_RDONLY)
if before:
    with open(before) as file:
        handles = json.load(file)
    for path, handle in handles.items():
        try:
            os.close(opened(top, *handle))
            sys.exit(f"{path}: a handle of the mount before opens a file")
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
    print(len(handles))
    sys.exit()

paths = [os.path.join(folder, name) for folder, _, names in os.walk(point) for name in names if ".volfs" not in folder]
truths, handles = {}, {}
for path in paths[:: max(1, len(paths) // 60)]:
    with open(path, "rb") as file:
        truths[path] = file.read()
    handles[path] = handle_of(path)
folder = os.path.dirname(paths[0])
of_folder, inode = handle_of(folder), os.stat(folder).st_ino
for path, handle in handles.items():
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("2")
    with open(opened(top, *handle), "rb") as file:
        if file.read() != truths[path]:
            sys.exit(f"{path}: other bytes by its handle")
with open("/proc/sys/vm/drop_caches", "w") as file:
    file.write("2")
found = opened(top, *of_folder)
assert os.fstat(found).st_ino == inode
# the kernel asks for what is above it, up to the mount point
above = os.open("..", os.O_RDONLY, dir_fd=found)
assert os.fstat(above).st_ino == os.stat(os.path.dirname(folder)).st_ino
print(json.dumps(handles))
