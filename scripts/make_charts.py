#!/usr/bin/env python3
"""Draws the charts of docs/performance.md from the figures of the benchmarks: docs/figures/*.json becomes *.svg.

    scripts/bench --json docs/figures/bench.json
    scripts/bench views --json docs/figures/views.json
    scripts/bench in-process --json docs/figures/in-process.json
    scripts/bench store --apart --json docs/figures/store.json
    scripts/make_charts.py

Needs nothing but Python. The charts have a transparent background, and colours for light and for dark pages.
"""

import json
import math
import statistics
from pathlib import Path
from xml.sax.saxutils import escape

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "figures"
WIDTH, LEFT, RIGHT = 880, 228, 90
FONT, BAR, GAP = 16, 18, 14
# classes of colours: for light pages, for dark pages, and for programs that cannot tell
COLOURS = {
    "volfs": ("#1f6fc4", "#58a6ff", "#3b86d8"),
    "library": ("#c2610c", "#f0883e", "#d9741f"),
    "third": ("#1a8a5f", "#3fb984", "#2a9d72"),
    "fourth": ("#8250c8", "#b392f0", "#9868d6"),
    "text": ("#59636e", "#9ca6b1", "#768390"),
    "line": ("#59636e", "#9ca6b1", "#768390"),
}


def style():
    """Returns the style sheet: the third colour, and one of the first two where the program says which page it is on."""
    def rules(n):
        return "".join(f".{name}{{fill:{colours[n]}}}path.{name}{{stroke:{colours[n]}}}" for name, colours in COLOURS.items())
    return (f"text{{font:{FONT}px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}}.grid{{stroke-opacity:.25}}{rules(2)}"
            f"@media (prefers-color-scheme:light){{{rules(0)}}}@media (prefers-color-scheme:dark){{{rules(1)}}}")


class Scale:
    """Places of values along a chart: from 0 on, or by powers of ten from `least` on."""

    def __init__(self, values, log):
        self.log, self.most = log, max(values)
        if log:
            ticks = [m * 10.0**p for p in range(-6, 7) for m in (1, 3)]
            self.least = max(t for t in ticks if t <= min(values))
            self.most = min(t for t in ticks if t >= self.most)
            self.ticks = [t for t in ticks if self.least <= t <= self.most]
        else:
            step = next(m * 10.0**p for p in range(-6, 7) for m in (1, 2, 5) if self.most / (m * 10.0**p) <= 6)
            self.least, self.ticks = 0, [n * step for n in range(int(self.most / step) + 1)]

    def __call__(self, value):
        span = WIDTH - LEFT - RIGHT
        if self.log:
            return LEFT + span * math.log(value / self.least) / math.log(self.most / self.least)
        return LEFT + span * value / self.most


class Chart:
    """A chart that grows downwards: a caption, a legend, and rows of bars or ranges with labels."""

    def __init__(self, caption, legend, values, log=False):
        self.out, self.y, self.scale, self.caption = [], 24, Scale(values, log), caption
        self.text(8, self.y, caption)
        self.y += 28
        x = 8
        for colour, name in legend:
            width = 3 if colour == "line" else 14
            self.out.append(f'<rect class="{colour}" x="{x:.1f}" y="{self.y - 12}" width="{width}" height="14"/>')
            self.text(x + width + 7, self.y, name)
            x += width + 8.2 * len(name) + 30
        self.top = self.y + 14
        self.y = self.top + 10

    def text(self, x, y, text, anchor="start"):
        """Writes a text."""
        self.out.append(f'<text class="text" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')

    def line(self, colour, x1, x2, y, width):
        """Draws a horizontal line."""
        self.out.append(f'<path class="{colour}" d="M{x1:.1f} {y:.1f}H{x2:.1f}" stroke-width="{width}"/>')

    def row(self, label, lines, draw):
        """Draws a row: its label, and a line for each of `lines`."""
        self.text(LEFT - 12, self.y + len(lines) * BAR / 2 + FONT * 0.35, label, "end")
        for line in lines:
            draw(*line)
            self.y += BAR
        self.y += GAP

    def bar(self, colour, parts, text, ranged=None, mark=None):
        """Draws a bar of one or more parts, later ones paler, with the range of its value and a mark."""
        at = 0
        for number, part in enumerate(parts):
            x, end = self.scale(at), self.scale(at + part)
            self.out.append(f'<rect class="{colour}" x="{x:.1f}" y="{self.y + 1.5}" width="{max(end - x, 1):.1f}" height="{BAR - 3}" '
                            f'fill-opacity="{0.85 if number == 0 else 0.4}"/>')
            at += part
        end = self.scale(at)
        middle = self.y + BAR / 2
        if ranged:
            self.line("line", self.scale(ranged[0]), self.scale(ranged[1]), middle, 1.6)
            end = max(end, self.scale(ranged[1]))
        if mark:
            x = self.scale(mark)
            self.out.append(f'<path class="line" d="M{x:.1f} {self.y}V{self.y + BAR}" stroke-width="2.4"/>')
            # the text stands before the mark if there is room
            if end - 4 < x < end + 9 * len(text) + 12:
                end = x
        self.text(end + 7, middle + FONT * 0.35, text)

    def points(self, colour, values, text, ranged=None):
        """Draws points on a line from the least to the greatest value, or along a range."""
        middle = self.y + BAR / 2
        low, high = ranged or (min(values), max(values))
        self.line(colour, self.scale(low), self.scale(high), middle, 2)
        self.out += [f'<circle class="{colour}" cx="{self.scale(value):.1f}" cy="{middle}" r="4.6"/>' for value in values]
        self.text(self.scale(high) + 10, middle + FONT * 0.35, text)

    def write(self, name):
        """Adds the scale, and writes the file."""
        bottom = self.y
        grid = []
        for tick in self.scale.ticks:
            x = self.scale(tick)
            grid.append(f'<path class="line grid" d="M{x:.1f} {self.top}V{bottom}" stroke-width="1"/>')
            self.text(x, bottom + 19, f"{tick:g}", "middle")
        height = bottom + 30
        (FOLDER / name).write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img">'
            f"<title>{escape(self.caption)}</title>\n<style>{style()}</style>\n" + "\n".join(grid + self.out) + "\n</svg>\n")
        print(f"docs/figures/{name}")


