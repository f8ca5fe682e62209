"""A small ZGY writer based only on the format's specification.

It writes files that the reference library cannot write: versions 1 and 2, unusual sample types and coding ranges,
bricks at unaligned offsets, unusual table entries, headers at unusual positions. `Raw.truth` keeps the input as the
expectation.
"""

import math
import random
import struct

import numpy as np
import zfpy

# sample type: code in the file -> (name, NumPy type)
TYPES = {
    0: ("int8", "<i1"), 1: ("uint8", "<u1"), 2: ("int16", "<i2"), 3: ("uint16", "<u2"),
    4: ("int32", "<i4"), 5: ("uint32", "<u4"), 6: ("float32", "<f4"), 7: ("ibmfloat32", "<u4"),
}
I8, U8, I16, U16, I32, U32, F32, IBM = range(8)

MISSING, ONE = 0, 1  # table entries with a special meaning
CONSTANT, COMPRESSED = 0x80 << 56, 0xC0 << 56
REVERSIBLE = dict(tolerance=-1)  # requests the reversible mode from zfpy


def lod_bricks(size, bs):
    """Returns the bricks along each axis, for each level."""
    n = tuple(-(-s // b) for s, b in zip(size, bs))
    out = [n]
    while max(n) > 1:
        n = tuple((x + 1) // 2 for x in n)
        out.append(n)
    return out


def lod_shape(size, lod):
    return tuple((s + (1 << lod) - 1) >> lod for s in size)


def lut_starts(lods, alpha=False):
    """Returns the first table entry of each level (the coarsest comes first), and the table's length."""
    count = [n[0] * n[1] * (1 if alpha else n[2]) for n in lods]
    return [sum(count[lod + 1:]) for lod in range(len(lods))], sum(count)


def usable_lods(entries, lods):
    """Returns the number of usable levels: one if the brick of the last level was never written but some brick of level
    0 was."""
    starts, _ = lut_starts(lods)
    return len(lods) if entries[0] != MISSING or not any(entries[starts[0]:]) else 1


def safe_range(code, rng):
    """Returns the coding range in use; None for float samples."""
    if code in (F32, IBM):
        return None
    lo, hi = (float(np.float32(x)) for x in rng)
    if math.isfinite(lo) and math.isfinite(hi) and lo < hi:
        return lo, hi
    info = np.iinfo(TYPES[code][1])
    return float(info.min), float(info.max)


def scaling(code, rng):
    """Returns slope and intercept: value = (stored * slope + intercept), in double precision."""
    info = np.iinfo(TYPES[code][1])
    slope = (rng[1] - rng[0]) / float(info.max - info.min)
    return slope, rng[0] - slope * info.min


def default_storage(code, rng):
    """Returns the value of never written bricks: the stored value nearest to zero, halves rounded away from zero."""
    if code in (F32, IBM):
        return 0.0
    info = np.iinfo(TYPES[code][1])
    slope, intercept = scaling(code, rng)
    v = (0.0 - intercept) / slope
    return int(max(info.min, min(info.max, math.copysign(math.floor(abs(v) + 0.5), v))))


def subtile(brick):
    """Reorders a brick as in version 1: columns of 8 x 8 traces of full height."""
    return np.ascontiguousarray(brick.reshape(8, 8, 8, 8, 64).transpose(0, 2, 1, 3, 4))


def uuid_bytes(n):
    return struct.pack("<IHH", 0x00112233 + n, 0x4455, 0x4677) + bytes([0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, n])


class Raw:
    """A ZGY file written by hand. Every header field can be set by name."""

    def __init__(self, version, code, size, bs=(16, 16, 16), **fields):
        self.version, self.code, self.size = version, code, size
        self.bs = (64, 64, 64) if version == 1 else bs
        self.dtype = np.dtype(TYPES[code][1])
        self.lods = lod_bricks(size, self.bs)
        self.starts, self.count = lut_starts(self.lods)
        self.entry = [MISSING] * self.count  # finished entries
        self.blob = {}             # entry index -> (bytes, compressed or not)
        self.truth = {}            # lod -> input array
        self.alpha = None          # alpha entries, or None: all zero
        self.alpha_tiles = False   # store real alpha tiles
        self.shuffled = False      # bricks in random order
        self.aligned = True        # plain bricks begin at multiples of their size
        self.gap = 0               # unused bytes before each brick
        self.tail = b""            # bytes after the last brick
        last = size[0] - 1, size[1] - 1
        self.f = f = dict(
            magic=b"VBS\0", codingrange=(-128.0, 127.0), orig=(1.0, 20.0, 0.0), inc=(1.0, 1.0, 4.0),
            gpx=(0.0, 25.0 * last[0], 0.0, 25.0 * last[0]), gpy=(0.0, 0.0, 12.5 * last[1], 12.5 * last[1]),
            stats=(0, 0.0, 0.0, 0.0, 0.0), srctype=code, gdef=3, hdim=1, hunit=1.0, vdim=2, vunit=0.001,
            strings=b"made\0by hand\0\0m\0ms\0", coordtype=1, parts=["info", "hist", "alpha", "brick"])
        f.update(fields)
        (il, xl, _), (dil, dxl, _) = f["orig"], f["inc"]
        f.setdefault("gpiline", (il, il + dil * last[0]) * 2)
        f.setdefault("gpxline", (xl, xl, xl + dxl * last[1], xl + dxl * last[1]))

    @property
    def brick_bytes(self):
        return math.prod(self.bs) * self.dtype.itemsize

    def index(self, lod, i, j, k):
        """Returns the index of a brick in the table: inline runs fastest."""
        n = self.lods[lod]
        return self.starts[lod] + i + n[0] * (j + n[1] * k)

    def box(self, i, j, k):
        return tuple(slice(x * b, x * b + b) for x, b in zip((i, j, k), self.bs))

    def fill(self, data, lods=None, zfp=None):
        """Stores `data` at level 0 and every second sample of the level above in each other level.

        zfp(lod, i, j, k) gives the arguments of zfpy.compress_numpy, or None for a plain brick."""
        for lod, n in enumerate(self.lods):
            if lods is None or lod in lods:
                seen = data.copy()
                for at in np.ndindex(*n):
                    part = data[self.box(*at)]
                    brick = np.pad(part, [(0, b - s) for b, s in zip(self.bs, part.shape)], mode="edge")
                    how = zfp(lod, *at) if zfp else None
                    if how is None:
                        stored = subtile(brick) if self.version == 1 else brick
                        self.blob[self.index(lod, *at)] = (stored.astype(self.dtype).tobytes(), False)
                    else:
                        stored = zfpy.compress_numpy(brick, **how)
                        self.blob[self.index(lod, *at)] = (stored, True)
                        seen[self.box(*at)] = zfpy.decompress_numpy(stored)[tuple(slice(0, s) for s in part.shape)]
                self.truth[lod] = seen
            data = np.ascontiguousarray(data[::2, ::2, ::2])
        return self

    def special(self, lod, at, entry, value=None):
        """Replaces a brick by a finished table entry, which reads as `value`."""
        ix = self.index(lod, *at)
        self.blob.pop(ix, None)
        self.entry[ix] = entry
        if value is not None:
            self.truth[lod][self.box(*at)] = value
        return self

    def const(self, lod, at, value, junk=0):
        """Makes a brick constant; `junk` fills the unused bits of the entry."""
        bits = int.from_bytes(np.array(value, self.dtype).tobytes(), "little")
        return self.special(lod, at, CONSTANT | junk << 40 | bits, value)

    def missing(self, lod, at):
        return self.special(lod, at, MISSING, default_storage(self.code, safe_range(self.code, self.f["codingrange"])))

    def histogram(self):
        lo, hi = self.f["codingrange"]
        bins = np.zeros(256, np.int64)
        if 0 in self.truth and self.code in (I8, I16):
            d = self.truth[0].astype(np.int64) - np.iinfo(self.dtype).min
            bins = np.bincount((d >> (8 * self.dtype.itemsize - 8)).ravel(), minlength=256)
        if self.version == 1:
            return struct.pack("<ff256I", hi, lo, *map(int, bins))
        return struct.pack("<qff256q", int(bins.sum()), lo, hi, *map(int, bins))

    def info(self):
        f = self.f
        if self.version == 1:
            return struct.pack(
                "<3i3i3i3f4i4i4d4dBB", *self.size, *map(int, f["orig"]), *map(int, f["inc"]), 1, 1, 1,
                *map(int, f["gpiline"]), *map(int, f["gpxline"]), *f["gpx"], *f["gpy"], self.code, f["coordtype"])
        return struct.pack(
            "<3iB2f16s16s16sB3f3f3i3i3iqddff3f3fB2d2d4f4f4d4dBdBdI", *self.bs, self.code, *f["codingrange"],
            uuid_bytes(1), uuid_bytes(2), uuid_bytes(3), f["srctype"], *f["orig"], *f["inc"], *self.size,
            0, 0, 0, *self.size, *f["stats"], *f["orig"], *(float(a * b) for a, b in zip(f["inc"], self.size)),
            f["gdef"], 0, 0, 0, 0, *f["gpiline"], *f["gpxline"], *f["gpx"], *f["gpy"],
            f["hdim"], f["hunit"], f["vdim"], f["vunit"], len(f["strings"]))

    def place_headers(self, lengths):
        """Returns where each part of the header begins, and where the last one ends."""
        if self.version != 1:
            at, pos = {"info": 9, "strings": 346}, 346 + len(self.f["strings"])
            for part in ("hist", "alpha", "brick"):
                at[part] = pos
                pos += lengths[part]
            return at, pos
        at, pos = {}, 40
        for part in self.f["parts"]:  # a number is a gap
            if not isinstance(part, int):
                at[part] = pos
            pos += part if isinstance(part, int) else lengths[part]
        return at, pos

    def pack(self, values):
        """Packs 64-bit integers; version 1 has the most significant half first."""
        if self.version == 1:
            values = [v >> 32 | (v & 0xFFFFFFFF) << 32 for v in values]
        return struct.pack("<%dQ" % len(values), *values)

    def build(self):
        """Returns the bytes of the file. Sets `at` to the positions and `final` to the table."""
        info, hist = self.info(), self.histogram()
        _, alphas = lut_starts(self.lods, alpha=True)
        lengths = {"info": len(info), "hist": len(hist), "alpha": 8 * alphas, "brick": 8 * self.count}
        self.at, pos = self.place_headers(lengths)
        chunks = []

        alpha = self.alpha or [MISSING] * alphas
        if self.alpha_tiles:
            tile = self.bs[0] * self.bs[1]
            alpha = [pos + n * tile for n in range(alphas)]
            chunks += [(p, bytes([n % 2]) * tile) for n, p in enumerate(alpha)]
            pos += alphas * tile

        order = sorted(self.blob)
        if self.shuffled:
            random.Random(12345).shuffle(order)
        entry = list(self.entry)
        for ix in order:
            data, compressed = self.blob[ix]
            pos += self.gap
            if self.aligned and not compressed:
                pos = -(-pos // self.brick_bytes) * self.brick_bytes
            entry[ix] = COMPRESSED | pos if compressed else pos
            chunks.append((pos, data))
            pos += len(data)
        self.final = entry

        out = bytearray(self.f["magic"] + struct.pack("<I", self.version))
        if self.version == 1:
            out += self.pack([self.at[part] for part in ("info", "alpha", "brick", "hist")])
        else:
            chunks.append((self.at["strings"], self.f["strings"]))
        chunks += [(self.at["info"], info), (self.at["hist"], hist),
                   (self.at["alpha"], self.pack(alpha)), (self.at["brick"], self.pack(entry))]
        for offset, data in sorted(chunks):
            out.extend(bytes(max(0, offset - len(out))))
            out[offset:offset + len(data)] = data
        return bytes(out) + self.tail
