#!/usr/bin/env python3
"""Takes inputs for the fuzz targets from the datasets in tests/data.

    scripts/make_fuzz_seeds.py [FOLDER]     writes FOLDER/TARGET/*; default: target/fuzzing/corpus

What is committed in fuzz/seeds is a small part of these and of what fuzzing has found: `scripts/fuzz.sh --minimise`.
"""
import base64
import hashlib
import json
import os
import re
import struct
import sys

DATA = os.path.join(os.path.dirname(__file__), "..", "tests", "data")
LONGEST = 64 << 10


def put(folder, target, data):
    """Writes an input, named by its hash as libFuzzer names them."""
    if len(data) <= LONGEST:
        path = os.path.join(folder, target)
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, hashlib.sha1(data).hexdigest()), "wb") as file:
            file.write(data)


def files(below, pattern):
    """Yields path and content of all files below a folder of the test data whose path matches."""
    for folder, _, names in sorted(os.walk(os.path.join(DATA, below))):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if re.search(pattern, path):
                with open(path, "rb") as file:
                    yield path, file.read()


def packed(below, first="", most=1000):
    """Returns the files of a folder as `fuzz/src/folder.rs` reads them: those that match, and at most so many others."""
    out, others = b"", most
    for name, data in sorted(files(below, "."), key=lambda file: not re.search(first, file[0])):
        name = os.path.relpath(name, os.path.join(DATA, below)).encode()
        others -= not re.search(first, name.decode())
        if others >= 0:
            out += bytes([len(name)]) + name + struct.pack("<I", len(data)) + data
    return out


