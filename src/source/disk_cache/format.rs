//! The files of the cache: their names, what is in them, and how they are read.
//!
//! A file holds one range of one object. All numbers are little-endian.
//!
//! | bytes | |
//! |---|---|
//! | 8 | `volfsDC1` |
//! | 4 | CRC-32 of the header from here to its end |
//! | 4 | bytes of the header |
//! | 8 | offset of the range in the object |
//! | 8 | bytes of the range |
//! | 16 | lengths of the four names that follow, 4 bytes each |
//! | ... | store, dataset, object, version: see [`CacheKey::new`] |
//! | 4 each | CRC-32 of each block of 64 KiB of the range, the last one being shorter |
//! | ... | the range |

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use libdeflater::crc32;
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use crate::memory::try_zeroed;

const MAGIC: &[u8; 8] = b"volfsDC1";
/// Where the part of the header begins that its checksum covers.
const CHECKED: usize = 12;
const IDENTITY: usize = 32;
/// Bytes of a file that hold all of the header but the checksums of the blocks.
const OPENING: u64 = 4096;
/// The most bytes of an identity: with the fixed part of the header it is less than 4 KiB. Objects with longer names
/// are not cached.
pub(super) const MAX_IDENTITY: usize = 4000;
/// Bytes of a file that have one checksum, so that a part of the file can be read.
pub(super) const BLOCK: usize = 64 << 10;
/// Blocks that are read at a time: few enough to be in the processor's cache when their checksums are computed.
const BLOCKS: usize = 4;

pub(super) const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 12;
/// Ranges of one object that begin in the same piece of this many bytes (a power of two) are in the same folder.
const REGION_BITS: u32 = 26;
const UNIT: u64 = 4096;

/// How a file of the cache is opened. NONBLOCK: a pipe that others put there must not be waited for.
pub(super) const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

/// Identifies one version of one object of a store: its bytes never change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    /// The lengths of the four names (u32, little-endian), then the names.
    pub(super) identity: Arc<[u8]>,
    /// A hash, which is part of the names of files. Files hold the whole identity: two objects of one hash are not
    /// confused, but only one of them is cached.
    pub(super) digest: u64,
}

impl CacheKey {
    /// Makes the key of the object `object` of a dataset, or of its only object if that is empty. `store` names the
    /// bucket and where it is, `version` changes whenever the object does. None of them may hold a secret: they are
    /// written to disk.
    pub(crate) fn new(store: &str, dataset: &str, object: &str, version: &str) -> Self {
        let names = [store, dataset, object, version];
        // a name too long for its length is too long to be cached
        let lengths = names.map(|name| u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
        let identity = [lengths.as_flattened(), names.concat().as_bytes()].concat();
        Self { digest: stable_hash(&identity), identity: identity.into() }
    }

    /// Reads a key from what begins with its identity, and returns it with its store and dataset.
    fn read(bytes: &[u8]) -> Option<(Self, (String, String))> {
        let (lengths, mut rest) = bytes.split_first_chunk::<16>()?;
        let mut names = [""; 4];
        for (name, length) in names.iter_mut().zip(lengths.as_chunks::<4>().0) {
            let (bytes, after) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            (*name, rest) = (str::from_utf8(bytes).ok()?, after);
        }
        let [store, dataset, object, version] = names;
        Some((Self::new(store, dataset, object, version), (store.to_owned(), dataset.to_owned())))
    }
}

/// A hash of 64 bits that is the same in every version of the program: FNV-1a, and the last step of MurmurHash3, so
/// that all bits depend on all.
pub(crate) fn stable_hash(bytes: &[u8]) -> u64 {
    let fnv = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

/// A range of an object that is or will be stored in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StoredRange {
    pub(super) object: u64,
    pub(super) offset: u64,
    pub(super) length: u32,
}

impl StoredRange {
    pub(super) fn shard(&self) -> usize {
        shard(self.object, self.offset)
    }

    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }

