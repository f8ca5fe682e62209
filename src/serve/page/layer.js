// What a layer is: its levels, what its axes mean, how long a sample is along each, and how its samples become values.

import { getJson } from "./samples.js";

const VERTICAL = /^(sample|time|depth|twt|tvd|tvdss|z)$/i;
/** The axis of the traces of a gather. */
const GATHER = /\b(offset|angle|azimuth)|^trace\b/i;
const CHANNEL = /^(c|channel|component|rgb)$/i;
/** Units of length in metres. Samples of a time have no length. */
const LENGTHS = {
  angstrom: 1e-10, nm: 1e-9, nanometer: 1e-9, um: 1e-6, "µm": 1e-6, micrometer: 1e-6, micron: 1e-6, mm: 1e-3, millimeter: 1e-3,
  cm: 1e-2, centimeter: 1e-2, m: 1, meter: 1, metre: 1, km: 1e3, kilometer: 1e3, ft: 0.3048, foot: 0.3048,
};

export const CHANGED = "the source has changed; load the page again";

/** The entries of this folder, which the page has; null if it has only some of them. */
export function entriesHere() {
  if (location.search !== "" || document.getElementById("more")) return null;
  return [...document.querySelectorAll("#entries li")].map((item) => {
    const link = item.querySelector("a");
    return { name: link.textContent.replace(/\/$/, ""), href: link.getAttribute("href"), kind: item.dataset.kind };
  });
}

/** The layers of a dataset with the folders that show them. `listed` are the entries of the folder, if they are known. */
export async function layersOf(folder, listed = null) {
  const entries = listed ?? (await getJson(folder)).entries;
  // what cannot be opened says why
  if (entries.some((entry) => entry.name === "error.txt")) throw new Error((await (await fetch(`${folder}error.txt`)).text()).trim());
  let version = null;
  const dataset = await getJson(`${folder}dataset.json`, (found) => { version = found; });
  const folders = entries.filter((entry) => entry.kind === "folder");
  const places = folders.filter((entry) => !entry.name.endsWith(".zarr"));
  const shown = dataset.layers.filter((layer) => !layer.reason);
  const layers = shown.slice(0, places.length).map((layer, n) => {
    const zarr = folders.find((entry) => entry.name === `${places[n].name}.ome.zarr`);
    return { ...layer, href: places[n].href, folder: places[n].name, zarr: zarr?.href ?? null };
  });
  const refused = dataset.layers.filter((layer) => layer.reason);
  return { dataset, layers, refused, version };
}

export class Layer {
  /** Reads the description of each level. `entry` is one of `layersOf`, `base` the folder of its dataset. */
  static async open(dataset, entry, base = "./") {
    const folder = base + entry.href;
    const names = Array.from({ length: entry.lods }, (_, lod) => `${folder}lod${lod}.json`);
    const versions = new Set();
    const levels = await Promise.all(names.map((name) => getJson(name, (version) => versions.add(version))));
    if (versions.size > 1) throw new Error(CHANGED);
    return Object.assign(new Layer(dataset, entry, folder, levels), { base, entry, version: [...versions][0] });
  }

  /** The version of the dataset now; null if dataset or levels are not described as before. */
  async versionNow(attempts = 3) {
    let version = null;
    const dataset = await getJson(`${this.base}dataset.json`, (found) => { version = found; });
    const now = await Layer.open(dataset, this.entry, this.base).catch((error) => {
      if (error.message !== CHANGED) throw error;
    });
    if (now?.version !== version) return attempts > 0 ? this.versionNow(attempts - 1) : null;
    const isSame = JSON.stringify([dataset, now.levels]) === JSON.stringify([this.dataset, this.levels]);
    return isSame ? now.version : null;
  }

  constructor(dataset, entry, folder, levels) {
    const finest = levels[0];
    Object.assign(this, { dataset, folder, levels, finest, name: entry.name || entry.folder, zarr: entry.zarr });
    this.axes = finest.axes.map((axis, n) => ({ ...axis, number: n, name: axis.name || `axis ${n}` }));
    this.dtype = finest.dtype;
    this.shape = finest.shape;
    const find = (pattern) => this.axes.findIndex((axis) => pattern.test(axis.name));
    this.inline = find(/^inline/i);
    this.crossline = find(/^(crossline|xline)/i);
    const last = this.axes.length - 1;
    this.isSeismic = dataset.geometry !== null || this.inline >= 0 || this.crossline >= 0;
    const vertical = this.axes.findLastIndex((axis) => VERTICAL.test(axis.name));
    this.vertical = this.isSeismic ? (vertical >= 0 ? vertical : last) : -1;
    this.gather = this.isSeismic ? this.axes.findIndex((axis) => GATHER.test(axis.name) && ![this.inline, this.crossline, this.vertical].includes(axis.number)) : -1;
    this.channel = this.axes.findIndex((axis) => CHANNEL.test(axis.name));
    this.kind = this.kindOfSamples();
    this.missing = finest.no_value;
    this.scale = finest.scale || 1;
    this.offset = finest.offset ?? 0;
    this.channels = this.describeChannels();
  }

