"""Finds the dataset that a path means: a source to mount, or a place in a mount."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from ._datasets import Dataset, Datasets, is_dataset
from ._mounts import absolute, is_path, shared_mount
from ._place import Place
from ._program import Options, OptionValue, VolfsError

_LEVEL_FILE = re.compile(r"lod(\d+)\.(.+)")


class Location(NamedTuple):
    """A dataset, and the layer and level in it if a path means one."""

    dataset: Dataset
    layer: str | None = None
    lod: int | None = None


def open(path: str | os.PathLike[str], **options: OptionValue) -> Dataset:
    """Open a dataset: a file or folder to mount behind the scenes, or a dataset's folder in a mount.

    All datasets of one source and the same options (those of `volfs.mount`) share a mount, which is taken away with the
    last of them. Raises VolfsError with the reason if there is no such dataset, or more than one.
    """
    return locate(path, options).dataset


def locate(path: str | os.PathLike[str], options: Options) -> Location:
    """Find what a path means: a source, or a dataset, layer or level in a mount. Raises VolfsError if it is neither."""
    place = place_in_mount(path)
    if place is not None:
        folder, layer, lod = place
        return Location(Dataset(Place(folder)), layer, lod)
    source = absolute(path)
    if is_path(source) and is_inside_mount(Path(source)):
        return Location(_only(Datasets(Path(source)), source))
    mount = shared_mount(source, options)
    name = source.rstrip("/").rpartition("/")[2]
    if is_dataset(mount.path / name):
        return Location(Dataset(Place(mount.path / name, mount, mount._origin_of(name))))
    return Location(_only(mount.datasets, source))


def place_in_mount(path: str | os.PathLike[str]) -> tuple[Path, str | None, int | None] | None:
    """Return the dataset's folder, the layer and the level of a path in a mount; None if it is no such path."""
    if not is_path(os.fspath(path)):
        return None
    place = Path(absolute(path))
    if is_dataset(place):
        return place, None, None
    if os.path.exists(place / "lod0.json") and is_dataset(place.parent):
        return place.parent, place.name, None
    match = _LEVEL_FILE.fullmatch(place.name)
    if match and os.path.exists(place) and is_dataset(place.parent.parent):
        return place.parent.parent, place.parent.name, int(match[1])
    return None


def is_inside_mount(path: Path) -> bool:
    """Return whether a path is a folder in a mount of volfs."""
    return os.path.isdir(path) and any(
        os.path.exists(folder / ".volfs" / "status.json") for folder in [path, *path.parents]
    )


def _only(datasets: Datasets, source: str) -> Dataset:
    names = list(datasets)
    if len(names) == 1:
        return datasets[names[0]]
    if names:
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise VolfsError(f"{source} has {len(names)} datasets: {shown}; open one of them, or call volfs.mount")
    errors = datasets.errors
    if datasets.error is not None:
        reason = datasets.error
    elif len(errors) == 1:
        reason = next(iter(errors.values()))
    else:
        reason = "it has no dataset" + "".join(f"; {name}: {why}" for name, why in list(errors.items())[:3])
    raise VolfsError(f"cannot open {source}: {reason}")
