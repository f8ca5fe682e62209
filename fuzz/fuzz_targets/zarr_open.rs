//! See `src/zarr_open.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::zarr_open::run(input);
});
