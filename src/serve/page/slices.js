// The pictures of one layer in a plane: tiles of the level that fits the zoom, and what stands in for those that are not
// there yet.

import { paint } from "./colours.js";
import { clamp, context2d } from "./dom.js";
import { placement } from "./layer.js";
import { sizeOf } from "./samples.js";

/** Samples of a tile along each side. */
const TILE = 512;
/** Painted tiles that are kept, of 1 MiB each, unless more are shown. */
const PAINTED = 4;
/** Slices that are fetched ahead of one who goes through them. */
const AHEAD = 12;
/** Screen pixels for a sample, below which the next level is shown. */
const FINE_ENOUGH = 0.75;
/** Tiles that a plane may show: the samples of all of them are kept. */
const MOST_TILES = 32;
/** A tile that cannot be read is read in no more parts than this. */
const MOST_PARTS = 256;

/** The slices of a layer along one plane: `row`, `column` and `across` are axes of this layer. */
export class Slices {
  /** `place(axis)`: how indexes of this layer's finest level lie in that of the plane's layer: {factor, shift}. */
  constructor(layer, store, { row, column, across }, place = () => ({ factor: 1, shift: 0 })) {
    Object.assign(this, { layer, store, row, column, across, place });
    this.painted = new Map();
    this.drawn = 0;
    this.channel = null;
    this.last = null;
  }

  /** The level that fits: one whose samples are not much smaller than pixels. */
  level(pixels) {
    const ratio = window.devicePixelRatio || 1;
    let best = 0;
    this.layer.levels.forEach((level, lod) => {
      const size = (axis) => (this.layer.shape[axis] / level.shape[axis]) * pixels(axis) * ratio;
      if (lod > 0 && Math.max(size(this.row), size(this.column)) <= 1 / FINE_ENOUGH) best = lod;
    });
    return best;
  }

  indexIn(lod, axis, index) {
    const level = this.layer.levels[lod];
    const { factor, shift } = placement(level, this.layer.finest, axis);
    return clamp(Math.round((index - shift) / factor), 0, level.shape[axis] - 1);
  }

  /** A box of a level as text, and as what is asked for. `[rows, columns]` are its ranges in the level. */
  box(lod, at, rows, columns) {
    const level = this.layer.levels[lod];
    const box = level.shape.map((count, axis) => {
      if (axis === this.row) return rows;
      if (axis === this.column) return columns;
      if (axis === this.layer.channel && this.layer.kind === "rgb") return [0, count];
      const index = this.indexIn(lod, axis, axis === this.layer.channel && this.channel !== null ? this.channel.number : at[axis]);
      return [index, index + 1];
    });
    const text = box.map(([from, to]) => `${from}:${to}`).join(",");
    const url = `${this.layer.folder}lod${lod}.raw?box=${text}`;
    return { key: url, url, dtype: level.dtype, layer: this.layer, lod, box };
  }

  /** The tiles of a level in a range of rows and columns of the finest level, those in the middle first. */
  tiles(lod, at, bounds) {
    const level = this.layer.levels[lod];
    const range = (axis, [from, to]) => {
      const { factor, shift } = placement(level, this.layer.finest, axis);
      const ends = [from, to].map((end) => (end - shift) / factor).sort((a, b) => a - b);
      const last = Math.ceil(level.shape[axis] / TILE) - 1;
      return ends.map((end) => clamp(Math.floor((end + 0.5) / TILE), 0, last));
    };
    const [row0, row1] = range(this.row, bounds.rows);
    const [column0, column1] = range(this.column, bounds.columns);
    const span = (axis, n) => [n * TILE, Math.min((n + 1) * TILE, level.shape[axis])];
    const middle = [(row0 + row1) / 2, (column0 + column1) / 2];
    const found = [];
    for (let row = row0; row <= row1 && found.length <= MOST_TILES; row++) {
      for (let column = column0; column <= column1; column++) {
        found.push({ ...this.box(lod, at, span(this.row, row), span(this.column, column)), far: Math.hypot(row - middle[0], column - middle[1]) });
      }
    }
    return found.sort((a, b) => a.far - b.far);
  }

