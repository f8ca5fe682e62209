#!/usr/bin/env python3
"""Writes what is linked into volfs as a list in CycloneDX 1.6 (JSON): the crates, their licences and checksums, and
which uses which.

    scripts/make_sbom.py FILE

SOURCE_DATE_EPOCH sets its date; otherwise it has none.
"""
import json
import os
import subprocess
import sys
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def metadata():
    """Returns what cargo knows of the crates for this machine."""
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = next(line.split()[1] for line in version.splitlines() if line.startswith("host:"))
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def linked(known):
    """Returns the ids of the crates whose code is in the program, each with those that it uses."""
    packages = {package["id"]: package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}

    def uses(crate):
        for dep in nodes[crate]["deps"]:
            is_macro = any("proc-macro" in target["kind"] for target in packages[dep["pkg"]]["targets"])
            if not is_macro and any(kind["kind"] is None for kind in dep["dep_kinds"]):
                yield dep["pkg"]

    found, todo = {}, [known["resolve"]["root"]]
    while todo:
        crate = todo.pop()
        if crate not in found:
            found[crate] = sorted(uses(crate))
            todo += found[crate]
    return {crate: (packages[crate], used) for crate, used in found.items()}


def purl(package):
    """Returns the address of a crate by which databases of vulnerabilities know it."""
    return f"pkg:cargo/{package['name']}@{package['version'].replace('+', '%2B')}"


def component(package, checksum):
    """Returns the entry of a crate."""
    entry = {
        "type": "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "description": " ".join((package["description"] or "").split()),
        "licenses": [{"expression": package["license"].replace("/", " OR ")}],
        "purl": purl(package),
    }
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return entry


def main(path):
    """Writes the list."""
    lock = (ROOT / "Cargo.lock").read_text()
    checksums = {(crate["name"], crate["version"]): crate.get("checksum") for crate in tomllib.loads(lock)["package"]}
    known = metadata()
    crates = linked(known)
    program, _ = crates[known["resolve"]["root"]]
    about = {"component": component(program, None) | {"type": "application"}}
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        about["timestamp"] = f"{datetime.fromtimestamp(int(epoch), timezone.utc):%FT%TZ}"
    listed = sorted((package for package, _ in crates.values() if package is not program), key=purl)
    sbom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, purl(program) + lock)}",
        "version": 1,
        "metadata": about,
        "components": [component(package, checksums[package["name"], package["version"]]) for package in listed],
        "dependencies": sorted(
            (
                {"ref": purl(package), "dependsOn": sorted(purl(crates[crate][0]) for crate in used)}
                for package, used in crates.values()
            ),
            key=lambda entry: entry["ref"],
        ),
    }
    Path(path).write_text(json.dumps(sbom, indent=1) + "\n")
    print(f"{path}: {len(listed)} crates")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
