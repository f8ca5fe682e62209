// The page of a dataset: its slices, what is under the cursor, its map, metadata and lines to copy.

import { COLOUR_MAPS, LABELS } from "./colours.js";
import { show as showSnippets, snippets } from "./copy.js";
import { collect, draw as drawHistogram, usualRange } from "./histogram.js";
import { bytes, layersOf } from "./list.js";
import { outline } from "./outline.js";
import { getJson } from "./samples.js";
import { Viewer } from "./viewer.js";

const VERTICAL = ["sample", "time", "depth", "twt"];

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role" || key === "for") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

function choice(id, label, names, chosen) {
  const select = element("select", { id });
  names.forEach((name, n) => select.append(element("option", { value: String(n), textContent: name, selected: n === chosen })));
  return [element("span", { className: "pair" }, element("label", { for: id, textContent: label }), select), select];
}

const number = (value) => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(9))));

/** What a layer is, for the viewer. */
function describe(dataset, finest) {
  const axes = finest.shape.length;
  const last = finest.axes[axes - 1];
  const isImage = axes === 4 && finest.format === "wkw";
  const spatial = axes <= 3 ? finest.shape.map((_, n) => n) : isImage ? [0, 1, 2] : [axes - 3, axes - 2, axes - 1];
  const isSeismic = dataset.geometry !== null || VERTICAL.includes((last.name ?? "").toLowerCase());
  const rgb = isImage && finest.shape[3] === 3 && finest.dtype === "uint8";
  // as in the pictures (plane.rs)
  const category = finest.wkw?.category;
  const isLabels = !isImage && (category ? category === "segmentation" && /int/.test(finest.dtype)
    : /^uint(32|64)$/.test(finest.dtype) && finest.value_range === null);
  const stored = finest.value_range?.map((value) => (value - (finest.offset ?? 0)) / (finest.scale ?? 1));
  return { spatial, isSeismic, rgb, isLabels, missing: finest.no_value, stored };
}

export async function showDataset(main) {
  const { dataset, layers } = await layersOf("./");
  main.append(element("h1", { textContent: dataset.name }));
  for (const warning of dataset.warnings ?? []) main.append(element("p", { className: "problem", textContent: warning }));
  const place = element("div");
  if (layers.length > 1) {
    const [pair, select] = choice("layer", "Layer", layers.map((layer) => layer.name || layer.folder), 0);
    select.addEventListener("change", () => showLayer(place, dataset, layers[Number(select.value)]));
    main.append(element("p", { className: "bar" }, pair));
  }
  main.append(place, metadata(dataset));
  if (layers.length === 0) place.append(element("p", { className: "problem", textContent: "No layer of this dataset can be shown." }));
  else await showLayer(place, dataset, layers[0]);
}

