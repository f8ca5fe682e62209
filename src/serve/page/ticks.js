// The ticks of a plane, as text beside its canvas, and its scale bar.

import { clamp, element, number, round } from "./dom.js";
import { abbreviated } from "./layer.js";

/** Screen pixels between ticks, at least. */
const TICKS = { column: 76, row: 34 };
/** The longest scale bar, in screen pixels. */
const LONGEST_BAR = 130;
const BARS = [[1e3, "km"], [1, "m"], [1e-3, "mm"], [1e-6, "µm"], [1e-9, "nm"]];

/** Shows the ticks of a plane, in the axes' own numbers. */
export function showTicks(plane) {
  const [width, height] = plane.size;
  for (const which of ["column", "row"]) {
    const axis = plane[which];
    const marks = [];
    if (!plane.isTurned) {
      const { layer } = plane;
      const { first, step: known } = layer.axes[axis];
      const step = known || 1;
      // there is nothing between lines
      const unit = [layer.inline, layer.crossline].includes(axis) ? Math.abs(step) : 1;
      const origin = first === null ? 0 : first % unit;
      const room = which === "column" ? width : height;
      const ends = which === "column" ? [plane.positionAt(0, 0)[0], plane.positionAt(width, 0)[0]] : [plane.positionAt(0, 0)[1], plane.positionAt(0, height)[1]];
      const [low, high] = ends.map((end) => layer.annotate(axis, clamp(end, 0, layer.shape[axis] - 1))).sort((p, q) => p - q);
      let between = unit * round((TICKS[which] * Math.abs(step)) / plane.view.pixels(axis) / unit);
      if (between * plane.view.pixels(axis) / Math.abs(step) < TICKS[which]) between = unit * round((between * 2.5) / unit);
      // positions between samples are none
      between = Math.max(between, first === null ? 1 : Math.abs(step));
      for (let n = Math.ceil((low - origin) / between - 1e-9); origin + n * between <= high + 1e-9 && marks.length < 60; n++) {
        const value = origin + n * between;
        const index = layer.indexOf(axis, value);
        const [x, y] = plane.pointAt(which === "column" ? index : 0, which === "row" ? index : 0);
        const at = which === "column" ? x : y;
        if (at >= -1 && at <= room + 1) marks.push([at, number(Number(value.toPrecision(12)))]);
      }
    }
    fill(plane, which, marks);
  }
}

function fill(plane, which, marks) {
  const place = plane.ticks[which];
  const key = marks.join();
  if (place.dataset.marks === key) return;
  place.dataset.marks = key;
  const { unit, name } = plane.layer.axes[plane[which]];
  const side = which === "column" ? "left" : "top";
  const title = element("b", { textContent: `${name}${unit && unit !== "unitless" ? ` (${abbreviated(unit)})` : ""}` });
  place.replaceChildren(...marks.map(([at, text]) => {
    const tick = element("span", { textContent: text });
    tick.style[side] = `${at.toFixed(1)}px`;
    return tick;
  }), title);
}

/** Shows a bar of a round length, where samples have a length along columns. */
export function showBar(plane) {
  const { layer, view } = plane;
  const length = view.isSquare ? null : layer.lengths()[plane.column];
  const unit = layer.axes[plane.column].unit;
  const isLength = length && (layer.worldSteps()?.[plane.column] || (unit && length !== Math.abs(layer.axes[plane.column].step)) || /^(m|meter|metre)$/.test(unit ?? ""));
  plane.bar.hidden = !isLength || !view.hasScaleBar;
  plane.north.hidden = !plane.isTurned;
  if (plane.bar.hidden) return;
  const perMetre = view.pixels(plane.column) / length;
  const metres = round(LONGEST_BAR / perMetre);
  const [factor, name] = BARS.find(([size]) => metres >= size * 0.9999) ?? BARS.at(-1);
  plane.bar.textContent = `${number(Number((metres / factor).toPrecision(6)))} ${name}`;
  plane.bar.style.width = `${metres * perMetre}px`;
}