  kindOfSamples() {
    if (/^SEGYTraceHeader$/i.test(this.name) && this.dtype === "uint8" && this.shape.at(-1) >= 240) return "headers";
    const channels = this.channel < 0 ? 1 : this.shape[this.channel];
    const isLast = this.channel === this.axes.length - 1;
    if (this.dtype === "uint8" && isLast && (channels === 3 || channels === 4) && this.finest.format !== "vds") return "rgb";
    const category = this.finest.wkw?.category ?? this.finest.zarr?.category;
    const isInteger = /int/.test(this.dtype);
    // as in the pictures (view/picture/palettes.rs)
    const isLabels = category ? category === "segmentation" && isInteger
      : /(^|\/)labels\//.test(this.name) && isInteger || /^uint(32|64)$/.test(this.dtype) && this.finest.value_range === null;
    if (isLabels) return "labels";
    // light adds up; the components of vectors are looked at one by one
    const isLight = /^u?int(8|16)$/.test(this.dtype) && /^(c|channel)$/i.test(this.axes[this.channel]?.name ?? "");
    return channels > 1 && isLight && !this.isSeismic ? "channels" : "values";
  }

  describeChannels() {
    if (this.kind !== "channels") return [];
    const described = findKey(this.dataset.metadata, "omero")?.channels ?? findKey(this.dataset, "omero")?.channels ?? [];
    const colours = ["#ff3b3b", "#35d04a", "#4a7dff", "#ff4dff", "#ffd23b", "#3be0ff"];
    const count = this.shape[this.channel];
    return Array.from({ length: Math.min(count, 64) }, (_, n) => {
      const { label, color, window } = described[n] ?? {};
      const colour = /^[0-9a-f]{6}$/i.test(color ?? "") ? `#${color}` : colours[n % colours.length];
      const range = [window?.start, window?.end].every(Number.isFinite) && window.start < window.end ? [window.start, window.end] : null;
      return { number: n, name: label || `channel ${n}`, colour, range, isShown: n < 4 };
    });
  }

  toValue(stored) {
    return typeof stored === "number" && (this.scale !== 1 || this.offset !== 0) ? stored * this.scale + this.offset : stored;
  }

  toStored(value) {
    return (value - this.offset) / this.scale;
  }

  /** The axes whose planes are shown first: no more than three. */
  usualPlanes() {
    const wide = this.axes.filter((axis) => axis.number !== this.channel && axis.count > 1).map((axis) => axis.number);
    const all = this.axes.filter((axis) => axis.number !== this.channel).map((axis) => axis.number);
    const candidates = wide.length >= Math.min(2, all.length) ? wide : all;
    const lines = [this.inline, this.crossline, this.vertical];
    if (this.isSeismic && lines.every((axis) => candidates.includes(axis))) return [...lines].sort((a, b) => a - b);
    return candidates.slice(-3);
  }

  /** The position of a sample along an axis in the axis's own numbers; the index where it has none. */
  annotate(axis, index) {
    const { first, step } = this.axes[axis];
    return first === null || step === null ? index : first + index * step;
  }

  indexOf(axis, annotation) {
    const { first, step } = this.axes[axis];
    return first === null || !step ? annotation : (annotation - first) / step;
  }

  /** The text of a position: the axis's own number comes first. */
  text(axis, index, format) {
    const { unit } = this.axes[axis];
    return `${format(this.annotate(axis, index))}${unit && unit !== "unitless" ? ` ${abbreviated(unit)}` : ""}`;
  }

  /** World coordinates of an index, or null. */
  world(index) {
    const affine = this.dataset.geometry?.affine?.index_to_world;
    if (!affine || this.inline < 0 || this.crossline < 0) return null;
    const [i, j] = [index[this.inline], index[this.crossline]];
    return affine.map(([a, b, c]) => a * i + b * j + c);
  }

  /** The vectors in the world (east, north) of one sample along inline and crossline axes, or null. */
  worldSteps() {
    const affine = this.dataset.geometry?.affine?.index_to_world;
    if (!affine || this.inline < 0 || this.crossline < 0) return null;
    const steps = { [this.inline]: [affine[0][0], affine[1][0]], [this.crossline]: [affine[0][1], affine[1][1]] };
    return Object.values(steps).every(([x, y]) => Math.hypot(x, y) > 0) ? steps : null;
  }

  /** How long a sample is along each axis, all in one unit. An axis of which nobody knows gets null. */
  lengths() {
    const steps = this.worldSteps();
    const metres = LENGTHS[this.dataset.geometry?.units?.horizontal?.name] ?? 1;
    const known = this.axes.map((axis) => {
      // offsets are lengths, but no places in space
      if (axis.number === this.gather) return null;
      if (steps?.[axis.number]) return Math.hypot(...steps[axis.number]) * metres;
      const unit = LENGTHS[axis.unit];
      return unit && axis.step ? Math.abs(axis.step) * unit : null;
    });
    if (known.some((length) => length !== null)) return known;
    // axes without units: their steps are all that is known
    const isPlain = this.axes.every((axis) => axis.step === null || axis.step === 0 || axis.unit === this.axes[0].unit);
    return this.axes.map((axis) => (isPlain && !this.isSeismic ? Math.abs(axis.step) || 1 : axis.number === this.vertical || axis.number === this.gather ? null : 1));
  }
}

/** The value of a key at any depth of a JSON value. */
function findKey(value, key, depth = 8) {
  if (typeof value !== "object" || value === null || depth === 0) return undefined;
  if (value[key] !== undefined) return value[key];
  for (const part of Object.values(value)) {
    const found = findKey(part, key, depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

export const abbreviated = (unit) => ({ nanometer: "nm", micrometer: "µm", millimeter: "mm", meter: "m" })[unit] ?? unit;

/** How indexes along an axis of a level lie in the finest level: position = index * factor + shift. */
export function placement(level, finest, axis) {
  const [a, b] = [level.axes[axis], finest.axes[axis]];
  if (a.first === null || b.first === null || !b.step || !a.step) {
    const factor = b.count / a.count;
    return { factor, shift: factor / 2 - 0.5 };
  }
  return { factor: a.step / b.step, shift: (a.first - b.first) / b.step };
}
