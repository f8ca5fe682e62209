"""Datasets, layers and levels, against what `volfs cat` prints."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import volfs
from conftest import DATA, DEMO, cat, damaged
from volfs import _levels


def test_all_samples_are_those_of_the_program(source: Path) -> None:
    with volfs.open(source) as dataset:
        assert dataset.name == source.name and dataset.metadata["name"] == source.name
        for layer in dataset.layers.values():
            assert len(layer.lods) == next(
                entry["lods"] for entry in dataset.metadata["layers"] if entry["name"] == layer.label
            )
            for lod in layer.lods:
                expected = cat(source, layer.label, layer.level(lod))
                assert np.array_equal(layer.lod(lod), expected)
                assert np.array_equal(layer.read(lod=lod), expected)
                for axis, name in layer.level(lod).axis_names.items():
                    turned = layer.lod(lod, first_axis=name)
                    assert np.array_equal(np.moveaxis(turned, 0, axis), expected)
                    assert np.array_equal(layer.lod(lod, first_axis=axis - expected.ndim), turned)


def test_a_layer_tells_what_its_samples_are() -> None:
    with volfs.open(DEMO / "north.zgy") as dataset:
        layer = dataset.layer
        assert list(dataset.layers) == ["data"] and dataset["data"] is layer
        assert layer.shape == (128, 96, 192) and layer.dtype == np.float32 and layer.lods == [0, 1, 2]
        assert [axis.name for axis in layer.axes] == ["inline", "crossline", "sample"]
        assert layer.axes[2].unit == "ms" and layer.axes[2].first == 1200
        inlines = layer.axes[0].values
        assert inlines is not None and inlines[[0, -1]].tolist() == [1000, 1254]
        assert (layer.no_value, layer.scale, layer.offset) == (None, None, None)
        assert layer.info["codec"] == "zfp" and layer.level(1).shape == (64, 48, 96)
        with pytest.raises(IndexError, match="no level 3"):
            layer.level(3)
        with pytest.raises(ValueError, match="'depth' is no axis"):
            layer.lod(0, first_axis="depth")
        with pytest.raises(volfs.VolfsError, match="no scaled values"):
            layer.scaled()


def test_arrays_are_maps_that_cannot_be_written() -> None:
    with volfs.open(DEMO / "north.zgy") as dataset:
        array = dataset.lod(0, random=True)
        assert isinstance(array, np.memmap) and not array.flags.writeable
        assert dataset.lod(0, first_axis="SAMPLE").shape == (192, 128, 96)


@pytest.mark.parametrize("name", ["zgy/v3_int8.zgy", "zgy/v2_int16.zgy", "vds/scaled.vds", "vds/no-value.vds"])
def test_scaled_values_are_the_same_in_every_direction(name: str) -> None:
    with volfs.open(DATA / name) as dataset:
        for layer in dataset.layers.values():
            if layer.scale is None:
                continue
            for lod in layer.lods:
                mapped = layer.scaled(lod)
                assert mapped.dtype == np.float32
                assert np.array_equal(layer.read(lod=lod, scaled=True), mapped, equal_nan=True)
                for axis in range(mapped.ndim):
                    for n in range(0, mapped.shape[axis], 3):
                        region = (slice(None),) * axis + (n,)
                        read = layer.read(region, lod=lod, scaled=True)
                        assert read.tobytes() == np.ascontiguousarray(mapped[region]).tobytes()


def test_no_data_is_not_a_number_where_values_are_asked_for() -> None:
    with volfs.open(DATA / "vds" / "no-value.vds") as dataset:
        for name in ["bytes", "words", "floats"]:
            layer = dataset.layers[name]
            stored, values = layer.read(), layer.read(scaled=True)
            assert layer.no_value is not None and (stored == layer.no_value).any()
            assert np.array_equal(np.isnan(values), stored == layer.no_value)


def test_a_brick_that_cannot_be_decoded_is_an_error_with_its_cause(tmp_path: Path) -> None:
    with volfs.open(damaged(tmp_path)) as dataset:
        layer = dataset.layer
        with pytest.raises(OSError, match="Input/output error; the mount's log says: damaged.zgy: .*brick") as caught:
            layer.read((20, 30, 40))
        assert caught.value.errno == 5 and caught.value.filename.endswith("damaged.zgy/data/lod0.raw")
        assert np.array_equal(layer.read(slice(64, None)), volfs.open(DEMO / "north.zgy").lod(0)[64:])


def test_a_source_that_changes_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.zgy"
    shutil.copy(DEMO / "north.zgy", path)
    with volfs.open(path) as dataset:
        level = dataset.layer.level(1)
        pickled = pickle.dumps(level)
        assert level.read((0, 0, 0)).shape == ()
        os.utime(path, (1, 1))
        for other in [level, pickle.loads(pickled)]:
            with pytest.raises(OSError):
                # The mount may look at the source up to a second later.
                for _ in range(1000):
                    other.read((0, 0, 0))
                    other.close()


def test_a_closed_dataset_cannot_be_read() -> None:
    with volfs.open(DEMO / "north.zgy") as dataset:
        layer = dataset.layer
    with pytest.raises(ValueError, match="north.zgy is closed"):
        layer.read(0)
    with pytest.raises(ValueError, match="north.zgy is closed"):
        dataset.lod(0)
    with pytest.raises(ValueError, match="north.zgy is closed"):
        assert dataset.metadata
    with pytest.raises(ValueError, match="north.zgy is closed"):
        assert dataset.layers


def test_nothing_waits_for_the_garbage_collector() -> None:
    gc.disable()
    try:
        dataset = volfs.open(DEMO / "north.zgy")
        level = dataset.layer.level(0)
        level.read(0, scaled=True)
        mount = dataset.mount
        references = sys.getrefcount(mount)
        del dataset, level
        assert sys.getrefcount(mount) == references - 1
    finally:
        gc.enable()


def test_copies_and_pickles_use_the_same_mount() -> None:
    with volfs.open(DEMO / "cells") as dataset:
        expected = dataset.layers["segmentation"].read((3, 4))
        for other in [copy.deepcopy(dataset), pickle.loads(pickle.dumps(dataset))]:
            assert other.path == dataset.path and other.mount is dataset.mount is not None
            assert np.array_equal(other.layers["segmentation"].read((3, 4)), expected)
        level = pickle.loads(pickle.dumps(dataset.layers["segmentation"].level(0)))
    # The mount stays for the copy.
    assert np.array_equal(level.read((3, 4)), expected)
    path = other.path
    del level, other
    assert not path.exists() or os.listdir(path)


def test_a_pickle_is_opened_by_its_source_where_the_mount_is_not(tmp_path: Path, temporary: str) -> None:
    with volfs.open(DEMO / "cells") as dataset:
        level = dataset.layers["segmentation"].level(1)
        expected = level.read((3, 4))
        (tmp_path / "level").write_bytes(pickle.dumps(level))
        path = dataset.path
        del level
    # the mount is taken away beside this process
    deadline = time.monotonic() + 30
    while path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    code = f"""
