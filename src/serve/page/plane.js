// One plane: its canvas with ticks, the field and slider of its slice, and what the pointer does.

import { button, clamp, context2d, element, number } from "./dom.js";
import { abbreviated } from "./layer.js";
import { SectionLine, holdsLine } from "./line.js";
import { showBar, showTicks } from "./ticks.js";
import { drawWiggles } from "./wiggle.js";

/** Nearer to a line of the crosshair than this, dragging moves it. */
const GRIP = 5;

export class Plane {
  /** `pictures(plane)` makes the slices to draw: {slices, style(), opacity, blend}. `events`: hover, jump, pick. */
  constructor(view, number, pictures, events) {
    Object.assign(this, { view, number, events }, view.planes[number]);
    this.layer = view.layer;
    this.pictures = pictures(this);
    this.pointer = null;
    this.build();
    this.listen();
  }

  get title() {
    const { layer } = this;
    return this.across === null ? `${layer.axes[this.row].name} and ${layer.axes[this.column].name}` : layer.axes[this.across].name;
  }

  build() {
    const { layer, across, number: n } = this;
    this.canvas = element("canvas", { className: "slice", tabIndex: 0, role: "application", "aria-describedby": "readout",
      "aria-label": `Plane ${n + 1}: ${across === null ? "" : "across "}${this.title}. Arrow keys move the crosshair, comma and full stop change the slice, question mark lists all keys.` });
    this.ticks = { column: element("div", { className: "ticks across", "aria-hidden": "true" }), row: element("div", { className: "ticks down", "aria-hidden": "true" }) };
    this.bar = element("div", { className: "scale-bar", hidden: true });
    this.north = element("div", { className: "north-arrow", hidden: true, textContent: "N ↑" });
    this.note = element("div", { className: "plane-note", role: "status" });
    const caption = [];
    if (across !== null) {
      const count = layer.shape[across];
      this.field = element("input", { type: "number", step: "any", id: `field${n}`, className: "field" });
      this.slider = element("input", { type: "range", min: 0, max: count - 1, id: `slider${n}`, "aria-label": `Slice of ${this.title}` });
      this.slider.addEventListener("input", () => this.view.setIndex(across, Number(this.slider.value)));
      this.field.addEventListener("change", () => this.view.setIndex(across, layer.indexOf(across, Number(this.field.value))));
      this.unit = element("output", { className: "position", for: `field${n}` });
      caption.push(element("label", { for: `field${n}`, textContent: this.title }), this.field, this.unit, this.slider);
    } else {
      caption.push(element("span", { textContent: this.title }));
    }
    caption.push(button("⤢", () => this.toggleMaximized(), { className: "maximize", title: "One large plane, or all (Space)", "aria-label": `Maximise the plane of ${this.title}` }));
    this.line = across !== null && across === layer.vertical && holdsLine(this) ? new SectionLine(this) : null;
    this.frame = element("div", { className: "frame" }, this.ticks.row, this.canvas, this.ticks.column, this.bar, this.north, this.note, this.line?.element);
    this.element = element("figure", { className: "plane" }, element("figcaption", {}, ...caption), this.frame);
  }

  toggleMaximized() {
    this.view.set({ maximized: this.view.maximized === this.number ? null : this.number });
    this.events.arranged();
  }

  /** Width and height on the screen. They are asked for once: each drawing changes texts, and then the answer takes long. */
  get size() {
    // it has none before it is in the document
    if (!this.knownSize?.[0]) this.knownSize = [this.canvas.clientWidth, this.canvas.clientHeight];
    return this.knownSize;
  }

  /** The size may have changed. */
  resized() {
    this.knownSize = null;
  }

  /** Whether the plane is turned so that north is up. */
  get isTurned() {
    return this.view.isNorthUp && this.across === this.layer.vertical && this.layer.worldSteps() !== null;
  }

  /** The screen's vectors of one sample along columns and rows: [a, b, c, d]. */
  vectors() {
    const { view } = this;
    const [x, y] = [view.pixels(this.column), view.pixels(this.row)];
    if (!this.isTurned) return [x, 0, 0, y];
    const steps = this.layer.worldSteps();
    const along = (axis, pixels) => {
      const [east, north] = steps[axis];
      const length = Math.hypot(east, north);
      return [(east / length) * pixels, (-north / length) * pixels];
    };
    return [...along(this.column, x), ...along(this.row, y)];
  }

