"""What goes wrong: `VolfsError` and one class for each cause."""

from __future__ import annotations


class VolfsError(Exception):
    """Something cannot be opened, read or mounted. The text says what, where, and what to do."""


class NotFound(VolfsError, FileNotFoundError):
    """Nothing is there."""


class Unsupported(VolfsError):
    """It is no dataset, or uses what this version does not read."""


class Damaged(VolfsError):
    """The headers of a dataset are damaged, or contradict each other."""


class DamagedBrick(VolfsError, OSError):
    """A brick cannot be decoded. All others can still be read."""

    brick: tuple[int, ...] = ()
    """The brick's index in the grid, slowest axis first."""
    region: tuple[slice, ...] = ()
    """The samples that the brick has: what to read around."""


class SourceChanged(VolfsError, OSError):
    """The dataset was changed since it was opened. Open it again."""


class ReadFailed(VolfsError, OSError):
    """The system or the object store failed, or does not let this user read it."""
