#!/usr/bin/env python3
"""Checks the layout of the source, and its size.

    scripts/check_house.py            floors, circles, names in the documents, unsafe code, recipes of packages, and sizes
    scripts/check_house.py --build    also a clean release build: its time, and the size of the program

Floors: a folder of src uses only folders below it. Circles: no files import each other in a circle, in
Rust and in Python; what a folder's mod.rs defines may be used by the files of the folder. Sizes have budgets: a commit that needs more raises its budget here, and says why.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import make_packaging

ROOT = Path(__file__).resolve().parent.parent

# The folders and files of src, from the top down. Each line uses only lines below it.
FLOORS = [
    {"main", "cli"},
    {"mount", "serve"},
    {"fs", "api"},
    {"view", "verify"},
    {"catalog", "array"},
    {"format"},
    {"source", "codec"},
    {"volume", "memory", "pool", "counters", "logging", "safe_open", "sync"},
]
# Beside the floors: what the programs in `examples` and the tests need.
TOP = {"internals", "formats_tests", "test_support", "fuzz"}
# May be named anywhere on the lowest floor: the order within it is free of circles, which is checked as for any folder.
LOWEST = len(FLOORS) - 1

BUDGETS = {
    # 240 before there was a public API, and locks that a fork leaves alone; 247 before the library was built without the
    # program, and for other systems: what stands for the files, maps, allocator and disk cache of Linux is a file each;
    # 255 before Zarr, N5 and precomputed, whose codecs are a file each; 310 before netCDF files, OPeNDAP, HDF5 and its codecs;
    # 336 before virtual datasets; 339 before tests of what a power cut leaves of a disk cache
    "files in src": 340,
    # 37,300 before SEG-Y had gathers and boxes, and TIFF OME-XML; 38,100 before there was a public API, and forked children could read;
    # 39,100 before files could be read on other systems than Linux; 39,900 before the files of a mount could be read in process,
    # and LZ4 had copies for short matches and for runs of a sample; 40,050 before Zarr, N5, precomputed and their 25 codecs;
    # 47,000 before netCDF files (600), OPeNDAP (1,200), HDF5 with every kind of index of its chunks (3,300), and parts of bricks (300);
    # 52,600 before netCDF-3 (410), the indexes of shards were requested together, and the files of layers were declared when they
    # are asked for; 53,150 before files had parts of bricks decoded for their first plane; 53,200
    # before HDF5's virtual datasets, and lists that grow with a read ask for their memory; 54,250 before a disk cache lost its
    # marker or had a full disk, and files were found by handle; 54,300 before bricks of fast codecs were kept at their second use,
    # folders were shared with others' files, and samples in memory were read without waiting; 54,480 before what HDF5 files
    # name again and again was counted, and what a disk cache holds compared with what the store has; 54,700 before fill values
    # were samples of their type, levels of other types had headers of their own, and all names in HDF5 files counted
    "lines of code in src": 55_000,
    # 40 before there was a public API; 90 before a caller could keep from waiting for a server
    "public items": 92,
    # 190 before zstd, bzip2, xz, pcodec and JPEG
    "crates in a default build": 205,
    # 27,000 before boxes as files, OME-TIFF, the table of programs that read the views, and the page for Rust; 28,700
    # before the recipes for Python, Zarr and napari in process, and the figures of that; 29,100 before Zarr, N5 and
    # precomputed were read; 30,000 before netCDF files and OPeNDAP, with the line for each program, and HDF5; 31,400 before
    # the page had planes, sections and channels; 31,700 before a page on how it is tested; 32,300 before virtual datasets, a
    # test of random reads, and what holds for folders that are replaced and listings without end; 32,480 before a soak,
    # power cuts, and what stands above a mount
    "words of documentation": 32_600,
    # machines differ, and two virtual processors may be one: 350 to 611 were seen
    "processor seconds of a clean release build": 900,
    # 14 MiB before locks were those of the standard library, and forked children made values anew; 14 MiB and 128 KiB
    # before the codecs of Zarr, N5 and precomputed; 15 MiB and 384 KiB before HDF5, netCDF files and OPeNDAP; 16 MiB before
    # virtual datasets; 128 KiB less before all names in HDF5 files were counted, and zip entries kept
    "bytes of the stripped program": (16 << 20) + (256 << 10),
}


def modules(folder, suffix, package):
    """Returns the files of a source tree by module path."""
    found = {}
    for path in sorted(folder.rglob(f"*{suffix}")):
        parts = path.relative_to(folder).with_suffix("").parts
        if is_test(parts):
            continue
        found[parts[:-1] if parts[-1] == package else parts] = path
    return found


def is_test(parts):
    return any(part == "tests" or part.endswith("_tests") for part in parts)


# --- Rust ---


def rust_code(path):
    """Returns the code of a file without comments and tests."""
    code = re.split(r"#\[cfg\((?:all\()?test\b[^\n]*\]\s*(?:#\[[^\n]*\]\s*)*mod \w+ \{", path.read_text())[0]
    return re.sub(r"^\s*//.*$", "", code, flags=re.M)


def use_paths(tree, head=()):
    """Returns the paths of a `use` tree, and the name that each gets."""
    tree = tree.strip()
    if "{" not in tree:
        path, _, name = tree.partition(" as ")
        parts = head + tuple(part.strip() for part in path.split("::") if part.strip())
        if parts and parts[-1] == "self":
            parts = parts[:-1]
        return [(parts, name.strip() or (parts[-1] if parts else ""))]
    begin = tree.index("{")
    head += tuple(part.strip() for part in tree[:begin].split("::") if part.strip())
    found, depth, at = [], 0, begin + 1
    for n, c in enumerate(tree[begin:], begin):
        depth += {"{": 1, "}": -1}.get(c, 0)
        if (c == "," and depth == 1) or (c == "}" and depth == 0):
            found += use_paths(tree[at:n], head) if tree[at:n].strip() else []
            at = n + 1
    return found


def absolute(module, path):
    """Returns a path from the crate's root; None if it leads to another crate."""
    if path[0] not in ("crate", "self", "super"):
        return module + path
    at = () if path[0] == "crate" else module
    for part in path:
        at = at[:-1] if part == "super" else at if part in ("crate", "self") else at + (part,)
    return at


