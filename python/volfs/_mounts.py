"""Mount points: made by the program, and taken away again when they are no longer needed."""

from __future__ import annotations

import atexit
import contextlib
import json
import multiprocessing.process
import multiprocessing.util
import os
import subprocess
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any, Self, TypeVar

from ._errors import VolfsError
from ._identity import Identity, entry_at, resolved
from ._program import Options, as_arguments, run, start_unmounting
from ._source import absolute, is_path

Made = TypeVar("Made", bound="MountPoint")


class MountPoint:
    """A mount of a folder or a dataset that this process made: `volfs.Mount`, but for the datasets in it."""

    def __init__(self, source: str, options: Options, path: Path, temporary: bool) -> None:
        """Take charge of a mount that exists."""
        self.source = source
        """What is mounted, by its absolute path."""
        self.options = options
        self.path = path
        """The folder that shows it."""
        self._owner = os.getpid()
        self._temporary = temporary
        self._identity = Identity.at(resolved(str(path)))
        self._finalizer = weakref.finalize(self, _take_away, self._owner, str(path), temporary, self._identity)
        _live.add(self)

    def __repr__(self) -> str:
        state = "" if self._finalizer.alive else ", unmounted"
        return f"<volfs.{type(self).__name__} of {self.source} on {self.path}{state}>"

    @property
    def status(self) -> dict[str, Any]:
        """The mount itself: version, options, uptime, counters. Read afresh each time."""
        with open(self.path / ".volfs" / "status.json", encoding="utf-8") as file:
            status: dict[str, Any] = json.load(file)
            return status

    @property
    def answers(self) -> bool:
        """Whether the mount is there and its daemon answers."""
        there = self._finalizer.alive and self._identity.is_there()
        return there and os.path.exists(self.path / ".volfs" / "status.json")

    def unmount(self, *, lazy: bool = False) -> None:
        """Take the mount away.

        With `lazy` also if files of it are open: those can be read until they are closed. Raises VolfsError if the
        mount is in use, belongs to the process that this one was forked from, or is gone and another one in its place.
        """
        if not self._finalizer.alive:
            return
        if os.getpid() != self._owner:
            raise VolfsError(f"the mount {self.path} belongs to process {self._owner}, which alone may take it away")
        if entry_at(self._identity.place) is not None and not self._identity.is_there():
            raise VolfsError(f"the mount {self.path} is gone already; what is mounted there now is another one")
        run(["umount", *(["--lazy"] if lazy else []), "--", str(self.path)])
        self._finalizer.detach()
        if self._temporary:
            _remove_folder(str(self.path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # Arrays that outlive the block keep the mount busy; they can be read on, and the daemon ends with the last.
        self._finalizer()
        _wait_for_ends()


def make_mount(
    kind: type[Made], source: str | os.PathLike[str], mountpoint: str | os.PathLike[str] | None, options: Options
) -> Made:
    """Mount a source on a folder, or else on a temporary one. Raises VolfsError with the reason if that fails."""
    source = absolute(source)
    temporary = mountpoint is None
    _ending[:] = [process for process in _ending if process.poll() is None]
    path = tempfile.mkdtemp(prefix="volfs-") if mountpoint is None else os.path.abspath(mountpoint)
    place = resolved(path)
    before = entry_at(place)
    try:
        run(["mount", *as_arguments(options), "--", source, path])
        _end_with_process()
        return kind(source, options, Path(path), temporary)
    except VolfsError:
        if temporary:
            _remove_folder(path)
        raise
    except BaseException:
        # Interrupted, perhaps when the mount was made already. What was there before stays.
        if temporary or entry_at(place) != before:
            _take_away(os.getpid(), path, temporary, None)
        raise


def shared_mount(source: str, options: Options) -> MountPoint:
    """Return the mount of a source that all maps of this process share; make it if there is none.

    It is taken away when nothing refers to it any more.
    """
    key = (os.path.realpath(source) if is_path(source) else source, tuple(as_arguments(options)))
    with _lock:
        found = _shared.get(key)
        if found is None or not found.answers:
            found = _shared[key] = make_mount(MountPoint, source, None, options)
        return found


def _take_away(owner: int, path: str, temporary: bool, identity: Identity | None) -> None:
    # A forked child has copies of its parent's mounts, which are not its own.
    if os.getpid() != owner:
        return
    # Somebody may have taken the mount away, and mounted something else there.
    if identity is not None and not identity.is_there():
        if temporary:
            _remove_folder(path)
        return
    # It takes half a second while files are mapped: too long to wait for whenever an array is dropped.
    with contextlib.suppress(VolfsError, OSError):
        _ending.append(start_unmounting(path, remove_folder=temporary))


def _wait_for_ends() -> None:
    while _ending:
        _ending.pop().wait()


def _remove_folder(path: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(path)


def _take_all_away() -> None:
    for made in list(_live):
        made._finalizer()
    _wait_for_ends()


def _end_with_process() -> None:
    """Take care that no mount outlives this process."""
    global _ends_with
    if _ends_with != os.getpid():
        _ends_with = os.getpid()
        atexit.register(_take_all_away)
        # Worker processes of multiprocessing end without calling what atexit has.
        if multiprocessing.process.parent_process() is not None:
            multiprocessing.util.Finalize(None, _take_all_away, exitpriority=0)


def _forget_mounts_of_parent() -> None:
    global _lock
    _lock = threading.Lock()
    _shared.clear()
    _live.clear()
    _ending.clear()


_lock = threading.Lock()
_shared: weakref.WeakValueDictionary[tuple[str, tuple[str, ...]], MountPoint] = weakref.WeakValueDictionary()
_live: weakref.WeakSet[MountPoint] = weakref.WeakSet()
_ending: list[subprocess.Popen[bytes]] = []
_ends_with: int | None = None
os.register_at_fork(after_in_child=_forget_mounts_of_parent)