    pub(super) fn path(&self) -> String {
        format!("{}/{}", shard_name(self.shard()), self.name())
    }

    fn name(&self) -> String {
        format!("{:016x}-{:x}-{:x}", self.object, self.offset, self.length)
    }

    /// Reads the name of a file in the folder `shard`; `None` if the cache gives no such names.
    pub(super) fn from_name(shard: usize, name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let mut next = || parts.next().and_then(|part| u64::from_str_radix(part, 16).ok());
        let range = Self { object: next()?, offset: next()?, length: u32::try_from(next()?).ok()? };
        // a range has one name: no zeros in front, no capitals
        (range.shard() == shard && range.name() == name).then_some(range)
    }

    /// Returns the bytes that the file counts for: at least what it takes on disk.
    pub(super) fn weight(&self) -> u64 {
        // all of a header but the checksums is less than a unit
        let blocks = u64::from(self.length).div_ceil(BLOCK as u64);
        (u64::from(self.length) + 4 * blocks).next_multiple_of(UNIT) + UNIT
    }

    fn blocks(&self) -> usize {
        (self.length as usize).div_ceil(BLOCK)
    }

    /// Fills `out` with a part of the range, from its byte `from` on, and returns the open file. If that fails, `out`
    /// may be overwritten.
    pub(super) fn read(self, folder: impl AsFd, key: &CacheKey, from: usize, out: &mut [u8]) -> Result<File, Unread> {
        let file = openat(folder, self.path(), READ, Mode::empty()).map_err(|error| match error {
            Errno::NOENT => Unread::Absent,
            Errno::LOOP | Errno::NXIO => Unread::Bad,
            error => Unread::Failed(error),
        })?;
        let file = File::from(file);
        read_part(&file, key, self, from, out).map(|()| file)
    }
}

/// Returns the folder of the ranges of an object that begin at or near `offset`.
pub(super) fn shard(object: u64, offset: u64) -> usize {
    let mixed = object ^ (offset >> REGION_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SHARD_BITS)) as usize
}

/// Returns the folder of ranges that begin in the piece of the object before that of `offset`, if it is another folder:
/// they may reach beyond `offset`.
pub(super) fn shard_before(object: u64, offset: u64) -> Option<usize> {
    let before = shard(object, ((offset >> REGION_BITS) << REGION_BITS).checked_sub(1)?);
    (before != shard(object, offset)).then_some(before)
}

pub(super) fn shard_name(shard: usize) -> String {
    format!("{shard:03x}")
}

pub(super) fn read_shard_name(name: &str) -> Option<usize> {
    let shard = usize::from_str_radix(name, 16).ok()?;
    (shard < SHARDS && shard_name(shard) == name).then_some(shard)
}

/// Returns what a header has behind its checksum and before those of the blocks.
fn description(key: &CacheKey, range: StoredRange) -> Vec<u8> {
    let length = IDENTITY + key.identity.len() + 4 * range.blocks();
    let numbers = [range.offset, u64::from(range.length)].map(u64::to_le_bytes);
    [&(length as u32).to_le_bytes()[..], numbers.as_flattened(), &key.identity].concat()
}

pub(super) fn header(key: &CacheKey, range: StoredRange, bytes: &[u8]) -> Vec<u8> {
    let mut checked = description(key, range);
    bytes.chunks(BLOCK).for_each(|block| checked.extend(crc32(block).to_le_bytes()));
    [&MAGIC[..], &crc32(&checked).to_le_bytes(), &checked].concat()
}

/// Returns whether blocks have the checksums that begin with that of the first of them.
fn are_good(sums: &[u8], blocks: &[u8]) -> bool {
    let mut sums = sums.chunks_exact(4);
    blocks.chunks(BLOCK).all(|block| sums.next().is_some_and(|sum| *sum == crc32(block).to_le_bytes()))
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    Absent,
    /// It is not what its name says, too short, or damaged.
    Bad,
    /// The process or the system lacks something.
    Failed(Errno),
}

