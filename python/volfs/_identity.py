"""Tells the mount that this process made from another one that is at the same place by now."""

from __future__ import annotations

import json
import os
import re
from typing import NamedTuple

_MAX_LINKS = 40


class Entry(NamedTuple):
    """What the system's list of mounts says about a mount."""

    number: str
    device: str
    source: str


class Identity(NamedTuple):
    """A mount that was made: its numbers, which the system gives to others when it is gone, and its daemon."""

    place: str
    entry: Entry | None
    daemon: int | None
    started: str | None

    @classmethod
    def at(cls, place: str) -> Identity:
        """Remember the mount at a place, as `resolved` returns it."""
        daemon = _daemon_at(place)
        return cls(place, entry_at(place), daemon, None if daemon is None else _start_time(daemon))

    def is_there(self) -> bool:
        """Return whether this mount is still there, or its remains if its daemon died."""
        if self.entry is None:
            # The list of mounts cannot be read here.
            return True
        if entry_at(self.place) != self.entry:
            return False
        if self.started is not None and self.daemon is not None and _start_time(self.daemon) == self.started:
            # The common case, in which the mount, which might not answer, is not asked.
            return True
        daemon = _daemon_at(self.place)
        return daemon is None or daemon == self.daemon


def resolved(path: str) -> str:
    """Return the path of a mount point without links, and without asking what is mounted there already."""
    for _ in range(_MAX_LINKS):
        try:
            path = os.path.join(os.path.dirname(path), os.readlink(path))
        except OSError:
            break
    folder, name = os.path.split(path.rstrip("/"))
    return os.path.realpath(path) if name in ("", ".", "..") else os.path.join(os.path.realpath(folder), name)


def entry_at(place: str) -> Entry | None:
    """Return the topmost mount at a place, or None."""
    found = None
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                fields, _, system = line.rstrip("\n").partition(" - ")
                words = fields.split(" ")
                if _unescaped(words[4]) == place:
                    found = Entry(words[0], words[2], system)
    except (OSError, IndexError):
        return None
    return found


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _daemon_at(place: str) -> int | None:
    try:
        with open(os.path.join(place, ".volfs", "status.json"), encoding="utf-8") as file:
            return int(json.load(file)["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _start_time(process: int) -> str | None:
    """Return when a process started, which tells it from later ones of the same number; None if it has ended."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(") ")[2].split(" ")
    except OSError:
        return None
    return None if len(fields) < 20 or fields[0] in "ZX" else fields[19]
