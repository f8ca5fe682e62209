"""Datasets and layers, against what `volfs cat` prints."""

from __future__ import annotations

import gc
import pickle
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import volfs
from conftest import DATA, DEMO, cat, damaged, mounts_below, until


def fixtures() -> list[Path]:
    """Return all bundled datasets that can be opened."""
    found = [path for path in [*DEMO.iterdir(), *DATA.glob("*/*")] if path.parent == DEMO or DEMO not in path.parents]
    return [path for path in found if path.is_dir() or path.suffix in (".zgy", ".vds")]


@pytest.mark.parametrize("path", fixtures(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_all_samples_are_those_of_the_program(path: Path) -> None:
    try:
        dataset = volfs.open(path)
    except volfs.VolfsError:
        # neither by the program
        with pytest.raises(subprocess.CalledProcessError):
            cat(path, volfs.open(DEMO / "north.zgy").layer.level(0))
        return
    with dataset:
        for layer in dataset.layers.values():
            for lod in layer.lods:
                array = layer.level(lod)
                try:
                    read = array[...]
                except (volfs.DamagedBrick, volfs.ReadFailed) as error:
                    with pytest.raises(subprocess.CalledProcessError):
                        cat(path, array)
                    assert isinstance(error, volfs.ReadFailed) or len(error.brick) == array.ndim
                    continue
                assert read.tobytes() == cat(path, array).tobytes(), array
                assert array.info["shape"] == list(array.shape) and array.info["brick_shape"] == list(array.chunks)
                assert [axis.name for axis in array.axes] == [axis["name"] for axis in array.info["axes"]]
                for name in ("no_value", "scale", "offset"):
                    assert getattr(array, name) == array.info[name]


def test_a_layer_tells_what_its_samples_are() -> None:
    with volfs.open(DEMO / "north.zgy") as dataset:
        layer = dataset.layer
        assert dataset.format == "zgy" and dataset.path == str(DEMO / "north.zgy")
        assert list(dataset.layers) == ["data"] and dataset["data"] == layer == dataset["DATA"]
        assert layer.shape == (128, 96, 192) and layer.dtype == np.float32 and layer.lods == [0, 1, 2]
        assert layer.label == "data" and layer.info["codec"] == "zfp" and layer.level(1).shape == (64, 48, 96)
        assert layer.axes[2].unit == "ms" and layer.axes[2].first == 1200
        inlines = layer.axes[0].values
        assert inlines is not None and inlines[[0, -1]].tolist() == [1000, 1254]
        assert (layer.no_value, layer.scale, layer.offset) == (None, None, None)
        with pytest.raises(IndexError, match=r"north.zgy/data has no level 3; it has \[0, 1, 2\]"):
            layer.level(3)


def test_layers_are_found_by_their_names() -> None:
    with volfs.open(DEMO / "south.vds") as dataset:
        assert dataset["data"] == dataset.layer == dataset["AMPLITUDE"]
        for name in ["amplitud", "..", ".", "", "a\0b", "Trace/lod0.raw"]:
            with pytest.raises(KeyError):
                dataset[name]
    with volfs.open(DATA / "vds" / "names.vds") as dataset:
        hidden = [layer for layer in dataset.metadata["layers"] if layer["lods"] == 0]
        labels = [layer.label for layer in dataset.layers.values()]
        assert labels + [layer["name"] for layer in hidden] == [layer["name"] for layer in dataset.metadata["layers"]]


def test_datasets_and_layers_are_no_arrays() -> None:
    dataset: Any = volfs.open(DEMO / "north.zgy")
    for index in [0, slice(3), (1, 2), ...]:
        with pytest.raises(TypeError, match=r"write dataset\.layer\.level\(0\)\[\.\.\.\]"):
            dataset[index]
        with pytest.raises(TypeError, match=r"write layer\.level\(0\)\[\.\.\.\]"):
            dataset.layer[index]


def test_samples_are_found_by_coordinates() -> None:
    layer = volfs.open(DEMO / "north.zgy").layer
    assert np.array_equal(layer.at(inline=1020, sample=slice(1200, 1300)), layer.read((10, slice(None), slice(0, 26))))
    assert np.array_equal(layer.at(INLINE=[1004, 1000], Crossline=slice(None, 2001)), layer.read(([2, 0], slice(2))))
    assert np.array_equal(layer.at(sample=slice(1960, None), lod=1), layer.read((..., slice(95, None)), lod=1))
    assert np.array_equal(layer.at(sample=slice(1300, 1200)), layer.at(sample=slice(1200, 1300)))
    wrong: list[dict[str, Any]] = [
        {"inline": 1021},
        {"inline": 1256},
        {"inline": slice(1255, None)},
        {"inline": [1000, 998]},
    ]
    for where in wrong:
        with pytest.raises(KeyError, match="the axis inline has 1000 to 1254 in steps of 2"):
            layer.at(**where)
    with pytest.raises(KeyError, match="'depth' is no axis"):
        layer.at(depth=3)
    scaled = volfs.open(DATA / "zgy" / "v3_int8.zgy").layer
    first = scaled.axes[0].first
    assert first is not None and scaled.at(inline=first, scaled=True).dtype == np.float32


@pytest.mark.parametrize("name", ["zgy/v3_int8.zgy", "zgy/v2_int16.zgy", "vds/scaled.vds", "vds/no-value.vds"])
def test_values_are_those_of_the_program(name: str, tmp_path: Path) -> None:
    with volfs.open(DATA / name) as dataset:
        for layer in dataset.layers.values():
            for lod in layer.lods:
                layer.save(tmp_path / "a.npy", lod=lod, scaled=True)
                expected, values = np.load(tmp_path / "a.npy"), layer.scaled(lod)
                assert values.dtype == expected.dtype and values.shape == expected.shape
                assert np.asarray(values).tobytes() == layer.read(lod=lod, scaled=True).tobytes() == expected.tobytes()
                one = tuple(count // 2 for count in values.shape)
                assert values[one].tobytes() == expected[one].tobytes()
                assert np.array_equal(values.oindex[[1, 0]], expected[[1, 0]], equal_nan=True)


def test_no_data_is_not_a_number_where_values_are_asked_for() -> None:
    with volfs.open(DATA / "vds" / "no-value.vds") as dataset:
        for name in ["bytes", "words", "floats"]:
            layer = dataset.layers[name]
            stored, values = layer.read(), layer.read(scaled=True)
            assert layer.no_value is not None and (stored == layer.no_value).any()
            assert np.array_equal(np.isnan(values), stored == layer.no_value)


def test_a_closed_dataset_is_not_read() -> None:
    with volfs.open(DEMO / "north.zgy") as dataset:
        layer, array = dataset.layer, dataset.layer.level(2)
    uses: list[Callable[[], Any]] = [
        lambda: dataset.layer,
        lambda: dataset.metadata,
        lambda: layer.read(0),
        lambda: dataset["data"],
    ]
    for use in uses:
        with pytest.raises(ValueError, match="the dataset north.zgy is closed"):
            use()
    assert array[0, 0].shape == (48,)


def test_nothing_waits_for_the_garbage_collector(tmp_path: Path) -> None:
    (tmp_path / "a.zgy").symlink_to(DEMO / "north.zgy")
    gc.disable()
    try:
        dataset = volfs.open(tmp_path / "a.zgy", follow_links=True)
        array = dataset.layer.level(0)
        assert array.read(0, scaled=True).size and len(array.axes) == 3 and array.info and dataset.metadata
        del dataset, array
        assert gc.collect() < 50
    finally:
        gc.enable()


def test_pickles_are_opened_by_their_source() -> None:
    with volfs.open(DEMO / "cells") as dataset:
        layer = dataset["segmentation"]
        expected = layer.read((3, 4))
        for copy in pickle.loads(pickle.dumps([dataset["segmentation"], layer.level(0), layer.scaled()])):
            assert np.array_equal(copy.read((3, 4)) if hasattr(copy, "read") else copy[3, 4], expected)
        assert pickle.loads(pickle.dumps(dataset)).path == dataset.path


def test_pickles_of_a_folder_that_was_opened_again_are_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "cells"
    shutil.copytree(DEMO / "cells", path)
    first = pickle.loads(pickle.dumps(volfs.open(path)["segmentation"].level(0)))
    expected = first[...]
    # the description stays as it is
    for file in (path / "segmentation" / "1").rglob("x0.wkw"):
        file.unlink()
    array = volfs.open(path)["segmentation"].level(0)
    again = pickle.loads(pickle.dumps(array))
    assert np.array_equal(again[...], array[...]) and not np.array_equal(again[...], expected)
    assert again.__dask_tokenize__() == array.__dask_tokenize__() != first.__dask_tokenize__()
    assert pickle.loads(pickle.dumps(again))._engine is again._engine


def test_places_in_a_mount_are_opened_by_their_source(demo: volfs.Mount, tmp_path: Path) -> None:
    for below in ["", "data", "data/lod1.npy"]:
        with volfs.open(demo.path / "north.zgy" / below) as dataset:
            assert dataset.path == str(DEMO / "north.zgy")
    (tmp_path / "link").symlink_to(demo.path)
    assert volfs.open(tmp_path / "link" / "cells").path == str(DEMO / "cells")
    with pytest.raises(volfs.NotFound, match=str(DEMO / "no.zgy")):
        volfs.open(demo.path / "no.zgy")
    with volfs.mount(DEMO / "cells") as alone:
        assert volfs.open(alone.path / "cells").path == str(DEMO / "cells")


def test_a_dataset_in_a_folder_of_its_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.zgy").mkdir()
    (tmp_path / "a.zgy" / "a.zgy").write_bytes((DEMO / "north.zgy").read_bytes())
    with volfs.mount(tmp_path / "a.zgy", quality=3) as mount:
        with volfs.open(mount.path / "a.zgy") as dataset:
            assert dataset.path == str(tmp_path / "a.zgy" / "a.zgy") and dataset._source.quality == 3
        assert mount.datasets["a.zgy"].path == dataset.path


def test_what_cannot_be_opened_is_told(tmp_path: Path) -> None:
    for name, kind, reason in [
        ("no.zgy", volfs.NotFound, "there is no such file or folder"),
        ("zgy/bad_magic.zgy", volfs.Unsupported, "not a ZGY file"),
        ("zgy/bad_cut_in_info_header.zgy", volfs.Damaged, "truncated in the info header"),
        ("demo", volfs.Unsupported, "not a dataset of a format that this version reads"),
    ]:
        with pytest.raises(kind, match=f"{DATA / name}: {reason}"):
            volfs.open(DATA / name)
    with pytest.raises(FileNotFoundError):
        volfs.open(tmp_path / "no.zgy")
    with pytest.raises(volfs.VolfsError, match="there is no option zzz"):
        volfs.open("s3://bucket/a.zgy", store_options={"zzz": "1"})
    with pytest.raises(ValueError, match="quality is a level of 0 to 15"):
        volfs.open(DEMO / "north.zgy", quality=16)


def test_maps_are_files_of_a_mount_that_ends_with_them(temporary: str, demo: volfs.Mount) -> None:
    with volfs.open(DEMO / "cells") as dataset:
        layer = dataset["color"]
        expected = layer.level(1)[...]
        first, second = layer.lod(1), layer.lod(1, first_axis="X", random=True)
    assert isinstance(first, np.memmap) and not first.flags.writeable and np.array_equal(first, expected)
    assert np.array_equal(np.moveaxis(second, 0, 2), expected) and len(mounts_below(temporary)) == 2
    part = second[3:]
    del first, second
    assert np.array_equal(part, np.moveaxis(expected, 2, 0)[3:])
    del part
    until(lambda: mounts_below(temporary) == [str(demo.path)])
    with pytest.raises(KeyError, match="'depth' is no axis"):
        layer = volfs.open(DEMO / "cells")["color"]
        layer.lod(0, first_axis="depth")


def test_a_brick_that_cannot_be_decoded_is_an_error_with_its_place(tmp_path: Path) -> None:
    layer = volfs.open(damaged(tmp_path)).layer
    with pytest.raises(volfs.DamagedBrick, match=r"damaged.zgy, layer data, lod 0, brick") as caught:
        layer.read((20, 30, 40))
    error = caught.value
    assert error.errno == 5 and error.brick == (0, 0, 0)
    assert error.region == (slice(0, 64, 1), slice(0, 64, 1), slice(0, 64, 1))
    assert np.array_equal(layer.read(slice(64, None)), volfs.open(DEMO / "north.zgy").layer.level(0)[64:])


def test_a_box_is_saved_in_every_form(tmp_path: Path) -> None:
    with volfs.open(DEMO / "north.zgy") as dataset:
        layer = dataset.layer
        layer.save(tmp_path / "a.npy", (slice(3, 5), 10, slice(-11, None)))
        assert np.array_equal(np.load(tmp_path / "a.npy"), layer.read((slice(3, 5), slice(10, 11), slice(-11, None))))
        layer.save(tmp_path / "b.sgy", (slice(3, 5),), at=["crossline=2010:2016"], lod=1)
        assert (tmp_path / "b.sgy").stat().st_size == 3600 + 2 * 4 * (240 + 96 * 4)
        layer.save(tmp_path / "c", format="tif", lod=2)
        assert (tmp_path / "c").read_bytes()[:4] == b"II\x2a\0"
        for wrong in (slice(0, 9, 2), [1, 3], [4, 3], [2, 2], slice(5, 5), slice(9, 3, -1)):
            with pytest.raises(IndexError, match="neighbouring positions"):
                layer.save(tmp_path / "d.npy", (wrong,))
    with volfs.open(DEMO / "cells") as dataset, pytest.raises(volfs.VolfsError, match="it is no survey"):
        dataset["color"].save(tmp_path / "d.sgy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "b.sgy", "c"]
