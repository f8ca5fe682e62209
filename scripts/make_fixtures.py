#!/usr/bin/env python3
"""Writes the ZGY files of tests/data, with the results that a reader must give.

    make_fixtures.py OUT

Writes OUT/zgy/X.zgy with OUT/zgy/X.json, and OUT/demo/north.zgy. Needs `pip install numpy zfpy pyzgy`; pyzgy brings the
reference library, OpenZGY in Python. The output is reproducible to the byte.

The reference library writes the files; those that it cannot write come from zgy_by_hand.py. The JSON has the results of
the reference library; for files that it reads wrongly or not at all, the input samples are the expectation, as "oracle"
states. A few files have X.lodN.npy ("npy"), all have a CRC-32 of the samples. A file that a reader must refuse has
"invalid": true, with "stage": "open" (and "message", a part of the reader's message) or "read" (and "damaged_bricks",
the only ones that must be unreadable). Numbers that are not finite are strings.
"""

import json
import math
import os
import random
import struct
import sys
import warnings
import zlib

import numpy as np
import zfpy

from zgy_by_hand import (COMPRESSED, F32, I8, I16, I32, MISSING, ONE, REVERSIBLE, TYPES, U8, U16, U32, Raw,
                         default_storage, lod_shape, lut_starts, safe_range, scaling, usable_lods)

warnings.filterwarnings("ignore")
import openzgy.api as zgy  # noqa: E402

NAN, INF = float("nan"), float("inf")


# ------------------------------------------------------------------ test signals

def triangle(x, period):
    """Returns a triangle wave in exact integers: -period/2 .. period/2."""
    m = np.mod(x, 2 * period)
    return np.minimum(m, 2 * period - m) - period // 2


def smooth(shape):
    """Returns a smooth, compressible signal, exactly representable as float32."""
    i, j, k = np.ogrid[:shape[0], :shape[1], :shape[2]]
    v = (triangle(2 * i + 3 * j + 5 * k, 96) * (64 + triangle(i - j + k, 40))
         + 16 * triangle(7 * k + i, 33) + 11 * triangle(5 * j - 2 * i, 29))
    return (v / 64.0).astype(np.float32)


def scrambled(shape, code):
    """Returns samples that are a hash of their position, so that misplaced ones are detected."""
    i, j, k = (a.astype(np.uint64) for a in np.ogrid[:shape[0], :shape[1], :shape[2]])
    mask = np.uint64(0xFFFFFFFF)
    h = (i * np.uint64(73856093) + j * np.uint64(19349663) + k * np.uint64(83492791)) & mask
    h = ((h ^ (h >> np.uint64(15))) * np.uint64(0x2C1B3C6D)) & mask
    h = ((h ^ (h >> np.uint64(12))) * np.uint64(0x297A2D39)) & mask
    h = (h ^ (h >> np.uint64(15))).astype(np.uint32)
    if code == F32:
        return ((h.astype(np.int64) - 2**31).astype(np.float64) / 2**20).astype("<f4")
    dtype = np.dtype(TYPES[code][1])
    return (h >> np.uint32(32 - 8 * dtype.itemsize)).astype(dtype.str.replace("i", "u")).view(dtype)


