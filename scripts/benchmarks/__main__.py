"""Benchmarks volfs against the reference libraries and against nullfs, and prints a Markdown table.

Called by scripts/bench, which builds the programs and finds a Python with the libraries. Exit status: 0 done, 1 a row
failed, 2 no such row.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from fnmatch import fnmatch
from pathlib import Path

import comparison
import figures
import processor_time
import rows
from figures import first_line, machine, version_of
from mounts import Absent, Failed
from readers import Tools
from table import Row, markdown
from volumes import CHUNKED, VOLUMES

CACHE_VOLUMES = ("zgy-zfp", "vds-wavelet-64", "vds-wavelet-128", "wkw-lz4-uint16")
PAIR_VOLUMES = ("zgy-plain", "zgy-zfp", "vds-wavelet-64", "wkw-lz4-uint16")
BOX_VOLUMES = ("zgy-plain", "zgy-zfp", "vds-wavelet-64", "wkw-raw-uint8", "wkw-lz4-uint8")
PREAD_VOLUMES = ("zgy-plain", "zgy-zfp", "vds-wavelet-64", "wkw-lz4-uint8", "wkw-lz4-uint16")
KINDS = (("whole", rows.whole, None), ("slices", rows.slices, None), ("boxes", rows.boxes, BOX_VOLUMES), ("cache", rows.cache, CACHE_VOLUMES),
         ("pair", rows.pair, PAIR_VOLUMES), ("pread", rows.pread, PREAD_VOLUMES))


def jobs():
    """Yields every measurement: kind, volume (or None), function."""
    for kind, measure, names in KINDS:
        for volume in (*VOLUMES, *CHUNKED):
            if names is None or volume.name in names:
                yield kind, volume, measure
    yield "ceiling", None, rows.ceiling
    yield "many", None, rows.many


def selected(patterns, kind, volume):
    """Returns whether a pattern matches: a kind, a volume, or KIND:VOLUME, with * and ?."""
    name = volume.name if volume else kind
    return not patterns or any(fnmatch(text, p) for p in patterns for text in (kind, name, f"{kind}:{name}"))


def on_cpus(args):
    """Says on which processors everything runs, if these were chosen."""
    return f", on {args.cpus}" if args.cpus else ""


def load():
    """Returns the load averages of 1 and 5 minutes."""
    return "{:.2f} and {:.2f}".format(*os.getloadavg()[:2])


def measure_all(args, tools):
    """Returns all selected rows; prints progress to standard error."""
    found = []
    for kind, volume, measure in jobs():
        if not selected(args.rows, kind, volume):
            continue
        name, begin = f"{kind}:{volume.name}" if volume else kind, time.monotonic()
        title = volume.title if volume else name
        try:
            problem = volume and volume.make(tools.data, tools.edge)
            if problem:
                raise Absent(f"cannot be written: {problem}")
            done = measure(volume, tools) if volume else measure(tools)
            if len(done) > 1 and not any(samples.seconds for row in done for samples in row.ours):
                # volfs has no figures to compare: one row is enough for the peer
                done = [replace(done[0], how=kind)]
        except Absent as absent:
            done = [Row(title, kind, problem=f"n/a ({absent})")]
        except (Failed, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            done = [Row(title, kind, problem=f"failed: {error}", failed=True)]
        found += done
        problems = {row.problem for row in done if row.problem}
        print(f"{name}: {'; '.join(sorted(problems)) or 'done'} ({time.monotonic() - begin:.0f} s)", file=sys.stderr)
    return found


def compare_all(args, tools):
    """Measures this program and another in turn, and prints the table; returns the exit status."""
    found, failed = [], False
    for kind, volume, _ in jobs():
        if kind not in comparison.KINDS or not selected(args.rows, kind, volume):
            continue
        try:
            problem = volume.make(tools.data, tools.edge)
            if problem:
                raise Failed(f"{volume.name} cannot be written: {problem}")
            found += comparison.KINDS[kind](volume, tools, replace(tools, volfs=args.compare.resolve()))
            print(f"{kind}:{volume.name}: done", file=sys.stderr)
        except (Absent, Failed, OSError, ValueError, KeyError) as error:
            print(f"{kind}:{volume.name}: failed: {error}", file=sys.stderr)
            failed = True
    names = [first_line(str(program), "--version") for program in (tools.volfs, args.compare)]
    print(f"{names[0]} beside {names[1]} ({args.compare}); {machine()}{on_cpus(args)}; volumes of {tools.edge}^3, {tools.rounds} rounds in turn,",
          f"medians (least..greatest); load now {load()} (1 and 5 minutes).\n", sep="\n")
    print(comparison.markdown(found))
    if args.json:
        args.json.write_text(json.dumps([asdict(pair) for pair in found], indent=1) + "\n")
    return 1 if failed else 0


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="volumes of 256^3 and 2 rounds: check that everything works")
    parser.add_argument("--rounds", type=int, help="rounds per measurement (5)")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=[],
                        help="only these, separated by commas: kinds, volumes, or KIND:VOLUME, with * and ?")
    parser.add_argument("--list", action="store_true", help="list all measurements, and measure nothing")
    parser.add_argument("--compare", metavar="VOLFS", type=Path,
                        help="measure another program in turn with this one, in place of the libraries; of the rows `whole`, "
                             "`slices` and `boxes`")
    parser.add_argument("--cpus", metavar="LIST", help="run everything on these processors, such as 0,1")
    parser.add_argument("--json", type=Path, help="also write every single figure to this file")
    parser.add_argument("--mounts", type=Path, help="folder for mount points (a new one in the temporary folder)")
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--programs", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    """Runs the selected measurements, and prints the table."""
    args = arguments()
    if args.list:
        print(*(f"{kind}:{volume.name}" if volume else kind for kind, volume, _ in jobs()), sep="\n")
        return 0
    if not any(selected(args.rows, kind, volume) for kind, volume, _ in jobs()):
        print(f"scripts/bench: no measurement is called {','.join(args.rows)}; --list shows all", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if args.compare and not any(kind in comparison.KINDS and selected(args.rows, kind, volume) for kind, volume, _ in jobs()):
        print(f"scripts/bench: --compare measures {', '.join(comparison.KINDS)}, and none of these is chosen", file=sys.stderr)
        return 2
    if args.cpus and not processor_time.pin(args.cpus):
        print(f"scripts/bench: {args.cpus} are no processors of this machine; give numbers, such as 0,1", file=sys.stderr)
        return 2
    edge = 256 if args.quick else 512
    rounds = args.rounds or (2 if args.quick else 5)
    before, begin = load(), time.strftime("%Y-%m-%d %H:%M")
    with tempfile.TemporaryDirectory(prefix="volfs-bench.", ignore_cleanup_errors=True) as spare:
        programs = args.programs.resolve()
        tools = Tools(programs / "volfs", programs / "examples" / "nullfs", programs / "examples" / "latency",
                      (args.mounts or Path(spare)).resolve(), (args.data / str(edge)).resolve(), edge, rounds,
                      2000 if args.quick else 20000, 1000 if args.quick else 10000)
        if args.compare:
            return compare_all(args, tools)
        sharing = processor_time.sharing()
        found = measure_all(args, tools)
    print(f"{first_line(str(tools.volfs), '--version')} ({figures.commit()}), {begin}; {machine()}{on_cpus(args)}; volumes of {edge}^3, {rounds} rounds,",
          f"medians (least..greatest); load before {before}, after {load()} (1 and 5 minutes); before, {sharing}; after, {processor_time.sharing()};",
          ", ".join(map(version_of, figures.LIBRARIES)) + ".\n", sep="\n")
    print(markdown(found))
    if args.json:
        about = {"cpus": args.cpus, "edge": edge, "rounds": rounds}
        figures.write(args.json, tools.volfs, begin, about, rows=[row.values() for row in found])
    return 1 if any(row.failed for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
