//! See `src/wkw_properties.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs_fuzz::wkw_properties::run(input);
});