def rotated_corners(n, degrees, spacing=(25.0, 12.5), left_handed=False, origin=(431955.25, 7348400.5)):
    """Returns the world corners of a survey of n lines, rotated about its first corner."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    along, across = spacing[0] * (n[0] - 1), spacing[1] * (n[1] - 1) * (-1 if left_handed else 1)
    return tuple((origin[0] + p * along * c - q * across * s, origin[1] + p * along * s + q * across * c)
                 for p, q in ((0, 0), (1, 0), (0, 1), (1, 1)))


# ------------------------------------------------------------------ expectations

def clean(x):
    """Converts a value to strict JSON."""
    if isinstance(x, dict):
        return {k: clean(v) for k, v in x.items()}
    if isinstance(x, (list, tuple, np.ndarray)):
        return [clean(v) for v in x]
    if isinstance(x, np.integer):
        return int(x)
    if isinstance(x, (float, np.floating)):
        x = float(x)
        return x if math.isfinite(x) else "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"
    return x


def write_json(path, d):
    lines = ",\n".join(" %s: %s" % (json.dumps(k), json.dumps(v, allow_nan=False)) for k, v in clean(d).items())
    with open(path, "w") as fh:
        fh.write("{\n%s\n}\n" % lines)


def crc(data):
    return "%08x" % zlib.crc32(data)


def uuid_text(b):
    if b is None:
        return "00000000-0000-0000-0000-000000000000"
    tail = bytes(b[8:]).hex()
    return "%08x-%04x-%04x-%s-%s" % (*struct.unpack("<IHH", bytes(b[:8])), tail[:4], tail[4:])


def kind(entry):
    if entry == MISSING:
        return "missing"
    return {0x80: "constant", 0xC0: "compressed"}.get(entry >> 56, "constant" if entry == ONE else "stored")


def datatype(code):
    return {"code": code, "name": TYPES[code][0], "numpy": TYPES[code][1]}


def scaled(code, rng, data):
    """Returns the expected scaling and scaled samples of level 0."""
    slope, intercept = scaling(code, rng)
    return {"storage_to_float": {"slope": slope, "intercept": intercept},
            "default_storage": default_storage(code, rng),
            "float32_lod0_crc32": crc((data.astype(np.float64) * slope + intercept).astype("<f4").tobytes())}


def level(base, lod, data, bricks, keep, **more):
    """Returns an entry of "lods"."""
    npy = "%s.lod%d.npy" % (base, lod) if keep else None
    if keep:
        np.save(npy, data)
    return {"lod": lod, "shape": data.shape, "bricks": bricks, "npy": npy and os.path.basename(npy),
            "crc32": crc(data.tobytes()), **more}


def describe(path, purpose, made_by, truth=None, note=None, keep=False):
    """Describes a file as the reference library reads it, compared with the input samples."""
    r = zgy.ZgyReader(path)
    ih, hh, lut = r._meta._ih, r._meta._hh, r._meta._blup._lookup
    code, version = ih._datatype.value, r._meta._fh._version
    in_file = tuple(map(float, ih._file_codingrange))
    rng = safe_range(code, in_file)
    lods = [tuple(map(int, n)) for n in ih._lodsizes]
    starts, _ = lut_starts(lods)
    usable = usable_lods(lut, lods)
    d = {"file": os.path.basename(path), "bytes": os.path.getsize(path), "purpose": purpose, "made_by": made_by,
         "note": note, "oracle": "reference reader", "version": version, "size": ih._size, "bricksize": ih._bricksize,
         "datatype": datatype(code), "nlods_header": len(lods), "nlods_usable": usable, "codingrange_file": in_file,
         "codingrange": rng or [ih._smin, ih._smax], "lods": []}
    wrong = []
    for lod, n in enumerate(lods[:usable]):
        data = np.zeros(lod_shape(ih._size, lod), TYPES[code][1])
        r._accessor.readToExistingBuffer(data, (0, 0, 0), lod=lod, as_float=False)
        if truth is not None:
            put = np.ascontiguousarray(truth[lod]).astype(data.dtype)
            if put.tobytes() != data.tobytes():
                wrong.append(lod)
                data = put
        kinds = [kind(e) for e in lut[starts[lod]:starts[lod] + math.prod(n)]]
        d["lods"].append(level(path[:-4], lod, data, n, keep, lut_first=starts[lod],
                               brick_kinds={k: kinds.count(k) for k in sorted(set(kinds))}))
        if lod == 0 and rng:
            d.update(scaled(code, rng, data))
    if truth is not None:
        d["oracle"] = ("what was put in; the reference reader differs at level(s) %s" % wrong if wrong else
                       "what was put in = what the reference reader gives")
    world = ih._ocp_world
    if world is not None and not np.all(np.isfinite(world)):
        world = None
    number = lambda e: getattr(e, "value", e)  # noqa: E731
    d.update(
        annot={"start": ih._orig[:2], "inc": ih._inc[:2]}, vertical={"start": ih._orig[2], "inc": ih._inc[2]},
        control_points={"inline": ih._gpiline, "crossline": ih._gpxline, "x": ih._gpx, "y": ih._gpy},
        corners={"index": ih._ocp_index, "annot": ih._ocp_annot, "world": world},
        units={"hdim": number(ih._hdim), "hunitname": ih._hunitname, "hunitfactor": ih._hunitfactor,
               "vdim": number(ih._vdim), "vunitname": ih._vunitname, "vunitfactor": ih._vunitfactor},
        strings=None if version == 1 else {k: getattr(ih, "_" + k) for k in ("srcname", "srcdesc", "hprjsys")},
        uuid={k: uuid_text(getattr(ih, "_" + k)) for k in ("dataid", "verid", "previd")},
        statistics=None if version == 1 else {"cnt": ih._scnt, "sum": ih._ssum, "ssq": ih._sssq, "min": ih._smin,
                                              "max": ih._smax},
        histogram={"cnt": hh._cnt, "min": hh._min, "max": hh._max, "bins": list(hh._bin)})
    r.close()
    return d


def describe_put_in(path, purpose, f, note, keep):
    """Describes the input of a file that the reference library cannot read."""
    rng = safe_range(f.code, f.f["codingrange"])
    usable = usable_lods(f.final, f.lods)
    d = {"file": os.path.basename(path), "bytes": os.path.getsize(path), "purpose": purpose, "made_by": "by hand",
         "note": note, "oracle": "what was put in; the reference reader gives up", "version": f.version,
         "size": f.size, "bricksize": f.bs, "datatype": datatype(f.code), "nlods_header": len(f.lods),
         "nlods_usable": usable,
         "codingrange_file": [float(np.float32(x)) for x in f.f["codingrange"]], "codingrange": rng, "lods": []}
    for lod in range(usable):
        d["lods"].append(level(path[:-4], lod, f.truth[lod].astype(f.dtype), f.lods[lod], keep))
    if rng:
        d.update(scaled(f.code, rng, f.truth[0].astype(f.dtype)))
    return d


# ------------------------------------------------------------------ ways of making a file

class Maker:
    def __init__(self, out):
        self.out = out
        os.makedirs(out, exist_ok=True)

    def ref(self, name, purpose, data, size=None, snr=None, keep=False, **meta):
        """Writes a file with the reference library. data: an array, or a function of the writer."""
        random.seed(name)  # the writer draws its identifiers from this generator
        size = size or data.shape
        args = dict(datatype=zgy.SampleDataType.float, bricksize=(16, 16, 16), size=size, zstart=100.0, zinc=2.0,
                    annotstart=(1000, 2000), annotinc=(2, 1), zunitdim=zgy.UnitDimension.time, zunitname="ms",
                    zunitfactor=0.001, hunitdim=zgy.UnitDimension.length, hunitname="m", hunitfactor=1.0,
                    corners=rotated_corners(size, 0.0))
        if snr is not None:
            args["compressor"] = zgy.ZgyCompressFactory("ZFP", snr=snr)
        args.update(meta)
        path = os.path.join(self.out, name + ".zgy")
        with zgy.ZgyWriter(path, **args) as w:
            if callable(data):
                data(w)
            else:
                w.write((0, 0, 0), data)
        write_json(path[:-4] + ".json", describe(path, purpose, "reference library", keep=keep))

    def hand(self, name, purpose, f, note=None, keep=False, unreadable=False):
        """Writes a file by hand that a reader must accept."""
        path = os.path.join(self.out, name + ".zgy")
        with open(path, "wb") as fh:
            fh.write(f.build())
        if unreadable:
            d = describe_put_in(path, purpose, f, note, keep)
        else:
            d = describe(path, purpose, "by hand", f.truth or None, note, keep)
        write_json(path[:-4] + ".json", d)

    def refused(self, name, why, message, blob):
        """Writes a file that must not open; the reader's message contains `message`."""
        with open(os.path.join(self.out, name + ".zgy"), "wb") as fh:
            fh.write(blob)
        write_json(os.path.join(self.out, name + ".json"),
                   {"file": name + ".zgy", "bytes": len(blob), "invalid": True, "stage": "open", "why": why,
                    "message": message})

    def unreadable(self, name, why, f, blob, bricks):
        """Writes a file that opens, but whose `bricks` of level 0 are unreadable."""
        with open(os.path.join(self.out, name + ".zgy"), "wb") as fh:
            fh.write(blob)
        base = os.path.join(self.out, name)
        write_json(base + ".json",
                   {"file": name + ".zgy", "bytes": len(blob), "invalid": True, "stage": "read", "why": why,
                    "size": f.size, "bricksize": f.bs, "datatype": datatype(f.code), "damaged_bricks": bricks,
                    "lods": [level(base, 0, f.truth[0].astype(f.dtype), f.lods[0], True)]})


