"""Reads a ZGY file with OpenZGY (part of the package pyzgy); protocol in peer.py."""

import warnings

import numpy as np

import peer

warnings.filterwarnings("ignore")
import openzgy.api as zgy  # noqa: E402


def opened(path):
    """The reader fills the caller's array in one thread; zeroed_data saves it from clearing the array."""
    reader = zgy.ZgyReader(path)
    dtype = {"int8": np.int8, "int16": np.int16, "float": np.float32}[reader.datatype.name]

    def read(start, array):
        reader.read(tuple(start), array, zeroed_data=True)

    return tuple(reader.size), dtype, read


if __name__ == "__main__":
    peer.run(opened, __doc__)
