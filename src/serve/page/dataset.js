// The page of a dataset: a layer in planes, and beside it values, profile, map, files and metadata.

import { axesChoice, sliders } from "./axes.js";
import { channels } from "./channels.js";
import { COLOUR_MAPS, LABELS } from "./colours.js";
import { bytes, button, choice, element, number, toggle } from "./dom.js";
import { downloads, showSnippets, snippets } from "./export.js";
import { help, press } from "./help.js";
import { Histogram, collect, usualRange } from "./histogram.js";
import { CHANGED, Layer, entriesHere, layersOf } from "./layer.js";
import { metadata, viewerLink } from "./metadata.js";
import { outline } from "./outline.js";
import { Profile } from "./profile.js";
import { Section } from "./section.js";
import { Stage, fitsOver } from "./stage.js";
import { showHeaders } from "./trace_header.js";
import { View } from "./view.js";
import { Wait, bricksOf, waitFor } from "./wait.js";

/** Milliseconds without a change after which the address, the histogram and the profile follow. */
const REST = 150;

export async function showDataset(main, listed = entriesHere(), attempts = 3) {
  const { dataset, layers, refused, version } = await waitFor(layersOf("./", listed), main, `the description of ${document.title.split(" · ")[0]}`);
  main.append(element("h1", { textContent: dataset.name }));
  const warnings = [...(dataset.warnings ?? []), ...refused.map((layer) => `Layer ${layer.name} is not shown: ${layer.reason}`)];
  const shown = warnings.map((warning) => element("p", { className: "problem", textContent: warning }));
  const summary = element("summary", { className: "problem", textContent: `${warnings.length} notes` });
  main.append(...(shown.length > 1 ? [element("details", {}, summary, ...shown)] : shown));
  const names = layers.map((layer) => layer.name || layer.folder);
  const place = element("div", { id: "layer" });
  let current = null;
  const show = async (number, address) => {
    current?.end();
    place.setAttribute("aria-busy", "true");
    const layer = await waitFor(Layer.open(dataset, layers[number]), place, `the description of ${names[number]}`);
    if (layer.version !== version) throw new Error(CHANGED);
    current = new LayerPage(place, layer, layers, address);
    place.removeAttribute("aria-busy");
  };
  // what is chosen when the source has changed is in the address
  const showAgain = (...what) => show(...what).catch(() => location.reload());
  const named = () => Math.max(0, names.indexOf(new URLSearchParams(location.hash.slice(1)).get("layer")));
  const [pair, select] = choice("layer-choice", "Layer", names, named(), (n) => {
    history.pushState(null, "", `#layer=${encodeURIComponent(names[n])}`);
    showAgain(n, "");
  });
  if (layers.length > 1) main.append(element("p", { className: "bar" }, pair));
  main.append(place);
  if (layers.length === 0) place.append(element("p", { className: "problem", textContent: "No layer of this dataset can be shown." }));
  else {
    try {
      await show(named(), location.hash.slice(1));
    } catch (error) {
      if (error.message !== CHANGED || attempts === 0) throw error;
      main.replaceChildren();
      return showDataset(main, null, attempts - 1);
    }
  }
  // the first date in words takes long: after the first picture
  const about = element("section", { className: "metadata" });
  main.append(about);
  (current?.rested ?? Promise.resolve()).then(() => requestIdleCallback(() => about.append(...metadata(dataset))));
  addEventListener("popstate", () => {
    select.value = String(named());
    showAgain(named(), location.hash.slice(1));
  });
  return undefined;
}

