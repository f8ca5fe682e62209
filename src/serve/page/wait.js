// What is being waited for, and for how long. It is told after a second.

import { element } from "./dom.js";

const SECOND = 1000;
/** Seconds of a wait after which the server is asked whether it is there, and in which it has to answer. */
const ASKED_AFTER = 3;
const ANSWERS_WITHIN = 2;

export class Wait {
  /** `changed` is called each second of a wait, and when the server has fallen silent. */
  constructor(changed) {
    Object.assign(this, { changed, since: null, timer: null, isSilent: false, isAsking: false });
  }

  /** Whether something is waited for; the wait begins anew when the view moves. */
  update(isWaiting, movedAt = 0) {
    if (!isWaiting) {
      clearInterval(this.timer);
      Object.assign(this, { since: null, timer: null, isSilent: false });
      return;
    }
    this.since = Math.max(this.since ?? performance.now(), movedAt);
    this.timer ??= setInterval(() => this.tick(), SECOND);
  }

  /** Whole seconds of the wait. */
  get seconds() {
    return this.since === null ? 0 : Math.floor((performance.now() - this.since) / SECOND);
  }

  async tick() {
    this.changed();
    if (this.seconds < ASKED_AFTER || this.isAsking) return;
    this.isAsking = true;
    const answers = await fetch(".", { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(ANSWERS_WITHIN * SECOND) }).then(() => true, () => false);
    this.isAsking = false;
    if (this.since === null || this.isSilent === !answers) return;
    this.isSilent = !answers;
    this.changed();
  }
}

/** Waits for something, and says at the top of a place if that takes longer than a second. */
export async function waitFor(promise, place, what) {
  const text = element("span");
  const seconds = element("span", { "aria-hidden": "true" });
  const note = element("p", { className: "status", role: "status" }, text, seconds);
  const wait = new Wait(() => {
    if (!note.isConnected) place.prepend(note);
    text.textContent = wait.isSilent ? "The server does not answer. " : `Waiting for ${what}. `;
    seconds.textContent = `${wait.seconds} s`;
  });
  wait.update(true);
  try {
    return await promise;
  } finally {
    wait.update(false);
    note.remove();
  }
}

/** What is waited for, as text: the bricks of tiles {layer, lod, box}, by layer. */
export function bricksOf(tiles) {
  const bricks = new Map();
  for (const { layer, lod, box } of tiles) {
    if (!bricks.has(layer)) bricks.set(layer, new Set());
    const shape = layer.levels[lod].brick_shape;
    let found = [String(lod)];
    box.forEach(([from, to], axis) => {
      const size = shape?.[axis] || to - from || 1;
      const numbers = Array.from({ length: Math.ceil(to / size) - Math.floor(from / size) }, (_, n) => Math.floor(from / size) + n);
      found = found.flatMap((text) => numbers.map((n) => `${text},${n}`));
    });
    for (const one of found) bricks.get(layer).add(one);
  }
  return [...bricks].map(([layer, { size }]) => `${size} ${size === 1 ? "brick" : "bricks"} of ${layer.dataset.name} (${layer.name})`).join(" and ");
}
