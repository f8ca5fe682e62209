"""Measures `volfs serve` beside a mount: the whole of lod0.raw by one client, in MB/s.

    python3 scripts/benchmarks/serve.py VOLFS FOLDER FILE...

FOLDER has the datasets FILE, each with a layer called `data`. Each is read three times with nothing decoded (a new
server, a new mount), in turn, and then again with all that the cache holds decoded. The best time counts.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def served(volfs: str, folder: str):
    """Serve a folder; yield the function that reads a file whole and returns its bytes."""
    command = [volfs, "serve", folder, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        host, port = server.stdout.readline().split("http://")[1].strip().rstrip("/").rsplit(":", 1)
        try:
            yield lambda path: get(host, int(port), path)
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
    """Mount a folder; yield the function that reads a file whole and returns its bytes."""
    with tempfile.TemporaryDirectory() as point:
        subprocess.run([volfs, "mount", folder, point], check=True, stdout=subprocess.DEVNULL)
        try:
            yield lambda path: read(Path(point) / path)
        finally:
            subprocess.run([volfs, "umount", "--lazy", point], check=True)


def read(path: Path) -> int:
    """Read a file through the page cache, and return the number of bytes."""
    buffer = bytearray(1 << 20)
    count = 0
    with path.open("rb", buffering=0) as file:
        while part := file.readinto(buffer):
            count += part
    return count


def main() -> None:
    """Print a line for each dataset."""
    volfs, folder, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    print(f"{'':28}{'served':>10}{'mounted':>10}{'again':>10}{'again':>10}")
    for file in files:
        path = f"{file}/data/lod0.raw"
        best = {(way, again): 0.0 for way in (served, mounted) for again in (False, True)}
        for _ in range(3):
            for way in (served, mounted):
                with way(volfs, folder) as whole:
                    for again in (False, True):
                        began = time.perf_counter()
                        count = whole(path)
                        best[way, again] = max(best[way, again], count / (time.perf_counter() - began) / 1e6)
        order = [(served, False), (mounted, False), (served, True), (mounted, True)]
        print(f"{file:28}" + "".join(f"{best[key]:10.0f}" for key in order))


main()
