"""Types what README.md and the pages of docs say, and compares what comes out with what they show.

Every indented or fenced block of a page is one test. Python and shell commands are run, on a mount of the bundled
volumes and with temporary folders in place of those that a page names. What cannot be run here stands in `LISTED`, with
the reason; a block that is neither run nor listed fails. What needs a library or a program that is not installed is
skipped. Options, links and the lines of the tables in docs/your-program.md are tested as well.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import volfs
from conftest import DATA, DEMO, mounts_below

ROOT = DATA.parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# Blocks that are not run, by their page and a text that occurs in no other block of it.
BUILDS = "builds the program, or its packages, for minutes"
INSTALLS = "installs packages; scripts/try_wheel.sh does"
COMPILED = "tests/formats/worked_example compiles and runs it"
LISTED = {
    ("README.md", "./scripts/demo.sh"): BUILDS,
    ("README.md", "pip install FILE.whl"): INSTALLS,
    ("adding-a-format.md", "//! BRK:"): COMPILED,
    ("adding-a-format.md", "//! Opens any bytes"): COMPILED,
    ("adding-a-view.md", "//! `lodN.shape`"): COMPILED,
    ("architecture.md", "1  cli/"): "a list of folders, which scripts/check_house.py knows",
    ("formats.md", "value = (stored"): "a formula",
    ("object-stores.md", "volfs mount s3://"): "needs stores; tests/mount/store.rs has one",
    ("operations.md", "fuse.volfs"): "needs root, and changes /etc; tests/cli/fstab.rs mounts so",
    ("operations.md", "podman build"): "needs a container engine, and builds for minutes",
    ("operations.md", "has not answered"): "log lines; tests/cli/inside_mount.rs has a source that hangs",
    ("operations.md", "/var/log/volfs.log"): "configures logrotate",
    ("performance.md", "./scripts/bench"): "measures for an hour",
    ("python.md", "volfs-*.whl"): INSTALLS,
    ("releasing.md", "./scripts/advisories.sh"): "takes hours",
    ("releasing.md", "git push"): "publishes",
    ("rust.md", "[dependencies]"): "part of a Cargo.toml",
    ("rust.md", "fn main()"): "a test of the documentation of the crate compiles and runs it",
    ("serve.md", "listen 443"): "configures nginx, and needs a certificate",
    ("serve.md", "podman run"): "needs a container engine and an image",
    ("your-program.md", "survey.ShallowCopy"): "runs in ParaView; tests/clients/test_headers.py does the same in VTK",
    ("troubleshooting.md", "its ZFP stream ends"): "a log line of a file that is damaged in one way of many",
}

# What a reader has at hand before a block of Python: names that the text around it explains.
BEFORE = {
    ("mount-layout.md", 'lod0.by-sample.npy", mmap_mode'): "import numpy as np",
    ("mount-layout.md", "annotation_to_world"): "import json\nimport numpy as np",
    ("troubleshooting.md", "file.seek"): "import numpy as np\ninline, inline_bytes = 20, 96 * 192 * 4",
}

# What must have been typed before a block of commands.
SETUP = {("operations.md", "volfs umount /mnt/surveys"): "volfs mount /data/surveys /mnt/surveys"}

# Modules that a text needs besides those that it imports.
NEEDS = {"open_zarr": "zarr", "from_zarr": "zarr", 'engine="zarr"': "zarr", "chunks={}": "dask", "http://": "aiohttp"}

# Lines of the tables in docs/your-program.md that are not run, by their first column.
RECIPES_NOT_RUN = {
    "C, C++, Rust, Go": "no command",
    "GNU Octave": "large to install",
    "R": "large to install",
    "PyTorch, scikit-image": "no whole command",
    "OpendTect": "opens a window",
    "Petrel and others": "not free",
    "napari": "opens a window",
    "ImageJ, Fiji": "opens a window",
    "ImageJ, raw": "opens a window",
    "ParaView": "opens a window",
}

# What the short names in those tables are.
IMPORTS = {
    "np": "import numpy as np",
    "xr": "import xarray as xr",
    "da": "import dask.array as da",
    "ts": "import tensorstore as ts",
    "iio": "import imageio.v3 as iio",
    "sitk": "import SimpleITK as sitk",
    "Image": "from PIL import Image",
    "envi": "from spectral import envi",
    "Reader": "from ome_zarr.reader import Reader",
    "parse_url": "from ome_zarr.io import parse_url",
    "cube": 'import numpy as np\ncube = np.load("MNT/north.zgy/data/lod0.npy", mmap_mode="r")',
    **{name: f"import {name}" for name in ("h5py", "itk", "netCDF4", "nrrd", "obspy", "pyvista")},
    **{name: f"import {name}" for name in ("rasterio", "segyio", "tifffile", "xtgeo", "zarr")},
}

# Options in the pages that are not those of volfs.
OTHER_PROGRAMS = {
    "podman, docker": ["--cap-add", "--device", "--security-opt", "--user"],
    "SEGYImport": ["--prestack", "--sample-unit"],
    "backups, rg": ["--one-file-system"],
    "scripts/bench": ["--quick", "--compare", "--help"],
    "scripts/install_stores.sh": ["--garage"],
}


# --- The blocks of the pages ---


@dataclass(frozen=True)
class Block:
    """An indented or fenced block of a page."""

    page: Path
    line: int
    text: str
    language: str

    @property
    def place(self) -> str:
        """Return where it is."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def find(self, table: dict[tuple[str, str], Any]) -> Any:
        """Return what a table has for this block, or None."""
        found = [value for (page, text), value in table.items() if page == self.page.name and text in self.text]
        return found[0] if found else None

    @property
    def kind(self) -> str:
        """Return what to do with it: `python`, `shell`, `checked`, `listed`, or nothing if that is not known."""
        if self.find(LISTED) is not None:
            return "listed"
        if self.find(CHECKED) is not None:
            return "checked"
        if self.language in ("", "python") and is_python(self.text):
            return "python"
        if self.language == "" and all(command.split()[0] in TOOLS for command, _ in typed(self.text)):
            return "shell"
        return ""