  /** Whether a slice has no level that is coarse enough to be shown at this zoom. */
  isTooLarge(pixels, bounds) {
    const level = this.layer.levels[this.level(pixels)];
    const tiles = (axis, [from, to]) => 1 + ((to - from) * (level.shape[axis] / this.layer.shape[axis])) / TILE;
    return tiles(this.row, bounds.rows) * tiles(this.column, bounds.columns) > MOST_TILES;
  }

  /** Reads a tile that could not be read in parts of a brick, so that the other bricks are seen. */
  parts(tile) {
    const brick = this.layer.levels[tile.lod].brick_shape;
    const cut = (axis) => {
      const [from, to] = tile.box[axis];
      const step = Math.max(1, brick?.[axis] ?? TILE);
      const ends = [];
      for (let at = from; at < to; at = Math.min(to, (Math.floor(at / step) + 1) * step)) ends.push([at, Math.min(to, (Math.floor(at / step) + 1) * step)]);
      return ends;
    };
    const [rows, columns] = [cut(this.row), cut(this.column)];
    const count = rows.length * columns.length;
    if (count <= 1 || count > MOST_PARTS) return null;
    const at = tile.box.map(([from], axis) => { const { factor, shift } = placement(this.layer.levels[tile.lod], this.layer.finest, axis); return from * factor + shift; });
    return rows.flatMap((row) => columns.map((column) => this.box(tile.lod, at, row, column)));
  }

  /**
   * Draws what is there: `draw(picture, rows, columns)` gets ranges of the finest level, and `damaged(reason, ...)` what
   * cannot be read. Returns {lod, missing: what is to be fetched, isComplete, isStale, bytes: the most that it takes}.
   */
  draw({ at, bounds, pixels, style, draw, damaged }) {
    const lod = this.level(pixels);
    const missing = [];
    this.drawn++;
    const sharp = this.tiles(lod, at, bounds).flatMap((tile) => {
      const samples = this.store.get(tile.key);
      return samples?.error ? this.parts(tile) ?? [tile] : [tile];
    });
    for (const tile of sharp) if (!this.store.get(tile.key)) missing.push(tile);
    let isStale = false;
    if (missing.length > 0) {
      // the last slice that was complete, and coarser levels of this one
      const previous = this.last;
      if (previous) for (const tile of previous) this.drawTile(tile, style, draw, damaged);
      isStale = previous !== null;
      for (let coarse = this.layer.levels.length - 1; coarse > lod; coarse--) {
        const tiles = this.tiles(coarse, at, bounds);
        for (const tile of tiles) this.drawTile(tile, style, draw, damaged);
        if (tiles.every((tile) => this.store.get(tile.key))) isStale = false;
      }
    } else {
      this.last = sharp;
    }
    for (const tile of sharp) this.drawTile(tile, style, draw, damaged);
    this.dropPainted();
    const samples = sharp.reduce((sum, { box }) => sum + box.reduce((count, [from, to]) => count * (to - from), 1), 0);
    // of float16 the values are kept, as float32
    const size = this.layer.dtype === "float16" ? 4 : sizeOf(this.layer.dtype);
    return { lod, missing, isComplete: missing.length === 0, isStale, bytes: size * samples };
  }

  dropPainted() {
    for (const [key, { canvas, drawn }] of this.painted) {
      if (this.painted.size <= PAINTED) return;
      if (drawn === this.drawn) continue;
      this.painted.delete(key);
      // the memory is free at once, and not when the collector comes
      canvas.width = canvas.height = 0;
    }
  }

  /** What to fetch at first where a slice takes long: a level that has an eighth of the samples or fewer. */
  quick(lod, at, bounds) {
    const coarse = Math.min(this.layer.levels.length - 1, lod + 2);
    return coarse > lod ? this.tiles(coarse, at, bounds).filter((tile) => !this.store.get(tile.key)) : [];
  }

  /** The tiles of the next slices, for one who goes on in the same direction. */
  ahead(lod, at, bounds, direction) {
    const tiles = [];
    if (this.across === null) return tiles;
    const seen = new Set();
    for (let step = 1; step <= AHEAD && tiles.length < AHEAD; step++) {
      const next = [...at];
      next[this.across] += step * direction;
      if (next[this.across] < 0 || next[this.across] >= this.layer.shape[this.across]) break;
      for (const tile of this.tiles(lod, next, bounds)) if (!seen.has(tile.key)) { seen.add(tile.key); tiles.push(tile); }
    }
    return tiles;
  }

