"""The engine of xarray: dims, coordinates, laziness, dask, and groups."""

from __future__ import annotations

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import volfs
from conftest import DATA, DEMO, cat, damaged

xarray = pytest.importorskip("xarray")

from volfs.xarray_backend import VolfsBackend  # noqa: E402

ENGINE = "volfs"


def opened(path: Path | str, **options: Any) -> Any:
    return xarray.open_dataset(path, engine=ENGINE, **options)


def test_the_engine_is_known() -> None:
    assert isinstance(xarray.backends.list_engines()[ENGINE], VolfsBackend)


def test_all_samples_are_those_of_the_program(source: Path) -> None:
    dataset = volfs.open(source)
    for name, layer in dataset.layers.items():
        for lod in layer.lods:
            expected = cat(source, layer.level(lod))
            with opened(source, layer=name, lod=lod, mask_and_scale=False) as level:
                assert list(level.data_vars) == [name]
                assert level[name].dtype == expected.dtype and np.array_equal(level[name], expected)


def test_a_survey_has_line_numbers_and_world_coordinates() -> None:
    with opened(DEMO / "north.zgy") as survey:
        data = survey["data"]
        assert data.dims == ("inline", "crossline", "sample")
        assert data.inline.dtype == np.int64 and data.inline.values[[0, 1, -1]].tolist() == [1000, 1002, 1254]
        assert data.sample.attrs["units"] == "ms" and data.sample.values[1] == 1204
        assert survey.X.dims == ("inline", "crossline") and survey.X.attrs["units"] == "m"
        assert survey.attrs["format"] == "zgy" and data.attrs["codec"] == "zfp"
        expected = volfs.open(DEMO / "north.zgy").layer.read((50, 5, 10))
        assert data.sel(inline=1100, crossline=2005, sample=1240) == expected


@pytest.mark.parametrize("name", ["north.zgy", "south.vds", "cloud-survey"])
def test_world_coordinates_go_through_the_corners_on_every_level(name: str) -> None:
    corners = volfs.open(DEMO / name).metadata["geometry"]["corners"]
    for lod in range(3):
        with opened(DEMO / name, lod=lod) as level:
            dims = level.X.dims
            lines = [level[dim] for dim in dims]
            ranges = [(corners[0]["annotation"][n], corners[3]["annotation"][n]) for n in (0, 1)]
            u, v = np.meshgrid(
                *((line - a) / (b - a) for line, (a, b) in zip(lines, ranges, strict=True)), indexing="ij"
            )
            for n, coordinate in enumerate([level.X, level.Y]):
                a, b, c, _ = (corner["world"][n] for corner in corners)
                assert np.allclose(coordinate, a + u * (b - a) + v * (c - a), rtol=0, atol=1e-6)
                assert np.array_equal(coordinate[{dims[0]: 3}], coordinate.values[3])
                some = {dims[0]: [1, 4], dims[1]: slice(2, 5)}
                assert np.array_equal(coordinate[some], coordinate.values[[1, 4], 2:5])
                assert np.array_equal(coordinate[{dims[1]: 7}], coordinate.values[:, 7])


def test_microscopy_has_positions_and_all_layers() -> None:
    with opened(DEMO / "cells") as cells:
        assert set(cells.data_vars) == {"color", "segmentation"} and dict(cells.sizes) == {"z": 96, "y": 96, "x": 96}
        assert cells.x.attrs["units"] == "nanometer" and cells.z.values[1] == 28
    with opened(DEMO / "cells", lod=1) as cells:
        assert cells.sizes["x"] == 48 and cells["color"].attrs["mag"] == [2, 2, 1]
    with opened(DATA / "wkw" / "pyramid", layer="rgb") as cells:
        assert cells.rgb.dims == ("z", "y", "x", "channel")


def test_layers_on_other_positions_are_opened_by_name() -> None:
    with opened(DEMO / "south.vds") as survey:
        assert list(survey.data_vars) == ["Amplitude"]
    with opened(DEMO / "south.vds", layer=["Amplitude", "Trace"]) as survey:
        assert list(survey.data_vars) == ["Amplitude", "Trace"] and survey.sizes["value"] == 1
    with opened(DEMO / "south.vds", drop_variables=["X", "Amplitude"]) as survey:
        assert "X" not in survey.coords and "Y" in survey.coords and not survey.data_vars
    with pytest.raises(ValueError, match="no layer 'Depth'; it has Amplitude, Trace, SEGYTraceHeader"):
        opened(DEMO / "south.vds", layer="Depth")