class LayerPage {
  constructor(place, layer, entries, address) {
    Object.assign(this, { place, layer, entries });
    if (layer.kind === "headers") {
      showHeaders(place, layer);
      return;
    }
    if (layer.shape.includes(0)) {
      place.replaceChildren(element("p", { className: "status", textContent: `This layer has no samples: ${layer.shape.join(" × ")}` }));
      return;
    }
    if (layer.usualPlanes().length < 2) {
      this.showLine();
      return;
    }
    this.view = new View(layer);
    const wanted = this.view.decode(address);
    this.isRanged = this.view.range !== null;
    this.isColoured = new URLSearchParams(address).has("colours");
    this.survey = outline(layer.dataset.geometry);
    this.histogram = new Histogram(layer, (range) => this.setRange(range));
    this.stage = new Stage(this.view, {
      arrived: () => this.guessRange(),
      drawn: () => this.update(),
      hover: () => this.updateReadout(),
      pick: (...where) => this.pick(...where),
      jump: () => this.remember(true),
      changed: () => this.showChanged(),
      lost: (isLost) => { this.isLost = isLost; },
    });
    this.profile = new Profile(layer, this.stage.store);
    this.section = new Section(this.view, this.stage.store);
    this.wait = new Wait(() => this.showStatus());
    this.rested = new Promise((settle) => { this.settle = settle; });
    this.build();
    window.volfsStage = this.stage;
    if (wanted.overlay) this.setOverlay(wanted.overlay.name, wanted.overlay.opacity);
    if (this.view.isFitted) this.stage.fit();
    // samples are asked for before anything is painted
    this.stage.draw();
  }

  /** A layer of one axis: a curve. */
  showLine() {
    const profile = new Profile(this.layer);
    profile.axis = Math.max(0, this.layer.axes.findIndex((axis) => axis.count > 1));
    this.place.replaceChildren(element("p", { className: "status", textContent: `${this.layer.axes.map((axis) => `${axis.name}: ${axis.count}`).join(", ")}, ${this.layer.dtype}` }), profile.element);
    profile.element.classList.add("large");
    profile.show(this.layer.shape.map(() => 0));
  }

  build() {
    const { layer, view, stage } = this;
    this.readout = element("output", { id: "readout", "aria-live": "polite" });
    this.status = element("p", { className: "status", role: "status" });
    this.hint = element("p", { className: "hint", "aria-hidden": "true" });
    this.banner = element("p", { className: "banner", role: "alert", hidden: true });
    this.downloads = element("div", { className: "downloads" });
    this.copies = element("div", { className: "snippets" });
    this.dialog = help();
    this.others = sliders(this);
    const maps = COLOUR_MAPS.filter((map) => map !== LABELS || /int/.test(layer.dtype));
    const [mapPair, map] = choice("map", "Colours", maps, maps.indexOf(view.map), (n) => view.set({ map: maps[n] }));
    Object.assign(this, { map, maps });
    this.north = toggle("North up", view.isNorthUp, (isNorthUp) => view.set({ isNorthUp }));
    this.square = toggle("Square samples", view.isSquare, (isSquare) => { view.set({ isSquare }); stage.fit(); });
    this.wiggle = toggle("Wiggles", view.isWiggle, (isWiggle) => view.set({ isWiggle }));
    // clicks on a time slice are points of a line
    this.hasSections = layer.inline >= 0 && layer.crossline >= 0 && view.axes.includes(layer.vertical) && view.axes.includes(layer.inline) && view.axes.includes(layer.crossline);
    this.drawing = toggle("Draw a section", false, (isOn) => {
      this.drawing.setAttribute("aria-pressed", String(isOn));
      this.note = isOn ? "Click on the time slice, point by point." : "";
      if (isOn) view.set({ line: [] });
    });
    const tools = [layer.kind === "rgb" || layer.kind === "channels" ? null : mapPair,
      button("Show all (0)", () => { stage.fit(); }), this.square,
      layer.vertical >= 0 && layer.worldSteps() ? this.north : null,
      layer.vertical >= 0 ? this.wiggle : null, this.hasSections ? this.drawing : null, ...this.exaggeration(), ...axesChoice(this), ...this.overlayChoice(),
      button("Keys (?)", () => this.dialog.showModal()), ...viewerLink(layer)];
    const [axisPair] = choice("profile-axis", "Along", layer.axes.map((axis) => axis.name), this.profile.axis, (n) => { this.profile.axis = n; this.profile.show(view.index); });
    const hasCorner = stage.planes.length === 3;
    const beside = [
      element("div", {}, element("h2", { textContent: "Profile" }), element("p", { className: "bar" }, axisPair), this.profile.element),
      ...(this.survey ? [element("div", {}, element("h2", { textContent: "Map" }), this.survey.element)] : [])];
    if (hasCorner) stage.corner.append(...beside);
    const aside = element("aside", {},
      element("h2", { textContent: layer.kind === "labels" ? "Labels" : "Values" }),
      layer.kind === "rgb" || layer.kind === "labels" ? element("p", { className: "status", textContent: layer.kind === "rgb" ? "Colours as stored" : "Click on a label to mark all of it." }) : layer.kind === "channels" ? channels(this) : this.histogram.element,
      ...(hasCorner ? [] : beside),
      element("h2", { textContent: "Files of what is seen" }), this.downloads);
    this.place.replaceChildren(this.banner, element("p", { className: "bar tools" }, ...tools), this.others.element,
      element("div", { className: "layer" }, element("div", { className: "stage" }, stage.element, this.hint, this.readout, this.status, this.section.element), aside),
      element("h2", { textContent: "Copy" }), this.copies, this.dialog);
    this.onKey = (event) => {
      const isTyping = event.target.matches?.("input, select, textarea, button, [role=slider], code, pre, summary") || this.dialog.open;
      if (!isTyping && !event.ctrlKey && !event.metaKey && !event.altKey && press(event, stage, this.dialog)) event.preventDefault();
    };
    document.addEventListener("keydown", this.onKey);
  }

