//! See `src/wkw_open.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::wkw_open::run(input);
});
