"""The page of `volfs serve` in headless Chromium: painted pixels are the colours of the array's samples."""

from __future__ import annotations

import io
import json
import re
import urllib.request

import numpy as np
import pytest
from browser import magnify, pixels, read_out, samples, serving, show, until, wait
from conftest import REPOSITORY

SOURCES = REPOSITORY / "src" / "serve" / "page"
MISSING = (0x30, 0x48, 0x38)


def scale(name):
    """Return the 256 colours of a scale of colours.js, or from black to a colour as #rrggbb."""
    known = dict(re.findall(r'^ +"?(\w[\w ,()]*)"?: "([0-9a-f]+)"', (SOURCES / "colours.js").read_text(), re.M))
    digits = "000000" + name[1:] if name.startswith("#") else known[name]
    stops = np.frombuffer(bytes.fromhex(digits), np.uint8).reshape(-1, 3).astype(float)
    at = np.arange(256) / 255 * (len(stops) - 1)
    low = np.minimum(at.astype(int), len(stops) - 2)
    return np.floor(stops[low] + (stops[low + 1] - stops[low]) * (at - low)[:, None] + 0.5).astype(int)


def coloured(stored, about, name, limits):
    """Return the colours of stored numbers on a scale, whose ends are values."""
    factor, offset = about["scale"] or 1, about["offset"] or 0
    low, high = ((limit - offset) / factor for limit in limits)
    number = stored.astype(float)
    with np.errstate(invalid="ignore"):
        index = np.nan_to_num(np.clip((number - low) * (255.999 / (high - low)), 0, 255)).astype(int)
    colours = scale(name)[index]
    colours[np.isnan(number) | (number == about["no_value"])] = MISSING
    return colours


def label_colours():
    """Return the 255 colours of labels, as palettes.rs has them."""
    colours = []
    for number in range(255):
        hue = number * 0.618033988749895 % 1
        saturation, brightness = [0.85, 0.5, 0.68][number % 3], [1, 0.62, 0.82, 0.94][number % 4]
        shares = [min(max(2 - abs((hue * 6 - channel + 9) % 6 - 3), 0), 1) for channel in (0, 2, 4)]
        colours.append([int(brightness * (1 - saturation * (1 - share)) * 255 + 0.5) for share in shares])
    return np.array(colours)


def number_of_label(label):
    """Return the number of a label's colour, as palettes.rs has it."""
    bits = int(label) & 0xFFFF_FFFF_FFFF_FFFF
    if bits == 0:
        return 0
    mixed = (bits ^ bits >> 32) * 0x9E37_79B9_7F4A_7C15 & 0xFFFF_FFFF_FFFF_FFFF
    mixed = (mixed ^ mixed >> 29) * 0xBF58_476D_1CE4_E5B9 & 0xFFFF_FFFF_FFFF_FFFF
    return 1 + (mixed >> 33) % 254


