#!/usr/bin/env python3
"""Lists all unsafe code with the reason why it is sound: the comment SAFETY before it.

    scripts/list_unsafe.py [FOLDER...]

FOLDER defaults to src, python/src and fuzz/src. Fails if something has no reason. (The compiler's lints want one at each
block; here that of an `unsafe impl` or of another statement that goes on over lines may stand before its first line.)
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNSAFE = re.compile(r"\bunsafe (?:\{|impl\b|fn\b|extern\b|trait\b)")
# A reason may be this many lines before the word, with code of the same statement between.
REACH = 12


def reason(lines, at):
    """Returns the reason for the line `at`; None if there is none."""
    for above in range(at, max(-1, at - REACH), -1):
        found = re.match(r"\s*//+ SAFETY: (.*)", lines[above])
        if found:
            words = [found[1]]
            for line in lines[above + 1:at]:
                comment = re.match(r"\s*// ?(.*)", line)
                if not comment:
                    break
                words.append(comment[1])
            return " ".join(words)
        # what ends a statement or a block before ends the search
        if above < at and re.search(r"(;|\})\s*$", lines[above]) and not lines[above].lstrip().startswith("//"):
            return None
    return None


def main():
    folders = sys.argv[1:] or ["src", "python/src", "fuzz/src"]
    without = count = 0
    for path in sorted(file for folder in folders for file in (ROOT / folder).rglob("*.rs")):
        lines = path.read_text().splitlines()
        for at, line in enumerate(lines):
            if line.lstrip().startswith("//") or not UNSAFE.search(line):
                continue
            why = reason(lines, at)
            # the methods of an unsafe trait, whose contract is that of the trait
            if why is None and re.match(r"\s*(pub )?unsafe fn", line):
                why = "(a function with a contract: each caller has a reason)"
            count += 1
            without += why is None
            print(f"{path.relative_to(ROOT)}:{at + 1}: {line.strip()}\n    {why or 'NO REASON'}")
    print(f"\n{count} places, {without} without a reason")
    return bool(without)


if __name__ == "__main__":
    sys.exit(main())
