"""Samples of a measurement, and the table that is made of them."""

import statistics
from dataclasses import dataclass, field

HEAD = ("what", "how", "volfs", "peer", "times the peer", "nullfs", "of nullfs", "decoded", "bias", "memory, MiB",
        "same bytes", "what bounds it")


@dataclass
class Samples:
    """Seconds that the same reading of some bytes took, one for each round; no bytes if it is no reading."""

    size: int = 0
    seconds: list[float] = field(default_factory=list)

    def add(self, seconds):
        """One more round."""
        self.seconds.append(seconds)

    @property
    def median(self):
        """Of the seconds."""
        return statistics.median(self.seconds)

    @property
    def speed(self):
        """What ratios are made of: bytes, or whole readings, a second."""
        return (self.size or 1) / self.median

    def rate(self):
        """GB/s, with the least and the greatest."""
        low, mid, high = (self.size / s / 1e9 for s in (max(self.seconds), self.median, min(self.seconds)))
        return f"{mid:.2f} GB/s ({low:.2f}..{high:.2f})"

    def time(self, ranged=True):
        """The time in a unit that suits it."""
        unit, factor = next(((u, f) for u, f in (("s", 1), ("ms", 1e3)) if self.median * f >= 1), ("µs", 1e6))
        text = f"{self.median * factor:.3g} {unit}"
        return f"{text} ({min(self.seconds) * factor:.3g}..{max(self.seconds) * factor:.3g})" if ranged else text


@dataclass
class Row:
    """One line: several samples in a column are those of the axes, the slowest axis first."""

    what: str
    how: str
    ours: list[Samples] = field(default_factory=list)
    peer: list[Samples] = field(default_factory=list)
    null: list[Samples] = field(default_factory=list)
    timed: bool = False
    wanted: float | None = None
    wanted_of_null: float | None = None
    wanted_bias: float | None = None
    decoded: list[float] = field(default_factory=list)
    memory: int | None = None
    ceiling: int | None = None
    same: bool | None = None
    problem: str | None = None
    failed: bool = False

    def values(self):
        """The numbers as they are, for programs."""
        seconds = {name: [s.seconds for s in getattr(self, name)] for name in ("ours", "peer", "null")}
        return {"what": self.what, "how": self.how, **seconds, "bytes": [s.size for s in self.ours], "decoded": self.decoded,
                "memory": self.memory, "ceiling": self.ceiling, "same": self.same, "problem": self.problem}

    def cells(self):
        """Text for each column of HEAD; what does not apply is empty."""
        bias = None
        if len(self.ours) > 1 and all(s.seconds for s in self.ours):
            times = [s.median for s in self.ours]
            bias = max(times) / min(times)
        ours = " ".join(text for text in (self.shown(self.ours), self.problem) if text)
        return (self.what, self.how, ours, self.shown(self.peer),
                against(ratios(self.ours, self.peer), self.wanted), self.shown(self.null),
                against(ratios(self.ours, self.null), self.wanted_of_null),
                f"{statistics.median(self.decoded):.2f}" if self.decoded else "",
                "" if bias is None else against([bias], self.wanted_bias, least=False), self.memory_cell(),
                {True: "yes", False: "**no**", None: ""}[self.same], "")

    def shown(self, samples):
        """Rates or times of a column."""
        if not any(s.seconds for s in samples):
            return ""
        if len(samples) > 1:
            return " / ".join(s.time(ranged=False) if s.seconds else "-" for s in samples)
        return samples[0].time() if self.timed else samples[0].rate()

    def memory_cell(self):
        """The most that was seen, and the ceiling."""
        if self.memory is None:
            return ""
        text = f"{self.memory / 2**20:.0f}"
        if self.ceiling is None:
            return text
        return f"{text if self.memory <= self.ceiling else f'**{text}**'} (≤ {self.ceiling / 2**20:.0f})"


def ratios(ours, others):
    """How many times as fast ours are."""
    return [a.speed / b.speed for a, b in zip(ours, others) if a.seconds and b.seconds]


def against(values, wanted, least=True):
    """Numbers, bold where they miss what is wanted."""
    def one(value):
        missed = wanted is not None and (value < wanted if least else value > wanted)
        return f"**{value:.2f}**" if missed else f"{value:.2f}"

    text = " / ".join(map(one, values))
    return f"{text} ({'≥' if least else '≤'} {wanted:g})" if values and wanted is not None else text


def markdown(rows):
    """The table; columns that no row uses are left out, and what repeats is said once."""
    lines = [row.cells() for row in rows]
    used = [n for n, name in enumerate(HEAD) if name == HEAD[-1] or any(line[n] for line in lines)]
    out = ["| " + " | ".join(HEAD[n] for n in used) + " |", "|" + "---|" * len(used)]
    before = None
    for line in lines:
        first = "" if line[0] == before else line[0]
        before = line[0]
        cells = [first, *(line[n] for n in used[1:])]
        out.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(out)
