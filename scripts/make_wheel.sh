#!/usr/bin/env bash
# Builds the Python wheel, which has the module volfs, its extension and the program: `pip install` of it needs no compiler.
# It is for Python 3.11 and newer. With zig as the linker, from a package of pip, it runs on every Linux with glibc 2.28 or
# newer (Debian 10, RHEL 8, Ubuntu 20.04); without zig, on this machine's glibc and newer.
#
#     ./scripts/make_wheel.sh [--target TRIPLE] [--interpreter PYTHON] [FOLDER]
#
# makes FOLDER/volfs-VERSION-cp311-abi3-PLATFORM.whl; default FOLDER: target/wheels. TRIPLE is another machine, as
# aarch64-unknown-linux-gnu, which zig links for; PYTHON is a free-threaded one (python3.14t), which has a wheel of its own.
# scripts/try_wheel.sh tries what this makes.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

triple= interpreter=
while [[ ${1:-} = --* ]]; do
    case $1 in
    --target) triple=${2:?which target?} ;;
    --interpreter) interpreter=${2:?which Python?} ;;
    *) die "no such option: $1" ;;
    esac
    shift 2
done
need_packages
need_rust
host=$(rustc -vV | sed -n 's/^host: //p')
triple=${triple:-$host}
target=$(target_dir)
folder=${1:-$target/wheels}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$repo"

step "Tools"
tools=$target/wheel-tools
pip_install() { "$tools/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
if [ ! -x "$tools/bin/python" ]; then
    python3 -m venv "$tools" 2>/dev/null || { apt_install python3-venv && python3 -m venv "$tools"; } \
        || die "Python cannot make a virtual environment: apt-get install python3-venv"
fi
pip_install maturin==1.16.0 auditwheel==6.8.2 wheel==0.47.0 || die "pip cannot install maturin"
PATH=$tools/bin:$PATH
platform=(--zig --compatibility manylinux_2_28 --target "$triple")
build=(zigbuild --target "$triple.2.28") built=$target/$triple/release/volfs
if ! pip_install ziglang==0.17.1 cargo-zigbuild==0.24.0; then
    [ "$triple" = "$host" ] || die "pip cannot install ziglang, which links for $triple"
    warn "pip cannot install ziglang: the wheel will need this machine's glibc"
    platform=() build=(build) built=$target/release/volfs
fi
maturin --version

step "Building"
neutral_paths
CARGO_PROFILE_RELEASE_STRIP=true cargo "${build[@]}" --release --locked --bin volfs --target-dir "$target"
maturin build --target-dir "$target" --out "$folder" "${platform[@]}" ${interpreter:+--interpreter "$interpreter"}
wheel=$(ls -t "$folder"/volfs-*.whl | head -n 1)

# the program goes with it, and the licences of what is linked into both
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
python -m wheel unpack --dest "$unpacked" "$wheel" >/dev/null
info=$(echo "$unpacked"/volfs-*/volfs-*.dist-info)
WITH_PYTHON=1 "$repo/scripts/make_notices.sh" "$info/licenses/THIRD-PARTY.txt"
data=${info%.dist-info}.data
install -D "$built" "$data/scripts/volfs"
sed -i '0,/^License-File:/s//License-File: THIRD-PARTY.txt\n&/' "$info/METADATA"
python -m wheel pack --dest-dir "$folder" "$unpacked"/volfs-* >/dev/null

step "What it needs of the system"
auditwheel show "$wheel"
say
say "$wheel, $(stat -c %s "$wheel") bytes"
