"""Benchmarks the wavelet decoder alone against openvds: samples per second of processor time, on the same chunks.

Called as `scripts/bench decoder [--edge N] [--rounds N]`. openvds reads the whole volume through its own API, and all
of its processor time counts, including reading and copying; the decoder of volfs has the chunks in memory.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
from pathlib import Path

import volumes

HERE = Path(__file__).parent


def ours(example, path):
    """Returns MB of samples per second of processor time of the volfs decoder."""
    printed = subprocess.run([example, path, "2"], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"(\d+) MB of samples", printed)[1])


def theirs(path, size):
    """Returns the same for openvds: the processor time of reading the volume less that of everything but reading."""
    took = processor_time(sys.executable, HERE / "peer_openvds.py", path, "all")
    return size / 1e6 / max(took - overhead(path, size), 1e-9)


def overhead(path, size):
    """Returns the processor time of a process that does everything but read: start, imports, opening, touching an
    array."""
    program = f"import numpy, openvds; openvds.open({str(path)!r}, ''); numpy.empty({size}, numpy.uint8).fill(0)"
    return processor_time(sys.executable, "-c", program)


def processor_time(*command):
    """Runs a program and returns its processor time, user and system, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    """Measures all files in several rounds, and prints a table."""
    parser = argparse.ArgumentParser(prog="scripts/bench decoder", description=__doc__.split("\n")[0])
    parser.add_argument("--edge", type=int, default=256, help="samples along each axis (256)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per measurement (3)")
    parser.add_argument("--data", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--example", type=Path, required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    cases = [(method, brick, tolerance) for method in ("Wavelet", "WaveletLossless") for brick in (64, 128)
             for tolerance in ("0.1", "1", "10") if method == "Wavelet" or tolerance == "1"]
    size = 4 * args.edge**3
    paths = {}
    for method, brick, tolerance in cases:
        path = args.data / str(args.edge) / f"decoder-{method.lower()}-{brick}-{tolerance}.vds"
        if not path.exists():
            recipe = [f"method={method}", f"tolerance={tolerance}", f"brick={brick}"]
            problem = volumes.write("vds", path, args.edge, recipe)
            if problem:
                sys.exit(f"{path} cannot be written: {problem}")
        paths[method, brick, tolerance] = path
    found = {case: ([], []) for case in cases}
    before = os.getloadavg()[0]
    for _ in range(args.rounds):
        for case in cases:
            found[case][0].append(ours(args.example, paths[case]))
            found[case][1].append(theirs(paths[case], size))
    print(f"MB (10^6 bytes) of float32 samples for each second of processor time; {args.edge}^3, {args.rounds} rounds, medians; "
          f"load before {before:.2f}, after {os.getloadavg()[0]:.2f}.\n")
    print("| method | brick | tolerance | volfs' decoder | openvds | ratio |\n|---|---|---|---|---|---|")
    for case in cases:
        mine, other = (statistics.median(rates) for rates in found[case])
        print("| {} | {} | {} | {:.0f} | {:.0f} | {:.1f} |".format(*case, mine, other, mine / other))


if __name__ == "__main__":
    main()
