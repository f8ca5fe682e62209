//! See `src/vds_wavelet.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::vds_wavelet::run(input);
});
