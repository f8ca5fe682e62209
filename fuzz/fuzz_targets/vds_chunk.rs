//! See `src/vds_chunk.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::vds_chunk::run(input);
});
