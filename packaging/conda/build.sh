#!/usr/bin/env bash
# Builds and stages volfs for the conda package; rattler-build runs it in a copy of the source, with PREFIX set.
set -euo pipefail

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
cargo build --release --locked --bin volfs --example generate
built=$(dirname "$(find "$CARGO_TARGET_DIR" -path "*/release/volfs" -type f)")
./scripts/make_docs.sh --with "$built/examples/generate" "$PWD/docs-built"
./scripts/make_notices.sh docs-built/THIRD-PARTY.txt
./scripts/stage.sh "$PREFIX" "$built/volfs" docs-built
