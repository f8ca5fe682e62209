#!/usr/bin/env bash
# Checks formatting, lints and dependencies, and runs all tests. Installs missing packages (Debian 12 and 13).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

current="setting up"
trap 'status=$?; [ $status = 0 ] || warn "test.sh: FAILED: $current"' EXIT

check() {
    current=$*
    step "$current"
    "$@"
}

need_packages
need_rust clippy rustfmt
need_cargo_deny
cd "$repo"

check cargo fmt --check
check cargo clippy --all-targets -- -D warnings
check cargo deny --locked check licenses bans sources
check cargo test
check ./scripts/make_docs.sh

why=$(why_no_fuse)
step "Summary"
say "cargo fmt      passed"
say "cargo clippy   passed"
say "cargo deny     passed: licenses, bans, sources"
say "cargo test     passed"
say "manual pages   generated, with the completions"
if [ -n "$why" ]; then
    say "mount tests    SKIPPED: $why"
else
    say "mount tests    ran on real mounts"
fi
if [ -z "$(numpy_python)" ]; then
    say "NumPy tests    SKIPPED: no Python with NumPy"
elif [ -n "$why" ]; then
    say "NumPy tests    SKIPPED: they need a mount"
else
    say "NumPy tests    ran"
fi
