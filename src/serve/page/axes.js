// The axes of the planes: which ones they are, gathers, and sliders of those that no plane shows.

import { choice, element, number, toggle } from "./dom.js";

/** Shows planes of other axes: the address names them, as if somebody had come by a link. */
function show(view, axes, more = {}) {
  const address = new URLSearchParams(view.encode());
  address.set("axes", axes.join(","));
  for (const name of ["centre", "zoom", "plane", ...Object.keys(more)]) address.delete(name);
  for (const [name, value] of Object.entries(more)) if (value) address.set(name, value);
  history.pushState(null, "", `#${address}`);
  dispatchEvent(new PopStateEvent("popstate"));
}

/** Which axes the planes have, where there are more than three. */
export function axesChoice({ layer, view }) {
  const axes = layer.axes.filter((axis) => axis.number !== layer.channel).map((axis) => axis.number);
  if (axes.length <= 3) return [];
  const sets = [];
  for (let a = 0; a < axes.length; a++) for (let b = a + 1; b < axes.length; b++) for (let c = b + 1; c < axes.length; c++) sets.push([axes[a], axes[b], axes[c]]);
  const names = sets.map((set) => set.map((axis) => layer.axes[axis].name).join(", "));
  const [pair] = choice("axes", "Planes of", names, sets.findIndex((set) => set.join() === view.axes.join()), (n) => show(view, sets[n]));
  return [...gathers({ layer, view }), pair];
}

/** A switch to gathers: planes of one line and the offsets, as wiggles. */
function gathers({ layer, view }) {
  const line = layer.crossline >= 0 ? layer.crossline : layer.inline;
  if (layer.gather < 0 || line < 0) return [];
  const axes = [line, layer.gather, layer.vertical].sort((a, b) => a - b);
  const isOn = view.axes.join() === axes.join() && view.isWiggle;
  return [toggle("Gathers", isOn, () => (isOn ? show(view, layer.usualPlanes(), { wiggle: "" }) : show(view, axes, { wiggle: "1" })))];
}

/** Sliders of the axes that no plane shows: their element, and what brings them up to date. */
export function sliders({ layer, view }) {
  const isHidden = (axis) => view.axes.includes(axis) || (axis === layer.channel && layer.kind !== "values" && layer.kind !== "labels") || layer.shape[axis] < 2;
  const others = layer.axes.filter((axis) => !isHidden(axis.number)).map((axis) => {
    const slider = element("input", { type: "range", min: 0, max: axis.count - 1, value: view.index[axis.number], id: `other${axis.number}` });
    slider.addEventListener("input", () => view.setIndex(axis.number, Number(slider.value)));
    return { axis, slider, text: element("output", { className: "position" }) };
  });
  const rows = others.map(({ axis, slider, text }) =>
    element("div", { className: "slicer" }, element("label", { for: `other${axis.number}`, textContent: axis.name }), slider, text));
  const update = () => {
    for (const { axis, slider, text } of others) {
      const index = view.index[axis.number];
      slider.value = index;
      text.textContent = `${layer.text(axis.number, index, number)}${axis.first === null ? "" : ` [${index}]`}`;
    }
  };
  return { element: element("div", { className: "sliders" }, ...rows), update };
}
