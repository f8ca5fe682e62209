"""What a process does with the engine in it: threads, forks, signals, damage, and what stays behind."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import volfs
from conftest import DEMO, run_python

NORTH = DEMO / "north.zgy"


def test_forked_children_read_in_the_middle_of_their_parents_reads() -> None:
    printed = run_python(
        f"""
import os, signal, threading
import numpy as np, volfs
array = volfs.open({str(NORTH)!r}).layer.level(0)
expected = array[...]
volfs.set_cache_size(1 << 20)          # so that everybody decodes
going, rounds = True, [0] * 4
def read(n):
    while going:
        assert np.array_equal(array[n * 32 : (n + 1) * 32], expected[n * 32 : (n + 1) * 32])
        rounds[n] += 1
threads = [threading.Thread(target=read, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        same = np.array_equal(array[...], expected)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
going = False
for thread in threads:
    thread.join()
print(min(rounds) > 0)
""",
        300,
    )
    assert printed == "True\n"


WORKERS = """
import multiprocessing, sys
import numpy as np, volfs
def work(given):
    array, region = given
    return array[region]
if __name__ == "__main__":
    array = volfs.open(sys.argv[2]).layer.level(0)
    array[0]
    parts = [(array, slice(n, n + 16)) for n in range(0, 128, 16)]
    with multiprocessing.get_context(sys.argv[1]).Pool(4) as pool:
        read = pool.map(work, parts, chunksize=1)
    assert np.array_equal(np.concatenate(read), array[...])
    print("same")
"""


LOADER = """
import sys
import numpy as np, torch, volfs
from torch.utils.data import DataLoader, Dataset
class Patches(Dataset):
    def __init__(self, data, starts):
        self.data, self.starts = data, starts
    def __len__(self):
        return len(self.starts)
    def __getitem__(self, n):
        return self.data[tuple(slice(at, at + 32) for at in self.starts[n])]
if __name__ == "__main__":
    data = volfs.open(sys.argv[2]).layer.level(0)
    whole = data[...]
    starts = np.random.default_rng(1).integers(0, np.subtract(data.shape, 32), (100, 3)).tolist()
    expected = np.stack([patch for patch in Patches(whole, starts)])
    for epoch in range(2):
        loader = DataLoader(Patches(data, starts), batch_size=8, num_workers=4, multiprocessing_context=sys.argv[1])
        assert np.array_equal(torch.cat(list(loader)).numpy(), expected)
    print("same")
"""

CLUSTER = """
import sys
import dask.array, numpy as np, volfs, xarray
from distributed import Client, LocalCluster
if __name__ == "__main__":
    data = volfs.open(sys.argv[1]).layer.level(0)
    expected = data[...]
    with LocalCluster(n_workers=4, threads_per_worker=2, dashboard_address=None) as cluster, Client(cluster) as client:
        assert len(client.ncores()) == 4
        lazy = dask.array.from_array(data, chunks=data.chunks)
        assert np.array_equal(lazy.compute(), expected)
        assert np.array_equal(lazy[3:100:7, ::-1].max(axis=2).compute(), expected[3:100:7, ::-1].max(axis=2))
        survey = xarray.open_dataset(sys.argv[1], engine="volfs", chunks={})
        assert np.array_equal(survey["data"].max("sample"), expected.max(axis=2))
    print("same")
"""


def run_program(code: str, folder: Path, *arguments: str) -> str:
    """Run a program that processes which it starts import, too; return what it printed, and fail if it hangs."""
    (folder / "workers.py").write_text(code)
    command = [sys.executable, str(folder / "workers.py"), *arguments]
    environment = {**os.environ, "TMPDIR": str(folder)}
    # what it started is in its session
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, said = process.communicate(timeout=300)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == 0, said
    return printed


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_workers_of_every_kind_read(method: str, tmp_path: Path) -> None:
    assert run_program(WORKERS, tmp_path, method, str(NORTH)) == "same\n"


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_workers_of_pytorch_read(method: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert run_program(LOADER, tmp_path, method, str(NORTH)) == "same\n"


def test_workers_of_dask_read(tmp_path: Path) -> None:
    for name in ("distributed", "xarray"):
        pytest.importorskip(name)
    assert run_program(CLUSTER, tmp_path, str(NORTH)) == "same\n"


def test_sixteen_threads_read_the_same() -> None:
    array = volfs.open(NORTH).layer.level(0)
    expected = array[...]
    regions = [(slice(n, n + 20), slice(None, None, 1 + n % 3), slice(n, None)) for n in range(64)]
    with ThreadPoolExecutor(16) as pool:
        read = list(pool.map(array.__getitem__, regions))
    assert all(np.array_equal(part, expected[region]) for part, region in zip(read, regions, strict=True))


def test_a_read_ends_at_ctrl_c() -> None:
    # a shell that starts the tests in the background has them ignore the signal
    code = f"""
import signal
import volfs
signal.signal(signal.SIGINT, signal.default_int_handler)
array = volfs.open({str(NORTH)!r}).layer.level(0)
volfs.set_cache_size(0)
print("reading", flush=True)
while True:
    array.read_many([slice(n % 64, n % 64 + 64) for n in range(50)])
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "reading\n"
    time.sleep(0.5)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert said.rstrip().endswith("KeyboardInterrupt") and process.returncode == -signal.SIGINT
    # a second, and what the interpreter takes to end on a busy machine
    assert time.monotonic() - begin < 3


@pytest.mark.parametrize("what", ["array[20:40]", "engine(path)"], ids=["read", "open"])
def test_what_waits_for_a_server_that_hangs_ends_at_ctrl_c(what: str) -> None:
    # the server is the daemon of a mount, whose netCDF file is a dataset of its own; the kernel keeps nothing of it
    code = f"""
import os, signal, sys, time
from pathlib import Path
import numpy as np, volfs
from volfs import _volfs
from volfs._source import Source
signal.signal(signal.SIGINT, signal.default_int_handler)
expected = volfs.open({str(NORTH)!r}).layer.level(0)[20:40]
engine = _volfs.Dataset
with volfs.mount({str(NORTH)!r}, direct_io=True) as m:
    path = str(next(m.path.glob("*/*/lod0.nc")))
    daemon, dataset = m.status["pid"], engine(path)
    array = volfs.Array(dataset, Source(path), dataset._layers()[0][0], 0)
    array[:2]
    os.kill(daemon, signal.SIGSTOP)
    tasks = Path(f"/proc/{{daemon}}/task")
    # a thread that still runs would answer
    while any((task / "stat").read_text().rsplit(") ", 1)[1][0] != "T" for task in tasks.iterdir()):
        time.sleep(0.001)
    try:
        print("reading", flush=True)
        try:
            {what}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        time.sleep(0.5)
    finally:
        os.kill(daemon, signal.SIGCONT)
    print(np.array_equal(array[20:40], expected), flush=True)
    del array, dataset
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "reading\n"
    time.sleep(0.5)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert time.monotonic() - begin < 3
    assert process.communicate(timeout=60)[0] == "True\n" and process.returncode == 0


@pytest.mark.parametrize("change", ["replaced", "truncated", "written"])
def test_a_source_that_changes_is_an_error(change: str, tmp_path: Path) -> None:
    path, other = tmp_path / "a.zgy", tmp_path / "b.zgy"
    shutil.copy(NORTH, path)
    array = volfs.open(path).layer.level(0)
    pickled, expected = pickle.dumps(array), array[...]
    volfs.set_cache_size(volfs.cache_size())
    if change == "replaced":
        # as many bytes, other samples
        content = NORTH.read_bytes()
        other.write_bytes(content[:200_000] + content[300_000:400_000] * 2 + content[400_000:])
        other.rename(path)
    elif change == "truncated":
        os.truncate(path, 200_000)
    else:
        path.write_bytes(NORTH.read_bytes()[::-1])
    failed = 0
    until = time.monotonic() + 10
    while not failed and time.monotonic() < until:
        for n in range(0, 128, 16):
            try:
                assert np.array_equal(array[n : n + 16], expected[n : n + 16])
            except (volfs.SourceChanged, volfs.ReadFailed):
                failed += 1
    assert failed
    with pytest.raises((volfs.VolfsError, OSError)):
        pickle.loads(pickled)[0]
    shutil.copy(NORTH, other)
    other.rename(path)
    assert np.array_equal(volfs.open(path).layer.level(0)[...], expected)


def test_a_source_that_is_removed_is_read_on_or_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.zgy"
    shutil.copy(NORTH, path)
    array = volfs.open(path).layer.level(0)
    path.unlink()
    with contextlib.suppress(volfs.SourceChanged, volfs.ReadFailed):
        assert np.array_equal(array[...], volfs.open(NORTH).layer.level(0)[...])
    with pytest.raises(FileNotFoundError):
        volfs.open(path)


def held() -> tuple[int, int, int]:
    """Return the descriptors, the maps of files and the threads of this process."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = sum(1 for line in maps if "/demo/" in line)
    return len(os.listdir("/proc/self/fd")), files, len(os.listdir("/proc/self/task"))


def test_nothing_stays_of_datasets_that_are_dropped() -> None:
    names = [NORTH, DEMO / "south.vds", DEMO / "cells", DEMO / "cloud-survey"]
    for name in names:
        volfs.open(name).layer.level(2)[0]
    before = held()
    for n in range(10_000):
        dataset = volfs.open(names[n % 4 if n % 50 == 0 else 0])
        assert dataset.layer.level(2).ndim == 3
        if n % 100 == 0:
            assert dataset.layer.level(2)[0].size
    del dataset
    descriptors, maps, threads = (after - count for after, count in zip(held(), before, strict=True))
    # workers, which end when they have had nothing to do for a while
    assert descriptors <= 0 and maps <= 0 and threads <= 4 * (os.cpu_count() or 1)


def test_a_small_cache_reads_the_same() -> None:
    array = volfs.open(NORTH).layer.level(0)
    expected, size = array[...], volfs.cache_size()
    try:
        sizes: list[tuple[int | str, int]] = [("1MiB", 1 << 20), ("2 GiB", 2 << 30), (0, 0), ("512K", 512 << 10)]
        for text, count in sizes:
            volfs.set_cache_size(text)
            assert volfs.cache_size() == count
            assert np.array_equal(array[::-1], expected[::-1])
    finally:
        volfs.set_cache_size(size)
    for wrong in ["", "many", "-1", "1.5GiB"]:
        with pytest.raises(ValueError, match="a size is a number of bytes"):
            volfs.set_cache_size(wrong)


def test_an_interpreter_ends_while_threads_read() -> None:
    for part in ["...", "0:8"] * 4:
        printed = run_python(
            f"""
import atexit, os, threading, time, volfs
array = volfs.open({str(NORTH)!r}).layer.level(0)
volfs.set_cache_size(1 << 20)
atexit.register(lambda: print("end", array[0, 0].size))
def read():
    while True:
        array[{part}]
for _ in range(3):
    threading.Thread(target=read, daemon=True).start()
time.sleep(0.2)
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
        )
        size = printed.split()[1]
        assert printed == f"end {size}\n" * 2


def test_faulthandler_and_the_engine_go_together(tmp_path: Path) -> None:
    for before, after in [("faulthandler.enable()", ""), ("", "faulthandler.enable()")]:
        path = tmp_path / "a.zgy"
        shutil.copy(NORTH, path)
        printed = run_python(
            f"""
import faulthandler, os
{before}
import volfs
array = volfs.open({str(path)!r}).layer.level(0)
array[64:]
{after}
os.truncate({str(path)!r}, 100_000)
try:
    array[:64]
except OSError as error:
    print("error")
"""
        )
        assert printed == "error\n"


def test_subinterpreters_are_refused() -> None:
    printed = run_python(
        """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import volfs
made = interpreters.create()
code = f'''
import sys
sys.path[:] = {sys.path!r}
try:
    import importlib.machinery, importlib.util
    spec = importlib.util.find_spec("volfs")
    import volfs._volfs
except ImportError as error:
    print("refused", flush=True)
'''
failed = interpreters.run_string(made, code)
print(failed)
"""
    )
    assert "refused" in printed, printed


def test_threads_open_and_close_at_a_time() -> None:
    failed: list[BaseException] = []

    def use() -> None:
        try:
            for _ in range(50):
                with volfs.open(NORTH) as dataset:
                    assert dataset.layer.level(2)[0, 0].shape == (48,)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
