#!/usr/bin/env python3
"""Adds up the lines that ran, by folder of src, without those of tests. Used by coverage.sh.

    scripts/stress/coverage_table.py LCOV [--lines PATH]

LCOV is what `llvm-cov export --format=lcov` writes. --lines prints the lines below PATH that did not run.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent / "src"
TESTS = re.compile(r"^ *#\[cfg\((all\()?test.*\n(^ *#.*\n)*(?P<mod>^ *(pub(\(.*\))? )?mod \w+ \{)", re.MULTILINE)


def lines_of_tests(text):
    """Returns the first line of the tests in a file; they are its end."""
    found = TESTS.search(text)
    return text.count("\n", 0, found.start("mod")) + 1 if found else float("inf")


def read(path):
    """Returns how often each line ran, by file."""
    counts, file = {}, None
    for line in path.open():
        kind, _, value = line.rstrip().partition(":")
        if kind == "SF":
            file = counts.setdefault(Path(value), Counter())
        elif kind == "DA":
            number, count = map(int, value.split(",")[:2])
            file[number] += count
    return {file: lines for file, lines in counts.items() if file.is_relative_to(SOURCE)}


def is_of_tests(path):
    return any(part in ("tests", "tests.rs", "internals.rs") for part in path.parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lcov", type=Path)
    parser.add_argument("--lines", default="")
    options = parser.parse_args()
    ran, total = Counter(), Counter()
    for file, counts in sorted(read(options.lcov).items()):
        path = file.relative_to(SOURCE)
        if is_of_tests(path):
            continue
        text = file.read_text()
        end, lines = lines_of_tests(text), text.splitlines()
        for number, count in sorted(counts.items()):
            if number < end:
                folder = path.parts[0] if len(path.parts) > 1 else "(files)"
                for name in [folder, "all"]:
                    total[name] += 1
                    ran[name] += count > 0
                if not count and options.lines and str(Path("src") / path).startswith(options.lines):
                    print(f"src/{path}:{number}: {lines[number - 1].strip()}")
    print(f"{'folder':<12} {'lines':>7} {'ran':>7} {'%':>6}")
    for folder in sorted(total, key=lambda name: (name == "all", name)):
        print(f"{folder:<12} {total[folder]:>7} {ran[folder]:>7} {100 * ran[folder] / total[folder]:>6.1f}")


if __name__ == "__main__":
    main()