def test_a_layer_may_have_the_name_of_an_axis(tmp_path: Path) -> None:
    path = DATA / "vds" / "four.vds"
    with volfs.open(path) as dataset, opened(path, layer="Offset") as survey:
        assert list(survey.data_vars) == ["Offset"] and "offset" in survey.coords
        assert np.array_equal(survey["Offset"], dataset.layers["Offset"].read())
    shutil.copytree(DEMO / "cells" / "color", tmp_path / "cells" / "z")
    with opened(tmp_path / "cells") as cells:
        assert list(cells.data_vars) == ["z~2"] and cells["z~2"].dims == ("z", "y", "x")


@pytest.mark.parametrize("name", ["north.zgy", "south.vds", "cloud-survey"])
def test_one_program_reads_all_formats(name: str) -> None:
    with volfs.open(DEMO / name) as dataset, opened(DEMO / name, layer="data") as survey:
        data = survey["data"]
        assert list(survey.data_vars) == ["data"] and data.dims == ("inline", "crossline", "sample")
        assert data.sample.attrs["long_name"].lower() == "sample" and survey.X.dims == ("inline", "crossline")
        assert dataset["data"] == dataset.layer == dataset[dataset.layer.name.upper()]
        line = int(data.inline[3])
        assert np.array_equal(data.sel(inline=line), dataset.layer.read(3))
        other = dataset.layer.name.lower()
    with opened(DEMO / name, layer=[other, "data"], lod=1) as survey:
        assert survey[other].equals(survey["data"])


def test_layers_have_other_names_in_a_mount_too(demo: volfs.Mount) -> None:
    path = demo.path / "south.vds"
    with opened(path / "data" / "lod1.npy") as survey, opened(path / "Amplitude", lod=1) as same:
        assert survey["data"].equals(same["Amplitude"])
    with opened(path / "data", layer="amplitude") as survey:
        assert list(survey.data_vars) == ["amplitude"]
    with pytest.raises(ValueError, match="in the layer 'data', but layer='Trace'"):
        opened(path / "data", layer="Trace")


def test_indexing_is_that_of_numpy(demo: volfs.Mount) -> None:
    survey = opened(demo.path / "south.vds")
    data, plain = survey["Amplitude"], demo.datasets["south.vds"].layer.read()
    assert np.array_equal(data[3:40:5, ::-1, -7], plain[3:40:5, ::-1, -7])
    assert np.array_equal(data[[40, 1, 1], :, [5, 9]], plain[[40, 1, 1]][:, :, [5, 9]])
    assert np.array_equal(data.isel(sample=plain[0].argmax() % 120).T, plain[:, :, plain[0].argmax() % 120].T)
    inlines, crosslines = xarray.DataArray([1, 60, 7], dims="p"), xarray.DataArray([3, 3, 79], dims="p")
    assert np.array_equal(data.isel(inline=inlines, crossline=crosslines), plain[[1, 60, 7], [3, 3, 79]])
    assert np.array_equal(data.where(data > 0, drop=False).max(), plain.max())
    survey.close()


def test_places_in_a_mount_are_opened_there(demo: volfs.Mount) -> None:
    place = demo.path / "cells"
    for path, layers, size in [
        (place, {"color", "segmentation"}, 96),
        (place / "color", {"color"}, 96),
        (place / "color" / "lod1.npy", {"color"}, 48),
        (place / "segmentation" / "lod2.raw", {"segmentation"}, 24),
        (place / "segmentation" / "lod2.json", {"segmentation"}, 24),
    ]:
        with opened(str(path)) as cells:
            assert set(cells.data_vars) == layers and cells.sizes["x"] == size
    with pytest.raises(ValueError, match="level 1, but level 2"):
        opened(place / "color" / "lod1.npy", lod=2)
    with pytest.raises(ValueError, match="layer 'color', but layer='segmentation'"):
        opened(place / "color", layer="segmentation")


def test_the_engine_is_guessed(demo: volfs.Mount) -> None:
    backend = VolfsBackend()
    place = demo.path / "north.zgy"
    for path in [*DEMO.iterdir(), place, place / "data", place / "data" / "lod0.npy", str(place), "some/where.VDS"]:
        assert backend.guess_can_open(path), path
    others = [DEMO, demo.path, DEMO.parent / "vds" / "expected.json", "a.nc", "~nobody.nc", "/no/where", 5, b"a"]
    for other in [*others, "https://example.org/x.vds", "s3://bucket/x.zgy"]:
        assert not backend.guess_can_open(other), other
    with xarray.open_dataset(DEMO / "north.zgy") as survey:
        assert "data" in survey


