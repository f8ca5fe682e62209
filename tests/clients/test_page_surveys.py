"""The page of `volfs serve` in headless Chromium: the line of a section, and gathers."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from browser import point, samples, show, until, wait
from test_page_colours import coloured

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
