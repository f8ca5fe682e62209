"""Measures the page of `volfs serve` in headless Chromium: `scripts/bench page`.

Prints a Markdown table: the first picture, scrubbing through slices that are in the cache and through others, frames while
panning a plane of 20,000 x 20,000, and the memory of page and server. Each volume is served by a process of its own. With
the Python package neuroglancer, the first picture of Neuroglancer beside it, from the OME-Zarr view of the same server.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

# Goes through slices of the first plane. Each step waits for a frame, or until the slice is sharp.
SCRUB = """async ({from, to, waits}) => {
  const stage = volfsStage, view = stage.view, plane = stage.planes[0];
  stage.active = 0;
  const found = {frames: 0, sharp: 0, looked: 0, blank: 0, longest: 0};
  const start = performance.now();
  let last = start;
  for (let index = from; index !== to; index += Math.sign(to - from)) {
    view.setIndex(plane.across, index);
    await new Promise(requestAnimationFrame);
    while (waits && !stage.isComplete) await new Promise((done) => setTimeout(done, 1));
    const now = performance.now();
    found.longest = Math.max(found.longest, now - last);
    last = now;
    found.frames++;
    found.sharp += stage.isComplete;
    // reading pixels takes longer than a frame
    if (found.frames % 10 > 0) continue;
    const [x, y] = plane.pointAt(view.centre[plane.column], view.centre[plane.row]);
    found.looked++;
    found.blank += plane.canvas.getContext("2d").getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data[3] === 0;
  }
  return {...found, seconds: (performance.now() - start) / 1000};
}"""

# Drags a plane around for some seconds. Returns the longest frame in milliseconds.
PAN = """async (seconds) => {
  const plane = volfsStage.planes[0];
  volfsStage.view.zoomBy(8);
  let longest = 0, frames = 0, last = performance.now();
  const end = last + seconds * 1000;
  while (last < end) {
    const angle = frames / 40;
    plane.pan(30 * Math.cos(angle), 30 * Math.sin(angle));
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    frames++;
  }
  return {longest, frames};
}"""


class Server:
    """A server of one source, and its memory."""

    def __init__(self, volfs, source, *options):
        command = [volfs, "serve", str(source), "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().rsplit(" ", 1)[1].strip()

    def resident(self):
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def until(page, expression, seconds=60):
    """Waits until an expression of the page is true; the page's policy forbids waiting for texts of scripts."""
    end = time.monotonic() + seconds
    while not page.evaluate(f"Boolean({expression})"):
        if time.monotonic() > end:
            raise TimeoutError(expression)
        page.wait_for_timeout(2)


def first_picture(browser, address):
    """Seconds from the address to a sharp picture of all planes, and the page."""
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    start = time.monotonic()
    page.goto(address, wait_until="commit")
    until(page, "window.volfsStage?.isComplete")
    return time.monotonic() - start, page


def neuroglancer_picture(browser, address, layer):
    """Seconds from the address of Neuroglancer to a picture that no longer changes; None without it."""
    try:
        import neuroglancer
    except ImportError:
        return None
    neuroglancer.set_server_bind_address("127.0.0.1")
    viewer = neuroglancer.Viewer(token="bench")
    with viewer.txn() as state:
        state.layers["data"] = neuroglancer.ImageLayer(source=f"{address}{layer}|zarr3:")
        state.layout = "4panel"
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    start = last = time.monotonic()
    page.goto(str(viewer), wait_until="commit")
    seen = b""
    while time.monotonic() - last < 3 and time.monotonic() - start < 60:
        page.wait_for_timeout(50)
        shot = page.screenshot()
        if shot != seen:
            seen, last = shot, time.monotonic()
    page.close()
    return last - start


def vast_layer(folder):
    """A WKW layer of 32 x 20000 x 20000 samples with a pyramid, whose files are missing but one: all samples are 0."""
    header = b"WKW" + bytes([1, 0x05, 1, 1, 1])
    mags = [1, 2, 4, 8, 16, 32]
    for mag in mags:
        path = folder / "vast" / "color" / str(mag)
        path.mkdir(parents=True)
        (path / "header.wkw").write_bytes(header + bytes(8))
    box = {"topLeft": [0, 0, 0], "width": 20000, "height": 20000, "depth": 32}
    layer = {"name": "color", "category": "color", "elementClass": "uint8", "dataFormat": "wkw", "boundingBox": box,
             "wkwResolutions": [{"resolution": mag, "cubeLength": 32} for mag in mags]}
    properties = {"id": {"name": "vast", "team": ""}, "scale": [4, 4, 30], "dataLayers": [layer]}
    (folder / "vast" / "datasource-properties.json").write_text(json.dumps(properties))
    return folder


def measure(volfs, volume, browser):
    """Yields rows of what is measured on one volume: name and text."""
    with Server(volfs, volume.parent, "--allow-origin", "*") as server:
        at = f"{server.address}{volume.name}/"
        seconds, page = first_picture(browser, at)
        yield "first picture", f"{seconds:.2f} s"
        count = page.evaluate("volfsStage.view.layer.shape[volfsStage.planes[0].across]")
        middle, far = count // 2, count // 2 + min(100, count // 2 - 1)
        for name, plan in [("scrubbing, not yet decoded", {"from": middle + 1, "to": far, "waits": True}),
                           ("scrubbing, decoded", {"from": far, "to": middle, "waits": True}),
                           ("scrubbing, not yet decoded, without waiting", {"from": middle - 1, "to": 0, "waits": False})]:
            found = page.evaluate(SCRUB, plan)
            rate = found["frames"] / found["seconds"]
            yield name, (f"{rate:.0f} slices/s, {found['sharp']} of {found['frames']} sharp, {found['blank']} of {found['looked']} blank, "
                         f"longest frame {found['longest']:.0f} ms")
        memory = page.evaluate("performance.memory.usedJSHeapSize") / 2**20
        yield "memory", f"page {memory:.0f} MiB of scripts, server {server.resident():.0f} MiB anonymous"
        page.close()
    layer = "data.ome.zarr" if volume.suffix == ".zgy" else None
    if layer:
        with Server(volfs, volume.parent, "--allow-origin", "*") as server:
            seconds = neuroglancer_picture(browser, f"{server.address}{volume.name}/", layer)
            if seconds is not None:
                yield "first picture of Neuroglancer", f"{seconds:.2f} s"


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench page", description=__doc__.splitlines()[0])
    parser.add_argument("--volfs", required=True, help="the program")
    parser.add_argument("volumes", nargs="*", type=Path, help="files or folders of volumes")
    args = parser.parse_args()
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    print(f"Load {os.getloadavg()[0]:.2f}, {os.cpu_count()} processors, which server and browser share.\n")
    print("| volume | measured | |\n|---|---|---|")
    graphics = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", *graphics])
        for volume in args.volumes:
            for name, text in measure(args.volfs, volume.resolve(), browser):
                print(f"| {volume.name} | {name} | {text} |", flush=True)
        with tempfile.TemporaryDirectory() as folder, Server(args.volfs, vast_layer(Path(folder))) as server:
            _, page = first_picture(browser, f"{server.address}vast/")
            found = page.evaluate(PAN, 5)
            print(f"| 20,000 x 20,000 | panning | {found['frames'] / 5:.0f} frames/s, longest {found['longest']:.0f} ms |")
        browser.close()


if __name__ == "__main__":
    main()
