"""The measurements: each function returns rows of the table."""

import os
import subprocess
import time

import processor_time
from mounts import Absent, AnonymousMemory, Failed, Nullfs, Volfs
from peer import PAUSE
from readers import BOXES, BOX_CLIENTS, READERS, Array, boxes_read, by_peer, dd, dd_at_once, into_array, latency
from table import Row, Samples
from volumes import WORKING_BYTES, make_many, make_pair, prepare, touch_memory

MIB = 1 << 20
# the limit of memory of all decodes in flight; a single decode is always admitted
IN_FLIGHT_BYTES = 256 * MIB
NULLFS_SHARE_TARGETS = {False: 0.85, True: 0.7}
NULLFS_LATENCY_TARGET = 1 / 1.6
BIAS_TARGET = 1.4


class PeakMemory:
    """The peak memory of several mounts, and its limit."""

    def __init__(self, codec):
        self.codec, self.peak, self.ceiling = codec, None, None

    def record(self, mount, array):
        """Records a mount at the end of its run."""
        self.peak = max(self.peak or 0, mount.memory.peak)
        samples = 1
        for n in array.brick:
            samples *= n
        one = samples * WORKING_BYTES[self.codec]
        options = mount.status()["options"]
        in_flight = max(one, min(IN_FLIGHT_BYTES, one * int(options.get("threads") or os.cpu_count())))
        self.ceiling = int(options["cache_size"]) + 64 * MIB + in_flight


def peers(volume, tools, what, rows, crc, further=()):
    """Reads once with the reference library, for all of `rows`; returns its CRC-32. The time of another slice is for the
    rows `further`."""
    try:
        found = by_peer(volume, tools.data, what, crc)
    except Failed as problem:
        for row in rows:
            row.problem = row.problem or f"no peer: {problem}"
        return None
    for row in rows:
        row.peer[0 if what == "all" else int(what)].size = found["bytes"]
        row.peer[0 if what == "all" else int(what)].add(found["seconds"], found["processor"])
    for row in further:
        row.peer[int(what)].size = found["bytes"]
        row.peer[int(what)].add(found["further"]["seconds"], found["further"]["processor"])
    return found.get("crc32")


def whole(volume, tools):
    """Reads the whole volume in row order with each reader and with the peer, and as many bytes from nullfs."""
    rows = [Row(volume.title, reader.name, [Samples()], [Samples()], [Samples()],
                target=volume.targets[reader.direct],
                target_of_null=NULLFS_SHARE_TARGETS[reader.direct] if volume.plain else None) for reader in READERS]
    watched = [PeakMemory(volume.codec) for _ in rows]
    source, size = volume.path(tools.data), volume.size(tools)
    crcs = [None] * len(rows)
    for number in range(tools.rounds):
        for n, (row, reader) in enumerate(zip(rows, READERS)):
            prepare(source, size)
            try:
                with Volfs(tools, source) as mount:
                    array = Array.of(mount.layer(source.name))
                    row.ours[0].size = row.null[0].size = array.size
                    before = mount.processor()
                    found = reader.read(array.raw, array.size, crc=number == 0)
                    row.ours[0].add(found["seconds"], found["processor"], mount.processor() - before)
                    crcs[n] = found.get("crc32", crcs[n])
                    row.decoded.append(mount.counters()["bytes_decoded"] / array.size)
                    watched[n].record(mount, array)
            except Absent as absent:
                row.problem = f"n/a ({absent})"
        prepare(source, size)
        theirs = peers(volume, tools, "all", rows, crc=number == 0)
        for row, reader, crc in zip(rows, READERS, crcs):
            if row.ours[0].seconds:
                if number == 0 and theirs is not None and crc is not None:
                    row.same = theirs == crc
                prepare(source, size)
                with Nullfs(tools, row.null[0].size) as mount:
                    before = processor_time.of_mount(mount.daemon.pid)
                    found = reader.read(mount.file, mount.size)
                    row.null[0].add(found["seconds"], found["processor"], processor_time.of_mount(mount.daemon.pid) - before)
    for row, watch in zip(rows, watched):
        row.memory, row.ceiling = watch.peak, watch.ceiling
        if volume.plain:
            row.decoded = []
    return rows


