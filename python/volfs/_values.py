"""Values of samples that are stored otherwise: scaled integers, and samples that mean "no data"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Conversion(NamedTuple):
    """What makes values of stored samples."""

    stored: np.dtype[Any]
    scaling: tuple[float, float] | None
    """The scale and the offset in value = stored * scale + offset."""
    no_value: float | None
    """The stored sample that means "no data"."""
    is_single: bool
    """Whether integers are scaled in float32, as OpenVDS does, or in float64, as ZGY: they differ in the last bit."""

    @property
    def changes(self) -> bool:
        """Whether values differ from the stored samples."""
        if self.stored.kind == "f" and self.no_value is not None:
            return True
        return self._codes and (self.no_value is not None or self.scaling != (1, 0))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values: float32 for scaled numbers, but those of float64, which are not scaled."""
        return np.dtype("<f4") if self.changes and self._codes else self.stored

    @property
    def _codes(self) -> bool:
        return self.scaling is not None and (self.stored.kind in "iu" or self.stored.itemsize < 8)

    def __call__(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Return the values of stored samples, to the last bit as in lodN.float32.npy; NaN for "no data"."""
        if not self.changes:
            return stored
        values = np.array(stored)
        if self.scaling is not None and self._codes:
            precision = np.dtype(np.float32 if self.is_single else np.float64)
            scale, offset = np.asarray(self.scaling).astype(precision)
            values = values.astype(np.float64).astype(precision)
            values = np.asarray((values * scale + offset).astype(np.float32))
        if self.no_value is not None:
            values[np.asarray(stored) == self.no_value] = np.nan
        found: NDArray[Any] = values[()]
        return found
