//! See `src/wkw_properties.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::wkw_properties::run(input);
});