# ------------------------------------------------------------------ the files

INT8 = dict(datatype=zgy.SampleDataType.int8, datarange=(-150.0, 250.0))
INT16 = dict(datatype=zgy.SampleDataType.int16, datarange=(-4000.0, 4000.0))


def from_reference(m):
    """Files that the reference library writes."""
    n = (20, 18, 35)
    f = smooth(n)
    m.ref("v3_float32", "float32, four levels", f, keep=True, bricksize=(8, 8, 8))
    m.ref("v3_int16", "int16, a range symmetric about zero, in which zero has no exact number", f, keep=True, **INT16)
    m.ref("v3_int8", "int8, a lopsided range", smooth((35, 17, 33)), keep=True, **INT8)
    m.ref("v3_brick_4x8x16", "bricks with three different sides", scrambled((9, 20, 33), I8), keep=True,
          datatype=zgy.SampleDataType.int8, datarange=(-128.0, 127.0), bricksize=(4, 8, 16))
    m.ref("v3_brick_32", "bricks of 32 x 32 x 32", scrambled((33, 20, 20), I8),
          datatype=zgy.SampleDataType.int8, datarange=(-128.0, 127.0), bricksize=(32, 32, 32))
    m.ref("v3_rotated", "a survey turned by 30 degrees, left-handed, crossline numbers falling", f[:17, :9, :20],
          corners=rotated_corners((17, 9), 30.0, left_handed=True), annotstart=(300, 900), annotinc=(3, -2), bricksize=(8, 8, 8), **INT16)
    for n1 in ((1, 1, 1), (1, 65, 3), (16, 16, 16), (5, 1, 17)):
        m.ref("v3_size_" + "x".join(map(str, n1)), "an extreme size", scrambled(n1, I16), bricksize=(8, 8, 8),
              datatype=zgy.SampleDataType.int16, datarange=(-32768.0, 32767.0))

    for snr in (10, 30, 70):
        m.ref("v4_zfp_snr%d" % snr, "ZFP, precision mode for %d dB" % snr, f, snr=snr, keep=snr == 30)
    m.ref("v4_zfp_reversible", "ZFP, reversible mode", f, snr=99)
    g = f.copy()
    g[3, 5, 7], g[10, 2, 30], g[11, 2, 30], g[12, 0, 0] = NAN, INF, -INF, -0.0
    m.ref("v4_zfp_nonfinite", "ZFP: bricks with NaN and infinities are reversible, the rest is not", g, snr=30)
    noise = smooth((32, 16, 16))
    noise[:16] = scrambled((16, 16, 16), F32)
    m.ref("v4_zfp_incompressible", "ZFP: the brick of noise would not shrink and is stored plain", noise, snr=99)

    def sparse(w):
        w.writeconst((0, 0, 0), np.float32(7.25), (16, 16, 16), is_storage=False)
        w.write((0, 0, 16), f[:16, :16, :16])
    m.ref("v3_sparse_int8", "constant, stored and never written bricks", sparse, size=n, **INT8)
    m.ref("v3_never_written", "no brick was ever written", lambda w: None, size=n, **INT8)
    m.ref("v3_all_constant", "one value everywhere", lambda w: w.writeconst((0, 0, 0), np.float32(42), n, is_storage=False),
          size=n, **INT16)


