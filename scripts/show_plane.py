#!/usr/bin/env python3
"""Draws a plane of an array file in the terminal.

    scripts/show_plane.py FILE.npy INDEX

INDEX counts along the first axis. Needs NumPy. A terminal with 256 colours gets shades of grey, two samples in each
character; anything else gets characters of rising darkness.
"""

import os
import sys

import numpy as np

COLUMNS, ROWS = 76, 13
DARKNESS = " .:-=+*#%@"


def has_colours():
    """Whether what is printed goes to a terminal with 256 colours and the character of half a block."""
    terms = os.environ.get("TERM", "") + os.environ.get("COLORTERM", "")
    encoding = (sys.stdout.encoding or "").lower()
    return sys.stdout.isatty() and "utf" in encoding and any(term in terms for term in ("256", "truecolor", "24bit"))


def grid(plane, rows, columns):
    """Picks samples of a plane, the second axis downwards; from 0 to 1, where the brightest hundredths are cut off."""
    across = np.linspace(0, plane.shape[0] - 1, columns).round().astype(int)
    down = np.linspace(0, plane.shape[1] - 1, rows).round().astype(int)
    picked = plane[np.ix_(across, down)].T.astype(np.float64)
    low, high = np.percentile(picked, [2, 98])
    return np.clip((picked - low) / ((high - low) or 1.0), 0.0, 1.0)


def main():
    cube = np.load(sys.argv[1], mmap_mode="r")
    plane = cube[int(sys.argv[2])]
    if has_colours():
        shades = 232 + (grid(plane, 2 * ROWS, COLUMNS) * 23).round().astype(int)
        for upper, lower in zip(shades[::2], shades[1::2]):
            print("".join(f"\x1b[38;5;{u};48;5;{v}m▀" for u, v in zip(upper, lower)) + "\x1b[0m")
    else:
        for row in (grid(plane, ROWS, COLUMNS) * (len(DARKNESS) - 1)).round().astype(int):
            print("".join(DARKNESS[value] for value in row))


main()
