#!/usr/bin/env bash
# Says how many lines of the source the tests run, by folder.
#
#     scripts/stress/coverage.sh [--lines PATH] [ARGUMENT...]
#
# The arguments are those of `cargo test`; by default the library's tests, and those of the program with and without
# mounts. --lines prints the lines below PATH, such as src/source, that no test runs. Processes that are killed count,
# since counters are a map of a file. Needs llvm-profdata and llvm-cov of the version of LLVM that rustc has:
# `rustup component add llvm-tools`, or Debian's llvm-22. Tests that fail do not matter here.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
cd "$repo"
shown=()
if [ "${1:-}" = --lines ]; then shown=(--lines "$2"); shift 2; fi
[ $# -gt 0 ] || set -- --lib --test cli --test mount

version=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
bin=$(echo "$(rustc --print sysroot)"/lib/rustlib/*/bin)
# find_tool NAME: prints the path of a tool of LLVM.
find_tool() {
    PATH=$bin:$PATH command -v "$1-$version" || PATH=$bin:$PATH command -v "$1" || die "$1 of LLVM $version is missing"
}
profdata=$(find_tool llvm-profdata) cov=$(find_tool llvm-cov)

work=$(target_dir)/coverage
rm -rf "$work"
mkdir -p "$work"
# some tests run the program as another user
chmod 1777 "$work"
# only this crate is measured, not what it depends on
wrapper=$work/rustc
printf '#!/bin/sh\nexec "$@" -Cinstrument-coverage -Cllvm-args=-runtime-counter-relocation\n' >"$wrapper"
chmod +x "$wrapper"
export RUSTC_WORKSPACE_WRAPPER=$wrapper LLVM_PROFILE_FILE=$work/%c%4m.profraw
mapfile -t programs < <(cargo test --no-run --message-format=json "$@" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | sort -u)
[ ${#programs[@]} -gt 0 ] || die "nothing was built"
cargo test --no-fail-fast "$@" || warn "some tests failed"
unset LLVM_PROFILE_FILE
"$profdata" merge --sparse --failure-mode=warn -o "$work/all.profdata" "$work"/*.profraw
objects=()
for program in "${programs[@]:1}"; do objects+=(--object "$program"); done
"$cov" export --format=lcov --instr-profile="$work/all.profdata" "${programs[0]}" "${objects[@]}" >"$work/all.lcov"
python3 scripts/stress/coverage_table.py "$work/all.lcov" "${shown[@]}"