def old_versions(m):
    n = (66, 20, 65)
    f = Raw(1, I8, n, codingrange=(-28.0, 227.0), orig=(10, 20, 0), inc=(5, 2, 4), gdef=2, coordtype=2,
            parts=[77, "brick", 13, "hist", 1000, "alpha", "info", 3], gpiline=(40, 100, 40, 0), gpxline=(30, 30, 60, 0),
            gpx=(1000.0, 1300.0, 900.0, 0.0), gpy=(2000.0, 2150.0, 2600.0, 0.0))
    f.fill(scrambled(n, I8)).special(0, (1, 0, 0), ONE, 0).missing(0, (0, 0, 1)).const(0, (1, 0, 1), -128)
    f.shuffled, f.aligned, f.alpha_tiles = True, False, True
    m.hand("v1_int8", "version 1: sub-tiled bricks at odd offsets, headers in odd places, entry 1, a missing brick, "
           "control points inside the survey, feet", f)
    n = (20, 17, 18)
    f = Raw(2, I16, n, bs=(16, 8, 8), codingrange=(-500.0, 1500.0)).fill(scrambled(n, I16))
    f.aligned, f.gap, f.shuffled, f.alpha_tiles = False, 101, True, True
    m.hand("v2_int16", "version 2: bricks at odd offsets in no order, real alpha tiles", f, keep=True)


