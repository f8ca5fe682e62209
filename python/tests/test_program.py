"""Finding and running the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import volfs
from conftest import DEMO, run_python
from volfs import _program


def test_options_stand_as_on_a_command_line() -> None:
    options: _program.Options = {
        "cache_size": "1GiB",
        "threads": 2,
        "allow_other": True,
        "direct_io": False,
        "quality": None,
        "log_file": Path("/tmp/log"),
        "store_option": ["a=1", "b=2"],
    }
    assert _program.as_arguments(options) == [
        "--cache-size=1GiB",
        "--threads=2",
        "--allow-other",
        "--log-file=/tmp/log",
        "--store-option=a=1",
        "--store-option=b=2",
    ]


def test_a_level_of_zero_is_an_option() -> None:
    assert _program.as_arguments({"quality": 0}) == ["--quality=0"]


def test_the_environment_names_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_program, "_installed_with_package", lambda: None)
    monkeypatch.setenv("VOLFS", "/somewhere/volfs")
    assert volfs.program() == "/somewhere/volfs"
    with pytest.raises(volfs.VolfsError, match="^cannot run /somewhere/volfs: No such file or directory$"):
        _program.run(["--version"])


def test_no_program_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_program, "_installed_with_package", lambda: None)
    monkeypatch.delenv("VOLFS", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(volfs.VolfsError, match="make_wheel.sh builds, .* VOLFS to its path$"):
        volfs.program()


def test_errors_are_the_one_line_of_the_program() -> None:
    with pytest.raises(volfs.VolfsError, match="^cannot find the source /no/such/folder: [^\n]*$"):
        volfs.mount("/no/such/folder")
    with pytest.raises(volfs.VolfsError, match="^invalid value '77' for '--quality <LEVEL>': [^\n]*$"):
        volfs.mount("/", quality=77)
    with pytest.raises(volfs.VolfsError, match="^unexpected argument '--colour' found$"):
        volfs.mount("/", colour="blue")


def test_a_program_that_is_killed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "volfs"
    script.write_text("#!/bin/sh\nkill -9 $$\n")
    script.chmod(0o755)
    monkeypatch.setattr(_program, "_installed_with_package", lambda: str(script))
    with pytest.raises(volfs.VolfsError, match="was ended by signal 9"):
        _program.run([])


def test_the_module_runs_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "volfs", "--version"], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.startswith("volfs ")


def test_reading_imports_nothing_that_only_mounts_need() -> None:
    printed = run_python(
        f"""
import sys, numpy
before = {{*sys.modules}}
import volfs
box = volfs.open({str(DEMO / "north.zgy")!r}).layer.level(2)[3]
slow = {{"importlib.metadata", "json", "multiprocessing", "pathlib", "shutil", "subprocess", "tempfile", "zlib"}}
print(sorted((slow & {{*sys.modules}}) - before))
assert {{"__version__", "mount", "program", "open"}} <= {{*dir(volfs)}} and "mount" not in vars(volfs)
from volfs import *
assert mount is volfs.mount and issubclass(volfs.Mount, object) and volfs.__version__
try:
    volfs.mounts
except AttributeError as error:
    print(error)
"""
    )
    assert printed == "[]\nmodule 'volfs' has no attribute 'mounts'\n"
