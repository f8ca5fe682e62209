"""The plugin of napari: its manifest, and what its reader makes of volumes."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import volfs
from conftest import DATA, DEMO
from volfs.napari_reader import _unit, get_reader


def layers(path: Path) -> dict[str, tuple[Any, dict[str, Any], str]]:
    """Return what the reader makes of a path, by the names of the layers."""
    reader = get_reader(str(path))
    assert reader is not None
    return {about["name"]: (data, about, kind) for data, about, kind in reader(str(path))}


def test_all_levels_are_those_of_the_layers(source: Path) -> None:
    dataset = volfs.open(source)
    found = layers(source)
    assert list(found) == [f"{dataset.name} {layer.label}" for layer in dataset.layers.values()]
    for layer, (levels, about, _) in zip(dataset.layers.values(), found.values(), strict=True):
        assert about["multiscale"] and [level.shape for level in levels] == [layer.level(n).shape for n in layer.lods]
        assert all(np.array_equal(level[...], layer.level(n)) for n, level in enumerate(levels))
        assert about["scale"] == [axis.step for axis in layer.axes]
        assert about["translate"] == [axis.first for axis in layer.axes]


def test_units_are_those_of_the_axes() -> None:
    pytest.importorskip("pint")
    ((_, about, _),) = layers(DEMO / "north.zgy").values()
    assert about["units"] == ["pixel", "pixel", "millisecond"]
    assert layers(DEMO / "cells")["cells color"][1]["units"] == ["nanometer"] * 3
    assert [_unit(name) for name in ("ft", "no unit", "", "7 m", None)] == ["foot", *["pixel"] * 4]


def test_surveys_have_names_and_contrast() -> None:
    ((_, about, kind),) = layers(DEMO / "north.zgy").values()
    assert kind == "image" and about["axis_labels"] == ("inline", "crossline", "sample") and not about["rgb"]
    assert about["contrast_limits"] == [-6224, 4552]
    found = layers(DEMO / "south.vds")
    assert [about["visible"] for _, about, _ in found.values()] == [True, False, False]
    ((_, about, _),) = layers(DATA / "zgy" / "v3_rotated.zgy").values()
    assert about["scale"] == [3, 2, 2] and about["translate"] == [300, -900, 100], "crosslines descend"
    # the range of values that the file has says nothing
    assert "contrast_limits" not in layers(DATA / "zgy" / "v4_mixed.zgy")["v4_mixed.zgy data"][1]


def test_integers_of_surveys_are_shown_by_their_values() -> None:
    levels, about, _ = layers(DATA / "zgy" / "v3_int8.zgy")["v3_int8.zgy data"]
    assert levels[0].dtype == np.float32 and about["contrast_limits"] == [-150, 250]
    assert np.array_equal(levels[0][3], volfs.open(DATA / "zgy" / "v3_int8.zgy").layer.read((3,), scaled=True))


def test_segmentations_are_labels() -> None:
    for path, names in [
        ("cells", ["cells color", "cells segmentation"]),
        ("cells/segmentation", ["cells segmentation"]),
    ]:
        found = layers(DEMO / path)
        assert list(found) == names
        levels, about, kind = found["cells segmentation"]
        assert kind == "labels" and levels[0].dtype == np.uint32 and "rgb" not in about
        assert about["scale"] == [28, 11.24, 11.24]


def test_components_leave_the_axes_in_space() -> None:
    path = DATA / "wkw" / "pyramid"
    found, dataset = layers(path), volfs.open(path)
    levels, about, _ = found["pyramid rgb"]
    assert about["rgb"] and levels[0].shape == (5, 9, 13, 3) and len(about["scale"]) == 3
    expected = dataset["flow"].read()
    for n in range(2):
        (level,), about, _ = found[f"pyramid flow {n}"]
        assert level.shape == (5, 6, 7) and level.ndim == len(about["scale"]) == len(about["axis_labels"]) == 3
        assert level.size == 5 * 6 * 7
        assert np.array_equal(level, expected[..., n]) and np.array_equal(level[2], expected[2, ..., n])
        assert np.array_equal(level[1:3, ..., 4], expected[1:3, :, 4, n])


def test_what_cannot_be_opened_is_left_to_others(tmp_path: Path) -> None:
    (tmp_path / "no.zgy").write_bytes(b"no survey")
    for path in (tmp_path, tmp_path / "no.zgy", tmp_path / "nothing.vds", DATA, DEMO / "cells" / "color" / "1"):
        assert get_reader(str(path)) is None
    assert get_reader([str(DEMO / "north.zgy")] * 2) is None


def test_the_manifest_is_found_and_valid() -> None:
    npe2 = pytest.importorskip("npe2")
    assert [entry.value for entry in metadata.entry_points(group="napari.manifest", name="volfs")] == [
        "volfs:napari.yaml"
    ]
    manifest = npe2.PluginManifest.from_distribution("volfs")
    manifest.validate_imports()
    (reader,) = manifest.contributions.readers
    assert reader.accepts_directories and reader.filename_patterns == ["*.zgy", "*.vds"]


def test_napari_shows_it() -> None:
    components = pytest.importorskip("napari.components")
    npe2 = pytest.importorskip("npe2")
    npe2.PluginManager.instance().discover()
    viewer = components.ViewerModel()
    for path, kinds in [(DEMO / "north.zgy", "I"), (DEMO / "cells", "IL"), (DATA / "wkw" / "pyramid", "ILIIIIII")]:
        viewer.layers.clear()
        opened = viewer.open(str(path), plugin="volfs")
        assert "".join(type(layer).__name__[0] for layer in opened) == kinds
        assert all(layer.multiscale for layer in opened)
        viewer.dims.ndisplay = 3
        viewer.dims.ndisplay = 2
        viewer.dims.set_current_step(0, 2)
        assert viewer.dims.axis_labels[:1] == opened[0].axis_labels[:1]