def sample_types_and_ranges(m):
    n = (12, 10, 20)
    for code, rng in ((U8, (0.0, 255.0)), (U16, (0.0, 65535.0)), (I32, (-2.0**31, 2.0**31 - 1)), (U32, (0.0, 2.0**32 - 1))):
        f = Raw(3, code, n, bs=(8, 8, 8), codingrange=rng).fill(scrambled(n, code))
        f.const(0, (1, 0, 1), np.array(np.iinfo(f.dtype).max - 3, f.dtype))
        m.hand("v3_type_" + TYPES[code][0], "samples of type " + TYPES[code][0], f)
    for code, name, rng, unreadable in (
            (I8, "reversed", (100.0, -100.0), False), (I8, "equal", (5.0, 5.0), False), (I8, "nan", (NAN, 1.0), False),
            (I16, "inf", (-1.0, INF), False), (I8, "above_zero", (10.0, 20.0), False),
            (I16, "below_zero", (-20.0, -10.0), False), (I8, "tie", (-1.5, 253.5), False),
            (I16, "tiny", (-1e-30, 1e-30), False), (I16, "huge", (-3e38, 3e38), True)):
        f = Raw(3, code, n, bs=(8, 8, 8), codingrange=rng).fill(scrambled(n, code)).missing(0, (0, 0, 1))
        m.hand("v3_range_" + name, "coding range %g .. %g" % rng, f, unreadable=unreadable,
               note="the reference reader takes -126 for the missing brick, halves go away from zero" if name == "tie"
               else "needs double precision" if unreadable else None)
    f = Raw(3, F32, n, bs=(8, 8, 8), codingrange=(9.0, -9.0), stats=(10, 1.0, 2.0, 5.0, -5.0))
    m.hand("v3_range_float32", "float32: range and statistics make no sense, the samples do", f.fill(scrambled(n, F32)))


