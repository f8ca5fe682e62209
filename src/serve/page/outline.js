// A map of a survey: its outline in world coordinates, the lines that are shown, and the pointer.

import { svg as makeSvg } from "./dom.js";

const WIDTH = 240;
const HEIGHT = 180;
const MARGIN = 14;

const add = (parent, name, attributes) => parent.appendChild(makeSvg(name, attributes));

/** Returns a map, or null if the dataset is no survey. `update(indices)` moves the cursor and the lines. */
export function outline(geometry) {
  const corners = geometry?.corners;
  if (!corners || corners.length !== 4) return null;
  const hasWorld = corners.every((corner) => corner.world);
  const place = (corner) => (hasWorld ? corner.world : corner.annotation);
  const [first, lastInline, lastCrossline] = corners.map(place);
  const counts = [corners[1].index[0] - corners[0].index[0] || 1, corners[2].index[1] - corners[0].index[1] || 1];
  // the plane through three corners
  const at = (i, j) => [0, 1].map((c) =>
    first[c] + ((lastInline[c] - first[c]) * i) / counts[0] + ((lastCrossline[c] - first[c]) * j) / counts[1]);
  const ring = [corners[0], corners[1], corners[3], corners[2]].map(place);
  const [xs, ys] = [ring.map((p) => p[0]), ring.map((p) => p[1])];
  const [left, bottom] = [Math.min(...xs), Math.min(...ys)];
  const scale = Math.min(
    (WIDTH - 2 * MARGIN) / (Math.max(...xs) - left || 1), (HEIGHT - 2 * MARGIN) / (Math.max(...ys) - bottom || 1));
  const wide = (Math.max(...xs) - left) * scale;
  const tall = (Math.max(...ys) - bottom) * scale;
  const shown = ([x, y]) => [
    (WIDTH - wide) / 2 + (x - left) * scale, (HEIGHT + tall) / 2 - (y - bottom) * scale].map((v) => v.toFixed(1));
  const svg = makeSvg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "outline",
    "aria-label": `Outline of the survey in ${hasWorld ? "world coordinates" : "line numbers"}` });
  add(svg, "polygon", { points: ring.map((p) => shown(p).join(",")).join(" "), class: "survey" });
  const [x0, y0] = shown(first);
  add(svg, "circle", { cx: x0, cy: y0, r: 3, class: "origin" });
  const lines = [0, 1].map(() => add(svg, "line", { class: "line" }));
  const dot = add(svg, "circle", { r: 4, class: "cursor" });
  const north = add(svg, "text", { x: WIDTH - 8, y: 16, class: "north", "text-anchor": "end" });
  north.textContent = hasWorld ? "N ↑" : "";
  function move(line, from, to) {
    line.setAttribute("visibility", from ? "visible" : "hidden");
    if (!from) return;
    const [[x1, y1], [x2, y2]] = [shown(from), shown(to)];
    for (const [key, value] of Object.entries({ x1, y1, x2, y2 })) line.setAttribute(key, value);
  }
  return {
    element: svg,
    /** Inline and crossline index that are shown or null, and those of the cursor or null. */
    update({ inline, crossline, cursor }) {
      move(lines[0], inline === null ? null : at(inline, 0), inline === null ? null : at(inline, counts[1]));
      move(lines[1], crossline === null ? null : at(0, crossline), crossline === null ? null : at(counts[0], crossline));
      dot.setAttribute("visibility", cursor ? "visible" : "hidden");
      if (cursor) {
        const [x, y] = shown(at(...cursor));
        dot.setAttribute("cx", x);
        dot.setAttribute("cy", y);
      }
    },
  };
}
