"""Datasets and their layers, as the folders of a mount show them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ._levels import Axis, Level
from ._place import Place
from ._program import VolfsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._levels import Mapped, Number
    from ._mounts import Mount
    from ._reading import Selection

_LEVEL_FILE = re.compile(r"lod(\d+)\.json")


class Dataset:
    """A dataset: its layers, and all that is known of it."""

    def __init__(self, place: Place) -> None:
        """Describe the dataset that a folder of a mount shows. Call `volfs.open` instead."""
        self._place = place
        self.name = place.name
        self._metadata: dict[str, Any] | None = None
        self._layers: dict[str, Layer] | None = None

    def __repr__(self) -> str:
        return f"<volfs.Dataset {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Dataset, (self._place,))

    @property
    def path(self) -> Path:
        """Its folder in the mount."""
        return self._place.path

    @property
    def mount(self) -> Mount | None:
        """The mount, if this process made it; it stays as long as the dataset, its layers and its arrays."""
        return self._place.mount

    @property
    def metadata(self) -> dict[str, Any]:
        """The whole of dataset.json."""
        self._place.check_open()
        if self._metadata is None:
            self._metadata = _read_metadata(self.path)
        return self._metadata

    @property
    def format(self) -> str:
        """The format: "zgy", "vds" or "wkw"."""
        return str(self.metadata["format"])

    @property
    def layers(self) -> Mapping[str, Layer]:
        """The layers by the names of their folders, in the order of dataset.json."""
        self._place.check_open()
        if self._layers is None:
            order = [layer["name"] for layer in self.metadata["layers"]]
            folders = [
                entry.name for entry in os.scandir(self.path) if os.path.exists(self.path / entry.name / "lod0.json")
            ]
            found = [Layer(self._place, folder) for folder in folders]
            found.sort(key=lambda layer: (order.index(layer.label) if layer.label in order else len(order), layer.name))
            self._layers = {layer.name: layer for layer in found}
        return self._layers

    @property
    def layer(self) -> Layer:
        """The first layer: the only one of a ZGY file."""
        for layer in self.layers.values():
            return layer
        raise VolfsError(f"{self.name} has no layer that can be shown; see metadata['layers']")

    def __getitem__(self, layer: str) -> Layer:
        """Return a layer by its name, in any case; "data" is the first one where none is called so."""
        if layer in self.layers:
            return self.layers[layer]
        # The mount finds folders by these names, too.
        try:
            folder = os.stat(self.path / layer)
            return next(known for known in self.layers.values() if os.path.samestat(folder, os.stat(known.path)))
        except (OSError, ValueError, StopIteration):
            raise KeyError(layer) from None

    def lod(self, n: int = 0, *, first_axis: str | int | None = None, random: bool = False) -> Mapped:
        """Map a level of the first layer into memory: see `Layer.lod`."""
        return self.layer.lod(n, first_axis=first_axis, random=random)

    def close(self) -> None:
        """Close all files. The mount is taken away with the last dataset that uses it."""
        for layer in (self._layers or {}).values():
            layer.close()
        self._place.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Layer:
    """A layer of a dataset. What it says of its samples is said of level 0, the finest."""

    def __init__(self, place: Place, name: str) -> None:
        """Describe a layer, by the name of its folder. Use `Dataset.layers` instead."""
        self._place = place
        self.name = name
        """The name of the layer's folder."""
        lods = sorted(
            int(match[1]) for file in os.listdir(self.path) if (match := _LEVEL_FILE.fullmatch(file)) is not None
        )
        self.lods: list[int] = lods
        """The levels that there are."""
        self._levels: dict[int, Level] = {}

    def __repr__(self) -> str:
        return f"<volfs.Layer {self._place.name}/{self.name}, {len(self.lods)} levels>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Layer, (self._place, self.name))

    @property
    def path(self) -> Path:
        """The layer's folder in the mount."""
        return self._place.path / self.name

    @property
    def label(self) -> str:
        """The name that the dataset gives the layer; its folder's name may be encoded."""
        return str(self.level(0).info["layer"])

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
    def no_value(self) -> Number | None:
        """The stored sample that means "no data"."""
        return self.level(0).no_value

    @property
    def scale(self) -> Number | None:
        """The factor in value = stored * scale + offset; None if the samples are the values."""
        return self.level(0).scale

    @property
    def offset(self) -> Number | None:
        """The value of a stored 0; None if the samples are the values."""
        return self.level(0).offset

    def level(self, n: int) -> Level:
        """Return a level of detail. Raises IndexError if there is none of that number."""
        if n not in self.lods:
            raise IndexError(f"{self._place.name}/{self.name} has no level {n}; it has {self.lods}")
        self._place.check_open()
        if n not in self._levels:
            self._levels[n] = Level(self._place, self.name, n)
        return self._levels[n]

    def lod(self, n: int = 0, *, first_axis: str | int | None = None, random: bool = False) -> Mapped:
        """Map the stored samples of a level into memory, read-only: see `Level.array`."""
        return self.level(n).array(first_axis=first_axis, random=random)

    def scaled(self, n: int = 0, *, random: bool = False) -> Mapped:
        """Map the values of a level as float32 into memory, read-only: see `Level.scaled`."""
        return self.level(n).scaled(random=random)

    def read(self, region: Selection = (), *, lod: int = 0, scaled: bool = False) -> NDArray[Any]:
        """Read a part of a level, with an OSError if it cannot be read: see `Level.read`."""
        return self.level(lod).read(region, scaled=scaled)

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
        """Write a box of a level to a file, such as SEG-Y or TIFF: see `Level.save`."""
        self.level(lod).save(path, region, at=at, format=format, scaled=scaled)

    def close(self) -> None:
        """Close the files of all levels."""
        for level in self._levels.values():
            level.close()


