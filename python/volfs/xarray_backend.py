"""The engine "volfs" of xarray: `xarray.open_dataset("north.zgy", engine="volfs")`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from ._dataset import locate
from ._source import Source, is_path, place_in_mount
from ._survey import world_coordinates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._array import Array
    from ._dataset import Dataset, Location

_CHUNK_BYTES = 64 << 20


class VolfsBackend(BackendEntrypoint):
    """Opens datasets that volfs knows, by their source or by their place in a mount."""

    description = "Open seismic and microscopy volumes (ZGY, VDS, WKW, Zarr, N5, HDF5) through volfs"
    url = ""
    supports_groups = True

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        layer: str | list[str] | None = None,
        lod: int | None = None,
        group: str | None = None,
        mask_and_scale: bool = True,
        quality: int | None = None,
        follow_links: bool = False,
        store_options: Mapping[str, str] | None = None,
    ) -> xarray.Dataset:
        """Open a level of detail: by default the finest, of the first layer and all others on the same positions.

        A `layer` is found in any case, and "data" is the first one where none is called so; its variable has the name
        that was asked for. `group` is another way to say `lod`: "lod1". With `mask_and_scale` scaled integers are their
        values as float32, and "no data" is NaN. A layer that has the name of an axis gets "~2" after it. The other
        options are those of `volfs.open`.
        """
        found = locate(Source.of(filename_or_obj, quality, follow_links, store_options))
        number = _level_number(found, lod, group)
        opened = _open_level(found, number, _layers(found, layer), mask_and_scale, _names(drop_variables))
        opened.set_close(found.dataset.close)
        return opened

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        layer: str | list[str] | None = None,
        mask_and_scale: bool = True,
        **options: Any,
    ) -> dict[str, xarray.Dataset]:
        """Open all levels of detail, each in a group of its own: "/lod0", "/lod1", ..."""
        found = locate(Source.of(filename_or_obj, **options))
        layers = _layers(found, layer)
        wanted = layers or [found.dataset.layer.name]
        lods = sorted({lod for name in wanted for lod in found.dataset[name].lods})
        groups = {"/": xarray.Dataset(attrs=_dataset_attributes(found.dataset))}
        groups["/"].set_close(found.dataset.close)
        for lod in lods:
            here = layers and [name for name in layers if lod in found.dataset[name].lods]
            groups[f"/lod{lod}"] = _open_level(found, lod, here, mask_and_scale, _names(drop_variables))
        return groups

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> xarray.DataTree:
        """Open all levels of detail as a tree: see `open_groups_as_dict`."""
        groups = self.open_groups_as_dict(filename_or_obj, **options)
        tree = xarray.DataTree.from_dict(groups)
        tree.set_close(groups["/"].close)
        return tree

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return whether a path looks like a dataset of a format that volfs reads. No source is opened."""
        try:
            name = os.fspath(filename_or_obj)
            if isinstance(name, bytes) or not is_path(name):
                return False
            path = Path(name).expanduser()
        except (TypeError, RuntimeError):
            # Neither a path, nor one of a home that is known.
            return False
        if os.path.isdir(path):
            signs = [{"datasource-properties.json"}, {"VolumeDataLayout", "LayerStatus"}]
            if any(all(os.path.exists(path / name) for name in sign) for sign in signs):
                return True
        elif path.suffix.lower() in (".zgy", ".vds"):
            return True
        place = place_in_mount(str(path))
        return place is not None and place.is_dataset


class LevelArray(BackendArray):
    """The samples or values of a level, read when they are indexed. Any number of threads may do so."""

    def __init__(self, array: Array, scaled: bool) -> None:
        """Show a level; with `scaled` its values."""
        self.array = array
        self.scaled = scaled
        self.shape = array.shape
        self.dtype = array.values.dtype if scaled else array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        return self.array.read(key, scaled=self.scaled)


def _open_level(found: Location, lod: int, layers: list[str] | None, scaled: bool, dropped: set[str]) -> xarray.Dataset:
    dataset = found.dataset
    if layers is None:
        layers = _on_same_positions(dataset, lod)
    levels = {name: dataset[name].level(lod) for name in layers}
    coordinates: dict[str, xarray.Variable] = {}
    first = levels[layers[0]]
    coordinates.update(world_coordinates(first, _dims(first), dataset.metadata))
    for array in levels.values():
        coordinates.update(_axis_coordinates(array))
    taken = {*coordinates, *(dim for array in levels.values() for dim in _dims(array))}
    # A layer may have the name of an axis.
    variables = {f"{name}~2" if name in taken else name: _variable(array, scaled) for name, array in levels.items()}
    return xarray.Dataset(
        {name: variable for name, variable in variables.items() if name not in dropped},
        {name: variable for name, variable in coordinates.items() if name not in dropped},
        _dataset_attributes(dataset),
    )


