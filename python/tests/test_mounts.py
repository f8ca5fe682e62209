"""Mounts, and what becomes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import volfs
from conftest import DATA, DEMO, mounts_below, until


def test_a_mount_shows_the_datasets(demo: volfs.Mount) -> None:
    assert demo.source == str(DEMO)
    assert list(demo.datasets) == ["cells", "cloud-survey", "north.zgy", "south.vds"]
    assert len(demo.datasets) == 4 and demo.datasets.errors == {}
    assert demo.datasets["north.zgy"].path == str(DEMO / "north.zgy")
    for name in ["no.zgy", "north.zgy/data", "..", "cells/color/lod0.npy"]:
        assert name not in demo.datasets


def test_datasets_are_opened_with_the_options_of_the_mount() -> None:
    with volfs.mount(DEMO, quality=2, follow_links=True, store_option=["region=here", "anonymous=true"]) as mount:
        source = mount.datasets["south.vds"]._source
    assert source == (str(DEMO / "south.vds"), 2, True, (("region", "here"), ("anonymous", "true")), "")


def test_options_reach_the_mount() -> None:
    with volfs.mount(DEMO, cache_size="64MiB", threads=1, quality=0) as mount:
        options = mount.status["options"]
    assert int(options["cache_size"]) == 64 << 20 and int(options["threads"]) == 1


def test_a_mount_is_gone_after_its_block() -> None:
    with volfs.mount(DEMO / "north.zgy") as mount:
        assert set(os.listdir(mount.path)) == {".volfs", "north.zgy"} and mount.answers
    assert not mount.path.exists() and not mount.answers
    mount.unmount()


def test_a_folder_that_was_given_stays(tmp_path: Path) -> None:
    with volfs.mount(DEMO, tmp_path) as mount:
        assert mount.path == tmp_path and (tmp_path / "north.zgy").exists()
    assert os.listdir(tmp_path) == []


def test_files_can_be_read_after_their_mount() -> None:
    with volfs.mount(DEMO) as mount:
        array = np.load(mount.path / "north.zgy/data/lod0.npy", mmap_mode="r")
        with pytest.raises(volfs.VolfsError, match="in use"):
            mount.unmount()
    assert not mount.path.exists()
    assert np.array_equal(array[100:110], volfs.open(DEMO / "north.zgy").layer.level(0)[100:110])


def test_maps_of_one_source_share_a_mount() -> None:
    layer = volfs.open(DEMO / "north.zgy").layer
    maps = [layer.lod(2), volfs.open(DEMO / "../demo/north.zgy").layer.lod(1)]
    other = volfs.open(DEMO / "north.zgy", quality=3).layer.lod(1)
    first, second = (mount_of(array) for array in maps)
    assert first is second is not mount_of(other)
    assert first.answers
    os.kill(first.status["pid"], signal.SIGKILL)
    until(lambda: not first.answers)
    assert mount_of(layer.lod(2)).answers


def mount_of(array: Any) -> Any:
    """Return the mount that a map keeps."""
    return array._volfs_mount


def program(*arguments: str | Path) -> None:
    """Run volfs as somebody else would."""
    subprocess.run([volfs.program(), *arguments], stdout=subprocess.DEVNULL, check=True)


@pytest.mark.parametrize("end", ["collected", "block", "unmount"])
@pytest.mark.parametrize("source", [DEMO, DATA / "zgy"])
def test_the_mount_of_somebody_else_at_the_same_place_stays(end: str, source: Path, tmp_path: Path) -> None:
    made = volfs.mount(DEMO, tmp_path)
    program("umount", tmp_path)
    assert not made.answers
    # The system gives it the numbers that are free again.
    program("mount", source, tmp_path)
    assert not made.answers
    if end == "unmount":
        with pytest.raises(volfs.VolfsError, match="what is mounted there now is another one"):
            made.unmount()
    elif end == "block":
        made.__exit__(None, None, None)
    del made
    volfs._mounts._wait_for_ends()
    assert os.path.ismount(tmp_path)
    program("umount", tmp_path)


def test_the_remains_of_a_mount_whose_daemon_died_are_taken_away(tmp_path: Path) -> None:
    with volfs.mount(DEMO, tmp_path) as made:
        os.kill(made.status["pid"], signal.SIGKILL)
        until(lambda: not made.answers)
        assert mounts_below(str(tmp_path)) == [str(tmp_path)]
    assert mounts_below(str(tmp_path)) == []


def test_an_interrupted_mount_leaves_what_was_there_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, link = tmp_path / "a place", tmp_path / "link"
    folder.mkdir()
    link.symlink_to("a place")

    def interrupted(arguments: list[str]) -> str:
        if not os.path.ismount(folder):
            program(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr("volfs._mounts.run", interrupted)
    program("mount", DEMO, folder)
    for place in [folder, link]:
        with pytest.raises(KeyboardInterrupt):
            volfs.mount(DEMO, place)
        volfs._mounts._wait_for_ends()
        assert os.path.ismount(folder)
    program("umount", folder)
    for place in [folder, link]:
        with pytest.raises(KeyboardInterrupt):
            volfs.mount(DEMO, place)
        volfs._mounts._wait_for_ends()
        assert not os.path.ismount(folder)


def run_python(code: str) -> subprocess.Popen[str]:
    """Start another interpreter."""
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_mounts_end_with_the_interpreter() -> None:
    code = f"""
