// A slice on a canvas: tiles of the level that fits the zoom, which can be dragged and zoomed.

import { SampleStore, clamp, fromFinest, toFinest } from "./samples.js";
import { paint } from "./colours.js";

/** Samples of a tile along each side. */
const TILE = 256;
/** Painted tiles that are kept. */
const PAINTED = 300;
/** Slices that are fetched ahead of one who goes through them. */
const AHEAD = 12;
/** Screen pixels for a sample, below which the next level is shown. */
const FINE_ENOUGH = 0.75;
/** Tiles that a canvas may show: so many that their samples can be kept. */
const MOST_TILES = 200;

export class Viewer {
  /** `levels`: lodN.json of each, finest first. `about`: spatial (axes), isSeismic, rgb, missing. */
  constructor(canvas, folder, levels, about) {
    Object.assign(this, { canvas, folder, levels, about });
    this.changed = () => {};
    this.store = new SampleStore(() => this.redraw());
    this.painted = new Map();
    this.style = { map: "Grey", range: [0, 1], missing: about.missing, rgb: about.rgb };
    this.styleNumber = 0;
    this.index = levels[0].shape.map((count) => Math.floor(count / 2));
    this.direction = 1;
    this.cursor = null;
    this.frames = { drawn: 0, complete: 0 };
    this.listen();
    this.setAxis(about.spatial[0]);
  }

  /** Shows slices across an axis: rows and columns are the other two. */
  setAxis(axis) {
    this.axis = axis;
    const others = this.about.spatial.filter((other) => other !== axis);
    const vertical = this.about.isSeismic && axis !== this.about.spatial.at(-1) ? others.at(-1) : others[0];
    this.rowAxis = vertical;
    this.columnAxis = others.find((other) => other !== vertical);
    this.cursor = null;
    this.fit();
  }

  count(axis) {
    return this.levels[0].shape[axis];
  }

  setIndex(axis, index) {
    const next = clamp(Math.round(index), 0, this.count(axis) - 1);
    if (axis === this.axis && next !== this.index[axis]) this.direction = Math.sign(next - this.index[axis]);
    this.index[axis] = next;
    this.redraw();
    this.changed();
  }

  setStyle(style) {
    Object.assign(this.style, style);
    this.styleNumber++;
    this.redraw();
  }

  /** Shows the whole slice. */
  fit() {
    const [width, height] = this.resize();
    const [columns, rows] = [this.count(this.columnAxis), this.count(this.rowAxis)];
    const step = (axis) => Math.abs(this.levels[0].axes[axis].step) || 1;
    // samples of a survey have no length to compare with that of a trace distance: the slice fills the canvas
    const shape = this.about.isSeismic ? clamp((height * columns) / (width * rows), 0.1, 10)
      : step(this.rowAxis) / step(this.columnAxis);
    this.ratio = shape;
    this.scale = Math.min(width / columns, height / (rows * shape)) * 0.98;
    this.centre = [(columns - 1) / 2, (rows - 1) / 2];
    this.redraw();
    this.changed();
  }

  /** The least scale, where a slice without a level that is coarse enough has too many tiles to be shown whole; else 0. */
  leastScale() {
    const [width, height] = this.resize();
    const coarsest = this.levels.at(-1).shape;
    const tiles = (axis, pixels) => 1 + (coarsest[axis] / TILE) * Math.min(1, pixels / this.count(axis));
    const count = (scale) => tiles(this.columnAxis, width / scale) * tiles(this.rowAxis, height / (scale * this.ratio));
    let scale = 1e-9;
    if (count(scale) <= MOST_TILES) return 0;
    while (count(scale) > MOST_TILES) scale *= 1.1;
    return scale;
  }

  /** Whether less than the whole slice is shown because more cannot be. */
  get isLimited() {
    const least = this.leastScale();
    return least > 0 && this.scale < 1.1 * least;
  }

  zoom(factor, at = null) {
    const before = at && this.positionAt(...at);
    const most = 64;
    const least = (Math.min(...this.resize()) / Math.max(this.count(this.columnAxis), this.count(this.rowAxis))) * 0.1;
    this.scale = clamp(this.scale * factor, Math.max(least / Math.max(1, this.ratio), this.leastScale()), most);
    if (before) {
      const after = this.positionAt(...at);
      this.centre = [this.centre[0] + before[0] - after[0], this.centre[1] + before[1] - after[1]];
    }
    this.redraw();
    this.changed();
  }

  pan(x, y) {
    this.centre = [
      clamp(this.centre[0] - x / this.scale, 0, this.count(this.columnAxis) - 1),
      clamp(this.centre[1] - y / (this.scale * this.ratio), 0, this.count(this.rowAxis) - 1),
    ];
    this.redraw();
  }

