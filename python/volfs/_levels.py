"""Levels of detail: what their samples are, and the files that hold them."""

from __future__ import annotations

import json
import mmap
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, cast

import numpy as np

from . import _values
from ._program import VolfsError, as_arguments, run
from ._reading import View, box_of, read_selection

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._place import Place
    from ._program import Options
    from ._reading import Selection

    Samples = NDArray[Any]
    Mapped = np.memmap[Any, np.dtype[Any]]

Number = Union[int, float]
_FILE_NAME_UNSAFE = re.compile("[/%\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Axis:
    """An axis of an array, and the coordinates of its positions."""

    name: str
    unit: str | None
    first: float | None
    step: float | None
    count: int

    @property
    def values(self) -> NDArray[np.float64] | None:
        """The coordinate of each position, or None if the dataset does not tell."""
        if self.first is None or self.step is None:
            return None
        return self.first + self.step * np.arange(self.count, dtype=np.float64)


class Level:
    """One level of detail of a layer: level 0 is the finest."""

    def __init__(self, place: Place, layer: str, lod: int, state: tuple[dict[str, Any], int] | None = None) -> None:
        """Describe a level. Call `Layer.level` instead."""
        self._place = place
        self.layer = layer
        """The layer's folder."""
        self.lod = lod
        info, changed = state or self._describe()
        self._changed = changed
        self.info = info
        """The whole of lodN.json."""
        self.shape: tuple[int, ...] = tuple(info["shape"])
        self.dtype: np.dtype[Any] = np.dtype(info["dtype"]).newbyteorder("<")
        self.axes: tuple[Axis, ...] = tuple(
            Axis(axis["name"], axis["unit"], axis["first"], axis["step"], axis["count"]) for axis in info["axes"]
        )
        self.no_value: Number | None = info["no_value"]
        self.scale: Number | None = info["scale"]
        self.offset: Number | None = info["offset"]
        self.brick_shape: tuple[int, ...] = tuple(info["brick_shape"] or self.shape)
        self.axis_names = _distinct(self.axes, first=0)
        """The names of the axes; `axisN` for an axis without a name, or with the name of another."""
        # As volfs names the files, so that an axis never gets the file of another.
        self._files = {axis: f".by-{_file_name(name)}.npy" for axis, name in _distinct(self.axes, first=1).items()}
        self._stored = [self._view(".raw", 0), *(self._view(suffix, axis) for axis, suffix in self._files.items())]
        self._values = self._views_of_values() if _values.differ(info) else self._stored

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}: {size}" for name, size in zip(self.axis_names.values(), self.shape))
        return f"<volfs.Level {self._place.name}/{self.layer}/lod{self.lod} ({axes}) {self.dtype.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Level, (self._place, self.layer, self.lod, (self.info, self._changed)))

    @property
    def has_other_values(self) -> bool:
        """Whether values differ from the stored samples: by a scale, an offset, or a sample that means "no data"."""
        return self._values is not self._stored

    @property
    def value_type(self) -> np.dtype[Any]:
        """The type of the values: float32 for scaled integers."""
        return _values.value_type(self.info) if self.has_other_values else self.dtype

    def path(self, suffix: str) -> Path:
        """Return the path of a file of this level, by the end of its name: `.npy`."""
        return self._place.path / self.layer / self._name(suffix)

    def array(self, *, first_axis: str | int | None = None, random: bool = False) -> Mapped:
        """Map the stored samples into memory, read-only: `lodN.npy`, or with `first_axis` the file turned that way.

        The other axes keep their order. Set `random` to read small boxes here and there: the kernel then fetches no
        more than is touched.

        A brick that cannot be decoded ends the program (SIGBUS) when a map touches it; `read` raises OSError.
        """
        axis = 0 if first_axis is None else self._axis(first_axis)
        return self._map(self.path(self._files.get(axis, ".npy")), random)

    def scaled(self, *, random: bool = False) -> Mapped:
        """Map the values as float32 into memory, read-only: `lodN.float32.npy`.

        Raises VolfsError if the level has no such file: its stored samples are the values.
        """
        path = self.path(".float32.npy")
        if not os.path.exists(path):
            raise VolfsError(f"{self!r} has no scaled values; its samples are values already")
        return self._map(path, random)

    def read(self, region: Selection = (), *, scaled: bool = False) -> Samples:
        """Read a part of the level: for each axis an index, a slice, or an array of indices.

        Reads the file in which the part is the least scattered. With `scaled` the values, where they differ from the
        stored samples: scaled integers as float32, and NaN for "no data". Raises OSError if any byte of it cannot be
        read: with the file, and what the mount logged last of this dataset.
        """
        views, dtype = (self._values, self.value_type) if scaled else (self._stored, self.dtype)
        return read_selection(views, dtype, self.shape, self.brick_shape, region)

    def save(
        self,
        path: str | os.PathLike[str],
        region: Selection = (),
        *,
        at: Sequence[str] = (),
        format: str | None = None,
        scaled: bool = False,
    ) -> None:
        """Write a box to a file, as `volfs cat` does: by the extension of `path`, or as `format` says.

        `sgy` is SEG-Y with line numbers and coordinates, `tif` a stack of images with the size of voxels, `csv` a
        table, `npy` a NumPy file, and anything else the samples alone. `region` has an index or a slice for each axis;
        `at` has positions of other axes: `["inline=1000:1040"]`. With `scaled` the values, where they differ from the
        stored samples. Raises VolfsError if the level has no file of that form, or cannot be read.
        """
        box = zip(box_of(self.shape, region), self.shape)
        slices = ",".join(":" if part == (0, size) else f"{part[0]}:{part[1]}" for part, size in box)
        options: Options = {"region": slices, "at": list(at), "format": format, "scaled": scaled}
        self._place.check_open()
        output = f"--output={os.path.abspath(path)}"
        run(["cat", *as_arguments(options), output, "--", os.fspath(self.path(".raw"))])

    def close(self) -> None:
        """Close the files of this level. They are opened again when they are read."""
        for view in [*self._stored, *self._values]:
            view.close()

    def _view(self, suffix: str, axis: int, dtype: np.dtype[Any] | None = None, *, convert: bool = False) -> View:
        # Nothing here refers to the level: it would never be freed but by the garbage collector, and its mount neither.
        name = f"{self.layer}/{self._name(suffix)}"
        return View(
            partial(self._place.open_file, name, self._changed),
            partial(self._place.failure, name),
            self.shape,
            dtype or self.dtype,
            axis,
            partial(_values.from_stored, self.info) if convert else None,
        )

    def _views_of_values(self) -> list[View]:
        turned = [self._view(suffix, axis, convert=True) for axis, suffix in self._files.items()]
        if _values.are_integers(self.info):
            return [self._view(".float32.npy", 0, np.dtype("<f4")), *turned]
        return [self._view(".raw", 0, convert=True), *turned]

    def _name(self, suffix: str) -> str:
        return f"lod{self.lod}{suffix}"

    def _describe(self) -> tuple[dict[str, Any], int]:
        changed = self.path(".raw").stat().st_mtime_ns
        with open(self.path(".json"), encoding="utf-8") as file:
            return json.load(file), changed

    def _axis(self, wanted: str | int) -> int:
        names = list(self.axis_names.values())
        if isinstance(wanted, str):
            if wanted in names:
                return names.index(wanted)
            alike = [axis for axis, name in enumerate(names) if name.lower() == wanted.lower()]
            if len(alike) == 1:
                return alike[0]
        elif -len(names) <= wanted < len(names):
            return wanted % len(names)
        raise ValueError(f"{wanted!r} is no axis of {self!r}")

    def _map(self, path: Path, random: bool) -> Mapped:
        self._place.check_open()
        array = cast("Mapped", np.load(path, mmap_mode="r"))
        if random:
            cast(mmap.mmap, array.base).madvise(mmap.MADV_RANDOM)
        # The mount stays as long as the array, and everything that was sliced from it.
        array._volfs_mount = self._place.mount  # type: ignore[attr-defined]
        return array


def _distinct(axes: tuple[Axis, ...], *, first: int) -> dict[int, str]:
    names = [axis.name for axis in axes]
    chosen: dict[int, str] = {}
    for axis in range(first, len(names)):
        base = names[axis] if names[axis] and names.count(names[axis]) == 1 else f"axis{axis}"
        name, n = base, 2
        while name in chosen.values():
            name, n = f"{base}~{n}", n + 1
        chosen[axis] = name
    return chosen


def _file_name(name: str) -> str:
    if name in (".", ".."):
        return "%2E" * len(name)
    return _FILE_NAME_UNSAFE.sub(lambda c: "".join(f"%{byte:02X}" for byte in c.group().encode()), name)
