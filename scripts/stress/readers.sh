#!/usr/bin/env bash
# Sixty-four readers on a cache of 16 MiB, each byte compared. The arguments are the seconds, and a folder of large
# volumes, for which `NAME.truth` beside each has the samples of its first layer at LOD 0 (`volfs cat` of another
# build). Half of all reads are of these, if there are any. The truth is held in memory.
set -euo pipefail
cd "$(dirname "$0")/../.."
export VOLFS_STRESS_SECONDS=${1:-300} VOLFS_STRESS_SEED=$RANDOM
[ -z "${2:-}" ] || export VOLFS_STRESS_DATA=$2
echo "seed $VOLFS_STRESS_SEED"
cargo build --release
VOLFS_STRESS_PROGRAM=$(realpath "${CARGO_TARGET_DIR:-target}/release/volfs")
export VOLFS_STRESS_PROGRAM
exec cargo test --test mount many_readers -- --nocapture
