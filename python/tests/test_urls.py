"""Datasets of a web server."""

from __future__ import annotations

import os
import pickle
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import volfs
from conftest import DEMO

ALLOW = {"allow_http": "true"}


class Files(BaseHTTPRequestHandler):
    """Answers with a file of the bundled volumes, or a range of it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        path = DEMO / self.path.lstrip("/")
        content = path.read_bytes() if path.is_file() else b""
        part = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, end = (int(part[1]), min(int(part[2]) + 1, len(content))) if part else (0, len(content))
        self.send_response(404 if not content else 206 if part else 200)
        self.send_header("Content-Length", str(end - first))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"1"')
        if part:
            self.send_header("Content-Range", f"bytes {first}-{end - 1}/{len(content)}")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[first:end])

    do_HEAD = do_GET

    def log_message(self, *about: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a web server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()


def test_a_url_is_read_like_a_file(server: str) -> None:
    expected = volfs.open(DEMO / "north.zgy").layer.level(1)[...]
    with volfs.open(f"{server}/north.zgy", store_options=ALLOW) as dataset:
        assert dataset.name == "north.zgy" and dataset.path == f"{server}/north.zgy"
        array = dataset.layer.level(1)
    assert np.array_equal(array[...], expected)
    assert np.array_equal(pickle.loads(pickle.dumps(array))[::2], expected[::2])
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(array[:, 3], expected[:, 3]) else 1)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(volfs.NotFound):
        volfs.open(f"{server}/south.zgy", store_options=ALLOW)


def test_xarray_takes_urls(server: str) -> None:
    xarray = pytest.importorskip("xarray")
    url = f"{server}/north.zgy"
    with xarray.open_dataset(url, engine="volfs", lod=2, store_options=ALLOW) as survey:
        assert survey["data"].sizes == {"inline": 32, "crossline": 24, "sample": 48}


def test_zarr_takes_urls(server: str, source: Path) -> None:
    zarr = pytest.importorskip("zarr", "3.1")
    store, local = volfs.store(f"{server}/{source.name}", store_options=ALLOW), volfs.store(source)
    assert str(store) == f"volfs:{server}/{source.name}/{store._folder}" and store._folder == local._folder
    array, expected = zarr.open(store)["0"], zarr.open(local)["0"]
    assert array.metadata == expected.metadata and np.array_equal(array[3:9, 5:], expected[3:9, 5:])
    assert np.array_equal(zarr.open(pickle.loads(pickle.dumps(store)))["0"][...], expected[...])
    named = volfs.store(f"{server}/{source.name}/data.ome.zarr", store_options=ALLOW)
    assert named._folder == store._folder and sorted(zarr.open(named)) == sorted(zarr.open(local))
    with pytest.raises(volfs.VolfsError, match="has no layer 'nothing'"):
        volfs.store(f"{server}/{source.name}", "nothing", store_options=ALLOW)
