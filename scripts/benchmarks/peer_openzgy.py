"""Reads a ZGY file with OpenZGY (the package pyzgy brings it); protocol in peer.py."""

import warnings

import numpy as np

import peer

warnings.filterwarnings("ignore")
import openzgy.api as zgy  # noqa: E402


def opened(path):
    """The reader fills the caller's array; it need not clear what is zero already, and runs in one thread."""
    reader = zgy.ZgyReader(path)
    dtype = {"int8": np.int8, "int16": np.int16, "float": np.float32}[reader.datatype.name]

    def read(start, array):
        reader.read(tuple(start), array, zeroed_data=True)

    return tuple(reader.size), dtype, read


if __name__ == "__main__":
    peer.run(opened, __doc__)
