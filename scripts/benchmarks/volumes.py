"""The test volumes and how they are written, once, below the data folder."""

import mmap
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mounts import Absent

HERE = Path(__file__).parent
# bytes per sample of a brick that a decoder of the codec needs beyond the cache: coded and decoded form
WORKING_BYTES = {"raw": 0, "zfp": 8, "zip": 8, "wavelet": 20, "lz4": 4, "chunks": 8}


@dataclass(frozen=True)
class Volume:
    """A test volume: its recipe, its reference library, and the targets of volfs relative to that library."""

    name: str
    title: str
    codec: str
    recipe: tuple[str, ...]
    # peer's time / time of volfs, through the page cache and past it
    targets: tuple[float | None, float | None] = (None, None)

    @property
    def plain(self):
        """Whether its bricks need no decoding."""
        return self.codec == "raw"

    @property
    def slice_target(self):
        """The target for one cold slice: peer's time / time of volfs."""
        return 0.7 if self.recipe[0] == "wkw" else 1.5

    @property
    def peer(self):
        """The reference library of the format."""
        return {"zgy": "openzgy", "vds": "openvds", "wkw": "wkw", "hdf5": "h5py", "chunks": "tensorstore"}[self.recipe[0]]

    def size(self, tools):
        """Returns the bytes of its samples."""
        return tools.edge**3 * {"dtype=uint8": 1, "dtype=uint16": 2}.get(self.recipe[1] if len(self.recipe) > 1 else "", 4)

    def path(self, data):
        """Returns its path, with the extension of the format."""
        return data / (self.name + {"zgy": ".zgy", "vds": ".vds", "hdf5": ".h5"}.get(self.recipe[0], ""))

    def make(self, data, edge):
        """Writes it unless it exists; returns the reason if that fails."""
        path = self.path(data)
        if path.exists():
            return None
        kind, *words = self.recipe
        return write(kind, path, edge, words)


def write(kind, path, edge, words):
    """Writes a volume with make_data.py; returns the reason if that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove(path.with_name("new-" + path.name))
    made = subprocess.run([sys.executable, HERE / "make_data.py", kind, path, str(edge), *words],
                          capture_output=True, text=True)
    return None if made.returncode == 0 else last_line(made.stderr)


def remove(path):
    """Removes a file or folder that an interrupted run may have left."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def last_line(text):
    """Returns the last line that a program printed: Python and volfs print the reason there."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no reason given"


def vds(method, brick, codec, target):
    """Returns a VDS volume compressed by one of openvds' methods."""
    return Volume(f"vds-{method.lower()}-{brick}", f"VDS {method} {brick}", codec,
                  ("vds", f"method={method}", "tolerance=1", f"brick={brick}"), (target, target))


VOLUMES = (
    Volume("zgy-plain", "ZGY plain", "raw", ("zgy",)),
    Volume("zgy-zfp", "ZGY ZFP 30 dB", "zfp", ("zgy", "snr=30"), (1.7, 1.7)),
    vds("None", 64, "raw", None),
    vds("Zip", 64, "zip", 1.7),
    vds("Zip", 128, "zip", 1.7),
    vds("Wavelet", 64, "wavelet", 1.8),
    vds("Wavelet", 128, "wavelet", 1.8),
    vds("WaveletLossless", 64, "wavelet", 2.5),
    vds("WaveletLossless", 128, "wavelet", 2.5),
    Volume("wkw-raw-uint8", "WKW raw uint8", "raw", ("wkw", "dtype=uint8", "blocks=raw")),
    Volume("wkw-raw-uint16", "WKW raw uint16", "raw", ("wkw", "dtype=uint16", "blocks=raw")),
    Volume("wkw-lz4-uint8", "WKW LZ4 uint8", "lz4", ("wkw", "dtype=uint8", "blocks=lz4"), (1.0, 1.3)),
    Volume("wkw-lz4-uint16", "WKW LZ4 uint16", "lz4", ("wkw", "dtype=uint16", "blocks=lz4"), (1.0, 1.3)),
)


def chunked(name, title, dtype="uint16", codec="chunks"):
    """Returns a volume in chunks, of which tensorstore is the peer."""
    return Volume(name, title, codec, ("chunks", f"dtype={dtype}", f"of={name}"), (1.0, 1.0))


CHUNKED = (
    chunked("zarr3-shards", "Zarr v3 zstd, shards of 32"),
    chunked("zarr3-zstd", "Zarr v3 zstd 64"),
    chunked("zarr3-raw", "Zarr v3 raw 64", codec="raw"),
    chunked("zarr2-blosc", "Zarr v2 blosc lz4 64"),
    chunked("n5-gzip", "N5 gzip 64"),
    chunked("precomputed-segments", "precomputed segments 64", "uint32"),
    Volume("hdf5-plain", "HDF5 contiguous", "raw", ("hdf5",)),
    Volume("hdf5-deflate", "HDF5 shuffle, deflate 64", "zip", ("hdf5", "chunk=64x64x64"), (2.5, 2.5)),
    Volume("hdf5-planes", "HDF5 shuffle, deflate (1, 512, 512)", "zip", ("hdf5", "chunk=1x512x512"), (2.5, 2.5)),
)


def load_pages(path):
    """Reads a file, or all files of a folder, into the kernel's page cache."""
    buffer = bytearray(1 << 22)
    for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
        with file.open("rb", buffering=0) as stream:
            while stream.readinto(buffer):
                pass


def touch_memory(size):
    """Allocates memory and frees it. The host of a virtual machine may have reclaimed memory that was free for some
    seconds; the next user of such a page pays some µs for it, more than reading it costs."""
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE):
        pass


def prepare(source, size=0):
    """Prepares a run of volfs, nullfs or the peer: loads the source into the page cache, and touches free memory for
    the array of the reader, the pages of the kernel, and decoded bricks."""
    load_pages(source)
    touch_memory(3 * size + (64 << 20))


def make_pair(volume, data):
    """Returns a folder with two copies of a volume, to be read at once."""
    folder = data / f"pair-{volume.name}"
    source = volume.path(data)
    for half in ("a", "b"):
        copy = folder / (half + source.suffix)
        if not copy.exists():
            folder.mkdir(exist_ok=True)
            fresh = data / f"new-{copy.name}"
            remove(fresh)
            shutil.copytree(source, fresh) if source.is_dir() else shutil.copyfile(source, fresh)
            fresh.rename(copy)
    return folder


def make_many(data, count):
    """Returns a folder with `count` copies of a small ZGY file."""
    folder = data / f"many-{count}"
    if not folder.exists():
        small, fresh = data / "small.zgy", data / f"new-{folder.name}"
        problem = write("zgy", small, 16, ["brick=16"])
        if problem:
            raise Absent(f"cannot be written: {problem}")
        remove(fresh)
        fresh.mkdir()
        for number in range(count):
            shutil.copyfile(small, fresh / f"survey{number:05}.zgy")
        fresh.rename(folder)
    return folder