/// Returns the store and the dataset of the file of a range, of which only the name is known, if it is a file of the
/// cache of `size` bytes. With `check` all of it is read, and its checksums have to be right.
pub(super) fn names_of(file: &File, size: u64, range: StoredRange, check: bool) -> Option<(String, String)> {
    let mut opening = Vec::new();
    file.take(OPENING).read_to_end(&mut opening).ok()?;
    let (key, names) = CacheKey::read(opening.get(IDENTITY..)?)?;
    let description = description(&key, range);
    let expected = (CHECKED + description.len() + 4 * range.blocks()) as u64 + u64::from(range.length);
    let is_ours = opening.starts_with(MAGIC) && opening[CHECKED..].starts_with(&description) && size == expected;
    let is_good = |mut all: Vec<u8>| read_part(file, &key, range, 0, &mut all).is_ok();
    (is_ours && (!check || try_zeroed(range.length as usize).is_ok_and(is_good))).then_some(names)
}

/// Reads the header of a file, and a part of its range by the blocks that the part lies in: all checksums of these have
/// to be right. Blocks that are wanted whole are read into `out`.
fn read_part(file: &File, key: &CacheKey, range: StoredRange, from: usize, out: &mut [u8]) -> Result<(), Unread> {
    let description = description(key, range);
    let mut header = vec![0; CHECKED + description.len() + 4 * range.blocks()];
    fill(file, &mut header, 0)?;
    let (start, checked) = header.split_at(CHECKED);
    let sums = checked.strip_prefix(&description[..]).ok_or(Unread::Bad)?;
    let length = range.length as usize;
    let end = from.checked_add(out.len()).filter(|end| *end <= length).ok_or(Unread::Bad)?;
    if start != [&MAGIC[..], &crc32(checked).to_le_bytes()].concat() {
        return Err(Unread::Bad);
    }
    // up to here whole blocks are wanted
    let aligned = if end == length { end } else { end / BLOCK * BLOCK };
    let (mut at, mut edge) = (from, Vec::new());
    while at < end {
        let (first, within) = (at / BLOCK, at % BLOCK);
        let (offset, sums) = ((header.len() + at - within) as u64, &sums[4 * first..]);
        let is_good = if within == 0 && at < aligned {
            let stop = aligned.min(at + BLOCKS * BLOCK);
            let blocks = &mut out[at - from..stop - from];
            at = stop;
            fill(file, blocks, offset)?;
            are_good(sums, blocks)
        } else {
            let stop = length.min((first + 1) * BLOCK);
            edge.resize(stop - first * BLOCK, 0);
            fill(file, &mut edge, offset)?;
            let wanted = &edge[within..end.min(stop) - first * BLOCK];
            out[at - from..][..wanted.len()].copy_from_slice(wanted);
            at = end.min(stop);
            are_good(sums, &edge)
        };
        if !is_good {
            return Err(Unread::Bad);
        }
    }
    Ok(())
}

