"""Seismic and microscopy volumes (ZGY, VDS, WKW, Zarr, N5, HDF5) as arrays for NumPy, xarray and dask, not converted.

survey = volfs.open("/data/north.zgy")                    # reads headers
data = survey.layer.level(0)
box = data[10:30, 40:60, 100:150]                         # reads these samples
line = survey.layer.at(inline=1040)

xarray.open_dataset("/data/north.zgy", engine="volfs")

with volfs.mount("/data") as m:                           # for programs that read files
    print(m.path, list(m.datasets))
"""

from typing import TYPE_CHECKING

from ._array import Array, Axis, Values
from ._cache import cache_size, set_cache_size
from ._dataset import Dataset, Layer, open
from ._errors import Damaged, DamagedBrick, NotFound, ReadFailed, SourceChanged, Unsupported, VolfsError

if TYPE_CHECKING:
    from ._datasets import Datasets, Mount, mount
    from ._program import program
    from ._store import store

    __version__: str

__all__ = [
    "Array",
    "Axis",
    "Damaged",
    "DamagedBrick",
    "Dataset",
    "Datasets",
    "Layer",
    "Mount",
    "NotFound",
    "ReadFailed",
    "SourceChanged",
    "Unsupported",
    "Values",
    "VolfsError",
    "cache_size",
    "mount",
    "open",
    "program",
    "set_cache_size",
    "store",
]

# What opening and reading do not need is imported when it is asked for: it takes longer to import than all the rest.
_LATER = {
    "Datasets": "_datasets",
    "Mount": "_datasets",
    "mount": "_datasets",
    "program": "_program",
    "store": "_store",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib import metadata

            try:
                found = metadata.version("volfs")
            except metadata.PackageNotFoundError:
                found = "unknown"
        elif name in _LATER:
            from importlib import import_module

            found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, "__version__"})
