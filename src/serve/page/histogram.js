// The histogram of what is shown, and the range of values that the colours span.

const BINS = 96;
/** The most samples that are looked at. */
const MOST = 200_000;

/** Collects numbers of some arrays of samples: without NaN and samples without a value. */
export function collect(arrays, missing) {
  const total = arrays.reduce((sum, samples) => sum + samples.length, 0);
  const step = Math.max(1, Math.floor(total / MOST));
  const numbers = [];
  for (const samples of arrays) {
    for (let i = 0; i < samples.length; i += step) {
      const value = Number(samples[i]);
      if (Number.isFinite(value) && value !== missing) numbers.push(value);
    }
  }
  return Float64Array.from(numbers).sort();
}

/** A range in which nearly all samples lie; around zero if there are values on both sides of it. */
export function usualRange(sorted) {
  if (sorted.length === 0) return [0, 1];
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
  const [low, high] = [at(0.005), at(0.995)];
  if (low < 0 && high > 0) {
    const most = Math.max(-low, high);
    return [-most, most];
  }
  return low < high ? [low, high] : [low, low + 1];
}

/** Draws the histogram, with the range marked. */
export function draw(canvas, sorted, [low, high]) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const style = getComputedStyle(canvas);
  if (sorted.length === 0) return;
  const [first, last] = [Math.min(sorted[0], low), Math.max(sorted[sorted.length - 1], high)];
  const span = last - first || 1;
  const x = (value) => ((value - first) / span) * width;
  context.fillStyle = style.getPropertyValue("--marked");
  context.fillRect(x(low), 0, Math.max(1, x(high) - x(low)), height);
  const bins = new Array(BINS).fill(0);
  for (const value of sorted) bins[Math.min(BINS - 1, Math.floor(((value - first) / span) * BINS))]++;
  const most = Math.log1p(Math.max(...bins));
  context.fillStyle = style.getPropertyValue("--bars");
  bins.forEach((count, n) => {
    const tall = (Math.log1p(count) / most) * (height - 2);
    context.fillRect((n * width) / BINS, height - tall, width / BINS - 0.5, tall);
  });
}
