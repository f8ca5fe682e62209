//! Decodes arbitrary bytes with a codec, which the first byte of the input chooses; the next two are the most decoded
//! bytes.

use serde_json::{Map, Value};

use crate::codec::{Codec, codec};

use super::bounded;

/// Codecs with their configurations.
const CODECS: [(&str, &str); 43] = [
    ("adler32", "{}"),
    ("astype", r#"{"encode_dtype": "<f4", "decode_dtype": ">i2"}"#),
    ("base64", "{}"),
    ("bitround", "{}"),
    ("bitshuffle", r#"{"elementsize": 2, "blocksize": 256, "cname": "lz4"}"#),
    ("bitshuffle", r#"{"elementsize": 4, "blocksize": 256, "cname": "zstd"}"#),
    ("bitshuffle", r#"{"elementsize": 3, "blocksize": 16}"#),
    ("blosc", "{}"),
    ("bz2", "{}"),
    ("crc32", "{}"),
    ("crc32c", "{}"),
    ("deflate", "{}"),
    ("delta", r#"{"dtype": "<i4", "astype": "<i2"}"#),
    ("delta", r#"{"dtype": ">c16", "astype": "<c8"}"#),
    ("fixedscaleoffset", r#"{"dtype": "<f8", "astype": "u1", "scale": 0, "offset": 1}"#),
    ("fixedscaleoffset", r#"{"dtype": ">f2", "astype": ">f2", "scale": 3, "offset": 1e9}"#),
    ("fletcher32", "{}"),
    ("gzip", "{}"),
    ("lz4", "{}"),
    ("lz4-hdf5", "{}"),
    ("lz4-java", "{}"),
    ("lzma", "{}"),
    ("lzma", r#"{"format": 0}"#),
    ("lzma", r#"{"format": 2}"#),
    ("lzma", r#"{"format": 3, "filters": [{"id": 3, "dist": 2}, {"id": 33}]}"#),
    ("lzma", r#"{"format": 3, "filters": [{"id": 4611686018427387905, "lc": 2, "lp": 1, "pb": 1}]}"#),
    ("packbits", "{}"),
    ("pcodec", "{}"),
    ("quantize", r#"{"digits": 2, "dtype": "<f8", "astype": "<f2"}"#),
    ("shuffle", r#"{"elementsize": 2}"#),
    ("shuffle", r#"{"elementsize": 3}"#),
    ("shuffle", r#"{"elementsize": 8}"#),
    ("shuffle", r#"{"elementsize": 1000}"#),
    ("zfpy", "{}"),
    ("zlib", "{}"),
    ("zstd", "{}"),
    ("zstd", "{}"),
    ("lzf", "{}"),
    ("szip", r#"{"parameters": [169, 8, 32, 10]}"#),
    ("szip", r#"{"parameters": [16, 4, 12, 64]}"#),
    ("nbit", r#"{"parameters": [8, 0, 64, 1, 2, 1, 11, 2]}"#),
    ("scaleoffset", r#"{"parameters": [2, 0, 64, 0, 2, 1, 0, 1, 7]}"#),
    ("scaleoffset", r#"{"parameters": [0, 2, 64, 1, 8, 0, 1, 0]}"#),
];

/// Memory that any decoder may take besides what it says: what a thread keeps, and the text of an error.
const TABLES: u64 = 1 << 20;

/// Reads one input, and returns 1 if it could be decoded.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let [choice, low, high, stored @ ..] = input else { return 0 };
    let (name, configuration) = CODECS[usize::from(*choice) % CODECS.len()];
    let configuration: Map<String, Value> = serde_json::from_str(configuration).unwrap();
    let made = codec(name, &configuration);
    let Ok(made) = made else { return 0 };
    decode(&*made, stored, usize::from(*low) | usize::from(*high) << 8)
}

/// Decodes at most `most` bytes in every way, and returns 1 if that is possible.
pub(crate) fn decode(codec: &dyn Codec, stored: &[u8], most: usize) -> u64 {
    let name = codec.name();
    let scratch = |decoded: usize| TABLES + codec.scratch(decoded) as u64;
    let all = bounded::at_most(most as u64 + scratch(most), name, || codec.decode_unsized(stored, most));
    let length = all.as_ref().map_or(most, Vec::len);
    assert!(length <= most, "{name} gives more bytes than there may be");
    let filled = |fill| {
        let mut out = vec![fill; length];
        let done = bounded::at_most(scratch(length), name, || codec.decode(stored, &mut out));
        done.map(|()| out)
    };
    let one = filled(0);
    assert!(filled(0xff) == one, "{name}: the bytes depend on what the buffer held");
    assert!(one.as_ref().ok() == all.as_ref().ok(), "{name} gives other bytes where their number is known");
    if let Some(error) = one.err().or(all.err()) {
        assert!(!error.is_empty() && !error.contains('\n'), "{name}: {error:?} is no line");
        return 0;
    }
    if let Some(stated) = codec.decoded_len(stored.len() as u64) {
        assert_eq!(stated, length as u64, "{name}");
    }
    1
}
