"""Writes figures to a JSON file, with the machine and the versions that they were measured with."""

import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path

LIBRARIES = ("pyzgy", "zfpy", "openvds", "wkw", "numpy")


def first_line(*command):
    """Returns the first line that a program prints, or an empty text."""
    try:
        lines = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent).stdout.splitlines()
    except OSError:
        return ""
    return lines[0].strip() if lines else ""


def machine():
    """Describes the machine: processor, threads, memory, kernel."""
    fields = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    model = {key.strip(): value.strip() for key, value in fields.items()}.get("model name", platform.machine())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{model}, {os.cpu_count()} threads, {memory:.0f} GiB, Linux {platform.release()}"


def commit():
    """Returns the commit that is checked out."""
    return first_line("git", "describe", "--always", "--dirty", "--exclude", "*")


def version_of(package):
    """Returns name and version of a package of this Python."""
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{package} missing"


def write(path, volfs, begin, about, **figures):
    """Writes lists of figures to `path`, a figure a line; `about` has what else is to be said of the run.
    scripts/make_charts.py reads the file."""
    head = {"date": begin, "volfs": f"{first_line(str(volfs), '--version')} ({commit()})", "machine": machine(),
            "libraries": [version_of(package) for package in LIBRARIES]}
    path.write_text(text(head | about, figures))


def text(head, figures):
    """Returns the JSON text of the file."""
    lists = [f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n ]" for name, rows in figures.items()]
    return "{\n" + ",\n".join([f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()] + lists) + "\n}\n"
