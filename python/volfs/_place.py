"""Where a dataset is: its folder in a mount, and how to get at it again in another process."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._mounts import Mount, Origin

_LOG_PREFIX = re.compile(r"^\S+Z [A-Z]+ +\S+: ")
"""The time, the level and the module in front of a log line's text."""


class Place:
    """A dataset's folder in a mount. The dataset, its layers and its levels share it, and with it the mount."""

    def __init__(self, path: Path, mount: Mount | None = None, origin: Origin | None = None) -> None:
        """Hold a mount of this process, or none if another program made it."""
        self.path = path
        self.mount = mount
        self.origin = origin
        self.closed = False

    def __reduce__(self) -> tuple[object, ...]:
        return (_found_again, (str(self.path), self.origin))

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.path.name

    def close(self) -> None:
        """Let go of the mount; nothing can be opened any more."""
        self.closed = True
        self.mount = None

    def check_open(self) -> None:
        """Raise ValueError if the dataset was closed."""
        if self.closed:
            raise ValueError(f"the dataset {self.name} is closed")

    def open_file(self, name: str, changed: int) -> int:
        """Open a file below the folder for reading, and return its descriptor.

        Raises OSError if it cannot be opened, or if its time of change is not `changed` (nanoseconds).
        """
        self.check_open()
        try:
            descriptor = self._open(name)
        except OSError as error:
            # Pickled where the mount was made, and that mount is on another machine or no longer there.
            if self.origin is None or self.mount is not None or error.errno not in (errno.ENOENT, errno.ENOTCONN):
                raise
            self.mount = self.origin.mount_again()
            self.path = self.mount.path / self.origin.name
            descriptor = self._open(name)
        if os.fstat(descriptor).st_mtime_ns != changed:
            os.close(descriptor)
            raise OSError(errno.ESTALE, "the source has changed since it was opened; open it again")
        return descriptor

    def failure(self, name: str, error: OSError) -> OSError:
        """Return the error of a read with the file it is about, and the last that the mount logged of this dataset."""
        reason = error.strerror or str(error)
        logged = self._last_log_line() if error.errno == errno.EIO else None
        if logged is not None:
            reason += f"; the mount's log says: {logged}"
        return OSError(error.errno, reason, str(self.path / name))

    def _open(self, name: str) -> int:
        return os.open(self.path / name, os.O_RDONLY | os.O_CLOEXEC)

    def _last_log_line(self) -> str | None:
        for folder in self.path.parents:
            log = folder / ".volfs" / "log"
            if os.path.exists(log):
                lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
                line = next((line for line in reversed(lines) if self.name in line), None)
                return line and _LOG_PREFIX.sub("", line)
        return None


def _found_again(path: str, origin: Origin | None) -> Place:
    return Place(Path(path), origin.mount_that_shows(path) if origin else None, origin)