def chunks(vds):
    """Yields the method and the bytes of each chunk of the layers in a single-file VDS."""
    table, count, length = struct.unpack_from("<qii", vds, 16)
    for entry in range(table, table + count * (32 + length), 32 + length):
        directory, n, _, per_page, kind, meta, file_meta = struct.unpack_from("<qiii4sii", vds, entry)
        if kind != b"VDS ":
            continue
        method = struct.unpack_from("<i", vds, directory + 16)[0]
        for chunk in range(n):
            page = struct.unpack_from("<q", vds, directory + 16 + file_meta + 8 * (chunk // per_page))[0]
            if page:
                offset, size = struct.unpack_from("<qi", vds, page + chunk % per_page * (16 + meta))
                if size > 24:
                    yield method, vds[offset:offset + size]


def vds(folder):
    for _, data in files("vds", r"\.vds$"):
        put(folder, "vds_open", data)
        for start in (rb'CreateObj\("', rb'\{\s*"axisDescriptors"'):
            for found in re.finditer(start, data):
                put(folder, "vds_description", data[found.start():found.start() + 12000].split(b"\0")[0])
                break
        for method, chunk in chunks(data):
            head = struct.unpack_from("<6i", chunk)
            if method == 2:
                unit = struct.unpack_from("<i", chunk, 24 + 8)[0]
                put(folder, "vds_rle", bytes([unit.bit_length() - 1, 0, 0]) + chunk[36:8192])
            if method == 3:
                put(folder, "zlib", b"\1\0\0" + chunk[24:])
            if method in (1, 4, 5, 6):
                lossless, normal = method in (5, 6), method in (4, 6)
                kind = bytes([chunk[2] | lossless | normal << 1, 0])
                put(folder, "vds_wavelet", chunk[:2] + kind + chunk[4:24576])
            elif all(1 <= n <= 32 for n in head[1:4]):
                formats = [3, 1, 2, 0, 4, 5, 6]
                methods = {2: 0, 3: 1, 0: 2}
                components = {1: 0, 2: 1, 4: 2}.get(head[5], 0)
                sizes = bytes(n - 1 for n in head[1:4])
                lead = bytes([formats.index(head[4]), methods.get(method, 2), components])
                put(folder, "vds_chunk", lead + sizes + chunk[24:])
    for path in sorted(os.listdir(os.path.join(DATA, "vds"))):
        root = os.path.join(DATA, "vds", path)
        if os.path.isdir(root):
            for name, data in files(os.path.join("vds", path), "VolumeDataLayout"):
                put(folder, "vds_description", data)
            put(folder, "vds_open", packed(os.path.join("vds", path)))
    texts = os.path.join(DATA, "../../src/format/vds/description/tests.rs")
    with open(texts, "rb") as file:
        put(folder, "vds_description", file.read().split(b'r#"')[1].split(b'"#')[0])


def wkw(folder):
    for _, text in list(files("wkw", "datasource-properties")) + list(files("demo", "datasource-properties")):
        put(folder, "wkw_properties", text)
        if len(text) < 4096:
            put(folder, "wkw_open", struct.pack("<H", len(text)) + text)
    for path, header in files("wkw", r"header\.wkw$"):
        cubes = [data for _, data in files(os.path.relpath(os.path.dirname(path), DATA), r"x\d+\.wkw$")]
        for cube in cubes[:2]:
            put(folder, "wkw_open", b"\0\0" + header + cube)
            logs, kind = (cube[4], cube[5]) if len(cube) > 16 else (0, 0)
            if kind in (2, 3) and len(cube) < LONGEST and logs >> 4 < 4:
                ends = struct.unpack_from(f"<{1 + 8 ** (logs >> 4)}Q", cube + b"\0" * 8192, 8)
                for begin, end in list(zip(ends, ends[1:]))[:8]:
                    if 0 < end - begin < 8192:
                        put(folder, "lz4", b"\0" + cube[begin:end])


def zgy(folder):
    for _, data in files("zgy", r"\.zgy$"):
        put(folder, "zgy_open", data)
        for number, found in enumerate(re.finditer(b"zfp\x05", data)):
            if number < 3:
                put(folder, "zfp", bytes([number & 3, 0]) + data[found.start():found.start() + 2600])


def hdf5(folder):
    for _, data in [*files("hdf5", r"\.(h5|nc|ims)$"), *files("netcdf3", r"(classic|cdf5)\.nc$")]:
        put(folder, "hdf5_open", data)


def codecs(folder):
    """Takes what tests/data/codecs has for each codec of the target, by the number that chooses it there."""
    with open(os.path.join(DATA, "../../fuzz/src/codecs.rs")) as file:
        table = re.findall(r'^    \("([^"]+)", (?:r#)?"(\{.*\})"#?\),$', file.read(), flags=re.M)
    [(_, content), (_, lines)] = files("codecs", "")
    cases = [json.loads(line) for line in lines.decode().splitlines()]
    for number, (name, configuration) in enumerate(table):
        wanted = json.loads(configuration)
        same = [case for case in cases if case["codec"] == name]
        alike = [case for case in same if all(case["configuration"].get(key) == value for key, value in wanted.items())]
        for case in sorted(alike or same, key=lambda case: case["stored"][1])[::5][:5]:
            (at, length), (_, decoded) = case["stored"], case["decoded"]
            put(folder, "codecs", struct.pack("<BH", number, decoded) + content[at : at + length])


def precomputed(folder):
    for path, info in files("precomputed", r"/info$"):
        info = json.loads(info)
        scale, channels = info["scales"][0], info["num_channels"]
        for chunk, data in list(files(os.path.dirname(path), r"\d_[^/]*\d$"))[:4]:
            extent = [int(re.sub(r"(-?\d+)-(-?\d+)", r"\2", part)) - int(re.match(r"-?\d+", part).group())
                      for part in os.path.basename(chunk).split("_")]
            size = int(re.search(r"\d+", info["data_type"]).group()) // 8
            if scale["encoding"] == "compressed_segmentation":
                blocks = [n - 1 for n in scale["compressed_segmentation_block_size"]]
                shape = bytes([n - 1 for n in extent] + blocks + [(channels - 1) * 2 + (size == 8)])
                put(folder, "compressed_segmentation", shape + data)
            if scale["encoding"] == "png":
                width, height = struct.unpack_from(">II", data, 16)
                head = bytes([width - 1, height - 1, channels - 1 | (size - 1) << 2])
                put(folder, "png", head + data)
                put(folder, "png", bytes([7, 5, 8 | channels - 1 | (size - 1) << 2]) + data[64:400])
    with open(os.path.join(DATA, "precomputed", "images.json")) as file:
        for image in json.load(file):
            put(folder, "jpeg", bytes([0, 0, image["channels"] // 3]) + base64.b64decode(image["jpeg"]))


def hierarchies(folder):
    """Takes each array by itself, and of groups what they say without the chunks."""
    for target, below, sign in (
        ("zarr_open", "zarr", r"(zarr\.json|\.z(array|group|attrs|metadata))$"),
        ("n5_open", "zarr", r"attributes\.json$"),
        ("precomputed_open", "precomputed", r"(^|/)info$"),
    ):
        for path in sorted({os.path.dirname(path) for path, _ in files(below, sign)}):
            path = os.path.relpath(path, DATA)
            put(folder, target, packed(path, sign, 4))
            put(folder, target, packed(path, sign, 0))


def built(folder):
    """A few inputs for the targets that build their datasets from numbers."""
    for target in ("array_read", "wkw_cube", "zgy_bricks", "vds_container"):
        for number in range(40):
            numbers = hashlib.sha512(f"{target} {number}".encode()).digest()
            put(folder, target, numbers * 4 if number % 2 else numbers)


if __name__ == "__main__":
    where = sys.argv[1] if len(sys.argv) > 1 else os.path.join(DATA, "../../target/fuzzing/corpus")
    for make in (vds, wkw, zgy, hdf5, codecs, precomputed, hierarchies, built):
        make(where)
    for name in sorted(os.listdir(where)):
        print(f"{name}: {len(os.listdir(os.path.join(where, name)))} inputs")
