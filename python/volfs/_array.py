"""Arrays: levels of detail, read in process when they are indexed."""

from __future__ import annotations

import errno
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _volfs
from ._errors import SourceChanged
from ._selection import select
from ._source import Source, parsed
from ._values import Conversion

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from ._selection import Selection


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

    def find(self, wanted: ArrayLike | slice) -> int | slice | NDArray[np.intp]:
        """Return the position of a coordinate, those of a list, or of a slice from one to another, both included.

        Raises KeyError if there is none.
        """
        if self.first is None or self.step is None or (not self.step and self.count > 1):
            raise KeyError(f"the axis {self.name} has no coordinates")
        first, step, end = self.first, self.step or 1, self.count - 1
        # many formats have the first position and the step as float32
        near = min(max(1e-6, 2.0**-22 * max(abs(first), abs(first + end * step)) / abs(step)), 0.01)
        there = f"the axis {self.name} has {first:.12g} to {first + step * end:.12g} in steps of {step:.12g}"
        if isinstance(wanted, slice):
            if wanted.step is not None:
                raise ValueError("a range of coordinates has no step")
            ends = [(wanted.start, -math.inf), (wanted.stop, math.inf)]
            low, high = sorted(open_end if at is None else (at - first) / step for at, open_end in ends)
            low, high = math.ceil(max(low, 0) - near), math.floor(min(high, end) + near)
            if low > high:
                raise KeyError(f"{there}: none from {wanted.start} to {wanted.stop}")
            return slice(low, high + 1)
        exact = (np.asarray(wanted, np.float64) - first) / step
        found = np.rint(exact)
        wrong = ~((found >= 0) & (found <= end) & (np.abs(exact - found) <= near))
        if wrong.any():
            raise KeyError(f"{there}: not {np.asarray(wanted)[wrong].flat[0]}")
        return found.astype(np.intp) if found.ndim else int(found)


class Orthogonal:
    """Selects independently along each axis, by lists, masks, whole numbers and slices."""

    def __init__(self, read: Callable[[Selection], NDArray[Any]]) -> None:
        """Select by a function."""
        self._read = read

    def __getitem__(self, selection: Selection) -> NDArray[Any]:
        return self._read(selection)