def array_of_zarr(folder, array, axes, fill=0):
    """Write an array in the form of Zarr, version 3, in one chunk."""
    folder.mkdir(parents=True)
    about = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": array.shape,
        "data_type": str(array.dtype),
        "attributes": {},
    }
    about["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": array.shape}}
    about["chunk_key_encoding"] = {"name": "default", "configuration": {"separator": "/"}}
    about["codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}]
    (folder / "zarr.json").write_text(json.dumps(about | {"fill_value": fill, "dimension_names": axes}))
    chunk = folder.joinpath("c", *("0" * array.ndim))
    chunk.parent.mkdir(parents=True)
    chunk.write_bytes(np.ascontiguousarray(array).tobytes())


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Serve arrays that no file of the test data has; yield the address."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(7)
    values = rng.normal(0, 3, (9, 11, 13)).astype("float32")
    values[2:5, 3:6, 4:9] = np.nan
    values[0, 0, 0] = np.inf
    array_of_zarr(folder / "nan.zarr", values, ["z", "y", "x"], 0.0)
    array_of_zarr(
        folder / "five.zarr", rng.integers(0, 4000, (3, 2, 5, 7, 9)).astype("uint16"), ["t", "p", "z", "y", "x"]
    )
    array_of_zarr(folder / "mask.zarr", (rng.random((5, 7, 9)) > 0.6).astype("uint8"), ["z", "y", "x"])
    array_of_zarr(folder / "bright.zarr", rng.integers(-(2**40), 2**40, (5, 7, 9)), ["z", "y", "x"])
    ids = rng.integers(0, 2**63, (4, 6), dtype="uint64").repeat(3, 0).repeat(3, 1)
    ids[:4, :5] = 0
    ids[5, 6:9] = 2**53 + np.arange(3, dtype="uint64")
    array_of_zarr(folder / "ids.zarr", np.stack([ids] * 3), ["z", "y", "x"])
    with serving(folder) as address:
        yield address


def check_planes(page, server, dataset, painted=None):
    """Compare all planes with the samples; return how many pixels were compared."""
    compared = 0
    layer = page.evaluate("({ folder: volfsStage.view.layer.folder, kind: volfsStage.view.layer.kind })")
    about, array = samples(server, dataset, layer["folder"])
    assert page.evaluate("volfsStage.lod") == 0
    for n in range(page.evaluate("volfsStage.planes.length")):
        at, colours = pixels(page, n)
        if painted:
            expected = painted(about, array, at)
        elif layer["kind"] == "rgb":
            expected = array[(*at[:-1], slice(0, 3))].astype(int)
        elif layer["kind"] == "labels":
            numbers = [number_of_label(label) for label in array[at]]
            assert ((colours[:, 3] == 0) == (array[at] == 0)).all()
            expected = np.where((array[at] == 0)[:, None], 0, label_colours()[numbers])
        else:
            view = page.evaluate("({ name: volfsStage.view.map, limits: volfsStage.view.range })")
            expected = coloured(array[at], about, view["name"], view["limits"])
        np.testing.assert_array_equal(colours[:, :3], expected, err_msg=f"{dataset}, plane {n}")
        assert layer["kind"] == "labels" or (colours[:, 3] == 255).all()
        compared += len(colours)
    return compared


LAYERS = [
    ("zgy/v3_int8.zgy", "data", "values", 3),
    ("zgy/v2_int16.zgy", "data", "values", 3),
    ("zgy/v3_float32.zgy", "data", "values", 3),
    ("zgy/v3_rotated.zgy", "data", "values", 3),
    ("demo/north.zgy", "data", "values", 3),
    ("demo/cloud-survey", "Amplitude", "values", 3),
    ("demo/cells", "color", "values", 3),
    ("demo/cells", "segmentation", "labels", 3),
    ("wkw/old", "color", "values", 3),
    ("wkw/pyramid", "rgb", "rgb", 3),
    ("wkw/pyramid", "segmentation", "labels", 3),
    ("zarr/webknossos", "rgb", "rgb", 3),
    ("zarr/image-0.5.zarr", "labels/cells", "labels", 1),
    ("zarr/v3.zarr", "bool", "values", 1),
    ("vds/two-bits.vds", "Mask", "values", 1),
    ("vds/scaled.vds", "bytes", "values", 3),
    ("vds/scaled.vds", "words", "values", 3),
    ("vds/no-value.vds", "bytes", "values", 3),
    ("vds/no-value.vds", "words", "values", 3),
    ("vds/no-value.vds", "floats", "values", 3),
    ("vds/two.vds", "Amplitude", "values", 1),
    ("vds/four.vds", "Amplitude", "values", 3),
    ("vds/six.vds", "Amplitude", "values", 3),
    ("hdf5/rain.nc", "rain", "values", 3),
    ("hdf5/types.h5", "<f2", "values", 1),
    ("hdf5/types.h5", ">i8", "values", 1),
]


@pytest.mark.parametrize(("dataset", "layer", "kind", "planes"), LAYERS)
def test_painted_pixels_are_the_samples(page, server, dataset, layer, kind, planes):
    show(page, server, dataset, layer)
    assert page.evaluate("[volfsStage.view.layer.kind, volfsStage.planes.length]") == [kind, planes]
    magnify(page)
    assert check_planes(page, server, dataset) > 10
    # another slice across each plane
    page.evaluate(
        "volfsStage.planes.forEach((plane) => plane.across === null || volfsStage.view.setIndex(plane.across, 1))"
    )
    wait(page)
    assert check_planes(page, server, dataset) > 10


@pytest.mark.parametrize(("dataset", "planes"), [("five", 3), ("mask", 3), ("nan", 3), ("bright", 3), ("ids", 3)])
def test_painted_pixels_of_made_arrays_are_the_samples(page, made, dataset, planes):
    show(page, made, f"{dataset}.zarr")
    assert page.evaluate("volfsStage.planes.length") == planes
    magnify(page)
    assert check_planes(page, made, f"{dataset}.zarr") > 100


def test_more_than_three_axes_have_sliders_and_a_choice(page, made):
    show(page, made, "five.zarr")
    magnify(page)
    for axis, index in [(0, 2), (1, 1)]:
        page.locator(f"#other{axis}").fill(str(index))
    wait(page)
    assert page.evaluate("volfsStage.view.index.slice(0, 2)") == [2, 1]
    check_planes(page, made, "five.zarr")
    page.select_option("#axes", label="t, y, x")
    until(page, "volfsStage.view.axes.join() === '0,3,4'")
    wait(page)
    magnify(page)
    assert page.evaluate("volfsStage.view.index.slice(0, 2)") == [2, 1]
    check_planes(page, made, "five.zarr")
    page.reload()
    wait(page)
    assert page.evaluate("volfsStage.view.axes") == [0, 3, 4]


def test_other_colours_and_ranges_are_painted(page, server):
    show(page, server, "zgy/v3_int8.zgy")
    magnify(page)
    for name in ["Grey", "Grey, inverted", "Viridis", "Magma", "Phase (cyclic)", "Seismic"]:
        page.select_option("#map", label=name)
        wait(page)
        check_planes(page, server, "zgy/v3_int8.zgy")
    page.locator("#low").fill("-20.5")
    page.locator("#high").fill("120.25")
    page.locator("#high").press("Enter")
    wait(page)
    assert page.evaluate("volfsStage.view.range") == [-20.5, 120.25]
    check_planes(page, server, "zgy/v3_int8.zgy")
    page.get_by_role("button", name="± around 0").click()
    assert page.evaluate("volfsStage.view.range") == [-120.25, 120.25]


@pytest.mark.parametrize("dataset", ["zgy/v3_int8.zgy", "zgy/v2_int16.zgy", "demo/north.zgy"])
def test_the_colours_of_seismic_are_centred_on_the_value_0(page, server, dataset):
    show(page, server, dataset)
    low, high = page.evaluate("volfsStage.view.range")
    assert page.evaluate("volfsStage.view.map") == "Seismic" and low == -high
    about = samples(server, dataset, "data")[0]
    zero = np.array([-(about["offset"] or 0) / (about["scale"] or 1)])
    assert (coloured(zero, about | {"no_value": None}, "Seismic", (low, high)) > 250).all()


def test_masks_have_the_range_of_their_values(page, server, made):
    for address, dataset, layer in [(made, "mask.zarr", None), (server, "zarr/v3.zarr", "bool")]:
        show(page, address, dataset, layer)
        magnify(page)
        assert page.evaluate("volfsStage.view.range") == [0, 1]
        assert {tuple(colour) for colour in pixels(page, 0)[1]} == {(0, 0, 0, 255), (255, 255, 255, 255)}


def test_samples_without_a_value_have_a_colour_of_their_own(page, server, made):
    for address, dataset, layer in [(made, "nan.zarr", None), (server, "vds/no-value.vds", "floats")]:
        show(page, address, dataset, layer)
        if layer is None:
            page.evaluate("[2, 4, 6].forEach((index, axis) => volfsStage.view.setIndex(axis, index))")
        wait(page)
        magnify(page)
        assert any((pixels(page, n)[1][:, :3] == MISSING).all(1).any() for n in range(3))
        page.wait_for_timeout(400)
        assert page.locator(".legend").is_visible()
    show(page, server, "zgy/v3_int8.zgy")
    page.wait_for_timeout(400)
    assert not page.locator(".legend").is_visible()


def test_channels_are_added_up(page, server):
    dataset = "zarr/image-0.5.zarr"
    show(page, server, dataset, "data")
    magnify(page)
    assert page.evaluate("volfsStage.view.layer.channels.map((one) => [one.name, one.range])") == [
        ["dapi", [3, 60]],
        ["gfp", [1, 50]],
    ]

    def painted(about, array, at):
        total = np.zeros((len(at[0]), 3), int)
        for one in page.evaluate("volfsStage.view.layer.channels"):
            if one["isShown"]:
                total += coloured(
                    array[(np.full(len(at[0]), one["number"]), *at[1:])], about, one["colour"], one["range"]
                )
        return np.minimum(total, 255)

    assert check_planes(page, server, dataset, painted) > 100
    page.locator("#channel0").uncheck()
    wait(page)
    check_planes(page, server, dataset, painted)
    page.get_by_label("Colour of gfp").fill("#ffff00")
    page.get_by_label("Brightest value of gfp").fill("30")
    page.get_by_label("Brightest value of gfp").press("Enter")
    wait(page)
    assert page.evaluate("volfsStage.view.layer.channels[1].range") == [1, 30]
    check_planes(page, server, dataset, painted)


@pytest.mark.parametrize("layer", ["segmentation"])
@pytest.mark.parametrize("dataset", ["demo/cells", "wkw/pyramid"])
def test_labels_have_the_colours_of_the_pictures(page, server, dataset, layer):
    image = pytest.importorskip("PIL.Image")
    show(page, server, dataset, layer)
    magnify(page)
    at, colours = pixels(page, 0)
    plane = page.evaluate("[volfsStage.planes[0].across, volfsStage.planes[0].row, volfsStage.planes[0].column]")
    name = page.evaluate("volfsStage.view.layer.axes[volfsStage.planes[0].across].name")
    index = page.evaluate("volfsStage.view.index")[plane[0]]
    data = urllib.request.urlopen(f"{server}/{dataset}/{layer}/lod0.slices/{name}/{index}.png").read()
    picture = np.asarray(image.open(io.BytesIO(data)).convert("RGB")).astype(int)
    np.testing.assert_array_equal(colours[:, :3], picture[at[plane[1]], at[plane[2]]])


def test_a_click_marks_a_label_of_64_bits(page, made):
    show(page, made, "ids.zarr")
    page.evaluate("volfsStage.view.setIndex(1, 10); volfsStage.view.setIndex(2, 16)")
    magnify(page, 12)
    array = samples(made, "ids.zarr", page.evaluate("volfsStage.view.layer.folder"))[1]
    for column, row in [(7, 5), (8, 5), (6, 5), (2, 2)]:
        box = page.locator("canvas.slice").nth(0).bounding_box()
        x, y = page.evaluate(f"volfsStage.planes[0].pointAt({column}, {row})")
        page.mouse.click(box["x"] + x, box["y"] + y)
        wait(page)
        label = array[1, row, column]
        # all of its digits; 0 is no label
        assert str(label) in read_out(page)
        picked = page.evaluate("String(volfsStage.view.picked)")
        assert picked == (str(label) if label else "null")
        at, colours = pixels(page, 0)
        opaque = (colours[:, 3] == 255).sum(), (array[at] == label).sum()
        assert opaque[0] == opaque[1] if label else (colours[:, 3] == 255).sum() == (array[at] != 0).sum()
        assert (colours[array[at] == 0][:, 3] == 0).all()


def test_read_outs_are_the_values(page, server, made):
    for address, dataset in [
        (server, "zgy/v3_int8.zgy"),
        (server, "demo/north.zgy"),
        (server, "demo/cells"),
        (made, "nan.zarr"),
    ]:
        show(page, address, dataset)
        about, array = samples(address, dataset, page.evaluate("volfsStage.view.layer.folder"))
        for n in range(3):
            box = page.locator("canvas.slice").nth(n).bounding_box()
            for across, down in [(0.45, 0.46), (0.55, 0.53), (0.5, 0.45)]:
                page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down)
                text = read_out(page)
                index = tuple(int(part) for part in re.match(r"\[([\d, ]+)\]", text)[1].split(","))
                last = text.rsplit("·", 1)[1].strip()
                if about["scale"]:
                    value, stored = re.match(r"(\S+) \(stored (\S+)\)", last).groups()
                    assert int(stored) == array[index]
                    assert np.isclose(float(value), array[index] * about["scale"] + about["offset"], rtol=1e-7)
                else:
                    np.testing.assert_equal(array.dtype.type(last), array[index])


def test_a_layer_lies_over_another(page, server):
    show(page, server, "demo/cells")
    page.select_option("#overlay", label="segmentation")
    until(page, "volfsStage.view.overlay.layer !== null")
    page.get_by_label("Opacity of what lies over it").fill("0.25")
    magnify(page)
    labels = samples(server, "demo/cells", "segmentation")[1]

    about, array = samples(server, "demo/cells", "color")
    for n in range(3):
        at, colours = pixels(page, n)
        below = coloured(array[at], about, "Grey", page.evaluate("volfsStage.view.range"))
        above = label_colours()[[number_of_label(label) for label in labels[at]]]
        expected = np.where((labels[at] == 0)[:, None], below, below * 0.75 + above * 0.25)
        assert np.abs(colours[:, :3] - expected).max() < 3
