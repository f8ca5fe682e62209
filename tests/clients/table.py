"""Writes docs/views.md (pytest's option --table FILE): which programs read which files, from what the tests saw."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

HEAD = """# Views, and the programs that read them

What `./scripts/test_clients.sh --table docs/views.md` saw on {date}, with Python {python} on {system}.
Each program reads a mount of the test data or `volfs serve`, and has to see the samples, names, units and positions of
`lodN.npy` and `lodN.json`. The number is that of the cases: layers of other types and axes. Programs that want an
environment of their own (`CLIENTS_PYTHON`) are not in the table: mdio 1.1.3, cloud-volume 12.15.2, iohub 0.3.0a7. Which
file to open in which program, and what to mind: [your program](your-program.md).

| file | program | what it does | passed |
|---|---|---|---|
"""

# Modules that only help.
HELPERS = {"numpy", "aiohttp"}
PROGRAMS = {"playwright": "Chromium by playwright", "rasterio": "GDAL by rasterio", "SimpleITK": "SimpleITK"}
# What a file of tests reads, where its first words do not say it.
SUBJECTS = {
    "test_envi.py": "`lodN.hdr`, ENVI",
    "test_headers.py": "`lodN.nhdr`, `lodN.mhd`",
    "test_netcdf.py": "`lodN.nc`, netCDF-4",
    "test_numpy.py": "`lodN.npy`",
    "test_opendap.py": "levels, by OPeNDAP",
    "test_page.py": "the page",
    "test_pictures.py": "`.png`",
    "test_segy.py": "`lod0.sgy`",
    "test_segy_headers.py": "`lod0.sgy`, headers",
    "test_serve.py": "`LAYER.ome.zarr`, by HTTP",
    "test_tiff.py": "`tiff/lodN.tif`",
    "test_zarr.py": "`LAYER.ome.zarr`",
}
# Programs that are not modules, by the tests that run them.
RUN = {
    "test_cdo_copies": "CDO",
    "test_cdo_knows_the_array": "CDO",
    "test_gdal_reads_rows": "GDAL",
    "test_nco_cuts_a_part": "NCO",
    "test_nco_cuts_with_steps": "NCO",
    "test_ncdump_and_nccopy": "ncdump, nccopy",
    "test_wget_follows_links": "wget",
    "test_zarrita_ome_zarr_js_and_viv": "zarrita, ome-zarr.js, viv",
    "test_bio_formats_reads_planes_and_voxel_sizes": "Bio-Formats",
}

used: dict[str, list[str]] = defaultdict(list)
cases: dict[str, list[str]] = defaultdict(list)
titles: dict[str, str] = {}
import_or_skip = pytest.importorskip


def recorded(name: str, *args: Any, **kwargs: Any) -> Any:
    """Import a module for a test as pytest does, and note that the test, or all tests of its file, use it."""
    module = import_or_skip(name, *args, **kwargs)
    top = name.split(".", maxsplit=1)[0]
    test, _, phase = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")
    key = test.split("[")[0].rsplit("/", 1)[-1]
    if phase != "(call)":
        # a file that needs it for all tests, or what prepares a test
        caller = sys._getframe(1)  # noqa: SLF001
        key = Path(caller.f_code.co_filename).name if caller.f_code.co_name == "<module>" else ""
    if top not in HELPERS and top not in used[key]:
        used[key].append(top)
    return module


pytest.importorskip = recorded


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--table", type=Path, help="write the table of programs to this file")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Note what the files of tests are about."""
    for item in items:
        about = (getattr(item, "module").__doc__ or "").split(":")[0].split(".")[0]
        titles[item.path.name] = SUBJECTS.get(item.path.name, about)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how a test ended."""
    if report.when == "call" or report.outcome != "passed":
        cases[report.nodeid.split("[")[0].rsplit("/", 1)[-1]].append(report.outcome)


def version(module: str) -> str:
    """Return a program and its version, from the name of its module."""
    package = importlib.metadata.packages_distributions().get(module, [""])[0]
    if not package:
        return module
    return f"{PROGRAMS.get(module, package)} {importlib.metadata.version(package)}"


def rows() -> list[str]:
    """Return the rows: a file of tests and a program each, with the names of its tests as what it does."""
    does: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for test in sorted(cases):
        file, name = test.split("::")
        programs = [RUN[name]] if name in RUN else used.get(test) or used.get(file)
        if not programs or set(cases[test]) == {"skipped"}:
            continue
        title = ", ".join(map(version, programs))
        words, named = name.removeprefix("test_").split("_"), {*re.split(r"\W+", title.lower()), "and", "python"}
        while words and words[0].lower() in named:
            words.pop(0)
        does[file, title].append((" ".join(words) or "reads every level", test))
    lines = []
    for (file, programs), tests in does.items():
        what = "; ".join(name for name, _ in tests)
        outcomes = [outcome for _, test in tests for outcome in cases[test] if outcome != "skipped"]
        passed = outcomes.count("passed")
        result = str(passed) if passed == len(outcomes) else f"**{passed} of {len(outcomes)}**"
        lines.append(f"| {titles[file]} | {programs} | {what} | {result} |")
    return lines


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the table, if it is asked for."""
    path = session.config.getoption("--table")
    if path:
        about = platform.freedesktop_os_release()
        system = f"{about.get('NAME', 'Linux')} {about.get('VERSION_ID', '')}".strip()
        head = HEAD.format(date=datetime.datetime.now(datetime.UTC).date(), python=platform.python_version(), system=system)
        path.write_text(head + "\n".join(rows()) + "\n", encoding="utf-8")
