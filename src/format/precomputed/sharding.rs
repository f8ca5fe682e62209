//! Shards: objects with many chunks, and two levels of indexes of them.
//!
//! The number of a chunk says in which shard it is and in which part of it, a *minishard*. A shard begins with where the
//! index of each minishard is, from the end of these numbers on; that has the numbers, places and lengths of chunks.

use serde_json::Value;

use crate::format::bytes::whole;

/// How chunks are distributed among shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sharding {
    /// Chunks along x, y and z.
    chunks: [u64; 3],
    /// Bits of a chunk's number that do not matter for where it is.
    preshift_bits: u32,
    is_hashed: bool,
    minishard_bits: u32,
    shard_bits: u32,
    pub index_is_gzip: bool,
    pub data_is_gzip: bool,
}

/// Where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub shard: u64,
    pub minishard: u64,
    /// The number of the chunk.
    pub chunk: u64,
}

const KIND: &str = "neuroglancer_uint64_sharded_v1";
/// Bytes of the place of a minishard's index.
pub(super) const PLACE: u64 = 16;

impl Sharding {
    /// Says for people what is done to encoded chunks.
    pub(super) fn text(&self) -> &'static str {
        if self.data_is_gzip { ", gzip, in shards" } else { ", in shards" }
    }

    /// Parses the description. The error names what is not supported.
    pub(super) fn parse(described: &Value, chunks: [u64; 3]) -> Result<Self, String> {
        let text = |key: &str| described.get(key).and_then(Value::as_str);
        if text("@type") != Some(KIND) {
            return Err(format!("its sharding is {:?}, which is not supported", text("@type").unwrap_or_default()));
        }
        let bits = |key: &str| {
            let bits = described.get(key).and_then(|bits| u32::try_from(whole(bits)?).ok().filter(|bits| *bits <= 64));
            bits.ok_or_else(|| format!("the {key} of its sharding make no sense"))
        };
        let is_gzip = |key: &str| match text(key) {
            Some("gzip") => Ok(true),
            Some("raw") | None => Ok(false),
            Some(other) => Err(format!("the {key} of its sharding is {other:?}, which is not supported")),
        };
        let is_hashed = match text("hash") {
            Some("identity") => false,
            Some("murmurhash3_x86_128") => true,
            other => {
                let name = other.unwrap_or_default();
                return Err(format!("the hash of its sharding is {name:?}, which is not supported"));
            }
        };
        let sharding = Self {
            chunks,
            preshift_bits: bits("preshift_bits")?,
            is_hashed,
            minishard_bits: bits("minishard_bits")?,
            shard_bits: bits("shard_bits")?,
            index_is_gzip: is_gzip("minishard_index_encoding")?,
            data_is_gzip: is_gzip("data_encoding")?,
        };
        if sharding.minishard_bits + sharding.shard_bits > 64 || sharding.index_bytes().is_none() {
            return Err("the minishard_bits and shard_bits of its sharding are too many".into());
        }
        if chunks.iter().map(|count| bits_of(*count)).sum::<u32>() > 64 {
            return Err("it has more chunks than its sharding can number".into());
        }
        Ok(sharding)
    }

    /// Returns the bytes of the places of all minishards; `None` beyond what an object can have.
    pub(super) fn index_bytes(&self) -> Option<u64> {
        PLACE.checked_mul(1u64.checked_shl(self.minishard_bits)?)
    }

    /// Returns where the chunk at a position of the grid is, which is given as x, y, z.
    pub(super) fn address(&self, at: [u64; 3]) -> Address {
        let chunk = self.number(at);
        let shifted = chunk.checked_shr(self.preshift_bits).unwrap_or(0);
        let hashed = if self.is_hashed { murmur_hash(shifted) } else { shifted };
        let low = |number: u64, bits: u32| number & 1u64.checked_shl(bits).map_or(u64::MAX, |end| end - 1);
        let shard = low(hashed.checked_shr(self.minishard_bits).unwrap_or(0), self.shard_bits);
        Address { shard, minishard: low(hashed, self.minishard_bits), chunk }
    }

    /// Returns the number of a chunk: the bits of its position in turn, without those that are 0 for all chunks
    /// (compressed Morton code).
    fn number(&self, at: [u64; 3]) -> u64 {
        let bits = self.chunks.map(bits_of);
        let (mut number, mut place) = (0, 0);
        for bit in 0..bits.into_iter().max().unwrap_or(0) {
            for axis in 0..3 {
                if bit < bits[axis] {
                    number |= (at[axis] >> bit & 1) << place;
                    place += 1;
                }
            }
        }
        number
    }

    /// Returns the name of a shard without its extension.
    pub(super) fn name(&self, shard: u64) -> String {
        format!("{shard:0digits$x}", digits = self.shard_bits.div_ceil(4) as usize)
    }
}

