// Colours of samples: scales of 256 colours, one colour for each channel, and colours by number for labels.

/** Colours at even distances along each scale: hexadecimal, 6 digits each. Viridis, magma and twilight are Matplotlib's. */
const SCALES = {
  Grey: "000000ffffff",
  "Grey, inverted": "ffffff000000",
  Seismic: "050f4d1a40c785adf7fffffffa9e85cc211a52030d",
  Viridis: "44015448186a472d7b4240863b528b33638d2c728e26828e21918c1fa08828ae803fbc735ec96284d44baddc30d8e219fde725",
  Magma: "0000040a08221d114736106b51127c6a1c818326819c2e7fb73779d0416fe75263f56b5cfc8961fea772fec488fde2a3fcfdbf",
  "Phase (cyclic)": "e2d9e2c4ced495b5c77297c16276ba5e51ad592a8f45135c2f14364a1342741e4f983550b25652c27c63cca389d8c7bee2d9e2",
};
export const LABELS = "Labels";
export const COLOUR_MAPS = [...Object.keys(SCALES), LABELS];
/** Samples without a value: as in the pictures (view/picture/palettes.rs). */
const MISSING = pack(0x30, 0x48, 0x38);
export const MISSING_COLOUR = "#304838";

function pack(r, g, b, a = 255) {
  return ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

const tables = new Map();

/** The 256 colours of a scale, or from black to a colour as "#rrggbb". */
export function table(name) {
  if (tables.has(name)) return tables.get(name);
  const digits = name.startsWith("#") ? `000000${name.slice(1)}` : SCALES[name] ?? SCALES.Grey;
  const stops = digits.match(/../g).map((pair) => parseInt(pair, 16));
  const last = stops.length / 3 - 1;
  const colours = Uint32Array.from({ length: 256 }, (_, n) => {
    const at = (n / 255) * last;
    const low = Math.min(Math.floor(at), last - 1);
    const mix = (c) => Math.round(stops[3 * low + c] + (stops[3 * low + 3 + c] - stops[3 * low + c]) * (at - low));
    return pack(mix(0), mix(1), mix(2));
  });
  tables.set(name, colours);
  return colours;
}

/** A scale as a gradient of CSS. */
export function gradient(name, direction) {
  const colours = table(name);
  const stops = Array.from({ length: 17 }, (_, n) => colours[Math.round((n * 255) / 16)])
    .map((colour) => `rgb(${colour & 255},${(colour >> 8) & 255},${(colour >> 16) & 255})`);
  return `linear-gradient(${direction}, ${stops.join(", ")})`;
}

/** The colours of labels: those of the pictures, of which 254 are for ids. */
const LABEL_COLOURS = Uint32Array.from({ length: 255 }, (_, number) => {
  const hue = (number * 0.618033988749895) % 1;
  const [saturation, brightness] = [[0.85, 0.5, 0.68][number % 3], [1, 0.62, 0.82, 0.94][number % 4]];
  return pack(...[0, 2, 4].map((ofChannel) => {
    const distance = ((hue * 6 - ofChannel + 9) % 6) - 3;
    const share = Math.min(Math.max(2 - Math.abs(distance), 0), 1);
    return Math.round(brightness * (1 - saturation * (1 - share)) * 255);
  }));
});

/** The upper half of a product of two words of 64 bits, modulo 2^64, each given by its halves. The lower half is easy. */
function upperOfProduct(high, low, otherHigh, otherLow) {
  const a = low >>> 16, b = low & 0xffff, c = otherLow >>> 16, d = otherLow & 0xffff;
  const middle = b * c + ((b * d) / 65536 >>> 0);
  const carried = a * c + Math.floor((a * d + middle) / 65536);
  return (carried + Math.imul(high, otherLow) + Math.imul(low, otherHigh)) >>> 0;
}

/** The number of an id's colour, from the halves of its 64 bits: the same as in the pictures (palettes.rs). */
function numberOfLabel(high, low) {
  if (high === 0 && low === 0) return 0;
  const folded = (low ^ high) >>> 0;
  const upper = upperOfProduct(high, folded, 0x9e3779b9, 0x7f4a7c15), lower = Math.imul(folded, 0x7f4a7c15);
  const mixed = (lower ^ ((upper << 3) | (lower >>> 29))) >>> 0;
  return 1 + ((upperOfProduct(upper ^ (upper >>> 29), mixed, 0xbf58476d, 0x1ce4e5b9) >>> 1) % 254);
}

/**
 * Returns what gives the colour of the label at a place: 0 is transparent, and with a picked label all others are faint.
 * Neighbours mostly have the same id.
 */
function painterOfLabels(samples, picked) {
  const halves = samples.BYTES_PER_ELEMENT === 8 ? new Uint32Array(samples.buffer, samples.byteOffset) : null;
  // the bits of a sample, without its sign
  const mask = samples.BYTES_PER_ELEMENT >= 4 ? -1 : (1 << (8 * samples.BYTES_PER_ELEMENT)) - 1;
  let [lastHigh, lastLow, colour] = [0, 0, 0];
  return (from) => {
    const low = halves ? halves[2 * from] : (samples[from] & mask) >>> 0;
    const high = halves ? halves[2 * from + 1] : 0;
    if (low !== lastLow || high !== lastHigh) {
      [lastHigh, lastLow] = [high, low];
      const isFaint = picked !== null && samples[from] !== picked;
      colour = low === 0 && high === 0 ? 0 : LABEL_COLOURS[numberOfLabel(high, low)] & (isFaint ? 0x48ffffff : 0xffffffff);
    }
    return colour;
  };
}

/** What was painted last. */
let image = null;

/**
 * Paints `rows` x `columns` samples; sample (row, column) stands at row * rowStep + column * columnStep. `low` and `high`
 * are the stored numbers of the first and the last colour of `map`. The next call paints into the same memory.
 */
export function paint(samples, { rows, columns, rowStep, columnStep }, { map, low, high, missing, kind, picked }) {
  if (image?.width !== columns || image.height !== rows) image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const colourOfLabel = map === LABELS ? painterOfLabels(samples, picked) : null;
  const colours = colourOfLabel ? null : table(map);
  const isBig = samples instanceof BigInt64Array || samples instanceof BigUint64Array;
  const hasMissing = missing !== null && missing !== undefined;
  const factor = high !== low ? 255.999 / (high - low) : 0;
  for (let row = 0, at = 0; row < rows; row++) {
    for (let column = 0, from = row * rowStep; column < columns; column++, at++, from += columnStep) {
      if (kind === "rgb") {
        pixels[at] = pack(samples[from], samples[from + 1], samples[from + 2]);
      } else if (colourOfLabel) {
        pixels[at] = colourOfLabel(from);
      } else {
        const value = isBig ? Number(samples[from]) : samples[from];
        if (value !== value || (hasMissing && value === missing)) {
          pixels[at] = MISSING;
        } else {
          const index = (value - low) * factor;
          pixels[at] = colours[index < 0 ? 0 : index > 255 ? 255 : index | 0];
        }
      }
    }
  }
  return image;
}
