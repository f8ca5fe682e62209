"""Pictures: slices and previews, as image libraries read them."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from conftest import LAYERS, REPOSITORY, Level, level, levels

DTYPES_AS_THEY_ARE = ("uint8", "uint16")


def slices(level: Level) -> list[tuple[Path, np.ndarray]]:
    """Return the middle slice across each axis: its picture, and its samples in the order of rows and columns."""
    folder = level.folder / f"lod{level.lod}.slices"
    if not folder.exists():
        return []
    samples = level.samples()
    found = []
    for axis, name in enumerate(level.axes):
        if not (folder / name).is_dir():
            continue
        index = level.shape[axis] // 2
        plane = samples.take(index, axis)
        is_seismic = level.about["format"] != "wkw" and level.axes[2] not in ("value", "component")
        if is_seismic and axis < 2 and samples.ndim == 3:
            plane = plane.T
        found.append((folder / name / f"{index}.png", plane))
    return found


def of_layers(mount: Path) -> list[tuple[Level, Path, np.ndarray]]:
    """Return the middle slices of all levels of all layers."""
    return [(level, *found) for layer in LAYERS for level in levels(mount, layer) for found in slices(level)]


def check_chunks(data: bytes) -> bytes:
    """Check every CRC of a PNG and return its zlib stream, inflated, whose Adler-32 zlib checks."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, stream, kinds = 8, b"", []
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack_from(">I", data, at + 8 + length)[0]
        kinds.append(kind)
        stream += body if kind == b"IDAT" else b""
        at += 12 + length
    assert at == len(data) and kinds[0] == b"IHDR" and kinds[-1] == b"IEND"
    decoder = zlib.decompressobj()
    rows = decoder.decompress(stream)
    assert decoder.eof and not decoder.unused_data
    return rows


def expected(level: Level, plane: np.ndarray) -> np.ndarray | None:
    """Return the pixels of a plane of samples; None for labels, which have colours."""
    about = level.about
    if about["dtype"] in DTYPES_AS_THEY_ARE:
        return plane
    if about.get("wkw", {}).get("category") == "segmentation":
        return None
    if about["value_range"]:
        low, high = about["value_range"]
    elif plane.dtype.kind == "f":
        low, high = 0.0, 1.0
    else:
        low, high = (float(end) for end in (np.iinfo(plane.dtype).min, np.iinfo(plane.dtype).max))
    scale, offset = about["scale"] or 1.0, about["offset"] or 0.0
    factor = 255.0 / (high - low) if high > low else 0.0
    greys = np.floor(plane.astype(np.float64) * (scale * factor) + (offset - low) * factor + 0.5)
    greys = np.clip(np.nan_to_num(greys), 0, 255)
    return np.where(plane == about["no_value"], 0, greys).astype(np.uint8)


def test_every_checksum_is_right(mount: Path) -> None:
    found = of_layers(mount)
    assert len(found) > 100
    for _, path, plane in found:
        data = path.read_bytes()
        assert len(data) == path.stat().st_size
        rows = check_chunks(data)
        assert len(rows) % plane.shape[0] == 0


def test_pillow_reads_the_samples(mount: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    compared = 0
    for level, path, plane in of_layers(mount):
        pixels = expected(level, plane)
        with image.open(path) as picture:
            picture.verify()
        with image.open(path) as picture:
            assert picture.size == (plane.shape[1], plane.shape[0]), path
            if pixels is not None:
                np.testing.assert_array_equal(np.asarray(picture), pixels, err_msg=str(path))
                compared += 1
    assert compared > 100


def test_pillow_reads_previews(mount: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    shown = [path for layer in LAYERS if (path := mount / layer / "preview.png").exists()]
    assert len(shown) > 20
    for path in shown:
        check_chunks(path.read_bytes())
        with image.open(path) as picture:
            pixels = np.asarray(picture.convert("RGB"))
        assert np.ptp(pixels.reshape(-1, 3), axis=0).max() > 0, path


def test_imageio_reads_the_samples(mount: Path) -> None:
    imageio = pytest.importorskip("imageio.v3")
    for level, path, plane in of_layers(mount):
        pixels = expected(level, plane)
        if pixels is not None:
            np.testing.assert_array_equal(imageio.imread(path), pixels, err_msg=str(path))


def test_simpleitk_reads_the_samples(mount: Path) -> None:
    itk = pytest.importorskip("SimpleITK")
    for level, path, plane in of_layers(mount):
        pixels = expected(level, plane)
        if pixels is not None:
            got = itk.GetArrayFromImage(itk.ReadImage(str(path)))
            np.testing.assert_array_equal(got, pixels, err_msg=str(path))


def test_a_folder_of_slices_is_a_stack(mount: Path) -> None:
    itk = pytest.importorskip("SimpleITK")
    level = levels(mount, "wkw/pyramid/color")[0]
    folder = level.folder / "lod0.slices" / "z"
    files = [str(folder / f"{index}.png") for index in range(level.shape[0])]
    np.testing.assert_array_equal(itk.GetArrayFromImage(itk.ReadImage(files)), level.samples())


# Paints samples as the page of volfs serve does.
PAINT = """
import { readFileSync, writeFileSync } from "node:fs";
globalThis.ImageData = class { constructor(width, height) { this.data = new Uint8ClampedArray(4 * width * height); } };
const { paint } = await import("./colours.mjs");
const [kind, rows, columns] = process.argv.slice(2);
const bytes = readFileSync("samples");
const samples = new globalThis[kind](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
const size = { rows: Number(rows), columns: Number(columns), rowStep: Number(columns), columnStep: 1 };
writeFileSync("pixels", paint(samples, size, { map: "Labels", range: [0, 1] }).data);
"""


@pytest.mark.parametrize("kind", ["Uint32Array", "BigUint64Array"])
def test_the_page_has_the_colours_of_pictures(mount: Path, tmp_path: Path, kind: str) -> None:
    image = pytest.importorskip("PIL.Image")
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    of_level = level(mount, "demo/cells/segmentation")
    plane = of_level.samples()[48].astype("<u4" if kind == "Uint32Array" else "<u8")
    shutil.copy(REPOSITORY / "src/serve/page/colours.js", tmp_path / "colours.mjs")
    (tmp_path / "paint.mjs").write_text(PAINT)
    (tmp_path / "samples").write_bytes(plane.tobytes())
    subprocess.run(["node", "paint.mjs", kind, *map(str, plane.shape)], cwd=tmp_path, check=True)
    pixels = np.frombuffer((tmp_path / "pixels").read_bytes(), np.uint8).reshape(*plane.shape, 4)
    with image.open(of_level.folder / "lod0.slices/z/48.png") as picture:
        np.testing.assert_array_equal(pixels[..., :3], np.asarray(picture.convert("RGB")))
