//! See `src/zgy_open.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs_fuzz::zgy_open::run(input);
});
