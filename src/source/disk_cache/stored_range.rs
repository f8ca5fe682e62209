//! The name and the weight of a file of the cache.

/// The number of folders that files are divided among.
pub(crate) const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 12;

/// Ranges of one object that begin in the same piece of this many bytes (a power of two) are in the same folder.
const REGION_BITS: u32 = 26;

/// Bytes of a file that have a checksum of their own, so that a part of it can be read.
pub(crate) const BLOCK: usize = 64 << 10;

/// File systems give space in units of so many bytes.
const UNIT: u64 = 4096;

/// A range of an object that is or will be stored in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StoredRange {
    /// The digest of the object's version.
    pub object: u64,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u32,
}

impl StoredRange {
    /// Returns the number of the folder.
    pub(crate) fn shard(&self) -> usize {
        shard(self.object, self.offset)
    }

    /// Returns the byte after the last one.
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }

    /// Returns the path of the file below the cache's folder.
    pub(crate) fn path(&self) -> String {
        format!("{}/{:016x}-{:x}-{:x}", shard_name(self.shard()), self.object, self.offset, self.length)
    }

    /// Reads the name of a file in the folder `shard`; `None` if it is not a name of ours.
    pub(crate) fn read(shard: usize, name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let mut next = || parts.next().and_then(|part| u64::from_str_radix(part, 16).ok());
        let range = Self { object: next()?, offset: next()?, length: u32::try_from(next()?).ok()? };
        // the name of a range is one only: no zeros in front, no capitals
        (range.shard() == shard && range.path()[SHARD_NAME + 1..] == *name).then_some(range)
    }

    /// Returns the bytes that the file counts for: at least what it takes on disk.
    pub(crate) fn weight(&self) -> u64 {
        // all of a header but the checksums is less than a unit
        let blocks = u64::from(self.length).div_ceil(BLOCK as u64);
        (u64::from(self.length) + 4 * blocks).next_multiple_of(UNIT) + UNIT
    }
}

/// Digits of the name of a folder.
const SHARD_NAME: usize = 3;

/// Returns the folder of the ranges of an object that begin at or near `offset`.
pub(crate) fn shard(object: u64, offset: u64) -> usize {
    let mixed = object ^ (offset >> REGION_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SHARD_BITS)) as usize
}

/// Returns the last byte before the piece of the object that `offset` lies in, if there is one: ranges that begin
/// there may be in another folder.
pub(crate) fn before_region(offset: u64) -> Option<u64> {
    ((offset >> REGION_BITS) << REGION_BITS).checked_sub(1)
}

/// Returns the name of a folder.
pub(crate) fn shard_name(shard: usize) -> String {
    format!("{shard:03x}")
}

/// Reads the name of a folder.
pub(crate) fn read_shard_name(name: &str) -> Option<usize> {
    let shard = usize::from_str_radix(name, 16).ok()?;
    (shard < SHARDS && shard_name(shard) == name).then_some(shard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_a_file_holds() {
        for (object, offset, length) in [(0, 0, 1), (u64::MAX, u64::MAX, u32::MAX), (7 << 50, 1 << 40, 65536)] {
            let range = StoredRange { object, offset, length };
            let path = range.path();
            let (folder, name) = path.split_once('/').unwrap();
            assert_eq!(read_shard_name(folder), Some(range.shard()));
            assert_eq!(StoredRange::read(range.shard(), name), Some(range));
            assert_eq!(StoredRange::read(range.shard() ^ 1, name), None, "in the wrong folder");
        }
        let range = StoredRange { object: 1, offset: 16, length: 16 };
        let name = range.path()[4..].to_owned();
        assert_eq!(name, "0000000000000001-10-10");
        for other in ["1-10-10", "0000000000000001-010-10", "0000000000000001-10", "0000000000000001-10-10-1", "", "+"]
        {
            assert_eq!(StoredRange::read(range.shard(), other), None, "{other}");
        }
        for other in ["1", "1000", "00A", "+01", "tmp", ""] {
            assert_eq!(read_shard_name(other), None, "{other}");
        }
    }

    #[test]
    fn large_objects_are_divided_among_folders() {
        let folders: std::collections::BTreeSet<usize> = (0..64).map(|n| shard(42, n << REGION_BITS)).collect();
        assert!(folders.len() > 50);
        assert_eq!(shard(42, 5), shard(42, (1 << REGION_BITS) - 1));
        assert_eq!(before_region(5), None);
        assert_eq!(before_region((3 << REGION_BITS) + 5), Some((3 << REGION_BITS) - 1));
    }
}
