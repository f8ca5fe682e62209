#!/usr/bin/env bash
# Installs the object stores that tests start: s3s-fs (S3; three minutes of one core) and Azurite (Azure; needs npm).
# What is there already stays. Tests look for them in the target folder of cargo, or in the folder VOLFS_STORES.
#
#     ./scripts/install_stores.sh [--garage] [FOLDER]
#
# --garage installs Garage, too: a distributed store, for scripts that kill its nodes (seventeen minutes of one core).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

s3s_version=0.14.1 azurite_version=3.35.0 garage_version=2.5.0

garage=no
if [ "${1:-}" = --garage ]; then garage=yes; shift; fi
[[ $# -le 1 && "${1:-}" != -* ]] || die "the arguments are [--garage] [FOLDER]"
need_rust
folder=${1:-${VOLFS_STORES:-$(target_dir)/stores}}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# installed FILE NAME: succeeds, and says so, if a program is there.
installed() {
    [ -x "$folder/$1" ] || return 1
    say "$2 is there: $folder/$1"
}

# cargo_install NAME VERSION [OPTION...]: builds a program into the folder.
cargo_install() {
    say "installing: $1 $2 (some minutes)"
    CARGO_TARGET_DIR=$folder/build cargo install --quiet --locked --root "$folder" --version "$2" "${@:3}" "$1"
    rm -rf "$folder/build"
}

installed bin/s3s-fs s3s-fs || cargo_install s3s-fs $s3s_version --features binary
if ! installed azurite/node_modules/.bin/azurite-blob Azurite; then
    if command -v npm >/dev/null; then
        say "installing: Azurite $azurite_version"
        npm install --silent --no-audit --no-fund --prefix "$folder/azurite" "azurite@$azurite_version"
    else
        say "Azurite SKIPPED: npm is not installed (package npm)"
    fi
fi
if [ $garage = yes ]; then
    installed bin/garage Garage || cargo_install garage $garage_version
fi
