"""Layers by their paths, and as stores of zarr-python, which is imported when the first one is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ._dataset import locate
from ._errors import VolfsError
from ._source import Source

if TYPE_CHECKING:
    from ._dataset import Dataset
    from .zarr_store import VolfsStore

_SUFFIX = ".ome.zarr"


def store(
    path: str | os.PathLike[str],
    layer: str | None = None,
    *,
    quality: int | None = None,
    follow_links: bool = False,
    store_options: Mapping[str, str] | None = None,
) -> VolfsStore:
    """Return a layer as a read-only store of zarr-python: `zarr.open(volfs.store("north.zgy/data"))`.

    It has what a mount shows as `LAYER.ome.zarr`: an image of OME-Zarr, and for xarray a group for each level ("lod0").
    `path` is what `volfs.open` takes, and may end in `/LAYER` or `/LAYER.ome.zarr`; else `layer` is shown, or the first
    one. The other options are those of `volfs.open`. Raises a VolfsError that tells why not.
    """
    try:
        from .zarr_store import VolfsStore
    except ImportError as error:
        raise ImportError(f"volfs.store needs zarr-python 3.1 or newer ({error}): pip install 'zarr>=3.1'") from error
    dataset, named = locate_layer(Source.of(path, quality, follow_links, store_options), layer)
    folder = (named or dataset.layer.name) + _SUFFIX
    if dataset._engine._size(f"{folder}/zarr.json") is None:
        raise VolfsError(f"{dataset.name} has no {folder}; the metadata of the dataset tell why")
    return VolfsStore(dataset._engine, dataset._source, folder)


def locate_layer(source: Source, layer: str | None = None) -> tuple[Dataset, str | None]:
    """Open a dataset by its path or by that of a layer, and tell which layer the path or the caller names."""
    dataset, failure = None, None
    try:
        dataset, placed, _ = locate(source)
        layer = layer or placed
    except VolfsError as error:
        failure = error
    # the folder of a layer of WKW opens as well, but tells less than the dataset that it belongs to
    if layer is None and (dataset is None or dataset.format == "wkw"):
        above, _, name = source.path.rstrip("/").rpartition("/")
        try:
            parent = locate(source._replace(path=above)).dataset
        except VolfsError:
            pass
        else:
            if dataset is None or _find(parent, name):
                dataset, layer = parent, name
    if dataset is None:
        assert failure is not None
        raise failure
    found = layer and _find(dataset, layer)
    if layer and not found:
        raise VolfsError(f"{dataset.name} has no layer {layer!r}; it has {', '.join(dataset.layers) or 'none'}")
    return dataset, found


def _find(dataset: Dataset, name: str) -> str | None:
    return dataset._engine._find(name) or dataset._engine._find(name.removesuffix(_SUFFIX))
