#!/usr/bin/env bash
# Builds volfs for the conda package; rattler-build runs it in the unpacked sources, with PREFIX set.
set -euo pipefail

export CARGO_HOME=$PWD/.cargo-home CARGO_TARGET_DIR=$PWD/target CARGO_PROFILE_RELEASE_STRIP=true
./scripts/install.sh "$PREFIX"
