"""Seismic and microscopy volumes (ZGY, VDS, WKW) as arrays for NumPy, xarray and dask, without conversion.

survey = volfs.open("/data/north.zgy")                    # reads headers
data = survey.layer.level(0)
box = data[10:30, 40:60, 100:150]                         # reads these samples
line = survey.layer.at(inline=1040)

xarray.open_dataset("/data/north.zgy", engine="volfs")

with volfs.mount("/data") as m:                           # for programs that read files
    print(m.path, list(m.datasets))
"""

from importlib import metadata as _metadata

from ._array import Array, Axis, Values
from ._cache import cache_size, set_cache_size
from ._dataset import Dataset, Layer, open
from ._datasets import Datasets, Mount, mount
from ._errors import Damaged, DamagedBrick, NotFound, ReadFailed, SourceChanged, Unsupported, VolfsError
from ._program import program
from ._store import store

try:
    __version__ = _metadata.version("volfs")
except _metadata.PackageNotFoundError:
    __version__ = "unknown"

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
