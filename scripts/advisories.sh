#!/usr/bin/env bash
# Looks for known vulnerabilities and withdrawn versions among the dependencies. Needs the network: it fetches the
# database of advisories from https://github.com/rustsec/advisory-db. Installs cargo-deny if it is missing.
#
# It is no part of scripts/test.sh, since what was right yesterday may fail today without a change.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

need_packages
need_rust
want_cargo_deny || die "cargo cannot install cargo-deny"
cd "$repo"
step "Advisories"
cargo deny --locked check advisories
step "Dependencies that have newer versions"
cargo update --dry-run --verbose 2>&1 | grep -v "^ *Locking\|^note\|^warning" || say "none"
