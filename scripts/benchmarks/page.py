"""Measures the page of `volfs serve` in headless Chromium: `scripts/bench page`.

Prints a Markdown table: the first picture, scrubbing through slices that are in the cache and through others, frames while
panning a plane of 20,000 x 20,000, and the memory of page and server after --minutes of scrubbing.
Each volume is served by a process of its own. With the Python package neuroglancer, the first picture of Neuroglancer and cold
scrubbing beside it, from the OME-Zarr view of another such server.
"""

import argparse
import contextlib
import datetime
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import figures
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

# The same in Neuroglancer, along an axis by its name: each step waits until all chunks that are seen have been drawn.
NEUROGLANCER_SCRUB = """async ({from, to, axis}) => {
  const place = viewer.navigationState.position;
  const number = viewer.coordinateSpace.value.names.indexOf(axis);
  const found = {frames: 0, waited: 0, longest: 0};
  const start = performance.now();
  let last = start;
  for (let index = from; index !== to; index += Math.sign(to - from)) {
    const at = Float32Array.from(place.value);
    at[number] = index + 0.5;
    place.value = at;
    await new Promise(requestAnimationFrame);
    found.waited += !viewer.isReady();
    while (!viewer.isReady() && performance.now() - last < 10000) await new Promise((done) => setTimeout(done, 1));
    const now = performance.now();
    found.longest = Math.max(found.longest, now - last);
    last = now;
    found.frames++;
  }
  return {...found, seconds: (performance.now() - start) / 1000};
}"""

# Goes back and forth through the slices of all planes in turn for some seconds.
LONG_SCRUB = """async (seconds) => {
  const { view, planes } = volfsStage, end = performance.now() + seconds * 1000;
  let steps = 0;
  while (performance.now() < end) {
    const plane = planes[steps % planes.length], count = view.layer.shape[plane.across], way = Math.floor(steps / planes.length) % (2 * count);
    volfsStage.active = plane.number;
    view.setIndex(plane.across, way < count ? way : 2 * count - 1 - way);
    await new Promise(requestAnimationFrame);
    steps++;
  }
  return steps;
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


def anonymous(pid):
    """MiB of anonymous memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)


