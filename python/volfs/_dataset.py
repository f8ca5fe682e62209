"""Datasets and their layers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from . import _volfs
from ._array import Array, Axis
from ._errors import VolfsError
from ._selection import box_of
from ._source import Source, is_path, parsed, place_in_mount

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ._array import Values
    from ._mapped import Mapped
    from ._selection import Selection


def open(
    path: str | os.PathLike[str],
    *,
    quality: int | None = None,
    follow_links: bool = False,
    store_options: Mapping[str, str] | None = None,
) -> Dataset:
    """Open a dataset by its path, its URL in an object store, or its place in a mount. Reads headers, and no samples.

    `quality` (0 to 15) decodes only a part of wavelet-coded samples, `follow_links` follows links that lead out of a
    folder, and `store_options` are those of `volfs mount --store-option`. Raises a VolfsError that tells why not.
    """
    return locate(Source.of(path, quality, follow_links, store_options)).dataset


class Location(NamedTuple):
    """A dataset, and the layer and level in it if a path in a mount means one."""

    dataset: Dataset
    layer: str | None = None
    lod: int | None = None


def locate(source: Source) -> Location:
    """Open a dataset, and tell what in it the path means."""
    place = place_in_mount(source.path) if is_path(source.path) else None
    if place is None:
        return Location(Dataset(source))
    return Location(Dataset(*place.open(source)), place.layer, place.lod)


class Dataset:
    """A dataset: its layers by name, and all that is known of it.

    Arrays that were taken from it can be read after it is closed, and keep the source open until they are dropped.
    """

    def __init__(self, source: Source, engine: _volfs.Dataset | None = None) -> None:
        """Show a dataset, open it if it is not. Call `volfs.open` instead."""
        engine = engine or source.open()
        self._source = source.opened_as(engine)
        self._open: _volfs.Dataset | None = engine
        self._arrays: dict[tuple[str, int], Array] = {}
        self.name = engine.name
        """The name of its file or folder."""
        self.path = source.path
        """The absolute path, or the URL."""
        self.format = engine.format
        """The format: "zgy", "vds" or "wkw"."""

    def __repr__(self) -> str:
        return f"<volfs.Dataset {self.name}{'' if self._open else ', closed'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (self._source,)

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The whole of dataset.json."""
        return parsed(self._engine._metadata())

    @property
    def layers(self) -> Mapping[str, Layer]:
        """The layers by name, in the dataset's order."""
        return MappingProxyType({name: Layer(self, name) for name, _ in self._engine._layers()})

    @property
    def layer(self) -> Layer:
        """The first layer: the only one of a ZGY file."""
        for layer in self.layers.values():
            return layer
        reasons = "; ".join(f"{hidden['name']}: {hidden['reason']}" for hidden in self.metadata["layers"])
        raise VolfsError(f"{self.name} has no layer that can be read{reasons and ': '}{reasons}")

    def __getitem__(self, layer: str) -> Layer:
        """Return a layer by its name, in any case; "data" is the first one where none is called so."""
        if not isinstance(layer, str):
            _refuse_index("dataset.layer.level(0)[...]")
        found = self._engine._find(layer)
        if found is None:
            raise KeyError(layer)
        return Layer(self, found)

    def close(self) -> None:
        """Close it. What is asked of it or its layers afterwards raises ValueError."""
        self._open = None
        self._arrays.clear()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _engine(self) -> _volfs.Dataset:
        if self._open is None:
            raise ValueError(f"the dataset {self.name} is closed")
        return self._open

    def _array(self, layer: str, lod: int) -> Array:
        engine = self._engine
        if (layer, lod) not in self._arrays:
            self._arrays[layer, lod] = Array(engine, self._source, layer, lod)
        return self._arrays[layer, lod]


