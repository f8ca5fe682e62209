"""The page of `volfs serve` in headless Chromium: the list, linked planes, addresses, and what happens to sources.

Needs playwright for Python, and Chromium: that of the environment variable CHROMIUM, or of the system.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import struct
import subprocess
import time
import urllib.parse
import urllib.request

import numpy as np
import pytest
from browser import CANVAS, get_json, index_of, magnify, pixels, point, read_out, samples, serving, show, until, wait
from conftest import DATA, volfs

Image = pytest.importorskip("PIL.Image")


# the list


def test_the_list_shows_all_datasets(page, demo):
    page.goto(f"{demo}/")
    page.wait_for_selector(".cards li:nth-child(4) .about b")
    assert page.locator(".cards .name").all_inner_texts() == ["cells", "cloud-survey", "north.zgy", "south.vds"]
    until(page, "[...document.images].every((image) => image.complete && image.naturalWidth > 0)")
    survey = "128 × 96 × 192 (inline, crossline, sample), float32"  # noqa: RUF001
    assert survey in page.locator("li", has_text="north.zgy").last.inner_text()
    assert "(z, y, x), uint8" in page.locator("li", has_text="cells").last.inner_text()
    until(page, "document.querySelectorAll('svg.survey-map a').length >= 2")
    page.locator(".cards").get_by_role("link", name="south.vds").click()
    until(page, "window.volfsStage?.isComplete")
    page.go_back()
    page.wait_for_selector(".cards li:nth-child(4)")


def test_the_list_looks_into_folders_and_says_what_is_broken(page, server, failures):
    failures += ["status of 404", "status of 500"]
    page.goto(f"{server}/")
    until(
        page,
        "/datasets$/.test(document.querySelector('h1')?.textContent) && document.querySelector('.status').textContent === ''",
    )
    while "more" in page.locator("#main > .status").last.text_content():
        page.mouse.wheel(0, 5000)
        page.wait_for_timeout(100)
    names = page.locator(".cards .name").all_text_contents()
    expected = [path for path in DATA.glob("*/*") if path.name.endswith((".zgy", ".vds", ".h5", ".zarr"))]
    assert {path.name for path in expected} <= set(names) and ".volfs" not in names
    titles = page.locator(".groups h2").all_inner_texts()
    assert {"demo/", "zgy/", "vds/", "wkw/", "zarr/", "hdf5/"} <= set(titles) and titles == sorted(titles)
    assert "bad_magic.zgy" in page.locator(".groups section", has=page.locator("h2", has_text="zgy/")).inner_text()
    page.get_by_role("searchbox").fill("bad_magic")
    page.wait_for_selector(".cards li.broken:not([hidden])")
    assert page.locator(".cards li").count() == 1
    assert "not a ZGY file" in page.locator(".cards li").inner_text()
    page.get_by_role("searchbox").fill("north.zgy")
    page.locator(".cards li .name").click()
    until(page, "window.volfsStage?.isComplete")


def test_the_list_is_sorted(page, demo):
    page.goto(f"{demo}/")
    page.wait_for_selector(".cards li:nth-child(4) .about b")
    for order, names in [
        ("size", ["north.zgy", "cells", "south.vds", "cloud-survey"]),
        ("format", ["cloud-survey", "south.vds", "cells", "north.zgy"]),
        ("name", ["cells", "cloud-survey", "north.zgy", "south.vds"]),
    ]:
        page.select_option("#order", label=order)
        page.wait_for_timeout(500)
        assert page.locator(".cards .name").all_inner_texts() == names


def test_ten_thousand_datasets_are_listed_with_few_requests(page, tmp_path):
    first = tmp_path / "many" / "s00000.zgy"
    first.parent.mkdir()
    shutil.copy(DATA / "zgy" / "v3_size_1x1x1.zgy", first)
    for n in range(1, 10_000):
        os.link(first, first.with_name(f"s{n:05}.zgy"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with serving(tmp_path) as address:
        page.goto(f"{address}/")
        until(page, "document.querySelector('h1')?.textContent === '10000 datasets'")
        page.wait_for_timeout(1000)
        # listings, and descriptions of what is seen and of some hundreds for the map
        assert len(asked) < 2500
        page.get_by_role("searchbox").fill("s09987")
        assert page.locator(".cards li").all_inner_texts()[0].startswith("s09987.zgy")
        page.goto(f"{address}/many/")
        until(page, "document.querySelector('h1')?.textContent === '10000 datasets'")
        page.goto("about:blank")


# planes


def test_planes_are_linked(page, demo):
    show(page, demo, "north.zgy")
    assert page.locator(CANVAS).count() == 3
    before = index_of(page)
    # the time slice: its crosshair is dragged to other lines
    column, row = before[1], before[0]
    x, y = point(page, 2, column, row)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(*point(page, 2, column + 17, row - 9), steps=5)
    page.mouse.up()
    wait(page)
    moved = index_of(page)
    assert abs(moved[0] - (row - 9)) <= 1 and abs(moved[1] - (column + 17)) <= 1 and moved[2] == before[2]
    assert page.locator("#field0").input_value() == str(1000 + 2 * moved[0])
    assert page.locator("#field1").input_value() == str(2000 + moved[1])
    # the line alone, far from the other one
    x, y = point(page, 0, moved[1], moved[2] + 40)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(point(page, 0, moved[1] - 20, 0)[0], y + 5, steps=5)
    page.mouse.up()
    assert abs(index_of(page)[1] - (moved[1] - 20)) <= 1 and index_of(page)[2] == moved[2]
    # fields take line numbers and times
    for field, value, axis, index in [
        ("#field0", "1040", 0, 20),
        ("#field1", "2011", 1, 11),
        ("#field2", "1400", 2, 50),
    ]:
        page.locator(field).fill(value)
        page.locator(field).press("Enter")
        assert index_of(page)[axis] == index
    page.locator("#slider1").fill("77")
    wait(page)
    assert index_of(page) == [20, 77, 50] and page.locator("#field1").input_value() == "2077"
    magnify(page)
    array = samples(demo, "north.zgy", "data")[1]
    # each plane has the slice that its field names
    for n, at in enumerate((20, 77, 50)):
        assert set(pixels(page, n)[0][page.evaluate(f"volfsStage.planes[{n}].across")]) == {at}
    assert str(array[20, 77, 50]) in read_out(page) or "·" in read_out(page)


def test_wheel_zoom_pan_and_jump(page, demo):
    show(page, demo, "north.zgy")

    def view():
        return page.evaluate(
            "({ zoom: volfsStage.view.zoom, centre: volfsStage.view.centre, index: volfsStage.view.index })"
        )

    before = view()
    x, y = point(page, 0, 30, 60)
    page.mouse.move(x, y)
    page.mouse.wheel(0, 100)
    until(page, f"volfsStage.view.index[0] === {before['index'][0] + 1}")
    page.mouse.wheel(0, -100)
    until(page, f"volfsStage.view.index[0] === {before['index'][0]}")
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    until(page, f"volfsStage.view.zoom > {2 * before['zoom']}")
    # what was under the pointer stays there
    assert np.allclose(point(page, 0, 30, 60), (x, y), atol=2)
    zoomed = view()
    page.mouse.down()
    page.mouse.move(x + 25, y - 40, steps=4)
    page.mouse.up()
    assert np.allclose(point(page, 0, 30, 60), (x + 25, y - 40), atol=2)
    assert view()["index"] == zoomed["index"]
    page.mouse.click(*point(page, 0, 35, 65), button="right")
    assert np.allclose(view()["index"], [zoomed["index"][0], 35, 65], atol=1)
    page.keyboard.press("0")
    until(page, f"Math.abs(volfsStage.view.zoom - {before['zoom']}) < 1e-6 && volfsStage.view.isFitted")


def test_coarser_levels_are_shown_when_zoomed_out(page, demo):
    show(page, demo, "north.zgy")
    page.locator(CANVAS).nth(0).focus()
    for _ in range(6):
        page.keyboard.press("-")
    until(page, "volfsStage.lod === 2")
    wait(page)
    page.mouse.move(*point(page, 0, 40, 40))
    assert "LOD 2: " in read_out(page)
    array = samples(demo, "north.zgy", "data", 2)[1]
    assert np.float32(read_out(page).rsplit("LOD 2: ", 1)[1]) in array


def test_keys(page, demo):
    show(page, demo, "north.zgy")
    page.locator(CANVAS).nth(0).focus()
    steps = [("Home", (0, 47, 95)), (".", (1, 47, 95)), ("PageDown", (11, 47, 95)), (",", (10, 47, 95)),
             ("PageUp", (0, 47, 95)),
             ("End", (127, 47, 95)), ("ArrowRight", (127, 48, 95)), ("Shift+ArrowLeft", (127, 38, 95)),
             ("ArrowDown", (127, 38, 96)),
             ("Shift+ArrowUp", (127, 38, 86))]  # fmt: skip
    for key, index in steps:
        page.keyboard.press(key)
        assert tuple(index_of(page)) == index, key
    for key, name in [("a", "hasCrosshair"), ("b", "hasScaleBar"), ("n", "isNorthUp"), ("w", "isWiggle")]:
        before = page.evaluate(f"volfsStage.view.{name}")
        page.keyboard.press(key)
        assert page.evaluate(f"volfsStage.view.{name}") is not before
        page.keyboard.press(key)
    zoom = page.evaluate("volfsStage.view.zoom")
    page.keyboard.press("+")
    assert page.evaluate("volfsStage.view.zoom") > zoom
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible() and "Right click" in page.get_by_role("dialog").inner_text()
    page.keyboard.press("Escape")
    # keys mean text in a field
    page.locator("#field0").fill("")
    page.locator("#field0").press("1")
    assert page.locator("#field0").input_value() == "1"


def test_one_plane_is_made_large(page, demo):
    show(page, demo, "north.zgy")
    small = page.locator(CANVAS).nth(1).bounding_box()
    page.locator(CANVAS).nth(1).dblclick(position={"x": 60, "y": 60})
    until(page, "volfsStage.view.maximized === 1")
    wait(page)
    assert page.locator(f"{CANVAS}:visible").count() == 1
    assert page.locator(CANVAS).nth(1).bounding_box()["width"] > 1.5 * small["width"]
    page.keyboard.press(" ")
    until(page, "volfsStage.view.maximized === null")
    page.locator(CANVAS).nth(2).focus()
    page.keyboard.press(" ")
    until(page, "volfsStage.view.maximized === 2")
    page.get_by_role("button", name="Maximise the plane of sample").click()
    until(page, "volfsStage.view.maximized === null")


def test_the_address_holds_the_view(page, demo):
    show(page, demo, "cells")
    page.select_option("#overlay", label="segmentation")
    until(page, "volfsStage.view.overlay.layer !== null")
    page.select_option("#map", label="Magma")
    page.locator("#low").fill("12")
    page.locator("#high").fill("180.5")
    page.locator("#high").press("Enter")
    page.mouse.move(*point(page, 0, 30, 60))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    page.mouse.wheel(0, 300)
    page.mouse.click(*point(page, 0, 40, 44), button="right")
    page.locator(CANVAS).nth(1).dblclick(position={"x": 60, "y": 60})
    page.wait_for_timeout(600)
    held = "((view) => [view.encode(), view.index, view.range, view.map, view.maximized])(volfsStage.view)"
    before, address = page.evaluate(held), page.url
    assert before[1][1:] == [44, 40] and before[2:] == [[12, 180.5], "Magma", 1]
    for _ in range(2):
        page.goto("about:blank")
        page.goto(address)
        wait(page)
        until(page, "volfsStage.view.overlay.layer !== null")
        page.wait_for_timeout(400)
        assert page.evaluate(held) == before and page.url == address


def test_back_and_forward(page, demo):
    show(page, demo, "cells")
    page.wait_for_timeout(400)
    first = index_of(page)
    page.mouse.click(*point(page, 0, 20, 30), button="right")
    page.wait_for_timeout(400)
    second = index_of(page)
    assert second[0] == first[0] and np.allclose(second[1:], [30, 20], atol=1)
    page.select_option("#layer-choice", label="segmentation")
    until(page, "volfsStage.view.layer.name === 'segmentation'")
    wait(page)
    page.go_back()
    until(page, "volfsStage.view.layer.name === 'color'")
    wait(page)
    assert index_of(page) == second and page.locator("#layer-choice").input_value() == "0"
    page.go_back()
    until(page, f"volfsStage.view.index.join() === '{','.join(map(str, first))}'")
    page.go_forward()
    until(page, f"volfsStage.view.index.join() === '{','.join(map(str, second))}'")
    page.go_forward()
    until(page, "volfsStage.view.layer.name === 'segmentation'")


def test_time_slices_have_the_proportions_of_the_world(page, server):
    show(page, server, "zgy/v3_rotated.zgy")
    steps = np.array(get_json(f"{server}/zgy/v3_rotated.zgy/dataset.json")["geometry"]["affine"]["index_to_world"])[
        :, :2
    ]
    lengths = np.hypot(*steps)

    def ends():
        return np.array(page.evaluate("[[0, 0], [1, 0], [0, 1]].map((at) => volfsStage.planes[2].pointAt(...at))"))

    assert page.evaluate("[volfsStage.planes[2].row, volfsStage.planes[2].column]") == [0, 1]
    origin, column, row = ends()
    assert np.isclose(np.hypot(*(row - origin)) / np.hypot(*(column - origin)), lengths[0] / lengths[1])
    page.get_by_role("button", name="North up").click()
    wait(page)
    origin, column, row = ends()
    for vector, (east, north) in ((row - origin, steps[:, 0]), (column - origin, steps[:, 1])):
        assert np.allclose(vector / np.hypot(*vector), np.array([east, -north]) / np.hypot(east, north))
    assert page.locator(".north-arrow:visible").count() == 1
    page.get_by_role("button", name="Square samples").click()
    page.get_by_role("button", name="North up").click()
    wait(page)
    assert page.evaluate("new Set([0, 1, 2].map((axis) => volfsStage.view.pixels(axis))).size") == 1


def test_sections_are_stretched_and_wiggles_drawn(page, demo):
    show(page, demo, "north.zgy")
    before = page.evaluate("volfsStage.view.pixels(2)")
    page.select_option("#vertical", label="× 2")  # noqa: RUF001
    assert np.isclose(page.evaluate("volfsStage.view.pixels(2)"), 2 * before)
    page.get_by_role("button", name="Wiggles").click()
    magnify(page, 8)
    colours = {tuple(colour) for colour in pixels(page, 0)[1]}
    # black on white, with greys at edges
    assert (255, 255, 255, 255) in colours and all(max(c[:3]) - min(c[:3]) < 3 for c in colours)


def test_trace_headers_are_a_table(page, demo):
    page.goto(f"{demo}/south.vds/#layer=SEGYTraceHeader")
    page.wait_for_selector("table.words td")
    headers = samples(demo, "south.vds", "SEGYTraceHeader")[1]
    layer = get_json(f"{demo}/south.vds/SEGYTraceHeader/lod0.json")
    order = get_json(f"{demo}/south.vds/dataset.json").get("vds", {}).get("segy", {}).get("dataEndianness")
    for i, j in [(32, 40), (5, 7)]:
        for axis, index in enumerate((i, j)):
            field = layer["axes"][axis]
            page.locator(f"#trace{axis}").fill(str(field["first"] + index * field["step"]))
            page.locator(f"#trace{axis}").press("Enter")
        page.wait_for_selector(f".status:text('Trace [{i}, {j}]')")
        rows = dict(row.split("\t")[::2] for row in page.locator("table.words tbody tr").all_inner_texts())
        words = struct.unpack_from(("<" if order == "little" else ">") + "2i", headers[i, j].tobytes(), 188)
        assert (rows["Inline"], rows["Crossline"]) == tuple(map(str, words))


def test_downloads_and_copied_lines_read_the_plane(page, demo, tmp_path):
    show(page, demo, "north.zgy")
    magnify(page, 8)
    page.evaluate("volfsStage.view.setIndex(0, 33)")
    page.wait_for_timeout(600)
    array = samples(demo, "north.zgy", "data")[1]
    for name, title in [("plane", "Plane as NumPy"), ("box", "Box in view as NumPy")]:
        link = page.locator("a.download", has_text=title)
        address = urllib.parse.urljoin(page.url, link.get_attribute("href"))
        ranges = [part for part in urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["box"][0].split(",")]
        where = tuple(
            int(part) if ":" not in part else slice(*(int(n) if n else None for n in part.split(":")))
            for part in ranges
        )
        with page.expect_download() as download:
            link.click()
        download.value.save_as(tmp_path / name)
        got = np.load(tmp_path / name)
        assert got.size == array[where].size and 0 < got.size < array.size
        np.testing.assert_array_equal(got.squeeze(), array[where].squeeze())
    assert ranges[0] != ":"
    lines = dict(text.split("\n")[:2] for text in page.locator(".snippet").all_inner_texts())
    curl = shlex.split(lines["curl"])
    subprocess.run([*curl, "-sS"], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "plane.npy").squeeze(), array[33])
    np.testing.assert_array_equal(eval(lines["HTTP, NumPy"], {"np": np, "urllib": urllib}), array[33])
    cat = shlex.split(lines["volfs cat"].replace("SOURCE", str(DATA / "demo")).split(" > ")[0])
    data = subprocess.run([volfs(), *cat[1:]], check=True, capture_output=True).stdout
    assert data == array[33].tobytes()
    with page.expect_download() as download:
        page.get_by_role("button", name="Picture (.png)").click()
    assert Image.open(download.value.path()).size[0] > 300


# other programs, access, and screens


def test_neuroglancer_draws_what_the_page_links_to(launch):
    neuroglancer = pytest.importorskip("neuroglancer")
    neuroglancer.set_server_bind_address("127.0.0.1")
    viewer = neuroglancer.Viewer(token="volfs")
    graphics = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
    with serving(DATA / "demo", "--neuroglancer", viewer.get_viewer_url()) as address:
        browser = launch(*graphics)
        page = browser.new_page(viewport={"width": 800, "height": 600})
        page.goto(f"{address}/cells/")
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
        browser.close()
        assert chunks and set(chunks) == {200}
        assert colours >= 50


def test_a_token_is_carried_on(page, tmp_path):
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("a-token-of-some-length")
    with serving(DATA / "demo", "--token-file", str(token), "--neuroglancer", "http://127.0.0.1:1/v/") as address:
        assert address.endswith("/a-token-of-some-length")
        link = f"{address}/"
        test_the_list_shows_all_datasets(page, address)
        page.get_by_role("link", name="north.zgy").first.click()
        until(page, "window.volfsStage?.isComplete")
        # an address without the token: the browser has a cookie, and the page and all that it fetches are found below
        page.goto(link.replace("a-token-of-some-length/", "cells/?from=0"))
        until(page, "window.volfsStage?.isComplete")
        assert page.url.split("#")[0] == f"{link}cells/?from=0"
        viewer = page.locator("a.viewer").get_attribute("href")
        assert urllib.parse.quote(f"{link}cells/color.ome.zarr/|zarr3:", safe="") in viewer
        page.wait_for_selector(".snippet code")
        lines = [text for text in page.locator(".snippet code").all_inner_texts() if "http" in text]
        assert len(lines) >= 5 and all(f"{link}cells/" in text for text in lines)
        # another server at this host gets the cookie, but not the token
        cookies = page.context.cookies()
        assert [cookie["httpOnly"] for cookie in cookies] == [True] and "a-token" not in str(cookies)


def test_a_phone_needs_no_sideways_scrolling(page, demo):
    page.set_viewport_size({"width": 390, "height": 800})
    for path in ["", "north.zgy/", "cells/", "cells/#layer=segmentation", "south.vds/#layer=SEGYTraceHeader"]:
        page.goto("about:blank")
        page.goto(f"{demo}/{path}")
        page.wait_for_timeout(1000)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page, demo, server, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.emulate_media(color_scheme=scheme)
    pages = [f"{demo}/", f"{demo}/north.zgy/", f"{demo}/cells/#layer=segmentation", f"{server}/zarr/image-0.5.zarr/"]
    for address in [*pages, f"{server}/vds/four.vds/", f"{demo}/south.vds/#layer=SEGYTraceHeader"]:
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_timeout(1500)
        results = axe.Axe().run(page)
        assert results.violations_count == 0, f"{address}\n{results.generate_report()}"
