"""The page of `volfs serve` in headless Chromium: it loads, is dragged and zoomed, and reads out the array's values.

Needs playwright for Python, and Chromium: that of the environment variable CHROMIUM, or of the system.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator

import numpy as np
import pytest
from conftest import DATA, volfs

sync_api = pytest.importorskip("playwright.sync_api")
Image = pytest.importorskip("PIL.Image")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (or name it in CHROMIUM)")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Serve the demo data; yield the address."""
    command = [volfs(), "serve", str(DATA / "demo"), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().rsplit(" ", 1)[1].strip().rstrip("/")
        finally:
            process.terminate()


@pytest.fixture
def page():
    """Yield a page that fails the test if a script fails or anything but a server of this machine is asked."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: None if request.url.startswith(("http://127.0.0.1:", "data:", "blob:")) else wrong.append(request.url))
        yield page
        assert wrong == []
        browser.close()


def until(page, expression):
    """Wait until a script's expression is true. The page's security policy does not let it evaluate texts by itself."""
    deadline = time.monotonic() + 30
    while not page.evaluate(f"Boolean({expression})"):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(20)


def show(page, server, dataset):
    page.goto(f"{server}/{dataset}/")
    until(page, "window.volfsViewer?.isComplete")


def samples(server, place):
    about = json.load(urllib.request.urlopen(f"{server}/{place}.json"))
    data = urllib.request.urlopen(f"{server}/{place}.raw").read()
    return np.frombuffer(data, np.dtype(about["dtype"]).newbyteorder("<")).reshape(about["shape"])


def read_out(page):
    """Return the index and the value under the cursor."""
    until(page, "window.volfsViewer.cursorValue() !== null")
    text = page.locator("#readout").inner_text()
    index = tuple(int(n) for n in re.match(r"\[([\d, ]+)\]", text)[1].split(","))
    return index, float(text.rsplit("·", 1)[1].strip().rsplit(" ", 1)[-1])


def test_the_list_shows_all_datasets(page, server):
    page.goto(f"{server}/")
    page.wait_for_selector(".cards li:nth-child(4) .about b")
    assert page.locator(".cards .name").all_inner_texts() == ["cells", "cloud-survey", "north.zgy", "south.vds"]
    until(page, "[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
    assert "128 × 96 × 192, float32" in page.locator(".cards li", has_text="north.zgy").inner_text()


@pytest.mark.parametrize(("dataset", "layer"), [("north.zgy", "data"), ("south.vds", "Amplitude"), ("cells", "color")])
def test_read_outs_are_the_array_s_values(page, server, dataset, layer):
    array = samples(server, f"{dataset}/{layer}/lod0")
    show(page, server, dataset)
    box = page.locator("canvas.slice").bounding_box()
    for axis in range(3):
        page.select_option("#axis", str(axis))
        page.locator("canvas.slice").press("End")
        page.locator("canvas.slice").press("PageDown")
        until(page, "window.volfsViewer.isComplete")
        for across, down in [(0.45, 0.3), (0.55, 0.7), (0.5, 0.45)]:
            page.mouse.move(box["x"] + box["width"] * across, box["y"] + box["height"] * down)
            until(page, "window.volfsViewer.isComplete && window.volfsViewer.cursor")
            index, value = read_out(page)
            assert index[axis] == array.shape[axis] - 11
            assert array[index] == np.float32(value) if array.dtype == np.float32 else array[index] == value


def test_it_is_dragged_and_zoomed(page, server):
    show(page, server, "north.zgy")
    view = lambda: page.evaluate("({ scale: volfsViewer.scale, centre: volfsViewer.centre, lod: volfsViewer.shownLod })")
    before = view()
    box = page.locator("canvas.slice").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.wheel(0, -800)
    until(page, "volfsViewer.isComplete")
    zoomed = view()
    assert zoomed["scale"] > 2 * before["scale"]
    page.mouse.down()
    page.mouse.move(x - 100, y - 50, steps=5)
    page.mouse.up()
    moved = view()
    assert moved["centre"][0] > zoomed["centre"][0] and moved["centre"][1] > zoomed["centre"][1]
    page.mouse.wheel(0, 6000)
    until(page, "volfsViewer.isComplete && volfsViewer.shownLod > 0")
    page.locator("canvas.slice").press("0")
    until(page, "volfsViewer.isComplete && volfsViewer.shownLod === 0")


def test_the_keyboard_and_the_slider_go_through_slices(page, server):
    show(page, server, "north.zgy")
    canvas = page.locator("canvas.slice")
    for key, index in [("Home", 0), ("ArrowRight", 1), ("PageUp", 11), ("ArrowLeft", 10), ("End", 127)]:
        canvas.press(key)
        assert page.evaluate("volfsViewer.index[0]") == index
    page.locator("#index0").fill("33")
    assert page.evaluate("volfsViewer.index[0]") == 33
    canvas.press("Shift+ArrowRight")
    assert read_out(page)[0][0] == 33
    until(page, "document.querySelector('.snippet code').textContent.includes('box=33,:,:')")


@pytest.fixture(scope="module")
def vast(tmp_path_factory) -> Iterator[str]:
    """Serve a WKW dataset of 32 x 100000 x 100000 samples, all 0 but those of its last cube; yield the address."""
    source = tmp_path_factory.mktemp("vast")
    count, cube = 100_000, 32
    last = (count - 1) // cube
    # blocks of 32 samples along each axis, one in a cube, stored raw, uint8
    header = b"WKW" + bytes([1, 0x05, 1, 1, 1])
    files = {"color/1/header.wkw": header + bytes(8), f"color/1/z0/y{last}/x{last}.wkw": header + (16).to_bytes(8, "little") + b"\x07" * cube**3}
    for name, content in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content)
    box = {"topLeft": [0, 0, 0], "width": count, "height": count, "depth": cube}
    layer = {"name": "color", "category": "color", "elementClass": "uint8", "dataFormat": "wkw", "boundingBox": box}
    layer["wkwResolutions"] = [{"resolution": 1, "cubeLength": cube}]
    properties = {"id": {"name": "vast", "team": ""}, "scale": [4, 4, 30], "dataLayers": [layer]}
    (source / "datasource-properties.json").write_text(json.dumps(properties))
    command = [volfs(), "serve", str(source), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().rsplit(" ", 1)[1].strip().rstrip("/") + f"/{source.name}/"
        finally:
            process.terminate()


def test_a_vast_slice_without_levels_is_shown_in_parts(page, vast):
    tiles: list[str] = []
    page.on("request", lambda request: tiles.append(request.url) if "?box=" in request.url else None)
    page.goto(vast)
    until(page, "window.volfsViewer?.isComplete")
    # those of the slice and of some slices beside it
    assert 0 < len(tiles) < 500
    assert "no coarser level" in page.locator(".status").inner_text()
    page.evaluate("volfsViewer.centre = [99999, 99999]; volfsViewer.zoom(20)")
    until(page, "volfsViewer.isComplete")
    assert "no coarser level" not in page.locator(".status").inner_text()
    box = page.locator("canvas.slice").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 - 3, box["y"] + box["height"] / 2 - 3)
    index, value = read_out(page)
    assert index[0] == 16 and min(index[1:]) > 99990 and value == 7
    page.mouse.wheel(0, 100000)
    until(page, "volfsViewer.isComplete")
    assert len(tiles) < 1500
    # a larger canvas would show more tiles at the same scale
    scale = page.evaluate("volfsViewer.scale")
    page.set_viewport_size({"width": 2400, "height": 2000})
    until(page, f"volfsViewer.scale > {scale} && volfsViewer.isComplete")


def test_neuroglancer_draws_what_the_page_links_to():
    neuroglancer = pytest.importorskip("neuroglancer")
    neuroglancer.set_server_bind_address("127.0.0.1")
    viewer = neuroglancer.Viewer(token="volfs")
    command = [volfs(), "serve", str(DATA / "demo"), "--listen", "127.0.0.1:0", "--neuroglancer", viewer.get_viewer_url()]
    graphics = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            server = process.stdout.readline().rsplit(" ", 1)[1].strip().rstrip("/")
            with sync_api.sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *graphics])
                page = browser.new_page(viewport={"width": 800, "height": 600})
                page.goto(f"{server}/cells/")
                link = page.locator("a.viewer").get_attribute("href", timeout=30000)
                answers: list[tuple[str, int]] = []
                page.on("response", lambda answer: answers.append((answer.url, answer.status)))
                page.goto(link)
                deadline = time.monotonic() + 60
                colours = 0
                while colours < 50 and time.monotonic() < deadline:
                    page.wait_for_timeout(500)
                    picture = Image.open(io.BytesIO(page.screenshot())).convert("L")
                    # the background and the frame have few greys, the cells many
                    colours = len(picture.crop((100, 60, 380, 280)).getcolors())
                chunks = [status for url, status in answers if "/color.ome.zarr/" in url and "/c/" in url]
                assert chunks and set(chunks) == {200}
                assert colours >= 50
        finally:
            process.terminate()


def test_a_token_is_carried_on(page, tmp_path):
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("a-token-of-some-length")
    command = [volfs(), "serve", str(DATA / "demo"), "--listen", "127.0.0.1:0", "--token-file", str(token), "--neuroglancer", "http://127.0.0.1:1/v/"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            link = process.stdout.readline().rsplit(" ", 1)[1].strip()
            assert link.endswith("/a-token-of-some-length/")
            test_the_list_shows_all_datasets(page, link.rstrip("/"))
            page.get_by_role("link", name="north.zgy").first.click()
            until(page, "window.volfsViewer?.isComplete")
            # an address without the token: the browser has a cookie, and the page and all that it fetches are found below
            page.goto(link.replace("a-token-of-some-length/", "cells/?from=0"))
            until(page, "window.volfsViewer?.isComplete")
            assert page.url == f"{link}cells/?from=0"
            viewer = page.locator("a.viewer").get_attribute("href", timeout=30000)
            assert urllib.parse.quote(f"{link}cells/color.ome.zarr/|zarr3:", safe="") in viewer
            page.wait_for_selector(".snippet code")
            lines = [text for text in page.locator(".snippet code").all_inner_texts() if "http" in text]
            assert len(lines) >= 5 and all(f"{link}cells/" in text for text in lines)
            # another server at this host gets the cookie, but not the token
            cookies = page.context.cookies()
            assert [cookie["httpOnly"] for cookie in cookies] == [True] and "a-token" not in str(cookies)
        finally:
            process.terminate()


def test_a_phone_needs_no_sideways_scrolling(page, server):
    page.set_viewport_size({"width": 360, "height": 740})
    for path in ["", "north.zgy/", "cells/"]:
        page.goto(f"{server}/{path}")
        page.wait_for_timeout(500)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
