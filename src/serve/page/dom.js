// Elements and numbers of the page.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Makes an element. Names with a hyphen, `role` and `for` are attributes, others are properties. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (key.includes("-") || key === "role" || key === "for" || key === "list") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A labelled list of choices. Returns the pair, and the list, whose value is the number of the choice. */
export function choice(id, label, names, chosen, onChange) {
  const select = element("select", { id });
  names.forEach((name, n) => select.append(element("option", { value: String(n), textContent: name, selected: n === chosen })));
  if (onChange) select.addEventListener("change", () => onChange(Number(select.value)));
  return [element("span", { className: "pair" }, element("label", { for: id, textContent: label }), select), select];
}

export function button(textContent, onClick, properties = {}) {
  const made = element("button", { type: "button", textContent, ...properties });
  made.addEventListener("click", onClick);
  return made;
}

/** A button that is on or off. */
export function toggle(textContent, isOn, onChange, properties = {}) {
  const made = button(textContent, () => onChange(made.getAttribute("aria-pressed") !== "true"), properties);
  made.setAttribute("aria-pressed", String(isOn));
  return made;
}

export function bytes(count) {
  let unit = 0;
  while (count >= 1024 && unit < UNITS.length - 1) {
    count /= 1024;
    unit++;
  }
  return `${count >= 100 || unit === 0 ? Math.round(count) : count.toFixed(1)} ${UNITS[unit]}`;
}

export const number = (value) => (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(9))));
/** A number for where there is little room. */
export const short = (value) => String(Number(value.toPrecision(5)));
/** Samples are painted by the processor: a canvas of the graphics card waits for another process at each turn. */
export const context2d = (canvas) => canvas.getContext("2d", { willReadFrequently: true });
export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** The greatest number of 1, 2 or 5 times a power of ten that is not greater; for ticks and scale bars. */
export function round(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [5, 2, 1].find((digit) => digit * power <= value * 1.0000001);
}
