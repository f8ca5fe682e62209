// A vertical section along a line that is drawn on a time slice.

import { paint } from "./colours.js";
import { context2d, element, number, svg } from "./dom.js";

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
    Object.assign(this, { view, store, key: "", samples: null, kept: new Map(), isReading: false });
    this.canvas = element("canvas", { className: "section-canvas", role: "img" });
    this.ticks = svg("svg", { class: "section-ticks", "aria-hidden": "true" });
    this.text = element("output", { className: "status" });
    this.element = element("section", { className: "section", hidden: true, "aria-label": "Section along the line" },
      element("h2", { textContent: "Section along the line" }), element("div", { className: "section-frame" }, this.canvas, this.ticks), this.text);
    this.canvas.addEventListener("pointermove", (event) => this.readOut(event));
  }

  /** Follows a line that is being moved: where it is now is read when the last place has been. */
  follow() {
    if (!this.isReading && this.view.line !== this.line) this.update();
  }

  /** Shows the section of the view's line, in its colours. */
  async update() {
    const points = this.view.line;
    this.line = points;
    this.element.hidden = points.length < 2;
    if (this.element.hidden) return;
    const boxes = tracesAlong(points).map((trace) => ({ trace, box: this.boxOf(trace) }));
    const { version } = this.store;
    if (version !== this.version) this.kept.clear();
    this.version = version;
    const key = [version, ...boxes.map(({ box }) => box)].join(";");
    if (key === this.key) {
      if (this.samples && !this.isReading) this.draw();
      return;
    }
    this.key = key;
    this.controller?.abort();
    const controller = new AbortController();
    Object.assign(this, { controller, isReading: true });
    try {
      await this.read(boxes, controller.signal);
    } catch (error) {
      if (error.name !== "AbortError") this.text.textContent = error.message;
      // it is read again when the view rests
      else if (key === this.key) this.key = "";
      return;
    } finally {
      if (controller === this.controller) this.isReading = false;
    }
    this.canvas.dataset.line = points.join();
    if (this.samples) this.draw();
    // it may have been moved on meanwhile
    this.follow();
  }

  /** The box of a trace (inline, crossline) in the finest level. */
  boxOf(trace) {
    const { layer, index } = this.view;
    return layer.shape.map((_, axis) => (axis === layer.vertical ? ":" : axis === layer.inline ? trace[0] : axis === layer.crossline ? trace[1] : index[axis])).join(",");
  }

  /** Reads the traces that the last line did not have. */
  async read(boxes, signal) {
    const { layer } = this.view;
    const known = this.kept;
    this.kept = new Map(boxes.filter(({ box }) => known.has(box)).map(({ box }) => [box, known.get(box)]));
    const wanted = boxes.filter(({ box }) => !this.kept.has(box));
    let next = 0;
    const readSome = async () => {
      while (next < wanted.length) {
        const { box } = wanted[next++];
        const trace = await this.store.fetch({ url: `${layer.folder}lod0.raw?box=${box}`, dtype: layer.dtype }, signal)
          .catch((error) => { if (error.name === "AbortError") throw error; return null; });
        if (trace) this.kept.set(box, trace);
        this.text.textContent = `Reading traces: ${next} of ${wanted.length}`;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, readSome));
    const depth = layer.shape[layer.vertical];
    const any = this.kept.values().next().value;
    const samples = any ? new any.constructor(boxes.length * depth) : null;
    const lost = boxes.map(({ box }) => !this.kept.has(box));
    boxes.forEach(({ box }, n) => { if (!lost[n]) samples.set(this.kept.get(box), n * depth); });
    Object.assign(this, { samples, lost, traces: boxes.map(({ trace }) => trace), depth });
    const failed = lost.filter(Boolean).length;
    this.text.textContent = `${boxes.length} traces${failed ? `, of which ${failed} cannot be read` : ""}`;
  }

  draw() {
    const { view, traces, depth, canvas } = this;
    [canvas.width, canvas.height] = [traces.length, depth];
    canvas.setAttribute("aria-label", `Section of ${traces.length} traces`);
    const context = context2d(canvas);
    context.putImageData(paint(this.samples, { rows: depth, columns: traces.length, rowStep: 1, columnStep: depth }, view.style()), 0, 0);
    // traces that cannot be read are blank
    this.lost.forEach((isLost, n) => { if (isLost) context.clearRect(n, 0, 1, depth); });
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
