"""The page of `volfs serve` in headless Firefox: painted planes, going through slices, keys and the wheel."""

from __future__ import annotations

import pytest
from browser import index_of, magnify, pixels, show, wait
from test_page_colours import check_planes


@pytest.fixture
def page(firefox):
    """Yield Firefox; fail the test if a script has failed."""
    firefox.errors.clear()
    yield firefox
    firefox.evaluate("0")
    assert firefox.errors == []


@pytest.mark.parametrize(
    ("dataset", "layer"), [("north.zgy", "data"), ("cells", "color"), ("cells", "segmentation"), ("south.vds", None)]
)
def test_painted_pixels_are_the_samples(page, demo, dataset, layer):
    show(page, demo, dataset, layer)
    assert page.evaluate("volfsStage.planes.length") == 3
    magnify(page)
    assert check_planes(page, demo, dataset) > 1000


def test_going_through_slices_shows_no_blank(page, demo):
    show(page, demo, "north.zgy")
    page.evaluate("(volfsStage.view.set({ hasCrosshair: false }), volfsStage.planes[0].canvas.focus())")
    wait(page)
    before = index_of(page)
    for step in range(10):
        page.keyboard.press("PageDown" if step < 3 else ".")
        page.evaluate("new Promise(requestAnimationFrame).then(() => 0)")
        assert (pixels(page, 0)[1][:, 3] == 255).all(), step
    wait(page)
    assert index_of(page) == [before[0] + 37, *before[1:]]
    magnify(page)
    check_planes(page, demo, "north.zgy")


def test_keys_wheel_and_right_click(page, demo):
    show(page, demo, "north.zgy")
    page.evaluate("volfsStage.planes[0].canvas.focus()")
    steps = [("Home", (0, 47, 95)), (".", (1, 47, 95)), ("PageDown", (11, 47, 95)), ("End", (127, 47, 95)),
             ("ArrowRight", (127, 48, 95)), ("Shift+ArrowUp", (127, 48, 85)), (",", (126, 48, 85))]  # fmt: skip
    for key, index in steps:
        page.keyboard.press(key)
        assert tuple(index_of(page)) == index, key
    x, y = page.evaluate(
        """(() => {
          const { canvas } = volfsStage.planes[0], box = canvas.getBoundingClientRect();
          const [x, y] = volfsStage.planes[0].pointAt(30, 60);
          return [box.left + x, box.top + y].map(Math.round);
        })()"""
    )
    page.wheel(x, y, 100)
    assert index_of(page)[0] == 127
    page.click(x, y, button=2)
    assert abs(index_of(page)[1] - 30) <= 1 and abs(index_of(page)[2] - 60) <= 1
    page.keyboard.press(" ")
    assert page.evaluate("volfsStage.view.maximized") == 0
    wait(page)
    page.keyboard.press(" ")
    page.evaluate("document.activeElement.blur()")
