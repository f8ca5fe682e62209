"""World coordinates of the traces of a survey."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray
from xarray.backends import BackendArray
from xarray.core import indexing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._array import Array, Axis


class WorldCoordinate(BackendArray):
    """X or Y of all traces, bilinear between the corners of the survey, computed when it is indexed."""

    dtype = np.dtype(np.float64)

    def __init__(self, lines: list[Axis], corners: list[Any], n: int) -> None:
        """Show X (`n` is 0) or Y (1) of the traces on inlines and crosslines, by the corners in dataset.json."""
        self.shape = tuple(axis.count for axis in lines)
        first, last = corners[0]["annotation"], corners[3]["annotation"]
        self.weights = [_weights(axis, *ends) for axis, *ends in zip(lines, first, last, strict=True)]
        self.values = [corner["world"][n] for corner in corners]

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._at)

    def _at(self, key: tuple[Any, Any]) -> NDArray[np.float64]:
        u, v = (weights[index] for weights, index in zip(self.weights, key, strict=True))
        if np.ndim(u) and np.ndim(v):
            u = u[:, np.newaxis]
        a, b, c, d = self.values
        return np.asarray(a * (1 - u) * (1 - v) + b * u * (1 - v) + c * (1 - u) * v + d * u * v)


def world_coordinates(array: Array, dims: tuple[str, ...], metadata: Mapping[str, Any]) -> dict[str, xarray.Variable]:
    """Return X and Y of the traces of an array; nothing if the dataset has no world coordinates, or is no survey.

    `dims` are the names of its axes.
    """
    geometry = metadata.get("geometry") or {}
    corners = geometry.get("corners") or []
    known = {axis.name.lower(): (dim, axis) for dim, axis in zip(dims, array.axes, strict=True)}
    lines = [known[name] for name in ("inline", "crossline") if name in known]
    if len(corners) != 4 or any(corner["world"] is None for corner in corners) or len(lines) != 2:
        return {}
    names, axes = [dim for dim, _ in lines], [axis for _, axis in lines]
    if any(axis.values is None for axis in axes):
        return {}
    unit = ((geometry.get("units") or {}).get("horizontal") or {}).get("name")
    coordinates = {}
    for n, name in enumerate("XY"):
        attributes = {"standard_name": f"projection_{name.lower()}_coordinate", **({"units": unit} if unit else {})}
        computed = indexing.LazilyIndexedArray(WorldCoordinate(axes, corners, n))
        coordinates[name] = xarray.Variable(names, computed, attributes)
    return coordinates


def _weights(axis: Axis, first: float, last: float) -> NDArray[np.float64]:
    lines = axis.values
    assert lines is not None
    return (lines - first) / (last - first) if last != first else np.zeros(len(lines))
