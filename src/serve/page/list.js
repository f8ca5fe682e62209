// The list of datasets: those of the folder and of all folders in it, with pictures, to be searched and sorted, and a map.

import { bytes, choice, element, svg } from "./dom.js";
import { layersOf } from "./layer.js";
import { getJson, sizeOf } from "./samples.js";

/** Folders that are looked into, and datasets that are listed. */
const MOST_FOLDERS = 2000;
const MOST_DATASETS = 20000;
/** Requests at a time. */
const AT_ONCE = 4;
/** Datasets that are shown at first, and as many more each time that the end of the list is seen. */
const SHOWN = 200;
/** Descriptions that are fetched for the map. */
const MOST_ON_MAP = 300;

const ORDERS = ["name", "size", "format"];

export function showFolder(main, entriesElement) {
  const list = new List(main);
  const here = [...entriesElement.querySelectorAll("li")];
  const folders = [];
  for (const entry of here) {
    const href = entry.querySelector("a").getAttribute("href");
    if (entry.dataset.kind === "dataset") list.add(href, entry.querySelector("a").textContent.replace(/\/$/, ""), "");
    else if (href === ".volfs/") entry.dataset.kind = "server";
    else if (entry.dataset.kind === "folder") folders.push([href, `${entry.querySelector("a").textContent}`]);
    if (entry.dataset.kind === "dataset" || entry.dataset.kind === "server") entry.remove();
  }
  // the page has the first entries
  const more = document.getElementById("more");
  if (more) {
    more.parentElement.remove();
    list.complete(here.length);
  }
  entriesElement.hidden = entriesElement.querySelectorAll("li").length === 0;
  list.show();
  list.lookInto(folders);
}

class List {
  constructor(main) {
    Object.assign(this, { datasets: [], hrefs: new Map(), order: 0, text: "", waiting: [], running: 0, limit: SHOWN });
    this.title = element("h1", { textContent: "" });
    this.note = element("p", { className: "status", role: "status" });
    this.search = element("input", { type: "search", placeholder: "Search", "aria-label": "Search names, formats and sizes" });
    this.search.addEventListener("input", () => { this.text = this.search.value.toLowerCase(); this.limit = SHOWN; this.show(); });
    const [pair] = choice("order", "Sort by", ORDERS, 0, (n) => { this.order = n; this.limit = SHOWN; if (n > 0) this.describeAll(); this.show(); });
    this.bar = element("p", { className: "bar", hidden: true }, this.search, pair);
    this.map = svg("svg", { viewBox: "0 0 600 300", class: "survey-map", role: "group", "aria-label": "Map of the surveys", visibility: "hidden" });
    this.mapPlace = element("details", { className: "map", hidden: true }, element("summary", { textContent: "Map" }), this.map);
    this.groups = element("div", { className: "groups" });
    this.seen = new IntersectionObserver((changes) => {
      for (const { isIntersecting, target } of changes) {
        if (!isIntersecting) continue;
        this.seen.unobserve(target);
        this.request(this.datasets[Number(target.dataset.number)], true);
      }
    }, { rootMargin: "300px" });
    this.end = element("p", { className: "status" });
    new IntersectionObserver(([change]) => {
      if (!change.isIntersecting || this.end.textContent === "") return;
      this.limit += SHOWN;
      this.show();
    }, { rootMargin: "600px" }).observe(this.end);
    main.append(this.title, this.bar, this.note, this.mapPlace, this.groups, this.end);
  }

  add(href, name, folder) {
    if (this.datasets.length >= MOST_DATASETS) return;
    this.datasets.push({ href, name, folder, number: this.datasets.length, known: null, text: `${folder}${name}`.toLowerCase() });
  }

  /** The card of a dataset, which is made when it is shown first. */
  cardOf(dataset) {
    if (dataset.card) return dataset.card;
    dataset.card = element("li", {}, element("div", { className: "preview" }), element("a", { href: dataset.href, className: "name", textContent: dataset.name }), element("p", { className: "about", textContent: "…" }));
    dataset.card.dataset.number = String(dataset.number);
    this.seen.observe(dataset.card);
    if (dataset.known) this.fill(dataset);
    return dataset.card;
  }

