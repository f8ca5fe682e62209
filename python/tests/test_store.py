"""Layers as stores of zarr-python, and the files of a mount that they are made of, read in process."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import volfs
from conftest import DATA, DEMO, damaged
from volfs import _array

zarr = pytest.importorskip("zarr", "3.1")

from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest  # noqa: E402
from zarr.core.buffer import default_buffer_prototype  # noqa: E402

NORTH = DEMO / "north.zgy"


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def listed(keys: AsyncIterator[str]) -> list[str]:
    async def all_keys() -> list[str]:
        return sorted([key async for key in keys])

    return asyncio.run(all_keys())


def read(store: Any, key: str, part: Any = None) -> bytes | None:
    buffer = run(store.get(key, default_buffer_prototype(), part))
    return None if buffer is None else bytes(buffer.to_bytes())


def some(names: list[str]) -> list[str]:
    """Return a few of many names."""
    return names if len(names) < 16 else [names[0], names[len(names) // 2], names[-1]]


def compare(engine: Any, shown: Path, folder: str) -> int:
    """Compare the files of a folder with those of a mount, and return how many were compared."""
    names = engine._list(folder)
    assert sorted(name.rstrip("/") for name in names) == sorted(os.listdir(shown / folder)), folder
    compared = 0
    for name in some(names):
        path = folder + name
        if name.endswith("/"):
            assert engine._size(path) is None and (shown / path).is_dir()
            compared += compare(engine, shown, path)
            continue
        size = engine._size(path)
        assert size == (shown / path).stat().st_size, path
        with open(shown / path, "rb") as file:
            for start in sorted({0, size // 2}):
                file.seek(start)
                try:
                    expected = file.read(30_000)
                except OSError:
                    with pytest.raises(volfs.VolfsError):
                        engine._read(path, start, min(30_000, size - start))
                else:
                    assert engine._read(path, start, len(expected)) == expected, (path, start)
        compared += 1
    return compared


@pytest.mark.parametrize("folder", ["demo", "segy", "vds", "wkw", "zgy"])
def test_all_files_are_those_of_a_mount(folder: str) -> None:
    compared = 0
    with volfs.mount(DATA / folder) as mount:
        for place in sorted(mount.path.iterdir()):
            if place.is_dir() and (place / "dataset.json").exists():
                compared += compare(volfs.open(place)._engine, place, "")
    assert compared > 100


def test_files_are_found_by_their_paths() -> None:
    engine = volfs.open(NORTH)._engine
    assert engine._list("data/nothing") is None and engine._list("dataset.json") is None
    assert engine._size("dataset.json/x") is None and engine._size("data") is None and engine._size("") is None
    assert engine._size("/DATA//lod0.raw") == 128 * 96 * 192 * 4
    whole = engine._read("data/lod0.raw", 0, 128 * 96 * 192 * 4)
    assert np.array_equal(np.frombuffer(whole, "<f4"), volfs.open(NORTH).layer.read().ravel())
    with pytest.raises(ValueError, match="has 4 bytes from"):
        engine._read("data/lod0.raw", 128 * 96 * 192 * 4 - 4, 5)
    with pytest.raises(volfs.ReadFailed, match="north.zgy/data/lod9.raw: there is no such file"):
        engine._read("data/lod9.raw", 0, 1)


def test_samples_are_those_of_the_arrays(source: Path) -> None:
    dataset = volfs.open(source)
    for name, layer in dataset.layers.items():
        group = zarr.open(volfs.store(source, name))
        # what is known of each trace is no image
        described = group.attrs["ome"]["multiscales"][0]["name"] if "ome" in group.attrs else layer.axes[-1].name
        assert described in (layer.label, "value")
        for lod in layer.lods:
            array = layer.level(lod)
            assert group[str(lod)].dtype == array.dtype and np.array_equal(group[str(lod)][...], array)
        box = tuple(slice(n // 3, n // 2 + 1) for n in layer.shape)
        assert np.array_equal(group["0"][box], layer.read(box))


def test_channels_come_first() -> None:
    for name in ("rgb", "flow"):
        expected = np.moveaxis(volfs.open(DATA / "wkw" / "pyramid")[name].read(), -1, 0)
        assert np.array_equal(zarr.open(volfs.store(DATA / "wkw" / "pyramid", name))["0"][...], expected)


def test_a_layer_is_named_by_the_path(demo: volfs.Mount) -> None:
    store = volfs.store(NORTH)
    assert str(store) == f"volfs:{NORTH}/data.ome.zarr" and repr(store) == f"VolfsStore('{store}')"
    for path in ("north.zgy/data", "north.zgy/DATA.ome.zarr", "north.zgy/data/"):
        assert volfs.store(DEMO / path) == volfs.store(f"{DEMO}/{path}") == store
    for path in ("north.zgy", "north.zgy/data", "north.zgy/data.ome.zarr", "north.zgy/data/lod1.npy"):
        assert volfs.store(demo.path / path) == store
    assert volfs.store(DEMO / "cells", "segmentation") == volfs.store(DEMO / "cells" / "segmentation") != store
    assert str(volfs.store(DEMO / "cells" / "segmentation")).endswith("/cells/segmentation.ome.zarr")
    assert str(volfs.store(DEMO / "south.vds", "data")).endswith("/south.vds/Amplitude.ome.zarr")
    for wrong, error in [("north.zgy/depth", "north.zgy has no layer 'depth'; it has data"), ("no/data", "no such")]:
        with pytest.raises(volfs.VolfsError, match=error):
            volfs.store(DEMO / wrong)
    with pytest.raises(volfs.VolfsError, match="cells has no layer 'x'; it has color, segmentation"):
        volfs.store(DEMO / "cells", "x")


def test_keys_are_the_files_of_a_mount(demo: volfs.Mount) -> None:
    store, shown = volfs.store(DEMO / "cells" / "segmentation"), demo.path / "cells" / "segmentation.ome.zarr"
    files = sorted(str((Path(at) / name).relative_to(shown)) for at, _, names in os.walk(shown) for name in names)
    assert listed(store.list()) == listed(store.list_prefix("")) == files
    for prefix in ("0", "0/", "0/c/0", "1/zarr", "labels/", "x", "0/c/0/0/0/x"):
        assert listed(store.list_prefix(prefix)) == [key for key in files if key.startswith(prefix)]
    for folder in ("", "0", "0/", "0/c/0", "lod0"):
        assert listed(store.list_dir(folder)) == sorted(os.listdir(shown / folder))
    assert listed(store.list_dir("x")) == listed(store.list_dir("zarr.json")) == []


def test_chunks_of_the_fill_value_are_absent(tmp_path: Path) -> None:
    shutil.copytree(DEMO / "cells", tmp_path / "cells")
    shutil.rmtree(tmp_path / "cells" / "color" / "1" / "z2")
    store = volfs.store(tmp_path / "cells" / "color")
    array, level = zarr.open(store)["0"], volfs.open(tmp_path / "cells")["color"].level(0)
    assert array.chunks == (64, 64, 64) and array.nchunks_initialized == 4
    assert listed(store.list_prefix("0/c/")) == [f"0/c/0/{y}/{x}" for y in (0, 1) for x in (0, 1)]
    assert run(store.exists("0/c/0/1/1")) and not run(store.exists("0/c/1/1/1"))
    assert run(store.getsize("0/c/0/1/1")) == 64**3 and read(store, "0/c/1/1/1") is None
    assert np.array_equal(array[...], level) and not array[64:].any()
    assert zarr.open(volfs.store(DATA / "zgy" / "v3_never_written.zgy"))["0"].nchunks_initialized == 0


def test_parts_of_files_are_read() -> None:
    store = volfs.store(NORTH)
    key = "1/c/0/0/0"
    whole = read(store, key)
    assert whole is not None and len(whole) == run(store.getsize(key))
    parts = [None, RangeByteRequest(5, 99), RangeByteRequest(9, 10**9), OffsetByteRequest(70), SuffixByteRequest(12)]
    expected = [whole, whole[5:99], whole[9:], whole[70:], whole[-12:]]
    assert [read(store, key, part) for part in parts] == expected
    assert read(store, key, RangeByteRequest(7, 7)) == b"" and read(store, key, SuffixByteRequest(10**9)) == whole
    assert read(store, key, OffsetByteRequest(10**9)) == b""
    asked = [(key, part) for part in parts] + [("1/c/9/9/9", None), ("1", None)]
    got = run(store.get_partial_values(default_buffer_prototype(), asked))
    assert [buffer and buffer.to_bytes() for buffer in got] == [*expected, None, None]
    with pytest.raises(FileNotFoundError):
        run(store.getsize("nothing"))
    assert run(store.is_empty("nothing")) and not run(store.is_empty("0"))


def test_nothing_can_be_written() -> None:
    store = volfs.store(NORTH)
    assert store.read_only and store.supports_listing and not (store.supports_writes or store.supports_deletes)
    value = default_buffer_prototype().buffer.from_bytes(b"x")
    for work in (store.set("x", value), store.delete("zarr.json"), store.delete_dir("0"), store.clear()):
        with pytest.raises(ValueError, match="data.ome.zarr is read-only: volfs writes to no volume"):
            run(work)
    with pytest.raises(ValueError, match="read-only"):
        store.with_read_only(False)
    with pytest.raises(ValueError, match="read-only"):
        zarr.open(store)["0"][0] = 1
    assert store.with_read_only(True) == store


def test_stores_are_pickled_and_compared(tmp_path: Path) -> None:
    path = tmp_path / "survey.zgy"
    shutil.copy(NORTH, path)
    store = volfs.store(path)
    again = pickle.loads(pickle.dumps(store))
    assert again == store and hash(again) == hash(store) and again != volfs.store(NORTH) and store != str(store)
    folder = volfs.store(DEMO / "cells", "color")
    other = volfs.store(DEMO / "cells", "color")
    assert folder == pickle.loads(pickle.dumps(folder)) == other and hash(folder) == hash(other)
    assert pickle.loads(pickle.dumps(folder))._engine is not pickle.loads(pickle.dumps(other))._engine
    assert np.array_equal(zarr.open(again)["2"][...], zarr.open(store)["2"][...])
    array = pickle.loads(pickle.dumps(zarr.open(store)["1"]))
    assert np.array_equal(array[...], volfs.open(path).layer.level(1))
    pickled = pickle.dumps(store)
    path.write_bytes((DATA / "zgy" / "v3_int8.zgy").read_bytes())
    assert volfs.store(path) != store
    _array._open_again.cache_clear()
    with pytest.raises(volfs.SourceChanged):
        pickle.loads(pickled)


def test_the_event_loop_is_not_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    store = volfs.store(NORTH)
    threads: set[int] = set()

    def noted(work: Callable[..., Any]) -> Callable[..., Any]:
        def work_and_note(*args: Any) -> Any:
            threads.add(threading.get_ident())
            return work(*args)

        return work_and_note

    for name in ("_read", "_size", "_names"):
        monkeypatch.setattr(store, name, noted(getattr(store, name)))
    assert read(store, "0/c/0/0/0") and run(store.exists("zarr.json")) and listed(store.list_dir(""))
    assert threads and threading.get_ident() not in threads


def test_a_damaged_brick_fails_its_chunk_alone(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    array = zarr.open(volfs.store(path))["0"]
    with pytest.raises(volfs.DamagedBrick, match="damaged.zgy/data.ome.zarr/0/c/0/0/0, brick"):
        array[0, 0, 0]
    assert np.array_equal(array[64:], volfs.open(NORTH).layer.read((slice(64, None),)))


def test_xarray_and_dask_take_it() -> None:
    xarray = pytest.importorskip("xarray")
    dask = pytest.importorskip("dask.array")
    store = volfs.store(NORTH)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        level = xarray.open_zarr(store, group="lod1")
    assert level.image.dims == ("inline", "crossline", "sample") and level.inline.values[1] == 1004
    assert np.array_equal(level.image.values, volfs.open(NORTH).layer.level(1))
    array = dask.from_zarr(zarr.open(store)["0"])
    assert np.isclose(array.mean().compute(), volfs.open(NORTH).layer.read().mean(), rtol=1e-4)


def test_models_of_ome_zarr_accept_it() -> None:
    models = pytest.importorskip("ome_zarr_models.v05")
    image = models.Image.from_zarr(zarr.open_group(volfs.store(DEMO / "cells" / "color"), mode="r"))
    assert [axis.name for axis in image.ome_attributes.multiscales[0].axes] == ["z", "y", "x"]


def test_without_zarr_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "zarr" or name.startswith("zarr.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "volfs.zarr_store")
    with pytest.raises(ImportError, match="volfs.store needs zarr-python 3.1 .*: pip install 'zarr>=3.1'"):
        volfs.store(NORTH)
