"""SEG-Y: what programs read from the headers of lod0.sgy, and how these differ from those of other writers."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, mounted

# First sample, interval in thousandths of a second (metre, foot), and samples of a trace.
Axis = tuple[float, float, int]

# Characters whose bytes differ between code pages of EBCDIC, or that have none.
NAME = "[Æ] ø~^|! north.zgy"
WKT = f'PROJCS["ED50 / UTM zone 31N",{",".join(f"""PARAMETER["p{number}",{number}]""" for number in range(60))}]'


def openvds_tool(name: str) -> str:
    """Return the path of a program of openvds, or skip the test."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return shutil.which(name, path=path) or pytest.skip(f"{name} of openvds is not installed")


def import_segy(segy: Path, vds: Path, *options: str) -> None:
    """Import a SEG-Y file as a VDS."""
    command = [openvds_tool("SEGYImport"), "-b", "32", "--lod-levels", "0", "--vdsfile", vds, *options, segy]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def write_vds(path: Path, sample: tuple[int, str, str, float, float], unit: str | None, **texts: str) -> None:
    """Write a VDS of 3 crosslines and 2 inlines; `sample` is the last axis: count, name, unit, first, last."""
    ov = pytest.importorskip("openvds")
    layout, channel = ov.VolumeDataLayoutDescriptor, ov.VolumeDataChannelDescriptor
    metadata, category = ov.MetadataContainer(), "SurveyCoordinateSystem"
    places = {"Origin": (431000.0, 6348000.0), "InlineSpacing": (12.0, 3.0), "CrosslineSpacing": (-3.0, 12.0)}
    for name, (x, y) in places.items():
        metadata.setMetadataDoubleVector2(category, name, (x, y))
    for name, text in {"Unit": unit, **texts}.items():
        if text is not None:
            metadata.setMetadataString(category, name, text)
    axes = [sample, (3, "Crossline", "", 10.0, 12.0), (2, "Inline", "", 5.0, 6.0)]
    created = ov.create(
        str(path), "",
        layout(layout.BrickSize.BrickSize_32, 0, 0, 1, layout.LODLevels.LODLevels_None, layout.Options.Options_None, 0),
        [ov.VolumeDataAxisDescriptor(*axis) for axis in axes],
        [channel(ov.VolumeDataFormat.Format_R32, ov.VolumeDataComponents.Components_1, "Amplitude", "", -1.0, 1.0)],
        metadata,
    )  # fmt: skip
    access = ov.IVolumeDataAccessManager.AccessMode.AccessMode_Create
    pages = ov.getAccessManager(created).createVolumeDataPageAccessor(
        ov.DimensionsND.Dimensions_012, 0, 0, 8, access, 8
    )
    for chunk in range(pages.getChunkCount()):
        page = pages.createPage(chunk)
        np.array(page.getWritableBuffer(), copy=False)[...] = chunk
        page.release()
    pages.commit()
    ov.close(created)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A mount of surveys that are made here, by SEGYImport and by the library of openvds."""
    segyio = pytest.importorskip("segyio")
    folder = tmp_path_factory.mktemp("made")
    shutil.copy(DATA / "demo/north.zgy", folder / NAME)
    write_vds(folder / "coarse.vds", (9, "Depth", "m", 0.0, 400.0), "m")
    write_vds(folder / "long.vds", (40_000, "Time", "ms", 0.0, 39_999.0), "m")
    write_vds(folder / "thirds.vds", (100, "Time", "ms", 0.0, 330.0), "m", CRSWkt=WKT)
    write_vds(folder / "eighths.vds", (1001, "Time", "ms", 0.0, 12.5), "m")
    write_vds(folder / "no-unit.vds", (9, "Sample", "", 0.0, 32.0), None)
    write_vds(folder / "feet.vds", (9, "Depth", "ft", 0.0, 80.0), "m")
    segy = folder / "holes.sgy"
    spec = segyio.spec()
    spec.format, spec.samples, spec.tracecount = 5, np.arange(10) * 4.0, 4 * 5 - 2
    with segyio.create(str(segy), spec) as file:
        traces = [
            (inline, crossline) for inline in range(4) for crossline in range(5) if (inline, crossline) not in HOLES
        ]
        for number, (inline, crossline) in enumerate(traces):
            x, y = 1000 + 10 * inline, 2000 + 12 * crossline
            file.header[number] = {189: 100 + inline, 193: 200 + crossline, 181: x, 185: y, 71: 1, 115: 10, 117: 4000}
            file.trace[number] = np.full(10, 1 + number, "f4")
    import_segy(segy, folder / "holes.vds")
    segy.unlink()
    with mounted(folder) as point:
        yield point


HOLES = [(1, 2), (3, 0)]


def test_texts_are_read_alike(made: Path) -> None:
    segyio = pytest.importorskip("segyio")
    obspy = pytest.importorskip("obspy.io.segy.segy")
    segy = pytest.importorskip("segy")
    for path in [made / NAME / "data/lod0.sgy", made / "thirds.vds/Amplitude/lod0.sgy"]:
        raw = path.read_bytes()[:3200]
        with segyio.open(str(path)) as file:
            text = bytes(file.text[0]).decode("ascii")
        found = obspy._read_segy(str(path), headonly=True)
        assert found.textual_header_encoding == "EBCDIC"
        assert (
            text == found.textual_file_header.decode("ascii") == segy.SegyFile(str(path)).text_header.replace("\n", "")
        )
        assert text == raw.decode("cp037") == raw.decode("cp500")
        lines = [text[at + 4 : at + 80].rstrip() for at in range(0, 3200, 80)]
        if path.parts[-3] == NAME:
            assert lines[1] == "DATASET: (AE) o-?/? north.zgy"
        else:
            system = next(number for number, line in enumerate(lines) if line.startswith("COORDINATE SYSTEM: PROJCS("))
            assert all(line.endswith(",") for line in lines[system:37]) and lines[37].endswith("...")


def test_mdio_writes_what_it_read(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mdio = pytest.importorskip("mdio", exc_type=ImportError)
    registry = pytest.importorskip("mdio.builder.template_registry")
    monkeypatch.setenv("MDIO__IMPORT__SAVE_SEGY_FILE_HEADER", "1")
    read, stored, written = made / NAME / "data/lod0.sgy", tmp_path / "survey.mdio", tmp_path / "again.sgy"
    spec = pytest.importorskip("segy.standards").get_segy_standard(1.0)
    spec.trace.data.format = pytest.importorskip("segy.schema").ScalarType.FLOAT32
    mdio.segy_to_mdio(spec, registry.TemplateRegistry().get("PostStack3DTime"), str(read), str(stored))
    mdio.mdio_to_segy(spec, str(stored), str(written))
    assert written.read_bytes() == read.read_bytes()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("coarse.vds", "its samples are 50000 mm apart, and programs read whole numbers from 1 to 32767"),
        ("long.vds", "a trace has 40000 samples, and programs read no more than 32767"),
        ("eighths.vds", "us apart"),
    ],
)
def test_what_programs_would_misread_is_not_shown(made: Path, name: str, reason: str) -> None:
    (layer,) = json.loads((made / name / "dataset.json").read_text(encoding="utf-8"))["layers"]
    hidden = {file["name"]: file["reason"] for file in layer["hidden_files"]}
    assert reason in hidden["lod0.sgy"]
    assert not (made / name / "Amplitude/lod0.sgy").exists()
    assert "SEG-Y" in hidden["original.sgy"]


AXES = pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("thirds.vds/Amplitude", (0, 3.333, 100)),
        ("feet.vds/Amplitude", (0, 10, 9)),
        ("no-unit.vds/Amplitude", (0, 4, 9)),
        ("holes.vds/Amplitude", (0, 4, 10)),
        (f"{NAME}/data", (1200, 4, 192)),
    ],
)


@AXES
def test_segyio_reads_the_axis_of_samples(made: Path, name: str, axis: Axis) -> None:
    segyio = pytest.importorskip("segyio")
    with segyio.open(str(made / name / "lod0.sgy")) as file:
        assert (file.samples[0], segyio.tools.dt(file) / 1000, len(file.samples)) == axis


@AXES
def test_obspy_reads_the_axis_of_samples(made: Path, name: str, axis: Axis) -> None:
    file = pytest.importorskip("obspy.io.segy.segy")._read_segy(str(made / name / "lod0.sgy"))
    header, trace = file.binary_file_header, file.traces[0]
    found = (trace.header.delay_recording_time, header.sample_interval_in_microseconds / 1000, len(trace.data))
    assert found == axis


@AXES
def test_xtgeo_reads_the_axis_of_samples(made: Path, name: str, axis: Axis) -> None:
    cube = pytest.importorskip("xtgeo").cube_from_file(str(made / name / "lod0.sgy"))
    np.testing.assert_allclose((cube.zori, cube.zinc, cube.nlay), axis)


@AXES
def test_segfast_reads_the_axis_of_samples(made: Path, name: str, axis: Axis) -> None:
    file = pytest.importorskip("segfast").open(str(made / name / "lod0.sgy"), engine="memmap")
    assert (file.delay, file.sample_interval / 1000, file.n_samples) == axis


@AXES
def test_segy_reads_the_axis_of_samples(made: Path, name: str, axis: Axis) -> None:
    file = pytest.importorskip("segy").SegyFile(str(made / name / "lod0.sgy"))
    assert (file.header[0]["delay_recording_time"], file.sample_interval / 1000, file.samples_per_trace) == axis


@AXES
def test_segysak_reads_the_axis_of_samples(made: Path, name: str, axis: Axis) -> None:
    pytest.importorskip("segysak")
    logging.disable(logging.WARNING)
    opened = pytest.importorskip("xarray").open_dataset(
        made / name / "lod0.sgy", dim_byte_fields={"iline": 189, "xline": 193}
    )
    samples = opened.samples.values
    np.testing.assert_allclose((samples[0], samples[1] - samples[0], len(samples)), axis, rtol=1e-6)


def test_units_are_those_that_are_known(made: Path) -> None:
    segyio = pytest.importorskip("segyio")
    for name, system, unit, said in [
        ("no-unit.vds", 0, 0, "UNIT UNKNOWN"),
        ("feet.vds", 1, 1, "DEPTHS ARE IN ft"),
        ("thirds.vds", 1, 1, "THE STEP IS 3333.33"),
    ]:
        with segyio.open(str(made / name / "Amplitude/lod0.sgy")) as file:
            assert (file.bin[3255], file.header[0][89]) == (system, unit)
            assert said in bytes(file.text[0]).decode("ascii")


def test_missing_traces_are_dead(made: Path) -> None:
    xtgeo = pytest.importorskip("xtgeo")
    expected = np.ones((4, 5), int)
    expected[tuple(np.transpose(HOLES))] = 2
    cube = xtgeo.cube_from_file(str(made / "holes.vds/Amplitude/lod0.sgy"))
    np.testing.assert_array_equal(cube.traceidcodes, expected)
    np.testing.assert_array_equal((cube.values == 0).all(axis=2), expected == 2)


def test_gathers_have_their_offsets(mount: Path) -> None:
    segyio = pytest.importorskip("segyio")
    folder = mount / "segy/gathers.vds/Amplitude"
    samples = np.load(folder / "lod0.npy")
    with segyio.open(str(folder / "lod0.sgy")) as file:
        assert (list(file.ilines), list(file.xlines)) == (list(range(1001, 1007)), list(range(300, 307)))
        assert file.bin[3213] == 3
        np.testing.assert_array_equal(file.attributes(25)[:].reshape(6, 7, 3), np.broadcast_to([1, 2, 3], (6, 7, 3)))
        np.testing.assert_array_equal(file.trace.raw[:].reshape(samples.shape), samples)
        live = file.attributes(29)[:].reshape(6, 7, 3) == 1
        offsets = file.attributes(37)[:].reshape(6, 7, 3)
    holes = [(inline, crossline) for inline, crossline in np.ndindex(6, 7) if (inline * 5 + crossline * 3) % 11 == 0]
    assert [tuple(hole) for hole in np.argwhere(~live[:, :, 0])] == holes
    np.testing.assert_array_equal(offsets, np.broadcast_to([100, 150, 200], (6, 7, 3)))


def test_an_axis_of_offsets_is_the_offsets(mount: Path) -> None:
    segyio = pytest.importorskip("segyio")
    folder = mount / "vds/four.vds/Amplitude"
    with segyio.open(str(folder / "lod0.sgy")) as file:
        assert list(file.offsets) == list(range(110, 207, 3))
        values = np.load(folder / "lod0.npy").astype("f4")
        np.testing.assert_array_equal(file.gather[315, 214, 113], values[1, 1, 1])


def test_openvds_segyimport_takes_gathers(mount: Path, tmp_path: Path) -> None:
    pytest.importorskip("openvds")
    written = mount / "segy/gathers.vds/Amplitude/lod0.sgy"
    import_segy(written, tmp_path / "again.vds", "--prestack")
    with mounted(tmp_path) as point:
        again = json.loads((point / "again.vds/Amplitude/lod0.json").read_text(encoding="utf-8"))
        first = json.loads((written.parent / "lod0.json").read_text(encoding="utf-8"))
        assert (again["shape"], again["axes"]) == (first["shape"], first["axes"])
        np.testing.assert_array_equal(
            np.load(point / "again.vds/Amplitude/lod0.npy"), np.load(written.parent / "lod0.npy")
        )


@pytest.mark.parametrize("layer", ["demo/north.zgy/data", "demo/south.vds/Amplitude"])
def test_openvds_segyexport_writes_what_segyimport_read(mount: Path, tmp_path: Path, layer: str) -> None:
    pytest.importorskip("openvds")
    written = mount / layer / "lod0.sgy"
    import_segy(written, tmp_path / "again.vds")
    exported = tmp_path / "exported.sgy"
    subprocess.run(
        [openvds_tool("SEGYExport"), "-Q", "--vdsfile", tmp_path / "again.vds", exported],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert exported.read_bytes() == written.read_bytes()
    with mounted(tmp_path) as point:
        assert (point / "again.vds/Amplitude/original.sgy").read_bytes() == written.read_bytes()


# Fields in which lod0.sgy differs from what segyio writes for the same survey: by byte, what segyio writes, what lod0.sgy
# has, and why. `None` stands for various values.
BINARY = {
    3205: (0, 1, "the line has a number"),
    3209: (0, 1, "so has the reel"),
    3213: ("traces", 1, "an ensemble is a CDP; segyio counts the traces of the file"),
    3215: ("traces", 0, "there are no auxiliary traces"),
    3227: (0, 1, "a stacked trace is one of its ensemble"),
    3229: (2, 4, "stacked, not gathers"),
    3255: (0, 1, "coordinates are metres"),
    3501: (0, 1, "revision 1"),
    3503: (0, 1, "all traces have one length"),
}
TRACE = {
    1: "numbers from 1 on; segyio has none",
    5: "numbers from 1 on; segyio has none",
    9: "the inline, by habit",
    13: "channel number of the shot: unknown; segyio counts traces from 0",
    21: "the crossline, by habit",
    25: "the first of its ensemble; segyio counts traces of the file from 0",
    29: "live",
    37: "stacked traces have offset 0; segyio writes 1",
    69: "elevations are not scaled",
    71: "coordinates are in hundredths",
    **dict.fromkeys((73, 77, 81, 85, 181, 185), "coordinates; segyio has none"),
    89: "coordinates are lengths",
}


def test_headers_differ_from_those_of_segyio_for_a_reason(mount: Path, tmp_path: Path) -> None:
    segyio = pytest.importorskip("segyio")
    ours, theirs = mount / "demo/north.zgy/data/lod0.sgy", tmp_path / "segyio.sgy"
    with segyio.open(str(ours)) as file:
        cube, inlines, crosslines = segyio.tools.cube(file), file.ilines, file.xlines
        segyio.tools.from_array3D(str(theirs), cube, format=5, dt=4000, delrt=int(file.samples[0]))
        with segyio.open(str(theirs), "r+", ignore_geometry=True) as other:
            # from_array3D numbers lines from 1 on
            for number, header in enumerate(other.header):
                header.update({189: inlines[number // len(crosslines)], 193: crosslines[number % len(crosslines)]})
    with segyio.open(str(ours)) as file, segyio.open(str(theirs)) as other:
        differing = {
            int(field): (other.bin[field], file.bin[field]) for field in file.bin if file.bin[field] != other.bin[field]
        }
        traces = file.tracecount
        assert differing == {byte: (traces if of == "traces" else of, value) for byte, (of, value, _) in BINARY.items()}
        found = set()
        for number in range(traces):
            mine, those = file.header[number], other.header[number]
            found |= {int(field) for field in mine if mine[field] != those[field]}
            assert (mine[1], mine[25], mine[29], mine[37], mine[71], mine[89]) == (number + 1, 1, 1, 0, -100, 1)
        assert found == set(TRACE)
        np.testing.assert_array_equal(other.trace.raw[:], file.trace.raw[:])
