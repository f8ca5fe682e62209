// A vertical section along a line that is drawn on a time slice.

import { paint } from "./colours.js";
import { element, number, svg } from "./dom.js";

/** The most traces of a section: where the line is longer, some are left out. */
const MOST = 800;
/** Requests at a time. */
const AT_ONCE = 6;

/** The traces along a line through points (inline, crossline), as indexes: neighbours are a sample apart or less. */
function tracesAlong(points) {
  const traces = [];
  points.slice(1).forEach(([i1, j1], n) => {
    const [i0, j0] = points[n];
    const steps = Math.max(1, Math.ceil(Math.max(Math.abs(i1 - i0), Math.abs(j1 - j0))));
    for (let step = n === 0 ? 0 : 1; step <= steps; step++) {
      traces.push([Math.round(i0 + ((i1 - i0) * step) / steps), Math.round(j0 + ((j1 - j0) * step) / steps)]);
    }
  });
  const every = Math.ceil(traces.length / MOST);
  return traces.filter((_, n) => n % every === 0);
}

export class Section {
  constructor(view, store) {
    Object.assign(this, { view, store });
    this.canvas = element("canvas", { className: "section-canvas", role: "img" });
    this.ticks = svg("svg", { class: "section-ticks", "aria-hidden": "true" });
    this.text = element("output", { className: "status" });
    this.element = element("section", { className: "section", hidden: true, "aria-label": "Section along the line" },
      element("h2", { textContent: "Section along the line" }), element("div", { className: "section-frame" }, this.canvas, this.ticks), this.text);
    this.canvas.addEventListener("pointermove", (event) => this.readOut(event));
    this.key = "";
  }

  /** Shows the section of the view's line, in its colours. */
  async update() {
    const { view } = this;
    const points = view.line;
    this.element.hidden = points.length < 2;
    if (this.element.hidden) return;
    const key = points.join(";");
    if (key !== this.key) {
      this.key = key;
      this.controller?.abort();
      this.controller = new AbortController();
      try {
        await this.read(tracesAlong(points), this.controller.signal);
      } catch (error) {
        if (error.name !== "AbortError") this.text.textContent = error.message;
        return;
      }
    }
    if (this.samples && this.key === key) this.draw();
  }

  async read(traces, signal) {
    const { layer, index } = this.view;
    const depth = layer.shape[layer.vertical];
    this.samples = null;
    let all = null;
    let done = 0;
    let failed = 0;
    const readOne = async (n) => {
      const box = layer.shape.map((_, axis) => {
        if (axis === layer.vertical) return ":";
        return axis === layer.inline ? traces[n][0] : axis === layer.crossline ? traces[n][1] : index[axis];
      }).join(",");
      const trace = await this.store.fetch({ url: `${layer.folder}lod0.raw?box=${box}`, dtype: layer.dtype, folder: layer.folder }, signal)
        .catch((error) => { if (error.name === "AbortError") throw error; return null; });
      if (!trace) {
        failed++;
        return;
      }
      all ??= new trace.constructor(traces.length * depth);
      all.set(trace, n * depth);
      this.text.textContent = `Reading traces: ${++done} of ${traces.length}`;
    };
    let next = 0;
    await Promise.all(Array.from({ length: AT_ONCE }, async () => { while (next < traces.length) await readOne(next++); }));
    Object.assign(this, { samples: all, traces, depth });
    this.text.textContent = `${traces.length} traces${failed ? `, of which ${failed} cannot be read` : ""}`;
  }

  draw() {
    const { view, traces, depth, canvas } = this;
    [canvas.width, canvas.height] = [traces.length, depth];
    canvas.setAttribute("aria-label", `Section of ${traces.length} traces`);
    canvas.getContext("2d").putImageData(paint(this.samples, { rows: depth, columns: traces.length, rowStep: 1, columnStep: depth }, view.style()), 0, 0);
    const { layer } = view;
    const marks = Array.from({ length: 5 }, (_, n) => {
      const row = (n * (depth - 1)) / 4;
      return svg("text", { x: 50, y: `${(n * 100) / 4}%`, dy: n === 0 ? 10 : n === 4 ? -2 : 4, "text-anchor": "end" }, number(Number(layer.annotate(layer.vertical, Math.round(row)).toPrecision(6))));
    });
    this.ticks.replaceChildren(...marks);
  }

  readOut(event) {
    if (!this.samples) return;
    const { layer } = this.view;
    const box = this.canvas.getBoundingClientRect();
    const n = Math.min(this.traces.length - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * this.traces.length)));
    const row = Math.min(this.depth - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * this.depth)));
    const [i, j] = this.traces[n];
    const stored = this.samples[n * this.depth + row];
    this.text.textContent = `inline ${number(layer.annotate(layer.inline, i))}, crossline ${number(layer.annotate(layer.crossline, j))}, ${layer.text(layer.vertical, row, number)}  ·  ${layer.toValue(stored)}`;
  }
}