  drawTile(tile, style, draw, damaged) {
    const samples = this.store.get(tile.key);
    if (!samples) return;
    const edges = (axis) => {
      const { factor, shift } = placement(this.layer.levels[tile.lod], this.layer.finest, axis);
      const { factor: f, shift: s } = this.place(axis);
      return tile.box[axis].map((index) => ((index - 0.5) * factor + shift) * f + s);
    };
    if (samples.error) damaged(samples.error, edges(this.row), edges(this.column));
    else draw(this.picture(tile, samples, style), edges(this.row), edges(this.column));
  }

  picture(tile, samples, style) {
    const known = this.painted.get(tile.key);
    this.painted.delete(tile.key);
    if (known?.number === style.number && known.version === this.store.version) {
      this.painted.set(tile.key, { ...known, drawn: this.drawn });
      return known.canvas;
    }
    const size = (axis) => tile.box[axis][1] - tile.box[axis][0];
    // the box is in C order: strides in samples
    const strides = tile.box.map((_, axis) => tile.box.slice(axis + 1).reduce((n, [from, to]) => n * (to - from), 1));
    const layout = { rows: size(this.row), columns: size(this.column), rowStep: strides[this.row], columnStep: strides[this.column] };
    const canvas = known?.canvas ?? document.createElement("canvas");
    [canvas.width, canvas.height] = [layout.columns, layout.rows];
    context2d(canvas).putImageData(paint(samples, layout, style), 0, 0);
    this.painted.set(tile.key, { canvas, number: style.number, version: this.store.version, drawn: this.drawn });
    return canvas;
  }

  /** The stored sample at an index of the finest level, of the level that is shown: {value, error}; null if not there. */
  sample(lod, at) {
    const within = this.layer.shape.map((count, axis) => clamp(at[axis], 0, count - 1));
    const inLevel = within.map((index, axis) => this.indexIn(lod, axis, index));
    const bounds = { rows: [within[this.row], within[this.row]], columns: [within[this.column], within[this.column]] };
    const tile = this.tiles(lod, within, bounds)[0];
    let found = tile && this.store.get(tile.key) ? tile : null;
    if (found && this.store.get(tile.key).error) {
      const holds = (part) => [this.row, this.column].every((axis) => inLevel[axis] >= part.box[axis][0] && inLevel[axis] < part.box[axis][1]);
      found = this.parts(tile)?.find(holds) ?? tile;
    }
    const samples = found && this.store.get(found.key);
    if (!samples) return null;
    if (samples.error) return { error: samples.error };
    const isRgb = this.layer.kind === "rgb";
    let offset = 0;
    found.box.forEach(([from, to], axis) => {
      const index = axis === this.layer.channel ? (isRgb ? 0 : from) : inLevel[axis];
      offset = offset * (to - from) + index - from;
    });
    return { value: isRgb ? [...samples.subarray(offset, offset + 3)] : samples[offset] };
  }

  /** Calls back with the samples of a trace that are there: `each(row, stored)`, from a row of the finest level on. */
  trace(lod, at, [from, to], each) {
    const level = this.layer.levels[lod];
    const { factor, shift } = placement(level, this.layer.finest, this.row);
    const bounds = { rows: [from, to], columns: [at[this.column], at[this.column]] };
    for (const tile of this.tiles(lod, at, bounds).sort((a, b) => a.box[this.row][0] - b.box[this.row][0])) {
      const samples = this.store.get(tile.key);
      if (!samples || samples.error) continue;
      const strides = tile.box.map((_, axis) => tile.box.slice(axis + 1).reduce((n, [first, end]) => n * (end - first), 1));
      const column = this.indexIn(lod, this.column, at[this.column]) - tile.box[this.column][0];
      const [first, end] = tile.box[this.row];
      for (let row = first; row < end; row++) each(row * factor + shift, samples[column * strides[this.column] + (row - first) * strides[this.row]]);
    }
  }

  /** The arrays of samples that are shown. */
  *shown(lod, at, bounds) {
    for (const tile of this.tiles(lod, at, bounds)) {
      const samples = this.store.get(tile.key);
      if (samples && !samples.error) yield samples;
      else if (samples) for (const part of this.parts(tile) ?? []) {
        const inPart = this.store.get(part.key);
        if (inPart && !inPart.error) yield inPart;
      }
    }
  }
}
