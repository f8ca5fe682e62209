// What can be taken from here: files of what is seen, and lines to copy for each client.

import { bytes, button, element } from "./dom.js";
import { placement } from "./layer.js";
import { sizeOf } from "./samples.js";

const quote = (text) => JSON.stringify(text);

/** Quotes a text as one word for a shell: names come from the data, and may have any character. */
const word = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The box in view, in the finest level: a range for each axis. A plane has one slice, all planes a box of samples. */
function boxOf(stage, plane) {
  const { view } = stage;
  const shown = plane ? [plane] : stage.planes.filter((one) => !one.element.hidden);
  return view.layer.shape.map((count, axis) => {
    if (axis === view.layer.channel) return [0, count];
    const ranges = shown.flatMap((one) => {
      const bounds = one.bounds();
      return axis === one.column ? [bounds.columns] : axis === one.row ? [bounds.rows] : [];
    });
    if (ranges.length === 0) return [view.index[axis], view.index[axis] + 1];
    const from = Math.max(0, Math.min(...ranges.map((range) => Math.ceil(range[0] - 0.5))));
    return [from, Math.max(from + 1, Math.min(count, Math.max(...ranges.map((range) => Math.floor(range[1] + 0.5) + 1))))];
  });
}

const textOf = (box, shape) => box.map(([from, to], axis) => (from === 0 && to === shape[axis] ? ":" : to === from + 1 ? String(from) : `${from}:${to}`)).join(",");

/** A part of the address of the same kind of file: lod0.npy, lod0.sgy, tiff/lod0.tif. */
const FILES = [["NumPy (.npy)", "npy", /lod0\.npy$/], ["TIFF (.tif)", "tif", /lod0\.tif$/], ["SEG-Y (.sgy)", "sgy", /lod0\.sgy$/]];

/** Links to files of the box in view, with their size, and a picture of it. */
export function downloads(stage) {
  const { layer } = stage.view;
  const plane = stage.planes[stage.active];
  const samples = (box) => box.reduce((n, [from, to]) => n * (to - from), 1);
  const entries = [["Plane", boxOf(stage, plane)]];
  if (stage.planes.length > 1) entries.push(["Box in view", boxOf(stage, null)]);
  const links = [];
  for (const [title, box] of entries) {
    for (const [name, suffix, pattern] of FILES) {
      const file = layer.finest.files.find((one) => pattern.test(one));
      if (!file || (suffix === "sgy" && title === "Plane" && plane.row !== layer.vertical)) continue;
      const href = `${layer.folder}${file}?box=${textOf(box, layer.shape)}`;
      links.push(element("a", { href, download: `${layer.dataset.name}.${layer.name.replace(/[^\w.-]+/g, "_")}.${suffix}`, className: "download",
        textContent: `${title} as ${name}, ${bytes(samples(box) * sizeOf(layer.dtype))}` }));
    }
  }
  links.push(button("Picture (.png)", () => savePicture(stage), { className: "download" }));
  return links;
}

