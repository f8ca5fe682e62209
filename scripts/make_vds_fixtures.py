#!/usr/bin/env python3
"""Writes the VDS datasets of tests/data, with the results that a reader must give.

    make_vds_fixtures.py OUT

Writes OUT/vds/..., OUT/vds/expected.json, OUT/demo/south.vds and OUT/demo/cloud-survey. Needs `pip install numpy
openvds`; openvds is the reference library: it writes all chunks and reads back the expected samples. Folders in the
cloud layout come from an object store in this script. The arrays are reproducible, the bytes are not: openvds draws
random hashes.

expected.json has "layers" (one for each stored layer: the layer's name and folder as a mount must show them, the LOD,
the layer's name in the file, dtype, shape, codec, first and step of each axis, CRC-32 of the samples in C order, with
one byte for each 1-bit sample; codecs that begin with "wavelet" are those of the wavelet codec; "float32" is the CRC-32
of the values as float32, NaN for NoValue, if openvds converts them) and "tags" (metadata of objects that a plain copy
of a store loses).
"""

import base64
import http.server
import json
import shutil
import struct
import sys
import tempfile
import threading
import urllib.parse
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import openvds as ov

Layout, Channel = ov.VolumeDataLayoutDescriptor, ov.VolumeDataChannelDescriptor
Access = ov.IVolumeDataAccessManager.AccessMode
DTYPES = {"1Bit": "u1", "U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "R32": "<f4", "R64": "<f8"}
CODES = ["None", "Wavelet", "RLE", "Zip", "WaveletNormalizeBlock", "WaveletLossless", "WaveletNormalizeBlockLossless"]
CODECS = {"None": "raw", "RLE": "rle", "Zip": "zip", "Wavelet": "wavelet", "WaveletLossless": "wavelet-lossless",
          "WaveletNormalizeBlock": "wavelet-normalized", "WaveletNormalizeBlockLossless": "wavelet-normalized-lossless"}
NO_VALUE = -999.25
SKIP = "skip"


@dataclass
class Chan:
    """A channel. `chunks` lists special chunks of LOD 0: SKIP for one that is not written, else the constant of all its
    samples."""
    format: str = "R32"
    name: str = "Amplitude"
    unit: str = ""
    components: int = 1
    values: int = 0  # per trace; 0: one sample per position
    no_value: bool = False
    scale: float = 1.0
    offset: float = 0.0
    range: tuple = (-60.0, 60.0)
    flags: tuple = ()
    chunks: dict = field(default_factory=dict)

    def descriptor(self):
        flags = 0
        for flag in self.flags:
            flags |= int(getattr(Channel.Flags, flag).value)
        mapping = ov.VolumeDataMapping.PerTrace if self.values else ov.VolumeDataMapping.Direct
        arguments = [getattr(ov.VolumeDataFormat, f"Format_{self.format}"),
                     getattr(ov.VolumeDataComponents, f"Components_{self.components}"), self.name, self.unit,
                     *self.range, mapping, max(self.values, 1), Channel.Flags(flags)]
        if self.no_value:
            arguments.append(NO_VALUE)
        return Channel(*arguments, self.scale, self.offset)

    def nothing(self):
        return {"U8": 255, "U16": 65535}.get(self.format, NO_VALUE)


def place(d, i):
    """Returns the coordinate of sample i along dimension d."""
    return 100 * d + 10 + (d + 2) * i


AXES = (("Sample", "ms"), ("Crossline", "unitless"), ("Inline", "unitless"), ("Offset", "m"), ("Angle", "deg"), ("", ""))


@dataclass
class Volume:
    name: str
    dims: tuple  # dimension 0 first, as in all of openvds
    channels: list = field(default_factory=lambda: [Chan()])
    method: str = "None"
    tolerance: float = 0.01
    groups: tuple = ("012",)
    brick: int = 32
    margins: tuple = (0, 0)
    lods: int = 1
    tile_lods: bool = False
    multiplier: int = 1
    full_resolution: int = -1
    page: int = 4
    axes: tuple = AXES
    metadata: object = None
    samples: object = None  # a function like scrambled()

    def top(self, group, channel):
        if "NotRenderable" in channel.flags:
            return 0
        return self.lods if len(group) == 3 or self.tile_lods else 0


# ------------------------------------------------------------------ samples

def scrambled(channel, index, salt):
    """Returns a hash of each position, so that misplaced samples are detected, with short runs and some zeros."""
    h = np.uint64(0x9E3779B97F4A7C15 + salt)
    for d, i in enumerate(index):
        h = (h ^ (i.astype(np.uint64) // np.uint64(3 if d == 0 else 1) + np.uint64(11 * d))) * np.uint64(0xC2B2AE3D27D4EB4F)
        h ^= h >> np.uint64(31)
    h = h >> np.uint64(56)
    h[h % np.uint64(3) == 0] = 0
    if channel.no_value:
        return np.where(h % np.uint64(7) == 1, channel.nothing(), h.astype(np.float64)).astype(DTYPES[channel.format])
    if channel.format == "1Bit":
        return (h & np.uint64(1)).astype("u1")
    wide = {"U16": 251, "U32": 16777259, "U64": 72057594037927931}.get(channel.format)
    if wide:
        return (h * np.uint64(wide)).astype(DTYPES[channel.format])
    return ((h.astype(np.float64) - 100) / 4 if channel.format in ("R32", "R64") else h).astype(DTYPES[channel.format])


# ------------------------------------------------------------------ writing

def dimensions(group):
    return getattr(ov.DimensionsND, f"Dimensions_{group}")


def first_of_chunk(group, channel):
    """Returns the lowest dimension along which chunks extend."""
    if not channel.values:
        return int(group[0])
    return 0 if channel.values > 1 else min((int(d) for d in group if d != "0"), default=0)


def samples_of(page, n, group, channel):
    """Returns a view of a page's buffer, slowest dimension first, and the axis along which bits are packed."""
    buffer = np.array(page, copy=False)
    axis = n - 1 - first_of_chunk(group, channel)
    if channel.format == "1Bit" and axis != n - 1:
        # the bit view of openvds is right only if dimension 0 is packed
        shape, strides = list(buffer.shape), list(buffer.strides)
        shape[axis], strides[axis] = -(-shape[axis] // 8), 1
        buffer = np.lib.stride_tricks.as_strided(buffer, shape, strides)
    return buffer, axis


def write_layer(vds, volume, number, group):
    channel, n = volume.channels[number], len(volume.dims)
    manager = ov.getAccessManager(vds)
    accessor = manager.createVolumeDataPageAccessor(dimensions(group), 0, number, 8, Access.AccessMode_Create, volume.page)
    for chunk in range(accessor.getChunkCount()):
        rule = channel.chunks.get(chunk)
        if rule == SKIP:
            continue
        page = accessor.createPage(chunk)
        buffer, axis = samples_of(page.getWritableBuffer(), n, group, channel)
        low, high = (list(corner) for corner in page.getMinMax())
        index = [np.arange(low[d], high[d]).reshape([-1 if e == d else 1 for e in range(n - 1, -1, -1)]) for d in range(n)]
        index = np.broadcast_arrays(*index)
        for component in range(channel.components):
            if rule is None:
                make = volume.samples or scrambled
                data = make(channel, index, 64 * number + component)
            else:
                data = np.full(index[0].shape, rule, DTYPES[channel.format])
            if channel.format == "1Bit":
                data = np.packbits(data, axis=axis, bitorder="little")
            (buffer[buffer.dtype.names[component]] if buffer.dtype.names else buffer)[...] = data
        page.release()
    accessor.commit()


def write(volume, url, connection=""):
    options = int(Layout.Options.Options_Create2DLODs.value) * volume.tile_lods
    options |= int(Layout.Options.Options_ForceFullResolutionDimension.value) * (volume.full_resolution >= 0)
    lods = getattr(Layout.LODLevels, f"LODLevels_{volume.lods or 'None'}")
    layout = Layout(getattr(Layout.BrickSize, f"BrickSize_{volume.brick}"), *volume.margins, volume.multiplier, lods,
                    Layout.Options(options), max(volume.full_resolution, 0))
    axes = [ov.VolumeDataAxisDescriptor(n, name, unit, *(float(place(d, i)) for i in (0, n - 1)))
            for d, (n, (name, unit)) in enumerate(zip(volume.dims, volume.axes))]
    error = ov.VDSError()
    vds = ov.create(url, connection, layout, axes, [c.descriptor() for c in volume.channels],
                    volume.metadata or ov.MetadataContainer(), getattr(ov.CompressionMethod, volume.method),
                    volume.tolerance, error)
    assert not error.code, f"{volume.name}: {error.string}"
    for group in volume.groups:
        for number in range(len(volume.channels)):
            write_layer(vds, volume, number, group)
    ov.close(vds)


# ------------------------------------------------------------------ reading

def read_layer(manager, volume, number, group, lod):
    """Reads a stored layer page by page with openvds; returns its samples and their spacing along each dimension."""
    channel, n = volume.channels[number], len(volume.dims)
    dims = list(volume.dims)
    cut = [str(d) in group and d != volume.full_resolution for d in range(n)]
    if channel.values:
        dims[0], cut[0] = channel.values, channel.values > 1 and volume.full_resolution != 0
    spacing = [1 << lod if c else 1 for c in cut]
    shape = [-(-size // step) for size, step in zip(dims, spacing)][::-1]
    components = [channel.components] if channel.components > 1 else []
    out = np.zeros(shape + components, DTYPES[channel.format])
    seen = np.zeros(shape, bool)
    accessor = manager.createVolumeDataPageAccessor(dimensions(group), lod, number, 8, Access.AccessMode_ReadOnly, 1024)
    for chunk in range(accessor.getChunkCount()):
        page = accessor.readPage(chunk)
        buffer, axis = samples_of(page.getBuffer(), n, group, channel)
        if channel.format == "1Bit":
            buffer = np.unpackbits(np.ascontiguousarray(buffer), axis=axis, bitorder="little")
        held, _ = page.getMinMax()
        low, high = page.getMinMaxExcludingMargin()
        to, of = [], []
        for d in range(n - 1, -1, -1):
            first, end = -(-low[d] // spacing[d]), -(-high[d] // spacing[d])
            begin = first - held[d] // spacing[d]
            to.append(slice(first, end))
            of.append(slice(begin, begin + end - first))
        to, of = tuple(to), tuple(of)
        if buffer.dtype.names:
            for component, name in enumerate(buffer.dtype.names):
                out[to + (component,)] = buffer[name][of]
        else:
            out[to] = buffer[of]
        seen[to] = True
        page.release()
    assert seen.all(), f"{volume.name}: not all of LOD {lod} was read"
    return out, spacing


def float_values(manager, volume, number, group, lod, stored):
    """Returns the values of integer samples as openvds converts them, with the plain NaN for NoValue."""
    channel, dims = volume.channels[number], list(volume.dims)
    if channel.values:
        dims[0] = channel.values
    request = manager.requestVolumeSubset((0,) * len(dims), tuple(dims), dimensionsND=dimensions(group), lod=lod, channel=number,
                                          format=ov.VolumeDataFormat.Format_R32)
    read = np.ascontiguousarray(request.data, "<f4").reshape(stored.shape)
    values = stored.astype("<f4") * np.float32(channel.scale) + np.float32(channel.offset)
    # a request leaves never written chunks as uninitialised memory; their pages are correct
    filled = channel.nothing() if channel.no_value else max(round(-channel.offset / channel.scale), 0)
    known = stored != filled
    assert (values[known].view("<u4") == read[known].view("<u4")).all(), f"{volume.name}: other arithmetic"
    if channel.no_value:
        assert set(np.unique(values[known])).isdisjoint([np.float32(NO_VALUE)])
        values[~known] = np.uint32(0x7FC00000).view("<f4")
    return values


def encoded(name):
    """Returns the folder name of a layer; the special characters of these fixtures are all ASCII."""
    return "".join(f"%{ord(c):02X}" if ord(c) < 32 or c in "/%" or name in (".", "..") else c for c in name)


def converted(volume, group, lod, channel, method):
    """Returns whether a layer has integer samples that openvds converts, position by position, to values."""
    return (channel.format in ("U8", "U16") and channel.components == 1 and len(volume.dims) == 3 and group == "012"
            and (lod == 0 or not channel.values) and "Normalize" not in method)


class Expected:
    """The expected results."""

    def __init__(self):
        self.layers, self.tags = [], {}

    def add(self, volume, dataset, methods, url, connection="", of=None):
        """Reads a dataset back; `methods` has the method of each stored layer."""
        vds = ov.open(url, connection)
        manager, layout = ov.getAccessManager(vds), ov.getLayout(vds)
        taken, expected = {"dataset.json"}, set(methods)
        for number, channel in enumerate(volume.channels):
            groups = sorted(volume.groups, key=lambda group: (-len(group), group))
            for group in groups:
                layer = channel.name or f"channel{number}"
                if group != groups[0]:
                    layer += f"@Dimensions_{group}"
                folder, tries = encoded(layer), 2
                while folder in taken:
                    folder, tries = f"{encoded(layer)}~{tries}", tries + 1
                taken.add(folder)
                for lod in range(volume.top(group, channel) + 1):
                    stored = f"{channel.name if number else ''}Dimensions_{group}LOD{lod}"
                    expected.remove(stored)
                    samples, spacing = read_layer(manager, volume, number, group, lod)
                    entry = dict(dataset=dataset, layer=layer, folder=folder, lod=lod, stored=stored)
                    self.layer(entry, layout, channel, samples, spacing, methods[stored])
                    if converted(volume, group, lod, channel, methods[stored]):
                        self.values(float_values(manager, volume, number, group, lod, samples))
        assert not expected, f"{dataset}: layers without an expectation: {expected}"
        ov.close(vds)

    def layer(self, entry, layout, channel, samples, spacing, method):
        first, step = [], []
        for d in reversed(range(len(spacing))):
            axis = layout.getAxisDescriptor(d)
            numbered = d == 0 and channel.values
            n, low, high = axis.getNumSamples(), axis.getCoordinateMin(), axis.getCoordinateMax()
            first.append(0.0 if numbered else low)
            step.append(spacing[d] * (1.0 if numbered or n == 1 else (high - low) / (n - 1)))
        if channel.components > 1:
            first.append(0.0)
            step.append(1.0)
        self.layers.append(dict(entry, dtype=samples.dtype.name, shape=list(samples.shape), codec=CODECS[method], first=first,
                                step=step, crc32=f"{zlib.crc32(np.ascontiguousarray(samples).tobytes()):08x}"))

    def values(self, values):
        self.layers[-1]["float32"] = f"{zlib.crc32(values.tobytes()):08x}"


def methods_of_file(path):
    """Returns the compression method of each layer of a container."""
    data, methods = path.read_bytes(), {}
    table, count, length = struct.unpack_from("<qii", data, 16)
    for entry in range(table, table + count * (32 + length), 32 + length):
        head, = struct.unpack_from("<q", data, entry)
        if data[entry + 20:entry + 24] == b"VDS ":
            name = data[entry + 32:entry + 32 + length].split(b"\0")[0].decode()
            methods[name] = CODES[struct.unpack_from("<i", data, head + 16)[0]]
    return methods


def methods_of_status(text):
    return {layer["layerName"]: layer["compressionMethod"].replace("Experimental", "") for layer in json.loads(text)}


# ------------------------------------------------------------------ an object store

class Store(http.server.BaseHTTPRequestHandler):
    """A minimal S3 server that keeps objects in memory."""
    protocol_version = "HTTP/1.1"
    objects: dict = {}

    def log_message(self, *_):
        pass

    @property
    def object(self):
        return urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).strip("/")

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def do_PUT(self):
        meta = {key.lower(): value for key, value in self.headers.items() if key.lower().startswith("x-amz-meta-")}
        self.objects[self.object] = (self.body(), meta)
        self.answer(200, headers=[("ETag", '"1"')])

    def do_GET(self):
        if self.object not in self.objects:
            return self.answer(404)
        body, meta = self.objects[self.object]
        wanted = self.headers.get("Range", "")
        if wanted.startswith("bytes=") and body:
            low, _, high = wanted[6:].partition("-")
            low, high = int(low), min(int(high or len(body)), len(body) - 1)
            place = [("Content-Range", f"bytes {low}-{high}/{len(body)}")]
            return self.answer(206, body[low:high + 1], [*meta.items(), *place])
        return self.answer(200, body, meta.items())

    do_HEAD = do_GET


class Cloud:
    """Writes folders with the objects that openvds puts into an object store."""

    def __init__(self, root, expected):
        self.root, self.expected = root, expected
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.host = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.connection = f"EndpointOverride={self.host};AccessKeyId=a;SecretKey=b;Region=us-east-1"

    def make(self, volume, *, experimental=False, expect=True):
        """Stores a volume; returns its objects by name, with their metadata."""
        Store.objects.clear()
        write(volume, f"s3://bucket/{volume.name}", self.connection)
        status = f"bucket/{volume.name}/LayerStatus"
        text, meta = Store.objects[status]
        # openvds cannot read the names that it writes for these methods
        readable = text.replace(b'"WaveletNormalizeBlock', b'"WaveletNormalizeBlockExperimental')
        Store.objects[status] = (readable, meta)
        if expect:
            self.expect(volume, volume.name)
        Store.objects[status] = (readable if experimental else text, meta)
        return {name.split("/", 2)[2]: pair for name, pair in sorted(Store.objects.items())}

    def expect(self, volume, dataset):
        methods = methods_of_status(Store.objects[f"bucket/{volume.name}/LayerStatus"][0])
        self.expected.add(volume, dataset, methods, f"s3://bucket/{volume.name}", self.connection)

    def save(self, dataset, objects, extension=""):
        shutil.rmtree(self.root / dataset, ignore_errors=True)
        for name, (body, _) in objects.items():
            path = self.root / dataset / (name + extension if "/" not in name and "." not in name else name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)


def status(objects, change):
    """Returns the same objects with a changed LayerStatus."""
    layers = json.loads(objects["LayerStatus"][0])
    for layer in layers:
        change(layer)
    return {**objects, "LayerStatus": (json.dumps(layers, indent=1).encode() + b"\n", {})}


def without_pages(objects):
    """Returns the objects of a store without metadata pages, and the metadata attached to each object."""
    kept = status({name: pair for name, pair in objects.items() if "/ChunkMetadata/" not in name},
                  lambda layer: [layer.update(hasChunkMetadataPages=False), layer.pop("pageDirectory", None)])
    tags = {name: meta["x-amz-meta-vdschunkmetadata"] for name, (_, meta) in kept.items() if "/" in name}
    return kept, tags


def clouds(root, expected):
    cloud = Cloud(root, expected)
    dims = (70, 35, 3)
    sparse = {1: 0.5, 4: SKIP}
    volume = Volume("pages", dims, [Chan(chunks=sparse), Chan("U8", "Trace", values=1, chunks={0: 1})], "Zip", page=2)
    cloud.save("pages", cloud.make(volume))

    few = Chan("U8", no_value=True, scale=0.5, offset=-20, chunks={0: 7, 2: SKIP, 3: SKIP, 4: SKIP, 5: 255})
    objects = cloud.make(Volume("absent-pages", dims, [few], "RLE", page=2))
    assert -1 in json.loads(objects["LayerStatus"][0])[0]["pageDirectory"]
    cloud.save("absent-pages", objects)

    one = Chan("U16", no_value=True, scale=0.25, chunks={1: 65535, 3: 200})
    volume = Volume("no-directory", dims, [one], "None", page=4, margins=(2, 3))
    objects = cloud.make(volume)
    cloud.save("no-directory", status(objects, lambda layer: layer.pop("pageDirectory", None)))

    # the next two have the metadata with the objects, not in pages
    for name, method, chan in (("no-pages", "Zip", Chan(no_value=True, chunks={1: NO_VALUE, 2: 3.5, 4: SKIP})),
                               ("tagged", "None", Chan("U8", chunks={0: 9, 5: SKIP}))):
        objects, tags = without_pages(cloud.make(Volume(name, dims, [chan], method, lods=1)))
        if name == "no-pages":
            listed = {object: {"vdschunkmetadata": tag} for object, tag in tags.items()}
            objects["ObjectMetadata.json"] = (json.dumps(listed, indent=1).encode() + b"\n", {})
        else:
            expected.tags[name] = tags
        cloud.save(name, objects)

    cloud.save("json-names", cloud.make(Volume("json-names", dims, [Chan("R64", chunks={3: 0.1})], "RLE")), ".json")

    volume = Volume("lossless", dims, [Chan(chunks=sparse), Chan("U8", "Trace", values=1, flags=("NoLossyCompression",))],
                    "WaveletLossless", page=4, margins=(4, 4))
    cloud.save("lossless", cloud.make(volume))
    objects, tags = without_pages(cloud.make(Volume("wavelet-no-pages", dims, [Chan("U16", chunks=sparse)], "Wavelet", 1.0)))
    listed = {object: {"vdschunkmetadata": tag} for object, tag in tags.items()}
    cloud.save("wavelet-no-pages", {**objects, "ObjectMetadata.json": (json.dumps(listed).encode() + b"\n", {})})
    for name, experimental in (("normalized", False), ("normalized-experimental", True)):
        volume = Volume(name, dims, [Chan()], "WaveletNormalizeBlock", 1.0, lods=0)
        cloud.save(name, cloud.make(volume, experimental=experimental))
    return cloud


# ------------------------------------------------------------------ single files

def all_formats():
    return [Chan(form, f"of {form}", scale=0.5 if form == "U16" else 1.0)
            for form in ("R32", "1Bit", "U8", "U16", "U32", "U64", "R64")]


ORIGIN, INLINE_SPACING, CROSSLINE_SPACING = (431000.5, 6348000.25), (3.0, 12.25), (-12.25, 3.0)


def metadata():
    m = ov.MetadataContainer()
    survey = "SurveyCoordinateSystem"
    m.setMetadataDoubleVector2(survey, "Origin", ORIGIN)
    m.setMetadataDoubleVector2(survey, "InlineSpacing", INLINE_SPACING)
    m.setMetadataDoubleVector2(survey, "CrosslineSpacing", CROSSLINE_SPACING)
    m.setMetadataString(survey, "Unit", "m")
    m.setMetadataString(survey, "CRSWkt", 'PROJCS["ED50 / UTM zone 31N"]')
    return m


def all_metadata():
    m = metadata()
    for kind, number in (("Int", -7), ("Float", 0.1), ("Double", 0.1)):
        getattr(m, f"setMetadata{kind}")("Types", kind, number)
        for n in (2, 3, 4):
            getattr(m, f"setMetadata{kind}Vector{n}")("Types", f"{kind}Vector{n}", tuple(number * k for k in range(1, n + 1)))
    m.setMetadataString("Types", "String", 'Løkka "east"\n\t/ second line')
    m.setMetadataString("", "no category", "")
    m.setMetadataBLOB("Types", "BLOB", bytes(range(256)))
    keep_segy(m, {1: "VOLFS TEST SURVEY"}, {3217: 4000, 3221: 70})
    return m


def keep_segy(m, lines, fields):
    """Puts the headers of a SEG-Y file of revision 1 with IEEE floats into metadata, as SEGYImport does: `lines` of the
    text, and `fields` of two bytes, by their numbers."""
    text = "".join(f"C{line:2} {lines.get(line, '')}".ljust(80) for line in range(1, 41))
    assert len(text) == 3200, "a line is too long"
    binary = bytearray(400)
    for byte, value in {3225: 5, 3255: 1, 3501: 0x100, 3503: 1, **fields}.items():
        struct.pack_into(">h", binary, byte - 3201, value)
    m.setMetadataBLOB("SEGY", "TextHeader", text.encode("cp037"))
    m.setMetadataBLOB("SEGY", "BinaryHeader", bytes(binary))
    m.setMetadataInt("SEGY", "Endianness", 0)
    m.setMetadataInt("SEGY", "DataSampleFormatCode", 5)


def volumes():
    """Yields all single files."""
    dims, wide = (37, 34, 2), (70, 50, 7)
    for method in ("None", "RLE", "Zip"):
        yield Volume(f"formats-{method.lower()}", dims, all_formats(), method)
    for method in CODES:
        if method.startswith("Wavelet"):
            name = method.replace("Wavelet", "wavelet").replace("NormalizeBlock", "-normalized").replace("Lossless", "-lossless")
            channels = [Chan(), Chan("U8", "of U8"), Chan("U16", "of U16", range=(0, 65535)),
                        Chan(name="with NoValue", no_value=True, chunks={1: NO_VALUE, 2: 0.25})]
            yield Volume(name, (37, 34, 5), channels, method, 1.0, margins=(2, 2))
    yield Volume("margins-4-4", wide, [Chan("U8")], "RLE", margins=(4, 4), lods=2)
    yield Volume("margins-2-3", wide, [Chan("U16", range=(0, 64000))], "Zip", margins=(2, 3), lods=3)
    yield Volume("two", (90, 70), [Chan("U16")], "Zip", groups=("01",), lods=2, tile_lods=True, margins=(2, 2))
    yield Volume("two-bits", (90, 7), [Chan("1Bit", "Mask")], groups=("01",), lods=0)
    channels = [Chan("U8"), Chan("1Bit", "Mask"), Chan("U8", "Trace", values=1), Chan("U8", "Header", values=12)]
    yield Volume("tiles", (37, 34, 4), channels,
                 "RLE", groups=("012", "01", "02", "12"), tile_lods=True, margins=(2, 2), page=8)
    yield Volume("tiles-without-lods", (38, 35, 6), [Chan("U8")], "Zip", groups=("012", "12"), multiplier=2)
    yield Volume("four", (37, 33, 3, 3), [Chan("U8"), Chan("U8", "Trace", values=1), Chan("R32", "Offset", values=1)], "Zip",
                 groups=("012", "013", "12"), page=8, axes=AXES[:1] + AXES[3:4] + AXES[1:3])
    yield Volume("six", (4, 3, 3, 2, 34, 3), [Chan("U8")], "RLE", groups=("012", "245"), page=64)
    yield Volume("full-resolution", (70, 40, 9), [Chan("U8")], "RLE", full_resolution=0)
    yield Volume("components", (37, 33, 3), [Chan("U8", "pair", components=2), Chan("R32", "four", components=4),
                                             Chan("U16", "mute", components=2, values=1)], "None")
    yield Volume("components-packed", (37, 33, 3), [Chan("U8", "pair", components=2), Chan("R32", "four", components=4)], "RLE")
    yield Volume("traces", (36, 6, 33), [
        Chan("U8", chunks={0: 3, 5: SKIP}), Chan("U8", "Trace", values=1),
        Chan("U8", "SEGYTraceHeader", values=240, chunks={1: SKIP}),
        Chan("R32", "Offset", values=1, flags=("NotRenderable",)), Chan("1Bit", "Live", values=1)], "Zip")
    nothing = dict(no_value=True)
    yield Volume("no-value", (70, 34, 5), [
        Chan("U8", "bytes", scale=0.1, offset=-0.3, chunks={0: 255, 1: 100, 2: SKIP}, **nothing),
        Chan("U16", "words", scale=0.1, offset=-0.3, chunks={1: 65535, 2: 1000, 3: SKIP}, **nothing),
        Chan("R32", "floats", chunks={2: NO_VALUE, 3: 0.25, 4: SKIP}, **nothing)], "RLE")
    yield Volume("scaled", (70, 34, 5), [
        Chan("U8", "bytes", scale=0.1, offset=-0.3, range=(-0.3, 25.2), chunks={0: 255, 1: 0, 2: SKIP}),
        Chan("U16", "words", scale=0.1, offset=-0.3, range=(-0.3, 6553.2), chunks={1: 65535, 2: SKIP})], "None", page=2)
    yield Volume("constants", (70, 34, 5), [
        Chan("R64", "doubles", chunks={0: 0.1, 1: SKIP}), Chan("U32", "numbers", chunks={0: 16777217, 1: SKIP, 2: 3000000000}),
        Chan("U64", "long", chunks={0: 2**63 + 2**62, 2: SKIP}), Chan("1Bit", "bits", chunks={0: 1, 1: 0, 2: SKIP})], "Zip")
    names = ["", "channel0", "a/b", "100%", "dataset.json", "..", "channel0@Dimensions_12", "tab\there", "LOD9Dimensions_01"]
    yield Volume("names", (6, 5, 4), [Chan("U8", name) for name in names], groups=("012", "12"), lods=0, page=1)
    yield Volume("metadata", (9, 8, 7), [Chan("R32", unit="m/s")], metadata=all_metadata(), lods=0, page=1024)


# ------------------------------------------------------------------ the demonstration

SOUTH, CLOUD = (120, 80, 64), (120, 40, 20)


def amplitudes(t, x, y):
    """Returns dipping layers over a dome, zeros above a sea floor, and a fault; rounded so that they compress well."""
    dome = 26 * np.exp(-((x - 42) ** 2 + (y - 50) ** 2) / 900)
    depth = t + dome - 0.12 * y - np.where(x + 0.4 * y > 88, 7.0, 0.0)
    trace = np.sin(depth / 3.1) * np.cos(depth / 17) + 0.45 * np.sin(depth / 1.4 + 0.8) * (np.sin(depth / 31) > 0.2)
    trace = np.round(trace * 2048 * np.exp(-t / 210) / 128) * 128
    trace[t < 14 + 0.06 * x] = 0
    return np.where(live(x, y), trace, 0).astype("<f4") + np.float32(0)  # no negative zeros


def live(x, y):
    """Returns where the survey has traces: two of its corners are cut off."""
    return (x + y > 6) & (x - y < 70)


def trace_headers(dims):
    """Returns the header of each trace as 240 bytes, as a SEG-Y file of revision 1 has them; zeros where none is."""
    y, x = np.mgrid[:dims[2], :dims[1]]
    exists, inline, crossline = live(x, y), place(2, y), place(1, x)
    number = np.cumsum(exists).reshape(exists.shape)
    # centimetres
    grid = zip(ORIGIN, INLINE_SPACING, CROSSLINE_SPACING)
    world = [np.rint(100 * (origin + a * inline + b * crossline)) for origin, a, b in grid]
    headers = np.zeros(exists.shape + (240,), "u1")
    for byte, form, value in (
            (1, ">i4", number), (5, ">i4", number),  # traces of the line, of the file
            (9, ">i4", inline), (21, ">i4", crossline), (29, ">i2", 1),  # field record, ensemble, a live trace
            (69, ">i2", 1), (71, ">i2", -100),  # scalars of heights and of coordinates
            *((byte + 4 * n, ">i4", world[n]) for byte in (73, 81, 181) for n in (0, 1)),  # source, group, midpoint
            (89, ">i2", 1), (109, ">i2", place(0, 0)),  # length, not degrees; the time of the first sample
            (115, ">u2", dims[0]), (117, ">u2", 1000 * (place(0, 1) - place(0, 0))),
            (189, ">i4", inline), (193, ">i4", crossline)):
        field = np.full(exists.shape, value, form)[..., None].view("u1")
        headers[..., byte - 1:byte - 1 + field.shape[-1]] = field
    headers[~exists] = 0
    return headers


def survey(name, dims, method):
    """Returns a survey as SEGYImport makes it of a SEG-Y file."""
    headers = trace_headers(dims)

    def samples(channel, index, salt):
        t, x, y = (i.astype(np.int64) for i in index)
        if channel.name == "Trace":
            return live(x, y).astype("u1")
        if channel.name == "SEGYTraceHeader":
            return headers[y, x, t]
        return amplitudes(*(i.astype(np.float64) for i in (t, x, y)))

    count, interval = dims[0], place(0, 1) - place(0, 0)
    traces = np.count_nonzero(headers[..., 28:30].any(axis=-1))
    ranges = [f"{kind} {place(d, 0)} TO {place(d, dims[d] - 1)} STEP {place(d, 1) - place(d, 0)}"
              for d, kind in ((2, "INLINES"), (1, "CROSSLINES"))]
    m = metadata()
    keep_segy(m, {
        1: f"SURVEY {name.upper()}: SYNTHETIC, FOR DEMONSTRATIONS OF VOLFS",
        2: f"{', '.join(ranges)}; {traces} TRACES",
        3: f"{count} SAMPLES, INTERVAL {interval} MS, FIRST AT {place(0, 0)} MS; IEEE FLOAT, BIG-ENDIAN",
        4: "ED50 / UTM ZONE 31N, METRES TIMES 100: THE SCALAR IN BYTES 71-72 IS -100",
        5: "INLINE 189-192, CROSSLINE 193-196, X 181-184, Y 185-188",
        39: "SEG Y REV1", 40: "END TEXTUAL HEADER",
    }, {3207: 1, 3211: 1, 3213: 1, 3217: 1000 * interval, 3219: 1000 * interval, 3221: count, 3223: count,
        3227: 1, 3229: 4})
    m.setMetadataString("SEGY", "PrimaryKey", "Inline")
    m.setMetadataDouble("ImportInformation", "InputFileSize", 3600.0 + traces * (240 + 4 * count))
    flags = ("NoLossyCompressionUseZip", "NotRenderable")
    channels = [Chan(range=(-2500.0, 2500.0)), Chan("U8", "Trace", values=1, range=(0, 1), flags=("NoLossyCompression",)),
                Chan("U8", "SEGYTraceHeader", values=240, range=(0, 255), flags=flags)]
    return Volume(name, dims, channels, method, brick=64, margins=(4, 4), lods=2, page=64, metadata=m,
                  samples=samples)


def compare(volume, url, connection=""):
    """Compares what openvds reads with what was written: samples, traces, trace headers, and both headers of the file."""
    vds = ov.open(url, connection)
    for number, channel in enumerate(volume.channels):
        sizes = (channel.values or volume.dims[0], *volume.dims[1:])
        found, _ = read_layer(ov.getAccessManager(vds), volume, number, "012", 0)
        wrote = volume.samples(channel, np.indices(sizes[::-1])[::-1], 0)
        assert (found == wrote).all(), f"{volume.name}: {channel.name}"
    for header in ("TextHeader", "BinaryHeader"):
        found, wrote = (bytes(m.getMetadataBLOB("SEGY", header)) for m in (ov.getLayout(vds), volume.metadata))
        assert found == wrote, f"{volume.name}: {header}"
    ov.close(vds)


def demos(out):
    south, volume = out / "demo/south.vds", survey("south", SOUTH, "Zip")
    south.unlink(missing_ok=True)
    write(volume, str(south))
    compare(volume, str(south))
    cloud, volume = Cloud(out / "demo", Expected()), survey("cloud-survey", CLOUD, "WaveletLossless")
    objects = cloud.make(volume)
    compare(volume, f"s3://bucket/{volume.name}", cloud.connection)
    cloud.save("cloud-survey", objects)


def main(out):
    root, expected = out / "vds", Expected()
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    (out / "demo").mkdir(exist_ok=True)
    for volume in volumes():
        path = root / f"{volume.name}.vds"
        write(volume, str(path))
        expected.add(volume, path.name, methods_of_file(path), str(path))
    clouds(root, expected)
    lines = ",\n  ".join(json.dumps(layer) for layer in expected.layers)
    tags = json.dumps(expected.tags, indent=1)
    (root / "expected.json").write_text('{\n "layers": [\n  ' + lines + '\n ],\n "tags": ' + tags + "\n}\n")
    demos(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