def slices(volume, tools):
    """Reads the middle slice across each axis, on a mount where nothing is decoded yet, and then another slice."""
    def row(what, direct, bias):
        return Row(volume.title, what + (", O_DIRECT" if direct else ""), [Samples() for _ in range(3)],
                   [Samples() for _ in range(3)], timed=True, target=volume.slice_target, target_bias=bias)
    bias = None if volume.plain else BIAS_TARGET
    rows = [row("cold slices", direct, bias) for direct in (False, True)]
    further = [row("another slice", direct, None) for direct in (False, True)]
    watched = [PeakMemory(volume.codec) for _ in rows]
    source = volume.path(tools.data)
    for number in range(tools.rounds):
        for axis in range(3):
            crcs = [None, None]
            for row, another, watch, direct in zip(rows, further, watched, (False, True)):
                prepare(source)
                try:
                    with Volfs(tools, source) as mount:
                        array = Array.of(mount.layer(source.name))
                        path, offset, size = array.slice(axis)
                        before = mount.processor()
                        found = into_array(path, offset, size, direct, crc=number == 0)
                        row.ours[axis].size = size
                        row.ours[axis].add(found["seconds"], found["processor"], mount.processor() - before)
                        crcs[direct] = found.get("crc32")
                        watch.record(mount, array)
                        time.sleep(PAUSE)
                        path, offset, size = array.slice(axis, 4)
                        before = mount.processor()
                        found = into_array(path, offset, size, direct)
                        another.ours[axis].size = size
                        another.ours[axis].add(found["seconds"], found["processor"], mount.processor() - before)
                except Absent as absent:
                    row.problem = f"n/a ({absent})"
            prepare(source)
            theirs = peers(volume, tools, str(axis), rows, crc=number == 0, further=further)
            if number == 0 and theirs is not None:
                for row, crc in zip(rows, crcs):
                    if crc is not None:
                        row.same = row.same is not False and crc == theirs
    for row, watch in zip(rows, watched):
        row.memory, row.ceiling = watch.peak, watch.ceiling
    return rows + further


def boxes(volume, tools):
    """Reads boxes at random positions, on a mount where nothing is decoded yet: from a map of lod0.npy, and row by row."""
    rows = []
    for edge, count in BOXES.items():
        of_edge = [Row(volume.title, f"boxes of {edge}^3, {how}", [Samples()], [Samples()], timed=True)
                   for how in BOX_CLIENTS.values()]
        source = volume.path(tools.data)
        crcs = set()
        for number in range(tools.rounds):
            for row, client in zip(of_edge, BOX_CLIENTS):
                prepare(source)
                try:
                    with Volfs(tools, source) as mount:
                        layer = mount.layer(source.name)
                        row.ours[0].size = Array.of(layer).sample * edge**3
                        before = mount.processor()
                        found = a_box(boxes_read(client, layer / "lod0.npy", edge, count, number == 0), count)
                        row.ours[0].add(found["seconds"], found["processor"], (mount.processor() - before) / count)
                        needed = count * row.ours[0].size
                        row.decoded.append(mount.counters()["bytes_decoded"] / needed)
                        crcs.add(found.get("crc32"))
                except Absent as absent:
                    row.problem = f"n/a ({absent})"
            prepare(source)
            try:
                found = a_box(boxes_read(volume.peer, source, edge, count, number == 0), count)
            except Failed as problem:
                for row in of_edge:
                    row.problem = row.problem or f"no peer: {problem}"
                continue
            crcs.add(found.get("crc32"))
            for row in of_edge:
                row.peer[0].size = row.ours[0].size
                row.peer[0].add(found["seconds"], found["processor"])
        for row in of_edge:
            row.same = len(crcs - {None}) == 1 if row.peer[0].seconds else None
            row.decoded = [] if volume.plain else row.decoded
        rows += of_edge
    return rows


def a_box(found, count):
    """Returns what was found for all boxes, for one."""
    return found | {name: found[name] / count for name in ("seconds", "processor")}