@dataclass(frozen=True, repr=False)
class Layer:
    """A layer of a dataset. What it says of its samples is said of level 0, the finest."""

    dataset: Dataset
    name: str
    """The name; what cannot be in the name of a file is percent-encoded."""

    def __repr__(self) -> str:
        return f"<volfs.Layer {self.dataset.name}/{self.name}>"

    def __getitem__(self, key: object) -> NoReturn:
        _refuse_index("layer.level(0)[...]")

    @property
    def label(self) -> str:
        """The name as the dataset has it."""
        return str(self.dataset.metadata["layers"][list(self.dataset.layers).index(self.name)]["name"])

    @property
    def lods(self) -> list[int]:
        """The levels that there are."""
        return list(range(dict(self.dataset._engine._layers())[self.name]))

    @property
    def info(self) -> dict[str, Any]:
        """The whole of lod0.json."""
        return self.level(0).info

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions along each axis, slowest first."""
        return self.level(0).shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the stored samples."""
        return self.level(0).dtype

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes, slowest first."""
        return self.level(0).axes

    @property
    def no_value(self) -> float | None:
        """The stored sample that means "no data"."""
        return self.level(0).no_value

    @property
    def scale(self) -> float | None:
        """The factor in value = stored * scale + offset; None if the samples are the values."""
        return self.level(0).scale

    @property
    def offset(self) -> float | None:
        """The value of a stored 0; None if the samples are the values."""
        return self.level(0).offset

    def level(self, n: int) -> Array:
        """Return a level of detail. Raises IndexError if there is none of that number."""
        if n not in self.lods:
            raise IndexError(f"{self.dataset.name}/{self.name} has no level {n}; it has {self.lods}")
        return self.dataset._array(self.name, n)

    def read(self, region: Selection = (), *, lod: int = 0, scaled: bool = False) -> NDArray[Any]:
        """Read a part of a level: see `Array.read`."""
        return self.level(lod).read(region, scaled=scaled)

    def at(self, *, lod: int = 0, scaled: bool = False, **where: ArrayLike | slice) -> NDArray[Any]:
        """Read by coordinates: `at(inline=1020, sample=slice(1200, 1300))`, with both ends; other axes are whole.

        Names of axes are found in any case. Raises KeyError if there is no such axis or position.
        """
        array = self.level(lod)
        key: list[Any] = [slice(None)] * array.ndim
        for name, wanted in where.items():
            axis = array.axis(name)
            key[axis] = array.axes[axis].find(wanted)
        return array.read(tuple(key), scaled=scaled)

    def scaled(self, n: int = 0) -> Values:
        """Return the values of a level: they are read when they are indexed. See `Array.values`."""
        return self.level(n).values

    def lod(self, n: int = 0, *, first_axis: str | int | None = None, random: bool = False) -> Mapped:
        """Map the stored samples of a level into memory, read-only, through a mount that is made for it.

        With `first_axis` a copy of the level is mapped whose axes are turned: that one is first, the others keep their
        order. Set `random` to touch small boxes here and there: the kernel then fetches no more than is touched.

        A brick that cannot be decoded ends the program (SIGBUS) when a map touches it; arrays raise DamagedBrick.
        """
        from . import _mapped

        return _mapped.load(self.level(n), first_axis, random)

    def save(
        self,
        path: str | os.PathLike[str],
        region: Selection = (),
        *,
        lod: int = 0,
        at: Sequence[str] = (),
        format: str | None = None,
        scaled: bool = False,
    ) -> None:
        """Write a box of a level to a file, as `volfs cat` does: by the extension of `path`, or as `format` says.

        `sgy` is SEG-Y with line numbers and coordinates, `tif` a stack of images with the size of voxels, `csv` a
        table, `npy` a NumPy file, and anything else the samples alone. `region` has an index or a slice for each axis;
        `at` has positions of other axes: `["inline=1000:1040"]`. With `scaled` the values, where they differ from the
        stored samples. Raises VolfsError if the level has no file of that form, or cannot be read.
        """
        from ._program import as_arguments, run

        array = self.level(lod)
        box = zip(box_of(array.shape, region), array.shape, strict=True)
        slices = ",".join(":" if part == (0, size) else f"{part[0]}:{part[1]}" for part, size in box)
        options = self.dataset._source.options | {"layer": self.name, "lod": lod, "region": slices, "at": list(at)}
        options |= {"format": format, "scaled": scaled, "output": os.path.abspath(path)}
        del options["follow_links"]
        run(["cat", *as_arguments(options), "--", self.dataset.path])


def _refuse_index(instead: str) -> NoReturn:
    raise TypeError(f"samples belong to a level of a layer: write {instead}")
