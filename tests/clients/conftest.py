"""What the tests of clients share: a mount of all test data, and the levels of some datasets of every format."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest_plugins = ["browser", "firefox", "table"]

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "tests" / "data"

# Layers of all three formats, as paths in the mount of DATA: surveys, 3D images, channels, bits, and 2 to 6 axes.
SURVEYS = [
    "demo/north.zgy/data",
    "demo/south.vds/Amplitude",
    "demo/cloud-survey/Amplitude",
    "zgy/v2_int16.zgy/data",
    "zgy/v3_int8.zgy/data",
    "zgy/v3_float32.zgy/data",
    "zgy/v3_rotated.zgy/data",
    "zgy/v3_size_5x1x17.zgy/data",
]
IMAGES = [
    "demo/cells/color",
    "demo/cells/segmentation",
    "wkw/pyramid/color",
    "wkw/bare/color",
    *(f"wkw/types/{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "wkw/types/float32",
    "wkw/types/float64",
]
CHANNELS = ["wkw/pyramid/rgb", "wkw/pyramid/flow", "vds/components.vds/four"]
SCALED = ["vds/scaled.vds/words", "vds/no-value.vds/bytes", "vds/no-value.vds/floats"]
OTHERS = ["vds/two.vds/Amplitude", "vds/four.vds/Amplitude", "vds/six.vds/Amplitude", "vds/two-bits.vds/Mask"]
LAYERS = SURVEYS + IMAGES + CHANNELS + SCALED + OTHERS


@dataclass(frozen=True)
class Level:
    """One level of a layer in the mount."""

    folder: Path
    lod: int
    about: dict[str, Any]

    def file(self, suffix: str) -> Path:
        """Return the path of a file of the level: `lodN` and a suffix, such as `.npy`."""
        return self.folder / f"lod{self.lod}{suffix}"

    def has(self, name: str) -> bool:
        """Return whether the folder shows a file."""
        return (self.folder / name).exists()

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape, slowest axis first."""
        return tuple(self.about["shape"])

    @property
    def axes(self) -> list[str]:
        """Return the names of the axes, slowest first."""
        return [axis["name"] for axis in self.about["axes"]]

    def samples(self) -> np.ndarray[Any, Any]:
        """Read lodN.raw whole."""
        return np.fromfile(self.file(".raw"), np.dtype(self.about["dtype"]).newbyteorder("<")).reshape(self.shape)


def volfs() -> str:
    """Return the program to test: that of VOLFS, else of the target folder, else of PATH."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    candidates = [os.environ.get("VOLFS"), target / "release" / "volfs", target / "debug" / "volfs"]
    found = [str(path) for path in candidates if path and Path(path).exists()] or [shutil.which("volfs")]
    if not found[0]:
        pytest.exit("there is no volfs to test: set VOLFS to its path", 1)
    return found[0]


@contextmanager
def mounted(source: Path) -> Iterator[Path]:
    """Mount a folder on a new mount point, which is unmounted in the end."""
    folder = Path(tempfile.mkdtemp(prefix="volfs-clients-"))
    point = folder / "mount"
    point.mkdir()
    subprocess.run(
        [volfs(), "mount", "--log-file", folder / "log", source, point], stdout=subprocess.DEVNULL, check=True
    )
    try:
        yield point
    finally:
        # lazily: a client may keep a file open, and so does the traceback of a test that failed
        subprocess.run([volfs(), "umount", "--lazy", point], check=True)
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def mount() -> Iterator[Path]:
    """The mount point of all test data."""
    with mounted(DATA) as point:
        yield point


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Serve the test data; yield the address."""
    command = [volfs(), "serve", str(DATA), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().rsplit(" ", 1)[1].strip().rstrip("/")
        finally:
            process.terminate()


def level(mount: Path, layer: str, lod: int = 0) -> Level:
    """Return a level of a layer, given by its path in the mount."""
    folder = mount / layer
    return Level(folder, lod, json.loads((folder / f"lod{lod}.json").read_text(encoding="utf-8")))


def levels(mount: Path, layer: str) -> list[Level]:
    """Return all levels of a layer."""
    count = len([name for name in os.listdir(mount / layer) if name.endswith(".raw")])
    return [level(mount, layer, lod) for lod in range(count)]


def assert_same(got: Any, expected: np.ndarray[Any, Any]) -> None:
    """Fail unless two arrays have the same type, shape and samples, NaN included."""
    got = np.asarray(got)
    assert got.dtype.newbyteorder("=") == expected.dtype.newbyteorder("="), (got.dtype, expected.dtype)
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)
