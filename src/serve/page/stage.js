// The planes of a layer together: they are drawn when the view changes, and share what is fetched.

import { element } from "./dom.js";
import { placement } from "./layer.js";
import { Plane } from "./plane.js";
import { SampleStore } from "./samples.js";
import { Slices } from "./slices.js";

/** Quick pictures are asked for first where a plane moves on sooner than this, in milliseconds. */
const HURRY = 400;

export class Stage {
  /** `events`: arrived (samples), drawn, hover(plane), pick, jump, changed (the source is another one), lost(isLost). */
  constructor(view, events) {
    this.view = view;
    this.events = events;
    this.store = new SampleStore({ arrived: () => { events.arrived(); this.redraw(); }, changed: () => events.changed(), lost: (isLost) => { events.lost(isLost); this.redraw(); }, versionNow: () => view.layer.versionNow() });
    // samples are of the version that the levels were described in
    this.store.version = view.layer.version;
    this.element = element("div", { className: "planes" });
    this.hovered = null;
    this.active = 0;
    this.drawn = 0;
    view.changed = () => { this.movedAt = performance.now(); this.redraw(); };
    this.build();
  }

  build() {
    const callbacks = {
      hover: (plane) => { this.hovered = plane; this.events.hover(plane); },
      pick: (...what) => this.events.pick(...what),
      jump: () => this.events.jump(),
      arranged: () => this.arrange(),
      resized: () => { if (this.view.isFitted) this.fit(); else this.redraw(); },
    };
    this.planes = this.view.planes.map((_, n) => new Plane(this.view, n, (plane) => this.picturesOf(plane), callbacks));
    this.planes.forEach((plane, n) => plane.canvas.addEventListener("focus", () => { this.active = n; }));
    // the fourth place of a square
    this.corner = element("div", { className: "corner" });
    this.element.replaceChildren(...this.planes.map((plane) => plane.element), ...(this.planes.length === 3 ? [this.corner] : []));
    this.arrange();
  }

  /** Shows all planes, or the one that is large. */
  arrange() {
    const { maximized } = this.view;
    this.element.dataset.planes = maximized === null ? String(this.planes.length) : "1";
    this.planes.forEach((plane, n) => { plane.element.hidden = maximized !== null && maximized !== n; });
    this.corner.hidden = maximized !== null;
    if (maximized !== null) this.active = maximized;
    this.planes.forEach((plane) => plane.resized());
    if (this.view.isFitted) this.fit();
    this.redraw();
  }

  fit() {
    this.view.fit(this.planes.map((plane) => (plane.element.hidden ? [0, 0] : plane.size)));
  }

  /** Makes the list of what a plane shows: the layer, or its channels, and what lies over it. */
  picturesOf(plane) {
    const { view, store } = this;
    const axes = { row: plane.row, column: plane.column, across: plane.across };
    const own = view.layer.channels.length === 0
      ? [{ slices: new Slices(view.layer, store, axes), style: () => view.style() }]
      : view.layer.channels.map((channel) => {
        const slices = Object.assign(new Slices(view.layer, store, axes), { channel });
        const style = () => {
          const [low, high] = channel.range ?? view.range ?? [0, 1];
          return { ...view.style(), map: channel.colour, low: view.layer.toStored(low), high: view.layer.toStored(high) };
        };
        return { slices, style, blend: "lighter", channel };
      });
    let over = null;
    return () => {
      const { overlay } = view;
      if (over?.of !== overlay.layer) over = overlay.layer ? this.overlayOf(overlay, axes) : null;
      if (over) over.opacity = overlay.opacity;
      return [...own.filter(({ channel }) => !channel || channel.isShown), ...(over ? [over] : [])];
    };
  }

  overlayOf(overlay, axes) {
    const matched = matchAxes(overlay.layer, this.view.layer);
    const own = (axis) => (axis === null ? null : matched.indexOf(axis));
    const slices = new Slices(overlay.layer, this.store, { row: own(axes.row), column: own(axes.column), across: own(axes.across) },
      (axis) => (matched[axis] === null ? { factor: 1, shift: 0 } : lieOf(overlay.layer, axis, this.view.layer, matched[axis])));
    slices.toBase = (axis) => matched[axis];
    return { of: overlay.layer, slices, style: () => overlay.style(), opacity: overlay.opacity };
  }

