"""The samples of a measurement, and the table built from them."""

import os
import statistics
from dataclasses import dataclass, field

HEAD = ("what", "how", "volfs", "peer", "times the peer", "processor, s/GiB", "busy", "peer's", "nullfs'", "nullfs",
        "of nullfs", "decoded", "bias", "memory, MiB", "same bytes", "what bounds it")


@dataclass
class Samples:
    """Seconds of one measurement, one for each round, and seconds of processor time: of the reader, and of the mount;
    `size` is the bytes read, 0 if it reads none."""

    size: int = 0
    seconds: list[float] = field(default_factory=list)
    of_reader: list[float] = field(default_factory=list)
    of_mount: list[float] = field(default_factory=list)

    def add(self, seconds, of_reader=None, of_mount=None):
        """Adds a round."""
        for values, value in ((self.seconds, seconds), (self.of_reader, of_reader), (self.of_mount, of_mount)):
            if value is not None:
                values.append(value)

    def processor(self):
        """Formats the processor time a GiB: of the mount, and of the reader."""
        used = [statistics.median(values) for values in (self.of_mount, self.of_reader) if values]
        return " + ".join(f"{seconds / self.size * 2**30:.2f}" for seconds in used) if self.size else ""

    def busy(self):
        """Formats the part of all processors' time that mount and reader took; empty if it was not measured."""
        used = [of_mount + of_reader for of_mount, of_reader in zip(self.of_mount, self.of_reader)]
        available = [seconds * len(os.sched_getaffinity(0)) for seconds in self.seconds]
        return f"{100 * sum(used) / sum(available):.0f} %" if used else ""

    @property
    def median(self):
        """The median of the seconds."""
        return statistics.median(self.seconds)

    @property
    def speed(self):
        """The value that ratios compare: bytes, or whole runs, per second."""
        return (self.size or 1) / self.median

    def rate(self):
        """Formats the speed in GB/s, with minimum and maximum."""
        low, mid, high = (self.size / s / 1e9 for s in (max(self.seconds), self.median, min(self.seconds)))
        return f"{mid:.2f} GB/s ({low:.2f}..{high:.2f})"

    def time(self, ranged=True):
        """Formats the time in a suitable unit."""
        unit, factor = next(((u, f) for u, f in (("s", 1), ("ms", 1e3)) if self.median * f >= 1), ("µs", 1e6))
        text = f"{self.median * factor:.3g} {unit}"
        return f"{text} ({min(self.seconds) * factor:.3g}..{max(self.seconds) * factor:.3g})" if ranged else text


@dataclass
class Row:
    """A row of the table. Several samples in a column belong to the axes, slowest axis first."""

    what: str
    how: str
    ours: list[Samples] = field(default_factory=list)
    peer: list[Samples] = field(default_factory=list)
    null: list[Samples] = field(default_factory=list)
    timed: bool = False
    target: float | None = None
    target_of_null: float | None = None
    target_bias: float | None = None
    decoded: list[float] = field(default_factory=list)
    memory: int | None = None
    ceiling: int | None = None
    same: bool | None = None
    problem: str | None = None
    failed: bool = False

    def values(self):
        """Returns the raw numbers, for programs."""
        seconds = {name: [s.seconds for s in getattr(self, name)] for name in ("ours", "peer", "null")}
        processor = {f"{name}_{of}": [getattr(s, of) for s in getattr(self, name)]
                     for name, of in (("ours", "of_mount"), ("ours", "of_reader"), ("peer", "of_reader"), ("null", "of_mount"),
                                      ("null", "of_reader"))}
        return {"what": self.what, "how": self.how, **seconds, **processor, "bytes": [s.size for s in self.ours], "decoded": self.decoded,
                "memory": self.memory, "ceiling": self.ceiling, "same": self.same, "problem": self.problem}

    def cells(self):
        """Returns the text of each column of HEAD; columns that do not apply are empty."""
        bias = None
        if len(self.ours) > 1 and all(s.seconds for s in self.ours):
            times = [s.median for s in self.ours]
            bias = max(times) / min(times)
        ours = " ".join(text for text in (self.shown(self.ours), self.problem) if text)
        return (self.what, self.how, ours, self.shown(self.peer),
                against(ratios(self.ours, self.peer), self.target), processor(self.ours),
                self.ours[0].busy() if len(self.ours) == 1 else "", processor(self.peer), processor(self.null), self.shown(self.null),
                against(ratios(self.ours, self.null), self.target_of_null),
                f"{statistics.median(self.decoded):.2f}" if self.decoded else "",
                "" if bias is None else against([bias], self.target_bias, least=False), self.memory_cell(),
                {True: "yes", False: "**no**", None: ""}[self.same], "")

    def shown(self, samples):
        """Formats the rates or times of a column."""
        if not any(s.seconds for s in samples):
            return ""
        if len(samples) > 1:
            return " / ".join(s.time(ranged=False) if s.seconds else "-" for s in samples)
        return samples[0].time() if self.timed else samples[0].rate()

    def memory_cell(self):
        """Formats the peak memory and its limit."""
        if self.memory is None:
            return ""
        text = f"{self.memory / 2**20:.0f}"
        if self.ceiling is None:
            return text
        return f"{text if self.memory <= self.ceiling else f'**{text}**'} (≤ {self.ceiling / 2**20:.0f})"


def processor(samples):
    """Formats the processor time of a column; empty if it was not measured."""
    texts = [one.processor() for one in samples]
    return " / ".join(text or "-" for text in texts) if any(texts) else ""


def ratios(ours, others):
    """Returns how many times as fast `ours` are."""
    return [a.speed / b.speed for a, b in zip(ours, others) if a.seconds and b.seconds]


def against(values, target, least=True):
    """Formats numbers; those that miss the target are bold."""
    def one(value):
        missed = target is not None and (value < target if least else value > target)
        return f"**{value:.2f}**" if missed else f"{value:.2f}"

    text = " / ".join(map(one, values))
    return f"{text} ({'≥' if least else '≤'} {target:g})" if values and target is not None else text


def markdown(rows):
    """Formats the table; leaves out unused columns, and repeats no title."""
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
