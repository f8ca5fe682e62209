#!/usr/bin/env bash
# Runs tests under a tool that sees what is undefined: AddressSanitizer, ThreadSanitizer, Miri, valgrind.
#
#     scripts/stress/sanitizers.sh address|thread|miri|valgrind [ARGUMENT...]
#
# The arguments are those of `cargo test`, such as `--lib FILTER` or `--test mount`; each mode has others by default.
# Those of valgrind are those of valgrind.py.
# What the tools need besides, and what is left out, stands at each mode.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
cd "$repo"
mode=${1:-}
[ $# = 0 ] || shift
target=$(rustc -vV | sed -n 's/^host: //p')
# stable Rust has the tools if it is told to forget that it is stable
export RUSTC_BOOTSTRAP=1
# where there are sources of the standard library, it is built for the tool as well
sources=$(rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock
build_std=()
[ ! -e "$sources" ] || build_std=(-Zbuild-std "--target=$target")

# for C and C++, which dependencies compile
c_flags() {
    export "CFLAGS_${target//-/_}=$1" "CXXFLAGS_${target//-/_}=$1"
}

case $mode in
    address)
        # With leaks; those of the tests of memory::pool, which forget bricks, are none. Code in C is checked, too. Left
        # out are tests that limit the memory of a process: the tool needs terabytes of addresses. libdeflate defines
        # some constants twice, which is no error. A block that is larger than the tool's limit is refused, as by the
        # system.
        export RUSTFLAGS="-Zsanitizer=address ${RUSTFLAGS:-}"
        c_flags "-fsanitize=address -fno-omit-frame-pointer"
        export ASAN_OPTIONS=detect_odr_violation=0:allocator_may_return_null=1:handle_sigbus=0
        export VOLFS_FUZZ_SEEDS=${VOLFS_FUZZ_SEEDS:-all}
        [ $# -gt 0 ] || set -- --lib
        exec cargo test "${build_std[@]:---target=$target}" "$@"
        ;;
    thread)
        # What is not instrumented looks like races, so the standard library must be built, too, and needs its sources.
        # Code in C has no threads here. Tests fork while there are threads, which the tool would refuse.
        # Where rustup has none, Debian's packages rustc-web, libstd-rust-web-dev, libstd-rust-web-VERSION, libllvm22 and
        # rust-web-src, unpacked into one folder with dpkg-deb -x, are a compiler with its sources: put it into PATH, with
        # rustup's own cargo, and librustc-stable_rt.tsan.a of a toolchain with the same LLVM beside its libraries.
        [ -e "$sources" ] || die "the sources of the standard library are missing: rustup component add rust-src"
        export RUSTFLAGS="-Zsanitizer=thread ${RUSTFLAGS:-}"
        export TSAN_OPTIONS="die_after_fork=0 allocator_may_return_null=1 handle_sigbus=0 suppressions=$(target_dir)/tsan_suppressions ${TSAN_OPTIONS:-}"
        # A mapping counts as a write. Where a file was cut short, the handler maps zeros over the page while others read
        # it: it has marked the map as broken before, so what they read is not used.
        mkdir -p "$(target_dir)"
        echo "race:volfs::source::local::map::on_fault" >"$(target_dir)/tsan_suppressions"
        [ $# -gt 0 ] || set -- --lib
        exec cargo test "${build_std[@]}" "$@"
        ;;
    miri)
        # It interprets code, and knows few system calls: what is left out maps memory, forks or has signals.
        unset RUSTC_BOOTSTRAP
        export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks ${MIRIFLAGS:-}" PROPTEST_CASES=${PROPTEST_CASES:-4}
        [ $# -gt 0 ] || set -- array::output array::copy codec::zfp::block codec::zfp::tests::any_bits sync::process::tests::a_value
        exec cargo +nightly miri test --lib -- "$@"
        ;;
    valgrind)
        command -v valgrind >/dev/null || die "valgrind is missing: apt install valgrind"
        # The kernel's own list of parameters names a page that valgrind takes away: the C library's is right. openat2 is
        # unknown to older versions, so that paths are resolved in the other way.
        unset RUSTC_BOOTSTRAP
        cargo build --profile test --features rustix/use-libc-auxv
        exec python3 scripts/stress/valgrind.py "$(target_dir)/debug/volfs" "$@"
        ;;
    *) die "which tool? address, thread, miri or valgrind" ;;
esac
