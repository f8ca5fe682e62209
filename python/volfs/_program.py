"""The program `volfs`: where it is, and what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any, TypeAlias

from ._errors import VolfsError

Options: TypeAlias = Mapping[str, Any]
"""None, a bool, a number, a text, a path, or a list of texts, by name."""


def program() -> str:
    """Return the path of the program: the one that was installed with this package, then $VOLFS, then the PATH.

    Raises VolfsError if there is none.
    """
    path = _installed_with_package() or os.environ.get("VOLFS") or shutil.which("volfs")
    if path is None:
        raise VolfsError(
            "cannot find the program volfs: install the wheel that scripts/make_wheel.sh builds, which has it, "
            "or set the environment variable VOLFS to its path"
        )
    return path


def run(arguments: Sequence[str]) -> None:
    """Run the program. Raises VolfsError if it fails."""
    command = [program(), *arguments]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise VolfsError(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode < 0:
        raise VolfsError(f"{command[0]} was ended by signal {-done.returncode}")
    if done.returncode > 0:
        raise VolfsError(_reason(done.stderr) or f"{command[0]} failed with status {done.returncode} and said nothing")


def start_unmounting(path: str, *, remove_folder: bool) -> subprocess.Popen[bytes]:
    """Take a mount away, also if it is in use, and do not wait for it. Raises VolfsError if there is no program."""
    command = [program(), "umount", "--lazy", "--", path]
    if remove_folder:
        # By the shell, since this process may end before.
        command = ["/bin/sh", "-c", '"$@"; rmdir -- "$0"', path, *command]
    null = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=null, stdout=null, stderr=null)


def as_arguments(options: Options) -> list[str]:
    """Return options as they stand on a command line: `cache_size="1GiB"` as `--cache-size=1GiB`.

    True is an option without a value, None and False are none at all, and a list repeats its option, but that of views.
    """
    arguments = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if name == "umask" and isinstance(value, int):
            value = format(value, "o")
        elif isinstance(value, float) and value.is_integer():
            value = int(value)
        elif name == "views" and not isinstance(value, str):
            value = ",".join(value)
        if value is True:
            arguments.append(flag)
        elif isinstance(value, str | int | os.PathLike):
            arguments.append(f"{flag}={value}")
        else:
            arguments += [f"{flag}={item}" for item in value]
    return arguments


def _installed_with_package() -> str | None:
    try:
        files = metadata.files("volfs") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "volfs" and file.parent.name == "bin":
            path = os.path.realpath(str(file.locate()))
            if os.access(path, os.X_OK):
                return path
    return None


def _reason(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    told = [line for line in reversed(lines) if line.startswith("volfs: ")]
    told += [line for line in lines if line.startswith("error: ")]
    return told[0].partition(": ")[2] if told else " ".join(lines)