async function showLayer(place, dataset, layer) {
  const folder = `./${layer.href}`;
  const names = Array.from({ length: layer.lods }, (_, lod) => `${folder}lod${lod}.json`);
  const levels = await Promise.all(names.map(getJson));
  const about = describe(dataset, levels[0]);
  if (about.spatial.length < 2) {
    place.replaceChildren(element("p", { textContent: "This layer has one axis: there are no slices of it." }));
    return;
  }
  const finest = levels[0];
  const canvas = element("canvas", { className: "slice", tabIndex: 0, role: "application",
    "aria-label": "Slice. Arrow keys: other slices. Shift and arrow keys: the cursor. Plus, minus and 0: zoom.",
    "aria-describedby": "readout" });
  const readout = element("output", { id: "readout", "aria-live": "polite" });
  const histogram = element("canvas", { className: "histogram", role: "img", "aria-label": "Histogram of the slice" });
  const [low, high] = ["low", "high"].map((id) => element("input", { id, type: "number", step: "any" }));
  const [auto, full, whole] = ["Fit to slice", "Whole range", "Fit slice (0)"].map((textContent) => element("button", { type: "button", textContent }));
  const mapNames = [...COLOUR_MAPS];
  const [mapPair, map] = choice("map", "Colours", mapNames, 0);
  const copies = element("div", { className: "snippets" });
  const survey = outline(dataset.geometry);
  const status = element("p", { className: "status" });
  const slicers = element("div", { className: "slicers" });
  const [axisPair, axis] = choice("axis", "Slices across", about.spatial.map((n) => finest.axes[n].name || `axis ${n}`), 0);
  let shownNumbers = new Float64Array();
  let isRanged = false;

  const viewer = new Viewer(canvas, folder, levels, about);
  window.volfsViewer = viewer;

  const hasSlices = finest.shape.length > 2;
  const sliders = finest.shape.map((count, n) => {
    const slider = element("input", { type: "range", min: 0, max: count - 1, value: viewer.index[n], id: `index${n}` });
    slider.addEventListener("input", () => viewer.setIndex(n, Number(slider.value)));
    const text = element("output", { className: "position" });
    const row = element("div", { className: "slicer" },
      element("label", { for: `index${n}`, textContent: finest.axes[n].name || `axis ${n}` }), slider, text);
    slicers.append(row);
    return { slider, text, row };
  });
  axis.addEventListener("change", () => viewer.setAxis(about.spatial[Number(axis.value)]));
  map.addEventListener("change", () => viewer.setStyle({ map: mapNames[Number(map.value)] }));
  whole.addEventListener("click", () => viewer.fit());

  function setRange(range) {
    [low.value, high.value] = range.map((stored) => number(stored * (finest.scale ?? 1) + (finest.offset ?? 0)));
    viewer.setStyle({ range });
  }
  for (const input of [low, high]) {
    input.addEventListener("change", () => {
      const range = [low, high].map((end) => (Number(end.value) - (finest.offset ?? 0)) / (finest.scale ?? 1));
      if (range.every(Number.isFinite) && range[0] < range[1]) viewer.setStyle({ range });
    });
  }
  auto.addEventListener("click", () => setRange(usualRange(shownNumbers)));
  full.addEventListener("click", () => {
    if (about.stored && about.stored[0] < about.stored[1]) setRange(about.stored);
    else if (shownNumbers.length) setRange([shownNumbers[0], shownNumbers[shownNumbers.length - 1]]);
  });

  function firstLook() {
    isRanged = true;
    const range = usualRange(shownNumbers);
    const name = about.isLabels ? LABELS : range[0] === -range[1] ? "Seismic" : "Grey";
    map.value = String(mapNames.indexOf(name));
    viewer.setStyle({ map: name });
    setRange(/^uint8$/.test(finest.dtype) ? [0, 255] : range);
  }

  let lastKey = "";
  function update() {
    const { axis: across, index } = viewer;
    sliders.forEach(({ slider, text, row }, n) => {
      row.hidden = !(n === across && hasSlices) && (about.spatial.includes(n) || about.rgb);
      slider.value = index[n];
      text.textContent = `${index[n]}${annotation(finest.axes[n], index[n])}`;
      slider.setAttribute("aria-valuetext", text.textContent);
    });
    readout.textContent = readoutOf(viewer, dataset, finest, survey);
    const lod = viewer.shownLod;
    if (lod === undefined) return;
    const part = viewer.isLimited ? "Part of the slice, which has no coarser level: drag it. " : "";
    status.textContent = viewer.problem ?? `${viewer.isComplete ? "" : "Loading… "}${part}LOD ${lod}: ${levels[lod].shape.join(" × ")}, ${finest.dtype}, ${finest.codec}, ${bytes(levels[lod].size)}`;
    status.classList.toggle("problem", Boolean(viewer.problem));
    const key = `${lod}/${across}/${index}/${viewer.isComplete}/${viewer.styleNumber}`;
    if (key === lastKey) return;
    lastKey = key;
    clearTimeout(update.timer);
    update.timer = setTimeout(afterwards, isRanged ? 120 : 0);
  }

  /** What may wait until the slider rests. */
  function afterwards() {
    if (viewer.isComplete) shownNumbers = collect(viewer.shownSamples(), about.missing);
    if (viewer.isComplete && !isRanged) firstLook();
    drawHistogram(histogram, shownNumbers, viewer.style.range);
    const lod = viewer.shownLod;
    const region = levels[lod].shape.map((_, n) => (n === viewer.axis && hasSlices ? viewer.indexIn(lod, n) : ":")).join(",");
    const shape = `(${levels[lod].shape.filter((_, n) => n !== viewer.axis || !hasSlices).join(", ")})`;
    const zarr = layer.zarr ? new URL(layer.zarr.replace(/\/$/, ""), location.href).href : "";
    showSnippets(copies, snippets({ folder, layer, lod, region, dtype: levels[lod].dtype, shape, hasZarr: Boolean(zarr), zarr }));
  }

  place.replaceChildren(
    element("div", { className: "layer" },
      element("div", { className: "stage" },
        element("p", { className: "bar" }, ...(hasSlices ? [axisPair] : []), mapPair, whole, ...viewerLink(layer, about)),
        slicers, canvas, readout, status),
      element("aside", {},
        element("h2", { textContent: "Range of values" }), histogram,
        element("p", { className: "bar" }, element("label", { for: "low", textContent: "from" }), low,
          element("label", { for: "high", textContent: "to" }), high),
        element("p", { className: "bar" }, auto, full),
        ...(survey ? [element("h2", { textContent: "Map" }), survey.element] : []))),
    element("h2", { textContent: "Copy" }), copies);
  viewer.changed = update;
  viewer.fit();
}

