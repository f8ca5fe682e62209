"""Times reads of random patches in process, as training reads them, in batches of 20; prints medians of ratios.

    patches.py VOLUME --module FOLDER [--edge 64] [--count 1000] [--rounds 5]

`read_many` against one read for each patch, with a cache for all of the volume and for a quarter; then, where PyTorch
is installed, the four forked workers of its DataLoader against four separate processes that have opened the volume and
hand nothing on, and against a DataLoader of an array in memory. Every side begins with an empty cache.
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np

BATCH, WORKERS = 20, 4


def seconds(read, batches):
    """Returns how long it takes to read all batches."""
    begin = time.perf_counter()
    for batch in batches:
        read(batch)
    return time.perf_counter() - begin


def by_processes(batches):
    """Returns how long separate processes take, each for its share of the batches."""
    command = [sys.executable, __file__, *sys.argv[1:], "--worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, str(n)], **pipes) for n in range(WORKERS)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    begin = time.perf_counter()
    for process in processes:
        process.stdin.close()
    assert not any([process.wait() for process in processes])
    return time.perf_counter() - begin


def by_loader(read, batches):
    """Returns how long a DataLoader of forked workers takes, from its making on."""
    from torch.utils.data import DataLoader

    class Batches:
        __len__, __getitem__ = batches.__len__, lambda _, n: read(batches[n])

    loader = DataLoader(Batches(), batch_size=None, num_workers=WORKERS, multiprocessing_context="fork")
    return seconds(len, loader)


def compare(name, other, ours, rounds):
    """Runs both sides in turn, and prints the median ratio and the medians of both."""
    times = [(other(), ours()) for _ in range(rounds)]
    ratio, (a, b) = statistics.median(a / b for a, b in times), map(statistics.median, zip(*times))
    print(f"{name:<48}{ratio:6.2f}  {a:.2f} s, {b:.2f} s  load {os.getloadavg()[0]:.1f}", flush=True)


def main():
    """Measures, and prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("volume")
    parser.add_argument("--module", required=True, help="a folder with the Python module volfs")
    parser.add_argument("--edge", type=int, default=64)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    sys.path.insert(0, args.module)
    import volfs

    data = volfs.open(args.volume).layer.level(0)
    shape = (args.count // BATCH, BATCH, data.ndim)
    starts = np.random.default_rng(0).integers(0, np.subtract(data.shape, args.edge) + 1, shape).tolist()
    batches = [[tuple(slice(at, at + args.edge) for at in start) for start in batch] for batch in starts]
    if args.worker is not None:
        print("ready", flush=True)
        sys.stdin.read()
        seconds(data.read_many, batches[args.worker :: WORKERS])
        os._exit(0)  # the end of the interpreter is not what is measured

    def empty(size, time_of, *given):
        return lambda: (volfs.set_cache_size(size), time_of(*given))[1]

    for name, size in [("all of the volume", 2 * data.nbytes), ("a quarter", data.nbytes // 4)]:
        one = empty(size, seconds, lambda batch: [data[patch] for patch in batch], batches)
        many = empty(size, seconds, data.read_many, batches)
        compare(f"read_many, with a cache for {name}", one, many, args.rounds)
    if importlib.util.find_spec("torch") is None:
        return print("PyTorch is not installed: its DataLoader is left out")
    warnings.filterwarnings("ignore", "This DataLoader will create")
    loader, whole = empty(2 * data.nbytes, by_loader, data.read_many, batches), data[...]
    compare("DataLoader against separate processes", lambda: by_processes(batches), loader, args.rounds)
    memory = empty(0, by_loader, lambda batch: np.stack([whole[patch] for patch in batch]), batches)
    compare("DataLoader against one of an array in memory", memory, loader, args.rounds)


if __name__ == "__main__":
    main()
