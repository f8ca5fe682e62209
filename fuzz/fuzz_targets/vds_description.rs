//! Parses any text as the description of a VDS: as a `VDSObject` if it begins like one, else as a `VolumeDataLayout` in
//! JSON.
//!
//! `cargo fuzz run vds_description -- -max_len=16384`
#![no_main]

use libfuzzer_sys::fuzz_target;
use volfs::format::vds::fuzz_entry;

fuzz_target!(|text: &[u8]| {
    let understood = if text.starts_with(b"CreateObj") { fuzz_entry::object(text) } else { fuzz_entry::json(text) };
    std::hint::black_box(understood);
});
