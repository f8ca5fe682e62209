//! See `src/vds_rle.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::vds_rle::run(input);
});