import os, pickle, sys
assert not os.path.exists({str(path)!r})
levels = [pickle.load(open({str(tmp_path / "level")!r}, "rb")) for _ in range(2)]
parts = [level.read((3, 4)) for level in levels]
assert (parts[0] == parts[1]).all()
assert sum("volfs:{DEMO}/cells {temporary}/" in line for line in open("/proc/self/mounts")) == 1
sys.stdout.buffer.write(parts[0].tobytes())
"""
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert done.stdout == expected.tobytes()


def test_places_in_a_mount_are_opened_there(demo: volfs.Mount) -> None:
    with volfs.open(demo.path / "north.zgy") as dataset:
        assert dataset.path == demo.path / "north.zgy" and dataset.mount is None
    for below in ["data", "data/lod1.npy"]:
        assert volfs.open(demo.path / "north.zgy" / below).path == dataset.path
    with pytest.raises(volfs.VolfsError, match="has 4 datasets"):
        volfs.open(demo.path)


def axes_of(*names: str) -> tuple[volfs.Axis, ...]:
    return tuple(volfs.Axis(name, None, None, None, 2) for name in names)


def test_files_are_those_of_their_axes() -> None:
    for names, files in [
        (("Time", "Cross/line 100%", "."), ["Cross%2Fline 100%25", "%2E"]),
        (("x", "x", "y"), ["axis1", "y"]),
        (("z", "y", "y"), ["axis1", "axis2"]),
        (("z", "", "axis1"), ["axis1", "axis1~2"]),
        (("axis1", "", "y\x85"), ["axis1", "y%C2%85"]),
    ]:
        distinct = _levels._distinct(axes_of(*names), first=1)
        assert [_levels._file_name(name) for name in distinct.values()] == files and list(distinct) == [1, 2]


def test_axes_without_names_are_numbered() -> None:
    assert list(_levels._distinct(axes_of("", "x", "x"), first=0).values()) == ["axis0", "axis1", "axis2"]
    assert axes_of("x")[0].values is None


def test_a_box_is_saved_in_every_form(tmp_path: Path) -> None:
    with volfs.open(DEMO / "north.zgy") as dataset:
        layer = dataset.layer
        layer.save(tmp_path / "a.npy", (slice(3, 5), 10, slice(-11, None)))
        assert np.array_equal(np.load(tmp_path / "a.npy"), layer.read((slice(3, 5), slice(10, 11), slice(-11, None))))
        layer.save(tmp_path / "b.sgy", (slice(3, 5),), at=["crossline=2010:2016"], lod=1)
        assert (tmp_path / "b.sgy").stat().st_size == 3600 + 2 * 4 * (240 + 96 * 4)
        layer.save(tmp_path / "c", format="tif", lod=2)
        assert (tmp_path / "c").read_bytes()[:4] == b"II\x2a\0"
        for wrong in (slice(0, 9, 2), [1, 3], slice(5, 5), slice(9, 3, -1)):
            with pytest.raises(IndexError, match="neighbouring positions"):
                layer.save(tmp_path / "d.npy", (wrong,))
    with volfs.open(DATA / "zgy" / "v3_int16.zgy") as dataset:
        dataset.layer.save(tmp_path / "e.npy", scaled=True)
        assert np.array_equal(np.load(tmp_path / "e.npy"), dataset.layer.scaled())
    with volfs.open(DEMO / "cells") as dataset, pytest.raises(volfs.VolfsError, match="it is no survey"):
        dataset["color"].save(tmp_path / "d.sgy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "b.sgy", "c", "e.npy"]
