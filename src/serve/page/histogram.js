// The histogram of what is seen, with the colours: the ends of the range are dragged, or typed as numbers.

import { LABELS, MISSING_COLOUR, gradient } from "./colours.js";
import { button, context2d, element, number, short } from "./dom.js";

const BINS = 96;
/** The most samples that are looked at. */
const MOST = 50_000;
/** Shares of the samples below and above the usual range. */
const CLIPPED = 0.01;

/** Collects values of some arrays of samples, in order: without NaN and samples without a value. */
export function collect(arrays, layer) {
  const total = arrays.reduce((sum, samples) => sum + samples.length, 0);
  const step = Math.max(1, Math.floor(total / MOST));
  const values = new Float64Array(Math.ceil(total / step) + arrays.length);
  let [count, missing] = [0, 0];
  for (const samples of arrays) {
    for (let i = 0; i < samples.length; i += step) {
      const stored = Number(samples[i]);
      if (Number.isFinite(stored) && stored !== layer.missing) values[count++] = layer.toValue(stored);
      else missing++;
    }
  }
  return { values: values.subarray(0, count).sort(), missing };
}

/** A range in which nearly all values lie; around zero if there are values on both sides of it. */
export function usualRange(sorted) {
  if (sorted.length === 0) return [0, 1];
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
  let [low, high] = [at(CLIPPED), at(1 - CLIPPED)];
  // masks, and data that is the same nearly everywhere
  if (low === high) [low, high] = [sorted[0], sorted[sorted.length - 1]];
  const [least, most] = [Math.min(-low, high), Math.max(-low, high)];
  if (least > 0.02 * most) return [-most, most];
  return low < high ? [low, high] : [Math.min(low, 0), low > 0 ? low : low + 1];
}

/** A histogram with its controls: `onRange(range)` is called when it is changed by hand. */
export class Histogram {
  constructor(layer, onRange) {
    Object.assign(this, { layer, onRange, values: new Float64Array(), missing: 0, range: [0, 1], map: "Grey" });
    this.canvas = element("canvas", { className: "histogram", role: "img", "aria-label": "Histogram of the values in view" });
    this.bar = element("div", { className: "colour-bar", "aria-hidden": "true" });
    this.handles = [0, 1].map((n) => element("div", { className: "handle", role: "slider", tabIndex: 0, "aria-label": n ? "Upper end of the range" : "Lower end of the range" }));
    [this.low, this.high] = ["low", "high"].map((id) => element("input", { id, type: "number", step: "any" }));
    this.legend = element("p", { className: "legend", hidden: true });
    this.legend.append(element("span", { className: "swatch" }), "no value (NaN)");
    this.legend.firstChild.style.background = MISSING_COLOUR;
    this.element = element("div", { className: "values" },
      element("div", { className: "chart" }, this.canvas, ...this.handles), this.bar,
      element("p", { className: "bar" }, element("label", { for: "low", textContent: "from" }), this.low, element("label", { for: "high", textContent: "to" }), this.high),
      element("p", { className: "bar" }, button("Usual range", () => this.set(usualRange(this.values)), { title: "1 to 99 % of what is seen, around 0 if there are values on both sides" }),
        button("± around 0", () => { const most = Math.max(...this.range.map(Math.abs)); this.set([-most, most]); }),
        button("All values", () => this.set(this.wholeRange()))),
      this.legend);
    for (const input of [this.low, this.high]) {
      input.addEventListener("change", () => {
        const range = [Number(this.low.value), Number(this.high.value)];
        if (range.every(Number.isFinite) && range[0] < range[1]) this.set(range);
      });
    }
    this.handles.forEach((handle, n) => this.listen(handle, n));
  }

  wholeRange() {
    const known = this.layer.finest.value_range;
    if (known && known[0] < known[1]) return known;
    const { values } = this;
    return values.length && values[0] < values.at(-1) ? [values[0], values.at(-1)] : this.range;
  }

  set(range) {
    this.onRange(range);
  }

  listen(handle, n) {
    const move = (to) => {
      const range = [...this.range];
      range[n] = to;
      if (range[0] < range[1]) this.set(range);
    };
    handle.addEventListener("pointerdown", (event) => { handle.setPointerCapture(event.pointerId); this.held = this.span(); });
    handle.addEventListener("pointermove", (event) => {
      if (!handle.hasPointerCapture(event.pointerId)) return;
      const box = this.canvas.getBoundingClientRect();
      const [first, last] = this.held;
      move(first + ((event.clientX - box.left) / box.width) * (last - first));
    });
    handle.addEventListener("pointerup", () => { this.held = null; this.draw(); });
    handle.addEventListener("keydown", (event) => {
      const sign = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (!sign) return;
      event.preventDefault();
      event.stopPropagation();
      const [first, last] = this.span();
      move(this.range[n] + (sign * (last - first)) / 100);
    });
  }

  /** The values at both ends of the chart. */
  span() {
    if (this.held) return this.held;
    const { values, range } = this;
    const [least, most] = values.length ? [values[0], values.at(-1)] : range;
    // a few far values must not take all of the room
    const room = range[1] - range[0];
    const ends = [Math.min(range[0], Math.max(least, range[0] - room)), Math.max(range[1], Math.min(most, range[1] + room))];
    return ends[0] < ends[1] ? ends : [ends[0], ends[0] + 1];
  }

  update({ values, missing, range, map }) {
    Object.assign(this, { values: values ?? this.values, missing: missing ?? this.missing, range, map });
    if (document.activeElement !== this.low) this.low.value = number(Number(range[0].toPrecision(7)));
    if (document.activeElement !== this.high) this.high.value = number(Number(range[1].toPrecision(7)));
    this.draw();
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    const { canvas, values, range } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    const context = context2d(canvas);
    context.scale(ratio, ratio);
    const [first, last] = this.span();
    const x = (value) => ((value - first) / (last - first)) * width;
    const style = getComputedStyle(canvas);
    context.fillStyle = style.getPropertyValue("--marked");
    context.fillRect(x(range[0]), 0, Math.max(1, x(range[1]) - x(range[0])), height);
    const bins = new Array(BINS).fill(0);
    for (const value of values) {
      const bin = Math.floor(((value - first) / (last - first)) * BINS);
      if (bin >= 0 && bin <= BINS) bins[Math.min(bin, BINS - 1)]++;
    }
    const most = Math.log1p(Math.max(...bins)) || 1;
    context.fillStyle = style.getPropertyValue("--bars");
    bins.forEach((count, n) => {
      const tall = (Math.log1p(count) / most) * (height - 2);
      context.fillRect((n * width) / BINS, height - tall, width / BINS - 0.5, tall);
    });
    this.handles.forEach((handle, n) => {
      handle.style.left = `${x(range[n])}px`;
      handle.setAttribute("aria-valuetext", short(range[n]));
      handle.setAttribute("aria-valuenow", String(range[n]));
      handle.setAttribute("aria-valuemin", String(first));
      handle.setAttribute("aria-valuemax", String(last));
    });
    const isLabels = this.map === LABELS;
    this.bar.hidden = isLabels;
    if (!isLabels) {
      this.bar.style.background = gradient(this.map, "to right");
      this.bar.style.marginLeft = `${Math.max(0, x(range[0]))}px`;
      this.bar.style.width = `${Math.max(2, Math.min(width, x(range[1])) - Math.max(0, x(range[0])))}px`;
    }
    this.legend.hidden = this.missing === 0;
  }
}
