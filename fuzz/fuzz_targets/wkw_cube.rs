//! See `src/wkw_cube.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let _ = volfs::fuzz::wkw_cube::run(input);
});
