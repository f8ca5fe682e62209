#!/usr/bin/env bash
# Builds the two archives from which distributions build volfs: the sources of the last commit, and the crates that
# Cargo.lock names, so that a build needs no network.
#
#     ./scripts/make_source.sh [FOLDER]      FOLDER/volfs-VERSION.tar.gz, FOLDER/volfs-VERSION-vendor.tar.gz;
#                                            default FOLDER: target/source
#
# The recipes in packaging/ name these archives and their checksums, so none of what is in packaging/ is in them, and
# their date is that of the last commit to anything else. scripts/make_packaging.py --archives FOLDER notes the checksums.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_rust
target=$(target_dir)
folder=${1:-$target/source}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$repo"
[ -z "$(git status --porcelain --untracked-files=no)" ] || warn "what is not committed is not in the archive"

parts=(. ':(exclude)packaging' ':(exclude).github' ':(exclude).ci')
date=$(git log -1 --format=%ct -- "${parts[@]}")
name=volfs-$(cargo_field version)
work=$(mktemp -d "${TMPDIR:-/tmp}/volfs-source.XXXXXX")
trap 'rm -rf "$work"' EXIT
umask 022

# pack NAME: packs a folder, and prints the name of the archive.
pack() {
    tar --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u=rwX --mtime="@$date" -C "$work" -c "$1" \
        | gzip -9n >"$folder/$1.tar.gz"
    say "$folder/$1.tar.gz, $(stat -c %s "$folder/$1.tar.gz") bytes"
}

step "Sources"
mkdir "$work/$name"
git archive HEAD -- "${parts[@]}" | tar -x -C "$work/$name"
pack "$name"

step "Crates"
crates=$work/$name-vendor
(cd "$work/$name" && cargo vendor --locked --versioned-dirs "$crates" >/dev/null 2>"$work/log") || { cat "$work/log" >&2; exit 1; }
# What only other systems need is most of the bytes, and what the features for tests need is not built by a package. cargo
# wants to see each crate of Cargo.lock all the same: of these it gets the name.
for machine in x86_64 aarch64 powerpc64le riscv64gc s390x; do
    (cd "$work/$name" && cargo tree --locked --target "$machine-unknown-linux-gnu" --edges normal,build,dev --prefix none --no-dedupe --format '{p}')
done | sed -n 's/^\([^ ]*\) v\([^ ]*\).*/\1-\2/p' | LC_ALL=C sort -u >"$work/needed"
(cd "$crates" && printf '%s\n' *) | LC_ALL=C sort | LC_ALL=C comm -13 "$work/needed" - | while read -r crate; do
    sum=$(sed -n 's/.*\("package":"[0-9a-f]*"\).*/\1/p' "$crates/$crate/.cargo-checksum.json")
    find "$crates/$crate" -mindepth 1 -maxdepth 1 ! -name Cargo.toml -exec rm -r {} +
    mkdir "$crates/$crate/src"
    : >"$crates/$crate/src/lib.rs"
    printf '{"files":{},%s}' "$sum" >"$crates/$crate/.cargo-checksum.json"
done
pack "$name-vendor"
(cd "$folder" && sha256sum "$name.tar.gz" "$name-vendor.tar.gz" | tee "$name.sha256")
