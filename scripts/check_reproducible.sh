#!/usr/bin/env bash
# Builds the program of a release twice, in two folders of which one is called otherwise and is deeper, and compares the
# stripped programs byte for byte. What is committed is built. Names the sections that differ, and fails if any does.
#
#     ./scripts/check_reproducible.sh [FOLDER]      keeps what was built in FOLDER; default: a temporary one, 2 GB
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_packages
need_rust
command -v objcopy >/dev/null || die "objcopy is needed (package binutils)"
work=${1:-$(mktemp -d "${TMPDIR:-/tmp}/volfs-twice.XXXXXX")}
[ -n "${1:-}" ] || trap 'rm -rf "$work"' EXIT
first=$work/one second=$work/another/folder/with-a-longer-name

for folder in "$first" "$second"; do
    step "Building in $folder"
    rm -rf "$folder"
    mkdir -p "$folder"
    git -C "$repo" archive HEAD | tar -x -C "$folder"
    (
        # the folder's own scripts, as a user has them
        unset CARGO_TARGET_DIR
        . "$folder/scripts/lib.sh"
        cd "$folder"
        neutral_paths
        cargo build --release --locked --bin volfs
        strip --strip-unneeded -o volfs.stripped target/release/volfs
        rm -rf target/release/deps target/release/build
    )
done

step "Comparing"
failed=no
for folder in "$first" "$second"; do
    # nothing of this machine is in it
    for place in "$work" "${CARGO_HOME:-$HOME/.cargo}"; do
        if grep -q -a -F "$place" "$folder/volfs.stripped"; then
            warn "the program of $folder names $place"
            failed=yes
        fi
    done
done
if ! cmp "$first/volfs.stripped" "$second/volfs.stripped"; then
    failed=yes
    for section in $(objdump -h "$first/volfs.stripped" | awk '$1 ~ /^[0-9]+$/ { print $2 }'); do
        for folder in "$first" "$second"; do
            objcopy -O binary --only-section="$section" --set-section-flags "$section"=alloc "$folder/volfs.stripped" "$folder/section" 2>/dev/null || true
        done
        cmp -s "$first/section" "$second/section" || warn "section $section differs"
    done
fi
[ $failed = no ] || exit 1
say "$(sha256sum <"$first/volfs.stripped" | cut -c 1-64), $(stat -c %s "$first/volfs.stripped") bytes, both times"
