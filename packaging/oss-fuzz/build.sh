#!/bin/bash -eu
# Builds all fuzz targets with their seeds, as OSS-Fuzz calls it: in the sources, with OUT for what is built. OSS-Fuzz sets
# the compilers and their flags; cargo-fuzz and a nightly Rust are in its image.
#
#     OUT=FOLDER packaging/oss-fuzz/build.sh      builds with the cargo-fuzz and the Rust of this machine

[ -z "${SRC:-}" ] || cd "$SRC/volfs"

# the sanitizer of Rust's code; `coverage` is asked for by RUSTFLAGS
case ${SANITIZER:-address} in
    address) sanitizer=address ;;
    *) sanitizer=none ;;
esac
cargo fuzz build --release --debug-assertions --sanitizer "$sanitizer"

built=$(dirname "$(find "${CARGO_TARGET_DIR:-fuzz/target}"/*/release -maxdepth 1 -name zgy_open -type f)")
for file in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$file" .rs)
    cp "$built/$target" "$OUT/"
    inputs=()
    for folder in "fuzz/seeds/$target" "fuzz/regressions/$target"; do
        if [ -d "$folder" ]; then inputs+=("$folder"); fi
    done
    # the names of the inputs differ, and folders are of no use in it
    if [ ${#inputs[@]} -gt 0 ]; then
        rm -f "$OUT/${target}_seed_corpus.zip"
        zip -q -j -r "$OUT/${target}_seed_corpus.zip" "${inputs[@]}"
    fi
    # libdeflate defines some constants twice, which AddressSanitizer would report
    printf '[libfuzzer]\nmax_len = 65536\n\n[asan]\ndetect_odr_violation = 0\n' >"$OUT/$target.options"
done
