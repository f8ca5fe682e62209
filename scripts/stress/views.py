#!/usr/bin/env python3
"""Reads every view of every layer below a folder with the programs of its field, and compares with lodN.raw: samples,
spacing, positions, line numbers. For data of one's own; scripts/test_clients.sh does the same with the test data.

    volfs mount SOURCE /mnt/vol; scripts/stress/views.py /mnt/vol

Needs what tests/clients/requirements.txt lists; what is not installed is left out. Prints a line for each layer and for
each difference, and fails if there was one.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Check = Callable[["Layer"], None]
MAX_BYTES = 256 << 20


class Layer:
    """A folder of a layer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.levels = sorted(int(path.stem[3:]) for path in folder.glob("lod*.raw"))
        self.about = {n: json.loads((folder / f"lod{n}.json").read_text()) for n in self.levels}
        self.geometry = json.loads((folder.parent / "dataset.json").read_text()).get("geometry") or {}

    def raw(self, level: int = 0) -> np.ndarray[Any, Any]:
        about = self.about[level]
        return np.fromfile(self.folder / f"lod{level}.raw", np.dtype(about["dtype"]).newbyteorder("<")).reshape(about["shape"])

    def values(self, level: int = 0) -> np.ndarray[Any, Any]:
        scaled = self.folder / f"lod{level}.float32.npy"
        return np.load(scaled) if scaled.exists() else self.raw(level)

    def path(self, suffix: str) -> str:
        """Return a file of the finest level that there is, or skip the check."""
        path = self.folder / f"lod0{suffix}"
        if not path.exists():
            raise FileNotFoundError(path)
        return str(path)

    def axis_values(self, axis: int) -> np.ndarray[Any, Any]:
        about = self.about[0]["axes"][axis]
        return about["first"] + about["step"] * np.arange(about["count"])


def same(got: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.squeeze(np.asarray(got)), np.squeeze(np.asarray(expected)))


def names(layer: Layer) -> list[str]:
    return [axis["name"].lower() for axis in layer.about[0]["axes"]]


def module(name: str) -> Any:
    return importlib.import_module(name)


def numpy_files(layer: Layer) -> None:
    for level in layer.levels:
        same(np.load(layer.folder / f"lod{level}.npy", mmap_mode="r"), layer.raw(level))
        axes = [axis["name"].lower() for axis in layer.about[level]["axes"]]
        for turned in layer.folder.glob(f"lod{level}.by-*.npy"):
            first = axes.index(turned.name.lower().removeprefix(f"lod{level}.by-").removesuffix(".npy"))
            same(np.load(turned), np.moveaxis(layer.raw(level), first, 0))


def itk(layer: Layer, suffix: str) -> None:
    sitk = module("SimpleITK")
    image = sitk.ReadImage(layer.path(suffix))
    same(sitk.GetArrayFromImage(image), layer.raw())
    axes = [axis for axis in layer.about[0]["axes"][::-1] if axis["name"] != "channel"]
    if not layer.geometry.get("corners"):
        np.testing.assert_allclose(image.GetSpacing(), [abs(axis["step"]) for axis in axes], rtol=1e-6)


def nrrd(layer: Layer) -> None:
    data, header = module("nrrd").read(layer.path(".nhdr"), index_order="C")
    same(data, layer.raw())
    assert header["encoding"] == "raw"


def tiff(layer: Layer) -> None:
    files = sorted((layer.folder / "tiff").glob("lod0*.tif"))
    if not files:
        raise FileNotFoundError
    with module("tifffile").TiffFile(files[0]) as file:
        same(file.asarray(), layer.raw())


def ome_tiff(layer: Layer) -> None:
    files = sorted((layer.folder / "tiff").glob("lod0*.tif"))
    description = module("tifffile").TiffFile(files[0]).ome_metadata if files else None
    if not description:
        raise FileNotFoundError
    pixels = module("ome_types").from_xml(description).images[0].pixels
    assert pixels.physical_size_x is None or pixels.physical_size_x > 0


