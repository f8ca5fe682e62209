//! See `src/zgy_bricks.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::zgy_bricks::run(input);
});
