"""Reads one array with Spark, whose Python workers each have a mount of their own, and compares it with one process.

    spark_job.py SOURCE LAYER [--cores N]

SOURCE and LAYER are those of dask_cluster.py. On a cluster: spark-submit spark_job.py SOURCE LAYER. Needs pyspark, Java,
NumPy, and the module volfs (docs/python.md).
"""

import argparse
import json
import sys
import zlib

import numpy as np
import volfs
from pyspark.sql import SparkSession

MOUNTS = {}


def mount_of(source):
    """Returns the mount of this process, made at its first task; Python takes it away when the process ends."""
    if source not in MOUNTS:
        MOUNTS[source] = volfs.mount(source)
    return MOUNTS[source].path


def read(source, layer, start, stop):
    """Reads some planes; returns where they begin, their CRC-32, and their sum."""
    planes = np.ascontiguousarray(np.load(mount_of(source) / layer / "lod0.npy", mmap_mode="r")[start:stop])
    return start, zlib.crc32(planes), float(planes.sum(dtype=np.float64))


def main():
    """Reads with Spark and without; returns 0 if both are equal."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("layer")
    parser.add_argument("--cores", type=int, help="tasks at a time on this machine (default: what spark-submit says)")
    args = parser.parse_args()
    source, layer = args.source, args.layer
    builder = SparkSession.builder.appName("volfs").config("spark.ui.enabled", "false")
    spark = (builder.master(f"local[{args.cores}]") if args.cores else builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with volfs.mount(source) as own:
        folder = own.path / layer
        about = json.loads((folder / "lod0.json").read_text())
        planes, step = about["shape"][0], about["brick_shape"][0]
        starts = list(range(0, planes, step))
        tasks = spark.sparkContext.parallelize(starts, len(starts))
        found = dict((start, rest) for start, *rest in tasks.map(lambda at: read(source, layer, at, min(at + step, planes))).collect())
        wrong = [at for at in starts if found[at] != list(read_own(folder, at, min(at + step, planes)))]
    spark.stop()
    print(f"{len(starts)} parts of {step} planes; " + (f"wrong: {wrong}" if wrong else "all equal those of one process"))
    return 1 if wrong else 0


def read_own(folder, start, stop):
    """Reads the same from a mount of this process."""
    planes = np.ascontiguousarray(np.load(folder / "lod0.npy", mmap_mode="r")[start:stop])
    return zlib.crc32(planes), float(planes.sum(dtype=np.float64))


if __name__ == "__main__":
    sys.exit(main())