def zarr(layer: Layer) -> None:
    root = layer.folder.with_name(layer.folder.name + ".ome.zarr")
    if not root.exists():
        raise FileNotFoundError
    group = module("zarr").open_group(root, mode="r")
    if "ome" not in group.attrs:
        raise FileNotFoundError
    scales = group.attrs["ome"]["multiscales"][0]["datasets"]
    for level, scale in zip(layer.levels, scales, strict=True):
        array = np.squeeze(group[scale["path"]][:])
        expected = np.squeeze(layer.raw(level))
        same(array if array.shape == expected.shape else np.moveaxis(array, 0, -1), expected)


def xarray(layer: Layer) -> None:
    root = layer.folder.with_name(layer.folder.name + ".zarr")
    if not (root / "lod0").exists():
        raise FileNotFoundError
    image = module("xarray").open_zarr(root / "lod0", consolidated=False)["image"]
    same(image.values if image.dims[-1].lower() == names(layer)[-1] else np.moveaxis(image.values, 0, -1), layer.raw())
    for axis, name in enumerate(names(layer)):
        if name in image.coords:
            np.testing.assert_allclose(image.coords[name].values, layer.axis_values(axis), rtol=1e-9)


def segy(layer: Layer) -> None:
    with module("segyio").open(layer.path(".sgy")) as file:
        expected = np.nan_to_num(layer.values().astype("f4"), nan=0)
        no_value = layer.about[0]["no_value"]
        if no_value is not None:
            expected = np.where(layer.raw() == np.float32(no_value), np.float32(0), expected)
        same(module("segyio").tools.cube(file), expected)
        same(file.ilines, layer.axis_values(0))
        same(file.xlines, layer.axis_values(1))
        np.testing.assert_allclose(file.samples, layer.axis_values(2), atol=0.5)
        scale = file.header[0][71]
        x = file.header[0][181] * (1 / -scale if scale < 0 else scale or 1)
        world = (layer.geometry.get("corners") or [{}])[0].get("world")
        assert not world or abs(x - world[0]) < 1, (x, world)


def pictures(layer: Layer) -> None:
    images = list(layer.folder.rglob("*.png"))[:20]
    for image in images:
        module("PIL.Image").open(image).load()


CHECKS: dict[str, Check] = {
    "npy": numpy_files,
    "nhdr, SimpleITK": lambda layer: itk(layer, ".nhdr"),
    "nhdr, pynrrd": nrrd,
    "mhd, SimpleITK": lambda layer: itk(layer, ".mhd"),
    "tif, tifffile": tiff,
    "tif, ome-types": ome_tiff,
    "ome.zarr, zarr": zarr,
    "zarr, xarray": xarray,
    "sgy, segyio": segy,
    "png, Pillow": pictures,
}


def layers(top: Path) -> Iterator[Path]:
    """Yield the folders of layers: those that have lod0.raw."""
    yield from sorted(path.parent for path in top.rglob("lod0.raw"))


def main() -> int:
    """Check every layer, and return the exit status."""
    (top,) = map(Path, sys.argv[1:])
    failures, counts = 0, Counter[str]()
    for folder in layers(top):
        layer, done, absent = Layer(folder), [], []
        if (folder / "lod0.raw").stat().st_size > MAX_BYTES:
            print(f"{folder.relative_to(top)}: left out, too large")
            continue
        for name, check in CHECKS.items():
            try:
                check(layer)
            except (ModuleNotFoundError, FileNotFoundError):
                absent.append(name)
            except Exception as error:  # noqa: BLE001
                failures += 1
                print(f"{folder.relative_to(top)}: {name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            else:
                done.append(name)
                counts[name] += 1
        print(f"{folder.relative_to(top)} {tuple(layer.about[0]['shape'])}: {'; '.join(done)}. Not there: {', '.join(absent)}")
    print(f"{sum(counts.values())} checks passed, {failures} failed: {dict(counts)}")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