class Array(_volfs.Array):
    """One level of detail of a layer: level 0 is the finest.

    Indexed like an array of NumPy, by whole numbers, slices and an ellipsis, it reads the stored samples. Any number of
    threads may read at a time.
    """

    def __new__(cls, engine: _volfs.Dataset, source: Source, layer: str, lod: int) -> Self:
        """Describe a level. Call `Layer.level` instead."""
        return super().__new__(cls, engine, layer, lod)

    def __init__(self, engine: _volfs.Dataset, source: Source, layer: str, lod: int) -> None:
        """Keep what the level can be found by again, in another process."""
        self._engine = engine
        self._source = source
        self.layer = layer
        """The layer's name."""
        self.lod = lod

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}: {size}" for name, size in zip(self.axis_names, self.shape, strict=True))
        return f"<volfs.Array {self._engine.name}/{self.layer}/lod{self.lod} ({axes}) {self.dtype.name}>"

    def _repr_html_(self) -> str:
        known = [axis.values for axis in self.axes]
        spans = ["" if values is None or not len(values) else f"{values[0]:g} to {values[-1]:g}" for values in known]
        axes = zip(self.axis_names, spans, self.axes, strict=True)
        rows = [
            ("array", f"{self._engine.name}, {self.layer}, level {self.lod}"),
            ("shape", f"{self.shape}, {self.nbytes / 2**20:,.1f} MiB"),
            ("samples", self.dtype.name),
            ("bricks", str(self.chunks)),
            *((name, f"{span} {axis.unit or ''}") for name, span, axis in axes),
        ]
        from . import _preview

        coarsest = dict(self._engine._layers())[self.layer] - 1
        return _preview.table(Array(self._engine, self._source, self.layer, coarsest), rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return _array_again, (self._source, self._version, self.layer, self.lod)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return "volfs.Array", *self._source, self._version, self.layer, self.lod

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("the samples are decoded into new memory: there is no array of them without a copy")
        return np.asarray(self[...], dtype)

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        return self.__array__(copy=copy).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # memory of the processor

    @cached_property
    def info(self) -> dict[str, Any]:
        """The whole of lodN.json."""
        return parsed(self._metadata())

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes, slowest first."""
        return tuple(Axis(name, unit, _finite(a), _finite(b), count) for name, unit, a, b, count in self._axes())

    @cached_property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes; `axisN` for an axis without a name, or with the name of another."""
        given = [axis.name for axis in self.axes]
        chosen: list[str] = []
        for axis, own in enumerate(given):
            base = own if own and given.count(own) == 1 else f"axis{axis}"
            others = (f"{base}~{n}" for n in range(2, len(given) + 2))
            chosen.append(next(name for name in (base, *others) if name not in chosen))
        return tuple(chosen)

    def axis(self, name: str) -> int:
        """Return the number of the axis of a name, in any case. Raises KeyError if there is none, or more than one."""
        if name in self.axis_names:
            return self.axis_names.index(name)
        found = [n for n, known in enumerate(self.axis_names) if known.lower() == name.lower()]
        if len(found) != 1:
            raise KeyError(f"{name!r} is no axis of {self!r}")
        return found[0]

    @property
    def no_value(self) -> float | None:
        """The stored sample that means "no data"."""
        return self._conversion.no_value

    @property
    def scale(self) -> float | None:
        """The factor in value = stored * scale + offset; None if the samples are the values."""
        scaling = self._conversion.scaling
        return scaling and scaling[0]

    @property
    def offset(self) -> float | None:
        """The value of a stored 0; None if the samples are the values."""
        scaling = self._conversion.scaling
        return scaling and scaling[1]

    @property
    def brick_shape(self) -> tuple[int, ...]:
        """The samples of a brick along each axis: `chunks`."""
        return self.chunks

    @property
    def oindex(self) -> Orthogonal:
        """Selects independently along each axis: `array.oindex[[3, 1], :, mask]`."""
        return Orthogonal(lambda selection: select(self, selection))

    @property
    def values(self) -> Values:
        """The values, where they differ from the stored samples: scaled integers as float32, and NaN for "no data"."""
        return Values(self)

    def read(self, region: Selection = (), *, scaled: bool = False) -> NDArray[Any]:
        """Read a part, selected as by `oindex`; with `scaled` its values."""
        stored = select(self, region)
        return self._conversion(stored) if scaled else stored

    @cached_property
    def _conversion(self) -> Conversion:
        scaling, no_value = self._scaling(), self._no_value()
        if scaling is not None and not all(map(math.isfinite, scaling)):
            scaling = None
        return Conversion(self.dtype, scaling, _finite(no_value), self._engine.format == "vds")

    @cached_property
    def _version(self) -> list[float | None]:
        return _version_of(self._engine)


class Values:
    """The values of an array: what is indexed is read, and scaled. Shape, bricks and threads are those of the array."""

    def __init__(self, array: Array) -> None:
        """Show an array. Use `Array.values` or `Layer.scaled` instead."""
        self.array = array
        """The stored samples."""
        self.dtype = array._conversion.dtype
        self.differ = array._conversion.changes
        """Whether they differ from the stored samples."""
        self.shape, self.ndim, self.size, self.chunks = array.shape, array.ndim, array.size, array.chunks
        self.nbytes = self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"<values of {self.array!r} as {self.dtype.name}>"

    def __len__(self) -> int:
        return len(self.array)

    def __reduce__(self) -> tuple[Any, ...]:
        return Values, (self.array,)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return "volfs.Values", self.array.__dask_tokenize__()

    def __getitem__(self, key: Any) -> NDArray[Any]:
        return self.array._conversion(self.array[key])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.array._conversion(self.array.__array__(copy=copy)), dtype)

    @property
    def oindex(self) -> Orthogonal:
        """Selects independently along each axis."""
        return Orthogonal(lambda selection: self.array.read(selection, scaled=True))


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _version_of(engine: _volfs.Dataset) -> list[float | None]:
    """Return the size in bytes and the time of change of what is open."""
    about = parsed(engine._metadata())["source"]
    return [about["size"], about["mtime"]]


@lru_cache(maxsize=4)
def _open_again(source: Source, size: float | None, mtime: float | None) -> _volfs.Dataset:
    """Open what was open in another process. The last few stay open for the parts of an array that follow."""
    engine = source.open()
    if _version_of(engine) != [size, mtime]:
        raise SourceChanged(errno.ESTALE, f"{source.path}: it was changed since it was opened; open it again")
    return engine


def _array_again(source: Source, version: list[float | None], layer: str, lod: int) -> Array:
    return Array(_open_again(source, *version), source, layer, lod)