def table_entries(m):
    n = (32, 8, 16)
    small = dict(bs=(8, 8, 8))
    f = Raw(3, I8, n, codingrange=(-28.0, 227.0), **small).fill(scrambled(n, I8))
    f.const(0, (0, 0, 0), 1).const(0, (1, 0, 0), -128, junk=0xABCD).special(0, (2, 0, 0), ONE, 0).missing(0, (3, 0, 0))
    m.hand("v3_entries_int8", "constant 1, a constant with junk in its middle bits, entry 1, a missing brick", f, keep=True)
    f = Raw(3, F32, n, **small).fill(scrambled(n, F32))
    f.const(0, (0, 0, 0), NAN).const(0, (1, 0, 0), -INF).const(0, (2, 0, 0), -0.0).missing(0, (3, 0, 0))
    m.hand("v3_entries_float32", "constants NaN, -infinity and -0, a missing brick", f, keep=True)
    f = Raw(3, I8, n, **small).fill(scrambled(n, I8))
    f.alpha = [0x80 << 56 | 1] * lut_starts(f.lods, alpha=True)[1]
    m.hand("v3_alpha_constant", "an alpha table full of constants", f)
    m.hand("v3_no_low_resolution", "the last level was never written: one usable level",
           Raw(3, I8, n, **small).fill(scrambled(n, I8), lods=[0, 1]))

    n = (33, 12, 18)
    m.hand("v4_no_low_resolution", "the same, compressed",
           Raw(4, F32, n, stats=(9, 1.0, 2.0, -100.0, 100.0)).fill(smooth(n), lods=[0], zfp=lambda *at: REVERSIBLE))
    mixture = [REVERSIBLE, None, dict(precision=12)]
    f = Raw(4, F32, n).fill(smooth(n), zfp=lambda lod, i, j, k: mixture[(i + j + k) % 3])
    f.const(0, (2, 0, 0), 3.5).missing(0, (0, 0, 1))
    f.shuffled, f.gap, f.aligned, f.tail = True, 5, False, b"unused bytes at the end" * 50
    m.hand("v4_mixed", "reversible, precision, plain, constant and missing bricks in no order, with holes", f, keep=True)
    for name, how in (("rate", dict(rate=8)), ("accuracy", dict(tolerance=0.01)), ("precision1", dict(precision=1)),
                      ("precision32", dict(precision=32))):
        f = Raw(4, F32, (16, 16, 16)).fill(smooth((16, 16, 16)), zfp=lambda *at: how)
        m.hand("v4_zfp_" + name, "ZFP %s mode; the brick ends where the file ends" % name, f)
    f = Raw(4, F32, (20, 9, 25), bs=(16, 8, 32)).fill(smooth((20, 9, 25)), zfp=lambda *at: REVERSIBLE)
    m.hand("v4_brick_16x8x32", "compressed bricks with three different sides", f)
    f = Raw(3, F32, (16, 16, 20)).fill(smooth((16, 16, 20)), zfp=lambda *at: REVERSIBLE)
    m.hand("v3_compressed_entry", "compressed bricks in a version 3 file", f)
    g = smooth((16, 16, 16))
    g[:8] = 0
    g[10, 10, 10], g[11, 10, 10] = np.float32(1e-42), np.float32(3e38)
    m.hand("v4_zfp_denormal", "reversible mode with blocks of zeros, a denormal and a huge value",
           Raw(4, F32, g.shape).fill(g, zfp=lambda *at: REVERSIBLE))


def strings_and_geometry(m):
    n = (9, 10, 11)
    s = scrambled(n, I8)
    for name, text, unreadable in (("few", b"only\0two\0", True), ("none", b"", False),
                                   ("unterminated", b"a\0b\0c\0d\0e", False),
                                   ("more", b"a\0b\0c\0m\0ms\0sixth\0" + b"\0" * 9, False),
                                   ("utf8", "Åsgard\0β\0EPSG:23031\0m\0ms\0".encode(), False)):
        m.hand("v3_strings_" + name, "string list: " + name, Raw(3, I8, n, bs=(8, 8, 8), strings=text).fill(s),
               unreadable=unreadable)
    geo = dict(bs=(8, 8, 8), orig=(100.0, 50.0, -12.5), inc=(2.0, 0.5, 3.75))
    four = (0.0,) * 4
    for name, purpose, f in (
            ("inside", "control points inside the survey, the fourth is nonsense",
             dict(gdef=2, gpiline=(112.0, 104.0, 110.0, 9e9), gpxline=(54.0, 52.0, 51.0, 9e9),
                  gpx=(1000.0, 500.0, 777.0, -1.0), gpy=(900.0, 400.0, 333.0, -1.0))),
            ("no_annotation", "world corners without annotation",
             dict(gpiline=four, gpxline=four, gpx=(1.0, 2.0, 1.0, 2.0), gpy=(5.0, 5.0, 9.0, 9.0))),
            ("on_a_line", "control points on a line: no world coordinates",
             dict(gpiline=(100.0, 110.0, 120.0, 0.0), gpxline=(50.0, 55.0, 60.0, 0.0), gpx=(1.0, 2.0, 3.0, 0.0),
                  gpy=(1.0, 2.0, 3.0, 0.0))),
            ("none", "no control points at all", dict(gpiline=four, gpxline=four, gpx=four, gpy=four)),
            ("nan", "coordinates that are not numbers", dict(gpx=(NAN,) * 4, gpy=(INF,) * 4))):
        m.hand("v3_geometry_" + name, purpose, Raw(3, I8, n, **geo, **f).fill(s))
    m.hand("v3_units_odd", "dimension codes out of range, factors zero and negative",
           Raw(3, I8, n, bs=(8, 8, 8), hdim=77, hunit=0.0, vdim=200, vunit=-1.0, srctype=99, gdef=42).fill(s),
           unreadable=True)


