//! See `src/precomputed_open.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::precomputed_open::run(input);
});
