//! See `src/zgy_open.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::zgy_open::run(input);
});
