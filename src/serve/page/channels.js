// The channels of a picture, which are shown in colours that add up.

import { element } from "./dom.js";

/** Switches, colours and ranges of the channels of a picture. */
export function channels({ layer, view }) {
  return element("div", { className: "channels" }, ...layer.channels.map((channel) => {
    const shown = element("input", { type: "checkbox", checked: channel.isShown, id: `channel${channel.number}` });
    shown.addEventListener("change", () => { channel.isShown = shown.checked; view.set({ styleNumber: view.styleNumber + 1 }); });
    const colour = element("input", { type: "color", value: channel.colour, "aria-label": `Colour of ${channel.name}` });
    colour.addEventListener("input", () => { channel.colour = colour.value; view.set({ styleNumber: view.styleNumber + 1 }); });
    channel.fields = [0, 1].map((n) => {
      const field = element("input", { type: "number", step: "any", "aria-label": `${n ? "Brightest" : "Darkest"} value of ${channel.name}` });
      field.addEventListener("change", () => {
        const range = channel.fields.map((one) => Number(one.value));
        if (range.every(Number.isFinite) && range[0] < range[1]) channel.range = range;
        view.set({ styleNumber: view.styleNumber + 1 });
      });
      return field;
    });
    return element("div", { className: "channel" }, shown, element("label", { for: shown.id, textContent: channel.name }), colour, ...channel.fields);
  }));
}
