"""Reads a float32 VDS file with openvds; protocol in peer.py. OPENVDS_CONNECTION in the environment is the connection
of a VDS in an object store."""

import os

import numpy as np
import openvds as ov

import peer

# planes per request; several requests in flight are a little faster than one for the whole volume
PART = 128


def opened(path):
    """Requests fill the caller's array; openvds spreads them over its own threads."""
    vds = ov.open(path, os.environ.get("OPENVDS_CONNECTION", ""))
    layout = ov.getLayout(vds)
    shape = tuple(layout.getDimensionNumSamples(axis) for axis in (2, 1, 0))
    manager = ov.getAccessManager(vds)

    def read(start, array):
        in_flight = []
        for first in range(0, array.shape[0], PART):
            part = array[first:first + PART]
            low = (start[2], start[1], start[0] + first)
            high = tuple(a + n for a, n in zip(low, reversed(part.shape)))
            in_flight.append(manager.requestVolumeSubset(low, high, data_out=part.reshape(-1), lod=0, channel=0,
                                                       format=ov.VolumeDataFormat.Format_R32,
                                                       dimensionsND=ov.DimensionsND.Dimensions_012))
        if not all(request.waitForCompletion() for request in in_flight):
            raise RuntimeError("openvds cannot read this")
        # openvds cancels its requests when the handle is dropped, so it must live until here
        return vds

    return shape, np.float32, read


if __name__ == "__main__":
    peer.run(opened, __doc__)
