"""Reads a volume with volfs in process; protocol in peer.py. The environment names a folder with the module: PYTHONPATH."""

import peer
import volfs


def opened(path):
    """The engine fills the caller's array."""
    array = volfs.open(path).layer.level(0)

    def read(start, out):
        array.read_into(tuple(slice(at, at + count) for at, count in zip(start, out.shape)), out)

    return array.shape, array.dtype, read


if __name__ == "__main__":
    peer.run(opened, __doc__)
