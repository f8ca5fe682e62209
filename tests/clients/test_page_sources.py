"""The page of `volfs serve` in headless Chromium: slow, replaced, damaged and vast sources, and servers that end."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import urllib.request
from collections.abc import Iterator

import numpy as np
import pytest
from browser import (
    CANVAS,
    get_json,
    index_of,
    magnify,
    pixels,
    point,
    read_out,
    samples,
    server_of,
    serving,
    settle,
    show,
    until,
    wait,
)
from conftest import DATA
from test_page_colours import coloured

Image = pytest.importorskip("PIL.Image")


# data that takes long, is replaced or damaged, and servers that end

SLOW = """
window.slow = { delay: 0, part: "", asked: [], aborted: 0, inFlight: 0 };
const whole = window.fetch;
window.fetch = async (url, options) => {
  if (!String(url).includes("?box=") || !options?.signal) return whole(url, options);
  slow.asked.push(String(url));
  slow.inFlight++;
  options.signal.addEventListener("abort", () => { slow.aborted++; });
  try {
    await new Promise((done, fail) => {
      setTimeout(done, String(url).includes(slow.part) ? slow.delay : 0);
      options.signal.addEventListener("abort", () => fail(new DOMException("given up", "AbortError")));
    });
    return await whole(url, options);
  } finally { slow.inFlight--; }
};
"""


def test_scrubbing_cold_data_shows_no_blank_and_gives_up_old_requests(page, demo):
    page.add_init_script(SLOW)
    show(page, demo, "north.zgy")
    page.evaluate("slow.delay = 150; volfsStage.view.set({ hasCrosshair: false })")
    page.wait_for_timeout(500)
    page.evaluate("slow.asked = []; slow.aborted = 0")
    page.locator(CANVAS).nth(0).focus()
    for step in range(30):
        page.keyboard.press("PageDown" if step < 5 else ".")
        page.evaluate("new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame))")
        for n in range(3):
            assert (pixels(page, n)[1][:, 3] == 255).all(), step
    assert page.evaluate("slow.aborted") > 0 and page.evaluate("slow.inFlight") <= 8
    wait(page)
    magnify(page)
    array = samples(demo, "north.zgy", "data")[1]
    at, colours = pixels(page, 0)
    assert set(at[0]) == {index_of(page)[0]} and len({tuple(c) for c in colours}) > 20 and array.shape[0] > at[0][0]


def test_a_coarse_picture_comes_first_in_colours_of_its_own(page, demo):
    page.add_init_script(SLOW + "Object.assign(slow, { delay: 4000, part: 'lod0' });")
    page.goto(f"{demo}/north.zgy/")
    until(page, "window.volfsStage?.store.kept.size === 3 && !volfsStage.pending")
    page.evaluate("volfsStage.view.set({ hasCrosshair: false })")
    until(page, "!volfsStage.pending")
    assert not page.evaluate("volfsStage.isComplete")
    colours = pixels(page, 0)[1]
    # not black and white, which all values beyond a range would be
    assert (colours[:, 3] == 255).mean() > 0.95 and len({tuple(c) for c in colours}) > 50
    page.wait_for_timeout(400)
    assert "range=" not in page.url
    wait(page)
    until(page, "location.hash.includes('range=')")


def test_neighbours_are_fetched_in_the_direction_of_travel(page, demo):
    page.add_init_script(SLOW)
    show(page, demo, "cells")
    page.wait_for_timeout(500)
    # nothing but what is seen was fetched at first: the planes and a profile
    assert page.evaluate("slow.asked.filter((url) => url.includes('lod0.raw')).length") <= 4
    page.locator(CANVAS).nth(0).focus()
    page.evaluate("slow.asked = []")
    for _ in range(3):
        page.keyboard.press(".")
        wait(page)
        page.wait_for_timeout(50)
    page.wait_for_timeout(1000)
    first = page.evaluate("slow.asked.map((url) => Number(url.match(/box=(\\d+):/)?.[1])).filter((n) => n > 0)")
    here = index_of(page)[0]
    assert here + 1 in first and here + 4 in first
    page.evaluate("slow.delay = 300")
    page.keyboard.press(".")
    page.wait_for_timeout(100)
    assert page.evaluate("volfsStage.isComplete")


# the boxes of the finest level that the page keeps, with their samples
KEPT = """[...volfsStage.store.kept].filter(([key]) => key.includes("lod0.raw?box="))
    .map(([key, samples]) => [key.split("box=")[1], [...samples]])"""


def test_a_replaced_source_is_not_mixed(page, tmp_path):
    source = tmp_path / "data"
    source.mkdir()
    shutil.copy(DATA / "zgy" / "v3_float32.zgy", source / "a.zgy")
    with serving(source) as address:
        show(page, address, "a.zgy")
        magnify(page)
        old = samples(address, "a.zgy", "data")[1]
        content = bytearray((source / "a.zgy").read_bytes())
        # the same with other samples: those of the first brick
        at = content.find(old[0, 0, :8].tobytes())
        assert at > 0
        content[at : at + 4096] = np.linspace(-5, 5, 1024, dtype="<f4").tobytes()
        (tmp_path / "new").write_bytes(content)
        os.replace(tmp_path / "new", source / "a.zgy")
        page.locator(CANVAS).nth(0).focus()
        # the server looks for a new version about once a second
        for key in ["Home", *"." * 30]:
            page.keyboard.press(key)
            page.wait_for_timeout(200)
            if page.locator(".banner").is_visible():
                break
        assert "has changed" in page.locator(".banner").inner_text()
        page.wait_for_timeout(500)
        # what is seen is all of the old one, also where a plane waits for a slice
        limits = page.evaluate("volfsStage.view.range")
        about = get_json(f"{address}/a.zgy/data/lod0.json")
        for n in (1, 2):
            at, colours = pixels(page, n)
            np.testing.assert_array_equal(colours[:, :3], coloured(old[at], about, "Seismic", limits))
        # the plane that moves may show a coarser level: all samples that the page has are old ones
        kept = page.evaluate(KEPT)
        assert kept
        for box, part in kept:
            region = tuple(slice(*(int(end) for end in one.split(":"))) for one in box.split(","))
            assert old[region].ravel().tolist() == part, box
        page.get_by_role("button", name="Show the new one").click()
        settle(page)
        new = samples(address, "a.zgy", "data")[1]
        assert (new != old).any()
        page.mouse.move(*point(page, 0, *page.evaluate("[volfsStage.view.index[1], volfsStage.view.index[2]]")))
        assert float(read_out(page).rsplit("·", 1)[1]) == float(str(new[tuple(index_of(page))]))


def test_a_file_that_was_just_written_goes_on(page, tmp_path):
    source = tmp_path / "data"
    source.mkdir()
    with serving(source) as address:
        # the server reads it once more soon: a later write could have the same time
        (source / "a.zgy").write_bytes((DATA / "demo" / "north.zgy").read_bytes())
        show(page, address, "a.zgy")
        page.evaluate("for (const samples of volfsStage.store.kept.values()) samples.isOld = true")
        known = page.evaluate("volfsStage.store.version")
        place = f"{address}/a.zgy/data/lod0.json"
        while urllib.request.urlopen(place).headers["Volfs-Version"] == known:
            page.wait_for_timeout(100)
        page.locator(CANVAS).nth(0).focus()
        page.keyboard.press("Home")
        until(page, f"volfsStage.store.version !== '{known}' && !volfsStage.store.renewal")
        wait(page)
        assert page.locator(".banner").is_hidden()
        # nothing of before is shown
        assert page.evaluate("volfsStage.store.kept.size > 0 && ![...volfsStage.store.kept.values()].some((samples) => samples.isOld)")
        old = samples(address, "a.zgy", "data")[1]
        for box, part in page.evaluate(KEPT):
            region = tuple(slice(*(int(end) for end in one.split(":"))) for one in box.split(","))
            assert old[region].ravel().tolist() == part, box


def test_a_layer_of_a_replaced_source_is_not_laid_over_an_old_one(page, tmp_path):
    source = tmp_path / "data"
    source.mkdir()
    shutil.copy(DATA / "vds" / "scaled.vds", source / "a.vds")
    with serving(source) as address:
        show(page, address, "a.vds", "bytes")
        old = samples(address, "a.vds", "bytes")[1]
        shutil.copy(DATA / "vds" / "no-value.vds", tmp_path / "new")
        os.replace(tmp_path / "new", source / "a.vds")
        # the server looks for a new version about once a second
        place = f"{address}/a.vds/words/lod0.json"
        known = page.evaluate("volfsStage.store.version")
        assert known
        while urllib.request.urlopen(place).headers["Volfs-Version"] == known:
            page.wait_for_timeout(100)
        page.select_option("#overlay", label="words")
        page.wait_for_selector(".banner:visible")
        assert "has changed" in page.locator(".banner").inner_text()
        page.wait_for_timeout(500)
        # all that is shown and kept is old
        assert page.evaluate("volfsStage.view.overlay.layer") is None
        kept = page.evaluate(KEPT)
        assert kept and page.evaluate("[...volfsStage.store.kept.keys()].every((key) => key.includes('/bytes/'))")
        for box, part in kept:
            region = tuple(slice(*(int(end) for end in one.split(":"))) for one in box.split(","))
            assert old[region].ravel().tolist() == part, box
        page.get_by_role("button", name="Show the new one").click()
        settle(page)
        # a layer that was chosen after one more change is of the new one as well
        shutil.copy(DATA / "vds" / "scaled.vds", tmp_path / "new")
        os.replace(tmp_path / "new", source / "a.vds")
        known = page.evaluate("volfsStage.store.version")
        while urllib.request.urlopen(place).headers["Volfs-Version"] == known:
            page.wait_for_timeout(100)
        page.select_option("#layer-choice", label="words")
        until(page, f"window.volfsStage?.view.layer.name === 'words' && volfsStage.store.version !== '{known}'")
        settle(page)
        assert page.evaluate("volfsStage.view.layer.version === volfsStage.store.version")
        page.goto("about:blank")


@pytest.mark.parametrize(
    ("dataset", "bad"), [("bad_cut_in_brick", 16), ("bad_zfp_magic", 8), ("bad_entry_past_end", 8)]
)
def test_a_damaged_brick_is_hatched_and_says_why(page, server, failures, dataset, bad):
    failures.append("status of 500")
    show(page, server, f"zgy/{dataset}.zgy")
    magnify(page)
    until(page, "volfsStage.planes[2].reasons.length > 0")
    wait(page)
    at, colours = pixels(page, 2)
    is_bad = (at[0] >= bad) & (at[0] < bad + 8)
    assert is_bad.any() and not is_bad.all()
    assert (colours[~is_bad][:, 3] == 255).all() and len({tuple(c) for c in colours[~is_bad]}) > 5
    red = [c for c in colours[is_bad] if c[0] > c[1] + 40 and c[0] > c[2] + 40]
    assert len(red) > 5 and not any((c == (0x30, 0x48, 0x38, 255)).all() for c in colours[is_bad])
    page.mouse.move(*point(page, 2, 3, bad + 1))
    assert re.search(rf"cannot be read: lod 0, brick \[{bad // 8}, 0, 0\]", read_out(page))
    assert "brick" in page.locator(CANVAS).nth(2).get_attribute("title")
    page.mouse.move(*point(page, 2, 3, 2))
    assert "cannot be read" not in read_out(page)
    # a section that lies in the brick alone
    page.evaluate(f"volfsStage.view.setIndex(0, {bad + 1})")
    wait(page)
    assert page.evaluate("volfsStage.planes[0].reasons.length") > 0


def test_a_lost_server_comes_back(page, failures):
    failures += ["ERR_CONNECTION", "ERR_EMPTY_RESPONSE"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serving(DATA / "demo", port=port) as address:
        show(page, address, "north.zgy")
    page.locator(CANVAS).nth(0).focus()
    page.keyboard.press("Home")
    until(page, "document.querySelector('.stage .status').textContent.includes('server does not answer')")
    page.keyboard.press(".")
    with serving(DATA / "demo", port=port) as address:
        until(page, "!document.querySelector('.stage .status').textContent.includes('server does not answer')")
        wait(page)
        assert index_of(page)[0] == 1 and page.locator(".banner").is_hidden()
        page.mouse.move(*point(page, 0, 40, 40))
        array = samples(address, "north.zgy", "data")[1]
        row, column = (int(n) for n in re.match(r"\[1, (\d+), (\d+)\]", read_out(page)).groups())
        assert np.float32(read_out(page).rsplit("·", 1)[1]) == array[1, row, column]


STATUS = "document.querySelector('.stage .status').textContent"


def test_a_long_wait_says_for_what_and_how_long(page, demo):
    page.add_init_script(SLOW)
    show(page, demo, "cells")
    page.select_option("#overlay", label="segmentation")
    until(page, "volfsStage.view.overlay.layer !== null")
    wait(page)
    page.evaluate("slow.delay = 5000")
    page.locator(CANVAS).nth(0).focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(500)
    assert "Waiting" not in page.evaluate(STATUS)
    until(page, rf"/^Waiting for \d+ bricks? of cells \(color\) and \d+ bricks? of cells \(segmentation\)\. 2 s\./.test({STATUS})")
    # the seconds are seen, and not read out each time
    assert page.locator(".stage .status span[aria-hidden]").inner_text().startswith("2 s")
    # the server is there
    until(page, f"/ 4 s/.test({STATUS})")
    assert "does not answer" not in page.evaluate(STATUS)
    wait(page)
    assert "Waiting" not in page.evaluate(STATUS) and " s." not in page.evaluate(STATUS)


def test_a_server_that_stands_still_is_told_from_a_slow_source(page):
    with server_of(DATA / "demo") as (address, process):
        show(page, address, "north.zgy")
        page.wait_for_timeout(500)
        process.send_signal(signal.SIGSTOP)
        try:
            page.locator(CANVAS).nth(0).focus()
            page.keyboard.press("End")
            until(page, rf"/^Waiting for \d+ bricks? of north.zgy \(data\)\. [12] s/.test({STATUS})")
            until(page, rf"/^The server does not answer\. Waiting for it\. \d+ s/.test({STATUS})")
        finally:
            process.send_signal(signal.SIGCONT)
        wait(page)
        until(page, f"!/answer|Waiting/.test({STATUS})")
        # also before anything is shown
        process.send_signal(signal.SIGSTOP)
        try:
            page.evaluate("location.hash = '#layer=data'; dispatchEvent(new PopStateEvent('popstate'))")
            until(page, "/^Waiting for the description of data\\. 1 s/.test(document.querySelector('#layer > .status')?.textContent)")
        finally:
            process.send_signal(signal.SIGCONT)
        until(page, "!document.querySelector('#layer > .status')")
        page.goto("about:blank")


# large data


@pytest.fixture(scope="module")
def vast(tmp_path_factory) -> Iterator[str]:
    """Serve a WKW dataset of 32 x 100000 x 100000 samples, all 0 but those of its last cube; yield the address."""
    source = tmp_path_factory.mktemp("vast")
    count, cube = 100_000, 32
    last = (count - 1) // cube
    # blocks of 32 samples along each axis, one in a cube, stored raw, uint8
    header = b"WKW" + bytes([1, 0x05, 1, 1, 1])
    corner = header + (16).to_bytes(8, "little") + b"\x07" * cube**3
    for name, content in {"header.wkw": header + bytes(8), f"z0/y{last}/x{last}.wkw": corner}.items():
        path = source / "color" / "1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    box = {"topLeft": [0, 0, 0], "width": count, "height": count, "depth": cube}
    layer = {"name": "color", "category": "color", "elementClass": "uint8", "dataFormat": "wkw", "boundingBox": box}
    layer["wkwResolutions"] = [{"resolution": 1, "cubeLength": cube}]
    properties = {"id": {"name": "vast", "team": ""}, "scale": [4, 4, 30], "dataLayers": [layer]}
    (source / "datasource-properties.json").write_text(json.dumps(properties))
    with serving(source) as address:
        yield f"{address}/{source.name}/"


def test_a_vast_slice_without_levels_is_shown_in_parts(page, vast):
    tiles: list[str] = []
    page.on("request", lambda request: tiles.append(request.url) if "?box=" in request.url else None)
    page.goto(vast)
    wait(page)
    assert len(tiles) < 500
    note = page.locator(".plane-note").nth(0)
    assert "no level that is coarse enough" in note.inner_text()
    page.evaluate("volfsStage.view.set({ centre: [16, 99990, 99990] }); volfsStage.view.zoomBy(1000)")
    page.evaluate("volfsStage.view.setIndex(1, 99995); volfsStage.view.setIndex(2, 99995)")
    wait(page)
    assert "coarse enough" not in note.inner_text()
    page.mouse.move(*point(page, 0, 99997, 99998))
    text = read_out(page)
    assert re.match(r"\[\d+, 99998, 99997\]", text) and text.rsplit("·", 1)[1].strip() == "7"
    page.keyboard.down("Control")
    page.mouse.wheel(0, 100000)
    page.keyboard.up("Control")
    page.wait_for_timeout(500)
    wait(page)
    assert len(tiles) < 1500
