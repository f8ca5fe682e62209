// Reads boxes of samples from the server, keeps those that were read last, and stops reading what is no longer wanted.

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
/** Bytes of samples that are kept, unless more are shown. A browser lets garbage grow with them. */
const KEPT_BYTES = 32 << 20;
/** Requests in flight: one fewer than browsers open to one server, so that it can be asked whether it is there. */
const IN_FLIGHT = 5;
/** Milliseconds after which a server that did not answer is asked again. */
const RETRY_AFTER = 1000;

/** Fetches JSON. `onVersion` gets the version of the dataset that it describes. */
export async function getJson(url, onVersion = () => {}) {
  // what the page has had fetched before is taken only if the headers are the same
  const answer = await fetch(url, url.endsWith("/") ? { headers: { Accept: "application/json" } } : {});
  onVersion(answer.headers.get("volfs-version"));
  if (!answer.ok) throw new Error((await answer.text()).trim() || `status ${answer.status}`);
  return answer.json();
}

/** Bytes of a sample of a type. */
export const sizeOf = (dtype) => Number(dtype.replace(/^\D+/, "")) / 8;

/** The samples of an answer, in an array of their type. */
const samplesOf = (bytes, dtype) => SHOWN[dtype]?.(bytes) ?? new TYPES[dtype](bytes);

/**
 * Boxes of samples by address: asked for in an order that may change until they are fetched. Those of all planes share
 * one store. Calls back when samples arrive, when the dataset has become another one, and when the server is lost or
 * back. `versionNow` finds the version of the dataset, or null where it is not described as before.
 */
export class SampleStore {
  constructor({ arrived, changed, lost, versionNow = async () => null }) {
    Object.assign(this, { arrived, changed, lost, versionNow });
    this.kept = new Map();
    this.room = KEPT_BYTES;
    this.bytes = 0;
    this.flying = new Map();
    this.wanted = [];
    this.version = null;
    this.renewal = null;
    this.isLost = false;
    this.isStopped = false;
  }

  get(key) {
    const samples = this.kept.get(key);
    if (samples) {
      this.kept.delete(key);
      this.kept.set(key, samples);
    }
    return samples;
  }

  /** Keeps at least so many bytes, those of what is shown. */
  reserve(bytes) {
    this.room = Math.max(KEPT_BYTES, bytes);
  }

  /** Replaces what is wanted: {key, url, dtype}, the most urgent first. What else is in flight is given up. */
  want(list) {
    const keys = new Set(list.map((item) => item.key));
    for (const [key, { controller }] of this.flying) if (!keys.has(key)) controller.abort();
    this.wanted = list.filter((item) => !this.kept.has(item.key) && !this.flying.has(item.key));
    this.pump();
  }

  pump() {
    while (!this.isLost && !this.isStopped && !this.renewal && this.flying.size < IN_FLIGHT && this.wanted.length > 0) {
      const item = this.wanted.shift();
      const controller = new AbortController();
      this.flying.set(item.key, { item, controller });
      this.fetch(item, controller.signal).then(
        (samples) => this.end(item, samples, null),
        (error) => this.end(item, null, error),
      );
    }
  }

  async fetch({ url, dtype }, signal) {
    const answer = await fetch(url, { signal });
    if (!this.isCurrent(answer.headers.get("volfs-version"))) throw new DOMException("the source has changed", "AbortError");
    if (!answer.ok) throw new Error((await answer.text()).trim() || `status ${answer.status}`);
    return samplesOf(await answer.arrayBuffer(), dtype);
  }

  /** Whether samples, or a description, are of the version of the dataset that is shown. If not, no more are read for now. */
  isCurrent(version) {
    if (!version || version === (this.version ??= version)) return true;
    if (this.isLost || this.isStopped || this.renewal) return false;
    const dataset = (text) => text.slice(0, text.lastIndexOf("-"));
    if (dataset(version) === dataset(this.version)) this.renew();
    else this.stop();
    return false;
  }

  /** The dataset has become another one. */
  stop() {
    this.isStopped = true;
    this.changed();
  }

  /**
   * The server has read the dataset again, as it does with one that was written a moment before it was opened, or it is
   * another server. A dataset that is described as before goes on, with samples of the new version alone.
   */
  renew() {
    for (const { controller } of this.flying.values()) controller.abort();
    this.renewal = this.versionNow().then((version) => {
      this.renewal = null;
      if (version === null) return this.stop();
      this.kept.clear();
      Object.assign(this, { bytes: 0, version });
      return this.arrived();
    }, (error) => {
      this.renewal = null;
      return error.name === "TypeError" ? this.wait() : this.stop();
    });
  }

  end(item, samples, error) {
    this.flying.delete(item.key);
    // a request that is no longer wanted, or that never reached the server, says nothing about the samples
    if (error?.name === "TypeError") this.wait();
    else if (error?.name !== "AbortError") this.keep(item.key, error ? { error: error.message, byteLength: 1 << 16 } : samples);
    this.pump();
    this.arrived();
  }

  keep(key, entry) {
    this.kept.set(key, entry);
    this.bytes += entry.byteLength;
    for (const [other, old] of this.kept) {
      if (this.bytes <= this.room) break;
      this.kept.delete(other);
      this.bytes -= old.byteLength;
    }
  }

  /** Waits until the server answers again. */
  async wait() {
    if (this.isLost) return;
    this.isLost = true;
    this.lost(true);
    const answers = () => fetch(".", { method: "HEAD", cache: "no-store" }).then((answer) => answer.status < 502, () => false);
    do await new Promise((done) => setTimeout(done, RETRY_AFTER)); while (!(await answers()));
    this.isLost = false;
    if (!this.isStopped) this.renew();
    this.lost(false);
  }
}

function half(bits) {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const magnitude = exponent === 31 ? (fraction ? NaN : Infinity)
    : exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24;
  return bits & 0x8000 ? -magnitude : magnitude;
}

const magnitudes = (parts) => new parts.constructor(parts.length / 2).map((_, n) => Math.hypot(parts[2 * n], parts[2 * n + 1]));
