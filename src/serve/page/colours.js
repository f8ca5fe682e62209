// Colours of samples: tables of 256 colours, and colours by number for segmentations.

const STOPS = {
  Grey: [[0, 0, 0], [255, 255, 255]],
  "Grey, inverted": [[255, 255, 255], [0, 0, 0]],
  Seismic: [[0, 32, 110], [49, 112, 200], [255, 255, 255], [214, 69, 50], [103, 0, 20]],
  Viridis: [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]],
  Magma: [[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]],
};
export const LABELS = "Labels";
export const COLOUR_MAPS = [...Object.keys(STOPS), LABELS];
/** Samples without a value: dark green, as in the previews. */
const MISSING = pack(0, 64, 32);

function pack(r, g, b) {
  return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
}

export function table(name) {
  const stops = STOPS[name] ?? STOPS.Grey;
  const colours = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const part = at - low;
    const mix = (c) => Math.round(stops[low][c] * (1 - part) + stops[low + 1][c] * part);
    colours[i] = pack(mix(0), mix(1), mix(2));
  }
  return colours;
}

/** The colours of labels: those of the pictures (palettes.rs), of which 0 is black and 254 are for ids. */
const LABEL_COLOURS = Uint32Array.from({ length: 255 }, (_, number) => {
  const hue = (number * 0.618033988749895) % 1;
  const [saturation, brightness] = [[0.85, 0.5, 0.68][number % 3], [1, 0.62, 0.82, 0.94][number % 4]];
  return pack(...[0, 2, 4].map((ofChannel) => {
    const distance = ((hue * 6 - ofChannel + 9) % 6) - 3;
    const share = Math.min(Math.max(2 - Math.abs(distance), 0), 1);
    return Math.round(brightness * (1 - saturation * (1 - share)) * 255);
  }));
});
LABEL_COLOURS[0] = pack(0, 0, 0);

/** The upper half of a product of two words of 64 bits, modulo 2^64, each given by its halves. The lower half is easy. */
function upperOfProduct(high, low, otherHigh, otherLow) {
  const a = low >>> 16, b = low & 0xffff, c = otherLow >>> 16, d = otherLow & 0xffff;
  const middle = b * c + ((b * d) / 65536 >>> 0);
  const carried = a * c + Math.floor((a * d + middle) / 65536);
  return (carried + Math.imul(high, otherLow) + Math.imul(low, otherHigh)) >>> 0;
}

/** The number of an id's colour, from the halves of its 64 bits: the same as in the pictures (palettes.rs). */
export function numberOfLabel(high, low) {
  if (high === 0 && low === 0) return 0;
  const folded = (low ^ high) >>> 0;
  const upper = upperOfProduct(high, folded, 0x9e3779b9, 0x7f4a7c15), lower = Math.imul(folded, 0x7f4a7c15);
  const mixed = (lower ^ ((upper << 3) | (lower >>> 29))) >>> 0;
  return 1 + ((upperOfProduct(upper ^ (upper >>> 29), mixed, 0xbf58476d, 0x1ce4e5b9) >>> 1) % 254);
}

/** Returns what gives the colour of the sample at a place. Neighbours mostly have the same id. */
function painter(samples) {
  const halves = samples.BYTES_PER_ELEMENT === 8 ? new Uint32Array(samples.buffer, samples.byteOffset) : null;
  // the bits of a sample, without its sign
  const mask = samples.BYTES_PER_ELEMENT === 4 ? -1 : (1 << (8 * samples.BYTES_PER_ELEMENT)) - 1;
  let lastHigh = 0, lastLow = 0, colour = LABEL_COLOURS[0];
  return (from) => {
    const low = halves ? halves[2 * from] : (samples[from] & mask) >>> 0;
    const high = halves ? halves[2 * from + 1] : 0;
    if (low !== lastLow || high !== lastHigh) {
      lastHigh = high;
      lastLow = low;
      colour = LABEL_COLOURS[numberOfLabel(high, low)];
    }
    return colour;
  };
}

/**
 * Paints `rows` x `columns` samples; sample (row, column) stands at row * rowStep + column * columnStep. The range is of
 * stored numbers.
 */
export function paint(samples, { rows, columns, rowStep, columnStep }, { map, range: [low, high], missing, rgb }) {
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = table(map);
  const isBig = samples instanceof BigInt64Array || samples instanceof BigUint64Array;
  const colourOfLabel = map === LABELS ? painter(samples) : null;
  const factor = high > low ? 255.999 / (high - low) : 0;
  let at = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, at++) {
      const from = row * rowStep + column * columnStep;
      if (rgb) {
        pixels[at] = pack(samples[from], samples[from + 1], samples[from + 2]);
        continue;
      }
      if (colourOfLabel) {
        pixels[at] = colourOfLabel(from);
        continue;
      }
      const value = isBig ? Number(samples[from]) : samples[from];
      if (value !== value || value === missing) {
        pixels[at] = MISSING;
      } else {
        const index = (value - low) * factor;
        pixels[at] = colours[index < 0 ? 0 : index > 255 ? 255 : index | 0];
      }
    }
  }
  return image;
}
