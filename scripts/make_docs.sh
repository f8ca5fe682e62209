#!/usr/bin/env bash
# Generates the manual pages and the completions for bash, zsh and fish from the definitions of the command line.
#
#     ./scripts/make_docs.sh [--with GENERATOR] [FOLDER]      FOLDER/man/*, FOLDER/completions/*; default FOLDER: target/docs
#
# GENERATOR is the example `generate`, already built; without it, it is built here, for which all of volfs is built
# without optimisation.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

generator=
if [ "${1:-}" = --with ]; then
    generator=${2:?which generator?}
    shift 2
fi
if [ -z "$generator" ]; then
    need_packages
    need_rust
    generator=$(target_dir)/debug/examples/generate
    cd "$repo" && cargo build --quiet --example generate
    cd - >/dev/null
fi
folder=${1:-$(target_dir)/docs}
mkdir -p "$folder"
# removes the pages of commands that no longer exist
rm -f "$folder"/man/volfs*.[1-8]
"$generator" "$folder" "$(date -u -d "@$(commit_time)" +%F)"
say "$folder:"
cd "$folder"
ls man/*.[1-8] completions/*