@pytest.mark.parametrize("name", ["zgy/v3_int8.zgy", "vds/no-value.vds"])
def test_values_are_scaled_and_masked_unless_told_otherwise(name: str) -> None:
    for layer_name, layer in volfs.open(DATA / name).layers.items():
        with opened(DATA / name, layer=layer_name) as values:
            assert values[layer_name].dtype == np.float32
            assert np.array_equal(values[layer_name], layer.read(scaled=True), equal_nan=True)
        with opened(DATA / name, layer=layer_name, mask_and_scale=False) as stored:
            attributes = stored[layer_name].attrs
            assert stored[layer_name].dtype == layer.dtype
            assert attributes.get("scale_factor") == layer.scale and attributes.get("_FillValue") == layer.no_value
        with opened(DATA / name, layer=layer_name, decode_cf=False) as stored:
            assert stored[layer_name].dtype == layer.dtype


def test_groups_are_levels() -> None:
    with opened(DEMO / "north.zgy", group="lod1") as by_group, opened(DEMO / "north.zgy", lod=1) as by_lod:
        assert by_group.identical(by_lod) and by_group.sizes["inline"] == 64
    with pytest.raises(ValueError, match="no group 'data'"):
        opened(DEMO / "north.zgy", group="data")
    with pytest.raises(ValueError, match="different levels"):
        opened(DEMO / "north.zgy", group="lod1", lod=2)
    with pytest.raises(IndexError, match="no level 3"):
        opened(DEMO / "north.zgy", lod=3)


@pytest.mark.skipif(not hasattr(xarray, "open_datatree"), reason="xarray before 2024.10 has no trees")
def test_levels_are_a_tree(source: Path) -> None:
    with xarray.open_datatree(source, engine=ENGINE) as tree:
        assert list(tree.children) == ["lod0", "lod1", "lod2"]
        for lod, name in enumerate(tree.children):
            with opened(source, lod=lod) as level:
                assert tree[name].to_dataset().identical(level)
    groups = xarray.open_groups(source, engine=ENGINE)
    assert set(groups) == {"/", "/lod0", "/lod1", "/lod2"}


def test_nothing_is_decoded_before_it_is_needed(tmp_path: Path) -> None:
    with opened(damaged(tmp_path)) as survey:
        assert "inline" in str(survey) and survey.X.values.shape == (128, 96)
        first = survey["data"].isel(inline=0)
        with pytest.raises(volfs.DamagedBrick):
            first.load()
        assert survey["data"].isel(inline=slice(64, None)).load().shape == (64, 96, 192)


def test_threads_read_without_a_lock() -> None:
    with opened(DEMO / "north.zgy") as survey, ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda n: survey["data"].isel(inline=n).values, range(128)))
        assert np.array_equal(np.stack(parts), survey["data"])


def test_a_level_can_be_pickled(tmp_path: Path) -> None:
    shutil.copy(DEMO / "north.zgy", tmp_path)
    with opened(tmp_path / "north.zgy", lod=2) as survey:
        pickled = pickle.dumps(survey)
    with opened(DEMO / "north.zgy", lod=2) as survey:
        assert pickle.loads(pickle.dumps(survey)).identical(survey)
    with open(tmp_path / "north.zgy", "ab") as file:
        file.write(b"?")
    with pytest.raises(volfs.SourceChanged, match="it was changed since it was opened; open it again"):
        pickle.loads(pickled)


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask_reads_all_formats(scheduler: str) -> None:
    dask = pytest.importorskip("dask")
    surveys = [opened(DEMO / name, chunks={}) for name in ["north.zgy", "south.vds", "cells"]]
    arrays = [next(iter(survey.data_vars.values())) for survey in surveys]
    assert all(array.chunks for array in arrays)
    with dask.config.set(scheduler=scheduler, num_workers=2):
        sums = dask.compute(*(array.astype("float64").sum(array.dims[0]) for array in arrays))
    for survey, array, total in zip(surveys, arrays, sums, strict=True):
        assert np.array_equal(total, opened(survey.encoding["source"])[array.name].astype("float64").sum(array.dims[0]))
        survey.close()


def test_chunks_are_whole_bricks() -> None:
    pytest.importorskip("dask")
    with opened(DEMO / "north.zgy", chunks={}) as survey:
        assert survey["data"].chunks == ((64, 64), (96,), (192,))
    with opened(DEMO / "cells", chunks={"z": 64}) as cells:
        assert cells["color"].chunks == ((64, 32), (96,), (96,))
