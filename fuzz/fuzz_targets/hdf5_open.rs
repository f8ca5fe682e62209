//! See `src/hdf5_open.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::hdf5_open::run(input);
});
