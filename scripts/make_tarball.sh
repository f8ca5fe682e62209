#!/usr/bin/env bash
# Builds the tar.gz of a release: the program, manual pages, completions, documentation and the example units. The program
# runs wherever the C library is glibc 2.28 or newer (Debian 10, Ubuntu 18.10, RHEL 8 and all later ones), and needs no
# other library.
#
#     ./scripts/make_tarball.sh [FOLDER]      FOLDER/volfs-VERSION-linux-MACHINE.tar.gz; default FOLDER: target/tarball
#
# The old C library comes from Zig's compiler: cargo-zigbuild and zig are used if they are on the PATH, or else
# installed from PyPI into target/zig (needs python3-venv).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

glibc=2.28
cargo_zigbuild_version=0.24.0
ziglang_version=0.17.1

need_packages
need_rust
command -v objdump >/dev/null || die "objdump is needed (package binutils)"
target=$(target_dir)
folder=${1:-$target/tarball}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$repo"

if ! command -v cargo-zigbuild >/dev/null; then
    if ! [ -x "$target/zig/bin/cargo-zigbuild" ]; then
        say "installing: cargo-zigbuild and zig, into $target/zig"
        python3 -m venv "$target/zig" || die "python3 -m venv fails: apt-get install python3-venv"
        "$target/zig/bin/pip" install --quiet "cargo-zigbuild==$cargo_zigbuild_version" "ziglang==$ziglang_version"
    fi
    PATH=$target/zig/bin:$PATH
fi

step "Building"
machine=$(uname -m)
triple=$machine-unknown-linux-gnu
neutral_paths
# One build for both: the generator of the manual pages shares everything with the program.
cargo zigbuild --release --locked --target "$triple.$glibc" --bin volfs --example generate
built=$target/$triple/release
./scripts/make_docs.sh --with "$built/examples/generate" "$target/docs"
./scripts/make_notices.sh "$target/docs/THIRD-PARTY.txt"

# symbols of a newer C library would keep the program from starting there
needed=$(objdump -T "$built/volfs" | grep -o 'GLIBC_[0-9.]*' | sort -V | tail -n 1)
at_least "${needed#GLIBC_}" "$glibc" || die "the program needs $needed, which is newer than $glibc"
libraries=$(objdump -p "$built/volfs" | sed -n 's/^ *NEEDED *//p')
[ -z "$(grep -v -E '^(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s))\.so' <<<"$libraries")" ] \
    || die "the program needs other libraries than those of the C library: $libraries"

step "Packing"
name=volfs-$(cargo_field version)-linux-$machine
work=$(mktemp -d "${TMPDIR:-/tmp}/volfs-tarball.XXXXXX")
trap 'rm -rf "$work"' EXIT
./scripts/stage.sh "$work/$name" "$built/volfs" "$target/docs"
strip --strip-unneeded "$work/$name/bin/volfs"
ln -s share/doc/volfs/README.md share/doc/volfs/LICENSE "$work/$name/"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(commit_time)" -C "$work" -c "$name" | gzip -9n >"$folder/$name.tar.gz"
(cd "$folder" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
say "$folder/$name.tar.gz (needs $needed)"