  /** The position (column, row) in indexes of the finest level, at a point of the canvas. */
  positionAt(x, y) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    return [this.centre[0] + (x - width / 2) / this.scale, this.centre[1] + (y - height / 2) / (this.scale * this.ratio)];
  }

  pointAt(column, row) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    return [width / 2 + (column - this.centre[0]) * this.scale, height / 2 + (row - this.centre[1]) * this.scale * this.ratio];
  }

  /** The number of the level that fits the zoom. */
  get lod() {
    const steps = (level, axis) => this.count(axis) / level.shape[axis];
    let best = 0;
    this.levels.forEach((level, lod) => {
      const size = Math.max(steps(level, this.columnAxis) * this.scale,
        steps(level, this.rowAxis) * this.scale * this.ratio) * (window.devicePixelRatio || 1);
      if (lod > 0 && size <= 1 / FINE_ENOUGH) best = lod;
    });
    return best;
  }

  indexIn(lod, axis, index = this.index[axis]) {
    const level = this.levels[lod];
    return clamp(Math.round(fromFinest(level, this.levels[0], axis, index)), 0, level.shape[axis] - 1);
  }

  /** The box of a tile, as text and as what is asked for. */
  tile(lod, sliceIndex, tileRow, tileColumn) {
    const level = this.levels[lod];
    const box = level.shape.map((count, axis) => {
      if (axis === this.axis) return [sliceIndex, sliceIndex + 1];
      if (axis === this.rowAxis) return [tileRow * TILE, Math.min((tileRow + 1) * TILE, count)];
      if (axis === this.columnAxis) return [tileColumn * TILE, Math.min((tileColumn + 1) * TILE, count)];
      if (this.about.rgb) return [0, count];
      const index = this.indexIn(lod, axis);
      return [index, index + 1];
    });
    const text = box.map(([from, to]) => `${from}:${to}`).join(",");
    return { key: `${lod}/${text}`, url: `${this.folder}lod${lod}.raw?box=${text}`, dtype: level.dtype, box };
  }

  /** The tiles of a level that the canvas shows. */
  *tiles(lod, sliceIndex) {
    const level = this.levels[lod];
    const [left, top] = this.positionAt(0, 0);
    const [right, bottom] = this.positionAt(this.canvas.clientWidth, this.canvas.clientHeight);
    const range = (axis, from, to) => {
      const ends = [from, to].map((end) => fromFinest(level, this.levels[0], axis, end));
      const last = Math.ceil(level.shape[axis] / TILE) - 1;
      return ends.map((end, n) => clamp(Math.floor((end + (n ? 1 : -1)) / TILE), 0, last)).sort((a, b) => a - b);
    };
    const [row0, row1] = range(this.rowAxis, top, bottom);
    const [column0, column1] = range(this.columnAxis, left, right);
    for (let row = row0; row <= row1; row++) {
      for (let column = column0; column <= column1; column++) yield this.tile(lod, sliceIndex, row, column);
    }
  }

  redraw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = null;
      this.draw();
    });
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    return [width || 1, height || 1];
  }

  draw() {
    this.resize();
    // also where the canvas has become larger
    this.scale = Math.max(this.scale, this.leastScale());
    const context = this.canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    context.imageSmoothingEnabled = false;
    const lod = this.lod;
    const coarsest = this.levels.length - 1;
    const missing = [];
    this.problem = null;
    // what is there of coarser levels stands in for what is not there yet
    const isHere = [...this.tiles(lod, this.indexIn(lod, this.axis))].every((tile) => this.store.get(tile.key));
    for (let shown = isHere ? lod : coarsest; shown >= lod; shown--) {
      for (const tile of this.tiles(shown, this.indexIn(shown, this.axis))) {
        const picture = this.picture(tile);
        if (picture) this.place(context, shown, tile, picture);
        else if (shown === lod && !this.store.get(tile.key)) missing.push(tile);
      }
    }
    this.isComplete = missing.length === 0;
    this.frames.drawn++;
    if (this.isComplete) this.frames.complete++;
    this.drawCursor(context);
    this.store.want([...missing, ...this.ahead(lod, missing.length)]);
    this.shownLod = lod;
    this.changed();
  }

  /** The tiles of the next slices, for one who goes on in the same direction. */
  ahead(lod, missing) {
    const tiles = [];
    for (let step = 1; step <= (missing > 4 ? 1 : AHEAD) && tiles.length < 32; step++) {
      const index = this.index[this.axis] + step * this.direction;
      if (index < 0 || index >= this.count(this.axis)) break;
      tiles.push(...this.tiles(lod, this.indexIn(lod, this.axis, index)));
    }
    return tiles;
  }

  /** A tile as a picture, or null if its samples are not there. */
  picture(tile) {
    const samples = this.store.get(tile.key);
    if (!samples) return null;
    if (samples.error) {
      this.problem = samples.error;
      return null;
    }
    const known = this.painted.get(tile.key);
    if (known?.number === this.styleNumber) return known.canvas;
    const size = (axis) => tile.box[axis][1] - tile.box[axis][0];
    // the box is in C order: strides in samples
    const strides = tile.box.map((_, axis) => tile.box.slice(axis + 1).reduce((n, [from, to]) => n * (to - from), 1));
    const layout = {
      rows: size(this.rowAxis), columns: size(this.columnAxis),
      rowStep: strides[this.rowAxis], columnStep: strides[this.columnAxis],
    };
    const canvas = known?.canvas ?? document.createElement("canvas");
    canvas.width = layout.columns;
    canvas.height = layout.rows;
    canvas.getContext("2d").putImageData(paint(samples, layout, this.style), 0, 0);
    this.painted.delete(tile.key);
    this.painted.set(tile.key, { canvas, number: this.styleNumber });
    if (this.painted.size > PAINTED) this.painted.delete(this.painted.keys().next().value);
    return canvas;
  }

  place(context, lod, tile, picture) {
    const edge = (axis, index) => toFinest(this.levels[lod], this.levels[0], axis, index - 0.5);
    const [x0, y0] = this.pointAt(edge(this.columnAxis, tile.box[this.columnAxis][0]), edge(this.rowAxis, tile.box[this.rowAxis][0]));
    const [x1, y1] = this.pointAt(edge(this.columnAxis, tile.box[this.columnAxis][1]), edge(this.rowAxis, tile.box[this.rowAxis][1]));
    context.drawImage(picture, x0, y0, x1 - x0, y1 - y0);
  }

  drawCursor(context) {
    if (!this.cursor) return;
    const [x, y] = this.pointAt(...this.cursor);
    const size = [Math.max(6, this.scale), Math.max(6, this.scale * this.ratio)];
    for (const [colour, width] of [["#000", 3], ["#fff", 1.5]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect(x - size[0] / 2, y - size[1] / 2, ...size);
    }
  }

  /** Moves the cursor to a sample of the finest level. */
  setCursor(column, row) {
    const inside = column >= -0.5 && row >= -0.5 && column < this.count(this.columnAxis) - 0.5 && row < this.count(this.rowAxis) - 0.5;
    this.cursor = inside ? [Math.round(column), Math.round(row)] : null;
    this.redraw();
    this.changed();
  }

  /** The index of the cursor in the finest level; null without a cursor. */
  cursorIndex() {
    if (!this.cursor) return null;
    return this.index.map((index, axis) => (axis === this.columnAxis ? this.cursor[0] : axis === this.rowAxis ? this.cursor[1] : index));
  }

  /** The stored value under the cursor, of the level that is shown: {lod, index, value}; null if it is not there. */
  cursorValue() {
    const finest = this.cursorIndex();
    if (!finest || this.shownLod === undefined) return null;
    const lod = this.shownLod;
    const index = finest.map((position, axis) => this.indexIn(lod, axis, position));
    const tile = this.tile(lod, index[this.axis], Math.floor(index[this.rowAxis] / TILE), Math.floor(index[this.columnAxis] / TILE));
    const samples = this.store.get(tile.key);
    if (!samples || samples.error) return null;
    let at = 0;
    tile.box.forEach(([from, to], axis) => {
      at = at * (to - from) + (this.about.rgb && axis === 3 ? 0 : index[axis] - from);
    });
    return { lod, index, value: this.about.rgb ? [...samples.subarray(at, at + 3)] : samples[at] };
  }

  /** The samples of the tiles that are shown. */
  shownSamples() {
    const tiles = [...this.tiles(this.shownLod ?? 0, this.indexIn(this.shownLod ?? 0, this.axis))];
    return tiles.map((tile) => this.store.get(tile.key)).filter((samples) => samples && !samples.error);
  }

  listen() {
    const { canvas } = this;
    const pointers = new Map();
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, point(event));
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = point(event);
      const from = pointers.get(event.pointerId);
      if (from && pointers.size === 1) this.pan(x - from[0], y - from[1]);
      if (from && pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
        const length = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
        this.zoom(length([x, y]) / length(from), [(x + other[0]) / 2, (y + other[1]) / 2]);
      }
      if (from) pointers.set(event.pointerId, [x, y]);
      this.setCursor(...this.positionAt(x, y));
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => pointers.delete(event.pointerId));
    }
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), point(event));
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => this.zoom(2, point(event)));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.redraw()).observe(canvas);
  }

  key(event) {
    const { key, shiftKey } = event;
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const slices = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
    if (shiftKey && moves[key]) {
      const [column, row] = this.cursor ?? this.centre.map(Math.round);
      const next = [clamp(column + moves[key][0], 0, this.count(this.columnAxis) - 1), clamp(row + moves[key][1], 0, this.count(this.rowAxis) - 1)];
      const [x, y] = this.pointAt(...next);
      const { clientWidth: width, clientHeight: height } = this.canvas;
      if (x < 0 || y < 0 || x > width || y > height) this.centre = next;
      this.setCursor(...next);
    } else if (slices[key]) {
      this.setIndex(this.axis, this.index[this.axis] + slices[key]);
    } else if (key === "Home") {
      this.setIndex(this.axis, 0);
    } else if (key === "End") {
      this.setIndex(this.axis, this.count(this.axis) - 1);
    } else if (key === "+" || key === "=") {
      this.zoom(1.5);
    } else if (key === "-") {
      this.zoom(1 / 1.5);
    } else if (key === "0") {
      this.fit();
    } else {
      return;
    }
    event.preventDefault();
  }
}