  redraw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = null;
      this.draw();
    });
  }

  draw() {
    const order = [this.active, ...this.planes.keys()].filter((n, at, all) => all.indexOf(n) === at);
    const shown = order.map((n) => this.planes[n]).filter((plane) => !plane.element.hidden);
    const states = shown.map((plane) => plane.draw());
    this.store.reserve(states.reduce((bytes, state) => bytes + state.bytes, 0));
    const isHurried = performance.now() - (this.movedAt ?? 0) < HURRY;
    const quick = isHurried ? states.flatMap((state) => state.quick) : [];
    const missing = states.flatMap((state) => state.missing);
    this.isComplete = missing.length === 0;
    this.missing = missing;
    // neighbours are fetched when everything that is seen is there, and somebody goes through slices
    const isTravelling = performance.now() - this.view.steppedAt < HURRY;
    const ahead = this.isComplete && isTravelling ? shown.find((plane) => plane.across === this.view.steppedAxis)?.state.ahead ?? [] : [];
    if (!this.isComplete || ahead.length > 0 || !isHurried) this.store.want([...quick, ...missing, ...ahead]);
    this.lod = states[0]?.lod ?? 0;
    this.isTooLarge = states.some((state) => state.isTooLarge);
    this.drawn++;
    this.events.drawn();
  }

  /** The plane that is pointed at, or that has the keyboard. */
  get current() {
    return this.hovered ?? this.planes[this.active];
  }

  /** The index under the pointer, or that of the crosshair. */
  indexHere() {
    const { view, hovered } = this;
    const index = [...view.index];
    if (hovered?.pointer) {
      const [column, row] = hovered.positionAt(...hovered.pointer).map(Math.round);
      const isInside = column >= 0 && row >= 0 && column < view.layer.shape[hovered.column] && row < view.layer.shape[hovered.row];
      if (!isInside) return null;
      [index[hovered.column], index[hovered.row]] = [column, row];
    }
    return index;
  }

  /** The samples at an index: {lod, values: one for each picture, with its name}, or null. */
  samplesAt(index) {
    const plane = this.current;
    if (!plane?.state) return null;
    const values = plane.pictures().map(({ slices, channel, of, drawn }) => {
      const lod = drawn?.lod ?? 0;
      const at = slices.layer.shape.map((_, axis) => {
        const { factor, shift } = slices.place(axis);
        return ((index[slices.toBase?.(axis) ?? axis] ?? 0) - shift) / factor;
      });
      const found = slices.sample(lod, at);
      return found && { ...found, lod, layer: slices.layer, name: channel?.name ?? of?.name ?? null };
    });
    return values;
  }

  /** The arrays of samples of the layer itself that are seen, of one channel if it has some. */
  *seen(channel = null) {
    for (const plane of this.planes) {
      if (plane.element.hidden) continue;
      for (const picture of plane.pictures()) {
        if (picture.of || !picture.drawn || (picture.channel ?? null) !== channel) continue;
        yield* picture.slices.shown(picture.drawn.lod, picture.drawn.own.at, picture.drawn.own.bounds);
      }
    }
  }
}

/** For each axis of a layer the axis of another one that it lies along, by name; null if there is none. */
function matchAxes(layer, base) {
  const names = base.axes.map((axis) => axis.name.toLowerCase());
  const found = layer.axes.map((axis) => names.indexOf(axis.name.toLowerCase())).map((n) => (n < 0 ? null : n));
  // axes without names lie as they are numbered
  return found.every((n) => n === null) && layer.axes.length === base.axes.length ? layer.axes.map((_, n) => n) : found;
}

/** How indexes along an axis of a layer lie in those of another one. */
function lieOf(layer, axis, base, baseAxis) {
  const [a, b] = [{ axes: { [baseAxis]: layer.axes[axis] } }, { axes: { [baseAxis]: base.axes[baseAxis] } }];
  return placement(a, b, baseAxis);
}

/** Whether a layer can be shown over another one: it has all axes of the planes. */
export function fitsOver(layer, base, axes) {
  const matched = matchAxes(layer, base);
  return layer !== base && axes.every((axis) => matched.includes(axis));
}
