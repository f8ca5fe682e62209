"""Values of samples that are stored otherwise: scaled integers, and samples that mean "no data"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def are_integers(info: Mapping[str, Any]) -> bool:
    """Return whether the stored samples are integers."""
    return np.dtype(info["dtype"]).kind in "iu"


def differ(info: Mapping[str, Any]) -> bool:
    """Return whether the values of a level, given its lodN.json, differ from its stored samples."""
    if not are_integers(info):
        return info["no_value"] is not None
    if info["scale"] is None:
        return False
    return info["no_value"] is not None or (info["scale"], info["offset"]) != (1, 0)


def value_type(info: Mapping[str, Any]) -> np.dtype[Any]:
    """Return the type of the values where they differ: that of lodN.float32.npy, or the stored floating-point type."""
    return np.dtype("<f4") if are_integers(info) else np.dtype(info["dtype"]).newbyteorder("<")


def from_stored(info: Mapping[str, Any], stored: NDArray[Any]) -> NDArray[Any]:
    """Return the values of stored samples, to the last bit as in lodN.float32.npy; NaN for "no data"."""
    values: NDArray[Any]
    if are_integers(info):
        # OpenVDS scales in float32 and ZGY in float64; their values differ in the last bit.
        precision = np.dtype(np.float32 if info["format"] == "vds" else np.float64)
        scale, offset = np.asarray([info["scale"], info["offset"]]).astype(precision)
        values = stored.astype(np.float64).astype(precision)
        values = (values * scale + offset).astype(np.float32)
    else:
        values = stored
    if info["no_value"] is not None:
        values[stored == info["no_value"]] = np.nan
    return values
