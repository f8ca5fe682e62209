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

/** A colour for each id, the same in all slices; id 0 is black. */
function colourOfId(id) {
  if (id === 0) return pack(0, 0, 0);
  let h = Math.imul(id ^ (id >>> 16), 0x45d9f3b);
  h = Math.imul(h ^ (h >>> 16), 0x45d9f3b);
  h ^= h >>> 16;
  const hue = ((h >>> 0) % 360) / 60;
  const value = 150 + ((h >>> 9) & 0x5f);
  const low = (h >>> 16) & 0x3f;
  const middle = low + (value - low) * (1 - Math.abs((hue % 2) - 1));
  const [r, g, b] = [[value, middle, low], [middle, value, low], [low, value, middle],
    [low, middle, value], [middle, low, value], [value, low, middle]][Math.floor(hue) % 6];
  return pack(r, g, b);
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
  const factor = high > low ? 255.999 / (high - low) : 0;
  let at = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++, at++) {
      const from = row * rowStep + column * columnStep;
      if (rgb) {
        pixels[at] = pack(samples[from], samples[from + 1], samples[from + 2]);
        continue;
      }
      const value = isBig ? Number(map === LABELS ? BigInt.asUintN(32, samples[from]) : samples[from]) : samples[from];
      if (map === LABELS) {
        pixels[at] = colourOfId(value | 0);
      } else if (value !== value || value === missing) {
        pixels[at] = MISSING;
      } else {
        const index = (value - low) * factor;
        pixels[at] = colours[index < 0 ? 0 : index > 255 ? 255 : index | 0];
      }
    }
  }
  return image;
}
