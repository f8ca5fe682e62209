// A folder: its datasets as cards with previews, and its folders.

import { getJson } from "./samples.js";

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(count) {
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit++;
  }
  return `${count >= 100 || unit === 0 ? Math.round(count) : count.toFixed(1)} ${units[unit]}`;
}

/** The layers of a dataset with the folders that show them. */
export async function layersOf(folder) {
  const [dataset, listing] = await Promise.all([getJson(`${folder}dataset.json`), getJson(folder)]);
  const folders = listing.entries.filter((entry) => entry.kind === "folder");
  const isZarr = (entry) => entry.name.endsWith(".zarr");
  const shown = dataset.layers.filter((layer) => !layer.reason);
  const places = folders.filter((entry) => !isZarr(entry));
  const layers = shown.slice(0, places.length).map((layer, n) => {
    const zarr = folders.find((entry) => entry.name === `${places[n].name}.ome.zarr`);
    return { ...layer, href: places[n].href, folder: places[n].name, zarr: zarr?.href ?? null };
  });
  return { dataset, layers };
}

const sizeOf = (dtype) => Number(dtype.replace(/^\D+/, "")) / 8;

async function fill(card, href) {
  const about = card.querySelector(".about");
  try {
    const { dataset, layers } = await layersOf(href);
    const lines = layers.slice(0, 3).map((layer) => {
      const samples = layer.shape.reduce((a, b) => a * b, 1);
      const levels = layer.lods === 1 ? "1 level" : `${layer.lods} levels`;
      return `${layer.folder}: ${layer.shape.join(" × ")}, ${layer.dtype}, ${bytes(samples * sizeOf(layer.dtype))}, ${levels}`;
    });
    if (layers.length > 3) lines.push(`and ${layers.length - 3} more layers`);
    about.replaceChildren(...[dataset.format.toUpperCase(), ...lines].map((line, n) => {
      const element = document.createElement(n === 0 ? "b" : "span");
      element.textContent = line;
      return element;
    }));
    if (layers[0]) {
      const picture = card.querySelector("img");
      picture.src = `${href}${layers[0].href}preview.png`;
      picture.addEventListener("error", () => picture.remove());
    }
  } catch {
    about.textContent = "This dataset cannot be opened: error.txt in it says why.";
    card.classList.add("broken");
    card.querySelector("img").remove();
  }
}

export function showFolder(main, entriesElement) {
  const entries = [...entriesElement.querySelectorAll("li")];
  const datasets = entries.filter((entry) => entry.dataset.kind === "dataset");
  if (datasets.length === 0) return;
  const title = document.createElement("h1");
  title.textContent = datasets.length === 1 ? "1 dataset" : `${datasets.length} datasets`;
  const cards = document.createElement("ul");
  cards.className = "cards";
  const seen = new IntersectionObserver((changes) => {
    for (const change of changes.filter((change) => change.isIntersecting)) {
      seen.unobserve(change.target);
      fill(change.target, change.target.dataset.href);
    }
  }, { rootMargin: "200px" });
  for (const entry of datasets) {
    const source = entry.querySelector("a");
    const card = document.createElement("li");
    card.dataset.href = source.getAttribute("href");
    const link = document.createElement("a");
    link.href = source.getAttribute("href");
    link.className = "name";
    link.textContent = source.textContent.replace(/\/$/, "");
    const frame = document.createElement("div");
    frame.className = "preview";
    const picture = document.createElement("img");
    picture.alt = "";
    frame.append(picture);
    const about = document.createElement("p");
    about.className = "about";
    about.textContent = "…";
    card.append(frame, link, about);
    cards.append(card);
    seen.observe(card);
    entry.remove();
  }
  main.append(title, cards);
  const more = document.getElementById("more");
  if (more) main.append(more.parentElement);
  entriesElement.hidden = entriesElement.querySelectorAll("li").length === 0;
}
