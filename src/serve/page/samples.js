// Reads boxes of samples from the server, and keeps those that were read last.

const TYPES = {
  int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array,
  int64: BigInt64Array, uint64: BigUint64Array, float32: Float32Array, float64: Float64Array,
};
/** What is shown of samples that no array has: the values of float16, and the magnitudes of complex samples. */
const SHOWN = {
  float16: (bytes) => Float32Array.from(new Uint16Array(bytes), half),
  complex64: (bytes) => magnitudes(new Float32Array(bytes)),
  complex128: (bytes) => magnitudes(new Float64Array(bytes)),
};
/** Bytes of samples that are kept. */
const KEPT_BYTES = 128 << 20;
/** Requests in flight; browsers open no more connections to one server. */
const IN_FLIGHT = 6;

export async function getJson(url) {
  const answer = await fetch(url, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `status ${answer.status}`);
  return answer.json();
}

/** Boxes of samples by name: asked for in an order that may change until they are fetched. */
export class SampleStore {
  constructor(onArrival) {
    this.onArrival = onArrival;
    this.kept = new Map();
    this.bytes = 0;
    this.flying = new Map();
    this.wanted = [];
  }

  get(key) {
    const samples = this.kept.get(key);
    if (samples) {
      this.kept.delete(key);
      this.kept.set(key, samples);
    }
    return samples;
  }

  /** Replaces what is wanted: {key, url, dtype}, the most urgent first. What is in flight goes on. */
  want(list) {
    this.wanted = list.filter((item) => !this.kept.has(item.key) && !this.flying.has(item.key));
    this.pump();
  }

  get isIdle() {
    return this.flying.size === 0 && this.wanted.length === 0;
  }

  pump() {
    while (this.flying.size < IN_FLIGHT && this.wanted.length > 0) {
      const item = this.wanted.shift();
      this.flying.set(item.key, item);
      this.fetch(item).then(
        (samples) => this.arrived(item, samples, null),
        (error) => this.arrived(item, null, error),
      );
    }
  }

  async fetch({ url, dtype }) {
    const answer = await fetch(url);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const bytes = await answer.arrayBuffer();
    return SHOWN[dtype]?.(bytes) ?? new TYPES[dtype](bytes);
  }

  arrived(item, samples, error) {
    this.flying.delete(item.key);
    // a brick that cannot be read is asked for again only after others have been
    const entry = error ? { error: error.message, byteLength: 1 << 16 } : samples;
    this.kept.set(item.key, entry);
    this.bytes += entry.byteLength;
    for (const [key, old] of this.kept) {
      if (this.bytes <= KEPT_BYTES) break;
      this.kept.delete(key);
      this.bytes -= old.byteLength;
    }
    this.pump();
    this.onArrival(item.key);
  }
}

function half(bits) {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const magnitude = exponent === 31 ? (fraction ? NaN : Infinity)
    : exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
  return bits & 0x8000 ? -magnitude : magnitude;
}

const magnitudes = (parts) => new parts.constructor(parts.length / 2).map((_, n) => Math.hypot(parts[2 * n], parts[2 * n + 1]));

/** The position of a sample along an axis of one level, as an index of level 0. */
export function toFinest(level, finest, axis, index) {
  const [a, b] = [level.axes[axis], finest.axes[axis]];
  if (a.first === null || b.first === null || !b.step) return ((index + 0.5) * b.count) / a.count - 0.5;
  return (a.first + index * a.step - b.first) / b.step;
}

/** The index in a level (not rounded) of a position in level 0. */
export function fromFinest(level, finest, axis, position) {
  const [a, b] = [level.axes[axis], finest.axes[axis]];
  if (a.first === null || b.first === null || !a.step) return ((position + 0.5) * a.count) / b.count - 0.5;
  return (b.first + position * b.step - a.first) / a.step;
}

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
