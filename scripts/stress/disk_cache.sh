#!/usr/bin/env bash
# Kills a process that fills a disk cache two hundred times, tears the files of one as five hundred power cuts would, and
# lets processes share one. The arguments are the seconds that they share it, and the seed of the random choices.
set -euo pipefail
cd "$(dirname "$0")/../.."
export VOLFS_STRESS_SECONDS=${1:-300} VOLFS_STRESS_SEED=${2:-$RANDOM}
echo "seed $VOLFS_STRESS_SEED"
exec cargo test --lib disk_cache -- --nocapture
