#!/usr/bin/env bash
# Reads a source that fails in every way, with eight readers, and lets every request of opening a dataset fail once.
# The arguments are the seconds, and the seed of the random choices. Prints the faults by kind.
set -euo pipefail
cd "$(dirname "$0")/../.."
export VOLFS_STRESS_SECONDS=${1:-600} VOLFS_STRESS_SEED=${2:-$RANDOM}
echo "seed $VOLFS_STRESS_SEED"
cargo test --test mount faults -- --nocapture
exec cargo test --lib faults_at_opening -- --nocapture
