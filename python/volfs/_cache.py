"""The cache of decoded bricks, which all arrays of this process share."""

from __future__ import annotations

import re

from . import _volfs

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def cache_size() -> int:
    """Return the most bytes of decoded bricks that this process keeps. By default 512 MiB, or a quarter of memory."""
    return _volfs.cache_size()


def set_cache_size(size: int | str) -> None:
    """Set the most bytes of decoded bricks that this process keeps: a number, or a text such as "2GiB".

    What is cached is dropped. Forked children inherit the size, and have a cache of their own.
    """
    match = re.fullmatch(r"(\d+) ?([KMGT]?)(?:iB|B)?", str(size))
    if match is None:
        raise ValueError(f'a size is a number of bytes, or a text such as "512MiB" or "2GiB", not {size!r}')
    _volfs.set_cache_size(int(match[1]) << _UNITS[match[2]])
