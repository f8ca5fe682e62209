// The line of a section on a time slice. Its points are dragged with the pointer, or moved with the keys.

import { clamp, element, number } from "./dom.js";

/** Whether a plane has inlines and crosslines, along which a line can lie. */
export const holdsLine = ({ layer, row, column }) => layer.inline >= 0 && layer.crossline >= 0
  && [layer.inline, layer.crossline].every((axis) => axis === row || axis === column);

export class SectionLine {
  constructor(plane) {
    Object.assign(this, { plane, handles: [] });
    this.element = element("div", { className: "line-points" });
  }

  /** Draws the line, and puts the handles on its points. */
  draw(context) {
    const { plane, handles } = this;
    const { line } = plane.view;
    while (handles.length < line.length) handles.push(this.handle(handles.length));
    while (handles.length > line.length) handles.pop().remove();
    const points = line.map((at) => plane.pointAt(...this.placeOf(at)));
    for (const [colour, width] of [["#000", 4], ["#4cff8f", 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      points.forEach(([x, y], n) => (n ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.stroke();
    }
    const [width, height] = plane.size;
    points.forEach(([x, y], n) => {
      handles[n].hidden = x < 0 || y < 0 || x > width || y > height;
      [handles[n].style.left, handles[n].style.top] = [`${x}px`, `${y}px`];
      handles[n].setAttribute("aria-label", this.textOf(n));
    });
  }

  /** Column and row of a point (inline, crossline) of the line, and the other way round. */
  placeOf([first, second]) {
    return this.plane.column === this.plane.layer.inline ? [first, second] : [second, first];
  }

  textOf(n) {
    const { layer, view } = this.plane;
    const lines = [layer.inline, layer.crossline].map((axis, at) => `${layer.axes[axis].name} ${number(layer.annotate(axis, view.line[n][at]))}`);
    return `Point ${n + 1} of the line of the section: ${lines.join(", ")}. Arrow keys move it, Delete removes it.`;
  }

  handle(n) {
    const { plane } = this;
    const handle = element("button", { type: "button", className: "line-point" });
    handle.addEventListener("pointerdown", (event) => { if (event.button === 0) handle.setPointerCapture(event.pointerId); });
    handle.addEventListener("pointermove", (event) => {
      if (!handle.hasPointerCapture(event.pointerId)) return;
      const box = plane.canvas.getBoundingClientRect();
      this.move(n, plane.positionAt(event.clientX - box.left, event.clientY - box.top));
    });
    handle.addEventListener("keydown", (event) => this.press(event, n));
    // the wheel goes through slices here as well
    handle.addEventListener("wheel", (event) => { event.preventDefault(); plane.canvas.dispatchEvent(new WheelEvent("wheel", event)); }, { passive: false });
    this.element.append(handle);
    return handle;
  }

  /** Moves a point to the sample at a position (column, row). */
  move(n, position) {
    const { view, layer, column, row } = this.plane;
    const within = position.map((at, which) => clamp(Math.round(at), 0, layer.shape[which ? row : column] - 1));
    const point = this.placeOf(within);
    if (point.join() !== view.line[n].join()) view.set({ line: view.line.map((old, at) => (at === n ? point : old)) });
  }

  press(event, n) {
    const { view } = this.plane;
    const far = event.shiftKey ? 10 : 1;
    const step = { ArrowLeft: [-far, 0], ArrowRight: [far, 0], ArrowUp: [0, -far], ArrowDown: [0, far] }[event.key];
    const [column, row] = this.placeOf(view.line[n]);
    if (step) this.move(n, [column + step[0], row + step[1]]);
    else if (event.key === "Delete" || event.key === "Backspace") view.set({ line: view.line.filter((_, at) => at !== n) });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