  end() {
    document.removeEventListener("keydown", this.onKey);
    clearTimeout(this.timer);
    this.wait?.update(false);
    if (this.stage) this.stage.store.isStopped = true;
    this.stage?.store.want([]);
    this.hasEnded = true;
    this.settle?.();
  }

  exaggeration() {
    const { view, stage, layer } = this;
    if (layer.vertical < 0 || !view.axes.includes(layer.vertical)) return [];
    const steps = [0.25, 0.5, 1, 2, 4, 8, 16];
    const [pair] = choice("vertical", "Vertical", steps.map((step) => `× ${step}`), Math.max(0, steps.indexOf(view.exaggeration)), (n) => {
      view.set({ exaggeration: steps[n], isFitted: false });
      stage.redraw();
    });
    return [pair];
  }

  overlayChoice() {
    const { layer, view, entries } = this;
    const others = entries.filter((entry) => (entry.name || entry.folder) !== layer.name && entry.shape?.length >= 2);
    if (others.length === 0) return [];
    const names = others.map((entry) => entry.name || entry.folder);
    const [pair, select] = choice("overlay", "Over it", ["nothing", ...names], 0, (n) => this.setOverlay(n === 0 ? null : names[n - 1], view.overlay.opacity));
    this.opacity = element("input", { type: "range", min: 0, max: 1, step: 0.05, value: view.overlay.opacity, "aria-label": "Opacity of what lies over it" });
    this.opacity.addEventListener("input", () => view.set({ overlay: { ...view.overlay, opacity: Number(this.opacity.value) } }));
    this.overlaySelect = select;
    return [pair, this.opacity];
  }

  async setOverlay(name, opacity) {
    const { view, layer } = this;
    const entry = this.entries.find((one) => (one.name || one.folder) === name);
    this.overlayName = name;
    const over = entry ? await waitFor(Layer.open(layer.dataset, entry), this.place, `the description of ${name}`).catch((error) => error) : null;
    // another one may have been chosen meanwhile
    if (this.hasEnded || this.overlayName !== name) return undefined;
    // both are of one version
    const { store } = this.stage;
    if (over?.version && !store.isCurrent(over.version)) return store.renewal?.then(() => this.setOverlay(name, opacity));
    if (over && (over instanceof Error || !fitsOver(over, layer, view.axes))) {
      this.note = over instanceof Error ? over.message : `${name} does not have the axes of ${layer.name}.`;
      this.overlaySelect.value = "0";
      return this.update();
    }
    const range = over?.finest.value_range ?? [0, 255];
    const map = over?.kind === "labels" ? LABELS : "Viridis";
    const style = () => ({ map, picked: view.picked, number: view.styleNumber, kind: over.kind, missing: over.missing, low: over.toStored(range[0]), high: over.toStored(range[1]) });
    view.set({ overlay: { layer: over, opacity, style } });
    if (this.overlaySelect) this.overlaySelect.value = String(1 + [...this.overlaySelect.options].slice(1).findIndex((option) => option.textContent === name));
    if (this.opacity) this.opacity.value = String(opacity);
    return undefined;
  }

  setRange(range) {
    this.isRanged = true;
    this.view.set({ range, isGuessed: false });
    this.histogram.update({ range, map: this.view.map });
  }

