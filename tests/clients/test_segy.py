"""SEG-Y: segyio and ObsPy read lod0.sgy, whole, by line and by depth, and original.sgy has the traces of the import."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, SURVEYS, Level, level

LAYERS = [*SURVEYS, "vds/scaled.vds/words", "vds/no-value.vds/bytes", "vds/no-value.vds/floats", "segy/turned.vds/Amplitude"]


def values(of_level: Level) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return the values that SEG-Y has to have: 0 where a sample has no value."""
    if of_level.has("lod0.float32.npy"):
        return np.nan_to_num(np.load(of_level.file(".float32.npy")), nan=0)
    samples = of_level.samples().astype("f4")
    no_value = of_level.about["no_value"]
    return samples if no_value is None else np.where(samples == np.float32(no_value), np.float32(0), samples)


@pytest.mark.parametrize("layer", LAYERS)
def test_segyio_reads_lines_slices_and_the_cube(mount: Path, layer: str) -> None:
    segyio = pytest.importorskip("segyio")
    of_level = level(mount, layer)
    expected = values(of_level)
    lines, crosslines, depths = (axis["first"] + axis["step"] * np.arange(axis["count"]) for axis in of_level.about["axes"])
    with segyio.open(str(of_level.file(".sgy"))) as file:
        np.testing.assert_array_equal(file.ilines, lines)
        np.testing.assert_array_equal(file.xlines, crosslines)
        np.testing.assert_allclose(file.samples, depths)
        assert file.sorting == segyio.TraceSortingFormat.INLINE_SORTING or 1 in expected.shape[:2]
        # to segyio a single crossline is sorted by crosslines
        np.testing.assert_array_equal(np.squeeze(segyio.tools.cube(file)), np.squeeze(expected))
        at = [count // 2 for count in expected.shape]
        np.testing.assert_array_equal(file.iline[lines[at[0]]], expected[at[0]])
        np.testing.assert_array_equal(file.xline[crosslines[at[1]]], expected[:, at[1]])
        np.testing.assert_array_equal(np.squeeze(file.depth_slice[at[2]]), np.squeeze(expected[:, :, at[2]]))
        np.testing.assert_array_equal(file.trace[-1], expected[-1, -1])
        assert bytes(file.text[0]).startswith(b"C 1 VOLFS ")


@pytest.mark.parametrize("layer", LAYERS)
def test_segyio_maps_the_file(mount: Path, layer: str) -> None:
    segyio = pytest.importorskip("segyio")
    of_level = level(mount, layer)
    with segyio.open(str(of_level.file(".sgy"))) as file:
        assert file.mmap()
        np.testing.assert_array_equal(file.trace.raw[:], values(of_level).reshape(-1, of_level.shape[2]))


@pytest.mark.parametrize("layer", LAYERS)
def test_segyio_reads_positions(mount: Path, layer: str) -> None:
    segyio = pytest.importorskip("segyio")
    of_level = level(mount, layer)
    dataset = of_level.folder.parent / "dataset.json"
    corners = json.loads(dataset.read_text(encoding="utf-8"))["geometry"]["corners"]
    with segyio.open(str(of_level.file(".sgy"))) as file:
        x, y, scalar = (file.attributes(byte)[:] for byte in (181, 185, 71))
        assert len(set(scalar)) == 1
        factor = 1 / -scalar[0] if scalar[0] < 0 else scalar[0]
        for corner in corners:
            (inline, crossline), world = corner["index"], corner["world"] or (0, 0)
            trace = inline * of_level.shape[1] + crossline
            np.testing.assert_allclose([x[trace] * factor, y[trace] * factor], world, rtol=0, atol=factor / 2 + 1e-6)


@pytest.mark.parametrize("layer", LAYERS)
def test_obspy_reads_traces(mount: Path, layer: str) -> None:
    segy = pytest.importorskip("obspy.io.segy.segy")
    of_level = level(mount, layer)
    expected = values(of_level).reshape(-1, of_level.shape[2])
    found = segy._read_segy(str(of_level.file(".sgy")))
    assert found.binary_file_header.seg_y_format_revision_number == 0x100
    np.testing.assert_array_equal(np.stack([trace.data for trace in found.traces]), expected)
    assert found.traces[0].header.for_3d_poststack_data_this_field_is_for_in_line_number == of_level.about["axes"][0]["first"]


@pytest.mark.parametrize("imported", json.loads((DATA / "segy/expected.json").read_text(encoding="utf-8")))
def test_original_files_come_out_again(mount: Path, imported: dict[str, str]) -> None:
    segyio = pytest.importorskip("segyio")
    path = mount / "segy" / imported["name"] / "Amplitude/original.sgy"
    assert f"{zlib.crc32(path.read_bytes()):08x}" == imported["crc32"]
    endian = "little" if imported["name"] == "turned.vds" else "big"
    with segyio.open(str(path), ignore_geometry=True, endian=endian) as file:
        # the traces are numbered in the order of the file
        np.testing.assert_array_equal(file.attributes(1)[:], np.arange(1, file.tracecount + 1))