/// Returns the bits that the positions of `count` chunks take.
fn bits_of(count: u64) -> u32 {
    u64::BITS - count.saturating_sub(1).leading_zeros()
}

/// Returns the first half of the hash MurmurHash3_x86_128 of a number, with seed 0.
fn murmur_hash(number: u64) -> u64 {
    const FACTORS: [u32; 3] = [0x239b_961b, 0xab0e_9789, 0x38b3_4ae5];
    const BYTES: u32 = 8;
    let (low, high) = (number as u32, (number >> 32) as u32);
    let first = low.wrapping_mul(FACTORS[0]).rotate_left(15).wrapping_mul(FACTORS[1]);
    let second = high.wrapping_mul(FACTORS[1]).rotate_left(16).wrapping_mul(FACTORS[2]);
    let mut state = [first ^ BYTES, second ^ BYTES, BYTES, BYTES];
    // the first becomes the sum of all, which the others get added
    let mix = |state: &mut [u32; 4]| {
        state[0] = state.iter().fold(0, |sum, part| sum.wrapping_add(*part));
        let sum = state[0];
        state[1..].iter_mut().for_each(|part| *part = part.wrapping_add(sum));
    };
    mix(&mut state);
    for part in &mut state {
        for (shift, factor) in [(16, 0x85eb_ca6b), (13, 0xc2b2_ae35), (16, 1)] {
            *part = (*part ^ (*part >> shift)).wrapping_mul(factor);
        }
    }
    mix(&mut state);
    u64::from(state[1]) << 32 | u64::from(state[0])
}

/// The index of a minishard: its chunks in the order of their numbers.
pub(super) struct Minishard(Vec<Entry>);

#[derive(Clone, Copy)]
struct Entry {
    chunk: u64,
    start: u64,
    length: u64,
}

impl Minishard {
    /// Parses an index: numbers of chunks, offsets, lengths, each as many 64-bit numbers. The first two are differences:
    /// to the chunk before, and to the end of its bytes. `None` for bytes that are no index.
    pub(super) fn parse(index: &[u8]) -> Option<Self> {
        let (numbers, []) = index.as_chunks::<8>() else { return None };
        let count = numbers.len() / 3;
        if count * 3 != numbers.len() {
            return None;
        }
        let (chunks, rest) = numbers.split_at(count);
        let (starts, lengths) = rest.split_at(count);
        let mut entries = crate::memory::try_with_capacity(count).ok()?;
        let (mut chunk, mut end) = (0u64, 0u64);
        for ((more, gap), length) in chunks.iter().zip(starts).zip(lengths) {
            let [more, gap, length] = [more, gap, length].map(|number| u64::from_le_bytes(*number));
            // sums beyond 64 bits are differences to numbers before
            (chunk, end) = (chunk.wrapping_add(more), end.wrapping_add(gap));
            entries.push(Entry { chunk, start: end, length });
            end = end.wrapping_add(length);
        }
        entries.sort_by_key(|entry| entry.chunk);
        Some(Self(entries))
    }

    /// Returns where the bytes of a chunk begin and how many they are.
    pub(super) fn find(&self, chunk: u64) -> Option<(u64, u64)> {
        let at = self.0.partition_point(|entry| entry.chunk < chunk);
        self.0.get(at).filter(|entry| entry.chunk == chunk).map(|entry| (entry.start, entry.length))
    }

