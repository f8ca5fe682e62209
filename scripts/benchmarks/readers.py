"""Readers: programs that read a file, or a volume through a library, once, and say how long it took."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mounts import Absent, Failed, run

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Tools:
    """The programs and folders of a run, and how much it does."""

    volfs: Path
    nullfs: Path
    latency: Path
    mounts: Path
    data: Path
    edge: int
    rounds: int
    reads: int
    datasets: int


@dataclass(frozen=True)
class Reader:
    """A way to read a file from its beginning: dd, or into an array; through the page cache or past it."""

    name: str
    direct: bool
    array: bool

    def read(self, path, size, crc=False):
        """Reads `size` bytes, which is all there is: seconds and, if wanted and had, the CRC-32."""
        if not self.array:
            return dd(path, size, self.direct), None
        found = into_array(path, 0, size, self.direct, crc)
        return found["seconds"], found.get("crc32")


READERS = (Reader("dd", False, False), Reader("array", False, True), Reader("dd, O_DIRECT", True, False),
           Reader("array, O_DIRECT", True, True))


def dd_command(path, direct=False):
    """`dd` with pieces of 1 MiB."""
    return ["dd", f"if={path}", "of=/dev/null", "bs=1M", *(["iflag=direct"] if direct else [])]


def dd(path, size, direct=False):
    """Seconds that dd says it took."""
    return dd_seconds(run(*dd_command(path, direct))[1], size)


def dd_seconds(said, size):
    """The seconds in the last line of dd, if it read as much as it should."""
    found = re.search(r"^(\d+) bytes .* copied, ([0-9.e-]+) s", said, re.MULTILINE)
    if not found or int(found[1]) != size:
        raise Failed(f"dd read something else than {size} bytes: {said.strip()}")
    return float(found[2])


def dd_at_once(paths, size):
    """Several dd at once: seconds until the last is done."""
    running = [subprocess.Popen(dd_command(path), stderr=subprocess.PIPE, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
               for path in paths]
    return max(dd_seconds(one.communicate(timeout=900)[1], size) for one in running)


def into_array(path, offset, size, direct=False, crc=False):
    """Reads into a touched array: seconds, bytes, crc32."""
    flags = ["--direct"] * direct + ["--crc"] * crc
    return json.loads(run(sys.executable, HERE / "client.py", path, offset, size, *flags)[0])


def by_peer(volume, data, what, crc=False):
    """The reference library does the same: seconds, bytes, crc32."""
    driver = HERE / f"peer_{volume.peer}.py"
    return json.loads(run(sys.executable, driver, volume.path(data), what, *["--crc"] * crc)[0])


def latency(tools, path, mode, size):
    """Seconds of the median read of 4 KiB within the first `size` bytes."""
    return int(run(tools.latency, path, tools.reads, mode, size)[0].split()[0]) / 1e9


@dataclass(frozen=True)
class Array:
    """What lod0.json says of an array."""

    folder: Path
    shape: tuple[int, ...]
    brick: tuple[int, ...]
    axes: tuple[str, ...]
    size: int

    @classmethod
    def of(cls, folder):
        """LOD 0 of a layer's folder."""
        about = json.loads((folder / "lod0.json").read_text())
        return cls(folder, tuple(about["shape"]), tuple(about["brick_shape"]), tuple(a["name"] for a in about["axes"]),
                   about["size"])

    @property
    def raw(self):
        """The samples in row order."""
        return self.folder / "lod0.raw"

    @property
    def sample(self):
        """Bytes of a sample."""
        samples = 1
        for n in self.shape:
            samples *= n
        return self.size // samples

    def layer_of_bricks(self):
        """Decoded bytes of all bricks that the first plane touches."""
        return self.size // self.shape[0] * self.brick[0]

    def slice(self, axis):
        """File, offset and size of the middle slice across an axis."""
        path = self.folder / (f"lod0.by-{self.axes[axis]}.npy" if axis else "lod0.npy")
        if not path.exists():
            raise Absent(f"no {path.name}")
        size = self.size // self.shape[axis]
        # the header is not read: that would have the first bricks decoded
        header = path.stat().st_size - self.size
        return path, header + self.shape[axis] // 2 * size, size
