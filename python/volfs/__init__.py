"""Seismic and microscopy volumes (ZGY, VDS, WKW) as arrays: mounts of volfs for NumPy, xarray and dask.

    with volfs.mount("/data") as m:
        print(list(m.datasets))

    survey = volfs.open("/data/north.zgy")
    line = survey.lod(0)[20]                                  # a memory map: nothing is read before it is touched
    slice = survey.lod(0, first_axis="sample")[250]

    xarray.open_dataset("/data/north.zgy", engine="volfs")

The program `volfs` decodes; nothing is decoded in Python.
"""

from importlib import metadata as _metadata

from ._datasets import Dataset, Datasets, Layer
from ._levels import Axis, Level
from ._mounts import Mount, mount
from ._opening import open
from ._program import VolfsError, program

try:
    __version__ = _metadata.version("volfs")
except _metadata.PackageNotFoundError:
    __version__ = "unknown"

__all__ = ["Axis", "Dataset", "Datasets", "Layer", "Level", "Mount", "VolfsError", "mount", "open", "program"]