/** Saves the plane in view with its ticks as a picture. */
async function savePicture(stage) {
  const plane = stage.planes[stage.active];
  const ratio = window.devicePixelRatio || 1;
  const [left, bottom, top] = [64, 40, 26];
  const [width, height] = plane.size;
  const canvas = element("canvas", { width: (width + left + 12) * ratio, height: (height + top + bottom) * ratio });
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width + left + 12, height + top + bottom);
  context.drawImage(plane.canvas, left, top, width, height);
  context.strokeStyle = context.fillStyle = "#111";
  context.strokeRect(left, top, width, height);
  context.font = "12px system-ui, sans-serif";
  const { layer, index } = stage.view;
  context.fillText(`${layer.dataset.name}, ${layer.name}${plane.across === null ? "" : `, ${layer.axes[plane.across].name} ${layer.text(plane.across, index[plane.across], String)}`}`, left, 16);
  for (const tick of plane.ticks.column.querySelectorAll("span")) {
    const x = left + parseFloat(tick.style.left);
    context.fillRect(x, top + height, 1, 4);
    context.textAlign = "center";
    context.fillText(tick.textContent, x, top + height + 16);
  }
  context.fillText(plane.ticks.column.querySelector("b").textContent, left + width / 2, top + height + 32);
  for (const tick of plane.ticks.row.querySelectorAll("span")) {
    const y = top + parseFloat(tick.style.top);
    context.fillRect(left - 4, y, 4, 1);
    context.textAlign = "right";
    context.fillText(tick.textContent, left - 6, y + 4);
  }
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  const link = element("a", { href: URL.createObjectURL(blob), download: `${layer.dataset.name}.png` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Lines to copy: a title and a text each. */
export function snippets(stage) {
  const { layer } = stage.view;
  const { lod } = stage;
  const plane = stage.planes[stage.active];
  const level = layer.levels[lod];
  const region = level.shape.map((count, axis) => {
    if (axis === plane.row || axis === plane.column || axis === layer.channel) return ":";
    const { factor, shift } = placement(level, layer.finest, axis);
    return String(Math.min(count - 1, Math.max(0, Math.round((stage.view.index[axis] - shift) / factor))));
  });
  const shape = `(${level.shape.filter((_, n) => region[n] === ":").join(", ")},)`.replace(/(, \d+),\)/, "$1)");
  const box = region.join(",");
  const root = new URL(document.body.dataset.root, location.href).pathname.length;
  const folder = new URL(layer.folder, location.href);
  const path = decodeURIComponent(folder.pathname.slice(root));
  const dataset = path.split("/").slice(0, -2).join("/");
  const at = (file) => new URL(file, folder).href;
  const numpy = region.join(", ");
  const list = [
    ["Python", `volfs.open(${quote(`SOURCE/${dataset}`)})[${quote(layer.name)}].level(${lod})[${numpy}]`],
    ["volfs cat", `volfs cat ${word(`SOURCE/${dataset}`)} --layer ${word(layer.name)} --lod ${lod} --region '${box}' > plane.raw`],
    ["Mount, NumPy", `np.load(${quote(`MOUNTPOINT/${path}lod${lod}.npy`)}, mmap_mode="r")[${numpy}]`],
    ["curl", `curl -o plane.npy ${word(`${at(`lod${lod}.npy`)}?box=${box}`)}`],
    ["HTTP, NumPy", `np.frombuffer(urllib.request.urlopen(${quote(`${at(`lod${lod}.raw`)}?box=${box}`)}).read(), "${level.dtype}").reshape(${shape})`],
  ];
  if (layer.zarr) {
    const zarr = new URL(layer.zarr.replace(/\/$/, ""), location.href).href;
    list.push(["Zarr", `zarr.open_group(${quote(zarr)}, mode="r")["${lod}"]`], ["xarray", `xr.open_zarr(${quote(`${zarr.replace(/\.ome\.zarr$/, ".zarr")}/lod${lod}`)})["image"]`]);
  }
  // OPeNDAP has no such samples
  if (!/^(float16|complex)/.test(level.dtype)) {
    const url = at(`lod${lod}`);
    list.push(["xarray, OPeNDAP", `xr.open_dataset(${quote(url)})["data"]`], ["ncdump, OPeNDAP", `ncdump -h ${word(url)}`],
      ["R, OPeNDAP", `ncvar_get(nc_open(${quote(url)}), "data")`], ["MATLAB, OPeNDAP", `ncread(${quote(url)}, "data")`]);
  }
  return list;
}

/** Fills an element with lines and buttons to copy them. */
export function showSnippets(place, list) {
  place.replaceChildren(...list.map(([title, text]) => {
    const code = element("code", { textContent: text, tabIndex: 0 });
    const copy = button("Copy", async () => {
      try {
        await navigator.clipboard.writeText(text);
        copy.textContent = "Copied";
      } catch {
        // without the right to the clipboard the text is selected, to be copied by hand
        getSelection().selectAllChildren(code);
        copy.textContent = "Selected";
      }
      setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    }, { "aria-label": `Copy: ${title}` });
    return element("div", { className: "snippet" }, element("span", { textContent: title }), code, copy);
  }));
}