  /** The point of the canvas of a position (column, row) in the finest level. */
  pointAt(column, row) {
    const [a, b, c, d] = this.vectors();
    const [width, height] = this.size;
    const [u, v] = [column - this.view.centre[this.column], row - this.view.centre[this.row]];
    return [width / 2 + a * u + c * v, height / 2 + b * u + d * v];
  }

  positionAt(x, y) {
    const [a, b, c, d] = this.vectors();
    const [width, height] = this.size;
    const [p, q] = [x - width / 2, y - height / 2];
    const determinant = a * d - b * c || 1;
    return [this.view.centre[this.column] + (d * p - c * q) / determinant, this.view.centre[this.row] + (a * q - b * p) / determinant];
  }

  /** The ranges of columns and rows that are in view. */
  bounds() {
    const [width, height] = this.size;
    const corners = [[0, 0], [width, 0], [0, height], [width, height]].map(([x, y]) => this.positionAt(x, y));
    const range = (n, axis) => {
      const last = this.layer.shape[axis] - 1;
      return [clamp(Math.min(...corners.map((c) => c[n])), 0, last), clamp(Math.max(...corners.map((c) => c[n])), 0, last)];
    };
    return { columns: range(0, this.column), rows: range(1, this.row) };
  }

  /** Draws everything. Returns what is to be fetched, and whether all is there. */
  draw() {
    const { canvas, view } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = this.size;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    const state = { missing: [], quick: [], ahead: [], isComplete: true, isStale: false, lod: 0, bytes: 0 };
    if (width < 10 || height < 10) return state;
    const context = context2d(canvas);
    const bounds = this.bounds();
    this.reasons = [];
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, w, h);
    context.imageSmoothingEnabled = false;
    this.note.textContent = "";
    for (const picture of this.pictures()) {
      const { slices } = picture;
      const lie = (axis) => slices.place(axis);
      const own = { // in indexes of the picture's own layer
        at: slices.layer.shape.map((_, axis) => (view.index[slices.toBase?.(axis) ?? axis] - lie(axis).shift) / lie(axis).factor),
        pixels: (axis) => view.pixels(slices.toBase?.(axis) ?? axis) * Math.abs(lie(axis).factor),
        bounds: {
          rows: bounds.rows.map((value) => (value - lie(slices.row).shift) / lie(slices.row).factor),
          columns: bounds.columns.map((value) => (value - lie(slices.column).shift) / lie(slices.column).factor),
        },
      };
      if (slices.isTooLarge(own.pixels, own.bounds)) {
        this.note.textContent = "This slice has no level that is coarse enough to be shown whole: zoom in.";
        state.isTooLarge = true;
        continue;
      }
      context.globalAlpha = picture.opacity ?? 1;
      context.globalCompositeOperation = picture.blend ?? "source-over";
      const drawn = slices.draw({ ...own, style: picture.style(),
        draw: (image, rows, columns) => this.place(context, ratio, image, rows, columns),
        damaged: (reason, rows, columns) => this.hatch(context, ratio, reason, rows, columns) });
      picture.drawn = { ...drawn, own };
      state.isComplete &&= drawn.isComplete;
      state.isStale ||= drawn.isStale;
      state.lod = Math.max(state.lod, drawn.lod);
      state.bytes += drawn.bytes;
      if (drawn.missing.length > 0) {
        state.missing.push(...drawn.missing);
        state.quick.push(...slices.quick(drawn.lod, own.at, own.bounds));
      } else {
        state.ahead.push(...slices.ahead(drawn.lod, own.at, own.bounds, view.lastMove[this.across] ?? 1));
      }
    }
    context.globalAlpha = 1;
    context.globalCompositeOperation = "source-over";
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (view.isWiggle && this.row === this.layer.vertical && !this.isTurned) drawWiggles(context, this, this.pictures()[0]);
    if (view.hasCrosshair && this.across !== null) this.drawCrosshair(context);
    this.line?.draw(context);
    showTicks(this);
    showBar(this);
    this.updateCaption();
    this.element.classList.toggle("stale", state.isStale);
    this.element.dataset.complete = String(state.isComplete);
    Object.assign(this, { state });
    return state;
  }

  /** Draws a picture of samples where they lie; rows and columns are ranges of positions. */
  place(context, ratio, image, rows, columns) {
    const [a, b, c, d] = this.vectors();
    const [x, y] = this.pointAt(columns[0], rows[0]);
    const [u, v] = [(columns[1] - columns[0]) / image.width, (rows[1] - rows[0]) / image.height];
    context.setTransform(a * u * ratio, b * u * ratio, c * v * ratio, d * v * ratio, x * ratio, y * ratio);
    if (this.isTurned) return context.drawImage(image, 0, 0);
    // between whole pixels, so that there are no gaps between tiles
    const [x1, y1] = this.pointAt(columns[1], rows[1]);
    context.setTransform(1, 0, 0, 1, 0, 0);
    const [left, top, right, bottom] = [x, y, x1, y1].map((value) => Math.round(value * ratio));
    return context.drawImage(image, left, top, right - left, bottom - top);
  }

  hatch(context, ratio, reason, rows, columns) {
    context.save();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const corners = [[0, 0], [1, 0], [1, 1], [0, 1]].map(([u, v]) => this.pointAt(columns[u], rows[v]));
    context.beginPath();
    corners.forEach(([x, y], n) => (n ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
    context.clip();
    context.fillStyle = "#7a1f1f33";
    context.fill();
    context.strokeStyle = "#d2483c";
    context.lineWidth = 1.5;
    const [xs, ys] = [corners.map((p) => p[0]), corners.map((p) => p[1])];
    const [left, right] = [Math.max(0, Math.min(...xs)), Math.min(this.size[0], Math.max(...xs))];
    const [top, bottom] = [Math.max(0, Math.min(...ys)), Math.min(this.size[1], Math.max(...ys))];
    context.beginPath();
    for (let x = left - (bottom - top); x < right; x += 9) {
      context.moveTo(x, bottom);
      context.lineTo(x + bottom - top, top);
    }
    context.stroke();
    context.restore();
    this.reasons.push({ reason, rows, columns });
  }

  /** Why the sample at a position cannot be read; null if it can. */
  reasonAt(column, row) {
    const holds = ([from, to], at) => at >= Math.min(from, to) && at <= Math.max(from, to);
    return this.reasons?.find((one) => holds(one.columns, column) && holds(one.rows, row))?.reason ?? null;
  }

  drawCrosshair(context) {
    const { index } = this.view;
    const [columns, rows] = [this.layer.shape[this.column], this.layer.shape[this.row]];
    const lines = [
      [this.pointAt(index[this.column], -0.5), this.pointAt(index[this.column], rows - 0.5)],
      [this.pointAt(-0.5, index[this.row]), this.pointAt(columns - 0.5, index[this.row])],
    ];
    for (const [colour, width] of [["#0007", 2.5], ["#ffd84a", 1]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.beginPath();
      for (const [from, to] of lines) {
        context.moveTo(...from);
        context.lineTo(...to);
      }
      context.stroke();
    }
  }

  updateCaption() {
    if (this.across === null) return;
    const index = this.view.index[this.across];
    if (document.activeElement !== this.field) this.field.value = number(Number(this.layer.annotate(this.across, index).toPrecision(12)));
    this.slider.value = index;
    const { unit, first } = this.layer.axes[this.across];
    const text = `${unit && unit !== "unitless" ? `${abbreviated(unit)} ` : ""}${first === null ? "" : `[${index}]`}`;
    this.unit.textContent = text.trim();
    this.slider.setAttribute("aria-valuetext", `${this.field.value} ${text}`);
  }

  listen() {
    const { canvas, view } = this;
    const pointers = new Map();
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let held = null;
    let hasMoved = false;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 0) return;
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, point(event));
      held = view.hasCrosshair && this.across !== null ? this.lineAt(...point(event)) : null;
      hasMoved = false;
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = point(event);
      const from = pointers.get(event.pointerId);
      if (from && pointers.size === 1) {
        if (Math.hypot(x - from[0], y - from[1]) > 2) hasMoved = true;
        if (held) this.dragCrosshair(held, x, y);
        else this.pan(x - from[0], y - from[1]);
      }
      if (from && pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
        const length = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
        this.zoomAt(length([x, y]) / length(from), (x + other[0]) / 2, (y + other[1]) / 2);
        hasMoved = true;
      }
      if (from) pointers.set(event.pointerId, [x, y]);
      this.pointer = [x, y];
      canvas.style.cursor = view.hasCrosshair && this.across !== null ? { column: "ew-resize", row: "ns-resize", both: "move" }[this.lineAt(x, y)] ?? "" : "";
      this.events.hover(this);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (pointers.delete(event.pointerId) && !hasMoved && !held) this.events.pick(this, ...this.positionAt(...point(event)).map(Math.round), event);
    });
    canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.events.hover(null);
    });
    canvas.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      this.jump(...point(event));
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const amount = event.deltaY * (event.deltaMode ? 30 : 1);
      if (event.ctrlKey || event.metaKey || this.across === null) this.zoomAt(Math.exp(-amount * 0.0025), ...point(event));
      else this.scroll(amount, event.shiftKey ? 10 : 1);
    }, { passive: false });
    canvas.addEventListener("dblclick", () => this.toggleMaximized());
    new ResizeObserver(() => {
      this.resized();
      this.events.resized();
    }).observe(canvas);
  }

  /** Goes to other slices: one for each notch of a wheel, and for each 40 pixels of a touchpad. */
  scroll(amount, factor) {
    this.scrolled = (this.scrolled ?? 0) + clamp(amount, -120, 120);
    const notch = Math.abs(amount) >= 100 ? 100 : 40;
    const slices = Math.trunc(this.scrolled / notch);
    if (slices === 0) return;
    this.scrolled = 0;
    this.view.setIndex(this.across, this.view.index[this.across] + slices * factor);
  }

  pan(x, y) {
    const { view } = this;
    const [from, to] = [this.positionAt(0, 0), this.positionAt(x, y)];
    const [column, row] = [view.centre[this.column] + from[0] - to[0], view.centre[this.row] + from[1] - to[1]];
    view.moveCentre(this.column, column);
    view.moveCentre(this.row, row);
  }

  zoomAt(factor, x, y) {
    const before = this.positionAt(x, y);
    this.view.zoomBy(factor);
    const after = this.positionAt(x, y);
    this.view.moveCentre(this.column, this.view.centre[this.column] + before[0] - after[0]);
    this.view.moveCentre(this.row, this.view.centre[this.row] + before[1] - after[1]);
  }

  /** The line of the crosshair at a point: "column" if it is dragged to other columns, "row", "both" or null. */
  lineAt(x, y) {
    const [column, row] = this.positionAt(x, y);
    const [u, v] = [Math.abs(column - this.view.index[this.column]) * this.view.pixels(this.column), Math.abs(row - this.view.index[this.row]) * this.view.pixels(this.row)];
    if (u <= GRIP && v <= GRIP) return "both";
    return u <= GRIP ? "column" : v <= GRIP ? "row" : null;
  }

  dragCrosshair(line, x, y) {
    const [column, row] = this.positionAt(x, y);
    if (line !== "row") this.view.setIndex(this.column, column);
    if (line !== "column") this.view.setIndex(this.row, row);
  }

  jump(x, y) {
    const [column, row] = this.positionAt(x, y);
    this.view.setIndex(this.column, column);
    this.view.setIndex(this.row, row);
    this.events.jump();
  }

  /** Moves the crosshair, and the plane after it. */
  step(columns, rows) {
    const { view } = this;
    view.setIndex(this.column, view.index[this.column] + columns);
    view.setIndex(this.row, view.index[this.row] + rows);
    const [x, y] = this.pointAt(view.index[this.column], view.index[this.row]);
    const [width, height] = this.size;
    if (x < 0 || x > width) view.moveCentre(this.column, view.index[this.column]);
    if (y < 0 || y > height) view.moveCentre(this.row, view.index[this.row]);
  }
}
