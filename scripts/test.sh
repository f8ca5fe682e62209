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
need_libzfp_packages
need_rust
has_fmt=no has_clippy=no has_deny=no
if want_cargo_tool fmt; then has_fmt=yes; fi
if want_cargo_tool clippy; then has_clippy=yes; fi
[ -z "${CI:-}" ] || [ $has_fmt$has_clippy = yesyes ] || die "CI needs cargo fmt and cargo clippy"
# building it takes minutes, and it tells a user nothing
if cargo deny --version >/dev/null 2>&1 || { [ -n "${CI:-}" ] && want_cargo_deny; }; then has_deny=yes; fi
cd "$repo"

[ $has_fmt = no ] || check cargo fmt --all --check
[ $has_clippy = no ] || check cargo clippy --all-targets --features libzfp,ndarray -- -D warnings
[ $has_clippy = no ] || check cargo clippy --package volfs-python -- -D warnings
[ $has_clippy = no ] || check cargo clippy --no-default-features -- -D warnings
# the library alone on other systems; clippy fails at a warning
no_target=
for target in x86_64-apple-darwin x86_64-pc-windows-gnu; do
    if ! rustup target add "$target" >/dev/null 2>&1; then
        no_target="$no_target $target"
    elif [ $has_clippy = yes ]; then
        check cargo clippy --lib --no-default-features --target "$target" -- -D warnings
    else
        check cargo check --lib --no-default-features --target "$target"
    fi
done
[ $has_deny = no ] || check cargo deny --locked check licenses bans sources
if [ -z "$(numpy_python)" ]; then apt_install python3-numpy || true; fi
# a build of its own, for which a user would wait for minutes
[ -z "${CI:-}" ] || check ./scripts/stress/schedules.sh 20000
! command -v python3 >/dev/null || check ./scripts/check_house.py
# tests compare with libzfp
check cargo test --features libzfp,ndarray
check ./scripts/test_python.sh
check ./scripts/make_docs.sh

why=$(why_no_fuse)
step "Summary"
without="SKIPPED: this Rust does not have it (rustup's has: https://rustup.rs)"
if [ $has_fmt = yes ]; then say "cargo fmt      passed"; else say "cargo fmt      $without"; fi
if [ $has_clippy = yes ]; then say "cargo clippy   passed"; else say "cargo clippy   $without"; fi
if [ $has_deny = yes ]; then
    say "cargo deny     passed: licenses, bans, sources"
else
    say "cargo deny     SKIPPED: it is not there (cargo install cargo-deny)"
fi
if [ -z "$no_target" ]; then
    say "other systems  passed: the library is checked for macOS and Windows"
else
    say "other systems  SKIPPED: this Rust does not have$no_target"
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
stores=${VOLFS_STORES:-$(target_dir)/stores}
# say_of_store TESTS PROGRAM NAME ABSENT: says whether tests ran that need a server and mounts.
say_of_store() {
    if [ ! -x "$stores/$2" ]; then
        say "$1 SKIPPED: $4 (./scripts/install_stores.sh)"
    elif [ -n "$why" ]; then
        say "$1 SKIPPED: they need a mount"
    else
        say "$1 ran against $3"
    fi
}
say_of_store "store tests   " bin/s3s-fs s3s-fs "no object store is installed"
say_of_store "Azure tests   " azurite/node_modules/.bin/azurite-blob Azurite "Azurite is not installed"
