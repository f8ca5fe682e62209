"""The store of `volfs.store`: the files of a folder `LAYER.ome.zarr`, for zarr-python."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from zarr.abc.store import OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest

from ._array import _open_again, _version_of

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype

    from . import _volfs
    from ._source import Source


class VolfsStore(Store):
    """A layer as a read-only store. Chunks that have the fill value alone are absent."""

    supports_writes = False
    supports_deletes = False
    supports_partial_writes: Literal[False] = False
    supports_listing = True
    # nobody can write it here, and xarray warns where it could be and is not
    supports_consolidated_metadata = False

    def __init__(self, engine: _volfs.Dataset, source: Source, folder: str) -> None:
        """Show a folder of a dataset. Call `volfs.store` instead."""
        super().__init__(read_only=True)
        self._engine = engine
        self._folder = folder
        self._source = source
        self._version = _version_of(engine)

    def __str__(self) -> str:
        return f"volfs:{self._source.path}/{self._folder}"

    def __repr__(self) -> str:
        return f"VolfsStore({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VolfsStore) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash((self._source.path, self._folder))

    @property
    def _identity(self) -> tuple[Any, ...]:
        # of a folder that was opened twice the stores are equal
        return self._source._replace(opening=""), self._version, self._folder

    def __reduce__(self) -> tuple[Any, ...]:
        return _store_again, (self._source, self._version, self._folder)

    def with_read_only(self, read_only: bool = False) -> VolfsStore:
        """Return a store of the same layer, which cannot be written to either."""
        if not read_only:
            self._check_writable()
        return VolfsStore(self._engine, self._source, self._folder)

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Read a file, or a part of it."""
        read = await asyncio.to_thread(self._read, key, byte_range)
        return None if read is None else prototype.buffer.from_bytes(read)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Read several parts of files."""
        return list(await asyncio.gather(*(self.get(key, prototype, part) for key, part in key_ranges)))

    async def exists(self, key: str) -> bool:
        """Return whether there is a file."""
        return await asyncio.to_thread(self._size, key) is not None

    async def getsize(self, key: str) -> int:
        """Return the bytes of a file."""
        size = await asyncio.to_thread(self._size, key)
        if size is None:
            raise FileNotFoundError(key)
        return size

    def list(self) -> AsyncIterator[str]:
        """Return the paths of all files."""
        return self._below("", "")

    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Return the paths of all files that begin with a prefix."""
        return self._below(prefix[: prefix.rfind("/") + 1], prefix)

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Return the names in a folder."""
        for name in await asyncio.to_thread(self._names, prefix):
            yield name.rstrip("/")

    async def _below(self, folder: str, prefix: str) -> AsyncIterator[str]:
        for name in await asyncio.to_thread(self._names, folder):
            key = folder + name
            if not name.endswith("/"):
                if key.startswith(prefix):
                    yield key
            elif key.startswith(prefix) or prefix.startswith(key):
                async for below in self._below(key, prefix):
                    yield below

    async def set(self, key: str, value: Buffer) -> None:
        """Refuse: nothing can be written."""
        self._check_writable()

    async def set_partial_values(self, key_start_values: Iterable[tuple[str, int, Any]]) -> None:
        """Refuse, as older releases of zarr-python ask for."""
        self._check_writable()

    async def delete(self, key: str) -> None:
        """Refuse: nothing can be taken away."""
        self._check_writable()

    async def delete_dir(self, prefix: str) -> None:
        """Refuse: nothing can be taken away."""
        self._check_writable()

    async def clear(self) -> None:
        """Refuse: nothing can be taken away."""
        self._check_writable()

    def _check_writable(self) -> NoReturn:
        raise ValueError(f"{self} is read-only: volfs writes to no volume; copy it to another store")

    def _names(self, folder: str) -> Iterable[str]:
        return self._engine._list(f"{self._folder}/{folder}") or []

    def _size(self, key: str) -> int | None:
        return self._engine._size(f"{self._folder}/{key}")

    def _read(self, key: str, part: ByteRequest | None) -> bytes | None:
        size = self._size(key)
        if size is None:
            return None
        start, end = 0, size
        match part:
            case RangeByteRequest(start, end):
                end = min(end, size)
            case OffsetByteRequest(start):
                pass
            case SuffixByteRequest(length):
                start = max(size - length, 0)
        return self._engine._read(f"{self._folder}/{key}", start, max(end - start, 0))


def _store_again(source: Source, version: list[float | None], folder: str) -> VolfsStore:
    return VolfsStore(_open_again(source, *version), source, folder)
