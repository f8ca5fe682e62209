//! Parses arbitrary text as the description of a VDS: as the older object text if it begins like one, else as JSON.
//!
//! `cargo fuzz run vds_words -- -max_len=16384`
#![no_main]

use libfuzzer_sys::fuzz_target;
use volfs::format::vds::words;

fuzz_target!(|text: &[u8]| {
    let understood = if text.starts_with(b"CreateObj") { words::object(text) } else { words::json(text) };
    std::hint::black_box(understood);
});
