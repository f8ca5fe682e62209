#!/usr/bin/env python3
"""Many clients at once read random chunks of a dataset from `volfs serve`; each response is compared with that of one client alone.

    ./scripts/stress/serve.py VOLFS FILE [CLIENTS [SECONDS]]

FILE is a ZGY file or another dataset with one layer called `data`. Prints requests, errors, latencies, and the server's
anonymous memory at its greatest; fails if a response is wrong or missing. Where wrk is installed, it then sends the same
requests as fast as it can: this client, which compares bytes, is slower than the server.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

CACHE = 256 << 20


def anonymous(pid: int) -> int:
    """Return the anonymous memory of a process in bytes."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) << 10


async def client(port: int, paths: list[str], truth: dict[str, bytes], until: float, times: list[float], errors: list[str]) -> None:
    """Request random chunks over one connection, the next when the last one is there."""
    generator = random.Random()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < until:
            path = generator.choice(paths)
            began = time.monotonic()
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
            body = await reader.readexactly(length)
            times.append(time.monotonic() - began)
            if not head.startswith("HTTP/1.1 200") or hash(body) != truth[path]:
                errors.append(f"{path}: {head.splitlines()[0]}, {length} bytes")
        writer.close()
    except (OSError, asyncio.IncompleteReadError) as error:
        errors.append(repr(error))


async def load(port: int, pid: int, paths: list[str], truth: dict[str, bytes], clients: int, seconds: float) -> bool:
    """Run all clients; print what they saw."""
    times: list[float] = []
    errors: list[str] = []
    until = time.monotonic() + seconds
    running = [asyncio.create_task(client(port, paths, truth, until, times, errors)) for _ in range(clients)]
    most = 0
    while not all(task.done() for task in running):
        most = max(most, anonymous(pid))
        await asyncio.sleep(0.1)
    times.sort()
    at = lambda part: times[min(len(times) - 1, int(part * len(times)))] * 1000
    print(f"{clients} clients, {seconds:g} s: {len(times)} requests, {len(times) / seconds:.0f}/s, {len(errors)} errors")
    print(f"latency ms: p50 {at(0.5):.0f}, p99 {at(0.99):.0f}, most {at(1):.0f}; anonymous memory at most {most / 2**20:.0f} MiB")
    ceiling = CACHE + (64 << 20) + clients * (64 << 10)
    print(f"ceiling: {ceiling / 2**20:.0f} MiB and the decodes in flight")
    for error in errors[:10]:
        print(error)
    return not errors


def load_by_wrk(address: str, paths: list[str], clients: int, seconds: float) -> None:
    """Print what wrk measures of as many clients that request random chunks."""
    chosen = ", ".join(f'"{path}"' for path in paths)
    script = f"local paths = {{{chosen}}}\nrequest = function() return wrk.format('GET', paths[math.random(#paths)]) end\n"
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        command = ["wrk", "--latency", "-t1", f"-c{clients}", f"-d{seconds:.0f}s", "--timeout", "60s", "-s", file.name]
        subprocess.run([*command, f"http://{address}"], check=True)


def main() -> None:
    """Serve, find all chunks and what they hold, and load the server."""
    volfs, file = sys.argv[1], sys.argv[2]
    clients, seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 1000, float(sys.argv[4]) if len(sys.argv) > 4 else 60
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    command = [volfs, "serve", file, "--listen", "127.0.0.1:0", "--cache-size", str(CACHE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().split("http://")[1].strip().rstrip("/")
            get = lambda path: urllib.request.urlopen(f"http://{address}{path}").read()
            top = f"/{Path(file).name}/data.ome.zarr/0"
            about = json.loads(get(f"{top}/zarr.json"))
            chunk = about["chunk_grid"]["configuration"]["chunk_shape"]
            counts = [-(-n // c) for n, c in zip(about["shape"], chunk)]
            paths = [f"{top}/c/{i}/{j}/{k}" for i in range(counts[0]) for j in range(counts[1]) for k in range(counts[2])]
            random.shuffle(paths)
            truth = {path: hash(get(path)) for path in paths[:200]}
            right = asyncio.run(load(int(address.rsplit(":", 1)[1]), server.pid, list(truth), truth, clients, seconds))
            if shutil.which("wrk"):
                load_by_wrk(address, list(truth), clients, seconds)
        finally:
            server.terminate()
    sys.exit(0 if right else 1)


main()