/// Fills `out` from a place of a file. What cannot be read is as good as damaged, unless the system lacks memory.
fn fill(file: &File, out: &mut [u8], offset: u64) -> Result<(), Unread> {
    file.read_exact_at(out, offset).map_err(|error| match Errno::from_io_error(&error) {
        Some(lack @ (Errno::NOMEM | Errno::NOBUFS)) => Unread::Failed(lack),
        _ => Unread::Bad,
    })
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
            assert_eq!(StoredRange::from_name(range.shard(), name), Some(range));
            assert_eq!(StoredRange::from_name(range.shard() ^ 1, name), None, "in the wrong folder");
        }
        let range = StoredRange { object: 1, offset: 16, length: 16 };
        assert_eq!(range.name(), "0000000000000001-10-10");
        for other in ["1-10-10", "0000000000000001-010-10", "0000000000000001-10", "0000000000000001-10-10-1", "", "+"]
        {
            assert_eq!(StoredRange::from_name(range.shard(), other), None, "{other}");
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
        assert_eq!(shard_before(42, 5), None);
        assert_eq!(shard_before(42, (3 << REGION_BITS) + 5), Some(shard(42, 2 << REGION_BITS)));
    }

    #[test]
    fn names_are_not_confused() {
        let key = CacheKey::new("s3://b", "survey", "a", "1");
        let others = [["s3://b", "survey", "a", "2"], ["s3://b", "surveya", "", "1"], ["s3://bs", "urvey", "a", "1"]];
        for [store, dataset, object, etag] in others {
            let other = CacheKey::new(store, dataset, object, etag);
            assert_ne!((other.digest, other.identity), (key.digest, Arc::clone(&key.identity)));
        }
        let names = ("s3://b".to_owned(), "survey".to_owned());
        assert_eq!(CacheKey::read(&key.identity), Some((key.clone(), names)));
        for shorter in 0..key.identity.len() {
            assert_eq!(CacheKey::read(&key.identity[..shorter]), None);
        }
    }

    #[test]
    fn the_digest_is_the_same_in_every_version_of_the_program() {
        assert_eq!(stable_hash(b""), 0xefd0_1f60_ba99_2926);
        assert_eq!(CacheKey::new("s3://bucket", "survey", "lod0/1", "etag").digest, 0xf258_15a3_d71c_b7ef);
    }

    #[test]
    fn any_changed_byte_is_noticed() {
        let key = CacheKey::new("s3://b", "d", "o", "e");
        let bytes: Vec<u8> = (0..BLOCK + 100).map(|n| (n % 251) as u8).collect();
        let range = StoredRange { object: key.digest, offset: 4096, length: bytes.len() as u32 };
        let header = header(&key, range, &bytes);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(range.path());
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let read = |file: &[u8], key: &CacheKey, range: StoredRange, part: std::ops::Range<usize>| {
            std::fs::write(&path, file).unwrap();
            let mut out = vec![0; part.len()];
            range.read(File::open(folder.path()).unwrap(), key, part.start, &mut out).map(|_| out)
        };
        let all = 0..bytes.len();
        let file = [&header[..], &bytes].concat();
        assert_eq!(read(&file, &key, range, all.clone()), Ok(bytes.clone()));
        assert_eq!(read(&file, &key, range, BLOCK..bytes.len()), Ok(bytes[BLOCK..].to_vec()));
        let names = |file: &[u8], size: usize, check: bool| {
            std::fs::write(&path, file).unwrap();
            names_of(&File::open(&path).unwrap(), size as u64, range, check)
        };
        let expected = Some(("s3://b".to_owned(), "d".to_owned()));
        assert_eq!([false, true].map(|check| names(&file, file.len(), check)), [expected.clone(), expected]);
        assert_eq!(names(&file, file.len() + 1, false), None);
        for at in (0..header.len()).chain([header.len(), header.len() + BLOCK, file.len() - 1]) {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert_eq!(read(&damaged, &key, range, all.clone()), Err(Unread::Bad), "byte {at}");
            assert_eq!(names(&damaged, file.len(), true), None, "byte {at}");
        }
        for length in 0..header.len() {
            assert_eq!(read(&file[..length], &key, range, all.clone()), Err(Unread::Bad));
            assert_eq!(names(&file[..length], file.len(), true), None);
            drop(names(&file[..length], file.len(), false));
        }
        let other = CacheKey { digest: key.digest, ..CacheKey::new("s3://b", "d", "o", "f") };
        assert_eq!(read(&file, &other, range, all.clone()), Err(Unread::Bad));
        let elsewhere = StoredRange { offset: 0, ..range };
        std::fs::create_dir_all(folder.path().join(elsewhere.path()).parent().unwrap()).unwrap();
        std::fs::write(folder.path().join(elsewhere.path()), &file).unwrap();
        assert_eq!(read(&file, &key, elsewhere, all), Err(Unread::Bad));
    }
}
