"""The page of `volfs serve` in headless Chromium: the line of a section, and gathers."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from browser import CANVAS, point, samples, serving, show, until, wait
from test_page_colours import array_of_zarr, coloured

Image = pytest.importorskip("PIL.Image")

LINE = "10,10,60,80,118,20"


def traces_along(points):
    """Return the traces of a section as the page has them: inlines and crosslines."""
    found = [points[0]]
    for (i0, j0), (i1, j1) in zip(points, points[1:]):
        steps = max(abs(i1 - i0), abs(j1 - j0))
        # half up, as JavaScript rounds
        found += [
            tuple(int(np.floor(a + (b - a) * n / steps + 0.5)) for a, b in ((i0, i1), (j0, j1)))
            for n in range(1, steps + 1)
        ]
    return np.array(found).T


def check_section(page, server, points):
    """Compare the section along a line with the samples, once it is shown."""
    line = ",".join(str(n) for at in points for n in at)
    until(page, f"document.querySelector('.section-canvas').dataset.line === '{line}'")
    about, array = samples(server, "north.zgy", "data")
    inlines, crosslines = traces_along(points)
    data = page.evaluate("document.querySelector('.section-canvas').toDataURL()")
    colours = np.asarray(Image.open(io.BytesIO(base64.b64decode(data.split(",")[1]))).convert("RGBA"))
    expected = coloured(array[inlines, crosslines].T, about, "Seismic", page.evaluate("volfsStage.view.range"))
    np.testing.assert_array_equal(colours[:, :, :3], expected)
    assert (colours[:, :, 3] == 255).all()
    assert page.locator(".section .status").inner_text() == f"{len(inlines)} traces"


def middle(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.mark.parametrize("way", ["mouse", "touch", "keys"])
def test_points_of_a_line_are_dragged_and_the_section_follows(page, demo, way):
    page.goto(f"{demo}/north.zgy/#line={LINE}")
    wait(page)
    check_section(page, demo, [(10, 10), (60, 80), (118, 20)])
    handles = page.locator(".line-point:visible")
    assert handles.count() == 3 and "inline 1020, crossline 2010" in handles.nth(0).get_attribute("aria-label")
    before = page.evaluate("volfsStage.view.index")
    moved = [(10, 10), (60, 80), (118, 20)]
    for n, to in [(0, (30, 22)), (2, (100, 44)), (1, (64, 30))]:
        x, y = middle(handles.nth(n))
        # the plane has crosslines as columns
        goal = point(page, 2, to[1], to[0])
        if way == "mouse":
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move(*goal, steps=6)
            page.mouse.up()
        elif way == "touch":
            touch = page.context.new_cdp_session(page)
            for kind, at in [("touchStart", (x, y)), *(("touchMove", (x + (goal[0] - x) * part, y + (goal[1] - y) * part)) for part in (0.3, 0.6, 1))]:
                touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": at[0], "y": at[1]}]})
            touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        else:
            handles.nth(n).focus()
            for less, more, by in zip(("ArrowUp", "ArrowLeft"), ("ArrowDown", "ArrowRight"), np.subtract(to, moved[n])):
                for far, count in zip(("Shift+", ""), divmod(abs(int(by)), 10)):
                    for _ in range(count):
                        page.keyboard.press(far + (more if by > 0 else less))
        until(page, f"volfsStage.view.line[{n}].join() !== '{moved[n][0]},{moved[n][1]}'")
        moved[n] = tuple(page.evaluate(f"volfsStage.view.line[{n}]"))
        assert np.allclose(moved[n], to, atol=0 if way == "keys" else 1), n
        check_section(page, demo, moved)
    # nothing else has moved, no point was added, and the address has the line
    assert page.evaluate("volfsStage.view.index") == before and page.evaluate("volfsStage.view.isFitted")
    page.wait_for_timeout(400)
    assert f"line={'%2C'.join(str(n) for at in moved for n in at)}" in page.url
    page.reload()
    wait(page)
    check_section(page, demo, moved)
    handles.nth(1).focus()
    page.keyboard.press("Delete")
    check_section(page, demo, [moved[0], moved[2]])


def test_a_section_follows_while_its_line_is_dragged(page, demo):
    page.goto(f"{demo}/north.zgy/#line={LINE}")
    wait(page)
    handle = page.locator(".line-point").nth(2)
    page.mouse.move(*middle(handle))
    page.mouse.down()
    page.mouse.move(*point(page, 2, 58, 60), steps=20)
    # it is held still
    check_section(page, demo, page.evaluate("volfsStage.view.line"))
    page.mouse.up()


def test_points_lie_right_with_north_up(page, demo):
    show(page, demo, "north.zgy")
    page.get_by_role("button", name="North up").click()
    page.get_by_role("button", name="Draw a section").click()
    for at in [(20, 20), (70, 90)]:
        page.mouse.click(*point(page, 2, *at))
    assert np.allclose(page.evaluate("volfsStage.view.line"), [(20, 20), (90, 70)], atol=1)
    for n, at in enumerate([(20, 20), (70, 90)]):
        assert np.allclose(middle(page.locator(".line-point").nth(n)), point(page, 2, *at), atol=4)
    page.mouse.move(*middle(page.locator(".line-point").nth(1)))
    page.mouse.down()
    page.mouse.move(*point(page, 2, 40, 110), steps=4)
    page.mouse.up()
    assert np.allclose(page.evaluate("volfsStage.view.line"), [(20, 20), (110, 40)], atol=1)


# the colours of a plane at so many pixels right of each trace: [row][column]
BESIDE = """([n, by]) => {
  const { planes, view } = volfsStage, plane = planes[n], { canvas } = plane, ratio = devicePixelRatio;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return Array.from({ length: view.layer.shape[plane.row] }, (_, row) =>
    Array.from({ length: view.layer.shape[plane.column] }, (_, column) => {
      const [x, y] = plane.pointAt(column, row);
      return data[4 * (Math.floor(y * ratio) * canvas.width + Math.floor((x + by) * ratio))];
    }));
}"""


def check_wiggles(page, gather, zero):
    """Compare the painted wiggles of the first plane with its samples, [sample, trace]: black where they are high."""
    most = np.abs(gather - zero).max()
    high, low = gather > zero + 0.6 * most, gather < zero - 0.1 * most
    # the trace before may swing over it; lines of others cross here and there
    alone = low & np.roll(low, 1, axis=1)
    alone[:, 0] = low[:, 0]
    beside = np.array(page.evaluate(BESIDE, [0, 2]))
    # ends are half outside, and lines have a width
    inner = np.zeros_like(high)
    inner[2:-2, :-1] = True
    steady = inner & (np.roll(high, 1, 0) == high) & (np.roll(high, -1, 0) == high)
    assert (high & steady).sum() > 10 and (beside[high & steady] < 80).mean() > 0.98
    steady = inner & np.roll(alone, 1, 0) & np.roll(alone, -1, 0)
    assert (alone & steady).sum() > 10 and (beside[alone & steady] > 150).mean() > 0.85


def test_ticks_lie_on_lines(page, server):
    show(page, server, "vds/components.vds")
    axes = page.evaluate("volfsStage.view.layer.axes")
    seen = 0
    for n, which in ((0, "column"), (0, "row"), (1, "column"), (1, "row"), (2, "column"), (2, "row")):
        axis = axes[page.evaluate(f"volfsStage.planes[{n}].{which}")]
        if axis["name"].lower() not in ("inline", "crossline"):
            continue
        assert axis["step"] > 1
        side = page.locator(".ticks.across" if which == "column" else ".ticks.down").nth(n)
        lines = [(float(tick.inner_text()) - axis["first"]) / axis["step"] for tick in side.locator("span").all()]
        assert all(line == int(line) and 0 <= line < axis["count"] for line in lines)
        seen += len(lines)
    assert seen >= 6


def test_gathers_are_wiggles_along_offsets(page, server):
    show(page, server, "vds/four.vds")
    page.get_by_role("button", name="Gathers").click()
    until(page, "volfsStage.view.axes.join() === '1,2,3' && volfsStage.view.isWiggle")
    wait(page)
    about, array = samples(server, "vds/four.vds", "Amplitude")
    assert about["axes"][2]["name"] == "Offset"
    page.evaluate("volfsStage.view.set({ hasCrosshair: false })")
    page.wait_for_timeout(300)
    low, high = page.evaluate("volfsStage.view.range")
    inline, crossline = page.evaluate("volfsStage.view.index.slice(0, 2)")
    check_wiggles(page, array[inline, crossline].T.astype(float), (low + high) / 2)
    # ticks of the axis of offsets, where they belong
    axis = page.locator(".ticks.across").nth(0)
    first, step = about["axes"][2]["first"], about["axes"][2]["step"]
    assert axis.locator("b").inner_text() == "Offset (m)"
    ticks = {float(tick.inner_text()): middle(tick)[0] for tick in axis.locator("span").all()}
    assert len(ticks) >= 2 and all(first <= at <= first + 32 * step for at in ticks)
    for at, x in ticks.items():
        assert abs(point(page, 0, (at - first) / step, 0)[0] - x) <= 1.5
    # the traces take the width of the plane, also after a reload, and at another gather
    width = page.locator(CANVAS).nth(0).bounding_box()["width"]
    assert 0.8 * width < 33 * page.evaluate("volfsStage.view.pixels(2)") < width
    page.locator("#other0").fill("2")
    page.locator("#slider0").fill("0")
    page.keyboard.press("+")
    wait(page)
    page.wait_for_timeout(400)
    held = "[volfsStage.view.axes, volfsStage.view.pixels(2), volfsStage.view.pixels(3), volfsStage.view.index]"
    before = page.evaluate(held)
    page.reload()
    wait(page)
    assert np.allclose(np.concatenate(page.evaluate(held)[::3]), np.concatenate(before[::3]))
    assert np.allclose(page.evaluate(held)[1:3], before[1:3], rtol=1e-3)
    page.get_by_role("button", name="Gathers").click()
    until(page, "volfsStage.view.axes.join() === '0,1,3' && !volfsStage.view.isWiggle")


def test_gathers_swing_around_0(page, tmp_path):
    offsets, times = np.meshgrid(np.arange(24), np.arange(300))
    reflections = sum(np.exp(-(((times - np.hypot(at, 9 * offsets)) / 6) ** 2)) * sign for at, sign in [(60, 1), (140, -1), (220, 1)])
    gathers = np.stack([np.stack([reflections.T * scale for scale in (1, 0.5)])] * 2).astype("float32")
    array_of_zarr(tmp_path / "prestack.zarr", gathers, ["inline", "crossline", "offset", "time"], 0.0)
    with serving(tmp_path) as address:
        show(page, address, "prestack.zarr")
        page.get_by_role("button", name="Gathers").click()
        until(page, "volfsStage.view.axes.join() === '1,2,3' && volfsStage.view.isWiggle")
        wait(page)
        page.evaluate("volfsStage.view.set({ hasCrosshair: false, range: [-1, 1] })")
        page.wait_for_timeout(300)
        check_wiggles(page, gathers[0, 0].T.astype(float), 0)