import volfs
mount = volfs.mount({str(DEMO)!r})
array = volfs.open({str(DEMO / "cells")!r}).layer.lod(0)
array.sum()
print(mount.path, array._volfs_mount.path)
mount.loop = mount
raise SystemExit(3)
"""
    process = run_python(code)
    paths = process.communicate()[0].split()
    assert process.returncode == 3 and len(paths) == 2
    assert not any(os.path.exists(path) for path in paths)


def test_the_mount_of_a_killed_process_can_be_taken_away() -> None:
    process = run_python(f"import volfs; mount = volfs.mount({str(DEMO)!r}); print(mount.path, flush=True); input()")
    assert process.stdout is not None
    path = process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.communicate()
    assert os.path.ismount(path)
    subprocess.run([volfs.program(), "umount", path], check=True)
    assert not os.path.ismount(path)
    os.rmdir(path)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_take_their_mounts_with_them(
    method: str, temporary: str, demo: volfs.Mount, tmp_path: Path
) -> None:
    script = tmp_path / "workers.py"
    script.write_text(f"""
import multiprocessing, volfs
kept = []
def work():
    kept.append(volfs.open({str(DEMO / "north.zgy")!r}).layer.lod(0)[0])
if __name__ == "__main__":
    process = multiprocessing.get_context({method!r}).Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 0
    print([line for line in open("/proc/self/mounts") if "{temporary}/" in line and "{demo.path} " not in line])
""")
    assert subprocess.run([sys.executable, script], stdout=subprocess.PIPE, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("end", ["sys.exit()", "del own"])
def test_a_forked_child_leaves_the_mounts_of_its_parent(end: str) -> None:
    code = f"""
import os, sys, volfs
layer = volfs.open({str(DEMO / "north.zgy")!r}).layer
array = layer.lod(0)
with volfs.mount({str(DEMO)!r}) as mount:
    if os.fork() == 0:
        own = layer.lod(0)
        assert own._volfs_mount.path != array._volfs_mount.path and own.shape == array.shape
        try:
            mount.unmount()
        except volfs.VolfsError as error:
            assert "belongs to process" in str(error)
            mount.__exit__(None, None, None)
        {end}
        volfs._mounts._take_all_away()
        os._exit(0)
    assert os.wait()[1] == 0
    print(array[0, 0].shape, len(mount.datasets))
"""
    process = run_python(code)
    assert process.communicate()[0] == "(192,) 4\n" and process.returncode == 0


def test_errors_of_datasets_are_told(tmp_path: Path) -> None:
    with volfs.mount(DATA / "zgy") as mount:
        assert "bad_magic.zgy" not in list(mount.datasets) and "v3_int8.zgy" in mount.datasets
        assert mount.datasets.errors["bad_magic.zgy"] == "not a ZGY file"
        with pytest.raises(volfs.VolfsError, match="^bad_magic.zgy: not a ZGY file$"):
            mount.datasets["bad_magic.zgy"]
        with pytest.raises(volfs.Unsupported, match=f"^{DATA}/zgy/bad_magic.zgy: not a ZGY file$"):
            volfs.open(mount.path / "bad_magic.zgy")