def load(name):
    """Returns the figures of a benchmark."""
    return json.loads((FOLDER / name).read_text())


def rows(figures, how):
    """Returns the rows of the main benchmark that were measured in one way."""
    return [row for row in figures["rows"] if row["how"] == how and row["ours"] and row["ours"][0]]


def short(value):
    """Formats a number with two or three digits."""
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.3g}"


def spread(low, high):
    """Formats a range of milliseconds."""
    return f"{low:.3g} to {high:.3g} ms" if high < 1000 else f"{low / 1e3:.3g} to {high / 1e3:.3g} s"


def whole(figures):
    """The whole volume: volfs, the library, and a mount that does no work."""
    found = []
    for row in rows(figures, "array"):
        sides = [[row["bytes"][0] / seconds / 1e9 for seconds in row[side][0]] if row[side] else [] for side in ("ours", "peer", "null")]
        found.append((row["what"], *sides))
    chart = Chart("GB/s of samples, through the page cache (longer is faster; line: least to greatest)",
                  (("volfs", "volfs"), ("library", "the format's library"), ("line", "a mount that does no work")),
                  [value for _, *sides in found for side in sides for value in side])
    for what, ours, peer, null in found:
        lines = [("volfs", [statistics.median(ours)], short(statistics.median(ours)), (min(ours), max(ours)), statistics.median(null))]
        if peer:
            lines.append(("library", [statistics.median(peer)], short(statistics.median(peer)), (min(peer), max(peer))))
        chart.row(what, lines, chart.bar)
    chart.write("whole.svg")


def slices(figures):
    """A cold slice across each axis."""
    found = [(row["what"], *([statistics.median(axis) * 1e3 for axis in row[side] if axis] for side in ("ours", "peer"))) for row in rows(figures, "cold slices")]
    chart = Chart("ms for a cold slice (further left is faster; a point for each of the three axes)",
                  (("volfs", "volfs"), ("library", "the format's library")), [value for _, *sides in found for side in sides for value in side], log=True)
    for what, *sides in found:
        chart.row(what, [(colour, side, spread(min(side), max(side))) for colour, side in zip(("volfs", "library"), sides) if side], chart.points)
    chart.write("slices.svg")


def boxes(figures, edge=64):
    """Boxes, by several clients."""
    clients = {"tensorstore": "volfs", "zarr-python": "fourth", "np.load of lod0.npy, mapped": "third", None: "library"}
    found = {}
    for row in figures["boxes"]:
        known = row["reader"] if row["reader"] in clients else None
        if row["edge"] == edge and "copied" not in row["reader"]:
            found.setdefault(row["volume"], {})[known] = [seconds * 1e3 for seconds in row["seconds"]]
    chart = Chart(f"ms for a box of {edge}\u00b3 samples at a random place (further left is faster; point: median)",
                  (("volfs", "tensorstore"), ("fourth", "zarr-python"), ("third", "np.load, mapped"), ("library", "the format's library")),
                  [value for of_volume in found.values() for values in of_volume.values() for value in values], log=True)
    for what, of_volume in found.items():
        lines = [(colour, [statistics.median(of_volume[name])], short(statistics.median(of_volume[name])), (min(of_volume[name]), max(of_volume[name])))
                 for name, colour in clients.items() if name in of_volume]
        chart.row(what, lines, chart.points)
    chart.write("boxes.svg")


