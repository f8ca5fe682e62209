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
has_deny=no
if want_cargo_deny; then has_deny=yes; fi
cd "$repo"

check cargo fmt --check
check cargo clippy --all-targets -- -D warnings
[ $has_deny = no ] || check cargo deny --locked check licenses bans sources
check cargo test
check ./scripts/test_python.sh
check ./scripts/make_docs.sh

why=$(why_no_fuse)
step "Summary"
say "cargo fmt      passed"
say "cargo clippy   passed"
if [ $has_deny = yes ]; then
    say "cargo deny     passed: licenses, bans, sources"
else
    say "cargo deny     SKIPPED: cargo cannot install cargo-deny"
fi
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
