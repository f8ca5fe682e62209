"""Memory maps of the files of a mount."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from ._mounts import shared_mount

if TYPE_CHECKING:
    from ._array import Array

    Mapped: TypeAlias = np.memmap[Any, np.dtype[Any]]


def load(array: Array, first_axis: str | int | None, random: bool) -> Mapped:
    """Map a level, through the mount that all maps of one source share. It ends with the last of them."""
    name = f"lod{array.lod}"
    axis = array.axis(first_axis) if isinstance(first_axis, str) else range(array.ndim)[first_axis or 0]
    # in the order of the axes
    turned = [file for file in array.info["files"] if file.startswith(f"{name}.by-") and file.endswith(".npy")]
    mount = shared_mount(array._source.path, array._source.options)
    path = mount.path / array._engine.name / array.layer / (turned[axis - 1] if axis else f"{name}.npy")
    mapped = cast("Mapped", np.load(path, mmap_mode="r"))
    if random:
        cast(mmap.mmap, mapped.base).madvise(mmap.MADV_RANDOM)
    # The mount stays as long as the map, and everything that was sliced from it.
    mapped._volfs_mount = mount  # type: ignore[attr-defined]
    return mapped