  /** Lists the datasets of this folder that are not on the page. */
  async complete(known) {
    const entries = await this.entriesOf("./");
    for (const { kind, href, name } of entries.slice(known)) if (kind === "dataset") this.add(href, name, "");
    this.show();
    await this.lookInto(entries.slice(known).filter(({ kind }) => kind === "folder").map(({ href, name }) => [href, `${name}/`]));
  }

  /** Lists the datasets of folders and of those in them. */
  async lookInto(folders) {
    let looked = 0;
    const waiting = [...folders];
    while (waiting.length > 0 && looked < MOST_FOLDERS && this.datasets.length < MOST_DATASETS) {
      const batch = waiting.splice(0, AT_ONCE);
      looked += batch.length;
      this.note.textContent = `Looking into folders: ${looked}…`;
      const before = this.datasets.length;
      for (const [href, shown] of batch) this.hrefs.set(shown, href);
      for (const [href, shown, entries] of await Promise.all(batch.map(([href, shown]) => this.entriesOf(href).then((entries) => [href, shown, entries])))) {
        for (const entry of entries) {
          if (entry.kind === "dataset") this.add(href + entry.href, entry.name, shown);
          else if (entry.kind === "folder") waiting.push([href + entry.href, `${shown}${entry.name}/`]);
        }
      }
      if (this.datasets.length > before) this.show();
    }
    this.note.textContent = waiting.length > 0 ? "There are more folders: open one to see what is in it." : this.datasets.length === 0 ? "No dataset lies here or in the folders below." : "";
    this.show();
    for (const dataset of this.datasets.slice(0, MOST_ON_MAP)) this.request(dataset, false);
  }

  async entriesOf(href) {
    try {
      return (await getJson(href)).entries;
    } catch {
      // a folder that cannot be listed says so when it is opened
      return [];
    }
  }