def _dims(array: Array) -> tuple[str, ...]:
    """Return the names of the axes, in lower case: formats differ in that, and programs should not."""
    lower = [name.lower() for name in array.axis_names]
    return tuple(
        small if lower.count(small) == 1 else name for name, small in zip(array.axis_names, lower, strict=True)
    )


def _variable(array: Array, scaled: bool) -> xarray.Variable:
    shown, dims, info = LevelArray(array, scaled), _dims(array), array.info
    chunks = _chunks(array, shown.dtype.itemsize)
    encoding: dict[str, Any] = {"preferred_chunks": dict(zip(dims, chunks, strict=True))}
    attributes: dict[str, Any] = {"long_name": info["layer"], "lod": array.lod, "codec": info["codec"]}
    own = info.get(info["format"]) or {}
    attributes["units"] = own.get("unit") if info["format"] == "vds" else None
    attributes["mag"] = own.get("mag")
    attributes["value_range"] = info["value_range"]
    attributes["warnings"] = "\n".join(info["warnings"])
    if array.values.differ and not scaled:
        attributes.update(scale_factor=array.scale, add_offset=array.offset, _FillValue=array.no_value)
    return xarray.Variable(dims, indexing.LazilyIndexedArray(shown), _known(attributes), encoding)


def _chunks(array: Array, itemsize: int) -> list[int]:
    """Return chunks of whole bricks: as many along the fast axes as fit, for these are neighbours in the file."""
    chunks = [max(1, min(brick, size)) for brick, size in zip(array.chunks, array.shape, strict=True)]
    for axis in reversed(range(1, len(chunks))):
        fitting = _CHUNK_BYTES // (math.prod(chunks) * itemsize) * chunks[axis]
        if fitting < array.shape[axis]:
            chunks[axis] = max(chunks[axis], fitting)
            break
        chunks[axis] = array.shape[axis]
    return chunks


def _axis_coordinates(array: Array) -> dict[str, xarray.Variable]:
    coordinates = {}
    for name, axis in zip(_dims(array), array.axes, strict=True):
        values: NDArray[Any] | None = axis.values
        if values is None:
            continue
        unit = None if axis.unit == "unitless" else axis.unit
        if unit is None and (values == np.rint(values)).all():
            # Numbers of lines, not measures.
            values = values.astype(np.int64)
        coordinates[name] = xarray.Variable((name,), values, _known({"long_name": axis.name, "units": unit}))
    return coordinates


def _dataset_attributes(dataset: Dataset) -> dict[str, Any]:
    metadata = dataset.metadata
    geometry = metadata.get("geometry") or {}
    return _known(
        {
            "title": metadata["name"],
            "format": metadata["format"],
            "format_version": metadata["version"],
            "coordinate_system": geometry.get("coordinate_system"),
            "warnings": "\n".join(metadata["warnings"]),
        }
    )


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None and value != ""}


def _on_same_positions(dataset: Dataset, lod: int) -> list[str]:
    first = dataset.layer.level(lod)
    levels = {name: layer.level(lod) for name, layer in dataset.layers.items() if lod in layer.lods}
    return [name for name, level in levels.items() if (level.shape, level.axes) == (first.shape, first.axes)]


def _layers(found: Location, wanted: str | list[str] | None) -> list[str] | None:
    names = [wanted] if isinstance(wanted, str) else wanted
    for name in names or []:
        try:
            layer = found.dataset[name]
        except KeyError:
            known = ", ".join(found.dataset.layers)
            raise ValueError(f"{found.dataset.name} has no layer {name!r}; it has {known}") from None
        if found.layer is not None and layer != found.dataset[found.layer]:
            raise ValueError(f"the path is in the layer {found.layer!r}, but layer={wanted!r} was asked for")
    return names or (None if found.layer is None else [found.layer])


def _level_number(found: Location, lod: int | None, group: str | None) -> int:
    if group is not None:
        number = group.strip("/")[len("lod") :]
        if not group.strip("/").startswith("lod") or not number.isdecimal():
            raise ValueError(f"there is no group {group!r}; levels of detail are the groups 'lod0', 'lod1', ...")
        if lod not in (None, int(number)):
            raise ValueError(f"lod={lod} and group={group!r} are different levels")
        lod = int(number)
    if found.lod is not None:
        if lod not in (None, found.lod):
            raise ValueError(f"the path is a file of level {found.lod}, but level {lod} was asked for")
        return found.lod
    return lod or 0


def _names(names: str | Iterable[str] | None) -> set[str]:
    return {names} if isinstance(names, str) else set(names or ())
