"""Benchmarks the decoders of volfs alone against the formats' libraries: samples per second of processor time.

Called as `scripts/bench decoder [--codec wavelet|zfp] [--edge N] [--rounds N]`. Wavelets: openvds reads the whole
volume through its own API, and all of its processor time counts, including reading and copying; the decoder of volfs
has the chunks in memory. ZFP: both decoders have the same streams in memory, and take turns in one thread.
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


def wavelet(args):
    """Measures all VDS files in several rounds, and prints a table."""
    cases = [(method, brick, tolerance) for method in ("Wavelet", "WaveletLossless") for brick in (64, 128)
             for tolerance in ("0.1", "1", "10") if method == "Wavelet" or tolerance == "1"]
    size = 4 * args.edge**3
    paths = {}
    for method, brick, tolerance in cases:
        path = args.data / str(args.edge) / f"decoder-{method.lower()}-{brick}-{tolerance}.vds"
        write("vds", path, args.edge, [f"method={method}", f"tolerance={tolerance}", f"brick={brick}"])
        paths[method, brick, tolerance] = path
    found = {case: ([], []) for case in cases}
    before = os.getloadavg()[0]
    for _ in range(args.rounds):
        for case in cases:
            found[case][0].append(ours(args.examples / "wavelet", paths[case]))
            found[case][1].append(theirs(paths[case], size))
    print(f"MB (10^6 bytes) of float32 samples for each second of processor time; {args.edge}^3, {args.rounds} rounds, medians; "
          f"load before {before:.2f}, after {os.getloadavg()[0]:.2f}.\n")
    print("| method | brick | tolerance | volfs' decoder | openvds | ratio |\n|---|---|---|---|---|---|")
    for case in cases:
        mine, other = (statistics.median(rates) for rates in found[case])
        print("| {} | {} | {} | {:.0f} | {:.0f} | {:.1f} |".format(*case, mine, other, mine / other))


def zfp(args):
    """Measures the bricks of ZGY files, and streams of every mode, and prints two tables."""
    paths = {}
    for snr in (20, 30, 40, 50, 60):
        paths[snr] = args.data / str(args.edge) / f"decoder-zfp-{snr}.zgy"
        write("zgy", paths[snr], args.edge, [f"snr={snr}"])
    before = os.getloadavg()[0]
    bricks, streams = (lines(args.examples / "zfp", 4 * args.rounds, *files) for files in (paths.values(), ()))
    print(f"MB (10^6 bytes) of samples for each second of processor time; the least times of {4 * args.rounds} rounds; "
          f"load before {before:.2f}, after {os.getloadavg()[0]:.2f}. \"portable\" is without AVX2.\n")
    print("| bricks of ZGY | bits a sample | libzfp | portable | volfs' decoder | ratio portable | ratio |\n|---|---|---|---|---|---|---|")
    for snr, (_, *figures) in zip(paths, bricks, strict=True):
        print(f"| float32 64^3, {snr} dB | {rates(figures)} |")
    print("\n| mode | parameter | bits a sample | libzfp | portable | volfs' decoder | ratio portable | ratio |\n|---|---|---|---|---|---|---|---|")
    for mode, parameter, *figures in streams:
        print(f"| {mode} | {parameter} | {rates(figures)} |")


def lines(*command):
    """Runs a program, and returns the lines that it prints as lists of words."""
    printed = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in printed.splitlines()]


def rates(figures):
    """Returns bits, speeds and ratios as cells of a table."""
    bits, libzfp, portable, best = figures
    return f"{bits} | {libzfp} | {portable} | {best} | {float(portable) / float(libzfp):.2f} | {float(best) / float(libzfp):.2f}"


def write(kind, path, edge, recipe):
    """Writes a volume unless it exists."""
    problem = None if path.exists() else volumes.write(kind, path, edge, recipe)
    if problem:
        sys.exit(f"{path} cannot be written: {problem}")


def main():
    """Measures the decoders."""
    parser = argparse.ArgumentParser(prog="scripts/bench decoder", description=__doc__.split("\n")[0])
    parser.add_argument("--codec", choices=("wavelet", "zfp"), help="this decoder alone")
    parser.add_argument("--edge", type=int, default=256, help="samples along each axis (256)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per measurement (3)")
    parser.add_argument("--data", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--examples", type=Path, required=True, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.codec != "zfp":
        wavelet(args)
    if args.codec is None:
        print()
    if args.codec != "wavelet":
        zfp(args)


if __name__ == "__main__":
    main()
