// What is known of a dataset beside its samples, and where else it can be looked at.

import { bytes, element, number, short } from "./dom.js";

/** A link to Neuroglancer, if the server knows one. */
export function viewerLink(layer) {
  const viewer = document.body.dataset.neuroglancer;
  if (!viewer || !layer.zarr) return [];
  const source = `${new URL(layer.zarr, location.href).href}|zarr3:`;
  const state = { layers: [{ type: layer.kind === "labels" ? "segmentation" : "image", source, name: layer.name, tab: "source" }] };
  return [element("a", { className: "viewer", textContent: "Open in Neuroglancer", target: "_blank", rel: "noreferrer",
    href: `${viewer}#!${encodeURIComponent(JSON.stringify(state))}` })];
}

/** What is known of a dataset, as elements: a list of names and values, and all of it. */
export function metadata(dataset) {
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
      add("Corner", `inline ${short(lines[0])}, crossline ${short(lines[1])}${world ? `: X ${number(world[0])}, Y ${number(world[1])}` : ""}`);
    }
  }
  const raw = element("pre", { tabIndex: 0 });
  const all = element("details", {}, element("summary", { textContent: "dataset.json" }), raw);
  all.addEventListener("toggle", () => { if (all.open) raw.textContent = JSON.stringify(dataset, null, 2); });
  return [element("h2", { textContent: "Metadata" }), table, all];
}
