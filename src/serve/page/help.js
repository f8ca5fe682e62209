// The keys and what the pointer does.

import { button, element } from "./dom.js";

const KEYS = [
  ["Wheel", "other slices; with Shift by 10"],
  ["Ctrl and wheel, two fingers", "zoom at the pointer"],
  ["Drag", "move; a line of the crosshair: move that"],
  ["Right click", "move the crosshair there"],
  ["Double click, Space", "one large plane, or all"],
  ["Arrow keys", "move the crosshair by a sample; with Shift by 10"],
  [", and .", "previous and next slice; PageUp and PageDown by 10; Home and End"],
  ["+ and −", "zoom"],
  ["0", "show all"],
  ["Tab", "next plane"],
  ["a, b", "crosshair, scale bar: on and off"],
  ["n", "time slices with north up"],
  ["w", "wiggles"],
  ["Drag a point of a line", "the section follows; arrow keys move it, Delete removes it"],
  ["Click on a label", "mark all of it; once more: none"],
  ["?", "this list"],
];

/** Makes the dialog. */
export function help() {
  const list = element("dl", { className: "keys" }, ...KEYS.flatMap(([keys, what]) => [element("dt", { textContent: keys }), element("dd", { textContent: what })]));
  const dialog = element("dialog", { className: "help", "aria-labelledby": "help-title" }, element("h2", { id: "help-title", textContent: "Keys and pointer" }), list, button("Close", () => dialog.close()));
  return dialog;
}

/** Does what a key means on a stage. Returns whether it means anything. */
export function press(event, stage, dialog) {
  const { view } = stage;
  const plane = stage.planes[stage.active];
  const slice = (by) => plane.across !== null && view.setIndex(plane.across, view.index[plane.across] + by);
  const far = event.shiftKey ? 10 : 1;
  const actions = {
    ArrowLeft: () => plane.step(-far, 0), ArrowRight: () => plane.step(far, 0), ArrowUp: () => plane.step(0, -far), ArrowDown: () => plane.step(0, far),
    ",": () => slice(-1), ".": () => slice(1), PageUp: () => slice(-10), PageDown: () => slice(10),
    Home: () => slice(-view.layer.shape[plane.across]), End: () => slice(view.layer.shape[plane.across]),
    "+": () => view.zoomBy(1.5), "=": () => view.zoomBy(1.5), "-": () => view.zoomBy(1 / 1.5), 0: () => stage.fit(),
    " ": () => plane.toggleMaximized(), a: () => view.set({ hasCrosshair: !view.hasCrosshair }), b: () => view.set({ hasScaleBar: !view.hasScaleBar }),
    n: () => view.set({ isNorthUp: !view.isNorthUp }), w: () => view.set({ isWiggle: !view.isWiggle }), "?": () => dialog.showModal(), h: () => dialog.showModal(),
  };
  const action = actions[event.key];
  if (!action) return false;
  action();
  return true;
}
