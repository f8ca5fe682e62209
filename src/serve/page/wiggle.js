// Traces as wiggles with variable area: the side of positive values is filled.

/** Traces that are closer together than this, in screen pixels, are thinned out. */
const CLOSEST = 4;
/** How far the greatest value of the range reaches, in distances of traces. */
const REACH = 1.6;

/** Draws the traces that a plane shows over a white ground; `picture` has the slices that were drawn. */
export function drawWiggles(context, plane, { slices, drawn }) {
  if (!drawn) return;
  const { view, layer } = plane;
  const { rows, columns } = plane.bounds();
  const every = Math.max(1, Math.ceil(CLOSEST / view.pixels(plane.column)));
  const [low, high] = view.range ?? [0, 1];
  // values on one side of 0 swing around the middle of their range
  const zero = low < 0 && high > 0 ? 0 : (low + high) / 2;
  const most = Math.max(high - zero, zero - low) || 1;
  const swing = view.pixels(plane.column) * every * REACH;
  const [x0, y0] = plane.pointAt(columns[0] - 0.5, rows[0] - 0.5);
  const [x1, y1] = plane.pointAt(columns[1] + 0.5, rows[1] + 0.5);
  context.save();
  context.beginPath();
  context.rect(x0, y0, x1 - x0, y1 - y0);
  context.clip();
  context.fillStyle = "#fff";
  context.fill();
  context.lineWidth = 0.8;
  context.strokeStyle = context.fillStyle = "#111";
  for (let column = Math.ceil(columns[0] / every) * every; column <= columns[1]; column += every) {
    const at = [...drawn.own.at];
    at[slices.column] = column;
    const [line, area] = [new Path2D(), new Path2D()];
    const [x, top] = plane.pointAt(column, rows[0]);
    let last = top;
    area.moveTo(x, top);
    let isFirst = true;
    slices.trace(drawn.lod, at, rows, (row, stored) => {
      const value = (layer.toValue(Number(stored)) - zero) / most;
      const by = Number.isFinite(value) && stored !== layer.missing ? Math.max(-1.5, Math.min(1.5, value)) * swing : 0;
      const y = plane.pointAt(column, row)[1];
      if (isFirst) line.moveTo(x + by, y);
      else line.lineTo(x + by, y);
      area.lineTo(x + Math.max(0, by), y);
      [last, isFirst] = [y, false];
    });
    area.lineTo(x, last);
    area.closePath();
    context.fill(area);
    context.stroke(line);
  }
  context.restore();
}