def cache(volume, tools):
    """Scans with caches that hold a layer of bricks, or fractions of one."""
    parts = (1, 2, 4, 8)
    source = volume.path(tools.data)
    rows = [Row(volume.title, f"dd, cache of {'a layer' if n == 1 else f'1/{n} of a layer'} of bricks", [Samples()])
            for n in parts]
    watched = [PeakMemory(volume.codec) for _ in rows]
    try:
        with Volfs(tools, source) as mount:
            layer = Array.of(mount.layer(source.name)).layer_of_bricks()
        for _ in range(tools.rounds):
            for row, watch, part in zip(rows, watched, parts):
                prepare(source, volume.size(tools))
                with Volfs(tools, source, "--cache-size", str(layer // part)) as mount:
                    array = Array.of(mount.layer(source.name))
                    row.ours[0].size = array.size
                    row.ours[0].add(dd(array.raw, array.size))
                    row.decoded.append(mount.counters()["bytes_decoded"] / array.size)
                    watch.record(mount, array)
    except Absent as absent:
        rows[:] = [Row(volume.title, "dd, small caches", problem=f"n/a ({absent})")]
    for row, watch in zip(rows, watched):
        row.memory, row.ceiling = watch.peak, watch.ceiling
    return rows


def pair(volume, tools):
    """Scans two datasets at once; the peer column has one scan alone."""
    folder = make_pair(volume, tools.data)
    row = Row(volume.title, "two dd at once (as peer: one alone)", [Samples()], [Samples()])
    watch = PeakMemory(volume.codec)
    names = sorted(path.name for path in folder.iterdir())
    try:
        for _ in range(tools.rounds):
            for readers in (1, 2):
                prepare(folder, readers * volume.size(tools))
                with Volfs(tools, folder) as mount:
                    arrays = [Array.of(mount.layer(name)) for name in names[:readers]]
                    seconds = dd_at_once([array.raw for array in arrays], arrays[0].size)
                    side = row.peer[0] if readers == 1 else row.ours[0]
                    side.size = arrays[0].size * readers
                    side.add(seconds)
                    watch.record(mount, arrays[0])
    except Absent as absent:
        row.problem = f"n/a ({absent})"
    row.memory, row.ceiling = watch.peak, watch.ceiling
    return [row]


def pread(volume, tools):
    """Reads 4 KiB at a time, within the first plane and all over the volume; all bricks are decoded, none of the file
    is in the page cache."""
    source = volume.path(tools.data)
    kinds = (("in a plane, O_DIRECT", "direct", True), ("in a plane, pages dropped", "dropped", True),
             ("all over, O_DIRECT", "direct", False), ("all over, pages dropped", "dropped", False))
    rows = [Row(volume.title, f"4 KiB {name}", [Samples(4096)], null=[Samples(4096)], timed=True,
                target_of_null=NULLFS_LATENCY_TARGET) for name, _, _ in kinds]
    watched = PeakMemory(volume.codec)
    try:
        for _ in range(tools.rounds):
            prepare(source, volume.size(tools))
            with Volfs(tools, source) as mount:
                array = Array.of(mount.layer(source.name))
                dd(array.raw, array.size, direct=True)
                before = mount.counters()["bricks_decoded"]
                with Nullfs(tools, array.size) as null:
                    for row, (_, mode, near) in zip(rows, kinds):
                        size = array.size // (array.shape[0] if near else 1)
                        row.ours[0].add(latency(tools, array.raw, mode, size))
                        row.null[0].add(latency(tools, null.file, mode, size))
                if mount.counters()["bricks_decoded"] != before:
                    raise Failed("the cache does not hold the volume")
                watched.record(mount, array)
    except Absent as absent:
        rows[:] = [Row(volume.title, "4 KiB", problem=f"n/a ({absent})")]
    for row in rows:
        row.memory, row.ceiling = watched.peak, watched.ceiling
    return rows


def ceiling(tools):
    """Reads nullfs with its O_DIRECT reads split into parallel requests, as volfs has them."""
    size = 4 * tools.edge**3
    row = Row("nullfs", "dd, O_DIRECT, in parts side by side", [Samples(size)], null=[Samples(size)])
    for _ in range(tools.rounds):
        for samples, options in ((row.ours, ("split",)), (row.null, ())):
            touch_memory(size)
            with Nullfs(tools, size, *options) as mount:
                samples[0].add(dd(mount.file, size, direct=True))
    return [row]


def listing(flag, folder):
    """Runs ls; returns the seconds it takes."""
    begin = time.perf_counter()
    subprocess.run(["ls", flag, folder], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def many(tools):
    """Mounts a folder of many datasets: time to mount, time to list, memory."""
    folder = make_many(tools.data, tools.datasets)
    what = f"{tools.datasets} datasets"
    rows = [Row(what, how, [Samples()], [Samples()], timed=True)
            for how in ("mount", "ls -l (as peer: of the source)", "ls -lR, which opens all")]
    for _ in range(tools.rounds):
        with Volfs(tools, folder) as mount:
            bytes_now = AnonymousMemory(mount.status()["pid"]).bytes_now
            rows[0].ours[0].add(mount.took)
            rows[0].memory = max(rows[0].memory or 0, bytes_now())
            rows[1].peer[0].add(listing("-l", folder))
            for row, flag in zip(rows[1:], ("-l", "-lR")):
                row.ours[0].add(listing(flag, mount.at))
                row.memory = max(row.memory or 0, bytes_now())
    return rows