class Server:
    """A server of one source, and its memory."""

    def __init__(self, volfs, source, *options):
        command = [volfs, "serve", str(source), "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().rsplit(" ", 1)[1].strip()

    def resident(self):
        return anonymous(self.process.pid)

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


def neuroglancer_page(browser, address, layer):
    """Seconds from the address of Neuroglancer to a picture that no longer changes, and the page; None without it."""
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
    return last - start, page


class PlainPage:
    """A page in a Chromium of its own, whose network nobody watches: Playwright has the browser keep 200 MiB of responses."""

    def __init__(self, chromium, options, address):
        from websockets.sync.client import connect

        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        place = ["--headless=new", "--remote-debugging-port=0", f"--user-data-dir={self.profile.name}"]
        place += ["--window-size=1280,860", "--enable-precise-memory-info"]
        self.browser = subprocess.Popen([chromium, *options, *place, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = Path(self.profile.name) / "DevToolsActivePort"
        while not port.exists() or len(port.read_text().split()) < 2:
            time.sleep(0.05)
        with urllib.request.urlopen(f"http://127.0.0.1:{port.read_text().split()[0]}/json/list") as answer:
            target = next(one for one in json.load(answer) if one["type"] == "page")
        self.stack = contextlib.ExitStack()
        self.socket = self.stack.enter_context(connect(target["webSocketDebuggerUrl"], max_size=None))

    def evaluate(self, script):
        """The value of an expression, or of its promise."""
        params = {"expression": script, "awaitPromise": True, "returnByValue": True}
        self.socket.send(json.dumps({"id": 1, "method": "Runtime.evaluate", "params": params}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == 1:
                return answer["result"]["result"].get("value")

    def wait_for_timeout(self, milliseconds):
        time.sleep(milliseconds / 1000)

    def memory(self):
        """MiB of anonymous memory of the page's process, the largest of its kind: samples lie beside the memory of scripts."""
        profile = self.profile.name.encode()
        found = [0.0]
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes()
                if b"--type=renderer" in command and profile in command:
                    found.append(anonymous(process.name))
            except OSError:
                continue
        return max(found)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()
        self.browser.terminate()
        self.browser.wait()
        self.profile.cleanup()


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


def measure(volfs, volume, browser, chromium, options, minutes):
    """Yields what is measured on one volume: name, text, and figures."""

    def first():
        with Server(volfs, volume.parent) as server:
            seconds, page = first_picture(browser, f"{server.address}{volume.name}/")
            page.close()
            return seconds

    # each from a server that has decoded nothing
    for name, times in [("first picture, first page of the browser", 1), ("first picture", 3)]:
        seconds = statistics.median(first() for _ in range(times))
        yield name, f"{seconds:.2f} s", {"seconds": seconds}
    with Server(volfs, volume.parent, "--allow-origin", "*") as server:
        at = f"{server.address}{volume.name}/"
        _, page = first_picture(browser, at)
        across = page.evaluate("volfsStage.view.layer.axes[volfsStage.planes[0].across].name")
        count = page.evaluate("volfsStage.view.layer.shape[volfsStage.planes[0].across]")
        zarr = page.evaluate("volfsStage.view.layer.zarr")
        middle, far = count // 2, count // 2 + min(100, count // 2 - 1)
        for name, plan in [("scrubbing, not yet decoded", {"from": middle + 1, "to": far, "waits": True}),
                           ("scrubbing, decoded", {"from": far, "to": middle, "waits": True}),
                           ("scrubbing, not yet decoded, without waiting", {"from": middle - 1, "to": 0, "waits": False})]:
            found = page.evaluate(SCRUB, plan)
            rate = found["frames"] / found["seconds"]
            yield name, (f"{rate:.0f} slices/s, {found['sharp']} of {found['frames']} sharp, {found['blank']} of {found['looked']} blank, "
                         f"longest frame {found['longest']:.0f} ms"), found
        page.close()
    with Server(volfs, volume.parent) as server, PlainPage(chromium, options, f"{server.address}{volume.name}/") as page:
        until(page, "window.volfsStage?.isComplete")
        found = page.evaluate(f"({LONG_SCRUB})({minutes * 60})")
        scripts = page.evaluate("performance.memory.usedJSHeapSize") / 2**20
        about = {"scripts_mib": scripts, "page_mib": page.memory(), "server_mib": server.resident(), "steps": found}
        yield (f"memory after {minutes:g} minutes of scrubbing, {found} steps",
               f"page {about['page_mib']:.0f} MiB ({scripts:.0f} of scripts), server {about['server_mib']:.0f} MiB anonymous", about)
    if not zarr:
        return
    with Server(volfs, volume.parent, "--allow-origin", "*") as server:
        opened = neuroglancer_page(browser, f"{server.address}{volume.name}/", zarr.rstrip("/"))
        if opened is None:
            return
        seconds, page = opened
        yield "first picture of Neuroglancer", f"{seconds:.2f} s", {"seconds": seconds}
        if page.evaluate("typeof viewer !== 'undefined' && viewer.coordinateSpace.value.names.length > 0"):
            found = page.evaluate(NEUROGLANCER_SCRUB, {"from": middle + 1, "to": far, "axis": across})
            rate = found["frames"] / found["seconds"]
            yield "scrubbing of Neuroglancer, not yet decoded", f"{rate:.0f} slices/s, {found['waited']} of {found['frames']} waited for, longest {found['longest']:.0f} ms", found
        page.close()


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench page", description=__doc__.splitlines()[0])
    parser.add_argument("--volfs", required=True, help="the program")
    parser.add_argument("--minutes", type=float, default=0.25, help="scrub for so long before memory is measured (0.25)")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    parser.add_argument("volumes", nargs="*", type=Path, help="files or folders of volumes")
    args = parser.parse_args()
    begin, rows = datetime.datetime.now().strftime("%Y-%m-%d %H:%M"), []
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    print(f"Load {os.getloadavg()[0]:.2f}, {os.cpu_count()} processors, which server and browser share.\n")
    print("| volume | measured | |\n|---|---|---|")
    options = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]

    def note(volume, name, text, found):
        print(f"| {volume} | {name} | {text} |", flush=True)
        rows.append({"volume": volume, "what": name} | found)

    with sync_playwright() as playwright:
        def started():
            return playwright.chromium.launch(executable_path=chromium, args=options)

        about = {"load": os.getloadavg()[0], "beside": figures.version_of("neuroglancer")}
        for volume in args.volumes:
            with started() as browser:
                for row in measure(args.volfs, volume.resolve(), browser, chromium, options, args.minutes):
                    note(volume.name, *row)
        with started() as browser, tempfile.TemporaryDirectory() as folder, Server(args.volfs, vast_layer(Path(folder))) as server:
            about["browser"] = f"Chromium {browser.version}"
            _, page = first_picture(browser, f"{server.address}vast/")
            # what the first picture left to do is no part of panning
            page.wait_for_timeout(1000)
            found = page.evaluate(PAN, 5)
            note("20,000 x 20,000", "panning", f"{found['frames'] / 5:.0f} frames/s, longest {found['longest']:.0f} ms", found | {"seconds": 5})
    if args.json:
        figures.write(args.json, args.volfs, begin, about, rows=rows)


if __name__ == "__main__":
    main()