# What a block of commands may begin with, besides assignments.
TOOLS = {"export", "volfs", "ls", "dd", "python3", "mkdir", "curl", "(umask", "RUST_LOG=debug"}


def is_python(text: str) -> bool:
    """Return whether a text is Python; one word, or a path, is not meant so."""
    try:
        return not all(isinstance(part, ast.Expr) for part in ast.parse(text).body) or "(" in text
    except SyntaxError:
        return False


def split(page: Path) -> tuple[list[Block], str]:
    """Return the blocks of a page, and the rest of its text."""
    blocks: list[Block] = []
    prose: list[str] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        begin, line = at, lines[at]
        at += 1
        if line.startswith("```"):
            while lines[at] != "```":
                at += 1
            blocks.append(Block(page, begin + 2, "\n".join(lines[begin + 1 : at]), line[3:]))
            at += 1
        elif line.startswith("    ") and not (begin and lines[begin - 1].strip()):
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            body = "\n".join(lines[begin:at]).rstrip()
            width = min(len(line) - len(line.lstrip()) for line in body.splitlines() if line.strip())
            blocks.append(Block(page, begin + 1, "\n".join(line[width:] for line in body.splitlines()), ""))
        else:
            prose.append(line)
    return blocks, "\n".join(prose)


def typed(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a block, each with the lines that the page shows as its output.

    In a transcript commands stand behind `$ `; in a list of commands only what `volfs serve` says is output.
    """
    transcript = text.startswith("$ ")
    found: list[tuple[str, list[str]]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if transcript and line.startswith("$ "):
            found.append((line[2:], []))
        elif transcript or line.startswith("serving "):
            found[-1][1].append(line)
        elif line.strip():
            found.append((line, []))
    return found


# --- What the blocks run on ---


@pytest.fixture(scope="module")
def server(temporary: str) -> Iterator[str]:
    """The address of a server of the bundled volumes."""
    command = [volfs.program(), "serve", str(DEMO), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().rsplit(" ", 1)[1].strip().rstrip("/")
        finally:
            process.terminate()


@dataclass(frozen=True)
class Machine:
    """Where commands are typed: a home folder, a folder for /tmp, and the programs first on the PATH."""

    folder: Path

    def __post_init__(self) -> None:
        for name in ("home", "bin", "run", "tmp", "mnt"):
            (self.folder / name).mkdir(mode=0o700)
        (self.folder / "bin/volfs").symlink_to(volfs.program())
        python = self.folder / "bin/python3"
        # not a link: the environment of an interpreter is found by its path
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)

    def adapt(self, command: str) -> str:
        """Return a command with the places of this machine in place of those that pages name."""
        for mount in re.findall(r"/mnt/\w+", command):
            (self.folder / mount[1:]).mkdir(exist_ok=True)
        for old, new in [
            (r"\$PWD/target/demo/bin\b", str(self.folder / "bin")),
            (r"(?<![\w.])/(tmp|mnt)/", f"{self.folder}/\\1/"),
            (r"/data/surveys\b", str(DEMO)),
            (r"\bSOURCE\b|\bPATH\.\.\.", str(DEMO)),
            (r"\bMOUNTPOINT\b", f"{self.folder}/mnt"),
            (r"\b127\.0\.0\.1:8080\b", "$volfs_at"),
        ]:
            command = re.sub(old, new, command)
        return command

    def script(self, commands: list[str]) -> str:
        """Return a script that types commands one after the other, with a line before and after the output of each.

        What runs until it is told to end runs behind, until the script ends, and the next command waits for it.
        """
        lines = ["trap 'jobs=$(jobs -p); [ -z \"$jobs\" ] || kill $jobs; wait' EXIT"]
        for number, command in enumerate(map(self.adapt, commands)):
            said = self.folder / f"said{number}"
            lines.append("echo @begin")
            if "volfs serve" in command:
                # any free port
                listen = "" if "--listen" in command else " --listen 127.0.0.1:0"
                lines.append(f"{command.rstrip(' &')}{listen} >{said} 2>{said}.log &")
                lines.append(f"until [ -s {said} ]; do kill -0 $! || break; sleep 0.05; done; cat {said}")
                lines.append(f"volfs_at=$(sed 's|.*//||; s|/.*||' {said}); [ -s {said} ]")
            elif "--foreground" in command:
                lines.append(f"{command} 2>{said}.log &")
                lines.append(f"until [ -e {self.folder}/mnt/.volfs ]; do kill -0 $! || break; sleep 0.05; done")
                lines.append("kill -0 $!")
            else:
                lines.append(command)
            lines.append('echo "@end $?"')
        return "\n".join(lines)

    def type(self, commands: list[str]) -> list[tuple[int, str]]:
        """Type commands; return the status and the output of each."""
        environment = {
            **os.environ,
            "HOME": f"{self.folder}/home",
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "XDG_RUNTIME_DIR": f"{self.folder}/run",
            "LC_ALL": "C.UTF-8",
        }
        process = subprocess.Popen(
            ["bash", "-c", self.script(commands)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output = process.communicate(timeout=120)[0]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        parts = re.findall(r"^@begin\n(.*?)^@end (\d+)$", output, flags=re.M | re.S)
        assert len(parts) == len(commands), output
        return [(int(status), said) for said, status in parts]

    def unmount(self) -> None:
        """Take away what the commands have mounted."""
        for path in mounts_below(str(self.folder)):
            subprocess.run([volfs.program(), "umount", path], check=True)

    def pattern(self, expected: str) -> str:
        """Return a regular expression for a line that a page shows: `…` and `...` stand for any text."""
        here = re.escape(str(self.folder))
        # a word before `...` is the beginning of one that differs each time
        expected = re.sub(r"\b\w+\.\.\.", "...", expected.replace("/…", "…"))
        pattern = re.escape(expected).replace("/tmp/", f"{here}/tmp/")
        pattern = re.sub(r"(?<!\S)/home/\w+", lambda _: f"{here}/home", pattern.replace("\\ ", " ")).replace(" ", "\\ ")
        pattern = pattern.replace("…", ".*").replace(re.escape("..."), ".*").replace(":8080", r":\d+")
        # how much there was to verify, and how fast
        return re.sub(r"[\d,]+\\ bricks,\\ .*\\ s\\ \\\(.*/s\\\)", r".*bricks,.*/s\\)", pattern)


@pytest.fixture()
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Where commands are typed."""
    made = Machine(tmp_path)
    yield made
    made.unmount()


def surveys(folder: Path) -> None:
    """Write a folder of volumes of which two are damaged, as docs/troubleshooting.md has one."""
    shutil.copytree(DATA / "wkw/old", folder / "cells")
    for name in ("north.zgy", "south.vds"):
        shutil.copy(DEMO / name, folder)
    (folder / "empty.zgy").touch()
    cube = folder / "cells/color/2-2-2/z0/y0/x0.wkw"
    cube.write_bytes(b"???" + cube.read_bytes()[3:])
    with open(folder / "cells/color/1-1-1/z0/y0/x0.wkw", "ab") as file:
        file.write(bytes(14))


# --- Python ---


def need_modules(text: str) -> None:
    """Skip a test whose Python needs what is not installed."""
    modules = [name for word, name in NEEDS.items() if word in text]
    for part in ast.walk(ast.parse(text)):
        if isinstance(part, ast.Import):
            modules += [alias.name for alias in part.names]
        elif isinstance(part, ast.ImportFrom) and part.module:
            modules.append(part.module)
    for name in modules:
        if not importlib.util.find_spec(name.split(".")[0]):
            pytest.skip(f"{name} is not installed")
    if "open_datatree" in text and tuple(map(int, metadata.version("xarray").split(".")[:2])) < (2024, 10):
        pytest.skip("xarray before 2024.10 has no trees")


def without_what_is_missing(text: str) -> str:
    """Return Python without the lines that need a library, as their comment says, which is not installed."""
    kept = []
    for line in text.splitlines():
        needed = re.search(r"# needs (\w+)$", line)
        if needed is None or importlib.util.find_spec(needed[1].lower()):
            kept.append(line)
    return "\n".join(kept)


def run_python(text: str) -> None:
    """Run Python in a process of its own, in the folder where a reader is; fail if it fails.

    What starts processes that import it is run as a program, with each way to start them.
    """
    # pictures without a screen
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    typed = [sys.executable, str(Path(__file__).with_name("type_python.py"))]
    with tempfile.TemporaryDirectory() as folder:
        runs = [(typed, text)]
        if '__name__ == "__main__"' in text:
            runs = []
            for method in multiprocessing.get_all_start_methods():
                program = Path(folder, f"{method}.py")
                program.write_text(text.replace('"forkserver"', f'"{method}"'), encoding="utf-8")
                runs.append(([sys.executable, str(program)], ""))
        for command, given in runs:
            done = subprocess.run(
                command,
                input=given,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            assert done.returncode == 0, done.stderr


def imports_above(block: Block) -> str:
    """Return those imports of the blocks above on the same page whose names this block uses."""
    found: list[str] = []
    for other in split(block.page)[0]:
        if other.line < block.line and other.kind == "python":
            found += re.findall(r"^import .*$", other.text, flags=re.M)
    return "\n".join(line for line in found if re.search(rf"\b{line.split()[-1]}\b", block.text))


# --- Blocks that are checked in another way ---


def check_tree(block: Block, mount: Path) -> None:
    """Check a drawing of a tree: what it shows below a bundled volume, and of the mount, is there."""
    folders: list[tuple[int, str]] = []
    seen = 0
    for line in block.text.splitlines():
        indent, name = len(line) - len(line.lstrip()), line.split()[0]
        while folders and folders[-1][0] >= indent:
            folders.pop()
        path = "/".join(part.rstrip("/") for _, part in [*folders, (indent, name)])
        folders.append((indent, name))
        path = path.replace("MOUNTPOINT/", "").replace("surveys/", "")
        if path.split("/")[0] in ("north.zgy", "cells", ".volfs") and not path.endswith(ELSEWHERE):
            assert (mount / path).exists(), f"{block.place}: there is no {path}"
            seen += 1
    assert seen > 4


# Files that the bundled survey has not, as the drawing says.
ELSEWHERE = ("lod0.float32.npy", "original.sgy")


def check_environment(block: Block, mount: Path) -> None:
    """Check a file of a systemd service: its names are those in the unit, and its options those of volfs."""
    del mount
    unit = (ROOT / "docs/systemd" / ("volfs-store@.service" if "s3://" in block.text else "volfs@.service")).read_text()
    for line in block.text.splitlines()[1:]:
        name, _, value = line.partition("=")
        assert name in unit, f"{block.place}: {name}"
        if name == "VOLFS_OPTIONS":
            assert set(re.findall(r"--[\w-]+", value)) <= options("mount"), f"{block.place}: {value}"


def check_vrt(block: Block, mount: Path) -> None:
    """Check a GDAL dataset: its offsets by arithmetic, and its samples where GDAL is installed."""
    root = ElementTree.fromstring(block.text)
    number = {part.tag: int(part.text or "") for part in root.iter() if (part.text or "").isdigit()}
    level = volfs.open(mount / "cells")["color"].level(0)
    plane, line, pixel = (int(np.prod(level.shape[axis:])) * level.dtype.itemsize for axis in (1, 2, 3))
    assert number == {"ImageOffset": 48 * plane, "LineOffset": line, "PixelOffset": pixel}
    assert [int(root.attrib[name]) for name in ("rasterYSize", "rasterXSize")] == list(level.shape[1:])
    rasterio = pytest.importorskip("rasterio", reason="no GDAL; the offsets are right")
    environment = rasterio.Env(GDAL_VRT_RAWRASTERBAND_ALLOWED_SOURCE="ALL")
    with environment, rasterio.open(block.text.replace("MNT", str(mount))) as picture:
        assert np.array_equal(picture.read(1), np.load(mount / "cells/color/lod0.npy", mmap_mode="r")[48])


def check_cron(block: Block, mount: Path) -> None:
    """Type the command of a line of cron, in another folder; all that it leaves there tells of the mount."""
    with tempfile.TemporaryDirectory() as folder:
        command = block.text.partition(" root ")[2].replace("/var/lib/prometheus/node-exporter", folder)
        command = command.replace("volfs stats", f"{volfs.program()} stats")
        subprocess.run(["bash", "-c", command], check=True, timeout=60)
        (left,) = Path(folder).iterdir()
        assert left.suffix == ".prom" and f'\nvolfs_up{{mountpoint="{mount}",' in left.read_text(encoding="utf-8")


CHECKED: dict[tuple[str, str], Callable[[Block, Path], None]] = {
    ("mount-layout.md", "MOUNTPOINT/\n"): check_tree,
    ("mount-layout.md", "north.zgy/data.ome.zarr/\n"): check_tree,
    ("operations.md", "* * * * *"): check_cron,
    ("operations.md", "/etc/volfs/surveys.conf"): check_environment,
    ("operations.md", "/etc/volfs/north.conf"): check_environment,
    ("your-program.md", "<VRTDataset"): check_vrt,
}


# --- The tests ---

BLOCKS = [block for page in PAGES for block in split(page)[0]]


def of_kind(kind: str) -> pytest.MarkDecorator:
    """Return a mark that gives a test all blocks of a kind."""
    return pytest.mark.parametrize("block", [b for b in BLOCKS if b.kind == kind], ids=lambda block: block.place)


def test_every_block_is_run_or_listed() -> None:
    unknown = [block.place for block in BLOCKS if not block.kind]
    assert unknown == [], "neither run nor in LISTED"
    tables: list[dict[tuple[str, str], Any]] = [LISTED, CHECKED, BEFORE, SETUP]
    for page, text in (key for table in tables for key in table):
        found = [block.place for block in BLOCKS if block.page.name == page and text in block.text]
        assert len(found) == 1, f"{page}, {text!r} is in these blocks: {found}"


@of_kind("python")
def test_python(block: Block, demo: volfs.Mount, server: str) -> None:
    before = "\n".join([imports_above(block), block.find(BEFORE) or ""])
    text = f"{before}\n{without_what_is_missing(block.text)}"
    need_modules(text)
    for old in ("/tmp/vol/", "MOUNTPOINT/", "MNT/"):
        text = text.replace(old, f"{demo.path}/")
    run_python(text.replace("http://127.0.0.1:8080", server))


@of_kind("shell")
def test_commands(block: Block, machine: Machine) -> None:
    commands = typed(block.text)
    for tool in ("curl", "openssl"):
        if tool in block.text and not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    if "~/surveys" in block.text:
        (machine.folder / "home/surveys").mkdir()
        surveys(machine.folder / "home/surveys")
    setup = block.find(SETUP)
    said = machine.type([setup] * bool(setup) + [command for command, _ in commands])[bool(setup) :]
    for (command, expected), (status, output) in zip(commands, said, strict=True):
        shows_failure = any(line.startswith("volfs: ") for line in expected)
        assert (status != 0) == shows_failure, f"{block.place}: {command}: {output}"
        if not expected:
            continue
        # what the datasets are is told only if that is known soon
        if command.startswith("volfs mount") and ": " not in output:
            expected = [line.partition(": ")[0] for line in expected]
        # programs print columns for a terminal alone
        shown, got = (" ".join(text.split()) for text in ("\n".join(expected), output))
        assert re.fullmatch(machine.pattern(shown), got), f"{block.place}: {command}: shown {shown}, got {got}"


@of_kind("checked")
def test_checked(block: Block, demo: volfs.Mount) -> None:
    block.find(CHECKED)(block, demo.path)


def recipes() -> list[tuple[str, str]]:
    """Return what the tables of docs/your-program.md say to type, with the name of the program."""
    found = []
    for line in split(ROOT / "docs/your-program.md")[1].splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and not cells[0].startswith("--") and cells[:2] != ["program", "type"]:
            found += [(cells[0], text) for text in re.findall(r"`([^`]+)`", cells[1])]
    return found


def test_recipes_that_are_not_run_are_there() -> None:
    assert RECIPES_NOT_RUN.keys() <= {program for program, _ in recipes()}


@pytest.mark.parametrize(
    "recipe",
    [text for program, text in recipes() if program not in RECIPES_NOT_RUN and not text.isidentifier()],
    ids=lambda text: text[:40],
)
def test_recipe(recipe: str, demo: volfs.Mount, tmp_path: Path) -> None:
    if not is_python(recipe):
        if not shutil.which(recipe.split()[0]):
            pytest.skip(f"{recipe.split()[0]} is not installed")
        command = recipe.replace("MNT/", f"{demo.path}/")
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, timeout=60)
        return
    used = {part.id for part in ast.walk(ast.parse(recipe)) if isinstance(part, ast.Name)}
    text = "\n".join([*(IMPORTS[name] for name in sorted(used & IMPORTS.keys())), recipe])
    need_modules(text)
    run_python(text.replace("MNT/", f"{demo.path}/"))


# --- Options ---


@cache
def help_of(*command: str) -> str:
    """Return what `--help` of a command prints."""
    return subprocess.run([volfs.program(), *command, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout


def options(command: str) -> set[str]:
    """Return the long options of a command."""
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", help_of(command), flags=re.M))


def commands() -> set[str]:
    """Return the names of all commands, the other ones too."""
    listed = help_of().partition("Commands:\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^  (\w+)", listed, flags=re.M)) | set(re.findall(r"\[alias: (\w+)\]", listed))


def code(page: Path) -> list[str]:
    """Return all code of a page: its blocks, and what stands between backquotes."""
    blocks, prose = split(page)
    spans = re.findall(r"`([^`]+)`", prose.replace("\n", " "))
    return [block.text.replace("\\\n", " ") for block in blocks if block.language != "rust"] + spans


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_exist(page: Path) -> None:
    known = commands()
    # messages that speak of volfs begin with what they are about
    for text in (text for text in code(page) if not text.startswith("...")):
        for command, rest in re.findall(r"(?<![\w/.:@-])volfs +([a-z]+)\b([^\n;|&]*)", text):
            assert command in known, f"{page.name}: {text}"
            named = set(re.findall(r"(?<!\S)(--[a-z][a-z-]*)", rest.partition("--exec")[0]))
            assert named <= options(command), f"{page.name}: {text}"


def bare_options() -> dict[str, str]:
    """Return the options that pages name without a command, and a page of each."""
    found = {}
    for page in PAGES:
        for text in code(page):
            if text.startswith("--"):
                found.update(dict.fromkeys(re.findall(r"(?<!\S)--[a-z][a-z-]*", text), page.name))
    return found


def test_options_without_a_command_exist() -> None:
    known = set().union(*(options(command) for command in commands() - {"help"}))
    others = {option for names in OTHER_PROGRAMS.values() for option in names}
    unknown = {option: page for option, page in bare_options().items() if option not in known | others}
    assert unknown == {}
    assert others - bare_options().keys() == set(), "listed, and on no page"


def mount_options() -> set[str]:
    """Return what pages and units give to `-o` and to /etc/fstab."""
    texts = [text for page in PAGES for text in code(page)]
    found = [text for each in texts for text in re.findall(r"(?:^|mount .*)-o (\S+)", each)]
    found += [text for each in texts for text in re.findall(r"fuse\.volfs +(\S+)", each)]
    for unit in (ROOT / "docs/systemd").glob("*.mount"):
        found += re.findall(r"^Options=(.*)", unit.read_text(encoding="utf-8"), flags=re.M)
    table = (ROOT / "docs/operations.md").read_text(encoding="utf-8").partition("| option | effect |")[2]
    table = table.partition("\n\n")[0]
    found += [text for row in table.splitlines() for text in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
    return {option for text in found for option in text.split(",") if re.match(r"[a-z_]", option)}


def test_mount_options_exist() -> None:
    named = mount_options()
    assert {"allow_other", "nofail", "umask=022", "x-systemd.automount"} <= named
    for option in named:
        command = [volfs.program(), "mount", "-o", option, "/no/such/source", "/no/such/folder"]
        said = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False).stderr
        assert "there is no such option" not in said, said


def test_options_of_stores_exist() -> None:
    page = (ROOT / "docs/object-stores.md").read_text(encoding="utf-8")
    table = page.partition("| option | meaning |")[2].partition("\n\n")[0]
    named = [text for row in table.splitlines() for text in re.findall(r"`(\w+=[^`]*)`", row)]
    assert "anonymous=true" in named and "account_name=NAME" in named
    for option in named:
        said = ""
        for store in ("s3", "az", "gs"):
            # with an option that there is not, nothing is asked of a store
            command = [
                volfs.program(),
                "ls",
                f"{store}://none/none",
                "--store-option",
                option,
                "--store-option",
                "zzz=1",
            ]
            said += subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False).stderr
        assert "there is no option zzz " in said, f"{option}: {said}"


# --- Links ---


def anchor(heading: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading.strip().lower())).replace(" ", "-")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md", ROOT / "fuzz/README.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", split(page)[1]):
        if re.match(r"\w+:", link):
            continue
        name, _, wanted = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name}: {link}"
        if wanted:
            anchors = [anchor(line.lstrip("#")) for line in split(target)[1].splitlines() if line.startswith("#")]
            assert wanted in anchors, f"{page.name}: {link}"