class Datasets(Mapping[str, Dataset]):
    """The datasets below a folder of a mount, by their path. Those that cannot be opened are in `errors`."""

    def __init__(self, root: Path, mount: Mount | None = None) -> None:
        """Look below `root`. Use `Mount.datasets` instead."""
        self._root = root
        self._mount = mount

    def __repr__(self) -> str:
        return f"<volfs.Datasets below {self._root}>"

    def __getitem__(self, name: str) -> Dataset:
        folder = self._root / name
        if is_dataset(folder):
            origin = self._mount._origin_of(name) if self._mount else None
            return Dataset(Place(folder, self._mount, origin))
        if os.path.exists(folder / "error.txt"):
            raise VolfsError(f"{name}: {_reason(folder)}")
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, is_broken in _walk(self._root, "") if not is_broken)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def error(self) -> str | None:
        """Why the folder itself cannot be opened, if it is that of a dataset."""
        return _reason(self._root) if os.path.exists(self._root / "error.txt") else None

    @property
    def errors(self) -> dict[str, str]:
        """Why datasets cannot be opened, by their path."""
        return {name: _reason(self._root / name) for name, is_broken in _walk(self._root, "") if is_broken}


def is_dataset(folder: Path) -> bool:
    """Return whether a folder of a mount shows a dataset."""
    try:
        metadata = _read_metadata(folder)
    except (OSError, ValueError):
        return False
    return isinstance(metadata, dict) and "format" in metadata and "layers" in metadata


def _read_metadata(folder: Path) -> dict[str, Any]:
    with open(folder / "dataset.json", encoding="utf-8") as file:
        metadata: dict[str, Any] = json.load(file)
        return metadata


def _reason(folder: Path) -> str:
    with open(folder / "error.txt", encoding="utf-8", errors="replace") as file:
        reason = " ".join(file.read().split())
    return reason[len(folder.name) + 2 :] if reason.startswith(f"{folder.name}: ") else reason


def _walk(root: Path, below: str) -> Iterator[tuple[str, bool]]:
    """Yield the path of each dataset, and whether it cannot be opened."""
    entries = sorted(os.scandir(root / below), key=lambda entry: entry.name)
    names = {entry.name for entry in entries}
    if below and names & {"dataset.json", "error.txt"}:
        yield below, "dataset.json" not in names
        return
    for entry in entries:
        if entry.is_dir() and (below or entry.name != ".volfs"):
            yield from _walk(root, f"{below}/{entry.name}" if below else entry.name)
