// The words of a SEG-Y trace header (SEG-Y revision 1, table 3), from its 240 bytes.

import { element } from "./dom.js";

/** Name and first byte; words of 4 bytes up to the given byte, of 2 bytes beside them. */
const WORDS = [
  ["Trace in line", 1, 4], ["Trace in file", 5, 4], ["Original field record", 9, 4], ["Trace in record", 13, 4], ["Source point", 17, 4],
  ["Ensemble (CDP)", 21, 4], ["Trace in ensemble", 25, 4], ["Trace identification", 29, 2], ["Traces summed vertically", 31, 2],
  ["Traces stacked", 33, 2], ["Data use", 35, 2], ["Offset", 37, 4], ["Receiver elevation", 41, 4], ["Source elevation", 45, 4],
  ["Source depth", 49, 4], ["Datum at receiver", 53, 4], ["Datum at source", 57, 4], ["Water depth at source", 61, 4],
  ["Water depth at receiver", 65, 4], ["Scalar of elevations", 69, 2], ["Scalar of coordinates", 71, 2], ["Source X", 73, 4],
  ["Source Y", 77, 4], ["Receiver X", 81, 4], ["Receiver Y", 85, 4], ["Coordinate units", 89, 2], ["Total static", 103, 2],
  ["Delay (ms)", 109, 2], ["Mute start", 111, 2], ["Mute end", 113, 2], ["Samples", 115, 2], ["Sample interval (µs)", 117, 2],
  ["Year", 157, 2], ["Day", 159, 2], ["Hour", 161, 2], ["Minute", 163, 2], ["Second", 165, 2], ["CDP X", 181, 4], ["CDP Y", 185, 4],
  ["Inline", 189, 4], ["Crossline", 193, 4], ["Shot point", 197, 4], ["Scalar of shot point", 201, 2],
];

/** Shows the header of the trace at a position: two fields choose it. */
export async function showHeaders(place, layer) {
  const axes = layer.axes.slice(0, -1);
  const fields = axes.map((axis) => element("input", { type: "number", step: "any", id: `trace${axis.number}`, value: String(layer.annotate(axis.number, Math.floor(axis.count / 2))) }));
  const body = element("tbody");
  const note = element("p", { className: "status", role: "status" });
  const isLittle = layer.dataset.vds?.segy?.dataEndianness === "little";
  let asked = 0;
  async function show() {
    const turn = ++asked;
    const index = fields.map((field, n) => Math.min(axes[n].count - 1, Math.max(0, Math.round(layer.indexOf(n, Number(field.value)) || 0))));
    const answer = await fetch(`${layer.folder}lod0.raw?box=${[...index, ":"].join(",")}`);
    if (!answer.ok) {
      note.textContent = (await answer.text()).trim();
      return;
    }
    const view = new DataView(await answer.arrayBuffer());
    // another trace may have been chosen meanwhile
    if (turn !== asked) return;
    note.textContent = `Trace [${index.join(", ")}]; words that are 0 are left out`;
    const rows = WORDS.map(([name, byte, size]) => [name, byte, size === 4 ? view.getInt32(byte - 1, isLittle) : view.getInt16(byte - 1, isLittle)]);
    body.replaceChildren(...rows.filter(([, , value]) => value !== 0).map(([name, byte, value]) =>
      element("tr", {}, element("th", { scope: "row", textContent: name }), element("td", { textContent: String(byte) }), element("td", { textContent: String(value) }))));
  }
  fields.forEach((field) => field.addEventListener("change", show));
  const labels = axes.flatMap((axis, n) => [element("label", { for: `trace${axis.number}`, textContent: axis.name }), fields[n]]);
  place.replaceChildren(element("p", { className: "bar" }, ...labels), note,
    element("table", { className: "words" }, element("thead", {}, element("tr", {}, ...["Word", "First byte", "Value"].map((textContent) => element("th", { scope: "col", textContent })))), body));
  await show();
}
