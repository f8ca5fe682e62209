"""What is opened: a path or a URL, also by its place in a mount."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import _volfs
from ._errors import Unsupported

_LEVEL_FILE = re.compile(r"lod(\d+)\..+")


class Source(NamedTuple):
    """A dataset by what `volfs.open` was given."""

    path: str
    """The absolute path, or the URL."""
    quality: int | None = None
    follow_links: bool = False
    store_options: tuple[tuple[str, str], ...] = ()
    opening: str = ""
    """Tells when it was opened, if several files are read: nothing tells cheaply whether all are the same."""

    @classmethod
    def of(
        cls,
        path: str | os.PathLike[str],
        quality: int | None = None,
        follow_links: bool = False,
        store_options: Mapping[str, str] | None = None,
    ) -> Source:
        """Return the source of what `volfs.open` was given."""
        return cls(absolute(path), quality, follow_links, tuple((store_options or {}).items()))

    def open(self) -> _volfs.Dataset:
        """Open it: read its headers."""
        return _volfs.Dataset(self.path, self.quality, self.follow_links, list(self.store_options))

    def opened_as(self, engine: _volfs.Dataset) -> Source:
        """Return the source of what was just opened."""
        is_one_file = os.path.isfile(self.path) and engine.format != "hdf5"
        return self._replace(opening="" if is_one_file else os.urandom(8).hex())

    @property
    def options(self) -> dict[str, Any]:
        """The options as the program has them."""
        store_option = [f"{name}={value}" for name, value in self.store_options]
        return {"quality": self.quality, "follow_links": self.follow_links, "store_option": store_option}


class Place(NamedTuple):
    """What a path in a mount means."""

    source: str
    """What is mounted."""
    below: str
    """The dataset's path below it; the source's own name where that is the dataset."""
    options: Mapping[str, Any]
    """The options of the mount."""
    is_dataset: bool = False
    layer: str | None = None
    lod: int | None = None

    def open(self, source: Source) -> tuple[Source, _volfs.Dataset]:
        """Open the dataset outside the mount, with the options of `source`, or else those of the mount."""
        quality = self.options.get("quality") if source.quality is None else source.quality
        follow_links = source.follow_links or bool(self.options.get("follow_links"))
        source = source._replace(path=self.source, quality=quality, follow_links=follow_links)
        inside = source._replace(path=f"{self.source.rstrip('/')}/{self.below}".rstrip("/"))
        if self.source.rstrip("/").rpartition("/")[2] == self.below:
            try:
                return source, source.open()
            except Unsupported:
                pass
        return inside, inside.open()


def is_path(source: str) -> bool:
    """Tell a path from the URL of an object store."""
    return "://" not in source


def absolute(source: str | os.PathLike[str]) -> str:
    """Return the absolute path of a source; a URL as it is."""
    source = os.fspath(source)
    return os.path.abspath(os.path.expanduser(source)) if is_path(source) else source


def place_in_mount(path: str) -> Place | None:
    """Return what a path in a mount of volfs means, or None if it is elsewhere."""
    top = path = os.path.realpath(path)
    while not os.path.ismount(top):
        top = os.path.dirname(top)
    status = _json(f"{top}/.volfs/status.json")
    if status is None:
        return None
    source, options = status["source"], status["options"]
    parts = [part for part in path.removeprefix(top).split("/") if part]
    for n in range(1, len(parts) + 1):
        metadata = _json("/".join([top, *parts[:n], "dataset.json"]))
        if metadata is not None:
            return _place_of(Place(source, metadata["source"]["path"], options), path, parts[n:])
    return Place(source, "/".join(parts), options)


def _place_of(place: Place, path: str, inside: list[str]) -> Place:
    if not inside:
        return place._replace(is_dataset=True)
    level = _LEVEL_FILE.fullmatch(inside[-1]) if len(inside) == 2 and os.path.exists(path) else None
    if level:
        return place._replace(is_dataset=True, layer=inside[0], lod=int(level[1]))
    if len(inside) == 1 and os.path.exists(f"{path}/lod0.json"):
        return place._replace(is_dataset=True, layer=inside[0])
    return place._replace(below="/".join([place.below, *inside]))


def parsed(text: str | bytes) -> dict[str, Any]:
    """Return what a text of JSON has."""
    # not needed to open and read
    import json

    found: dict[str, Any] = json.loads(text)
    return found


def _json(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            found = parsed(file.read())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
