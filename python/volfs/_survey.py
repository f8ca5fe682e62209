"""World coordinates of the traces of a survey."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._array import Array, Axis


class WorldCoordinate(NamedTuple):
    """X or Y of all traces, bilinear between the corners of the survey."""

    dims: tuple[str, str]
    axes: tuple[Axis, Axis]
    corners: tuple[tuple[float, float], tuple[float, float]]
    """The first and the last line number of the corners, for each of the two axes."""
    values: tuple[float, float, float, float]
    """The coordinate at (first, first), (last, first), (first, last) and (last, last)."""
    attributes: dict[str, Any]

    @property
    def shape(self) -> tuple[int, int]:
        """Lines along each axis."""
        return self.axes[0].count, self.axes[1].count

    def at(self, key: tuple[Any, Any]) -> NDArray[np.float64]:
        """Compute the coordinate for an index, a slice or an array of indices along each axis."""
        u, v = (self._weights(axis)[key[axis]] for axis in (0, 1))
        if np.ndim(u) and np.ndim(v):
            u = u[:, np.newaxis]
        a, b, c, d = self.values
        return np.asarray(a * (1 - u) * (1 - v) + b * u * (1 - v) + c * (1 - u) * v + d * u * v)

    def _weights(self, axis: int) -> NDArray[np.float64]:
        lines = self.axes[axis].values
        assert lines is not None
        first, last = self.corners[axis]
        return (lines - first) / (last - first) if last != first else np.zeros(len(lines))


def world_coordinates(array: Array, dims: tuple[str, ...], metadata: Mapping[str, Any]) -> dict[str, WorldCoordinate]:
    """Return X and Y of the traces of an array; nothing if the dataset has no world coordinates, or is no survey.

    `dims` are the names of its axes.
    """
    geometry = metadata.get("geometry") or {}
    corners = geometry.get("corners") or []
    lines = {axis.name.lower(): (dim, axis) for dim, axis in zip(dims, array.axes, strict=True)}
    if (
        len(corners) != 4
        or any(corner["world"] is None for corner in corners)
        or not {"inline", "crossline"} <= set(lines)
    ):
        return {}
    (inline, inlines), (crossline, crosslines) = lines["inline"], lines["crossline"]
    if inlines.values is None or crosslines.values is None:
        return {}
    unit = ((geometry.get("units") or {}).get("horizontal") or {}).get("name")
    first, last = corners[0]["annotation"], corners[3]["annotation"]
    coordinates = {}
    for n, name in enumerate("XY"):
        attributes = {"standard_name": f"projection_{name.lower()}_coordinate", "units": unit}
        coordinates[name] = WorldCoordinate(
            (inline, crossline),
            (inlines, crosslines),
            ((first[0], last[0]), (first[1], last[1])),
            tuple(corner["world"][n] for corner in corners),
            {key: value for key, value in attributes.items() if value},
        )
    return coordinates
