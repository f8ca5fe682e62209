"""Measures `volfs serve` beside a mount and `volfs cat`: the whole of lod0.raw by one client.

    python3 scripts/benchmarks/serve.py VOLFS FOLDER LAYER... [--json FILE]

FOLDER has the layers LAYER, each named as in a mount: north.zgy/data. Each is read three times with nothing decoded (a
new server, a new mount, a new process), in turn, and where volfs goes on running once more each, with all that the cache
holds decoded. The best time counts, in MB/s; in brackets the processor seconds a GiB of volfs for the first read.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import figures

ROUNDS = 3


@contextmanager
def served(volfs: str, folder: str):
    """Serve a folder; yield the function that reads a file whole and returns its bytes, and the number of the process."""
    command = [volfs, "serve", folder, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        host, port = server.stdout.readline().split("http://")[1].strip().rstrip("/").rsplit(":", 1)
        try:
            yield (lambda path: get(host, int(port), path)), server.pid
        finally:
            server.terminate()


def get(host: str, port: int, path: str) -> int:
    """Read a file over a socket, and return the number of bytes that came."""
    buffer = bytearray(1 << 20)
    with socket.create_connection((host, port)) as client:
        client.sendall(f"GET /{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        count = 0
        while part := client.recv_into(buffer):
            count += part
    return count


@contextmanager
def mounted(volfs: str, folder: str):
    """Mount a folder; yield the function that reads a file whole and returns its bytes, and the number of the process."""
    with tempfile.TemporaryDirectory() as point:
        subprocess.run([volfs, "mount", folder, point], check=True, stdout=subprocess.DEVNULL)
        try:
            pid = json.loads(Path(point, ".volfs/status.json").read_text())["pid"]
            yield (lambda path: read(os.open(Path(point) / path, os.O_RDONLY))), pid
        finally:
            subprocess.run([volfs, "umount", "--lazy", point], check=True)


def cat(volfs: str, folder: str, layer: str) -> tuple[int, float]:
    """Read a layer from `volfs cat`, and return the number of bytes and of processor seconds."""
    dataset, name = layer.rsplit("/", 1)
    before = sum(os.times()[2:4])
    command = [volfs, "cat", f"{folder}/{dataset}", "--layer", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        count = read(os.dup(process.stdout.fileno()))
    return count, sum(os.times()[2:4]) - before


def read(file: int) -> int:
    """Read a file or a pipe to its end, close it, and return the number of bytes."""
    buffer = bytearray(1 << 20)
    count = 0
    while part := os.readv(file, [buffer]):
        count += part
    os.close(file)
    return count


def processor_seconds(pid: int) -> float:
    """Return the processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print a line for each layer."""
    words = sys.argv[1:]
    output = Path(words[-1]) if words[-2:-1] == ["--json"] else None
    volfs, folder, *layers = words[:-2] if output else words
    begin, rows = time.strftime("%Y-%m-%d %H:%M"), []
    print(f"{'':34}{'served':>14}{'mounted':>14}{'cat':>14}{'served again':>14}{'mounted again':>14}")
    for layer in layers:
        speed = dict.fromkeys(["served", "mounted", "cat", "served again", "mounted again"], 0.0)
        processor = dict.fromkeys(speed, float("inf"))

        def note(way: str, count: int, began: float, spent: float) -> None:
            """Keep the best of the rounds."""
            speed[way] = max(speed[way], count / (time.perf_counter() - began) / 1e6)
            processor[way] = min(processor[way], spent / count * (1 << 30))

        for _ in range(ROUNDS):
            for way in (served, mounted):
                with way(volfs, folder) as (whole, pid):
                    for again in ("", " again"):
                        spent, began = processor_seconds(pid), time.perf_counter()
                        count = whole(f"{layer}/lod0.raw")
                        note(way.__name__ + again, count, began, processor_seconds(pid) - spent)
            began = time.perf_counter()
            count, spent = cat(volfs, folder, layer)
            note("cat", count, began, spent)
        print(f"{layer:34}" + "".join(f"{speed[way]:7.0f} ({processor[way]:.2f})" for way in speed), flush=True)
        rows.append({"layer": layer, "mb_per_second": speed, "processor_per_gib": processor})
    if output:
        figures.write(output, volfs, begin, {"rounds": ROUNDS}, rows=rows)


main()
