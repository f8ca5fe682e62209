#!/usr/bin/env bash
# Generates the manual pages and the completions for bash, zsh and fish from the definitions of the command line.
#
#     ./scripts/make_docs.sh [FOLDER]      FOLDER/man/*.[15], FOLDER/completions/*; default FOLDER: target/docs
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_packages
need_rust
folder=${1:-$(target_dir)/docs}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$repo"
# the date of the last commit makes the pages reproducible
last=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
# removes the pages of commands that no longer exist
rm -f "$folder"/man/volfs*.[15]
cargo run --quiet --example generate -- "$folder" "$(date -u -d "@$last" +%F)"
say "$folder:"
cd "$folder"
ls man/*.[15] completions/*
