// What is looked at: the position, the zoom, the range of values and colours. The address holds all of it.

import { LABELS, COLOUR_MAPS } from "./colours.js";
import { clamp } from "./dom.js";

/** The planes of three axes or two: the axis across each, and the axes of its rows and columns. */
function planesOf(layer, axes) {
  const vertical = axes.includes(layer.vertical) ? layer.vertical : null;
  if (axes.length === 2) {
    const row = vertical ?? axes[0];
    return [{ across: null, row, column: axes.find((axis) => axis !== row) }];
  }
  if (vertical !== null) {
    const [p, q] = axes.filter((axis) => axis !== vertical);
    return [{ across: p, row: vertical, column: q }, { across: q, row: vertical, column: p }, { across: vertical, row: p, column: q }];
  }
  const [a, b, c] = axes;
  return [{ across: a, row: b, column: c }, { across: c, row: b, column: a }, { across: b, row: a, column: c }];
}

export class View {
  constructor(layer) {
    this.layer = layer;
    this.changed = () => {};
    this.index = layer.shape.map((count) => Math.floor((count - 1) / 2));
    this.lastMove = layer.shape.map(() => 1);
    [this.steppedAt, this.steppedAxis] = [-Infinity, null];
    this.range = null;
    // by the first samples, until all are there
    this.isGuessed = false;
    this.map = layer.kind === "labels" ? LABELS : "Grey";
    this.picked = null;
    this.overlay = { layer: null, opacity: 0.5 };
    Object.assign(this, { maximized: null, isSquare: false, isNorthUp: false, isWiggle: false, exaggeration: 1 });
    // points (inline, crossline) of a line on time slices
    this.line = [];
    Object.assign(this, { hasCrosshair: true, hasScaleBar: true, styleNumber: 0 });
    this.showAxes(layer.usualPlanes());
  }

  showAxes(axes) {
    this.axes = axes;
    this.planes = planesOf(this.layer, axes);
    this.measure();
    this.isFitted = true;
    this.zoom = 1;
    this.free = 1;
    this.spread = 1;
    this.centre = this.layer.shape.map((count) => (count - 1) / 2);
  }

  /** The lengths of samples, in units of the shortest one. */
  measure() {
    const lengths = this.isSquare ? this.layer.shape.map(() => 1) : this.layer.lengths();
    const known = this.axes.map((axis) => lengths[axis]).filter((length) => length !== null);
    this.unit = Math.min(...known, Infinity);
    if (!Number.isFinite(this.unit)) this.unit = 1;
    this.lengths = lengths.map((length) => length && length / this.unit);
  }

  /** Screen pixels of a sample along an axis. */
  pixels(axis) {
    return this.zoom * (this.lengths[axis] ?? this.free) * this.stretch(axis);
  }

  /** Vertical exaggeration, and the distance of the traces of a gather. */
  stretch(axis) {
    if (this.isSquare) return 1;
    return axis === this.layer.vertical ? this.exaggeration : axis === this.layer.gather ? this.spread : 1;
  }

  /** Shows all of the planes; `sizes` are those of their canvases, in pixels. */
  fit(sizes) {
    const room = this.planes.map((plane, n) => ({ ...plane, size: sizes[n] })).filter(({ size }) => size[0] > 10 && size[1] > 10);
    if (room.length === 0) return;
    const count = (axis) => this.layer.shape[axis];
    const stretch = (axis) => this.stretch(axis);
    const isGather = (axis) => axis === this.layer.gather && this.lengths[axis] === null;
    const least = (list) => Math.min(...list, Infinity);
    const known = room.flatMap(({ row, column, size }) => [[column, size[0]], [row, size[1]]])
      .filter(([axis]) => this.lengths[axis] !== null);
    this.zoom = least(known.map(([axis, pixels]) => pixels / (count(axis) * this.lengths[axis] * stretch(axis)))) * 0.96;
    if (!Number.isFinite(this.zoom)) this.zoom = 1;
    const free = room.flatMap(({ row, column, size }) => [[column, size[0]], [row, size[1]]]).filter(([axis]) => this.lengths[axis] === null && !isGather(axis));
    const needed = least(free.map(([axis, pixels]) => (pixels * 0.96) / (count(axis) * this.zoom * stretch(axis))));
    this.free = Number.isFinite(needed) ? needed : 1;
    // a gather takes the width of its plane
    const spread = least(room.flatMap(({ row, column, size }) => [[column, size[0]], [row, size[1]]]).filter(([axis]) => isGather(axis))
      .map(([axis, pixels]) => (pixels * 0.96) / (count(axis) * this.zoom * this.free)));
    this.spread = Number.isFinite(spread) ? spread : 1;
    this.centre = this.layer.shape.map((n) => (n - 1) / 2);
    this.isFitted = true;
    this.changed();
  }

  zoomBy(factor) {
    const size = (axis) => (this.lengths[axis] ?? this.free) * (axis === this.layer.gather ? this.stretch(axis) : 1);
    const most = 64 / Math.min(...this.axes.map(size));
    const least = 2 / Math.max(...this.axes.map((axis) => this.layer.shape[axis] * size(axis)));
    this.zoom = clamp(this.zoom * factor, least, Math.max(most, least));
    this.isFitted = false;
    this.changed();
  }

