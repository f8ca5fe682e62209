"""Two builds of volfs, measured in turn: the ratio of their speeds in each round, with its spread, and their processor
time."""

import statistics
from dataclasses import dataclass, field

from mounts import Volfs
from readers import BOXES, BOX_CLIENTS, READERS, Array, boxes_read, into_array
from views import table
from volumes import prepare

HEAD = ("what", "how", "this", "other", "times the other", "processor, s/GiB", "other's")


@dataclass
class Pair:
    """A measurement of two programs: for each of them and each round seconds, and seconds of processor time of reader and
    mount together."""

    what: str
    how: str
    size: int = 0
    seconds: tuple = field(default_factory=lambda: ([], []))
    processor: tuple = field(default_factory=lambda: ([], []))

    def cells(self):
        """Returns the text of each column of HEAD."""
        ratios = [other / this for this, other in zip(*self.seconds)]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f})"
        used = [f"{statistics.median(values) / self.size * 2**30:.2f}" for values in self.processor]
        return self.what, self.how, *(rate(self.size, values) for values in self.seconds), spread, *used


def rate(size, seconds):
    """Formats a speed."""
    return f"{size / statistics.median(seconds) / 1e6:.0f} MB/s"


def compare(volume, programs, measurements):
    """Returns a pair for each measurement. These have a name and a function that reads from the folder of a layer, and
    returns bytes, seconds and seconds of processor time of the reader. All have fresh mounts, in turn."""
    source = volume.path(programs[0].data)
    pairs = [Pair(volume.title, how) for how, _ in measurements]
    for number in range(programs[0].rounds):
        for pair, (_, read) in zip(pairs, measurements):
            # the first one of a round has no advantage or drawback that stays
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                prepare(source, volume.size(programs[0]))
                with Volfs(programs[which], source) as mount:
                    layer, before = mount.layer(source.name), mount.processor()
                    found = read(layer)
                    pair.size = found["bytes"]
                    pair.seconds[which].append(found["seconds"])
                    pair.processor[which].append(found["processor"] + mount.processor() - before)
    return pairs


def whole(volume, *programs):
    """Compares reading the whole volume, with each reader."""
    def by(reader):
        def read(layer):
            array = Array.of(layer)
            return reader.read(array.raw, array.size) | {"bytes": array.size}

        return reader.name, read

    return compare(volume, programs, [by(reader) for reader in READERS])


def slices(volume, *programs):
    """Compares reading the middle slice across each axis."""
    def across(axis):
        return f"cold slice across axis {axis}", lambda layer: into_array(*Array.of(layer).slice(axis))

    return compare(volume, programs, [across(axis) for axis in range(3)])


def boxes(volume, *programs):
    """Compares reading boxes at random positions."""
    def of(edge, count, client, how):
        def read(layer):
            size = Array.of(layer).sample * edge**3 * count
            return boxes_read(client, layer / "lod0.npy", edge, count) | {"bytes": size}

        return f"boxes of {edge}^3, {how}", read

    every = [of(edge, count, *client) for edge, count in BOXES.items() for client in BOX_CLIENTS.items()]
    return compare(volume, programs, every)


KINDS = {"whole": whole, "slices": slices, "boxes": boxes}


def markdown(pairs):
    """Formats the table."""
    return table(HEAD, [pair.cells() for pair in pairs])