class Rust:
    def __init__(self, folder):
        self.files = {("",) if m in ((), ("lib",)) else m: p for m, p in modules(folder, ".rs", "mod").items()}
        self.names, self.paths = {}, {}
        for module, path in self.files.items():
            at = () if module == ("",) else module
            code, self.names[module], self.paths[module] = rust_code(path), {}, set()
            for public, tree in re.findall(r"^\s*(pub(?:\([^)]*\))?\s+)?use ([^;]+);", code, flags=re.M):
                for parts, name in use_paths(" ".join(tree.split())):
                    full = absolute(at, parts)
                    (self.names[module].__setitem__(name, full) if public else self.paths[module].add(full))
            code = re.sub(r"^\s*(?:pub(?:\([^)]*\))?\s+)?use [^;]+;", "", code, flags=re.M)
            for text in re.findall(r"\b(?:crate|super|self)(?:::\w+)+", code):
                self.paths[module].add(absolute(at, tuple(text.split("::"))))

    def file_of(self, path, depth=0):
        """Returns the file that defines the item at a path."""
        for n in range(len(path), -1, -1):
            module = path[:n] or ("",)
            if module in self.files:
                source = self.names[module].get(path[n]) if n < len(path) else None
                known = self.file_of(source, depth + 1) if source and source != path and depth < 8 else None
                return known or module
        return None

    def imports(self):
        return {
            module: {to for path in paths if (to := self.file_of(path)) not in (None, ("",)) and module[: len(to)] != to}
            for module, paths in self.paths.items()
            if module != ("",)
        }


def wrong_floors(imports):
    floor = {name: n for n, names in enumerate(FLOORS) for name in names}
    for module, used in imports.items():
        if module[0] not in floor and module[0] not in TOP:
            yield f"src/{module[0]} has no floor: add it to FLOORS"
        for to in used:
            here, there = floor.get(module[0], -1), floor.get(to[0], LOWEST)
            if module[0] != to[0] and there <= here and here != LOWEST:
                yield f"{'/'.join(module)} uses {'/'.join(to)}, which is not below it"


def circles(imports):
    """Returns the groups of files that import each other in circles."""
    reach = {}
    for start in imports:
        seen, todo = set(), [start]
        while todo:
            new = imports.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        reach[start] = seen
    groups = {frozenset(to for to in seen if start in reach.get(to, ())) for start, seen in reach.items() if start in seen}
    return sorted(", ".join(sorted("/".join(m) for m in group)) for group in groups)


# --- Python ---


def python_imports(folder):
    files = modules(folder, ".py", "__init__")
    imports = {}
    for module, path in files.items():
        # what only type checkers import is no circle
        text = re.sub(r"^if TYPE_CHECKING:\n(?:(?: {4}.*)?\n)*", "", path.read_text(), flags=re.M)
        named = re.findall(r"^\s*from \.(\w*) import \(?([^)\n]*)", text, flags=re.M)
        used = {(name,) for name, _ in named if name} | {
            (name.strip(),) for before, names in named if not before for name in names.split(",")
        }
        imports[module] = {name for name in used if name in files and name != module}
    return imports


