#!/usr/bin/env bash
# Runs threads of the cache, the pool, the decode gate and of whole reads in many orders that a scheduler chooses
# (the crate shuttle). The argument is the number of orders of each test.
set -euo pipefail
cd "$(dirname "$0")/../.."
export VOLFS_SCHEDULES=${1:-100000}
exec cargo test --features shuttle --lib array::tests::schedules
