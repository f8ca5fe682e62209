#!/usr/bin/env python3
"""Makes the recipes in packaging/ from their templates, the files *.in beside them.

    scripts/make_packaging.py                      writes the recipes
    scripts/make_packaging.py --check              names those that are not what this would write
    scripts/make_packaging.py --archives FOLDER    first notes the checksums of what scripts/make_source.sh FOLDER made

A template has @NAME@ for a value, also in its file name; the lines of a value get what stands before it in the
template's line. The values are those of Cargo.toml, Cargo.lock and packaging/versions.toml.
"""
import argparse
import hashlib
import re
import sys
import tarfile
import tomllib
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGING = ROOT / "packaging"
VERSIONS = PACKAGING / "versions.toml"
MADE = "is not what scripts/make_packaging.py makes of it: run it"


def values():
    """Returns what the names in templates stand for."""
    package = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    versions = tomllib.loads(VERSIONS.read_text())
    archives, bases, text = versions["archives"], versions["bases"], versions["text"]
    author, email = re.fullmatch(r"(.*) <(.*)>", package["authors"][0]).groups()
    date = archives["date"]
    crates = [(crate["name"], crate["version"], crate["checksum"]) for crate in locked if "checksum" in crate]
    latest = re.search(r"^## (.*) \(\d{4}-", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    return {
        "VERSION": package["version"],
        "REPOSITORY": package["repository"],
        "SUMMARY": package["description"],
        # as Debian writes it
        "SYNOPSIS": package["description"][0].lower() + package["description"][1:],
        "LICENCE": package["license"],
        "RUST": package["rust-version"],
        "AUTHOR": author,
        "EMAIL": email,
        "ADDRESS": archives["address"].format(**package),
        "SOURCE": archives["source"],
        "VENDOR": archives["vendor"],
        "DATE": date.strftime("%a, %d %b %Y %T +0000"),
        "YEAR": date.strftime("%Y"),
        "DISTRIBUTION": "unstable" if latest and latest[1] == package["version"] else "UNRELEASED",
        "IMAGE": bases["image"],
        "NIXPKGS": bases["nixpkgs"],
        "GCC": bases["gcc"],
        "BINUTILS": bases["binutils"],
        "EASYBUILD_RUST": bases["rust"],
        "DESCRIPTION": package["metadata"]["packages"]["about"].strip(),
        "FUSE": text["fuse"].strip(),
        "CRATES": "\n".join(f"('{name}', '{version}')," for name, version, _ in crates),
        "CHECKSUMS": "\n".join(checksum_line(*crate) for crate in crates),
    }


def checksum_line(name, version, checksum):
    """Returns the checksum of a crate for EasyBuild, which allows 120 columns."""
    key, value = f"{{'{name}-{version}.tar.gz':", f"'{checksum}'}},"
    return f"{key} {value}" if len(key) + len(value) < 116 else f"{key}\n {value}"


def filled(template, known):
    """Returns a template with the values in place of their names."""

    def line(text):
        def value(match):
            before = re.match(r"\s*", text)[0]
            return known[match[1]].replace("\n", "\n" + before)

        return re.sub(r"@([A-Z_]+)@", value, text)

    lines = [line(text) for text in template.split("\n")]
    return "\n".join(text.rstrip() for text in "\n".join(lines).split("\n"))


def recipes():
    """Returns the text of each recipe by its path."""
    known = values()
    return {
        path.with_name(filled(path.name.removesuffix(".in"), known)): filled(path.read_text(), known)
        for path in sorted(PACKAGING.rglob("*.in"))
    }


def differences():
    """Returns the files in packaging/ that disagree with the versions and checksums, each with what to do."""
    known, wanted = values(), recipes()
    wrong = [
        f"{path.relative_to(ROOT)} {MADE}"
        for path, text in wanted.items()
        if not path.exists() or path.read_text() != text
    ]
    wrong += [
        f"{path.relative_to(ROOT)} is of another version: remove it"
        for path in (PACKAGING / "easybuild").glob("*.eb")
        if path not in wanted
    ]
    # those that need no more than a line are written by hand
    for name, line in {
        "Containerfile": f"ARG BASE=docker.io/library/{known['IMAGE']}",
        "compose.yaml": f"image: docker.io/library/{known['IMAGE']}",
        "kubernetes/volfs.yaml": f"image: volfs:{known['VERSION']}",
    }.items():
        if line not in (PACKAGING / name).read_text():
            wrong.append(f"packaging/{name} lacks the line: {line}")
    return wrong


def note_archives(folder):
    """Writes the checksums and the date of archives into the list of versions."""
    version = values()["VERSION"]
    text = VERSIONS.read_text()
    for key, name in {"source": f"volfs-{version}.tar.gz", "vendor": f"volfs-{version}-vendor.tar.gz"}.items():
        archive = folder / name
        checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
        text = re.sub(rf'^{key} = ".*"$', f'{key} = "{checksum}"', text, flags=re.M)
        with tarfile.open(archive) as unpacked:
            date = datetime.fromtimestamp(unpacked.next().mtime, timezone.utc)
        text = re.sub(r"^date = .*$", f"date = {date:%FT%TZ}", text, flags=re.M)
    VERSIONS.write_text(text)


def main():
    """Returns whether something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--archives", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.archives:
        note_archives(arguments.archives)
    if not arguments.check:
        wanted = recipes()
        for old in set((PACKAGING / "easybuild").glob("*.eb")) - set(wanted):
            old.unlink()
        for path, text in wanted.items():
            path.write_text(text)
    wrong = differences()
    for line in wrong:
        print(line, file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