def files(figures):
    """The files for other programs."""
    volumes = {"ZGY plain": "fourth", "ZGY ZFP 30 dB": "volfs", "WKW LZ4 uint8": "third"}
    found = {}
    for row in figures["whole"]:
        if row["volume"] in volumes:
            of_volume = found.setdefault(row["volume"], [])
            name = row["file"].removesuffix(", across the first axis").replace("chunks of LAYER.ome.zarr", "OME-Zarr chunks")
            if ".by-" in name:
                name = f"by-AXIS.npy, axis {2 + sum(other.startswith('by-') for other, _ in of_volume)}"
            of_volume.append((name, [row["samples"] / seconds / 1e9 for seconds in row["seconds"]]))
    names = list(dict.fromkeys(name for of_volume in found.values() for name, _ in of_volume))
    chart = Chart("GB/s of samples, the whole file read once (longer is faster; line: least to greatest)",
                  [(colour, name) for name, colour in volumes.items()], [value for of_volume in found.values() for _, side in of_volume for value in side])
    for name in names:
        sides = [(volumes[volume], dict(found[volume])[name]) for volume in volumes if name in dict(found[volume])]
        chart.row(name, [(colour, [statistics.median(side)], short(statistics.median(side)), (min(side), max(side))) for colour, side in sides], chart.bar)
    chart.write("files.svg")


def store(figures):
    """Mounts of an object store: whole volumes and cold slices."""
    found = [row for row in figures["rows"] if row["network"] == "near" and row["axis"] in (None, 0)]
    sides = [(f"{row['volume']}, {'whole' if row['axis'] is None else 'slice'}",
              [[run["seconds"] for run in row["volfs"]], [run["seconds"] for run in row["bare"]], row["openvds"]]) for row in found]
    chart = Chart("seconds (further left is faster; line: least to greatest)",
                  (("volfs", "volfs"), ("third", "a client that only fetches"), ("library", "openvds")),
                  [value for _, of_row in sides for side in of_row for value in side], log=True)
    for name, of_row in sides:
        lines = [(colour, [statistics.median(side)], short(statistics.median(side)), (min(side), max(side)))
                 for colour, side in zip(("volfs", "third", "library"), of_row) if side]
        chart.row(name, lines, chart.points)
    chart.write("store.svg")


def serve(figures):
    """The same file over HTTP, from a mount, and by volfs cat."""
    ways = {"served": "volfs", "mounted": "third", "cat": "fourth"}
    chart = Chart("GB/s of samples, best of three rounds (longer is faster)",
                  (("volfs", "volfs serve"), ("third", "a mount"), ("fourth", "volfs cat")),
                  [row["mb_per_second"][way] / 1e3 for row in figures["rows"] for way in ways])
    for row in figures["rows"]:
        rates = [(colour, row["mb_per_second"][way] / 1e3) for way, colour in ways.items()]
        chart.row(row["layer"].removesuffix("/data"), [(colour, [rate], short(rate)) for colour, rate in rates], chart.bar)
    chart.write("serve.svg")


def processor(figures):
    """Processor time of the whole volume: mount and reader, beside the library."""
    found = []
    for row in rows(figures, "array"):
        per_gib = 2**30 / row["bytes"][0]
        ours = [statistics.median(row[side][0]) * per_gib for side in ("ours_of_mount", "ours_of_reader")]
        found.append((row["what"], ours, [statistics.median(row["peer_of_reader"][0]) * per_gib] if any(row["peer_of_reader"]) else []))
    chart = Chart("seconds of processor time for each GiB of samples (shorter is better; pale: the reader)",
                  (("volfs", "volfs and its reader"), ("library", "the format's library")), [sum(side) for _, *sides in found for side in sides if side])
    for what, ours, peer in found:
        lines = [("volfs", ours, short(sum(ours))), *([("library", peer, short(sum(peer)))] if peer else [])]
        chart.row(what, lines, chart.bar)
    chart.write("processor.svg")


def in_process(figures):
    """The Python module beside the libraries, without a mount."""
    kinds = {"volfs": ("whole", ("all",)), "library": ("slices across each axis", "012"),
             "third": ("boxes of 64\u00b3 and 128\u00b3", ("box 64", "box 128")), "fourth": ("traces", ("300 traces",))}
    found = {row["volume"]: {colour: [row[what]["ratio"] for what in reads] for colour, (_, reads) in kinds.items()} for row in figures["in_process"]}
    chart = Chart("seconds of the library for each second of volfs, in process (further right is faster; at 1 both are as fast)",
                  [(colour, name) for colour, (name, _) in kinds.items()], [value for row in found.values() for values in row.values() for value in values], log=True)
    for what, row in found.items():
        chart.row(what, [(colour, values, " to ".join(map(short, sorted({min(values), max(values)})))) for colour, values in row.items()], chart.points)
    chart.write("in-process.svg")


def main():
    """Draws all charts."""
    bench, views = load("bench.json"), load("views.json")
    for draw, figures in ((whole, bench), (slices, bench), (boxes, views), (files, views), (store, load("store.json")), (serve, load("serve.json")),
                          (processor, bench), (in_process, load("in-process.json"))):
        draw(figures)


if __name__ == "__main__":
    main()
