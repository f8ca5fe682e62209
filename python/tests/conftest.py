"""What the tests share: the bundled data, a mount of it, and the program to compare with."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import volfs
from numpy.typing import NDArray

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
DEMO = DATA / "demo"


def mounts_below(folder: str) -> list[str]:
    """Return the mount points of volfs below a folder."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        lines = [line.split() for line in mounts]
    return [line[1] for line in lines if line[0].startswith("volfs:") and line[1].startswith(folder)]


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until a condition holds; fail if it takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def cat(path: Path, array: volfs.Array) -> NDArray[Any]:
    """Return the samples of a level, as `volfs cat` prints them."""
    command = [volfs.program(), "cat", "--force", "--layer", array.layer, "--lod", str(array.lod), "--", str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return np.frombuffer(done.stdout, array.dtype).reshape(array.shape)


def run_python(code: str, seconds: float = 60) -> str:
    """Run Python in an interpreter of its own, and return what it printed; fail if it fails, or takes too long."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    assert done.returncode == 0, done.stderr
    return done.stdout


def damaged(folder: Path) -> Path:
    """Return a copy of the bundled survey whose first brick, of inlines 0 to 63, cannot be decoded."""
    path = folder / "damaged.zgy"
    path.write_bytes((DEMO / "north.zgy").read_bytes().replace(b"zfp", b"???", 1))
    return path


@pytest.fixture(scope="session")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The folder of all temporary files of these tests, of child processes too. Nothing is left in it."""
    folder = tmp_path_factory.mktemp("temporary")
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    yield str(folder)
    until(lambda: not os.listdir(folder), 20)


@pytest.fixture(scope="session")
def demo(temporary: str) -> Iterator[volfs.Mount]:
    """A mount of the bundled volumes."""
    with volfs.mount(DEMO) as mount:
        yield mount


@pytest.fixture(params=["north.zgy", "south.vds", "cloud-survey", "cells"])
def source(request: pytest.FixtureRequest) -> Path:
    """Each of the bundled volumes: a ZGY file, VDS as a file and as a folder, and a WKW folder."""
    return DEMO / str(request.param)


@pytest.fixture(autouse=True)
def no_mount_is_left(demo: volfs.Mount, temporary: str) -> Iterator[None]:
    """Fail a test that leaves a mount behind."""
    yield
    gc.collect()
    until(lambda: mounts_below(temporary) == [str(demo.path)], 20)
