//! See `src/n5_open.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::n5_open::run(input);
});