  /** Arranges the cards by folder, in order. */
  show() {
    const count = this.datasets.length;
    this.title.textContent = count === 0 ? "" : count === 1 ? "1 dataset" : `${count} datasets`;
    this.bar.hidden = count < 2;
    const value = [(one) => one.text, (one) => -(one.known?.bytes ?? 0), (one) => one.known?.format ?? "~"][this.order];
    const sorted = [...this.datasets].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      return x < y ? -1 : x > y ? 1 : a.number - b.number;
    });
    const found = sorted.filter((one) => this.text === "" || one.text.includes(this.text));
    const groups = new Map();
    for (const dataset of found.slice(0, this.limit)) {
      const folder = this.order === 0 ? dataset.folder : "";
      if (!groups.has(folder)) groups.set(folder, []);
      groups.get(folder).push(this.cardOf(dataset));
    }
    this.end.textContent = found.length > this.limit ? `${found.length - this.limit} more…` : this.text && found.length === 0 ? "Nothing has this name." : "";
    this.groups.replaceChildren(...[...groups].map(([folder, cards]) => element("section", {},
      folder === "" ? null : element("h2", {}, element("a", { href: this.hrefs.get(folder), textContent: folder })), element("ul", { className: "cards" }, ...cards))));
  }

  describeAll() {
    this.datasets.forEach((dataset) => this.request(dataset, false));
  }

  /** Has a dataset described: those that are seen before others. */
  request(dataset, isSeen) {
    if (dataset.isRequested && !(isSeen && !dataset.isStarted)) return;
    dataset.isRequested = true;
    if (isSeen) this.waiting.unshift(dataset);
    else this.waiting.push(dataset);
    this.run();
  }

  run() {
    while (this.running < AT_ONCE && this.waiting.length > 0) {
      const dataset = this.waiting.shift();
      if (dataset.isStarted) continue;
      dataset.isStarted = true;
      this.running++;
      this.describe(dataset).finally(() => {
        this.running--;
        this.run();
        clearTimeout(this.timer);
        this.timer = setTimeout(() => { this.drawMap(); if (this.order > 0) this.show(); }, 300);
      });
    }
  }

  async describe(one) {
    try {
      const { dataset, layers } = await layersOf(one.href);
      const lines = layers.slice(0, 3).map((layer) => {
        const samples = layer.shape.reduce((a, b) => a * b, 1);
        const axes = layer.axes.every(Boolean) ? ` (${layer.axes.join(", ")})` : "";
        return `${layer.name || layer.folder}: ${layer.shape.join(" × ")}${axes}, ${layer.dtype}, ${bytes(samples * sizeOf(layer.dtype))}, ${layer.lods === 1 ? "1 level" : `${layer.lods} levels`}`;
      });
      if (layers.length > 3) lines.push(`and ${layers.length - 3} more layers`);
      const total = layers.reduce((sum, layer) => sum + layer.shape.reduce((a, b) => a * b, 1) * sizeOf(layer.dtype), 0);
      const warning = dataset.warnings?.[0];
      const shown = layers.find((layer) => layer.shape.filter((count) => count > 1).length >= 2);
      one.known = { format: dataset.format, bytes: total, corners: dataset.geometry?.corners ?? null, lines, warning, preview: shown && `${one.href}${shown.href}preview.png` };
      one.text += ` ${dataset.format} ${lines.join(" ")}`.toLowerCase();
    } catch (error) {
      one.known = { format: "~", bytes: 0, corners: null, lines: [], error: error.message };
    }
    if (one.card) this.fill(one);
  }

  /** Fills the card of a dataset with what is known of it. */
  fill({ card, known }) {
    const about = card.querySelector(".about");
    card.classList.toggle("broken", Boolean(known.error));
    if (known.error) {
      about.textContent = `⚠ ${known.error}`;
      return;
    }
    about.replaceChildren(element("b", { textContent: known.format.toUpperCase() }), ...known.lines.map((textContent) => element("span", { textContent })));
    if (known.warning) about.append(element("span", { className: "problem", textContent: `⚠ ${known.warning}` }));
    if (known.preview) {
      const picture = element("img", { alt: "", loading: "lazy" });
      picture.addEventListener("error", () => picture.remove());
      picture.src = known.preview;
      card.querySelector(".preview").replaceChildren(picture);
    }
  }

  /** Draws the outlines of surveys with world coordinates, as links. */
  drawMap() {
    const surveys = this.datasets.filter((one) => one.known?.corners?.every((corner) => corner.world && corner.world.some((value) => value !== 0)));
    if (surveys.length === 0) return;
    this.map.setAttribute("visibility", "visible");
    const all = surveys.flatMap((one) => one.known.corners.map((corner) => corner.world));
    const [xs, ys] = [all.map((p) => p[0]), all.map((p) => p[1])];
    const [left, top] = [Math.min(...xs), Math.max(...ys)];
    const scale = Math.min(560 / (Math.max(...xs) - left || 1), 260 / (top - Math.min(...ys) || 1));
    // closed at first where the surveys are dots on it
    if (this.mapPlace.hidden) this.mapPlace.open = surveys.some(({ known: { corners: [a, , , d] } }) => Math.hypot(d.world[0] - a.world[0], d.world[1] - a.world[1]) * scale > 40);
    this.mapPlace.hidden = false;
    this.map.replaceChildren(...surveys.map(({ known: { corners: [a, b, c, d] }, href, name }) => {
      const points = [a, b, d, c].map(({ world: [x, y] }) => `${(20 + (x - left) * scale).toFixed(1)},${(20 + (top - y) * scale).toFixed(1)}`);
      const link = svg("a", { href, "aria-label": name }, svg("polygon", { points: points.join(" ") }), svg("title", {}, name));
      const [x, y] = points[0].split(",");
      // however small the survey is
      link.append(svg("circle", { cx: x, cy: y, r: 3 }));
      link.append(svg("text", { x, y: Number(y) - 4 }, name));
      return link;
    }));
  }
}
