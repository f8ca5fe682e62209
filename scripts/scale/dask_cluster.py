"""Reads one array with a dask cluster whose workers each have a mount of their own, and compares it with one process.

    dask_cluster.py SOURCE LAYER [--workers N] [--threads N] [--address SCHEDULER] [--option NAME=VALUE]

SOURCE is what `volfs mount` takes: a path that all workers have, or the address of an object store. LAYER is the path of
a layer in the mount, such as `north.zgy/data`. Without --address the cluster is N processes of this machine. Prints what
the mounts have read. Needs dask[array,distributed], NumPy, and the module volfs (docs/python.md).
"""

import argparse
import json
import sys
import zlib

import dask
import numpy as np
import volfs
from distributed import Client, LocalCluster, WorkerPlugin, get_worker


class Mount(WorkerPlugin):
    """Mounts SOURCE when a worker starts, and takes the mount away when it ends."""

    name = "volfs"

    def __init__(self, source, options):
        self.source, self.options = source, options

    def setup(self, worker):
        """Mounts on a temporary folder of the worker."""
        self.mount = worker.volfs = volfs.mount(self.source, **self.options)

    def teardown(self, worker):
        """Unmounts."""
        self.mount.unmount()


def summary(planes):
    """Returns CRC-32, sum and extremes of some planes."""
    return zlib.crc32(np.ascontiguousarray(planes)), float(planes.sum(dtype=np.float64)), float(planes.min()), float(planes.max())


@dask.delayed(pure=False)
def read(layer, start, stop):
    """Reads planes from the mount of the worker that runs this."""
    worker = get_worker()
    planes = np.load(worker.volfs.path / layer / "lod0.npy", mmap_mode="r")[start:stop]
    return start, worker.name, summary(planes)


def counters(dask_worker):
    """Returns the counters of a worker's mount; the name of the argument makes dask pass the worker."""
    return dask_worker.volfs.status["counters"]


def main():
    """Reads with the cluster and without; returns 0 if both are equal."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("layer")
    parser.add_argument("--workers", type=int, default=2, help="processes of this machine (2)")
    parser.add_argument("--threads", type=int, default=1, help="threads of each (1)")
    parser.add_argument("--address", help="the scheduler of a cluster that runs")
    parser.add_argument("--option", action="append", default=[], help="an option of `volfs mount`, as NAME=VALUE")
    args = parser.parse_args()
    options = dict(option.split("=", 1) for option in args.option)
    cluster = args.address or LocalCluster(n_workers=args.workers, threads_per_worker=args.threads, processes=True,
                                           dashboard_address=None)
    with Client(cluster) as client, volfs.mount(args.source, **options) as own:
        client.register_plugin(Mount(args.source, options))
        folder = own.path / args.layer
        about = json.loads((folder / "lod0.json").read_text())
        # whole layers of bricks, so that no two workers decode the same brick
        planes, step = about["shape"][0], about["brick_shape"][0]
        parts = [read(args.layer, start, min(start + step, planes)) for start in range(0, planes, step)]
        found = {start: (worker, result) for start, worker, result in dask.compute(*parts)}
        array = np.load(folder / "lod0.npy", mmap_mode="r")
        wrong = [start for start, (_, result) in found.items() if result != summary(array[start:start + step])]
        shares = {worker: sum(1 for name, _ in found.values() if name == worker) for worker, _ in found.values()}
        print(f"{len(found)} parts of {step} planes; parts of each worker: {shares}")
        for worker, counts in client.run(counters).items():
            print(f"{worker}: {counts['bricks_decoded']} bricks decoded, {counts['source_bytes'] / 1e6:.0f} MB from the source")
        print(f"wrong parts: {wrong}" if wrong else "all parts equal those of one process")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