def differing_versions():
    names = ("Cargo.toml", "python/Cargo.toml")
    found = [re.search(r'^version = "(.*)"', (ROOT / name).read_text(), flags=re.M)[1] for name in names]
    if len(set(found)) > 1:
        yield f"the versions of {' and '.join(names)} are {' and '.join(found)}"


# --- names in the documents ---


def missing_names(rust):
    known = {"/".join(module) for module in rust.files}
    for document in ("architecture.md", "adding-a-format.md", "adding-a-view.md", "semantics.md"):
        for name in re.findall(r"`([\w/.-]+\.rs)`", (ROOT / "docs" / document).read_text()):
            stem = name.removesuffix(".rs").removesuffix("/mod")
            is_there = (ROOT / name).exists() or (ROOT / "src" / name).exists() or any(k == stem or k.endswith(f"/{stem}") for k in known)
            if not is_there and not re.search(r"brk|NAME|shape\.rs", name):
                yield f"docs/{document} names {name}"
    for name in re.findall(r"`(\w+(?:::\w+)+)`", (ROOT / "docs/semantics.md").read_text()):
        *module, test = name.split("::")
        if test == "NAME":
            continue
        base = ROOT / "src" if module[0] == "lib" else ROOT / "tests"
        path = base.joinpath(*module[module[0] == "lib" :])
        texts = [p.read_text() for p in (path.with_suffix(".rs"), path / "mod.rs", path.parent.with_suffix(".rs"), path.parent / "mod.rs") if p.exists()]
        if not any(f"fn {test}(" in text for text in texts):
            yield f"docs/semantics.md names the test {name}"


def unlisted_unsafe():
    """Compares the files that may have unsafe code with the list in semantics.md."""
    paths = [*(ROOT / "src").rglob("*.rs"), *(ROOT / "fuzz/src").rglob("*.rs"), *(ROOT / "python/src").rglob("*.rs")]
    found = {str(path.relative_to(ROOT)) for path in paths if re.search(r"allow\(unsafe_code\)", path.read_text())}
    listed = set(re.findall(r"^\| `([\w/.]+\.rs)` \|", (ROOT / "docs/semantics.md").read_text(), flags=re.M))
    for path in sorted(found ^ listed):
        yield f"{path} is {'not listed as' if path in found else 'listed, but not'} unsafe in docs/semantics.md"


# --- sizes ---


def sizes():
    files = sorted((ROOT / "src").rglob("*.rs"))
    code = public = 0
    for path in files:
        text = path.read_text()
        public += len(re.findall(r"^\s*pub (?:unsafe |async |const )*(?:fn|struct|enum|trait|const|static|type|mod|use)\b", text, re.M))
        if not is_test(path.relative_to(ROOT).with_suffix("").parts):
            lines = (line.strip() for line in re.split(r"#\[cfg\((?:all\()?test\b", text)[0].splitlines())
            code += sum(1 for line in lines if line and not line.startswith("//"))
    tree = subprocess.run(
        ["cargo", "tree", "--locked", "-e", "normal,build", "--prefix", "none"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    documents = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    return {
        "files in src": len(files),
        "lines of code in src": code,
        "public items": public,
        "crates in a default build": len({line.split()[0] for line in tree.stdout.splitlines() if line.strip()}),
        "words of documentation": sum(len(path.read_text().split()) for path in documents),
    }


def build_sizes():
    with tempfile.TemporaryDirectory(prefix="volfs-build.") as target:
        before, begin = os.times(), time.monotonic()
        build = ["cargo", "build", "--release", "--locked", "--bin", "volfs", "--target-dir", target]
        subprocess.run(build, cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        print(f"a clean release build took {time.monotonic() - begin:.0f} s")
        program = Path(target) / "stripped"
        shutil.copy(Path(target) / "release/volfs", program)
        if shutil.which("strip") is None:
            return {"processor seconds of a clean release build": round(spent)}
        subprocess.run(["strip", program], check=True)
        return {"processor seconds of a clean release build": round(spent), "bytes of the stripped program": program.stat().st_size}


def main():
    rust = Rust(ROOT / "src")
    imports = rust.imports()
    assert sum(map(len, imports.values())) > 200, "the imports are not read"
    wrong = [*wrong_floors(imports), *(f"circle: {c}" for c in circles(imports))]
    wrong += [f"circle in Python: {c}" for c in circles(python_imports(ROOT / "python/volfs"))]
    wrong += [*differing_versions(), *missing_names(rust), *unlisted_unsafe(), *make_packaging.differences()]
    for name, size in {**sizes(), **(build_sizes() if "--build" in sys.argv else {})}.items():
        print(f"{name:<44}{size:>12,}  of {BUDGETS[name]:,}")
        if size > BUDGETS[name]:
            wrong.append(f"{name}: {size:,} is beyond the budget of {BUDGETS[name]:,}")
    for line in wrong:
        print(line, file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
