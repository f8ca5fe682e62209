"""Readers: programs that read a file, or a volume through a library, once, and measure the time."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import processor_time
from mounts import Absent, Failed, run

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Tools:
    """The programs, folders and sizes of a run."""

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
    """A way to read a file from its beginning: with dd or into an array, through the page cache or past it."""

    name: str
    direct: bool
    array: bool

    def read(self, path, size, crc=False):
        """Reads the whole file of `size` bytes; returns seconds, seconds of processor time and, if requested and
        available, the CRC-32."""
        if not self.array:
            before = processor_time.of_children()
            seconds = dd(path, size, self.direct)
            return {"seconds": seconds, "processor": processor_time.of_children() - before}
        return into_array(path, 0, size, self.direct, crc)


# edges of boxes, and how many a round reads: so few that they hardly overlap, as in a volume of real size
BOXES = {64: 4, 128: 2}
# how they are read from a mount, by client of box_reader.py
BOX_CLIENTS = {"mapped": "mapped", "rows": "a pread for each row"}
READERS = (Reader("dd", False, False), Reader("array", False, True), Reader("dd, O_DIRECT", True, False),
           Reader("array, O_DIRECT", True, True))


def dd_command(path, direct=False):
    """Returns the command line of dd, with blocks of 1 MiB."""
    return ["dd", f"if={path}", "of=/dev/null", "bs=1M", *(["iflag=direct"] if direct else [])]


def dd(path, size, direct=False):
    """Runs dd; returns the seconds that it reports."""
    return dd_seconds(run(*dd_command(path, direct))[1], size)


def dd_seconds(report, size):
    """Returns the seconds in the report of dd; fails if it did not read `size` bytes."""
    found = re.search(r"^(\d+) bytes .* copied, ([0-9.e-]+) s", report, re.MULTILINE)
    if not found or int(found[1]) != size:
        raise Failed(f"dd did not read {size} bytes: {report.strip()}")
    return float(found[2])


def dd_at_once(paths, size):
    """Runs several dd at once; returns the seconds of the slowest."""
    running = [subprocess.Popen(dd_command(path), stderr=subprocess.PIPE, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
               for path in paths]
    return max(dd_seconds(one.communicate(timeout=900)[1], size) for one in running)


def into_array(path, offset, size, direct=False, crc=False):
    """Reads into a touched array; returns seconds, processor, bytes, crc32."""
    flags = ["--direct"] * direct + ["--crc"] * crc
    return json.loads(run(sys.executable, HERE / "client.py", path, offset, size, *flags)[0])


def by_peer(volume, data, what, crc=False):
    """Reads with the reference library; returns seconds, processor, bytes, crc32."""
    driver = HERE / f"peer_{volume.peer}.py"
    return json.loads(run(sys.executable, driver, volume.path(data), what, *["--crc"] * crc)[0])


def boxes_read(client, path, edge, count, crc=False):
    """Reads boxes at random positions; returns seconds (of all), processor, bytes, crc32."""
    found = json.loads(run(sys.executable, HERE / "box_reader.py", client, path, edge, count, *["--crc"] * crc)[0])
    return found | {"seconds": sum(found["seconds"])}


def latency(tools, path, mode, size):
    """Returns the median seconds of a 4 KiB read within the first `size` bytes."""
    return int(run(tools.latency, path, tools.reads, mode, size)[0].split()[0]) / 1e9


@dataclass(frozen=True)
class Array:
    """An array as described by lod0.json."""

    folder: Path
    shape: tuple[int, ...]
    brick: tuple[int, ...]
    axes: tuple[str, ...]
    size: int

    @classmethod
    def of(cls, folder):
        """Reads lod0.json of a layer's folder."""
        about = json.loads((folder / "lod0.json").read_text())
        return cls(folder, tuple(about["shape"]), tuple(about["brick_shape"]), tuple(a["name"] for a in about["axes"]),
                   about["size"])

    @property
    def raw(self):
        """The file of samples in row order."""
        return self.folder / "lod0.raw"

    @property
    def sample(self):
        """Bytes per sample."""
        samples = 1
        for n in self.shape:
            samples *= n
        return self.size // samples

    def layer_of_bricks(self):
        """Returns the decoded bytes of all bricks that the first plane touches."""
        return self.size // self.shape[0] * self.brick[0]

    def slice(self, axis, part=2):
        """Returns file, offset and size of the slice across an axis after one of `part` equal parts."""
        path = self.folder / (f"lod0.by-{self.axes[axis]}.npy" if axis else "lod0.npy")
        if not path.exists():
            raise Absent(f"no {path.name}")
        size = self.size // self.shape[axis]
        # reading the header would make volfs decode the first bricks
        header = path.stat().st_size - self.size
        return path, header + self.shape[axis] // part * size, size