  /** A click: a point of a section's line, or a label. */
  pick(plane, column, row) {
    const { view, layer, stage } = this;
    if (this.drawing.getAttribute("aria-pressed") === "true" && plane.across === layer.vertical) {
      const point = plane.column === layer.inline ? [column, row] : [row, column];
      const isInside = point.every((at, n) => at >= 0 && at < layer.shape[n === 0 ? layer.inline : layer.crossline]);
      if (isInside) view.set({ line: [...view.line, point] });
      return;
    }
    const isLabels = layer.kind === "labels" || view.overlay.layer?.kind === "labels";
    const index = isLabels && stage.indexHere();
    const found = index && stage.samplesAt(index)?.find((one) => one?.layer.kind === "labels");
    if (!found || found.error) return;
    view.set({ picked: Number(found.value) === 0 || found.value === view.picked ? null : found.value });
  }

  showChanged() {
    this.banner.hidden = false;
    this.banner.replaceChildren("The file has changed since this page was opened. ", button("Show the new one", () => location.reload()));
  }

  /** After each drawing: what is cheap now, the rest when the view rests. */
  update() {
    const { view, stage, layer } = this;
    this.others.update();
    for (const [made, isOn] of [[this.north, view.isNorthUp], [this.square, view.isSquare], [this.wiggle, view.isWiggle]]) made.setAttribute("aria-pressed", String(isOn));
    this.updateReadout();
    this.wait.update(this.isLost || !stage.isComplete, stage.movedAt);
    this.showStatus();
    if (stage.isComplete && !this.isRanged) this.firstLook();
    this.section.follow();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.rest(), REST);
  }

  /** What is waited for, and for how long; the level that is shown. */
  showStatus() {
    const { stage, layer, wait } = this;
    const level = layer.levels[stage.lod];
    const isUnanswered = this.isLost || wait.isSilent;
    const text = isUnanswered ? "The server does not answer. Waiting for it. "
      : stage.isComplete ? "" : wait.seconds > 0 ? `Waiting for ${bricksOf(stage.missing)}. ` : `Reading ${stage.missing.length} parts… `;
    // seconds are seen, not read out
    const seconds = element("span", { "aria-hidden": "true", textContent: wait.seconds > 0 ? `${wait.seconds} s. ` : "" });
    const rest = `${this.note ? `${this.note} ` : ""}LOD ${stage.lod}: ${level.shape.join(" × ")}, ${layer.dtype}, ${level.codec}, ${bytes(level.size)}`;
    this.status.replaceChildren(text, seconds, rest);
    this.status.classList.toggle("problem", Boolean(isUnanswered));
  }

  /** The range and colours of what is seen first. */
  firstLook() {
    const { layer, view, stage } = this;
    this.isRanged = true;
    if (layer.kind === "channels") {
      for (const channel of layer.channels.filter((one) => one.isShown)) {
        channel.range ??= usualRange(collect([...stage.seen(channel)], layer).values);
        channel.fields.forEach((field, n) => { field.value = number(Number(channel.range[n].toPrecision(7))); });
      }
      view.set({ styleNumber: view.styleNumber + 1 });
      return;
    }
    this.setRange(this.usualLook([...stage.seen()]));
  }

  /** The usual range of samples; the colours as well, unless they were chosen. */
  usualLook(arrays) {
    const { layer, view } = this;
    const { values } = collect(arrays, layer);
    const range = usualRange(values);
    const isSigned = range[0] === -range[1];
    const isBytes = layer.dtype === "uint8" && layer.scale === 1 && values.length > 0 && values.at(-1) > 1 && !layer.isSeismic;
    if (layer.kind === "values" && isSigned && !this.isColoured) view.map = "Seismic";
    this.map.value = String(this.maps.indexOf(view.map));
    return isBytes ? [0, 255] : range;
  }

  /** Before all is there: the range of the samples that have come first, often those of a coarse level. */
  guessRange() {
    const { layer, view, stage } = this;
    const first = [...stage.store.kept].filter(([key, samples]) => key.startsWith(layer.folder) && !samples.error).map(([, samples]) => samples);
    if (this.isRanged || view.range || layer.kind !== "values" || first.length === 0) return;
    Object.assign(view, { range: this.usualLook(first), isGuessed: true, styleNumber: view.styleNumber + 1 });
  }

  rest() {
    if (this.hasEnded) return;
    const { view, stage, layer } = this;
    this.settle();
    if (stage.isComplete && layer.kind !== "channels" && layer.kind !== "rgb" && layer.kind !== "labels") {
      const { values, missing } = collect([...stage.seen()], layer);
      this.histogram.update({ values, missing, range: view.range ?? [0, 1], map: view.map });
    }
    this.profile.show(view.index);
    this.section.update();
    const links = downloads(stage);
    const key = links.map((link) => link.href ?? "").join();
    if (key !== this.linksKey) this.downloads.replaceChildren(...links);
    this.linksKey = key;
    const list = snippets(stage);
    const text = JSON.stringify(list);
    if (text !== this.snippetsText) showSnippets(this.copies, list);
    this.snippetsText = text;
    this.remember(false);
  }

  /** Writes the view into the address: as a new entry of the history, or in place of the last. */
  remember(isNew) {
    const address = `#${this.view.encode()}`;
    if (address === location.hash || this.hasEnded) return;
    if (isNew) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }

  updateReadout() {
    const { stage, layer, view } = this;
    const index = stage.indexHere();
    const at = (axis) => view.index[axis] ?? null;
    const isShown = (axis) => stage.planes.some((plane) => !plane.element.hidden && plane.across === axis);
    this.survey?.update({
      inline: isShown(layer.inline) ? at(layer.inline) : null, crossline: isShown(layer.crossline) ? at(layer.crossline) : null,
      cursor: index && layer.inline >= 0 && layer.crossline >= 0 ? [index[layer.inline], index[layer.crossline]] : null,
    });
    if (!index) {
      this.readout.textContent = "Outside";
      return;
    }
    const isChannel = (axis) => axis === layer.channel && (layer.kind === "rgb" || layer.kind === "channels");
    this.hint.textContent = this.hintText();
    const parts = [`[${index.filter((_, axis) => !isChannel(axis)).join(", ")}]`];
    parts.push(layer.axes.filter((axis) => axis.first !== null && !isChannel(axis.number)).map((axis) => `${axis.name} ${layer.text(axis.number, index[axis.number], (value) => number(Number(value.toPrecision(9))))}`).join(", "));
    const world = layer.world(index);
    if (world) parts.push(`X ${number(Number(world[0].toFixed(2)))}, Y ${number(Number(world[1].toFixed(2)))}`);
    const plane = stage.hovered;
    const reason = plane?.pointer ? plane.reasonAt(...plane.positionAt(...plane.pointer)) : null;
    for (const found of stage.samplesAt(index) ?? []) if (found && !reason) parts.push(this.textOf(found));
    if (reason) parts.push(reason);
    this.readout.textContent = parts.filter(Boolean).join("  ·  ");
    this.value = (stage.samplesAt(index) ?? [])[0] ?? null;
    if (stage.hovered?.canvas) stage.hovered.canvas.title = reason ?? "";
  }

  /** What the pointer does where it is. */
  hintText() {
    const plane = this.stage.hovered;
    if (!plane?.pointer) return "Keys: ?";
    if (this.drawing.getAttribute("aria-pressed") === "true" && plane.across === this.layer.vertical) return "Click: a point of the line";
    if (plane.canvas.style.cursor) return "Drag: move the crosshair";
    const wheel = plane.across === null ? "Wheel: zoom" : "Wheel: slices · Ctrl+wheel: zoom";
    const click = this.layer.kind === "labels" ? " · click: mark the label" : "";
    return `${wheel} · drag: move · right click: crosshair${click} · double click: ${this.view.maximized === null ? "large" : "all planes"}`;
  }

  textOf({ value, error, lod, layer, name }) {
    const where = `${name ? `${name} ` : ""}${lod ? `LOD ${lod}: ` : ""}`;
    if (error) return `${where}${error}`;
    const shown = layer.toValue(value);
    const text = Array.isArray(value) ? value.join(", ") : Object.is(shown, value) ? String(value) : `${number(shown)} (stored ${value})`;
    return `${where}${text}${!Array.isArray(value) && Number(value) === layer.missing ? " (no value)" : ""}`;
  }
}