  moveCentre(axis, to) {
    this.centre[axis] = clamp(to, -0.5, this.layer.shape[axis] - 0.5);
    this.isFitted = false;
    this.changed();
  }

  setIndex(axis, index) {
    const next = clamp(Math.round(index), 0, this.layer.shape[axis] - 1);
    if (!Number.isFinite(next) || next === this.index[axis]) return;
    this.lastMove[axis] = Math.sign(next - this.index[axis]);
    [this.steppedAt, this.steppedAxis] = [performance.now(), axis];
    this.index[axis] = next;
    this.changed();
  }

  set(properties) {
    Object.assign(this, properties);
    if ("isSquare" in properties) this.measure();
    if ("range" in properties || "map" in properties || "picked" in properties) this.styleNumber++;
    this.changed();
  }

  /** Colours of the layer's own samples: the range is one of values. */
  style() {
    const [low, high] = this.range ?? [0, 1];
    const { layer, map, picked, styleNumber } = this;
    return { map, picked, number: styleNumber, kind: layer.kind, missing: layer.missing, low: layer.toStored(low), high: layer.toStored(high) };
  }

  /** The text after # of the address. */
  encode() {
    const parts = new URLSearchParams();
    parts.set("layer", this.layer.name);
    parts.set("at", this.index.join(","));
    if (this.axes.join() !== this.layer.usualPlanes().join()) parts.set("axes", this.axes.join(","));
    if (!this.isFitted) {
      parts.set("centre", this.axes.map((axis) => this.centre[axis].toFixed(1)).join(","));
      parts.set("zoom", [this.zoom, this.free, ...(this.axes.includes(this.layer.gather) ? [this.spread] : [])].map((value) => value.toPrecision(4)).join(","));
    }
    if (this.range && !this.isGuessed && this.layer.kind !== "labels") parts.set("range", this.range.map((value) => value.toPrecision(6)).map(Number).join(","));
    parts.set("colours", this.map);
    if (this.maximized !== null) parts.set("plane", String(this.maximized));
    if (this.overlay.layer) parts.set("over", `${this.overlay.layer.name},${this.overlay.opacity}`);
    if (this.exaggeration !== 1) parts.set("vertical", String(this.exaggeration));
    if (this.line.length > 1) parts.set("line", this.line.flat().join(","));
    if (this.picked !== null) parts.set("label", String(this.picked));
    for (const [name, isOn] of [["north", this.isNorthUp], ["square", this.isSquare], ["wiggle", this.isWiggle]]) if (isOn) parts.set(name, "1");
    return parts.toString();
  }

  /** Takes over what the text says, as far as it fits. */
  decode(text) {
    const parts = new URLSearchParams(text);
    const numbers = (name, count) => {
      const list = (parts.get(name) ?? "").split(",").map(Number);
      return parts.has(name) && list.length === count && list.every(Number.isFinite) ? list : null;
    };
    const axes = numbers("axes", this.axes.length);
    if (axes && new Set(axes).size === axes.length && axes.every((axis) => this.layer.axes[axis] && axis !== this.layer.channel)) this.showAxes(axes);
    numbers("at", this.index.length)?.forEach((index, axis) => { this.index[axis] = clamp(Math.round(index), 0, this.layer.shape[axis] - 1); });
    this.isSquare = parts.get("square") === "1";
    this.measure();
    const zoom = numbers("zoom", this.axes.includes(this.layer.gather) ? 3 : 2);
    const centre = numbers("centre", this.axes.length);
    this.isFitted = !(zoom && centre && zoom.every((value) => value > 0));
    if (!this.isFitted) {
      [this.zoom, this.free, this.spread = 1] = zoom;
      this.axes.forEach((axis, n) => { this.centre[axis] = clamp(centre[n], -0.5, this.layer.shape[axis] - 0.5); });
    }
    const range = numbers("range", 2);
    if (range && range[0] < range[1]) this.range = range;
    if (COLOUR_MAPS.includes(parts.get("colours"))) this.map = parts.get("colours");
    const plane = Number(parts.get("plane"));
    this.maximized = parts.has("plane") && this.planes[plane] ? plane : null;
    this.exaggeration = clamp(Number(parts.get("vertical")) || 1, 0.1, 100);
    this.isNorthUp = parts.get("north") === "1";
    this.isWiggle = parts.get("wiggle") === "1";
    const line = (parts.get("line") ?? "").split(",").map(Number);
    const [lines, crosslines] = [this.layer.shape[this.layer.inline], this.layer.shape[this.layer.crossline]];
    this.line = parts.has("line") && line.every(Number.isFinite) && line.length % 2 === 0 && line.length <= 200 && lines && crosslines
      ? Array.from({ length: line.length / 2 }, (_, n) => [clamp(line[2 * n], 0, lines - 1), clamp(line[2 * n + 1], 0, crosslines - 1)]) : [];
    const label = parts.get("label");
    this.picked = label && /^-?\d{1,20}$/.test(label) ? (/int64/.test(this.layer.dtype) ? BigInt(label) : Number(label)) : null;
    this.styleNumber++;
    const over = (parts.get("over") ?? "").split(",");
    return { overlay: over.length > 1 ? { name: over.slice(0, -1).join(","), opacity: clamp(Number(over.at(-1)) || 0.5, 0, 1) } : null };
  }
}
