//! See `src/compressed_segmentation.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::compressed_segmentation::run(input);
});
