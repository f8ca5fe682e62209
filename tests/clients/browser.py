"""Servers and pages for the tests of the page in headless Chromium, and the samples that the page has to show."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

CANVAS = "canvas.slice"


@contextmanager
def server_of(source, *options, port=0) -> Iterator[tuple[str, subprocess.Popen]]:
    """Serve a source; yield the address and the server's process."""
    from conftest import volfs

    command = [volfs(), "serve", str(source), "--listen", f"127.0.0.1:{port}", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().rsplit(" ", 1)[1].strip().rstrip("/"), process
        finally:
            process.terminate()


@contextmanager
def serving(source, *options, port=0) -> Iterator[str]:
    """Serve a source; yield the address."""
    with server_of(source, *options, port=port) as (address, _):
        yield address


@pytest.fixture(scope="session")
def launch():
    """Yield what starts Chromium with some options."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (or name it in CHROMIUM)")
    with sync_api.sync_playwright() as playwright:
        yield lambda *options: playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *options])


@pytest.fixture(scope="session")
def browser(launch):
    """Yield Chromium."""
    chromium = launch()
    yield chromium
    chromium.close()


@pytest.fixture
def failures() -> list[str]:
    """Return a list for parts of the messages of failed requests that a test wants."""
    return []


@pytest.fixture
def page(browser, failures):
    """Yield a page that fails the test if a script fails or anything but a server of this machine is asked."""
    context = browser.new_context(viewport={"width": 1200, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(30000)
    wrong: list[str] = []
    local = ("http://127.0.0.1:", "data:", "blob:")
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if request.url.startswith(local) else wrong.append(request.url))
    yield page
    context.close()
    assert [text for text in wrong if not any(part in text for part in failures)] == []


def until(page, expression):
    """Wait until a script's expression is true. The page's security policy does not let it evaluate texts by itself."""
    deadline = time.monotonic() + 30
    while not holds(page, expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(20)


def holds(page, expression):
    """Return whether a script's expression is true. While a page is loaded again it is not."""
    try:
        return page.evaluate(f"Boolean({expression})")
    except Exception as error:
        if "context was destroyed" not in str(error) and "volfsStage is not defined" not in str(error):
            raise
        return False


def wait(page):
    """Wait until all that is seen has been fetched and drawn."""
    # the stage may be about to be replaced by one with other planes
    is_shown = "volfsStage.planes.every(({ row, number }) => row === volfsStage.view.planes[number]?.row)"
    until(page, f"window.volfsStage?.isComplete && !volfsStage.pending && {is_shown}")


BANNER = "document.querySelector('.banner:not([hidden])')"


def show(page, server, dataset, layer=None):
    """Open a dataset and wait for its pictures; another layer than the first one by its name."""
    page.goto("about:blank")
    page.goto(f"{server}/{dataset}/" + (f"#layer={urllib.request.quote(layer, safe='')}" if layer else ""))
    settle(page)


def settle(page):
    """Wait until a dataset is shown. The version of a file that was written a moment ago changes once or twice more."""
    for _ in range(5):
        until(page, f"window.volfsStage?.isComplete || {BANNER}")
        page.wait_for_timeout(100)
        if not holds(page, BANNER):
            break
        page.reload()
    wait(page)


def get_json(address):
    return json.load(urllib.request.urlopen(address))


def samples(server, dataset, folder, lod=0):
    """Return the description of a level and its stored samples."""
    place = f"{server}/{dataset}/{folder.removeprefix('./').rstrip('/')}/lod{lod}"
    about = get_json(f"{place}.json")
    data = urllib.request.urlopen(f"{place}.raw").read()
    return about, np.frombuffer(data, np.dtype(about["dtype"]).newbyteorder("<")).reshape(about["shape"])


PIXELS = """(n) => {
  const { planes, view } = volfsStage, plane = planes[n], { canvas } = plane, ratio = devicePixelRatio;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = [];
  for (let row = 0; row < view.layer.shape[plane.row]; row++) {
    for (let column = 0; column < view.layer.shape[plane.column]; column++) {
      const [x, y] = plane.pointAt(column, row).map((at) => Math.floor(at * ratio));
      if (x < 0 || y < 0 || x >= canvas.width || y >= canvas.height) continue;
      const at = 4 * (y * canvas.width + x);
      found.push(row, column, data[at], data[at + 1], data[at + 2], data[at + 3]);
    }
  }
  // as text: a list of numbers takes long
  const bytes = new Uint8Array(Int32Array.from(found).buffer);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return { found: btoa(text), row: plane.row, column: plane.column, index: view.index };
}"""


def pixels(page, n):
    """Return the painted pixels at the middles of the samples that a plane shows: places in the array, and colours."""
    got = page.evaluate(PIXELS, n)
    found = np.frombuffer(base64.b64decode(got["found"]), "<i4").reshape(-1, 6).astype(int)
    at = [np.full(len(found), index) for index in got["index"]]
    at[got["row"]], at[got["column"]] = found[:, 0], found[:, 1]
    return tuple(at), found[:, 2:]


def magnify(page, least=6):
    """Zoom in until samples have so many pixels, and hide the crosshair, so that each sample has pixels of its own."""
    page.evaluate(
        """(least) => {
          const { view } = volfsStage;
          const smallest = Math.min(...view.axes.map((axis) => view.pixels(axis)));
          if (smallest < least) view.zoomBy(least / smallest);
          view.set({ hasCrosshair: false });
        }""",
        least,
    )
    wait(page)


def read_out(page):
    return page.locator("#readout").inner_text()


@pytest.fixture(scope="session")
def demo() -> Iterator[str]:
    """Serve the demo data; yield the address."""
    from conftest import DATA

    with serving(DATA / "demo") as address:
        yield address


def point(page, plane, column, row):
    """Return the point of the window, a whole one, where a plane shows a position."""
    box = page.locator(CANVAS).nth(plane).bounding_box()
    x, y = page.evaluate(f"volfsStage.planes[{plane}].pointAt({column}, {row})")
    return round(box["x"] + x), round(box["y"] + y)


def index_of(page):
    return page.evaluate("volfsStage.view.index")
