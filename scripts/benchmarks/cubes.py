"""The samples of the test volumes: pure functions of the position, so that all runs and writers produce the same
samples."""

import numpy as np


def noise(*positions):
    """Returns uniform float32 numbers from -0.5 to 0.5, a hash of the position."""
    primes = (73856093, 19349663, 83492791)
    h = np.uint32(0)
    for position, prime in zip(positions, primes):
        h = h ^ (position.astype(np.uint32) * np.uint32(prime))
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    return (h >> np.uint32(8)).astype(np.float32) / np.float32(2**24) - np.float32(0.5)


def seismic(low, high):
    """Returns the float32 amplitudes of a box (inline, crossline, sample): dipping reflectors, one fault, 2 % of
    noise."""
    i, j, k = np.ogrid[tuple(slice(a, b) for a, b in zip(low, high))]
    x, y, z = (a.astype(np.float32) for a in (i, j, k))
    depth = z + 11 * np.sin(x / 83) + 7 * np.cos(y / 61) + np.where(x + y > 500, np.float32(13), np.float32(0))
    trace = np.sin(depth / 3.7) * np.cos(depth / 29) + np.float32(0.4) * np.sin(depth / 1.9 + y / 40)
    return (800 * trace + 32 * noise(i, j, k)).astype(np.float32)


def cells(low, high, dtype):
    """Returns the grey values of a box (x, y, z): soft, grainy cells, and zeros around them in two fifths of the
    volume."""
    i, j, k = np.ogrid[tuple(slice(a, b) for a, b in zip(low, high))]
    x, y, z = (a.astype(np.float32) for a in (i, j, k))
    soft = np.sin(x / 21) * np.cos(y / 17) + np.sin(z / 25 + x / 60) * np.cos(y / 33)
    full = 255 if dtype == "uint8" else 40000
    grey = full * (0.45 + 0.2 * soft + 0.03 * noise(i, j, k))
    return np.where(soft < -0.2, 0, grey.clip(1, full)).astype(dtype)