function annotation(axis, index) {
  if (axis.first === null || axis.step === null) return "";
  const value = axis.first + index * axis.step;
  return value === index && !axis.unit ? "" : ` (${number(value)}${axis.unit ? ` ${axis.unit}` : ""})`;
}

function readoutOf(viewer, dataset, finest, survey) {
  const index = viewer.cursorIndex();
  const lineAxes = ["inline", "crossline"].map((name, n) => {
    const found = finest.axes.findIndex((axis) => (axis.name ?? "").toLowerCase().startsWith(name));
    return found < 0 ? n : found;
  });
  survey?.update({
    inline: viewer.axis === lineAxes[0] ? viewer.index[lineAxes[0]] : null,
    crossline: viewer.axis === lineAxes[1] ? viewer.index[lineAxes[1]] : null,
    cursor: index && lineAxes.map((axis) => index[axis]),
  });
  if (!index) return "Point at a sample, or press Shift and an arrow key.";
  const parts = [`[${index.join(", ")}]`];
  parts.push(finest.axes.map((axis, n) => (axis.first === null ? "" : `${axis.name} ${number(axis.first + index[n] * axis.step)}${axis.unit ? ` ${axis.unit}` : ""}`)).filter(Boolean).join(", "));
  const world = dataset.geometry?.affine?.annotation_to_world;
  if (world) {
    const lines = lineAxes.map((axis) => finest.axes[axis].first + index[axis] * finest.axes[axis].step);
    parts.push(`X ${number(world[0][0] * lines[0] + world[0][1] * lines[1] + world[0][2])}, Y ${number(world[1][0] * lines[0] + world[1][1] * lines[1] + world[1][2])}`);
  }
  const found = viewer.cursorValue();
  if (found) {
    const { value, lod } = found;
    const scaled = finest.scale !== null && typeof value === "number" && (finest.scale !== 1 || finest.offset)
      ? `${number(value * finest.scale + (finest.offset ?? 0))} (stored ${value})` : String(value);
    parts.push(`${lod ? `LOD ${lod}: ` : ""}${scaled}`);
  }
  return parts.filter(Boolean).join("  ·  ");
}

/** A link to Neuroglancer, if the server knows one. */
function viewerLink(layer, about) {
  const viewer = document.body.dataset.neuroglancer;
  if (!viewer || !layer.zarr) return [];
  const source = `${new URL(layer.zarr, location.href).href}|zarr3:`;
  const state = { layers: [{ type: about.isLabels ? "segmentation" : "image", source, name: layer.name, tab: "source" }] };
  return [element("a", { className: "viewer", textContent: "Open in Neuroglancer", target: "_blank", rel: "noreferrer",
    href: `${viewer}#!${encodeURIComponent(JSON.stringify(state))}` })];
}

function metadata(dataset) {
  const table = element("dl");
  const add = (name, value) => {
    if (value !== null && value !== undefined && value !== "") table.append(element("dt", { textContent: name }), element("dd", { textContent: value }));
  };
  const { geometry, statistics, source } = dataset;
  add("Format", `${dataset.format.toUpperCase()}, version ${dataset.version}`);
  add("Source", `${source.path}${source.size === null ? "" : `, ${bytes(source.size)}`}, ${new Date(source.mtime * 1000).toLocaleString()}`);
  if (statistics?.count) add("Values", `${number(statistics.min)} to ${number(statistics.max)}, ${statistics.count} samples`);
  if (geometry) {
    add("Coordinate system", geometry.coordinate_system);
    add("Units", [geometry.units?.horizontal?.name, geometry.units?.vertical?.name].filter(Boolean).join(", "));
    for (const { annotation: lines, world } of geometry.corners ?? []) {
      add("Corner", `inline ${lines[0]}, crossline ${lines[1]}${world ? `: X ${number(world[0])}, Y ${number(world[1])}` : ""}`);
    }
  }
  const raw = element("pre", { tabIndex: 0 });
  const all = element("details", {}, element("summary", { textContent: "dataset.json" }), raw);
  all.addEventListener("toggle", () => { if (all.open) raw.textContent = JSON.stringify(dataset, null, 2); });
  return element("section", { className: "metadata" }, element("h2", { textContent: "Metadata" }), table, all);
}
