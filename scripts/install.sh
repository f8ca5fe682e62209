#!/usr/bin/env bash
# Builds volfs and installs what a package of it has: the program, manual pages, completions, documentation and the
# licences of what is linked in. The recipes in packaging/ call this.
#
#     ./scripts/install.sh [--crates FOLDER] [PREFIX]      without PREFIX only builds
#
# The crates come from FOLDER, one folder NAME-VERSION for each, or from ./vendor, where volfs-VERSION-vendor.tar.gz
# (scripts/make_source.sh) is unpacked; then nothing is downloaded. Without both, cargo gets them. Nothing is installed
# for the build: it needs Rust, a C compiler and bash.
#
# DESTDIR goes before PREFIX. CARGO_PROFILE_RELEASE_STRIP=true leaves the symbols out of the program.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

crates=$repo/vendor
if [ "${1:-}" = --crates ]; then
    crates=$(cd "${2:?which folder?}" && pwd)
    shift 2
fi
[ $# -le 1 ] || die "give one prefix"
prefix=${1:-}
[[ -z $prefix || $prefix = /* ]] || prefix=$PWD/$prefix
cd "$repo"

take_crates_from "$crates"
# One build for both: the generator of the manual pages shares everything with the program.
cargo build --release --locked "${from_crates[@]}" --bin volfs --example generate
[ -n "$prefix" ] || exit 0

target=$(target_dir)
built=$target/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}release
./scripts/make_docs.sh --with "$built/examples/generate" "$target/docs"
./scripts/make_notices.sh "$target/docs/THIRD-PARTY.txt" "$crates"
./scripts/stage.sh "${DESTDIR:-}$prefix" "$built/volfs" "$target/docs"
