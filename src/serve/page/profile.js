// The samples along one axis through the crosshair, as a curve.

import { number, round, short, svg } from "./dom.js";
import { SampleStore } from "./samples.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [280, 150, 44, 18];
/** The most samples that are drawn: of a longer line the levels have fewer. */
const MOST = 4096;

export class Profile {
  /** The samples are those of the version that a store reads. */
  constructor(layer, store = new SampleStore({ changed: () => {} })) {
    this.layer = layer;
    this.store = store;
    this.axis = layer.vertical >= 0 ? layer.vertical : layer.usualPlanes().at(-1) ?? 0;
    this.element = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "profile" });
    this.key = "";
  }

  /** Fetches and draws the line through an index, unless it is drawn already. */
  async show(index) {
    const { layer, axis } = this;
    const lod = layer.levels.findIndex((level) => level.shape[axis] <= MOST);
    if (lod < 0) return this.element.replaceChildren();
    const level = layer.levels[lod];
    const at = index.map((value, n) => Math.min(level.shape[n] - 1, Math.floor((value * level.shape[n]) / layer.shape[n])));
    const box = at.map((value, n) => (n === axis ? ":" : String(value))).join(",");
    const key = `${this.store.version}/${lod}/${box}`;
    if (key === this.key) return undefined;
    this.key = key;
    this.controller?.abort();
    this.controller = new AbortController();
    try {
      const line = { url: `${layer.folder}lod${lod}.raw?box=${box}`, dtype: level.dtype };
      this.draw(await this.store.fetch(line, this.controller.signal), level, index);
    } catch (error) {
      // it is tried again when the view changes
      if (key === this.key) this.key = "";
      if (error.name === "AbortError") return undefined;
      this.element.replaceChildren(svg("text", { x: 8, y: 20, class: "problem" }, error.message.slice(0, 60)));
    }
    return undefined;
  }

  draw(samples, level, index) {
    const { layer, axis } = this;
    const values = Array.from(samples, (stored) => (Number(stored) === layer.missing ? NaN : layer.toValue(Number(stored))));
    const known = values.filter(Number.isFinite);
    let [low, high] = [Math.min(...known, Infinity), Math.max(...known, -Infinity)];
    if (!(low < high)) [low, high] = known.length ? [low - 1, low + 1] : [0, 1];
    const { first, step, count } = level.axes[axis];
    const place = (n) => (first === null ? n : first + n * step);
    const x = (n) => LEFT + (n / Math.max(1, count - 1)) * (WIDTH - LEFT - 6);
    const y = (value) => 6 + ((high - value) / (high - low)) * (HEIGHT - BOTTOM - 10);
    let path = "";
    values.forEach((value, n) => { path += Number.isFinite(value) ? `${path === "" || !Number.isFinite(values[n - 1]) ? "M" : "L"}${x(n).toFixed(1)} ${y(value).toFixed(1)}` : ""; });
    const marks = [];
    for (const value of [low, (low + high) / 2, high]) {
      marks.push(svg("line", { x1: LEFT, x2: WIDTH - 6, y1: y(value), y2: y(value), class: "grid" }), svg("text", { x: LEFT - 4, y: y(value) + 4, "text-anchor": "end" }, short(value)));
    }
    const length = Math.abs(place(count - 1) - place(0)) || 1;
    const between = Math.max(round(length / 3), Math.abs(step ?? 1));
    const [least, most] = [Math.min(place(0), place(count - 1)), Math.max(place(0), place(count - 1))];
    for (let n = Math.ceil(least / between); n * between <= most; n++) {
      const at = first === null ? n * between : (n * between - first) / (step || 1);
      marks.push(svg("text", { x: x(at), y: HEIGHT - 4, "text-anchor": "middle" }, number(Number((n * between).toPrecision(9)))));
    }
    const here = (index[axis] * count) / layer.shape[axis];
    marks.push(svg("line", { x1: x(here), x2: x(here), y1: 4, y2: HEIGHT - BOTTOM, class: "here" }));
    this.element.setAttribute("aria-label", `Samples along ${layer.axes[axis].name}: from ${short(low)} to ${short(high)}`);
    this.element.replaceChildren(...marks, svg("path", { d: path, class: "curve" }));
  }
}