def damaged(m):
    n = (20, 8, 8)
    good = Raw(3, I8, n, bs=(8, 8, 8)).fill(scrambled(n, I8))
    blob = good.build()

    def patch(offset, data, b=blob):
        return b[:offset] + data + b[offset + len(data):]

    m.refused("bad_empty", "no bytes at all", "not a ZGY file (too short)", b"")
    m.refused("bad_magic", "something else", "not a ZGY file", b"ABCD" + blob[4:])
    m.refused("bad_vcs", "the older closed format", "old compressed ZGY is not supported", b"VCS\0" + blob[4:])
    m.refused("bad_version", "version 5", "unsupported ZGY version 5", patch(4, struct.pack("<I", 5)))
    for part, at in (("info header", 100), ("histogram", good.at["hist"] + 50), ("alpha table", good.at["alpha"] + 3),
                     ("brick table", good.at["brick"] + 12)):
        m.refused("bad_cut_in_" + part.replace(" ", "_"), "the file ends in the " + part, "truncated in the " + part, blob[:at])
    m.refused("bad_strings", "a string list of 4 GB", "truncated in the string list", patch(9 + 333, struct.pack("<I", 0xFFFFFFF0)))
    m.refused("bad_type", "sample type 9", "unsupported sample type 9", patch(9 + 12, b"\x09"))
    m.refused("bad_type_ibm", "sample type 7, IBM float", "unsupported sample type 7", patch(9 + 12, b"\x07"))
    m.refused("bad_brick_size", "bricks of no samples", "damaged: brick size", patch(9, struct.pack("<3i", 8, 0, 8)))
    m.refused("bad_size_negative", "a negative size", "damaged: survey size", patch(9 + 94, struct.pack("<3i", 20, -1, 8)))
    m.refused("bad_size_huge", "2^93 samples", "damaged: survey size", patch(9 + 94, struct.pack("<3i", *(2**31 - 1,) * 3)))
    m.refused("bad_v1_offset", "version 1, an offset far past the end", "damaged: offset of",
              b"VBS\0" + struct.pack("<I", 1) + struct.pack("<8I", 0x7FFFFFFF, 0xFFFFFFFF, 0, 40, 0, 40, 0, 40) + bytes(400))

    def entry(value):
        return patch(good.at["brick"] + 8 * good.index(0, 1, 0, 0), struct.pack("<Q", value))
    one = [{"lod": 0, "brick": (1, 0, 0)}]
    m.unreadable("bad_entry_past_end", "a brick past the end of the file", good, entry(1 << 40), one)
    m.unreadable("bad_entry_top_byte", "an entry with an unknown top byte", good, entry(0x90 << 56 | 4096), one)
    m.unreadable("bad_cut_in_brick", "the file ends in its last brick", good, blob[:-100], [{"lod": 0, "brick": (2, 0, 0)}])

    g = smooth((16, 8, 8))
    f = Raw(4, F32, g.shape, bs=(8, 8, 8)).fill(g, zfp=lambda *at: REVERSIBLE)
    stream = zfpy.compress_numpy(g[8:], precision=12)
    streams = {"magic": b"ZFP" + stream[3:], "header_only": stream[:16], "cut": stream[:len(stream) // 2 & ~7],
               "other_size": zfpy.compress_numpy(g[:4, :4, :4].copy(), precision=12),
               "double": zfpy.compress_numpy(g[8:].astype("f8"), precision=12)}
    for name, damage in streams.items():
        ix = f.index(0, 1, 0, 0)
        f.blob = {ix - 1: f.blob[ix - 1], 0: f.blob[0], ix: (damage, True)}  # the last in the file
        m.unreadable("bad_zfp_" + name, "a compressed brick: " + name.replace("_", " "), f, f.build(), one)
    ix = f.index(0, 1, 0, 0)
    del f.blob[ix]
    f.entry[ix] = COMPRESSED | 1 << 40
    m.unreadable("bad_zfp_past_end", "a compressed brick past the end of the file", f, f.build(), one)


# ------------------------------------------------------------------ the demo

def seismic(shape):
    """Returns a synthetic cube that resembles seismic data: folded layers, a fault, a channel, some noise."""
    rng = np.random.default_rng(4711)
    i, j, k = np.ogrid[:shape[0], :shape[1], :shape[2]]
    fold = 9.0 * np.sin(i / 21.0 + 0.4) * np.cos(j / 33.0) + 0.16 * i - 0.09 * j
    throw = np.where(j > 38.0 + 0.22 * i + 0.12 * k, 11.0, 0.0)  # one side of a dipping plane moved down
    depth = k - fold * (0.55 + k / 400.0) - throw

    layers = 400  # reflectivity by depth, and a Ricker wavelet
    r = np.clip(rng.normal(0.0, 1.0, layers), -1.4, 1.4) * (rng.random(layers) < 0.35)
    t = np.arange(-24, 25) / 4.5
    trace = np.convolve(r, (1.0 - 2.0 * t * t) * np.exp(-t * t), mode="same")
    cube = np.interp((depth + 80.0).ravel(), np.arange(layers), trace).reshape(shape)

    bend = 46.0 + 19.0 * np.sin(i / 26.0)  # a meandering channel that follows the layers
    bed = np.exp(-((j - bend) / 6.0) ** 2) * np.exp(-((depth - 74.0) / 3.5) ** 2)
    cube = cube * (1.0 - 0.8 * bed) - 3.2 * bed * np.cos((depth - 74.0) / 2.2)
    cube *= np.where(k < 12 + 0.05 * i, 0.0, 1.0) * np.exp(-k / 260.0)  # mute above, decay below
    noise = rng.normal(0.0, 0.03, shape) * (cube != 0.0)
    return np.ascontiguousarray((cube + noise) * 1500.0, dtype=np.float32)


def demo(out):
    os.makedirs(out, exist_ok=True)
    n = (128, 96, 192)
    random.seed("north")
    corners = rotated_corners(n, 27.0, spacing=(25.0, 25.0), origin=(452310.0, 6781250.0))
    with zgy.ZgyWriter(os.path.join(out, "north.zgy"), datatype=zgy.SampleDataType.float, size=n, zstart=1200.0, zinc=4.0,
                       annotstart=(1000, 2000), annotinc=(2, 1), zunitdim=zgy.UnitDimension.time, zunitname="ms",
                       zunitfactor=0.001, hunitdim=zgy.UnitDimension.length, hunitname="m", hunitfactor=1.0,
                       corners=corners, compressor=zgy.ZgyCompressFactory("ZFP", snr=16)) as w:
        w.write((0, 0, 0), seismic(n))


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    m = Maker(os.path.join(sys.argv[1], "zgy"))
    for part in (from_reference, old_versions, sample_types_and_ranges, table_entries, strings_and_geometry, damaged):
        part(m)
    demo(os.path.join(sys.argv[1], "demo"))


if __name__ == "__main__":
    main()
