"""Mounts for other programs, and the datasets that they show."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ._dataset import Dataset
from ._errors import VolfsError
from ._mounts import MountPoint, make_mount
from ._source import Place, Source, place_in_mount


class Mount(MountPoint):
    """A mount of a folder or a dataset, made by `volfs.mount`.

    It is taken away at the end of a `with` block, by `unmount`, when nothing refers to it any more, and when Python
    ends. A process that is killed leaves its mount behind: `volfs stats` lists it, `volfs umount` takes it away.
    """

    @property
    def datasets(self) -> Datasets:
        """The datasets, by their path below the mount. Nothing is looked at before it is asked for."""
        given = self.options.get("store_option") or ()
        given = [given] if isinstance(given, str) else given
        pairs = (option.partition("=") for option in given)
        return Datasets(self.path, tuple((name, value) for name, _, value in pairs))


class Datasets(Mapping[str, Dataset]):
    """The datasets below a mount, by their path. Those that cannot be opened are in `errors`."""

    def __init__(self, root: Path, store_options: tuple[tuple[str, str], ...]) -> None:
        """Look below `root`. Use `Mount.datasets` instead."""
        self._root = root
        self._store_options = store_options

    def __repr__(self) -> str:
        return f"<volfs.Datasets below {self._root}>"

    def __getitem__(self, name: str) -> Dataset:
        """Open a dataset: in process, not through the mount."""
        if os.path.exists(self._root / name / "error.txt"):
            raise VolfsError(f"{name}: {self._reason(name)}")
        place = self._place(name)
        if place is None:
            raise KeyError(name)
        return Dataset(*place.open(Source("", store_options=self._store_options)))

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or os.path.exists(self._root / name / "error.txt"):
            return False
        return self._place(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for name, is_broken in self._walk("") if not is_broken)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def errors(self) -> dict[str, str]:
        """Why datasets cannot be opened, by their path."""
        return {name: self._reason(name) for name, is_broken in self._walk("") if is_broken}

    def _place(self, name: str) -> Place | None:
        """Return the place of a dataset; None for anything else."""
        place = place_in_mount(str(self._root / name))
        return place if place is not None and place.is_dataset and place.layer is None else None

    def _reason(self, name: str) -> str:
        folder = self._root / name
        reason = " ".join((folder / "error.txt").read_text(encoding="utf-8", errors="replace").split())
        return reason.removeprefix(f"{folder.name}: ")

    def _walk(self, below: str) -> Iterator[tuple[str, bool]]:
        """Yield the path of each dataset, and whether it cannot be opened."""
        entries = sorted(os.scandir(self._root / below), key=lambda entry: entry.name)
        names = {entry.name for entry in entries}
        if below and names & {"dataset.json", "error.txt"}:
            yield below, "dataset.json" not in names
            return
        for entry in entries:
            if entry.is_dir() and (below or entry.name != ".volfs"):
                yield from self._walk(f"{below}/{entry.name}" if below else entry.name)


def mount(
    source: str | os.PathLike[str],
    mountpoint: str | os.PathLike[str] | None = None,
    *,
    cache_size: int | str | None = None,
    threads: int | None = None,
    quality: int | None = None,
    direct_io: bool = False,
    follow_links: bool = False,
    allow_other: bool = False,
    log_file: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Mount:
    """Mount a folder or a dataset, on a temporary folder unless a mount point is given.

    Options are those of `volfs mount`, with _ for -, also the ones that have no parameter of their own here.
    The mount lasts as long as something refers to what is returned.

    Raises VolfsError with the reason if it cannot be mounted.
    """
    options.update(
        cache_size=cache_size,
        threads=threads,
        quality=quality,
        direct_io=direct_io,
        follow_links=follow_links,
        allow_other=allow_other,
        log_file=log_file,
    )
    return make_mount(Mount, source, mountpoint, options)