    /// Returns the bytes that it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn described(preshift: u32, hash: &str, minishard: u32, shard: u32) -> Value {
        json!({
            "@type": KIND, "preshift_bits": preshift, "hash": hash, "minishard_bits": minishard, "shard_bits": shard,
            "minishard_index_encoding": "gzip", "data_encoding": "raw",
        })
    }

    fn sharding(chunks: [u64; 3], preshift: u32, hash: &str, minishard: u32, shard: u32) -> Sharding {
        Sharding::parse(&described(preshift, hash, minishard, shard), chunks).unwrap()
    }

    #[test]
    fn bits_that_no_chunk_has_are_left_out() {
        let all = sharding([3, 9, 1], 0, "identity", 0, 0);
        // bits of x 0, y 0, x 1, y 1, y 2, y 3
        assert_eq!(all.address([2, 0, 0]).chunk, 0b100);
        assert_eq!(all.address([1, 8, 0]).chunk, 0b10_0001);
        assert_eq!(all.address([0, 7, 0]).chunk, 0b1_1010);
        assert_eq!(sharding([1 << 16, 1 << 14, 1 << 24], 0, "identity", 0, 0).address([0, 0, 1 << 23]).chunk, 1 << 53);
    }

    #[test]
    fn shards_and_minishards_are_bits_of_the_number() {
        let at = sharding([64; 3], 3, "identity", 4, 5).address([63, 21, 2]);
        assert_eq!((at.minishard, at.shard), (at.chunk >> 3 & 15, at.chunk >> 7 & 31));
        let names =
            [(0, 0, "0"), (1, 1, "1"), (9, 10, "00a"), (16, 0xbeef, "beef"), (64, u64::MAX, "ffffffffffffffff")];
        for (bits, shard, name) in names {
            assert_eq!(sharding([2; 3], 64, "identity", 0, bits).name(shard), name);
        }
        assert_eq!(sharding([2; 3], 64, "identity", 0, 64).address([1; 3]).shard, 0);
    }

    #[test]
    fn the_hash_is_the_public_one() {
        for (number, hash) in MURMUR {
            assert_eq!(murmur_hash(number), hash, "{number}");
        }
    }

    /// By cloud-volume's implementation.
    const MURMUR: [(u64, u64); 8] = [
        (0, 0x4772_b084_e028_ae41),
        (1, 0xe8bd_67d6_16d4_ce9a),
        (42, 0xc20b_94f9_5119_f47a),
        (0xdead_beef, 0x2583_af9f_1fd1_e05f),
        (1 << 40, 0xf7ee_bd7b_c2dc_2c2b),
        (u64::MAX, 0x574f_66bd_212b_5d1a),
        (0x0123_4567_89ab_cdef, 0x7080_3626_4c10_9d93),
        (0x1234_5678_9abc_def0, 0x5356_93d3_3dd3_4552),
    ];

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for (key, value, what) in [
            ("@type", json!("sharded_v2"), "sharded_v2"),
            ("hash", json!("md5"), "md5"),
            ("data_encoding", json!("zstd"), "zstd"),
            ("minishard_index_encoding", json!("br"), "br"),
            ("preshift_bits", json!(65), "preshift_bits"),
            ("minishard_bits", json!(60), "too many"),
            ("shard_bits", json!(63), "too many"),
            ("shard_bits", json!(-1), "shard_bits"),
        ] {
            let mut described = described(1, "identity", 3, 2);
            described[key] = value;
            assert!(Sharding::parse(&described, [4; 3]).unwrap_err().contains(what), "{described}");
        }
        assert!(
            Sharding::parse(&described(1, "identity", 3, 2), [1 << 22, 1 << 22, 1 << 21])
                .unwrap_err()
                .contains("more chunks")
        );
        assert!(Sharding::parse(&json!(7), [4; 3]).is_err());
    }

    #[test]
    fn an_index_is_differences() {
        let bytes = |numbers: &[u64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
        let index = Minishard::parse(&bytes(&[5, 1, 10, 100, 0, 7, 20, 30, 40])).unwrap();
        assert_eq!([5, 6, 16].map(|n| index.find(n)), [Some((100, 20)), Some((120, 30)), Some((157, 40))]);
        assert_eq!([0, 7, 17].map(|n| index.find(n)), [None; 3]);
        assert!(Minishard::parse(&[]).unwrap().find(0).is_none());
        assert!(Minishard::parse(&bytes(&[1, 2])).is_none() && Minishard::parse(&[0; 25]).is_none());
    }

    proptest! {
        #[test]
        fn every_chunk_has_a_number_of_its_own(chunks in prop::array::uniform3(1..9_u64)) {
            let all = sharding(chunks, 0, "identity", 1, 1);
            let count = chunks.iter().product::<u64>();
            let numbers: HashSet<u64> = (0..count)
                .map(|n| all.address([n % chunks[0], n / chunks[0] % chunks[1], n / chunks[0] / chunks[1]]).chunk)
                .collect();
            prop_assert_eq!(numbers.len() as u64, count);
            prop_assert!(numbers.iter().all(|n| *n < chunks.iter().map(|n| n.next_power_of_two()).product()));
        }
    }
}
