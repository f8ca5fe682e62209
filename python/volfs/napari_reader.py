"""The reader of napari, which napari.yaml names: all layers of a volume, read where they are looked at."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._errors import VolfsError
from ._source import Source, absolute
from ._store import locate_layer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._array import Array, Axis, Values
    from ._dataset import Layer

    LayerData = tuple[list[Any], dict[str, Any], str]

_COMPONENTS = ("channel", "component")
"""The names of a last axis that is not in space."""


def get_reader(path: str | list[str]) -> Callable[[Any], list[LayerData]] | None:
    """Return what reads a volume, or a layer by its path; None if volfs cannot open it."""
    if isinstance(path, list):
        return None
    try:
        dataset, named = locate_layer(Source(absolute(path)))
        layers = [layer for layer in dataset.layers.values() if layer.level(0).size and named in (None, layer.name)]
    except VolfsError:
        return None
    return (lambda _: [data for layer in layers for data in _shown(layer)]) if layers else None


class Component:
    """One component of an array whose last axis has several, without that axis."""

    def __init__(self, array: Array | Values, number: int) -> None:
        """Show one component."""
        self.array, self.number = array, number
        self.dtype, self.shape, self.ndim = array.dtype, array.shape[:-1], array.ndim - 1
        self.size = math.prod(self.shape)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        key = key if isinstance(key, tuple) else (key,)
        return self.array[(*key, self.number) if Ellipsis in key else (*key, ..., self.number)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self[...]
        return whole if dtype is None else whole.astype(dtype)


def _shown(layer: Layer) -> list[LayerData]:
    """Return a layer as napari has it: several where the samples have components that are no colours."""
    finest = layer.level(0)
    native = finest.info.get(layer.dataset.format) or {}
    is_labels = native.get("category") == "segmentation" and finest.dtype.kind in "iu"
    levels: list[Array | Values] = []
    for lod in layer.lods:
        level = layer.level(lod) if is_labels else layer.level(lod).values
        # napari wants each level to be smaller than the one before
        if not levels or level.size < levels[-1].size:
            levels.append(level)
    components = finest.shape[-1] if finest.ndim > 1 and finest.axes[-1].name in _COMPONENTS else None
    is_rgb = components == 3 and finest.dtype == "uint8"
    axes = finest.axes if components is None else finest.axes[:-1]
    about: dict[str, Any] = {
        "name": f"{layer.dataset.name} {layer.label}",
        "multiscale": True,
        "scale": [_place(axis)[1] for axis in axes],
        "translate": [_place(axis)[0] for axis in axes],
        "units": [_unit(axis.unit) for axis in axes],
        "axis_labels": finest.axis_names[: len(axes)],
        "metadata": finest.info,
        # what is known of each trace would cover the samples
        "visible": axes[-1].name != "value",
    }
    if is_labels:
        kind = "labels"
    else:
        kind, about["rgb"] = "image", is_rgb
        low, high = finest.info["value_range"] or (None, None)
        if not (is_rgb or low is None or high is None or low >= high):
            about["contrast_limits"] = [low, high]
    if components is None or is_rgb:
        return [(levels, about, kind)]
    parts = [[Component(level, number) for level in levels] for number in range(components)]
    return [(part, about | {"name": f"{about['name']} {number}"}, kind) for number, part in enumerate(parts)]


def _place(axis: Axis) -> tuple[float, float]:
    """Return first and step of an axis. Where they descend, the negatives ascend, as in the view as OME-Zarr."""
    first, step = axis.first or 0, axis.step or 1
    return (first, step) if step > 0 else (-first, -step)


def _unit(name: str | None) -> str:
    """Return a unit as napari has it. What has none, or one that is not known, counts positions, as pixels do."""
    try:
        return str(import_module("pint").get_application_registry().Unit(name or "pixel"))
    except Exception:  # pint fails in many ways, as the text is any
        return "pixel"
